/*
 * PURPOSE: starts programs under the translator (the guest world of doc/architecture.md) and reads what
 * the tree of their processes has counted. Finds anyperf-rt, makes the memfd with the meter pages
 * (abi/meter.h), and is the first to tell a runtime what to run (abi/control.h).
 *
 * Nothing that the guests write into the shared memory is trusted: it is data, bounded before use.
 */
#ifndef CLI_RUN_GUEST_H
#define CLI_RUN_GUEST_H

#include "abi/runs.h"

struct guest_tree {
	int fd;                  /* memfd; -1: not open */
	int rt_fd;               /* anyperf-rt, O_PATH */
	const u8 *map;           /* header and meters, read-only; owned */
	struct meter_tree *head; /* the same header, writable; owned */
	u32 slots;               /* meters that are mapped */
	struct meter_run *run;   /* our command's; in the header */
	u32 number;              /* the same; of the pages that count for us */
};

/* Whether the runtime is there: 0, or -errno with a sentence in @why. */
must_check int guest_runtime(char *why, size_t size);

/*
 * Finds the runtime: ANYPERF_RUNTIME, or beside this program in a build tree, or where it was
 * installed. Makes the tree with @flags (enum meter_tree_flags), and in it a run of ours: what is said below
 * of the tree's pages and totals is said of our command and its descendants. With @keep there is a page for
 * every thread that it ever had. 0, or -errno with a sentence in @why.
 */
must_check int guest_tree_open(struct guest_tree *tree, u32 flags, u32 cache_mb, bool keep,
			       char *why, size_t size);
/* The same for a tree that somebody else has made; takes @fd. */
must_check int guest_tree_join(struct guest_tree *tree, int fd, bool keep, char *why, size_t size);
/* Closes the run as well: its pages are anybody's. */
void guest_tree_close(struct guest_tree *tree);

/*
 * In a child process: becomes the program @argv, looked up in PATH as execvp(3) does. @session_fd: a
 * socket for the runtime, or -1. Returns only on failure, with an errno. If the runtime cannot start
 * the program it exits with 127 and guest_tree_failure() knows why.
 */
int guest_exec(const struct guest_tree *tree, char *const *argv, int session_fd);

/*
 * 0, or the errno with which our command could not be started since this was last asked; *@text a sentence
 * or "".
 */
int guest_tree_failure(const struct guest_tree *tree, const char **text);

/* How many meters were ever used, and the one at @index below that if it is our run's, else NULL. */
u32 guest_tree_used(const struct guest_tree *tree);
const struct meter *guest_tree_meter(const struct guest_tree *tree, u32 index);

/* How many programs ran natively, and the one in entry @i of the tree's list if it is there and ours. */
u32 guest_tree_uncounted(const struct guest_tree *tree);
bool guest_tree_uncounted_at(const struct guest_tree *tree, u32 i, struct meter_uncounted *u);

/* The sums over the run, as of now. */
void guest_tree_total(const struct guest_tree *tree, u64 total[METER_QUANTITIES]);

/*
 * Whether this process itself runs under the translator, which does not run itself: the only sign of it that there is.
 * Costs a vfork(2).
 */
bool guest_are_we_one(void);

/* Names for output and JSON, by enum meter_quantity; NULL for METER_SPARE. */
extern const char *const meter_names[METER_QUANTITIES];

#endif
