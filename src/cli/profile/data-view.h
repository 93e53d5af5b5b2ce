/*
 * PURPOSE: what the data is that a sample has accessed: a symbol of a file's data, the heap, the
 * stack of a thread, a mapped file, other memory. A sample says its address if it was recorded so
 * (`record -d`). Whose stack something is on is known of threads whose stack pointer has been seen,
 * and of first threads. With --alloc-sites what the heap has is told by who has asked for it.
 *
 * Lifetime: a struct data_view that is all zero is empty; data_view_release() frees the names.
 */
#ifndef CLI_PROFILE_DATA_VIEW_H
#define CLI_PROFILE_DATA_VIEW_H

#include "cli/profile/line-view.h"
#include "cli/reading.h"

struct data_place {
	const char *object; /* a file; or "[heap]", "[stack]", "[anon]", "[unknown]", "[none]" */
	const char *name;   /* NULL: `addr` instead */
	u64 addr;           /* of a symbol: what tells it from others of its name */
};

/* Where the stack pointer of a thread was. */
struct data_stack {
	u32 pid, tid;
	u64 at;
	char name[24];
	struct data_stack *next;
};

/* Where a program has asked for memory. */
struct data_site {
	u64 at;
	u32 pid;
	char *name; /* NULL: none is here; owned */
};

struct data_view {
	struct data_stack *stacks; /* the last one that was seen first; owned */
	struct data_site *sites;   /* by a hash, `room` of them, a power of 2; owned */
	u32 nr_sites, room;
	struct line_view lines; /* of sites */
};

/* Names live as long as the view and the reading. */
void data_view_find(struct data_view *v, struct reading *r, const struct data_item *item,
		    struct data_place *place);
void data_view_release(struct data_view *v);

#endif
