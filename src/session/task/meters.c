/* What threads have counted. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/modeled.h"
#include "session/session-priv.h"
#include "session/task/thread-trace.h"

#define PAGE 4096

_Static_assert(offsetof(struct meter, exe) < PAGE, "who a meter is of stands in its first page");

enum meter_quantity meters_quantity(enum cpu_what what)
{
	static const enum meter_quantity quantity[CPU_WHAT_MAX] = {
		[CPU_INSTRUCTIONS] = METER_INSTRUCTIONS,
		[CPU_BRANCHES] = METER_BRANCHES,
		[CPU_CONDITIONAL] = METER_CONDITIONAL,
		[CPU_TAKEN] = METER_TAKEN,
		[CPU_CALLS] = METER_CALLS,
		[CPU_RETURNS] = METER_RETURNS,
		[CPU_INDIRECT] = METER_INDIRECT,
	};

	return quantity[what];
}

/*
 * Meter @index is there, or there are as many pages as meters in use: one that is missing is made
 * then when it is looked at, and a guest that says more than is true has made as much itself.
 */
static bool is_there(struct meters *meters, u32 index, u32 used)
{
	struct stat st;

	if (index < meters->there)
		return true;
	if (used == meters->asked || fstat(meters->fd, &st))
		return false;
	meters->asked = used;
	if (st.st_blocks / (PAGE / 512) >= used)
		meters->there = used;
	return index < meters->there;
}

struct meter *meters_next(struct meters *meters, u32 *at)
{
	u32 used = __atomic_load_n(&meters->segment->used, __ATOMIC_RELAXED);

	if (used > meters->slots)
		used = meters->slots;
	if (*at < used && is_there(meters, *at, used))
		return (struct meter *)((u8 *)meters->segment + segment_offset(*at));
	while (*at < used) {
		off_t begin = (off_t)segment_offset(*at);
		off_t data = lseek(meters->fd, begin, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			return NULL;
		/* Their first page has all that is looked for; a kernel may not tell of holes. */
		if (data < begin + PAGE)
			return (struct meter *)((u8 *)meters->segment + begin);
		*at = (u32)(data / METER_SIZE) - 1;
		*at += data % METER_SIZE >= PAGE;
	}
	return NULL;
}

struct meter *guest_thread_meter(const struct guest_thread *th)
{
	if (th->meter >= th->process->s->meters.slots)
		return NULL;
	return (struct meter *)((u8 *)th->process->s->meters.segment + segment_offset(th->meter));
}

/* @m may be NULL. */
static u64 modeled_count(const struct meter *m, u32 counter)
{
	return m ? __atomic_load_n(&m->modeled[counter], __ATOMIC_RELAXED) : 0;
}

/*
 * Where @th counts. Nothing may have been counted for it elsewhere since the session last read:
 * that is so before its first instruction, and at an exec that changes meters.
 */
void guest_thread_set_meter(struct guest_thread *th, u32 meter)
{
	struct meter *old = guest_thread_meter(th), *m;

	if (th->meter == meter || meter >= th->process->s->meters.slots)
		return;
	snapshots_thread_leaves(th);
	hash_del(&th->process->s->guests.by_meter, &th->by_meter);
	th->meter = meter;
	hash_add(&th->process->s->guests.by_meter, &th->by_meter, meter);
	m = guest_thread_meter(th);
	/* A thread that has a task was read already, as 0 if it had no meter. */
	for (u32 q = 0; (old || th->task) && q < METER_QUANTITIES; q++)
		th->counts.before[q] += (old ? meter_sum(old, q) : 0) - meter_sum(m, q);
	for (u32 i = 0; th->counts.modeled && i < MODEL_COUNTERS; i++)
		th->counts.modeled->before[i] += modeled_count(old, i) - modeled_count(m, i);
	if (th->task)
		guest_thread_watch(th);
	snapshots_thread_moved(th);
	trace_moved(th);
}

/* Those that the cpu PMU has events for come first; the others are asked for seldom. */
#define CPU_QUANTITIES 2u
_Static_assert(METER_INSTRUCTIONS < CPU_QUANTITIES && METER_BRANCHES < CPU_QUANTITIES, "they do");

u64 guest_thread_sum(struct guest_thread *th, enum meter_quantity q)
{
	const struct meter *m = guest_thread_meter(th);
	struct session *s = th->process->s;
	struct thread_counts *c = &th->counts;

	if (!m)
		return 0;
	snapshots_invalidate(th);
	if (c->seen_at != s->instant.number || c->seen_meter != th->meter) {
		u64 parked = __atomic_load_n(&m->parked, __ATOMIC_ACQUIRE);

		/* Who is in the same call still has counted nothing since. */
		if (!parked || c->seen_parked != parked || c->seen_meter != th->meter)
			c->have = 0;
		c->seen_at = s->instant.number;
		c->seen_meter = th->meter;
		c->seen_parked = parked;
	}
	if (c->have <= q) {
		u32 n = q < CPU_QUANTITIES ? CPU_QUANTITIES : METER_SPARE;
		u64 sums[METER_QUANTITIES];

		/*
		 * What events count is read together, so that they agree; and once, so that it
		 * stays.
		 */
		meter_sums(m, n, sums);
		for (u32 i = c->have; i < n; i++)
			c->seen[i] = sums[i];
		c->have = n;
		/* Pairs with meter_unpark(). */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (c->seen_parked != __atomic_load_n(&m->parked, __ATOMIC_RELAXED))
			c->seen_parked = 0;
	}
	return c->seen[q];
}

/* All are read at once, so that events agree and stay the same within an instant. */
static u64 read_modeled(struct guest_thread *th, u32 counter)
{
	struct modeled_counts *c = th->counts.modeled;
	struct session *s = th->process->s;

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return 0;
		th->counts.modeled = c;
		/* It was not known yet when parts became wanted, perhaps. */
		if (!th->tid)
			guest_thread_learn_tid(th);
		trace_poke(th);
	}
	if (c->seen_at != s->instant.number || c->seen_meter != th->meter) {
		const struct meter *m = guest_thread_meter(th);

		c->seen_at = s->instant.number;
		c->seen_meter = th->meter;
		for (u32 i = 0; i < MODEL_COUNTERS; i++)
			c->seen[i] = modeled_count(m, i);
	}
	return c->seen[counter] + c->before[counter];
}

void guest_thread_modeled_at(struct guest_thread *th, u32 counter, u64 count)
{
	if (!th->counts.modeled)
		return;
	(void)read_modeled(th, counter);
	th->counts.modeled->seen[counter] = count;
}

u64 meters_read(void *ctx, struct task *task, u32 what)
{
	struct guest_thread *th = task_host(task);
	enum meter_quantity q;

	(void)ctx;
	if (th && what >= CPU_MODELED && what < CPU_MODELED_MAX)
		return read_modeled(th, what - CPU_MODELED);
	if (!th || th->meter >= th->process->s->meters.slots || what >= CPU_WHAT_MAX)
		return 0;
	q = meters_quantity((enum cpu_what)what);
	return guest_thread_sum(th, q) + th->counts.before[q];
}

_Static_assert(MODEL_WANTS == BIT(ARRAY_SIZE(((struct meters *)0)->wanted)) - 1, "a number each");

static u32 wanted_now(const struct meters *meters)
{
	u32 all = 0;

	for (u32 i = 0; i < ARRAY_SIZE(meters->wanted); i++)
		all |= meters->wanted[i] ? BIT(i) : 0;
	return all;
}

/* @th is to look. */
static void wake(struct guest_thread *th)
{
	if (!th->tid)
		guest_thread_learn_tid(th);
	trace_poke(th);
}

/* A process that events are opened for may be all that they are to see. */
static void choose(struct task *task)
{
	struct guest_thread *th = task_host(task);
	struct meter *m = th ? guest_thread_meter(th) : NULL;

	if (m && !__atomic_exchange_n(&m->chosen, 1, __ATOMIC_SEQ_CST))
		wake(th);
}

void meters_want(void *ctx, struct task *task, u32 parts, bool open)
{
	struct session *s = ctx;
	u32 before = wanted_now(&s->meters), now;
	struct guest_process *p;
	struct guest_thread *th;

	if (open && task)
		choose(task);
	for (u32 i = 0; i < ARRAY_SIZE(s->meters.wanted); i++)
		if (parts & BIT(i))
			s->meters.wanted[i] += open ? 1 : (u32)-1;
	now = wanted_now(&s->meters);
	if (now == before)
		return;
	__atomic_store_n(segment_model_parts(s->meters.segment), now, __ATOMIC_SEQ_CST);
	/* Of less they take notice when they look, but for what makes them faster. */
	if (!s->machine.version ||
	    (!(now & ~before) && now & MODEL_PARTS && !(before & ~now & MODEL_WHOLE)))
		return;
	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			wake(th);
}

bool meters_estimated(void *ctx)
{
	struct session *s = ctx;

	return __atomic_load_n(segment_model_lacks(s->meters.segment), __ATOMIC_RELAXED) &
	       MODEL_ESTIMATED;
}
