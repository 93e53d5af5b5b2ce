/* The areas and the loop of threads. What clone(2) does with them is in process.c. */
#include "rt/task/thread.h"

#include "rt/arch.h"
#include "rt/mm/region.h"
#include "rt/sample/modeled-samples.h"
#include "rt/sample/sample.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "rt/task/limits.h"
#include "rt/task/meter-page.h"
#include "rt/task/simulate.h"
#include "rt/task/path-pages.h"
#include "rt/task/shared-mm.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "sys/guest-call.h"

#define STACK_USUAL 0x8000 /* what calls into the runtime need at most, nearly always */

static u32 last_id;

u64 thread_area_size(void)
{
	return paths_wanted() ? AREA_PATHS_AT + ALIGN_UP(DBT_PATHS_SIZE, 0x10000ul) : AREA_SIZE;
}

/* What of it is not private and writable. */
static u64 area_no_data(void)
{
	return 2 * AREA_GUARD + METER_SIZE + (thread_area_size() - AREA_SIZE);
}

struct thread *thread_alloc(void)
{
	return thread_alloc_with(~0u);
}

struct thread *thread_alloc_with(u32 meter)
{
	u8 *area = region_map(thread_area_size());
	struct thread *t;

	if (!area)
		return NULL;
	t = (struct thread *)(area + AREA_SELF);
	if (sys_mprotect(area, AREA_STACK_AT, PROT_NONE) ||
	    sys_mprotect(area + AREA_STACK_AT + AREA_STACK_SIZE, AREA_GUARD, PROT_NONE))
		goto fail;
	/* Faults of ours would be counted as the program's. */
	sys_madvise(area + AREA_STACK_AT + AREA_STACK_SIZE - STACK_USUAL, STACK_USUAL,
		    MADV_POPULATE_WRITE);
	t->area = (u64)area;
	t->meter = meter;
	if (paths_wanted() && paths_map(t))
		goto fail;
	if (meter == ~0u ? meter_take_at(t->area + AREA_METER_AT, &t->meter)
			 : meter_map(t->area + AREA_METER_AT, meter))
		goto fail;
	do
		t->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED) & ~LOCK_WAITED;
	while (!t->id);
	limits_ours(0, -(s64)area_no_data());
	return t;
fail:
	region_unmap(area, thread_area_size());
	return NULL;
}

void thread_free(struct thread *t)
{
	thread_forget(t);
	simulate_end(t);
	traces_unmap(t);
	sample_unmap(t);
	for (u32 i = 0; i < ARRAY_SIZE(t->exec_maps); i++)
		if (t->exec_maps[i].at)
			region_unmap(t->exec_maps[i].at, t->exec_maps[i].size);
	limits_leave(0, -(s64)area_no_data());
	region_unmap((void *)t->area, thread_area_size());
}

void thread_exit_free(struct thread *t, int status)
{
	thread_forget(t);
	limits_leave(thread_area_size(), thread_area_size() - area_no_data());
	thread_leave(t->area, thread_area_size(), status);
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
