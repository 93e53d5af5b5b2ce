/*
 * PURPOSE: feeds a model with the traces of paths (abi/path-trace.h) of the threads of a process.
 * What the model needs of a path is worked out once, when a trace first names it: which lines are
 * fetched, which branches there are, what the instructions cost.
 *
 * The caller brings the memory, and calls for one thread at a time. The memory is zeroed at first;
 * only as much of it is written as there are paths. A fork's copy of all can be used.
 */
#ifndef MODEL_FEED_H
#define MODEL_FEED_H

#include "abi/path-trace.h"
#include "model/feed-watch.h"
#include "model/model.h"
#include "model/predictor.h"

#define FEED_ROOM (128u << 20) /* bytes for what is worked out; without room it is done again */

#define FEED_RECORDS 2048u /* of a path, at most */

#define FEED_PATH_MAX 65536u /* bytes of the largest path */

struct feed {
	struct model *model;
	const struct path_space *space;
	u32 parts;
	u32 line;    /* bytes of a cache line */
	bool each;   /* ops are kept one by one, as who watches needs them */
	bool counts; /* instructions, whatever its parts; of two halves one does */
	u64 used;    /* bytes of room[] */
	u64 unknown; /* instructions whose path is not described; entries that make no sense */
	u64 system;  /* ticks of an instruction that is of no path */
	u32 at[PATH_WORDS]; /* where a path is in room[], in units of 8 bytes, + 1 */
	/* Of each site paths that leave its branches out; a list in room[], likewise. */
	u32 left_out[SITES];
	u64 made[FEED_PATH_MAX / 8]; /* a path that is being worked out */
	u8 room[FEED_ROOM] __attribute__((aligned(64)));
};

/* Of one thread; all zero at first. */
struct feed_thread {
	u64 fs_base, gs_base; /* of the segments, for the words that come next */
	struct feed_watching
		*watching; /* NULL: nothing; likewise. `each` is set, or hits are late */

	u32 pending; /* a path whose end the next entry may take back; 0: none */
	u8 open;     /* enum model_branch_kind: a branch that goes to what comes next; 0: none */
	u64 open_pc, open_next;
	u64 elements_pc; /* of the instruction whose elements are told, or what it has done */
	/* What it has done to strings: how many elements there are, and those that have come. */
	u8 string_flags, string_ends, nr_ends;
	u32 end_what[4];
	u64 ends[4];
	const u64 *next, *end; /* slots that are left */
	u32 nr_stashed;        /* slots of the pending path */
	u64 stash[PATH_SLOTS_MAX];
	/* Likewise records, of a trace that begins at `trace`, and of which `word` is looked at. */
	const struct path_record *record, *record_end;
	u64 trace;
	s32 word;
	u64 loads, stores; /* that were left out, and have not been told */
	u32 nr_stashed_records;
	struct path_record stash_record[FEED_RECORDS];
};

/* A piece of a trace. */
struct feed_input {
	const u32 *words;
	const u64 *slots;                  /* of these, where paths have slots */
	const struct path_record *records; /* where they have records */
	u64 trace;                         /* the address of the first word, as records say it */
	u32 nr_words;
	u64 nr_slots, nr_records;
};

/*
 * @space describes the paths; @model has been made with @parts, or is a half (model.h). @each:
 * somebody may watch.
 */
void feed_init(struct feed *f, struct model *model, const struct path_space *space, u32 parts,
	       bool each);

/* What comes next of the thread whose core that is. */
void feed_words(struct feed *f, struct feed_thread *t, struct model_core *core,
		const struct feed_input *in);

/* Nothing is taken back any more: the model is exact. */
void feed_settle(struct feed *f, struct feed_thread *t, struct model_core *core);

#endif
