/*
 * PURPOSE: where the program has asked for the memory that it accesses, for modeled events that are
 * attributed to data (abi/modeled-profile.h, MODELED_SITE). Functions that give memory are known by
 * their names in the symbol tables of files that are mapped as code. A thread is stopped where one
 * begins and where it returns to (rt/sample/places.c), and what it has executed until then is told
 * to the model first.
 *
 * A function that such a function calls is part of it: the site is in the program's own code, where
 * the outermost one returns to.
 *
 * Locking: that of simulate.c for blocks, so nobody feeds the model while they change, and a fork
 * finds them whole; a lock of its own for functions.
 */
#ifndef RT_TASK_ALLOC_SITES_H
#define RT_TASK_ALLOC_SITES_H

#include "rt/task/thread.h"

/* Whether the run wants it. Constant once there is a segment. */
bool alloc_sites_wanted(void);

/* All of a file is in memory, where its addresses say and @bias on. */
void alloc_sites_file(struct thread *t, int fd, u64 bias);
/* The program @name is all in memory: should it have no allocator the report will say so. */
void alloc_sites_complete(const char *name);
/* @size bytes of a file from @offset on are mapped at @at, to be executed. */
void alloc_sites_mapped(struct thread *t, int fd, u64 at, u64 size, u64 offset);

/* The thread is about to execute the instruction at @pc, which is a place. */
void alloc_sites_place(struct thread *t, u64 pc);

/* Where the block was asked for that @addr is in; 0: it is in none. With the lock of simulate.c. */
u64 alloc_site_of(u64 addr);

/* @t ends. */
void alloc_sites_leave(struct thread *t);

#endif
