#include "rt/sample/sample.h"

#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/sample/thread-sampler-priv.h"
#include "rt/signal/signal.h"
#include "rt/syscall/fd.h"
#include "rt/task/meter-page.h"
#include "rt/task/path-pages.h"
#include "rt/task/process.h"
#include "rt/task/shared-mm.h"
#include "rt/task/simulate.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "sys/guest-call.h"
#include "sys/string.h"

/* Accesses by the translation itself of which the session has not been told. */
#define OWN_AT_MOST 64u

/*
 * The threads of the address space that have deadlines, the quantity that paths are taken by, and
 * the kinds of branches that are logged.
 */
static struct {
	struct lock lock;
	u32 threads;
	u64 mask;
} form;

/* With deadlines of windows they are of several quantities perhaps. */
static u64 mask_of_form(void)
{
	u64 mask = paths_mask();

	return mask | (mask & DBT_MASK_ANY_DEADLINES ? form.mask & DBT_MASK_BRANCHES : form.mask);
}

u64 sample_form(void)
{
	return form.mask;
}

u64 sample_first_mask(u64 before)
{
	form.mask = before & (DBT_MASK_ANY_DEADLINES | DBT_MASK_BRANCHES);
	return mask_of_form();
}

static void set_form(struct thread *t, u64 mask)
{
	if (mask == form.mask)
		return;
	form.mask = mask;
	dbt_set_mask(&t->dbt, mask_of_form());
}

void sample_new_mask(struct thread *t)
{
	lock_acquire(&form.lock, t->id, thread_gone);
	dbt_set_mask(&t->dbt, mask_of_form());
	lock_release(&form.lock, t->id);
}

/* @mask with the kinds of branches that events want with their samples, modeled ones too. */
static u64 with_branches(u64 mask, const struct sampler *s)
{
	for (u32 slot = 0; slot < TRACE_EVENTS; slot++)
		if (s->event[slot].period)
			mask = dbt_mask_branches(mask, s->event[slot].branches);
	return mask;
}

/*
 * @deadlines: the part of the mask for the quantity of all of the thread's deadlines, or for
 * METER_INSTRUCTIONS if they are of several; 0: it has none.
 */
static void form_enter(struct thread *t, u64 deadlines)
{
	const struct sampler *s = sampler_of(t);
	u64 mask = deadlines, others, was;

	lock_acquire(&form.lock, t->id, thread_gone);
	/* Without others it is what was expected. */
	others = form.threads ? form.mask : 0;
	form.threads += !t->sampling.on;
	t->sampling.on = true;
	was = others & ~DBT_MASK_BRANCHES;
	if (was && was != mask)
		mask = mask ? DBT_MASK_DEADLINES(METER_INSTRUCTIONS) : was;
	mask |= others & DBT_MASK_BRANCHES;
	set_form(t, with_branches(mask, s));
	lock_release(&form.lock, t->id);
}

static void form_leave(struct thread *t)
{
	/* The mask may be that of the program before. */
	if (!t->sampling.on && !form.mask)
		return;
	lock_acquire(&form.lock, t->id, thread_gone);
	form.threads -= t->sampling.on;
	t->sampling.on = false;
	if (!form.threads)
		set_form(t, 0);
	lock_release(&form.lock, t->id);
}

void sample_begin(struct thread *t)
{
	if (!sample_asked(t))
		form_leave(t);
}

static bool make_sampler(struct thread *t)
{
	u8 *at;

	if (t->sampling.own)
		return true;
	if (t->meter >= SEGMENT_SLOTS)
		return false;
	at = region_map(MAPPED_SIZE);
	if (!at)
		return false;
	if (!perf_trace(t, at + SAMPLER_SIZE)) {
		region_unmap(at, MAPPED_SIZE);
		return false;
	}
	limits_ours(0, -(s64)TRACE_SIZE);
	sys_madvise(at, MAPPED_SIZE, MADV_DONTDUMP);
	t->sampling.own = (struct sampler *)at;
	t->sampling.traps = __atomic_load_n(&trace_of(t)->traps, __ATOMIC_ACQUIRE);
	t->sampling.asked = &trace_of(t)->seq;
	trace_of(t)->own[0][0] = REGION_START;
	trace_of(t)->own[0][1] = REGION_END;
	trace_of(t)->own[1][0] = region_code_start;
	trace_of(t)->own[1][1] = region_code_end;
	trace_of(t)->copy[0] = (u64)guest_copy_insn;
	trace_of(t)->copy[1] = (u64)guest_copy_end + 1;
	return true;
}

/*
 * The next deadline of each quantity. Should the session change them the thread takes notice, since
 * it stops now and then for nothing.
 */
static void set_deadlines(struct thread *t, const u64 *sums)
{
	const struct sampler *s = t->sampling.own ? sampler_of(t) : NULL;
	u64 at[METER_QUANTITIES], edge = windows_next(t);

	for (u32 q = 0; q < METER_QUANTITIES; q++)
		at[q] = DBT_NO_DEADLINE;
	for (u32 i = 0; s && i < s->nr; i++) {
		const struct trace *trace = trace_of(t);
		u32 slot = s->order[i], q = s->event[slot].quantity;
		s64 left = (s64)(trace->armed[slot].next - sums[q]);

		if (at[q] == DBT_NO_DEADLINE || left < (s64)(at[q] - sums[q]))
			at[q] = sums[q] + (u64)(left < TRACE_NOTICE ? left : TRACE_NOTICE);
	}
	if (edge != DBT_NO_DEADLINE &&
	    (at[METER_INSTRUCTIONS] == DBT_NO_DEADLINE || (s64)(edge - at[METER_INSTRUCTIONS]) < 0))
		at[METER_INSTRUCTIONS] = edge;
	dbt_deadlines(&t->dbt, at);
}

void sample_set_deadlines(struct thread *t)
{
	u64 sums[METER_QUANTITIES];

	meter_sums(dbt_meter(&t->dbt), METER_QUANTITIES, sums);
	set_deadlines(t, sums);
}

/* Copies the table while nobody writes to it; false: the session is writing, or gone. */
static bool copy_table(struct thread *t, u32 *seq)
{
	const struct trace *trace = trace_of(t);

	for (u32 tries = 0; tries < 1000; tries++) {
		*seq = __atomic_load_n(&trace->seq, __ATOMIC_ACQUIRE);
		if (!(*seq & 1)) {
			memcpy(sampler_of(t)->event, trace_of(t)->event,
			       sizeof(sampler_of(t)->event));
			sampler_of(t)->calls = trace_of(t)->calls;
			sampler_of(t)->watch = trace_of(t)->watch;
			sampler_of(t)->fired = trace_of(t)->fired;
			memcpy(sampler_of(t)->place, trace_of(t)->place,
			       sizeof(sampler_of(t)->place));
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			if (*seq == __atomic_load_n(&trace->seq, __ATOMIC_RELAXED))
				return true;
		}
		sys_sched_yield();
	}
	return false;
}

static void use_stop(struct trace_event *stop, const struct trace_event *e)
{
	stop->period = 1;
	stop->wants |= e->wants;
	stop->stack_size = e->stack_size > stop->stack_size ? e->stack_size : stop->stack_size;
	stop->chain_max = e->chain_max > stop->chain_max ? e->chain_max : stop->chain_max;
}

static void use_stop_of(struct trace_event *stop, const struct trace_watch *w)
{
	if (w->on)
		use_stop(stop, &(struct trace_event){.wants = w->wants,
						     .stack_size = w->stack_size,
						     .chain_max = w->chain_max});
}

/* Sorts the events in use by their ids, and begins those that are new. */
static void use_table(struct sampler *s, struct trace *trace)
{
	s->nr = 0;
	memset(&s->stop, 0, sizeof(s->stop));
	use_stop_of(&s->stop, &s->watch);
	use_stop_of(&s->stop, &s->fired);
	for (u32 slot = 0; slot < TRACE_EVENTS; slot++) {
		const struct trace_event *e = &s->event[slot];
		u32 i;

		if (e->period && e->quantity == TRACE_BY_KERNEL)
			use_stop(&s->stop, e);
		if (!e->period || e->quantity >= METER_SPARE)
			continue;
		for (i = s->nr++; i && s->event[s->order[i - 1]].id > e->id; i--)
			s->order[i] = s->order[i - 1];
		s->order[i] = slot;
		if (trace->armed[slot].generation == e->generation)
			continue;
		trace->armed[slot].next = e->next;
		trace->armed[slot].generation = e->generation;
	}
}

static bool any_call(const struct trace_calls *calls)
{
	u64 any = 0;

	for (u32 i = 0; i < TRACE_CALLS / 64; i++)
		any |= calls->enter[i] | calls->exit[i];
	return any;
}

/* By the session: in memory that only it can write to besides us. */
static bool is_asked(struct thread *t, u32 *asked)
{
	const struct perf *p = t->proc->perf;

	if (t->sampling.own)
		return true;
	if (!p || !wire_connect(t))
		return false;
	*asked = sample_asked(t);
	return *asked && make_sampler(t);
}

void sample_take_over(struct thread *t)
{
	struct meter *m = dbt_meter(&t->dbt);
	struct sampler *s;
	u64 sums[METER_QUANTITIES];
	u32 seq = sample_asked(t), q;

	modeled_leave(t);
	if (!is_asked(t, &seq) || !copy_table(t, &seq)) {
		t->sampling.seq = seq;
		return;
	}
	s = sampler_of(t);
	use_table(s, trace_of(t));
	modeled_take_over(t);
	/* Faults of ours would be samples. */
	if (s->stop.period)
		sys_madvise(s, MAPPED_SIZE, MADV_POPULATE_WRITE);
	for (u32 slot = 0; slot < TRACE_EVENTS; slot++)
		cpu_timer_set(&s->timers[slot], slot,
			      s->event[slot].wants & TRACE_WANT_TIMER ? s->event[slot].period : 0);
	t->sampling.seq = seq;
	q = s->nr ? s->event[s->order[0]].quantity : METER_INSTRUCTIONS;
	for (u32 i = 1; i < s->nr; i++)
		if (s->event[s->order[i]].quantity != q)
			q = METER_INSTRUCTIONS;
	meter_sums(m, METER_QUANTITIES, sums);
	set_deadlines(t, sums);
	if (s->nr || with_branches(0, s))
		form_enter(t, s->nr ? DBT_MASK_DEADLINES(q) : 0);
	else
		form_leave(t);
	t->sampling.calls = any_call(&s->calls);
	t->sampling.watched = s->watch.on;
	places_take_over(t, false);
	__atomic_store_n(&trace_of(t)->taken, seq, __ATOMIC_RELEASE);
}

/* As the kernel walks user frames: as long as they can be read. */
static u32 take_chain(const struct dbt_regs *r, u64 *chain, u32 max)
{
	u64 frame[2], fp = regs_frame(r);
	u32 n = 0;

	while (n < max && !guest_read(frame, fp, sizeof(frame))) {
		chain[n++] = frame[1];
		fp = frame[0];
	}
	return n;
}

/* Up to the first byte that cannot be read. */
static u32 take_stack(const struct dbt_regs *r, u8 *to, u32 size)
{
	u64 from = regs_sp(r);
	u32 done = 0;

	while (done < size) {
		u32 n = (u32)min_u64(size - done, 4096 - ((from + done) & 4095));

		if (guest_read(to + done, from + done, n))
			break;
		done += n;
	}
	return done;
}

void sample_make(struct thread *t, struct trace_sample *sample, const struct trace_event *e,
		 const u64 *sums)
{
	const struct dbt_regs *r = &t->dbt.regs;
	u8 *p = (u8 *)(sample + 1);
	u32 cpu = 0;

	memset(sample, 0, sizeof(*sample));
	sample->entry.time = sys_clock(CLOCK_MONOTONIC);
	sample->cpu_time = sys_clock(CLOCK_THREAD_CPUTIME_ID);
	raw_call3(__NR_getcpu, (long)&cpu, 0, 0);
	sample->cpu = cpu;
	memcpy(sample->sums, sums, sizeof(sample->sums));
	sample->pc = sample->ip = regs_pc(r);
	regs_to_perf(r, sample->regs);
	if (e->wants & TRACE_WANT_SUMS && simulate_counts(t, (u64 *)p)) {
		sample->nr_modeled = METER_MODELED;
		p += METER_MODELED * sizeof(u64);
	}
	if (e->wants & TRACE_WANT_CHAIN) {
		sample->nr_chain = take_chain(r, (u64 *)p, (u32)min_u64(e->chain_max, TRACE_CHAIN));
		p += sample->nr_chain * 8ull;
	}
	if (e->wants & TRACE_WANT_BRANCHES) {
		sample->nr_branches = dbt_branches(&t->dbt, e->branches, (struct trace_branch *)p,
						   TRACE_LBR);
		p += sample->nr_branches * sizeof(struct trace_branch);
	}
	if (e->wants & TRACE_WANT_STACK) {
		u32 size = (u32)ALIGN_DOWN(min_u64(e->stack_size, TRACE_STACK), 8);

		sample->stack_used = take_stack(r, p, size);
		sample->stack_size = (u32)ALIGN_UP(sample->stack_used, 8u);
		memset(p + sample->stack_used, 0, sample->stack_size - sample->stack_used);
		p += sample->stack_size;
	}
	sample->entry.size = (u32)(p - (u8 *)sample);
}

static struct trace_sample *make_sample(struct thread *t, const struct trace_event *e,
					const u64 *sums)
{
	struct trace_sample *sample = (struct trace_sample *)sampler_of(t)->entry;

	sample_make(t, sample, e, sums);
	return sample;
}

void sample_tell(struct thread *t, const struct trace_entry *entry, bool answer)
{
	struct trace *trace = trace_of(t);
	siginfo_t info;
	u32 traps;

	trace_put(t, trace, entry, answer);
	traps = __atomic_load_n(&trace->traps, __ATOMIC_ACQUIRE);
	if (traps == t->sampling.traps)
		return;
	t->sampling.traps = traps;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_code = TRAP_PERF;
	info.si_addr = (void *)trace->trap.addr;
	info.si_perf_data = trace->trap.data;
	info.si_perf_type = trace->trap.type;
	signal_perf(t, &info);
}

static void put_sample(struct thread *t, const struct trace_event *e, const u64 *sums, u64 late)
{
	struct trace_sample *sample = make_sample(t, e, sums);

	sample->entry.kind = TRACE_SAMPLE;
	sample->id = e->id;
	sample->periods = late / e->period + 1;
	if (late)
		sample->entry.flags |= TRACE_SAMPLE_LATE;
	else
		sample->ip = dbt_deadline_ip(&t->dbt);
	sample_tell(t, &sample->entry, e->wants & TRACE_WANT_ANSWER);
}

void sample_timer_stopped(struct thread *t, u32 slot, u32 periods)
{
	if (!t->sampling.own)
		return;
	__atomic_fetch_add(&sampler_of(t)->over[slot], periods, __ATOMIC_RELAXED);
	sample_stopped(t);
}

static void put_own(struct thread *t, u64 until)
{
	const struct trace_entry entry = {.size = sizeof(entry), .kind = TRACE_OWN, .time = until};

	trace_put(t, trace_of(t), &entry, false);
}

bool sample_trapped(struct thread *t, const void *uc)
{
	if (likely(!t->sampling.watched))
		return false;
	t->sampling.returned |= dbt_is_in_return(uc);
	if (dbt_is_in_check(uc)) {
		t->sampling.own_until = sys_clock(CLOCK_MONOTONIC);
		/*
		 * Who left the block each time would be there again. The kernel has room for some.
		 */
		if (++t->sampling.own_times % OWN_AT_MOST)
			return !t->dbt.stepping;
	}
	sample_stopped(t);
	return false;
}

void sample_stop_own(struct thread *t)
{
	__atomic_store_n(&t->sampling.stopped, false, __ATOMIC_RELAXED);
	if (!t->sampling.own)
		return;
	t->sampling.telling = true;
	put_own(t, sys_clock(CLOCK_MONOTONIC));
	t->sampling.telling = false;
}

/* What time it was that each timer ran out is not known better than now. */
static void tell_timers(struct thread *t, struct trace_sample *sample, bool answer)
{
	struct sampler *s = sampler_of(t);

	for (u32 slot = 0; slot < TRACE_EVENTS; slot++) {
		const struct trace_event *e = &s->event[slot];
		u32 over = __atomic_exchange_n(&s->over[slot], 0, __ATOMIC_RELAXED);

		if (!over || !e->period || !(e->wants & TRACE_WANT_TIMER))
			continue;
		sample->id = e->id;
		sample->periods = over;
		sample_tell(t, &sample->entry, answer);
	}
}

void sample_stop(struct thread *t)
{
	const struct trace_event *e = t->sampling.own ? &sampler_of(t)->stop : NULL;
	struct trace_sample *sample;
	u64 sums[METER_QUANTITIES] = {0};
	bool returned = t->sampling.returned;

	t->sampling.returned = false;
	/* Before the look at the clock: what comes later sets it again. */
	__atomic_store_n(&t->sampling.stopped, false, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	modeled_look(t);
	if (!e || !e->period)
		return;
	t->sampling.telling = true;
	if (t->sampling.own_until)
		put_own(t, t->sampling.own_until);
	t->sampling.own_until = 0;
	if (e->wants & TRACE_WANT_SUMS)
		meter_sums(dbt_meter(&t->dbt), METER_QUANTITIES, sums);
	sample = make_sample(t, e, sums);
	sample->entry.kind = TRACE_STOP;
	sample->entry.flags = returned ? TRACE_STOP_RETURNED : 0;
	if (e->wants & TRACE_WANT_TIMER)
		tell_timers(t, sample, e->wants & TRACE_WANT_ANSWER);
	else
		sample_tell(t, &sample->entry, e->wants & TRACE_WANT_ANSWER);
	t->sampling.telling = false;
	sample_own_end(t);
}

void sample_wait_room(struct thread *t)
{
	if (t->sampling.own)
		trace_wait_room(t, trace_of(t));
}

/* A frame pointer may point anywhere: to read there is a fault, which would end the process. */
void sample_stop_in_call(struct thread *t)
{
	u64 faults = SIG(SIGSEGV) | SIG(SIGBUS), old;

	sys_rt_sigprocmask(SIG_UNBLOCK, &faults, &old);
	sample_stop(t);
	sys_rt_sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Another thread may be sampled, whose number this one is about to take. */
static bool is_sampled(struct thread *t)
{
	return t->sampling.own || threads_watch(t);
}

void sample_exec_prepare(struct thread *t, const char *name, const char *interp)
{
	t->sampling.told_exec = is_sampled(t);
	if (t->sampling.told_exec)
		perf_stops(t, false, name, interp);
}

void sample_exec_failed(struct thread *t)
{
	if (t->sampling.told_exec)
		perf_stops(t, true, NULL, NULL);
	t->sampling.told_exec = false;
}

/* Those that somebody wants. A look at the meter costs as much as there are classes of paths. */
static void read_sums(struct thread *t, u64 *sums)
{
	const struct sampler *s = sampler_of(t);
	u32 q = METER_QUANTITIES;

	for (u32 i = 0; i < s->nr; i++) {
		const struct trace_event *e = &s->event[s->order[i]];

		if (e->wants & TRACE_WANT_SUMS || (i && e->quantity != q)) {
			meter_sums(dbt_meter(&t->dbt), METER_QUANTITIES, sums);
			return;
		}
		q = e->quantity;
	}
	memset(sums, 0, METER_QUANTITIES * sizeof(*sums));
	if (s->nr)
		sums[q] = dbt_deadline_sum(&t->dbt, q);
}

void sample_deadline(struct dbt_thread *dbt)
{
	struct thread *t = (struct thread *)dbt;
	u64 sums[METER_QUANTITIES] = {0};
	struct sampler *s;
	struct trace *trace;

	windows_reached(t);
	if (!t->sampling.own) {
		set_deadlines(t, sums);
		return;
	}
	s = sampler_of(t);
	trace = trace_of(t);
	/* What the model makes of it belongs to the sample, perhaps. */
	if (t->modeled.on)
		traces_flush(t);
	read_sums(t, sums);
	for (u32 i = 0; i < s->nr; i++) {
		const struct trace_event *e = &s->event[s->order[i]];
		struct trace_armed *a = &trace->armed[s->order[i]];
		u64 late = sums[e->quantity] - a->next;

		if ((s64)late < 0)
			continue;
		a->next += (late / e->period + 1) * e->period;
		put_sample(t, e, sums, late);
	}
	trace_wait_room(t, trace);
	if (sample_is_stale(t))
		sample_take_over(t);
	else
		set_deadlines(t, sums);
}

void sample_forked(struct thread *t)
{
	places_forked(t);
	sample_unmap(t);
	memset(&t->sampling, 0, sizeof(t->sampling));
	t->dbt.trace_room = 0;
	lock_reset(&form.lock);
	form.threads = 0;
	if (!sample_asked(t))
		set_form(t, 0);
}

void sample_unmap(struct thread *t)
{
	if (t->sampling.own) {
		t->sampling.watch = sample_watch(t);
		limits_leave(0, -(s64)TRACE_SIZE);
		region_unmap(t->sampling.own, MAPPED_SIZE);
	}
	t->sampling.own = NULL;
	t->sampling.asked = NULL;
	/* What it watches was there, and a stop may still be on its way. */
	t->modeled.watching = NULL;
}

u32 sample_watch(const struct thread *t)
{
	return t->sampling.own ? __atomic_load_n(&trace_of(t)->to_tell, __ATOMIC_RELAXED)
			       : t->sampling.watch;
}

void sample_flush(struct thread *t)
{
	if (t->sampling.own)
		trace_flush(t, trace_of(t));
}

void sample_end(struct thread *t)
{
	modeled_look(t);
	sample_flush(t);
	form_leave(t);
	for (u32 slot = 0; t->sampling.own && slot < TRACE_EVENTS; slot++)
		cpu_timer_set(&sampler_of(t)->timers[slot], slot, 0);
	places_take_over(t, true);
	/* Others look at it by the list, and a fork must not copy half of this. */
	threads_lock(t);
	sample_unmap(t);
	threads_unlock(t);
}
