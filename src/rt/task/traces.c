#include "rt/task/traces.h"

#include "abi/modeled.h"
#include "abi/path-profile.h"
#include "rt/mm/region.h"
#include "rt/task/limits.h"
#include "rt/task/meter-page.h"
#include "rt/task/windows.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"

#define GUARD       0x1000ul
#define MAPPED_SIZE (PATH_TRACE_SIZE + GUARD)
#define SLOTS_USUAL (u64) PATH_RECORDS_SIZE /* what paths need of it, nearly always */

static const struct trace_user *users[TRACE_USERS];
static u32 nr_users;
static bool memory, filter;

void trace_use(const struct trace_user *user)
{
	for (u32 i = 0; i < nr_users; i++)
		if (users[i] == user)
			return;
	CHECK(nr_users < TRACE_USERS);
	users[nr_users] = user;
	__atomic_store_n(&nr_users, nr_users + 1, __ATOMIC_RELEASE);
}

void trace_use_memory(void)
{
	memory = true;
}

void trace_use_filter(u32 shift, u32 sets, u32 plain)
{
	dbt_filter(shift, sets, plain);
	filter = true;
}

bool traces_filtered(void)
{
	return filter;
}

u64 traces_mask(void)
{
	if (!nr_users)
		return 0;
	return DBT_MASK_TRACE | (memory ? DBT_MASK_MEMORY : 0) |
	       (memory && filter ? DBT_MASK_FILTER : 0);
}

/* The translator's, before it has begun, and for the program and who looks for its image. */
#define ROOM_FOR_OTHERS (288ull << 20)

bool traces_have_room(void)
{
	u64 size = sizeof(struct path_space) + MAPPED_SIZE + PATH_SLOTS_SIZE + ROOM_FOR_OTHERS;
	void *at = region_map(size);

	if (at)
		region_unmap(at, size);
	return at;
}

/*
 * A thread that only windows see does without, and its program goes on; who wants the model to see
 * all of it does not want to be told half.
 */
static u64 none(const char *what)
{
	if (!(windows_mask() & DBT_MASK_WINDOWS))
		die("no memory to %s; raise the limit of addresses (ulimit -v)\n", what);
	__atomic_or_fetch(segment_model_lacks(counter_segment()), MODEL_NO_MEMORY,
			  __ATOMIC_RELAXED);
	return 0;
}

u64 traces_map(struct dbt_thread *dbt)
{
	u8 *at = region_map(MAPPED_SIZE);

	(void)dbt;
	if (!at)
		return none("trace a thread");
	if (sys_mprotect(at + PATH_TRACE_SIZE, GUARD, PROT_NONE))
		die("no memory to trace a thread\n");
	limits_ours(0, -(s64)GUARD);
	/* Faults of ours would be counted as the program's. */
	sys_madvise(at, PATH_TRACE_SIZE, MADV_POPULATE_WRITE);
	return (u64)at;
}

u64 traces_map_slots(struct dbt_thread *dbt)
{
	u8 *at = region_map(PATH_SLOTS_SIZE);

	(void)dbt;
	if (!at)
		return none("trace what a thread accesses");
	if (filter) {
		if (sys_mprotect(at + PATH_RECORDS_SIZE, GUARD, PROT_NONE))
			die("no memory to trace what a thread accesses\n");
		limits_ours(0, -(s64)GUARD);
	}
	sys_madvise(at, SLOTS_USUAL, MADV_POPULATE_WRITE);
	return (u64)at;
}

void traces_words(struct dbt_thread *dbt, const u32 *words, u32 n)
{
	struct thread *t = container_of(dbt, struct thread, dbt);

	for (u32 i = 0; i < nr_users; i++)
		users[i]->words(t, words, n);
}

void traces_hand_over(struct thread *t)
{
	dbt_trace_flush(&t->dbt);
	for (u32 i = 0; i < nr_users; i++)
		if (users[i]->settle)
			users[i]->settle(t);
}

/* Forgotten first: the child of who forks meanwhile would unmap what it has there by then. */
void traces_unmap(struct thread *t)
{
	u64 slots = t->dbt.slots_start, trace = t->dbt.trace_start;

	t->dbt.slots_start = t->dbt.slots_at = 0;
	t->dbt.trace_start = t->dbt.trace_begin = t->dbt.trace_at = 0;
	if (slots && filter)
		limits_ours(0, GUARD);
	if (slots)
		region_unmap((void *)slots, PATH_SLOTS_SIZE);
	if (!trace)
		return;
	limits_ours(0, GUARD);
	region_unmap((void *)trace, MAPPED_SIZE);
}
