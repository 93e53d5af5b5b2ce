#include "rt/task/fork-areas.h"

#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/task/limits.h"
#include "rt/task/process.h"
#include "rt/task/shared-mm.h"

static struct thread *offered; /* but for who forks; by offered_next */
static u32 left_out;           /* threads whose areas are not in the child */
static u64 left_out_size;      /* and of these areas */

static bool advise(const struct thread *t, int advice)
{
	return !sys_madvise((void *)t->area, thread_area_size(t), advice);
}

void fork_areas_leave_out(struct thread *t)
{
	t->left_out = advise(t, MADV_DONTFORK);
}

static void offer(struct thread *t)
{
	if (t->left_out)
		CHECK(advise(t, MADV_DOFORK));
}

/* What @o has beside its area is @t's, or there is nothing. */
static bool is_bare(const struct thread *o, const struct thread *t)
{
	return o->proc == t->proc && o->sighand == t->sighand && !o->filters && !o->sampling.own &&
	       !o->modeled.feed && !o->modeled.on && !o->modeled.tally && !o->dbt.trace_start &&
	       !o->dbt.slots_start && !o->stream && !o->exec_maps[0].at && !o->exec_maps[1].at;
}

void fork_areas_offer(struct thread *t)
{
	offered = NULL;
	left_out = 0;
	left_out_size = 0;
	offer(t);
	for (struct thread *o = *threads_list(); o; o = o->all_next) {
		if (o == t)
			continue;
		if (o->left_out && is_bare(o, t)) {
			left_out++;
			left_out_size += thread_area_size(o);
			continue;
		}
		offer(o);
		o->offered_next = offered;
		offered = o;
	}
}

void fork_areas_keep(struct thread *t)
{
	if (t->left_out)
		fork_areas_leave_out(t);
	for (struct thread *o = offered; o; o = o->offered_next)
		if (o->left_out)
			fork_areas_leave_out(o);
}

void fork_areas_free(struct thread *t)
{
	t->left_out = false;
	/* Also a parent that waits in vfork exists in the real parent only. */
	for (struct thread *o = offered, *next; o; o = next) {
		next = o->offered_next;
		if (o->sighand != t->sighand)
			sighand_put(o->sighand);
		if (o->proc != t->proc)
			proc_put(o->proc);
		seccomp_put(o->filters);
		thread_free_copy(o);
	}
	threads_areas_gone(left_out, left_out_size);
	if (left_out)
		threads_forget_others(t);
}

void fork_areas_offer_all(struct thread *first)
{
	for (struct thread *t = first; t; t = t->all_next)
		offer(t);
}
