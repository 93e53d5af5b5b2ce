/* What guests' threads tell of samples, stops and occurrences. */
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu/source.h"
#include "session/task/modeled-sample.h"
#include "session/task/thread-trace-priv.h"
#include "session/task/trace-probes.h"

#define NSEC_PER_SEC 1000000000ull

/* An entry, copied out of the guest's memory: nobody changes it any more. */
static u8 entry_bytes[TRACE_ENTRY_MAX] __attribute__((aligned(8)));

static void copy_out(const struct thread_trace *tt, u64 at, void *to, u64 len)
{
	const u8 *ring = (const u8 *)tt->trace + TRACE_HEAD;
	u64 offset = at % TRACE_RING, first = min_u64(len, TRACE_RING - offset);

	memcpy(to, ring + offset, first);
	memcpy((u8 *)to + first, ring, len - first);
}

/* What stands behind the sample, if it is as long as it says. */
static bool parts(const struct trace_sample *s, struct sample_facts *facts)
{
	static struct perf_branch_entry branches[TRACE_LBR];
	static u64 chain[1 + TRACE_CHAIN];
	const u8 *p = (const u8 *)(s + 1);
	const struct trace_branch *from;
	u64 size;

	if (s->nr_modeled > METER_MODELED || s->nr_chain > TRACE_CHAIN ||
	    s->nr_branches > TRACE_LBR || s->stack_size > TRACE_STACK ||
	    s->stack_used > s->stack_size)
		return false;
	size = sizeof(*s) + (s->nr_modeled + s->nr_chain) * sizeof(u64) +
	       s->nr_branches * sizeof(*from) + s->stack_size;
	if (size != s->entry.size)
		return false;
	p += s->nr_modeled * sizeof(u64);
	chain[0] = s->pc;
	memcpy(chain + 1, p, s->nr_chain * sizeof(u64));
	facts->sample.callchain = (struct ap_callchain){1 + s->nr_chain, chain};
	p += s->nr_chain * sizeof(u64);
	from = (const struct trace_branch *)p;
	for (u32 i = 0; i < s->nr_branches; i++)
		branches[i] = (struct perf_branch_entry){
			.from = from[i].from, .to = from[i].to, .type = branch_type(from[i].type)};
	facts->sample.branch_stack = (struct ap_branch_stack){
		.nr = s->nr_branches, .hw_idx = ~0ull, .entries = branches};
	p += s->nr_branches * sizeof(*from);
	facts->sample.stack_user = (struct ap_stack){.len = s->stack_used, .bytes = p};
	facts->sample.ip = s->pc;
	facts->sample.regs_user = facts->sample.regs_intr =
		(struct ap_regs){PERF_SAMPLE_REGS_ABI_64, BIT(TRACE_REGS) - 1, s->regs};
	facts->has = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |
		     PERF_SAMPLE_STACK_USER;
	return true;
}

/*
 * A thread may have been switched off the CPU before it could tell, while others were sampled and
 * their records read. Nothing of its program has run meanwhile, so it might have been there later
 * as well: it was when the session looked before, and readers get the records in order.
 */
static u64 time_of(const struct thread_trace *tt, u64 told)
{
	return told > tt->looked_before ? told : tt->looked_before;
}

/* The counts and the clock of the thread, and the time, are those of the sample from here on. */
static void set_moment(struct guest_thread *th, const struct trace_sample *s, u32 have)
{
	struct session *session = th->process->s;
	struct instant *instant = &session->instant;
	u64 now = session_now();

	instant->number++;
	instant->wall_number = instant->number;
	instant->wall_time = min_u64(time_of(th->trace, s->entry.time), now);
	if (session->in_order && instant->wall_time < session->told_at)
		instant->wall_time = session->told_at;
	session->told_at = instant->wall_time;
	snapshots_invalidate(th);
	for (u32 q = 0; q < METER_SPARE; q++)
		th->counts.seen[q] = s->sums[q];
	th->counts.seen_at = instant->number;
	th->counts.seen_meter = th->meter;
	th->counts.have = have;
	for (u32 i = 0; i < s->nr_modeled && i < MODEL_COUNTERS; i++)
		guest_thread_modeled_at(th, i, ((const u64 *)(s + 1))[i]);
	clock_told(th, s->cpu_time);
	th->clock.read_at = instant->number;
}

static void take_sample(struct thread_trace *tt, const struct trace_sample *s)
{
	struct guest_thread *th = tt->thread;
	struct sample_facts facts = {.task = th->task, .cpumode = PERF_RECORD_MISC_USER};
	const struct pe_attr *attr;
	struct deadline *d = NULL;

	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event && (u32)tt->deadlines[i].event->id == s->id)
			d = &tt->deadlines[i];
	/* The event is off by now, or was never there; or the kernel counts it, not the guest. */
	if (!d || d->quantity == TRACE_BY_KERNEL || !th->task || !parts(s, &facts))
		return;
	attr = event_attr(d->event);
	set_moment(th, s,
		   deadline_wants(d) & TRACE_WANT_SUMS ? METER_SPARE : METER_INSTRUCTIONS + 1);
	facts.exact_ip = attr->precise_ip >= 2;
	facts.periods = s->periods;
	facts.has |= PERF_SAMPLE_BRANCH_STACK;
	facts.sample.ip = facts.exact_ip ? s->ip : s->pc;
	if (d->quantity >= TRACE_MODELED)
		modeled_sample(th, d->quantity - TRACE_MODELED, s, &facts);
	/* Nothing is lost for being often: the thread waits while its ring is full. */
	(void)!source_period_reached(d->event, &facts, false);
	core_settle(th->process->s->core);
}

/*
 * Whom the kernel's note is for. Of events on one CPU each the task's is the one of that CPU, as
 * the session knows it, though another may have brought it here.
 */
static struct event *noted(struct thread_trace *tt, u64 id)
{
	struct event *event = NULL;

	for (u32 i = 0; i < TRACE_EVENTS; i++) {
		const struct deadline *d = &tt->deadlines[i];

		if (d->event && d->fd >= 0 && d->kernel_id == id)
			event = d->event;
	}
	if (!event || event->state == EVENT_ACTIVE)
		return event;
	for (u32 i = 0; i < TRACE_EVENTS; i++) {
		struct event *other = tt->deadlines[i].event;

		if (other && tt->deadlines[i].quantity == TRACE_BY_KERNEL &&
		    other->state == EVENT_ACTIVE && event->cpu >= 0 && other->cpu >= 0 &&
		    other->owner == event->owner && other->attr.config == event->attr.config &&
		    other->attr.sample_period == event->attr.sample_period)
			return other;
	}
	return NULL;
}

static bool is_within(const u64 *range, u64 addr)
{
	return addr >= __atomic_load_n(&range[0], __ATOMIC_RELAXED) &&
	       addr < __atomic_load_n(&range[1], __ATOMIC_RELAXED);
}

bool trace_is_runtime(const struct thread_trace *tt, u64 pc)
{
	return tt->trace && is_within(tt->trace->own[0], pc) && !is_within(tt->trace->own[1], pc);
}

static bool is_own(const struct thread_trace *tt, u64 addr)
{
	for (u32 i = 0; i < ARRAY_SIZE(tt->trace->own); i++)
		if (is_within(tt->trace->own[i], addr))
			return true;
	return false;
}

static void take_note(struct thread_trace *tt, const struct kernel_note *note,
		      const struct trace_sample *s, struct sample_facts *facts)
{
	struct data_watch *watch = data_watch_find(tt, note->id);
	struct event *event = watch ? NULL : noted(tt, note->id);
	bool own;

	if (watch && note->type == PERF_RECORD_SAMPLE) {
		tt->thread->process->s->instant.wall_time = note->time;
		data_watch_noted(tt, watch, note, s, facts);
	}
	if (!event)
		return;
	own = note->addr && is_own(tt, note->addr);
	/* It is counted; but where each is told, this one is not the program's. */
	if (own && !event_attr(event)->freq && event_attr(event)->sample_period == 1)
		return;
	if (note->time)
		tt->thread->process->s->instant.wall_time = time_of(tt, note->time);
	facts->sample.addr = own ? 0 : note->addr;
	facts->sample.phys_addr = own ? 0 : note->phys_addr;
	facts->sample.data_page_size = own ? 0 : note->page_size;
	facts->sample.period = note->period ? note->period : event_attr(event)->sample_period;
	if (note->type == PERF_RECORD_SAMPLE)
		source_stopped(event, facts);
	else if (note->type == PERF_RECORD_LOST)
		event_lost_samples(event, note->lost);
	else
		event_throttled(event, note->type == PERF_RECORD_THROTTLE);
}

/* All that the kernel has noted before happened where the thread is now. */
static void take_stop(struct thread_trace *tt, const struct trace_sample *s)
{
	struct guest_thread *th = tt->thread;
	struct sample_facts facts = {.task = th->task, .cpumode = PERF_RECORD_MISC_USER};
	struct kernel_note note;

	if (!th->task || !parts(s, &facts))
		return;
	facts.has |= PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_PHYS_ADDR |
		     PERF_SAMPLE_DATA_PAGE_SIZE;
	set_moment(th, s, tt->sums_at_stops ? METER_SPARE : 0);
	tt->stop++;
	guest_thread_told_cpu(th, s->cpu);
	while (kernel_stops_next(&tt->stops, s->entry.time, &note))
		take_note(tt, &note, s, &facts);
	for (u32 i = 0; s->id && i < TRACE_EVENTS; i++) {
		const struct deadline *d = &tt->deadlines[i];

		if (!d->event || d->quantity != TRACE_BY_KERNEL || (u32)d->event->id != s->id)
			continue;
		/* The kernel's tick is longer. */
		facts.sample.period = d->period * min_u64(s->periods, NSEC_PER_SEC);
		facts.has &= ~(u64)(PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR |
				    PERF_SAMPLE_DATA_PAGE_SIZE);
		source_stopped(d->event, &facts);
	}
	core_settle(th->process->s->core);
	if (tt->has_fired)
		trace_send(tt, &tt->fired);
	tt->has_fired = false;
}

/* The thread was there on the runtime's account: its program has nothing to do with it. */
static void take_own(struct thread_trace *tt, const struct trace_entry *entry)
{
	struct kernel_note note;

	while (kernel_stops_next(&tt->stops, entry->time, &note))
		;
	tt->has_fired = false;
}

bool trace_sample_parts(const struct trace_sample *s, struct sample_facts *facts)
{
	return parts(s, facts);
}

bool trace_sample_facts(struct guest_thread *th, const struct trace_sample *s,
			struct sample_facts *facts)
{
	if (!parts(s, facts))
		return false;
	set_moment(th, s, METER_SPARE);
	return true;
}

/* The next entry, whole and checked; its length, or 0: the guest writes something else there. */
static u32 next_entry(const struct thread_trace *tt, u64 available)
{
	struct trace_entry *entry = (struct trace_entry *)entry_bytes;
	u32 size;

	if (available < sizeof(*entry))
		return 0;
	copy_out(tt, tt->tail, entry, sizeof(*entry));
	size = entry->size;
	if (size < sizeof(*entry) || size % 8 || size > available || size > sizeof(entry_bytes))
		return 0;
	copy_out(tt, tt->tail, entry, size);
	entry->size = size;
	return size;
}

static void wake_thread(struct trace *trace)
{
	__atomic_fetch_add(&trace->drained, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&trace->waiting, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &trace->drained, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Whether there is something new, which then ends at tt->head. */
static bool look(struct thread_trace *tt)
{
	struct trace *trace = tt->trace;

	if (!trace)
		return false;
	tt->looked_before = tt->looked;
	tt->looked = session_now();
	/* Before the look at head, mate: ring_bell() in rt/sample/trace-ring.c. */
	__atomic_store_n(&trace->bell, 0, __ATOMIC_SEQ_CST);
	tt->head = __atomic_load_n(&trace->head, __ATOMIC_ACQUIRE);
	if (tt->head == tt->tail)
		return false;
	instant_check(tt->thread->process->s);
	tt->trapped = false;
	if (tt->head - tt->tail > TRACE_RING)
		tt->tail = tt->head;
	return true;
}

static void take_next(struct thread_trace *tt)
{
	const struct trace_sample *s = (const struct trace_sample *)entry_bytes;
	u32 size = next_entry(tt, tt->head - tt->tail);

	if (!size) {
		tt->tail = tt->head;
		return;
	}
	records_drain(tt->thread, s->entry.time);
	if (s->entry.kind == TRACE_SAMPLE && size >= sizeof(*s))
		take_sample(tt, s);
	if (s->entry.kind == TRACE_STOP && size >= sizeof(*s))
		take_stop(tt, s);
	if (s->entry.kind == TRACE_HIT && size >= sizeof(struct trace_hit))
		probes_hit(tt->thread, &tt->probes, (const struct trace_hit *)entry_bytes);
	if (s->entry.kind == TRACE_OWN)
		take_own(tt, &s->entry);
	tt->tail += size;
}

static void looked(struct thread_trace *tt)
{
	tt->thread->process->s->instant.number++;
	__atomic_store_n(&tt->trace->tail, tt->tail, __ATOMIC_RELEASE);
	wake_thread(tt->trace);
}

void trace_drain(struct guest_thread *th)
{
	struct thread_trace *tt = th->trace;

	if (!tt || !look(tt))
		return;
	while (tt->tail != tt->head)
		take_next(tt);
	looked(tt);
}

static u64 next_time(const struct thread_trace *tt)
{
	struct trace_entry entry = {0};

	if (tt->head - tt->tail >= sizeof(entry))
		copy_out(tt, tt->tail, &entry, sizeof(entry));
	return entry.time;
}

static struct thread_trace *earliest(const struct list *pending)
{
	struct thread_trace *tt, *first = NULL;
	u64 time = 0;

	list_for_each_entry (tt, pending, pending) {
		u64 next = next_time(tt);

		if (first && next >= time)
			continue;
		first = tt;
		time = next;
	}
	return first;
}

/* What all threads have told, the earliest entry first. */
static void drain_in_order(struct session *s)
{
	struct thread_trace *tt;
	struct list pending;

	list_init(&pending);
	list_for_each_entry (tt, &s->traces, link)
		if (look(tt))
			list_add_tail(&tt->pending, &pending);
	while ((tt = earliest(&pending))) {
		if (tt->tail != tt->head)
			take_next(tt);
		if (tt->tail != tt->head)
			continue;
		list_del(&tt->pending);
		looked(tt);
	}
}

void traces_drain(struct session *s)
{
	struct thread_trace *tt, *tmp;

	if (s->in_order) {
		drain_in_order(s);
		return;
	}
	list_for_each_entry_safe (tt, tmp, &s->traces, link)
		trace_drain(tt->thread);
}

static bool has_backlog(const struct thread_trace *tt)
{
	const struct probe *probe;

	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event && event_has_backlog(tt->deadlines[i].event))
			return true;
	list_for_each_entry (probe, &tt->probes, armed)
		if (event_has_backlog(probe->event))
			return true;
	return false;
}

void traces_hold(struct session *s)
{
	bool any = core_has_backlog(s->core);
	struct thread_trace *tt;

	if (any)
		core_backlogs_write(s->core);
	if (!any && !s->holding)
		return;
	s->holding = false;
	list_for_each_entry (tt, &s->traces, link) {
		bool hold = tt->trace && has_backlog(tt);

		s->holding |= hold;
		if (hold == tt->held || !tt->trace)
			continue;
		tt->held = hold;
		__atomic_store_n(&tt->trace->hold, hold, __ATOMIC_SEQ_CST);
		if (!hold)
			wake_thread(tt->trace);
	}
}
