/*
 * What guests' threads are told of deadlines, probes and the kernel's events; trace-entries.c has
 * what they tell.
 */
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

#include "pmu/source.h"
#include "session/task/probe-places.h"
#include "session/task/thread-trace-priv.h"
#include "session/task/trace-probes.h"

#define NSEC_PER_SEC 1000000000ull
#define WITH_REGS                                                                 \
	(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER | \
	 PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_BRANCH_STACK)
#define SHORTEST_NS 10000u /* of a clock's period [SW-00] */

struct thread_trace *trace_of_thread(struct guest_thread *th)
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
	list_init(&tt->watches);
	list_init(&tt->pending);
	th->trace = tt;
	list_add_tail(&tt->link, &th->process->s->traces);
	return tt;
}

static void unmap(struct thread_trace *tt)
{
	if (tt->trace)
		munmap(tt->trace, TRACE_SIZE);
	tt->trace = NULL;
	tt->held = false;
}

/* Another thread may have had it before: what that has left there is nobody's. */
static bool map(struct thread_trace *tt)
{
	struct guest_thread *th = tt->thread;
	void *memory;

	if (tt->trace)
		return true;
	if (!guest_thread_meter(th) || guest_process_make_memory(th->process) ||
	    trace_offset(th->meter + 1) > th->process->memory_size)
		return false;
	memory = mmap(NULL, TRACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		      th->process->memfd, (off_t)trace_offset(th->meter));
	if (memory == MAP_FAILED)
		return false;
	tt->trace = memory;
	tt->seq = __atomic_load_n(&tt->trace->seq, __ATOMIC_RELAXED);
	tt->tail = __atomic_load_n(&tt->trace->head, __ATOMIC_ACQUIRE);
	__atomic_store_n(&tt->trace->tail, tt->tail, __ATOMIC_RELEASE);
	tt->trace->bell = 0;
	tt->trace->hold = 0;
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

/*
 * Who reads the samples of his own process finds each of them as soon as it was taken, without
 * asking anybody.
 */
static bool reads_itself(const struct event *event)
{
	const struct event *output = event_output(event);
	const struct perf_file *file = output ? event_host(output) : NULL;
	const struct task *task = event_on_task(event);
	const struct guest_thread *th = task ? task_host(task) : NULL;
	const struct mapping *m;

	if (!file || !th)
		return false;
	list_for_each_entry (m, &file->mappings, file_link)
		if (m->process == th->process)
			return true;
	return false;
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
	if (event->event_limit || (file && file->async) || attr->sigtrap || reads_itself(event))
		wants |= TRACE_WANT_ANSWER;
	return wants;
}

u32 deadline_wants(const struct deadline *d)
{
	const struct pe_attr *attr = event_attr(d->event);
	u32 wants = trace_parts(d->event);

	if (attr->sample_type & PERF_SAMPLE_READ ||
	    (d->quantity != METER_INSTRUCTIONS && d->quantity < METER_QUANTITIES))
		wants |= TRACE_WANT_SUMS;
	if (d->quantity >= TRACE_MODELED && attr->sample_type & WITH_REGS)
		wants |= TRACE_WANT_REGS;
	/* What the kernel counts is read when the entry is. */
	if (attr->sample_type & PERF_SAMPLE_READ && d->quantity == TRACE_BY_KERNEL)
		wants |= TRACE_WANT_ANSWER;
	if (d->quantity == TRACE_BY_KERNEL && d->on && kernel_stops_by_timer())
		wants |= TRACE_WANT_TIMER;
	return wants;
}

u32 branch_type(u64 type)
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

	if (!(deadline_wants(d) & TRACE_WANT_BRANCHES) ||
	    !(attr->branch_sample_type & PERF_SAMPLE_BRANCH_USER))
		return 0;
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK)
		return TRACE_OPEN_CALLS;
	for (u32 type = TRACE_BRANCH_COND; type <= TRACE_BRANCH_OTHER; type++)
		kinds |= branch_is_wanted(attr, branch_type(type)) ? BIT(type) : 0;
	return kinds;
}

#define STAT_CAUGHT 31u /* fields between the state and the signals that are caught */

/*
 * The kernel's word for it, since its meter could say anything: it runs, for what sleeps in a
 * system call would be told that a signal has interrupted it; and has a handler, or it would end.
 */
static bool can_be_poked(const struct guest_thread *th)
{
	char text[1024];
	const char *field;

	if (!pid_task_text(th->process->pid, th->tid, "stat", text, sizeof(text)))
		return false;
	field = strrchr(text, ')');
	if (!field || field[1] != ' ' || field[2] != 'R')
		return false;
	field += 2;
	for (u32 i = 0; field && i < STAT_CAUGHT; i++)
		field = strchr(field + 1, ' ');
	return field && strtoull(field, NULL, 10) & BIT(SIGSYS - 1);
}

void trace_poke(struct guest_thread *th)
{
	const struct meter *m = guest_thread_meter(th);
	siginfo_t si = {.si_signo = SIGSYS, .si_code = SI_QUEUE};

	if (th->process->s->instant.caller == th || !th->tid || !th->process->pid || !m ||
	    !__atomic_load_n(&m->kickable, __ATOMIC_RELAXED) || th->process->execing ||
	    __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != METER_RUNNING || !can_be_poked(th))
		return;
	/* It may have begun an execve meanwhile. */
	if (!__atomic_load_n(&m->kickable, __ATOMIC_SEQ_CST))
		return;
	si.si_pid = getpid();
	si.si_uid = getuid();
	si.si_value.sival_ptr = (void *)(uintptr_t)TRACE_KICK;
	syscall(SYS_rt_tgsigqueueinfo, th->process->pid, th->tid, SIGSYS, &si);
}

/* Who only counts looks when he is asked. */
static u32 when_to_wake(const struct thread_trace *tt)
{
	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (tt->trace->event[i].period)
			return 1;
	return probes_are_sampled(&tt->probes, tt->trace) ? 1 : TRACE_RING / 2;
}

/* In what its meter says. */
static u64 first_stop(const struct guest_thread *th, const struct deadline *d)
{
	if (d->quantity < METER_QUANTITIES)
		return d->next - th->counts.before[d->quantity];
	if (d->quantity >= TRACE_MODELED && th->counts.modeled)
		return d->next - th->counts.modeled->before[d->quantity - TRACE_MODELED];
	return 0;
}

/* @th has a trace from here on, and finds out by one of the two. */
static void let_ask(struct guest_thread *th)
{
	u32 *asked = &th->process->page->asked[th->meter % WIRE_ASKED];

	__atomic_fetch_add(asked, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&guest_thread_meter(th)->asked, 1, __ATOMIC_SEQ_CST);
}

void trace_watch(struct guest_thread *th)
{
	if (trace_is_there(th))
		__atomic_store_n(&th->trace->trace->to_tell, guest_thread_to_tell(th),
				 __ATOMIC_SEQ_CST);
}

bool trace_is_there(const struct guest_thread *th)
{
	return th->trace && th->trace->trace;
}

/* Tells the thread all its deadlines. */
static void tell(struct thread_trace *tt)
{
	struct guest_thread *th = tt->thread;
	bool first = !tt->trace;
	struct trace *trace;

	tt->untold = false;
	if (!map(tt))
		return;
	trace = tt->trace;
	/* Odd while the table changes, mate: copy_table() in rt/sample/sample.c. */
	tt->seq |= 1;
	__atomic_store_n(&trace->seq, tt->seq, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (u32 i = 0; i < TRACE_EVENTS; i++) {
		const struct deadline *d = &tt->deadlines[i];
		struct trace_event *e = &trace->event[i];

		if (!d->event) {
			e->period = 0;
			continue;
		}
		*e = (struct trace_event){
			.next = first_stop(th, d),
			.period = d->period,
			.generation = d->generation,
			.quantity = d->quantity,
			.wants = deadline_wants(d),
			.id = (u32)d->event->id,
			.stack_size = event_attr(d->event)->sample_stack_user,
			.chain_max = event_attr(d->event)->sample_max_stack,
			.branches = branch_kinds(d),
		};
	}
	probes_tell(th->process, &tt->probes, trace);
	data_watches_tell(tt, &trace->watch);
	probes_tell_fired(&tt->probes, &trace->fired);
	tt->sums_at_stops = trace->watch.wants & TRACE_WANT_SUMS;
	/* Somebody may wait for each sample. */
	__atomic_store_n(&trace->wake_at, when_to_wake(tt), __ATOMIC_RELAXED);
	tt->seq += tt->seq + 1 ? 1 : 3;
	__atomic_store_n(&trace->seq, tt->seq, __ATOMIC_RELEASE);
	trace_watch(th);
	if (first)
		let_ask(th);
	/* Who execs has no handler for a moment; the new program looks before it begins. */
	if (!tt->left_alone)
		trace_poke(th);
}

static struct deadline *deadline_of(struct thread_trace *tt, const struct event *event)
{
	for (u32 i = 0; i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event == event)
			return &tt->deadlines[i];
	return NULL;
}

static u32 quantity_of(u32 what)
{
	return what >= CPU_MODELED ? TRACE_MODELED + what - CPU_MODELED
				   : (u32)meters_quantity((enum cpu_what)what);
}

void trace_arm(void *ctx, struct event *event, struct task *task, u32 what, u64 next, u64 period)
{
	struct guest_thread *th = task_host(task);
	struct thread_trace *tt = th ? trace_of_thread(th) : NULL;
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
			       .quantity = quantity_of(what),
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
	if (d->fd < 0 && d->on && tid && guest_thread_meter(tt->thread) && !tt->left_alone &&
	    !tt->thread->process->execing)
		d->fd = kernel_stop_open(&tt->stops, tid, event_attr(d->event), &d->kernel_id);
	if (d->fd >= 0)
		ioctl(d->fd, d->on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static void set_period(struct deadline *d, u64 period)
{
	u64 kernels = kernel_stop_period(event_attr(d->event), period);

	if (d->period != period && d->fd >= 0)
		ioctl(d->fd, PERF_EVENT_IOC_PERIOD, &kernels);
	d->period = period;
}

void trace_listen(void *ctx, struct event *event, struct task *task, bool forced)
{
	const struct pe_attr *attr = event_attr(event);
	struct guest_thread *th = task_host(task);
	struct thread_trace *tt = th ? trace_of_thread(th) : NULL;
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
	data_watches_close(tt);
	kernel_stops_release(&tt->stops);
}

void trace_execs(struct guest_thread *th, bool begins)
{
	struct guest_process *p = th->process;
	struct guest_thread *other;

	if (begins)
		p->execing++;
	else if (p->execing)
		p->execing--;
	trace_stops(th, !begins);
	/* What they were not told meanwhile. */
	list_for_each_entry (other, &p->threads, link)
		if (!begins && !p->execing && other->trace) {
			tell(other->trace);
			trace_stops(other, !other->trace->left_alone);
		}
}

void trace_stops(struct guest_thread *th, bool on)
{
	struct thread_trace *tt = th->trace;

	if (!tt)
		return;
	tt->left_alone = !on;
	if (!on)
		stops_close(tt);
	kernel_probes_stop(th, on);
	for (u32 i = 0; on && i < TRACE_EVENTS; i++)
		if (tt->deadlines[i].event && tt->deadlines[i].quantity == TRACE_BY_KERNEL)
			set_stop(tt, &tt->deadlines[i]);
	/* What the thread has no register for is not on: its event is to find that out. */
	if (on && !data_watches_open(tt) && th->task && task_cpu(th->task) >= 0) {
		u32 cpu = (u32)task_cpu(th->task);

		task_sched_out(th->task);
		task_sched_in(th->task, cpu);
	}
}

static void retell(struct event *event)
{
	const struct task *task = event_on_task(event);
	struct guest_thread *th = task ? task_host(task) : NULL;

	if (th && th->trace)
		tell(th->trace);
}

void trace_read_by(struct event *event)
{
	if (event_is_sampling(event))
		event_each_child(event, retell);
}

void trace_send(struct thread_trace *tt, const struct trace_trap *trap)
{
	if (tt->trapped)
		return;
	tt->trapped = true;
	tt->trace->trap = *trap;
	__atomic_store_n(&tt->trace->traps, ++tt->traps, __ATOMIC_RELEASE);
}

/*
 * Whoever is in the middle of telling waits for the answer. One on its way swallows others. What
 * the kernel has recorded of a tracepoint may be read before the thread is back from there.
 */
void trace_sigtrap(void *ctx, struct event *event, struct task *task, u64 addr)
{
	struct guest_thread *th = task ? task_host(task) : NULL;
	struct thread_trace *tt = th ? th->trace : NULL;
	const struct pe_attr *attr = event_attr(event);
	const struct trace_trap trap = {.addr = addr, .data = attr->sig_data, .type = attr->type};

	(void)ctx;
	if (!tt || !tt->trace)
		return;
	if (!probe_is_kernel(event)) {
		trace_send(tt, &trap);
	} else if (!tt->has_fired) {
		tt->has_fired = true;
		tt->fired = trap;
	}
}

int trace_probe_arm(void *ctx, struct probe *probe)
{
	struct guest_thread *th = task_host(event_on_task(probe->event));
	struct thread_trace *tt;

	(void)ctx;
	if (probe->kind == PROBE_KERNEL) {
		kernel_probe_arm(probe);
		if (!kernel_probe_wants_calls(probe) && !event_attr(probe->event)->sigtrap)
			return 0;
	}
	tt = th ? trace_of_thread(th) : NULL;
	if (!tt)
		return 0;
	if (probe->kind == PROBE_ACCESSED) {
		int err = data_watch_ready(tt, probe);

		if (err)
			return err;
	}
	list_add_tail(&probe->armed, &tt->probes);
	/* First what it is to tell, then what makes it tell. */
	tell(tt);
	if (probe->kind == PROBE_ACCESSED)
		data_watch_on(probe);
	return 0;
}

void trace_probe_disarm(void *ctx, struct probe *probe)
{
	struct guest_thread *th = task_host(event_on_task(probe->event));

	(void)ctx;
	if (probe->kind == PROBE_KERNEL)
		kernel_probe_disarm(probe);
	if (list_empty(&probe->armed))
		return;
	list_del(&probe->armed);
	/* A thread that changes its CPU has it on again at once, and runs on meanwhile. */
	if (th && th->trace)
		th->trace->untold = th->process->s->untold = true;
}

void traces_settle(struct session *s)
{
	struct thread_trace *tt;

	if (!s->untold)
		return;
	s->untold = false;
	list_for_each_entry (tt, &s->traces, link)
		if (tt->untold)
			tell(tt);
}

void trace_mapped(struct guest_process *p)
{
	struct guest_thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->trace && probes_of_files(&th->trace->probes))
			tell(th->trace);
}

void trace_execed(struct guest_thread *th)
{
	/* A thread that none of them has stopped yet has not asked to be left alone before. */
	if (th->trace)
		stops_close(th->trace);
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
	data_watches_free(tt);
	stops_close(tt);
	unmap(tt);
	list_del(&tt->pending);
	list_del(&tt->link);
	free(tt);
}
