/* PURPOSE: reading all that a decoded record points to, so that sanitizers see a byte too many. */
#ifndef RECORDS_TOUCH_H
#define RECORDS_TOUCH_H

#include <anyperf/record.h>

/*
 * Reads every byte that @rec's body points to, and ends the program if one is outside of the
 * record. Returns something that depends on all of them.
 */
uint64_t touch_record(const struct ap_record *rec);

#endif
