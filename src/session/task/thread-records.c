#include "session/task/thread-records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/coding.h"
#include "session/session-priv.h"
#include "session/task/thread-trace-priv.h"
#include "session/task/trace-probes.h"

/* What the events of a buffer have in common: the trailer of its records. */
#define COMMON (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* One of the kernel's events, for a probe on a thread. */
struct record_probe {
	struct list link; /* in thread_records.probes */
	struct list all;  /* in session.kernel_probes */
	struct guest_thread *thread;
	struct probe *probe;
	bool on;      /* is wanted */
	bool on_exec; /* it goes on by itself at the next exec */
	int fd;       /* -1: the thread is still to be made, or the kernel gives none */
	u64 id;       /* of the kernel's event */
	u64 period;   /* as the kernel was told last */
};

struct thread_records {
	struct kernel_stops kernel; /* the buffer, and an event that counts nothing */
	int switches, code;         /* events that record these alone; -1: none */
	struct list probes;         /* struct record_probe */
	/* Where the thread's system call was made, which is not over; `called` 0: not known. */
	struct trace_sample *call;
	u32 called, room; /* its size, and that of its memory */
};

static struct pe_attr recorder_attr(void)
{
	struct pe_attr attr = kernel_event_attr(COMMON);

	/* Who is woken empties the buffer before it is full. */
	attr.watermark = 1;
	attr.wakeup_watermark = 1u << 16;
	return attr;
}

static struct thread_records *records_of(struct guest_thread *th)
{
	struct thread_records *r = th->records;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	kernel_stops_init(&r->kernel);
	r->switches = r->code = -1;
	list_init(&r->probes);
	th->records = r;
	return r;
}

/* False: there is nobody to be recorded yet, or the kernel gives no buffer. */
static bool has_buffer(struct guest_thread *th, struct thread_records *r)
{
	struct session *s = th->process->s;
	struct pe_attr attr = recorder_attr();

	if (r->kernel.pages)
		return true;
	if (!th->tid || kernel_buffer_open(&r->kernel, &attr, th->tid))
		return false;
	if (poll_source_add(s->loop.all, r->kernel.fd, &s->loop.records_poll, POLL_SOURCE_RECORDS,
			    EPOLLIN) == 0)
		return true;
	kernel_stops_release(&r->kernel);
	return false;
}

/* An event of the kernel's that writes into the thread's buffer, off if its attr says so. */
static int open_into(struct guest_thread *th, struct thread_records *r, const struct pe_attr *attr)
{
	int fd = has_buffer(th, r) ? kernel_event_open(attr, th->tid) : -1;

	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->kernel.fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void watch_switches(struct guest_thread *th)
{
	struct thread_records *r = records_of(th);
	struct pe_attr attr = recorder_attr();

	attr.context_switch = 1;
	if (r && r->switches < 0)
		r->switches = open_into(th, r, &attr);
}

void records_bpf(struct guest_thread *th)
{
	struct thread_records *r = records_of(th);
	struct pe_attr attr = recorder_attr();

	if (!r || r->code >= 0)
		return;
	attr.ksymbol = attr.bpf_event = attr.text_poke = 1;
	r->code = open_into(th, r, &attr);
	/* What older kernels know. */
	attr.text_poke = 0;
	if (r->code < 0)
		r->code = open_into(th, r, &attr);
	wide_recording(th->process->s);
}

bool records_wants_calls(const struct probe *probe)
{
	const struct pe_attr *attr = event_attr(probe->event);

	return probe->kind == PROBE_KERNEL && event_is_sampling(probe->event) &&
	       (attr->sample_type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER) ||
		(attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_user));
}

/*
 * As the guest's, but for what is the session's: who is told, what is taken from a sample and in
 * which order. The kernel keeps periods and frequencies.
 */
static struct pe_attr probe_attr(const struct event *event)
{
	const struct pe_attr *guests = event_attr(event);
	struct pe_attr attr = recorder_attr();

	attr.type = guests->type;
	attr.config = guests->config;
	attr.disabled = 1;
	attr.exclude_user = guests->exclude_user;
	attr.exclude_kernel = guests->exclude_kernel;
	attr.exclude_hv = guests->exclude_hv;
	attr.exclude_idle = guests->exclude_idle;
	attr.sample_period = guests->sample_period;
	attr.freq = guests->freq;
	attr.sample_type |= PERF_SAMPLE_IP | (guests->sample_type & PERF_SAMPLE_RAW) |
			    (guests->sample_type & PERF_SAMPLE_PERIOD);
	if (guests->sample_type & PERF_SAMPLE_REGS_INTR) {
		attr.sample_type |= PERF_SAMPLE_REGS_INTR;
		attr.sample_regs_intr = guests->sample_regs_intr;
	}
	/* Whether it was the runtime or code of the program's. */
	if (event_is_sampling(event)) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = BIT(TRACE_REG_PC);
	}
	if (guests->sample_type & PERF_SAMPLE_CALLCHAIN && !guests->exclude_callchain_kernel) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.exclude_callchain_user = 1;
		attr.sample_max_stack = guests->sample_max_stack;
	}
	return attr;
}

static const struct probe *original_of(const struct probe *probe)
{
	return probe->event->parent ? probe_of(probe->event->parent) : probe;
}

static void open_probe(struct record_probe *rp)
{
	struct pe_attr attr = probe_attr(rp->probe->event);
	const char *filter = original_of(rp->probe)->text;

	attr.enable_on_exec = rp->on_exec;
	rp->fd = open_into(rp->thread, rp->thread->records, &attr);
	if (rp->fd >= 0 && (ioctl(rp->fd, PERF_EVENT_IOC_ID, &rp->id) ||
			    (filter && ioctl(rp->fd, PERF_EVENT_IOC_SET_FILTER, filter)))) {
		close(rp->fd);
		rp->fd = -1;
	}
	rp->period = attr.sample_period;
}

static void set_probe(struct record_probe *rp, bool on)
{
	const struct event *event = rp->probe->event;
	u64 period = event->attr.freq ? event->attr.sample_freq : event->hw.sample_period;

	rp->on = on;
	if (rp->fd < 0)
		return;
	if (event_is_sampling(event) && period != rp->period &&
	    !ioctl(rp->fd, PERF_EVENT_IOC_PERIOD, &period))
		rp->period = period;
	ioctl(rp->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void records_watch(struct guest_thread *th)
{
	struct record_probe *rp;

	if (!th->task || !th->tid)
		return;
	if (th->process->s->track_switches)
		watch_switches(th);
	if (!th->records)
		return;
	list_for_each_entry (rp, &th->records->probes, link) {
		if (rp->fd >= 0)
			continue;
		open_probe(rp);
		set_probe(rp, rp->on);
	}
}

/* The event of @probe on the thread that it is on; NULL: there is none, and no memory for it. */
static struct record_probe *probe_on_thread(struct probe *probe, bool on_exec)
{
	struct guest_thread *th = task_host(event_on_task(probe->event));
	struct thread_records *r = th ? records_of(th) : NULL;
	struct record_probe *rp = probe->host;

	if (rp || !r)
		return rp;
	rp = calloc(1, sizeof(*rp));
	if (!rp)
		return NULL;
	*rp = (struct record_probe){.thread = th, .probe = probe, .fd = -1, .on_exec = on_exec};
	list_add_tail(&rp->link, &r->probes);
	list_add_tail(&rp->all, &th->process->s->kernel_probes);
	probe->host = rp;
	probe->counted = 0;
	if (th->tid)
		open_probe(rp);
	return rp;
}

void records_opened(struct session *s, const struct event *event)
{
	struct guest_process *p;
	struct guest_thread *th;

	/* What the exec itself does is over when the session hears of it. */
	if (probe_is_kernel(event) && event_attr(event)->enable_on_exec &&
	    (event->cpu < 0 || event->cpu == task_cpu(event->target)))
		(void)probe_on_thread(probe_of(event), true);
	if (!event_attr(event)->context_switch || s->track_switches)
		return;
	s->track_switches = true;
	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			records_watch(th);
}

void records_exec(struct guest_thread *th)
{
	struct record_probe *rp;

	if (!th->records)
		return;
	list_for_each_entry (rp, &th->records->probes, link) {
		if (rp->on_exec)
			set_probe(rp, rp->on);
		rp->on_exec = false;
	}
}

int records_probe_open(void *ctx, struct probe *probe)
{
	struct pe_attr attr = probe_attr(probe->event);

	(void)ctx;
	probe->anchor = kernel_event_open(&attr, 0);
	return probe->anchor < 0 ? probe->anchor : 0;
}

static void free_probe(struct record_probe *rp)
{
	if (rp->fd >= 0)
		close(rp->fd);
	rp->probe->host = NULL;
	list_del(&rp->link);
	list_del(&rp->all);
	free(rp);
}

void records_probe_close(void *ctx, struct probe *probe)
{
	(void)ctx;
	if (probe->host)
		free_probe(probe->host);
	if (probe->anchor >= 0)
		close(probe->anchor);
	free(probe->text);
}

void records_probe_arm(struct probe *probe)
{
	struct record_probe *rp = probe_on_thread(probe, false);

	if (rp)
		set_probe(rp, true);
}

void records_probe_disarm(struct probe *probe)
{
	if (probe->host)
		set_probe(probe->host, false);
}

bool records_probe_count(void *ctx, struct probe *probe, u64 *count)
{
	const struct record_probe *rp = probe->host;

	(void)ctx;
	return rp && rp->fd >= 0 && read(rp->fd, count, sizeof(*count)) == sizeof(*count);
}

int records_probe_filter(void *ctx, struct probe *probe, const char *text)
{
	struct session *s = ctx;
	const struct record_probe *rp;
	char *copy = strdup(text);
	int err = 0;

	if (!copy)
		return -ENOMEM;
	if (ioctl(probe->anchor, PERF_EVENT_IOC_SET_FILTER, text)) {
		err = -errno;
		free(copy);
		return err;
	}
	free(probe->text);
	probe->text = copy;
	list_for_each_entry (rp, &s->kernel_probes, all)
		if (original_of(rp->probe) == probe && rp->fd >= 0 &&
		    ioctl(rp->fd, PERF_EVENT_IOC_SET_FILTER, text))
			err = -errno;
	return err;
}

int records_probe_bpf(void *ctx, struct probe *probe)
{
	const struct session *s = ctx;

	if (!s->call || s->call->fd_in < 0)
		return -EBADF;
	return ioctl(probe->anchor, PERF_EVENT_IOC_SET_BPF, s->call->fd_in) ? -errno : 0;
}

/* What the records are told of is where the thread is, at the time of the record. */
static void set_moment(struct guest_thread *th, const struct ap_record *rec)
{
	struct instant *instant = &th->process->s->instant;

	instant->number++;
	instant->wall_number = instant->number;
	instant->wall_time = rec->id.time;
}

static void set_cpu(struct guest_thread *th, u32 cpu)
{
	if (cpu < th->process->s->nr_cpus && task_cpu(th->task) != (int)cpu)
		task_sched_in(th->task, cpu);
}

static void tell_switch(struct guest_thread *th, const struct ap_record *rec)
{
	bool out = rec->misc & PERF_RECORD_MISC_SWITCH_OUT;

	set_moment(th, rec);
	if (!out)
		set_cpu(th, rec->id.cpu);
	task_switched(th->task, NULL, out, rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

static struct record_probe *by_id(const struct thread_records *r, u64 id)
{
	struct record_probe *rp;

	list_for_each_entry (rp, &r->probes, link)
		if (rp->fd >= 0 && rp->id == id)
			return rp;
	return NULL;
}

/*
 * Whose sample it is: of events on one CPU each the one of that CPU, though another was on when
 * the task was brought there unseen.
 */
static struct probe *whose(const struct thread_records *r, const struct record_probe *rp, u32 cpu)
{
	const struct event *event = rp->probe->event;
	struct record_probe *other;

	if (event->cpu < 0 || (u32)event->cpu == cpu)
		return rp->probe;
	list_for_each_entry (other, &r->probes, link) {
		const struct event *e = other->probe->event;

		if (e->cpu == (int)cpu && e->owner == event->owner &&
		    e->attr.type == event->attr.type && e->attr.config == event->attr.config)
			return other->probe;
	}
	return rp->probe;
}

/* The kernel's part of a call chain, without the markers. */
static struct ap_callchain kernel_part(const struct ap_callchain *chain)
{
	struct ap_callchain part = *chain;

	while (part.nr && part.ips[0] >= PERF_CONTEXT_MAX) {
		part.ips++;
		part.nr--;
	}
	return part;
}

void records_call(struct guest_thread *th, const struct trace_sample *s)
{
	struct thread_records *r = th->records;
	u32 size = s ? s->entry.size : 0;

	if (!r)
		return;
	if (size > r->room) {
		free(r->call);
		r->call = malloc(size);
		r->room = r->call ? size : 0;
	}
	r->called = min_u64(size, r->room);
	if (r->called)
		memcpy(r->call, s, r->called);
}

/* The program is where it has made the call in which the kernel has recorded @rec. */
static void add_call(const struct guest_thread *th, const struct thread_records *r,
		     const struct ap_record *rec, struct sample_facts *facts)
{
	const struct ap_regs *regs = &rec->sample.regs_user;
	struct sample_facts call = {0};

	if (!r->called || !th->trace || regs->abi == PERF_SAMPLE_REGS_ABI_NONE ||
	    !trace_is_runtime(th->trace, regs->values[0]) || !trace_sample_parts(r->call, &call))
		return;
	facts->has |= call.has &
		      (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	facts->sample.callchain = call.sample.callchain;
	facts->sample.regs_user = call.sample.regs_user;
	facts->sample.stack_user = call.sample.stack_user;
}

static void tell_sample(struct guest_thread *th, const struct thread_records *r,
			const struct record_probe *rp, const struct ap_record *rec)
{
	struct sample_facts facts = {
		.task = th->task,
		.cpumode = rec->misc & PERF_RECORD_MISC_CPUMODE_MASK,
		.has = PERF_SAMPLE_RAW,
		.sample = rec->sample,
	};

	set_moment(th, rec);
	set_cpu(th, rec->id.cpu);
	if (event_attr(rp->probe->event)->sample_type & PERF_SAMPLE_PERIOD)
		facts.has |= PERF_SAMPLE_PERIOD;
	if (rec->sample.regs_intr.abi != PERF_SAMPLE_REGS_ABI_NONE)
		facts.has |= PERF_SAMPLE_REGS_INTR;
	facts.kernel_chain = kernel_part(&rec->sample.callchain);
	facts.sample.callchain = (struct ap_callchain){0};
	add_call(th, r, rec, &facts);
	probe_recorded(whose(r, rp, rec->id.cpu), &facts);
}

static struct ap_layout layout_of(const struct thread_records *r, const struct kernel_record *k,
				  const struct record_probe **rp)
{
	struct ap_layout layout = {.sample_type = COMMON, .sample_id_all = true};

	*rp = NULL;
	if (k->header.type == PERF_RECORD_SAMPLE && k->header.size >= 16) {
		u64 id;

		memcpy(&id, k->bytes + 8, sizeof(id));
		*rp = by_id(r, id);
		if (*rp) {
			struct pe_attr attr = probe_attr((*rp)->probe->event);

			layout.sample_type = attr.sample_type;
			layout.sample_regs_user = attr.sample_regs_user;
			layout.sample_regs_intr = attr.sample_regs_intr;
		}
	}
	return layout;
}

static void tell(struct guest_thread *th, const struct thread_records *r,
		 const struct kernel_record *k)
{
	const struct record_probe *rp;
	struct ap_layout layout = layout_of(r, k, &rp);
	struct ap_record rec;
	const char *why;

	if (ap__record_decode(&rec, k->bytes, k->header.size, &layout, &why) < 0)
		return;
	switch (rec.type) {
	case PERF_RECORD_SAMPLE:
		/* One of an event that has been closed since has no layout either. */
		if (rp)
			tell_sample(th, r, rp, &rec);
		break;
	case PERF_RECORD_SWITCH: tell_switch(th, &rec); break;
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_TEXT_POKE:
		set_moment(th, &rec);
		task_kernel_record(th->task, &rec);
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		rp = by_id(r, rec.throttle.id);
		set_moment(th, &rec);
		if (rp)
			event_throttled(rp->probe->event, rec.type == PERF_RECORD_THROTTLE);
		break;
	case PERF_RECORD_LOST:
		rp = by_id(r, rec.lost.id);
		if (rp)
			event_lost_samples(rp->probe->event, rec.lost.lost);
		break;
	default: break;
	}
}

void records_drain(struct guest_thread *th, u64 time)
{
	static u8 bytes[KERNEL_RECORD_MAX] __attribute__((aligned(8)));
	struct kernel_record k = {.bytes = bytes};
	struct thread_records *r = th->records;
	bool any = false;

	if (!r || !th->task)
		return;
	while (kernel_record_next(&r->kernel, COMMON, time, &k)) {
		tell(th, r, &k);
		any = true;
	}
	if (any)
		core_settle(th->process->s->core);
	th->process->s->instant.number++;
}

void records_drain_all(struct session *s)
{
	struct guest_process *p;
	struct guest_thread *th;

	if (!s->track_records)
		return;
	list_for_each_entry (p, &s->guests.processes, link) {
		list_for_each_entry (th, &p->threads, link) {
			u64 now = session_now();

			/* What it has told since tells where later records were made. */
			records_drain(th, th->trace && th->trace->looked ? th->trace->looked : now);
		}
	}
}

bool records_outlive(const struct guest_thread *th)
{
	return th->records && !list_empty(&th->records->probes);
}

void records_free(struct guest_thread *th)
{
	struct thread_records *r = th->records;
	struct record_probe *rp, *tmp;

	if (!r)
		return;
	list_for_each_entry_safe (rp, tmp, &r->probes, link)
		free_probe(rp);
	if (r->switches >= 0)
		close(r->switches);
	if (r->code >= 0)
		close(r->code);
	kernel_stops_release(&r->kernel);
	free(r->call);
	free(r);
	th->records = NULL;
}
