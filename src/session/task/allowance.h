/*
 * PURPOSE: how many of the session's descriptors one guest has caused: a perf file is one, a
 * process that was announced and has not come is three. The session has as many as whoever has
 * started it may have, for all guests together; so a guest that has many gets no more than are left
 * for the others.
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
/* The guest is gone; what was taken for it may be there yet. */
void allowance_put(struct allowance *of);

#endif
