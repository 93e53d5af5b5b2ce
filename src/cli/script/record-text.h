/*
 * PURPOSE: a decoded record as one line of text with every field: `anyperf script -D`, and tests
 * that compare records with what somebody else says about them.
 */
#ifndef CLI_SCRIPT_RECORD_TEXT_H
#define CLI_SCRIPT_RECORD_TEXT_H

#include <stdio.h>

#include <anyperf/record.h>

/* Writes "NAME misc=0x2 size=40 field=value ...\n". Bytes and words are in hexadecimal. */
void show_record(FILE *f, const struct ap_record *rec);

#endif
