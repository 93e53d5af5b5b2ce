/*
 * PURPOSE: from the places of a thread's modeled events (abi/modeled-profile.h) to how many of each
 * event each instruction has caused. What a path costs by itself is spread evenly over its
 * instructions; the first ones have what cannot be divided.
 *
 * What is read may be anybody's, and may change meanwhile: no number in it is believed, and what
 * makes no sense is left out and told as such.
 *
 * Lifetime: a struct profile_counts that is all zero is empty; profile_counts_release() frees it.
 */
#ifndef DATA_PROFILE_READER_H
#define DATA_PROFILE_READER_H

#include "abi/modeled-profile.h"
#include "data/path-reader.h"

struct profile_count {
	u64 pc;
	u64 addr; /* of the data; 0: none, or not known */
	u64 count;
	u32 event; /* which of run_config.profiled[] */
};

struct profile_counts {
	struct profile_count *at; /* by event, pc, addr; owned */
	u64 nr, room;
	u64 unplaced[PROFILED_EVENTS]; /* it is not known where */
	u64 total[PROFILED_EVENTS];    /* of all that is above */
	u64 bad;   /* places that make no sense, or for which there is no room */
	bool full; /* there is none, and merging gives little */
};

/* Of @nr events. -ENOMEM; *@out is empty then. */
must_check int profile_counts_read(struct profile_counts *out, const struct modeled_profile *p,
				   u32 nr, path_space_fn *space, void *data);
void profile_counts_release(struct profile_counts *c);

#endif
