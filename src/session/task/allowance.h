/*
 * PURPOSE: how much of the session one guest has caused to be used: of its descriptors, where a
 * perf file is one and a process that was announced and has not come is three, and of its memory,
 * where a task that was announced takes some with all that it inherits. The session has as many
 * descriptors as whoever has started it may have, for all guests together, and a part of the
 * machine's memory; so a guest that has many gets no more than three times the descriptors, and no
 * more memory, than are left for the others.
 *
 * Lifetime: counted; a perf file may live on when who has opened it is gone. Locking: none.
 */
#ifndef SESSION_TASK_ALLOWANCE_H
#define SESSION_TASK_ALLOWANCE_H

#include "base/types.h"

struct allowance;

/*
 * Takes @n for whom *@of is, which is made if it is NULL, and remembers in *@taken who has them.
 * @fd is a descriptor that was just made, whose number tells how many there are. 0, -ENOMEM, or
 * -EMFILE with *@held and *@left: what it has, and what all have left.
 */
int must_check allowance_take(struct allowance **of, struct allowance **taken, u32 n, int fd,
			      u32 *held, u32 *left);
/* What allowance_take() has taken with @n; NULL is fine. */
void allowance_give(struct allowance **taken, u32 n);
/* The session's memory for what guests announce: of all guests together, in bytes. */
struct allowance_pool {
	u64 held, limit;
};

/* What one thing takes of it. */
struct allowance_memory {
	struct allowance *by; /* NULL: nothing was taken */
	u64 bytes;
};

void allowance_pool_init(struct allowance_pool *pool);
/*
 * The same of memory: 0, or -ENOMEM, with *@held and *@left if it is this guest that has too much;
 * both are 0 if there is none at all.
 */
int must_check allowance_take_memory(struct allowance_pool *pool, struct allowance **of,
				     struct allowance_memory *taken, u64 bytes, u64 *held,
				     u64 *left);
/* Nothing was taken: that is fine. */
void allowance_give_memory(struct allowance_pool *pool, struct allowance_memory *taken);

/* The guest is gone; what was taken for it may be there yet. */
void allowance_put(struct allowance *of);

#endif
