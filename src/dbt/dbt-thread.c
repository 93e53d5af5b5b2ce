/* The threads that use the cache, and the cache in a fork. */
#include "dbt/arch-priv.h"

static void no_deadlines(struct dbt_thread *t)
{
	u64 none[METER_QUANTITIES];

	for (u32 q = 0; q < METER_QUANTITIES; q++)
		none[q] = DBT_NO_DEADLINE;
	dbt_deadlines(t, none);
}

void dbt_thread_add(struct dbt_thread *t, u32 id)
{
	t->self = t;
	t->id = id;
	t->in_cache = 0;
	t->epoch = 0;
	t->exit_pc = (u64)dbt_exit;
	t->logged = 0;
	no_deadlines(t);
	cache_lock(t);
	meter_attach(t);
	t->prev = cache.threads.prev;
	t->next = &cache.threads;
	__atomic_store_n(&cache.threads.prev->next, t, __ATOMIC_RELEASE);
	cache.threads.prev = t;
	cache_unlock(t);
}

void dbt_thread_remove(struct dbt_thread *t, u32 me)
{
	cache_lock_as(me);
	__atomic_store_n(&t->prev->next, t->next, __ATOMIC_RELEASE);
	t->next->prev = t->prev;
	/* Once more does no harm: the parent of a vfork removes a child that may have done so. */
	t->prev = t->next = t;
	lock_release(&cache.lock, me);
}

bool dbt_lock_held_by(u32 id)
{
	return lock_held_by(&cache.lock, id);
}

void dbt_fork_prepare(struct dbt_thread *t)
{
	cache_lock(t);
}

void dbt_fork_share(void)
{
	code_freeze();
}

void dbt_fork_parent(struct dbt_thread *t)
{
	cache_unlock(t);
}

void dbt_fork_child(struct dbt_thread *t, u32 id)
{
	lock_reset(&cache.lock);
	t->id = id;
	no_deadlines(t); /* those there are belong to the parent's meter */
	t->logged = 0;   /* nor has it taken those branches */
	t->next = t->prev = &cache.threads;
	cache.threads.next = cache.threads.prev = t;
}
