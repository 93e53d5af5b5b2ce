/*
 * PURPOSE: what goes into a recording, counted as it passes: samples, losses, times, and which
 * files were mapped to be executed, whose build ids belong into the file.
 *
 * Lifetime: init .. release.
 */
#ifndef DATA_TALLY_H
#define DATA_TALLY_H

#include <anyperf/record.h>

#include "base/types.h"

struct data_file {
	char *name;       /* owned */
	u8 build_id[20];  /* as its first mapping tells it */
	u8 build_id_size; /* 0: it does not */
	u64 ino;          /* then this may be known; 0: not */
};

struct data_tally {
	struct ap_layout layout; /* of the first event; the others have the time at its place */
	u64 samples;
	u64 lost;                /* as LOST records tell */
	u64 first, last;         /* times of samples; 0: there was none */
	struct data_file *files; /* a hash table of names, NULL where nothing is; owned */
	u32 room, nr_files;
};

void data_tally_init(struct data_tally *t, const struct ap_layout *layout);
void data_tally_release(struct data_tally *t);

/* Looks at whole records. */
void data_tally_add(struct data_tally *t, const void *records, size_t len);

#endif
