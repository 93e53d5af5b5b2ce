/*
 * PURPOSE: a decoded record as one line of text with every field, for tests that compare records
 * with what somebody else says about them: golden files, and `perf script -D`.
 */
#ifndef RECORDS_SHOW_H
#define RECORDS_SHOW_H

#include <stdio.h>

#include <anyperf/record.h>

/* Writes "NAME misc=0x2 size=40 field=value ...\n". Bytes and words are in hexadecimal. */
void show_record(FILE *f, const struct ap_record *rec);

/* Writes @layout as "layout sample_type=0x... ...\n", and reads it back: 0, or -1 if it is none. */
void show_layout(FILE *f, const struct ap_layout *layout);
int read_layout(const char *line, struct ap_layout *layout);

#endif
