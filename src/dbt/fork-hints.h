/*
 * PURPOSE: what the child of a fork goes on with is mostly what the next child of the same process
 * goes on with, too, and nothing that the process itself executes: each child would translate it
 * again. So children note which blocks they make, in a page that they share with their parent, and
 * the parent makes them before its next fork.
 *
 * What stands there is a hint and nothing else: addresses, of which code is made only where this
 * process may execute it and not write, from its own memory.
 */
#ifndef DBT_FORK_HINTS_H
#define DBT_FORK_HINTS_H

#include "dbt/dbt.h"

/* A block that begins at @pc was made. With the lock. */
void fork_hint(u64 pc, u32 form);

/* Makes those that children have noted. With the lock, out of the cache. */
void fork_hints_take(void);

#endif
