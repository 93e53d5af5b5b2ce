#include "session/task/thread-records.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu/tracepoint-filter.h"
#include "record/coding.h"
#include "session/session-priv.h"
#include "session/task/thread-records-priv.h"
#include "session/task/thread-trace-priv.h"
#include "session/task/trace-probes.h"

struct pe_attr recorder_attr(void)
{
	struct pe_attr attr = kernel_event_attr(RECORD_COMMON);

	/* Who is woken empties the buffer before it is full. */
	attr.watermark = 1;
	attr.wakeup_watermark = 1u << 16;
	return attr;
}

struct thread_records *records_of_thread(struct guest_thread *th)
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

int recorder_open(struct guest_thread *th, struct thread_records *r, const struct pe_attr *attr)
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
	struct thread_records *r = records_of_thread(th);
	struct pe_attr attr = recorder_attr();

	attr.context_switch = 1;
	if (r && r->switches < 0)
		r->switches = recorder_open(th, r, &attr);
}

void records_bpf(struct guest_thread *th)
{
	struct thread_records *r = records_of_thread(th);
	struct pe_attr attr = recorder_attr();

	if (!r || r->code >= 0)
		return;
	attr.ksymbol = attr.bpf_event = attr.text_poke = 1;
	r->code = recorder_open(th, r, &attr);
	/* What older kernels know. */
	attr.text_poke = 0;
	if (r->code < 0)
		r->code = recorder_open(th, r, &attr);
	wide_recording(th->process->s);
}

void records_watch(struct guest_thread *th)
{
	if (!th->task || !th->tid)
		return;
	if (th->process->s->track_switches)
		watch_switches(th);
	if (th->records)
		kernel_probes_watch(th);
}

void records_opened(struct session *s, const struct event *event)
{
	struct guest_process *p;
	struct guest_thread *th;

	if (!event->target && event_is_sampling(event) &&
	    event_attr(event)->sample_type & PERF_SAMPLE_READ)
		s->in_order = true;
	/* What the exec itself does is over when the session hears of it. */
	if (probe_is_kernel(event) && event->target && event_attr(event)->enable_on_exec &&
	    (event->cpu < 0 || event->cpu == task_cpu(event->target)))
		kernel_probe_on_exec(probe_of(event));
	if (!event_attr(event)->context_switch)
		return;
	if (!event->target && event->cpu >= 0)
		cpu_switches_watch(s, (u32)event->cpu);
	if (s->track_switches)
		return;
	s->track_switches = true;
	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			records_watch(th);
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
	struct task_switch sw = {.out = out,
				 .preempted = rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT};

	cpu_switches_find(th->process->s, rec->id.cpu, rec->id.tid, out, rec->id.time,
			  &sw.other_pid, &sw.other_tid);
	set_moment(th, rec);
	if (!out)
		set_cpu(th, rec->id.cpu);
	task_switched(th->task, &sw);
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

/* A name that the kernel does not know, or NULL: it is as it says. */
static const char *name_of(const struct guest_process *p, const struct tp_field *field)
{
	if (!strcmp(field->name, "filename"))
		return p->program;
	return strcmp(field->name, "interp") ? NULL : p->interp;
}

/* Where @field's string lies and how long it is; false: not within @raw. */
static bool find_string(const struct ap_bytes *raw, const struct tp_field *field, u32 *at, u32 *len)
{
	u32 where;

	if (field->kind != TP_DYNAMIC || field->size != sizeof(where) ||
	    field->offset + sizeof(where) > raw->len)
		return false;
	memcpy(&where, raw->bytes + field->offset, sizeof(where));
	*at = where & 0xffff;
	*len = where >> 16;
	return *at <= raw->len && *len <= raw->len - *at;
}

/*
 * The kernel has executed the runtime's file: in the place of its name stands the program's. The
 * strings lie behind the fields, in their order.
 */
static void name_program(const struct guest_process *p, const struct tp_format *format,
			 struct ap_bytes *raw)
{
	static u8 bytes[3 * PATH_MAX + TP_SIZE_MAX];
	u32 end = raw->len, at, len;

	if (!p->program || !p->interp)
		return;
	for (u32 i = 0; i < format->nr; i++)
		if (find_string(raw, &format->field[i], &at, &len))
			end = (u32)min_u64(end, at);
	if (end > TP_SIZE_MAX)
		return;
	memcpy(bytes, raw->bytes, end);
	for (u32 i = 0; i < format->nr; i++) {
		const struct tp_field *field = &format->field[i];
		const char *name = name_of(p, field);
		u32 where;

		if (!find_string(raw, field, &at, &len))
			continue;
		if (name)
			len = (u32)strlen(name) + 1;
		if (len > sizeof(bytes) - 8 - end)
			return;
		memcpy(bytes + end, name ? (const u8 *)name : raw->bytes + at, len);
		where = end | len << 16;
		memcpy(bytes + field->offset, &where, sizeof(where));
		end += len;
	}
	/* With its size in front it is a multiple of 8. */
	raw->len = (u32)(ALIGN_UP(end + 4, 8u) - 4);
	memset(bytes + end, 0, raw->len - end);
	raw->bytes = bytes;
}

/* The task's name: that of the program, or what the kernel says before it is. */
static void name_task(const struct guest_process *p, const struct tp_format *format,
		      const struct ap_bytes *raw, char *comm, size_t size)
{
	const struct tp_field *field = tp_field_find(format, "comm", 4);
	const char *name = p->program, *last = name ? strrchr(name, '/') : NULL;
	u32 at, len;

	*comm = '\0';
	if (field && find_string(raw, field, &at, &len))
		snprintf(comm, size, "%.*s", (int)len, (const char *)raw->bytes + at);
	else if (name)
		snprintf(comm, size, "%.15s", last ? last + 1 : name);
}

/* Whether the filter of @probe, if there is one here, lets what an execve tells pass. */
static bool passes(const struct guest_thread *th, const struct probe *probe,
		   const struct ap_record *rec, const struct ap_bytes *raw)
{
	const struct tp_format *format = tracepoint_exec_format(th->process->s,
								event_attr(probe->event)->config);
	const struct tp_filter *filter = kernel_probe_filtered(probe);
	u8 record[3 * PATH_MAX + TP_SIZE_MAX] = {0};
	char comm[16];
	struct tp_context context = {.cpu = rec->id.cpu, .comm = comm, .size = raw->len};

	if (!filter || !format)
		return true;
	if (raw->len > sizeof(record))
		return false;
	memcpy(record, raw->bytes, raw->len);
	name_task(th->process, format, raw, comm, sizeof(comm));
	return tp_filter_passes(filter, record, &context);
}

static void tell_sample(struct guest_thread *th, const struct thread_records *r,
			struct record_probe *rp, const struct ap_record *rec)
{
	struct probe *probe = kernel_probe_whose(rp, rec->id.cpu);
	const struct tp_format *format;
	struct sample_facts facts = {
		.task = th->task,
		.cpumode = rec->misc & PERF_RECORD_MISC_CPUMODE_MASK,
		.has = PERF_SAMPLE_RAW,
		.sample = rec->sample,
	};

	set_moment(th, rec);
	set_cpu(th, rec->id.cpu);
	if (rp->attr.sample_type & PERF_SAMPLE_PERIOD)
		facts.has |= PERF_SAMPLE_PERIOD;
	if (rec->sample.regs_intr.abi != PERF_SAMPLE_REGS_ABI_NONE)
		facts.has |= PERF_SAMPLE_REGS_INTR;
	facts.kernel_chain = kernel_part(&rec->sample.callchain);
	facts.sample.callchain = (struct ap_callchain){0};
	add_call(th, r, rec, &facts);
	format = tracepoint_exec_format(th->process->s, rp->attr.config);
	if (format)
		name_program(th->process, format, &facts.sample.raw);
	if (!kernel_probe_filtered(probe)) {
		probe_recorded(probe, &facts);
	} else if (passes(th, probe, rec, &facts.sample.raw)) {
		rp->passed++;
		facts.has &= ~(u64)PERF_SAMPLE_PERIOD;
		probe_passed(probe, &facts);
	}
}

static struct ap_layout layout_of(const struct guest_thread *th, const struct kernel_record *k,
				  struct record_probe **rp)
{
	struct ap_layout layout = {.sample_type = RECORD_COMMON, .sample_id_all = true};

	*rp = NULL;
	if (k->header.type == PERF_RECORD_SAMPLE && k->header.size >= 16) {
		u64 id;

		memcpy(&id, k->bytes + 8, sizeof(id));
		*rp = kernel_probe_find(th, id);
		if (*rp) {
			layout.sample_type = (*rp)->attr.sample_type;
			layout.sample_regs_user = (*rp)->attr.sample_regs_user;
			layout.sample_regs_intr = (*rp)->attr.sample_regs_intr;
		}
	}
	return layout;
}

/* NULL: it is gone. */
static struct event *event_of(const struct guest_thread *th, u64 id, u32 cpu)
{
	const struct record_probe *rp = kernel_probe_find(th, id);

	return rp ? kernel_probe_whose(rp, cpu)->event : NULL;
}

static void tell(struct guest_thread *th, const struct thread_records *r,
		 const struct kernel_record *k)
{
	struct record_probe *rp;
	struct ap_layout layout = layout_of(th, k, &rp);
	struct event *event;
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
		event = event_of(th, rec.throttle.id, rec.id.cpu);
		set_moment(th, &rec);
		if (event)
			event_throttled(event, rec.type == PERF_RECORD_THROTTLE);
		break;
	case PERF_RECORD_LOST:
		event = event_of(th, rec.lost.id, rec.id.cpu);
		if (event)
			event_lost_samples(event, rec.lost.lost);
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
	while (kernel_record_next(&r->kernel, RECORD_COMMON, time, &k)) {
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
			records_drain(th, th->trace && th->trace->trace ? th->trace->looked : now);
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

	if (!r)
		return;
	kernel_probes_free(th);
	if (r->switches >= 0)
		close(r->switches);
	if (r->code >= 0)
		close(r->code);
	kernel_stops_release(&r->kernel);
	free(r->call);
	free(r);
	th->records = NULL;
}
