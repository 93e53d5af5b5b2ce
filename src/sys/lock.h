/*
 * PURPOSE: locks of the guest world, on private futexes. A lock knows its owner (a thread id of the
 * runtime's choosing, not 0, below 2^31), so that a fault handler can ask whether it is "held by
 * me". A holder must have all signals blocked, must not exit, and must not fork with a lock that
 * the child needs.
 */
#ifndef SYS_LOCK_H
#define SYS_LOCK_H

#include "base/check.h"
#include "base/types.h"
#include "sys/arch/x86_64/cpu.h"
#include "sys/kernel.h"

struct lock {
	u32 word; /* 0 free; else the holder's id, and LOCK_WAITED if somebody may sleep on it */
};

#define LOCK_WAITED 0x80000000u

/* Whether the thread of that id will never run again in this memory. */
typedef bool lock_gone_fn(u32 id);

static inline bool lock_change(struct lock *l, u32 from, u32 to)
{
	return __atomic_compare_exchange_n(&l->word, &from, to, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline bool lock_try(struct lock *l, u32 me)
{
	return lock_change(l, 0, me);
}

/* Whether its holder is gone. */
static inline bool lock_is_left(const struct lock *l, lock_gone_fn *gone)
{
	u32 word = __atomic_load_n(&l->word, __ATOMIC_RELAXED);

	return word && gone && gone(word & ~LOCK_WAITED);
}

/*
 * Spins for a short time first, since the holder usually runs on another CPU and is soon done. Then
 * it sleeps, but never for long without a look at the holder: a process that shares our memory may
 * be killed while it holds the lock, or after it has been woken to take it. True if the holder was
 * gone; then what the lock guards is as the holder left it.
 */
static inline bool lock_acquire(struct lock *l, u32 me, lock_gone_fn *gone)
{
	const struct __kernel_timespec patience = {.tv_nsec = 20000000};

	for (int spins = 0; spins < 100; spins++) {
		if (lock_try(l, me))
			return false;
		cpu_relax();
	}
	while (!lock_change(l, 0, me | LOCK_WAITED)) {
		u32 word = __atomic_load_n(&l->word, __ATOMIC_RELAXED);

		if (!word || (!(word & LOCK_WAITED) && !lock_change(l, word, word | LOCK_WAITED)))
			continue;
		word |= LOCK_WAITED;
		if (sys_futex(&l->word, FUTEX_WAIT_PRIVATE, word, &patience, NULL, 0) ==
			    -ETIMEDOUT &&
		    gone && gone(word & ~LOCK_WAITED) && lock_change(l, word, me | LOCK_WAITED))
			return true;
	}
	return false;
}

static inline bool lock_held_by(const struct lock *l, u32 me)
{
	return (__atomic_load_n(&l->word, __ATOMIC_RELAXED) & ~LOCK_WAITED) == me;
}

static inline void lock_release(struct lock *l, u32 me)
{
	CHECK(lock_held_by(l, me));
	if (__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) & LOCK_WAITED)
		sys_futex(&l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Free again whatever it was: in the child of a fork, where its holder does not exist. */
static inline void lock_reset(struct lock *l)
{
	l->word = 0;
}

#endif
