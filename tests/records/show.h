/*
 * PURPOSE: a layout as a line of text, in golden files, beside the records that have it.
 */
#ifndef RECORDS_SHOW_H
#define RECORDS_SHOW_H

#include <stdio.h>

#include <anyperf/record.h>

#include "cli/script/record-text.h"

/* Writes @layout as "layout sample_type=0x... ...\n", and reads it back: 0, or -1 if it is none. */
void show_layout(FILE *f, const struct ap_layout *layout);
int read_layout(const char *line, struct ap_layout *layout);

#endif
