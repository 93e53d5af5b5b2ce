/* The areas and the loop of threads. What clone(2) does with them is in process.c. */
#include "rt/task/thread.h"

#include "rt/arch.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/sample/modeled-samples.h"
#include "rt/sample/sample.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "rt/task/fork-areas.h"
#include "rt/task/limits.h"
#include "rt/task/meter-page.h"
#include "rt/task/simulate.h"
#include "rt/task/path-pages.h"
#include "rt/task/shared-mm.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "sys/guest-call.h"
#include "sys/string.h"

/* What calls into the runtime need at most, nearly always: in the first thread, and in others. */
#define STACK_USUAL 0x8000
#define STACK_OTHER 0x2000

static u32 last_id;

/*
 * Areas of threads that have ended, for those that begin, with their tables and their meter pages
 * still mapped. To map an area and to give it back costs more than the rest of a thread's life,
 * since all CPUs that run threads of this memory are told. A word is 0, or the address of an area,
 * or AREA_COMING while its thread still stands on it.
 */
#define SPARE_AREAS 8u
#define AREA_COMING 1ul

static u64 spare_areas[SPARE_AREAS];
static u64 spare_sizes[SPARE_AREAS]; /* of what is or will be there */

static bool replace(u64 *word, u64 from, u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Where the address of @t's area can be left; NULL: nowhere. */
static u64 *spare_place(const struct thread *t)
{
	/* A trace leaves more behind than tables; and a fork's child is to have no spare areas. */
	if (paths_mask() != DBT_MASK_ALL || !t->left_out)
		return NULL;
	for (u32 i = 0; i < SPARE_AREAS; i++)
		if (replace(&spare_areas[i], 0, AREA_COMING)) {
			spare_sizes[i] = thread_area_size(t);
			return &spare_areas[i];
		}
	return NULL;
}

static u64 spare_take(void)
{
	for (u32 i = 0; i < SPARE_AREAS; i++) {
		u64 area = __atomic_load_n(&spare_areas[i], __ATOMIC_RELAXED);

		if (area > AREA_COMING && replace(&spare_areas[i], area, 0))
			return area;
	}
	return 0;
}

u64 thread_area_size(const struct thread *t)
{
	return AREA_SELF + t->dbt.reach;
}

/* The same of a new one. */
static u64 first_size(void)
{
	return paths_wanted() ? AREA_PATHS_AT + ALIGN_UP(DBT_PATHS_SIZE, PAGE_SIZE) : AREA_FIRST;
}

/* What of it is not private and writable. */
static u64 area_no_data(void)
{
	return 2 * AREA_GUARD + METER_SIZE + (paths_wanted() ? first_size() - AREA_PATHS_AT : 0);
}

bool thread_reach(struct dbt_thread *dbt, u32 upto)
{
	struct thread *t = container_of(dbt, struct thread, dbt);
	u64 at = (u64)t + dbt->reach, len = ALIGN_UP(upto, PAGE_SIZE) - dbt->reach;

	if (region_map_tables(at, len) != (long)at)
		return false;
	dbt->reach += (u32)len;
	if (t->left_out)
		fork_areas_leave_out(t);
	return true;
}

static void unmap_area(const struct thread *t)
{
	limits_leave(0, -(s64)area_no_data());
	region_unmap((void *)t->area, thread_area_size(t));
}

static void give_id(struct thread *t)
{
	do
		t->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED) & ~LOCK_WAITED;
	while (!t->id);
}

/* The area of a thread that has ended; NULL: there is none, or no meter page for it. */
static struct thread *alloc_again(void)
{
	u64 area = spare_take();
	struct thread *t = (struct thread *)(area + AREA_SELF);
	u32 meter;

	if (!area)
		return NULL;
	meter = t->meter;
	dbt_thread_clear(&t->dbt);
	memset((u8 *)t + sizeof(t->dbt), 0, sizeof(*t) - sizeof(t->dbt));
	t->area = area;
	t->meter = meter;
	t->left_out = true;
	if (!meter_take_again(area + AREA_METER_AT, meter)) {
		if (meter_take_at(area + AREA_METER_AT, &t->meter)) {
			unmap_area(t);
			return NULL;
		}
		fork_areas_leave_out(t);
	}
	give_id(t);
	return t;
}

struct thread *thread_alloc(void)
{
	struct thread *t = alloc_again();

	if (!t) {
		t = thread_alloc_with(~0u);
		if (t)
			fork_areas_leave_out(t);
	}
	return t;
}

struct thread *thread_alloc_with(u32 meter)
{
	const u64 size = first_size(), stack = meter == ~0u ? STACK_OTHER : STACK_USUAL;
	u8 *area = region_map_area(size, max_u64(size, AREA_ROOM));
	struct thread *t;

	if (!area)
		return NULL;
	t = (struct thread *)(area + AREA_SELF);
	if (sys_mprotect(area, AREA_STACK_AT, PROT_NONE) ||
	    sys_mprotect(area + AREA_STACK_AT + AREA_STACK_SIZE, AREA_GUARD, PROT_NONE))
		goto fail;
	/* Faults of ours would be counted as the program's. */
	sys_madvise(area + AREA_STACK_TOP - stack, stack, MADV_POPULATE_WRITE);
	t->area = (u64)area;
	t->dbt.reach = (u32)(size - AREA_SELF);
	t->meter = meter;
	if (paths_wanted() && paths_map(t))
		goto fail;
	if (meter == ~0u ? meter_take_at(t->area + AREA_METER_AT, &t->meter)
			 : meter_map(t->area + AREA_METER_AT, meter))
		goto fail;
	give_id(t);
	limits_ours(0, -(s64)area_no_data());
	return t;
fail:
	region_unmap(area, size);
	return NULL;
}

/* What @t has beside its area. */
static void free_mappings(struct thread *t)
{
	thread_forget(t);
	simulate_end(t);
	traces_unmap(t);
	sample_unmap(t);
	for (u32 i = 0; i < ARRAY_SIZE(t->exec_maps); i++)
		if (t->exec_maps[i].at)
			region_unmap(t->exec_maps[i].at, t->exec_maps[i].size);
}

void thread_free(struct thread *t)
{
	u64 *place = spare_place(t);

	free_mappings(t);
	if (place)
		__atomic_store_n(place, t->area, __ATOMIC_RELEASE);
	else
		unmap_area(t);
}

void thread_free_copy(struct thread *t)
{
	free_mappings(t);
	unmap_area(t);
}

void threads_areas_gone(u32 threads, u64 size)
{
	for (u32 i = 0; i < SPARE_AREAS; i++) {
		threads += spare_areas[i] != 0;
		size += spare_areas[i] ? spare_sizes[i] : 0;
		spare_areas[i] = 0;
	}
	if (threads)
		limits_ours(-(s64)size, (s64)(threads * area_no_data()) - (s64)size);
}

void thread_exit_free(struct thread *t, int status)
{
	u64 *place = spare_place(t), size = thread_area_size(t);

	thread_forget(t);
	if (place)
		thread_leave_to(place, t->area, status);
	limits_leave((s64)size, (s64)(size - area_no_data()));
	thread_leave(t->area, size, status);
}

void thread_install(struct thread *t)
{
	stack_t alt = {
		.ss_sp = (void *)(t->area + AREA_ALT_AT),
		.ss_size = AREA_ALT_SIZE,
	};

	arch_install(t);
	CHECK(!raw_call2(__NR_sigaltstack, (long)&alt, 0));
}

void thread_loop(struct thread *t)
{
	for (;;) {
		enum dbt_stop stop;

		if (unlikely(t->debug.changed))
			debug_take_over(t, false);
		sample_look(t);
		simulate_look(t);
		if (windows_is_stale(t))
			windows_begin(t);
		stop = dbt_run(&t->dbt);
		traces_flush(t);
		modeled_look(t);

		switch (stop) {
		case DBT_SYSCALL:
			simulate_before_call(t);
			meter_park(dbt_meter(&t->dbt));
			syscall_run(t);
			meter_unpark(dbt_meter(&t->dbt));
			break;
		case DBT_INTERRUPTED:
			/* Where it was stopped is not in the handler that it is about to enter. */
			sample_look(t);
			signal_deliver(t);
			break;
		default: arch_stop(t, stop);
		}
	}
}
