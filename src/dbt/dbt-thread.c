/* The threads that use the cache, and the cache in a fork. */
#include "dbt/arch-priv.h"
#include "sys/string.h"

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

void dbt_thread_clear(struct dbt_thread *t)
{
	const struct dbt_tables tables[2] = {t->tables[0], t->tables[1]};
	const u32 epoch = t->epoch, reach = t->reach;

	/* The filter is large, and has not been touched. */
	memset(t, 0, offsetof(struct dbt_thread, filter));
	memset(&t->filter + 1, 0,
	       sizeof(*t) - offsetof(struct dbt_thread, filter) - sizeof(t->filter));
	memcpy(t->tables, tables, sizeof(tables));
	t->epoch = epoch;
	t->reach = reach;
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
	meta_shared();
}

void dbt_fork_parent(struct dbt_thread *t)
{
	cache_unlock(t);
}

void dbt_fork_child(struct dbt_thread *t, u32 id)
{
	lock_reset(&cache.lock);
	relatives_forked();
	t->id = id;
	no_deadlines(t); /* those there are belong to the parent's meter */
	t->logged = 0;   /* nor has it taken those branches */
	t->next = t->prev = &cache.threads;
	cache.threads.next = cache.threads.prev = t;
}
