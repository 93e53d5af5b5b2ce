/* What guests' threads are told of deadlines, and what they tell of samples. */
#include "session/task/thread-trace.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/trace.h"
#include "pmu/source.h"
#include "session/session-priv.h"
#include "session/task/probe-places.h"
#include "session/task/trace-probes.h"

#define NSEC_PER_SEC 1000000000ull
#define SHORTEST_NS  10000u /* of a clock's period [SW-00] */

/* A deadline as the core wants it: in what the source reads, whatever meter the thread has. */
struct deadline {
	struct event *event; /* NULL: free */
	u64 next, period;
	u32 quantity; /* enum meter_quantity, or TRACE_BY_KERNEL */
	u32 generation;

	/* By the kernel: its event, which is there while the thread can be stopped; else -1. */
	int fd;
	u64 kernel_id;
	bool on;
};

struct thread_trace {
	struct list link; /* session.traces */
	struct guest_thread *thread;
	struct trace *trace; /* mapped; NULL: its thread has no meter yet */
	u64 tail;            /* as trace->tail, which the guest could write */
	u32 generation;
	struct deadline deadlines[TRACE_EVENTS];
	struct kernel_stops stops;
	bool left_alone;    /* the kernel's events are closed */
	u32 traps;          /* as trace->traps */
	bool trapped;       /* within this drain */
	struct list probes; /* struct probe that are on */
};

static struct thread_trace *trace_of(struct guest_thread *th)
{
	struct thread_trace *tt = th->trace;

	if (tt)
		return tt;
	tt = calloc(1, sizeof(*tt));
	if (!tt)
		return NULL;
	tt->thread = th;
	kernel_stops_init(&tt->stops);
	list_init(&tt->probes);
	th->trace = tt;
	list_add_tail(&tt->link, &th->process->s->traces);
	return tt;
}

static void unmap(struct thread_trace *tt)
{
	if (tt->trace)
		munmap(tt->trace, TRACE_SIZE);
	tt->trace = NULL;
}

/* Another thread may have had it before: what that has left there is nobody's. */
static bool map(struct thread_trace *tt)
{
	struct guest_thread *th = tt->thread;
	struct session *s = th->process->s;
	void *memory;

	if (tt->trace)
		return true;
	if (!guest_thread_meter(th))
		return false;
	memory = mmap(NULL, TRACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		      s->meters.fd, (off_t)trace_offset(th->meter));
	if (memory == MAP_FAILED)
		return false;
	tt->trace = memory;
	tt->tail = __atomic_load_n(&tt->trace->head, __ATOMIC_ACQUIRE);
	__atomic_store_n(&tt->trace->tail, tt->tail, __ATOMIC_RELEASE);
	tt->trace->bell = 0;
	tt->traps = __atomic_load_n(&tt->trace->traps, __ATOMIC_RELAXED);
	/* No two threads' deadlines shall look alike. */
	for (u32 i = 0; i < TRACE_EVENTS; i++) {
		u32 theirs = __atomic_load_n(&tt->trace->armed[i].generation, __ATOMIC_RELAXED);

		if (theirs > tt->generation)
			tt->generation = theirs;
	}
	for (u32 i = 0; i < TRACE_EVENTS; i++)
		tt->deadlines[i].generation = ++tt->generation;
	return true;
}

u32 trace_parts(const struct event *event)
{
	const struct event *original = event->parent ? event->parent : event;
	const struct perf_file *file = event_host(original);
	const struct pe_attr *attr = event_attr(event);
	u32 wants = 0;

	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_user)
		wants |= TRACE_WANT_CHAIN;
	if (attr->sample_type & PERF_SAMPLE_STACK_USER)
		wants |= TRACE_WANT_STACK;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		wants |= TRACE_WANT_BRANCHES;
	/* It may have to stop at once, or wants its signal before it goes on. */
	if (event->event_limit || (file && file->async) || attr->sigtrap)
		wants |= TRACE_WANT_ANSWER;
	return wants;
}

static u32 wants(const struct deadline *d)
{
	const struct pe_attr *attr = event_attr(d->event);
	u32 wants = trace_parts(d->event);

	if (attr->sample_type & PERF_SAMPLE_READ ||
	    (d->quantity != METER_INSTRUCTIONS && d->quantity != TRACE_BY_KERNEL))
		wants |= TRACE_WANT_SUMS;
	/* What the kernel counts is read when the entry is. */
	if (attr->sample_type & PERF_SAMPLE_READ && d->quantity == TRACE_BY_KERNEL)
		wants |= TRACE_WANT_ANSWER;
	if (d->quantity == TRACE_BY_KERNEL && d->on && kernel_stops_by_timer())
		wants |= TRACE_WANT_TIMER;
	return wants;
}

static u32 branch_type(u64 type)
{
	static const u8 types[] = {
		[TRACE_BRANCH_COND] = PERF_BR_COND,         [TRACE_BRANCH_JUMP] = PERF_BR_UNCOND,
		[TRACE_BRANCH_JUMP_IND] = PERF_BR_IND,      [TRACE_BRANCH_CALL] = PERF_BR_CALL,
		[TRACE_BRANCH_CALL_IND] = PERF_BR_IND_CALL, [TRACE_BRANCH_RETURN] = PERF_BR_RET,
		[TRACE_BRANCH_OTHER] = PERF_BR_UNKNOWN,
	};

	return type < ARRAY_SIZE(types) ? types[type] : PERF_BR_UNKNOWN;
}

/* Which branches the thread is to tell: it knows none but those that stay in user mode. */
static u32 branch_kinds(const struct deadline *d)
{
	const struct pe_attr *attr = event_attr(d->event);
	u32 kinds = 0;

	if (!(wants(d) & TRACE_WANT_BRANCHES) ||
	    !(attr->branch_sample_type & PERF_SAMPLE_BRANCH_USER))
		return 0;
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK)
		return TRACE_OPEN_CALLS;
	for (u32 type = TRACE_BRANCH_COND; type <= TRACE_BRANCH_OTHER; type++)
		kinds |= branch_is_wanted(attr, branch_type(type)) ? BIT(type) : 0;
	return kinds;
}

/* What sleeps in a system call would be told that a signal has interrupted it. */
static bool sleeps(const struct guest_thread *th)
{
	char text[256];
	const char *state;

	if (!pid_task_text(th->process->pid, th->tid, "stat", text, sizeof(text)))
		return false;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] != 'R';
}

/*
 * A thread that runs looks at its deadlines when it is told to. One that sleeps looks before its
 * program executes another instruction.
 */
static void poke(struct guest_thread *th)
{
	const struct meter *m = guest_thread_meter(th);
	siginfo_t si = {.si_signo = SIGSYS, .si_code = SI_QUEUE};
	u64 kick = __atomic_load_n(&m->kick, __ATOMIC_RELAXED);

	if (th->process->s->instant.caller == th || !th->tid || !th->process->pid || !kick ||
	    __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != METER_RUNNING || sleeps(th))
		return;
	/* It may have begun an execve meanwhile. */
	if (!__atomic_load_n(&m->kick, __ATOMIC_SEQ_CST))
		return;
	si.si_pid = getpid();
	si.si_uid = getuid();
	si.si_value.sival_ptr = (void *)(uintptr_t)kick;
	syscall(SYS_rt_tgsigqueueinfo, th->process->pid, th->tid, SIGSYS, &si);
}

/* Who only counts looks when he is asked. */
static u32 when_to_wake(const struct trace *trace)
{
	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (trace->event[i].period)
			return 1;
	return probes_are_sampled(trace) ? 1 : TRACE_RING / 2;
}

/* Tells the thread all its deadlines. */
static void tell(struct thread_trace *tt)
{
	struct guest_thread *th = tt->thread;
	struct trace *trace;
	struct meter *m;
	u32 seq;

	if (!map(tt))
		return;
	trace = tt->trace;
	m = guest_thread_meter(th);
	/* Odd while the table changes, mate: copy_table() in rt/sample/sample.c. */
	seq = __atomic_load_n(&m->trace_seq, __ATOMIC_RELAXED) | 1;
	__atomic_store_n(&m->trace_seq, seq, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (u32 i = 0; i < TRACE_EVENTS; i++) {
		const struct deadline *d = &tt->deadlines[i];
		struct trace_event *e = &trace->event[i];

		if (!d->event) {
			e->period = 0;
			continue;
		}
		*e = (struct trace_event){
			.next = d->quantity < METER_QUANTITIES
					? d->next - th->counts.before[d->quantity]
					: 0,
			.period = d->period,
			.generation = d->generation,
			.quantity = d->quantity,
			.wants = wants(d),
			.id = (u32)d->event->id,
			.stack_size = event_attr(d->event)->sample_stack_user,
			.chain_max = event_attr(d->event)->sample_max_stack,
			.branches = branch_kinds(d),
		};
	}
	probes_tell(th->process, &tt->probes, trace);
	/* Somebody may wait for each sample. */
	__atomic_store_n(&trace->wake_at, when_to_wake(trace), __ATOMIC_RELAXED);
	seq += seq + 1 ? 1 : 3;
	__atomic_store_n(&m->trace_seq, seq, __ATOMIC_RELEASE);
	/* Who execs has no handler for a moment; the new program looks before it begins. */
	if (!tt->left_alone)
		poke(th);
}

static struct deadline *deadline_of(struct thread_trace *tt, const struct event *event)
{
	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event == event)
			return &tt->deadlines[i];
	return NULL;
}

void trace_arm(void *ctx, struct event *event, struct task *task, u32 what, u64 next, u64 period)
{
	struct guest_thread *th = task_host(task);
	struct thread_trace *tt = th ? trace_of(th) : NULL;
	struct deadline *d = tt ? deadline_of(tt, event) : NULL;

	(void)ctx;
	if (tt && !d)
		d = deadline_of(tt, NULL);
	/* More events than there is room for do not sample: as if they were throttled for good. */
	if (!d)
		return;
	*d = (struct deadline){.event = event,
			       .next = next,
			       .period = period,
			       .quantity = meters_quantity((enum cpu_what)what),
			       .generation = ++tt->generation};
	tell(tt);
}

void trace_disarm(void *ctx, struct event *event, struct task *task)
{
	struct guest_thread *th = task_host(task);
	struct deadline *d = th && th->trace ? deadline_of(th->trace, event) : NULL;

	(void)ctx;
	if (!d)
		return;
	d->event = NULL;
	tell(th->trace);
}

static void close_stop(struct deadline *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

/* The kernel's event is there and does what the guest's does, if the thread can be stopped. */
static void set_stop(struct thread_trace *tt, struct deadline *d)
{
	s32 tid = tt->thread->tid;

	if (kernel_stops_by_timer()) {
		tell(tt);
		return;
	}
	/* Who has no meter has no runtime yet: the signal would end it. */
	if (d->fd < 0 && d->on && tid && guest_thread_meter(tt->thread) && !tt->left_alone)
		d->fd = kernel_stop_open(&tt->stops, tid, event_attr(d->event), &d->kernel_id);
	if (d->fd >= 0)
		ioctl(d->fd, d->on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static void set_period(struct deadline *d, u64 period)
{
	if (d->period != period && d->fd >= 0)
		ioctl(d->fd, PERF_EVENT_IOC_PERIOD, &period);
	d->period = period;
}

void trace_listen(void *ctx, struct event *event, struct task *task, bool forced)
{
	const struct pe_attr *attr = event_attr(event);
	struct guest_thread *th = task_host(task);
	struct thread_trace *tt = th ? trace_of(th) : NULL;
	struct deadline *d = tt ? deadline_of(tt, event) : NULL;
	u64 period = attr->sample_period;

	(void)ctx;
	/* As the kernel does it with its clocks. */
	if (kernel_stops_by_timer()) {
		period = attr->freq ? NSEC_PER_SEC / (period ? period : 1) : period;
		period = period < SHORTEST_NS ? SHORTEST_NS : period;
	}
	if (d && d->on)
		return;
	if (tt && !d)
		d = deadline_of(tt, NULL);
	if (!d)
		return;
	if (!d->event)
		*d = (struct deadline){.event = event,
				       .period = period,
				       .quantity = TRACE_BY_KERNEL,
				       .generation = ++tt->generation,
				       .fd = -1};
	d->on = true;
	/* The kernel makes a difference between one that is on and one that is off [IOC-05]. */
	if (!forced)
		set_period(d, period);
	/* First what it is to tell, then what makes it tell. */
	tell(tt);
	set_stop(tt, d);
	set_period(d, period);
}

void trace_unlisten(void *ctx, struct event *event, struct task *task)
{
	struct guest_thread *th = task_host(task);
	struct deadline *d = th && th->trace ? deadline_of(th->trace, event) : NULL;

	(void)ctx;
	if (!d)
		return;
	d->on = false;
	set_stop(th->trace, d);
}

void trace_forget(void *ctx, struct event *event, struct task *task)
{
	struct guest_thread *th = task_host(task);
	struct deadline *d = th && th->trace ? deadline_of(th->trace, event) : NULL;

	(void)ctx;
	if (!d)
		return;
	close_stop(d);
	d->event = NULL;
	tell(th->trace);
}

static void stops_close(struct thread_trace *tt)
{
	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event && tt->deadlines[i].quantity == TRACE_BY_KERNEL)
			close_stop(&tt->deadlines[i]);
	kernel_stops_release(&tt->stops);
}

void trace_stops(struct guest_thread *th, bool on)
{
	struct thread_trace *tt = th->trace;

	if (!tt)
		return;
	tt->left_alone = !on;
	if (!on)
		stops_close(tt);
	for (u32 i = 0; on && i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event && tt->deadlines[i].quantity == TRACE_BY_KERNEL)
			set_stop(tt, &tt->deadlines[i]);
}

/* Whoever is in the middle of telling waits for the answer. One on its way swallows others. */
void trace_sigtrap(void *ctx, struct event *event, struct task *task, u64 addr)
{
	struct guest_thread *th = task ? task_host(task) : NULL;
	struct thread_trace *tt = th ? th->trace : NULL;
	const struct pe_attr *attr = event_attr(event);

	(void)ctx;
	if (!tt || !tt->trace || tt->trapped)
		return;
	tt->trapped = true;
	tt->trace->trap =
		(struct trace_trap){.addr = addr, .data = attr->sig_data, .type = attr->type};
	__atomic_store_n(&tt->trace->traps, ++tt->traps, __ATOMIC_RELEASE);
}

void trace_probe_arm(void *ctx, struct probe *probe)
{
	struct guest_thread *th = task_host(event_on_task(probe->event));
	struct thread_trace *tt = th ? trace_of(th) : NULL;

	(void)ctx;
	if (!tt)
		return;
	list_add_tail(&probe->armed, &tt->probes);
	tell(tt);
}

void trace_probe_disarm(void *ctx, struct probe *probe)
{
	struct guest_thread *th = task_host(event_on_task(probe->event));

	(void)ctx;
	if (list_empty(&probe->armed))
		return;
	list_del(&probe->armed);
	if (th && th->trace)
		tell(th->trace);
}

void trace_mapped(struct guest_process *p)
{
	struct guest_thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->trace && probes_of_files(&th->trace->probes))
			tell(th->trace);
}

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

	if (s->nr_chain > TRACE_CHAIN || s->nr_branches > TRACE_LBR ||
	    s->stack_size > TRACE_STACK || s->stack_used > s->stack_size)
		return false;
	size = sizeof(*s) + s->nr_chain * sizeof(u64) + s->nr_branches * sizeof(*from) +
	       s->stack_size;
	if (size != s->entry.size)
		return false;
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

/* The counts and the clock of the thread, and the time, are those of the sample from here on. */
static void set_moment(struct guest_thread *th, const struct trace_sample *s, u32 have)
{
	struct session *session = th->process->s;
	struct instant *instant = &session->instant;
	u64 now = session_now();

	instant->number++;
	instant->wall_number = instant->number;
	instant->wall_time = min_u64(s->entry.time, now);
	snapshots_invalidate(th);
	for (u32 q = 0; q < METER_SPARE; q++)
		th->counts.seen[q] = s->sums[q];
	th->counts.seen_at = instant->number;
	th->counts.seen_meter = th->meter;
	th->counts.have = have;
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
	/* The event is off by now, or was never there. */
	if (!d || !th->task || !parts(s, &facts))
		return;
	attr = event_attr(d->event);
	set_moment(th, s, wants(d) & TRACE_WANT_SUMS ? METER_SPARE : METER_INSTRUCTIONS + 1);
	facts.exact_ip = attr->precise_ip >= 2;
	facts.has |= PERF_SAMPLE_BRANCH_STACK;
	facts.sample.ip = facts.exact_ip ? s->ip : s->pc;
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

static bool is_own(const struct thread_trace *tt, u64 addr)
{
	for (u32 i = 0; i < ARRAY_SIZE(tt->trace->own); i++)
		if (addr >= __atomic_load_n(&tt->trace->own[i][0], __ATOMIC_RELAXED) &&
		    addr < __atomic_load_n(&tt->trace->own[i][1], __ATOMIC_RELAXED))
			return true;
	return false;
}

static void take_note(struct thread_trace *tt, const struct kernel_note *note,
		      struct sample_facts *facts)
{
	struct event *event = noted(tt, note->id);
	bool own;

	if (!event)
		return;
	own = note->addr && is_own(tt, note->addr);
	/* It is counted; but where each is told, this one is not the program's. */
	if (own && !event_attr(event)->freq && event_attr(event)->sample_period == 1)
		return;
	if (note->time)
		tt->thread->process->s->instant.wall_time = note->time;
	facts->sample.addr = own ? 0 : note->addr;
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
	facts.has |= PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD;
	set_moment(th, s, 0);
	if (s->cpu < th->process->s->nr_cpus && task_cpu(th->task) != (int)s->cpu)
		task_sched_in(th->task, s->cpu);
	while (kernel_stops_next(&tt->stops, s->entry.time, &note))
		take_note(tt, &note, &facts);
	for (u32 i = 0; s->id && i < TRACE_EVENTS; i++) {
		const struct deadline *d = &tt->deadlines[i];

		if (!d->event || d->quantity != TRACE_BY_KERNEL || (u32)d->event->id != s->id)
			continue;
		/* The kernel's tick is longer. */
		facts.sample.period = d->period * min_u64(s->periods, NSEC_PER_SEC);
		facts.has &= ~(u64)PERF_SAMPLE_ADDR;
		source_stopped(d->event, &facts);
	}
	core_settle(th->process->s->core);
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

void trace_drain(struct guest_thread *th)
{
	struct thread_trace *tt = th->trace;
	struct trace *trace = tt ? tt->trace : NULL;
	struct kernel_note note;
	u64 head;

	if (!trace)
		return;
	/* Before the look at head, mate: ring_bell() in rt/sample/trace-ring.c. */
	__atomic_store_n(&trace->bell, 0, __ATOMIC_SEQ_CST);
	head = __atomic_load_n(&trace->head, __ATOMIC_ACQUIRE);
	if (head == tt->tail)
		return;
	instant_check(th->process->s);
	tt->trapped = false;
	if (head - tt->tail > TRACE_RING)
		tt->tail = head;
	while (tt->tail != head) {
		const struct trace_sample *s = (const struct trace_sample *)entry_bytes;
		u32 size = next_entry(tt, head - tt->tail);

		if (!size) {
			tt->tail = head;
			break;
		}
		switches_drain(th, s->entry.time);
		if (s->entry.kind == TRACE_SAMPLE && size >= sizeof(*s))
			take_sample(tt, s);
		if (s->entry.kind == TRACE_STOP && size >= sizeof(*s))
			take_stop(tt, s);
		if (s->entry.kind == TRACE_HIT && size >= sizeof(struct trace_hit))
			probes_hit(th, &tt->probes, (const struct trace_hit *)entry_bytes);
		while (s->entry.kind == TRACE_OWN &&
		       kernel_stops_next(&tt->stops, s->entry.time, &note))
			;
		tt->tail += size;
	}
	th->process->s->instant.number++;
	__atomic_store_n(&trace->tail, tt->tail, __ATOMIC_RELEASE);
	__atomic_fetch_add(&trace->drained, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&trace->waiting, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &trace->drained, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void traces_drain(struct session *s)
{
	struct thread_trace *tt, *tmp;

	list_for_each_entry_safe (tt, tmp, &s->traces, link)
		trace_drain(tt->thread);
}

void trace_moved(struct guest_thread *th)
{
	if (!th->trace)
		return;
	unmap(th->trace);
	tell(th->trace);
	if (!th->trace->left_alone)
		trace_stops(th, true);
}

void trace_free(struct guest_thread *th)
{
	struct thread_trace *tt = th->trace;

	if (!tt)
		return;
	th->trace = NULL;
	stops_close(tt);
	unmap(tt);
	list_del(&tt->link);
	free(tt);
}
