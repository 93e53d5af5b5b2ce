/*
 * PURPOSE: the meter tree (abi/meter.h) of whoever starts guests: made here, or that of a session
 * which was joined. What is said below of the tree's pages and totals is said of the run that was
 * opened with it: our commands and their descendants.
 *
 * Nothing that the guests write into the shared memory is trusted: it is data, bounded before use.
 * Locking: none. Errors: 0 or -errno with a sentence in @why, cut to @len bytes.
 */
#ifndef BACKEND_GUEST_TREE_H
#define BACKEND_GUEST_TREE_H

#include <stddef.h>

#include "abi/refusal-list.h"
#include "abi/runs.h"

struct guest_tree {
	int fd;                  /* memfd; -1: not open */
	const u8 *map;           /* header and meters, read-only; owned */
	struct meter_tree *head; /* the same header, writable; owned */
	u32 slots;               /* meters that are mapped */
	struct meter_run *run;   /* ours; in the header */
	u32 number;              /* the same; of the pages that count for us */
};

/*
 * Makes a tree with @flags (enum meter_tree_flags), and in it a run. With @keep there is a page for
 * every thread that it ever had.
 */
must_check int ap__tree_open(struct guest_tree *tree, u32 flags, u32 cache_mb, bool keep, char *why,
			     size_t len);
/* The same for a tree that somebody else has made; takes @fd. */
must_check int ap__tree_join(struct guest_tree *tree, int fd, bool keep, char *why, size_t len);
/* Closes the run as well: its pages are anybody's. */
void ap__tree_close(struct guest_tree *tree);

/* Shows guests that there is a virtual PMU, and what it and the CPU are like: view_show(). */
void ap__tree_show(struct guest_tree *tree, u32 counters, u32 cpuid_signature);

/*
 * 0, or the errno with which our command could not be started since this was last asked; *@text a
 * sentence or "".
 */
int ap__tree_failure(const struct guest_tree *tree, const char **text);

/* How many meters were ever used, and the one at @index below that if it is our run's, else NULL. */
u32 ap__tree_used(const struct guest_tree *tree);
const struct meter *ap__tree_meter(const struct guest_tree *tree, u32 index);

/* How many programs ran natively, and the one in entry @i of the tree's list if it is there and ours. */
u32 ap__tree_uncounted(const struct guest_tree *tree);
bool ap__tree_uncounted_at(const struct guest_tree *tree, u32 i, struct meter_uncounted *u);

/*
 * How many calls the session has refused to our run, and entry @i of its list if it is there and
 * ours.
 */
u32 ap__tree_refused(const struct guest_tree *tree);
bool ap__tree_refusal_at(const struct guest_tree *tree, u32 i, struct meter_refusal *r);

/* The sums over the run, as of now. */
void ap__tree_total(const struct guest_tree *tree, u64 total[METER_QUANTITIES]);

#endif
