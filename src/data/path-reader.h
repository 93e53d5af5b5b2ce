/*
 * PURPOSE: from the words of paths of a thread (abi/path-profile.h) to how often it has executed
 * each instruction, and how often each direct branch was taken to where.
 *
 * What is read may be anybody's, and may change meanwhile: no number in it is believed, and what
 * makes no sense is left out and told as such.
 *
 * Lifetime: a struct path_counts that is all zero is empty; path_counts_release() frees it.
 */
#ifndef DATA_PATH_READER_H
#define DATA_PATH_READER_H

#include "abi/path-profile.h"

/* One instruction that was executed. */
struct path_count {
	u64 pc;
	u64 time; /* when it was there, as path_when_fn says; 0: at the end */
	u64 count;
	u8 len;  /* 0: not known */
	u8 kind; /* enum path_insn */
};

/* Direct calls that were made, from one place to one function. */
struct path_edge {
	u64 from, to;
	u64 count;
};

struct path_counts {
	struct path_count *insn; /* by pc and time, ascending; owned */
	u32 nr_insns;
	struct path_edge *call; /* by where from; owned */
	u32 nr_calls;
	u64 total;    /* of all that is below, and of what is not known */
	s64 unplaced; /* executed, but it is not known where */
	u64 bad;      /* words whose path makes no sense, or that are not to be believed */
};

/* Gives the memory of a space by its index; NULL: there is none. */
typedef const struct path_space *path_space_fn(u32 index, void *data);

struct path_source {
	path_space_fn *space;
	void *data;
};

/*
 * Of an instruction at @pc that was described when code had been mapped at @since, or later (0:
 * there was none yet): a time at which it was there, if something else was there at last; else 0.
 */
typedef u64 path_when_fn(u64 pc, u64 since, void *data);

/* @when: NULL: all of it is what was there at last. -ENOMEM; *@out is empty then. */
must_check int path_counts_read(struct path_counts *out, const struct path_thread *t,
				path_space_fn *space, path_when_fn *when, void *data);
void path_counts_release(struct path_counts *c);

#endif
