/*
 * PURPOSE: locks of the guest world, on private futexes. A lock knows its owner (a thread id of the
 * runtime's choosing, not 0), so that a fault handler can ask whether it is "held by me". A holder
 * must have all signals blocked, must not exit, and must not fork with a lock that the child needs.
 */
#ifndef SYS_LOCK_H
#define SYS_LOCK_H

#include "base/check.h"
#include "base/types.h"
#include "sys/call.h"

struct lock {
	u32 state; /* 0 free, 1 held, 2 held and somebody may sleep on it */
	u32 owner; /* set by the holder for the holder: only "== me" is a safe question */
};

static inline bool lock_try(struct lock *l, u32 me)
{
	u32 expected = 0;

	if (!__atomic_compare_exchange_n(&l->state, &expected, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&l->owner, me, __ATOMIC_RELAXED);
	return true;
}

/* A short spin first: sections are short and the holder usually runs on another CPU. */
static inline void lock_acquire(struct lock *l, u32 me)
{
	for (int spins = 0; spins < 100; spins++) {
		if (lock_try(l, me))
			return;
		__builtin_ia32_pause();
	}
	while (__atomic_exchange_n(&l->state, 2, __ATOMIC_ACQUIRE))
		sys_futex(&l->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	__atomic_store_n(&l->owner, me, __ATOMIC_RELAXED);
}

static inline bool lock_held_by(const struct lock *l, u32 me)
{
	return __atomic_load_n(&l->owner, __ATOMIC_RELAXED) == me;
}

static inline void lock_release(struct lock *l, u32 me)
{
	CHECK(lock_held_by(l, me));
	__atomic_store_n(&l->owner, 0, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&l->state, 0, __ATOMIC_RELEASE) == 2)
		sys_futex(&l->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Free again whatever it was: in the child of a fork, where its holder does not exist. */
static inline void lock_reset(struct lock *l)
{
	l->state = 0;
	l->owner = 0;
}

#endif
