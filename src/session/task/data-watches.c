#include "session/task/data-watches.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "session/task/thread-trace-priv.h"
#include "session/task/trace-probes.h"

#define REGISTERS 4u /* that x86 has */

struct data_watch {
	struct list link;   /* thread_trace.watches; alone: of an event of a CPU */
	struct list probes; /* struct probe.watched; not empty */
	u64 addr, len;
	u32 type;
	bool exclude_kernel;
	bool on; /* the kernel's is to be */
	int fd;  /* -1: the thread is not there, or is left alone */
	u64 id;
	u64 stop; /* the number of the last stop of which an access was told */
};

static bool is_for(const struct data_watch *w, const struct pe_attr *attr)
{
	return w->addr == attr->bp_addr && w->len == attr->bp_len && w->type == attr->bp_type &&
	       w->exclude_kernel == attr->exclude_kernel;
}

/* None of those that it is of can be on at the same time as @event. */
static bool is_elsewhere(const struct data_watch *w, const struct event *event)
{
	const struct probe *other;

	list_for_each_entry (other, &w->probes, watched)
		if (event->cpu < 0 || other->event->cpu < 0 || other->event->cpu == event->cpu)
			return false;
	return true;
}

/* The kernel's event, off or on as it was. */
static int open_it(struct thread_trace *tt, struct data_watch *w)
{
	struct pe_attr attr = {
		.bp_addr = w->addr,
		.bp_len = w->len,
		.bp_type = w->type,
		.exclude_kernel = w->exclude_kernel,
	};
	s32 tid = tt->thread->tid;

	/* Who has no meter has no runtime yet: the signal would end it. */
	if (w->fd >= 0 || !tid || !guest_thread_meter(tt->thread) || tt->left_alone ||
	    tt->thread->process->execing)
		return 0;
	w->fd = kernel_watch_open(&tt->stops, tid, &attr, &w->id);
	if (w->fd < 0) {
		int err = w->fd;

		w->fd = -1;
		return err;
	}
	if (w->on)
		ioctl(w->fd, PERF_EVENT_IOC_ENABLE, 0);
	return 0;
}

static void close_it(struct data_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static void put(struct probe *probe)
{
	struct data_watch *w = probe->watch;

	if (!w)
		return;
	probe->watch = NULL;
	list_del(&probe->watched);
	if (!list_empty(&w->probes))
		return;
	close_it(w);
	list_del(&w->link);
	free(w);
}

static struct data_watch *make(struct probe *probe)
{
	const struct pe_attr *attr = event_attr(probe->event);
	struct data_watch *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct data_watch){
		.addr = attr->bp_addr,
		.len = attr->bp_len,
		.type = attr->bp_type,
		.exclude_kernel = attr->exclude_kernel,
		.fd = -1,
	};
	list_init(&w->link);
	list_init(&w->probes);
	list_add_tail(&probe->watched, &w->probes);
	probe->watch = w;
	return w;
}

static int get(struct thread_trace *tt, struct probe *probe)
{
	struct data_watch *w;
	int err;

	list_for_each_entry (w, &tt->watches, link) {
		if (!is_for(w, event_attr(probe->event)) || !is_elsewhere(w, probe->event))
			continue;
		probe->watch = w;
		list_add_tail(&probe->watched, &w->probes);
		return open_it(tt, w);
	}
	w = make(probe);
	if (!w)
		return -ENOMEM;
	list_add_tail(&w->link, &tt->watches);
	err = open_it(tt, w);
	if (err)
		put(probe);
	return err;
}

/*
 * A CPU's event has one in each thread (core/sched/standin.c). The session's own thread, which
 * accesses nothing of theirs, stands in for those that will be.
 */
static int hold(struct session *s, struct probe *probe)
{
	const struct thread_trace *tt;
	struct data_watch *w;

	list_for_each_entry (tt, &s->traces, link) {
		u32 n = 0;

		for (const struct list *l = tt->watches.next; l != &tt->watches; l = l->next)
			n++;
		if (n >= REGISTERS)
			return -ENOSPC;
	}
	w = make(probe);
	if (!w)
		return -ENOMEM;
	w->fd = kernel_watch_hold(event_attr(probe->event), probe->event->cpu);
	if (w->fd < 0) {
		int err = w->fd;

		put(probe);
		return err;
	}
	return 0;
}

/* Whether the kernel has any for a thread that is not there yet. */
static int would_open(const struct pe_attr *attr)
{
	int fd = kernel_watch_hold(attr, -1);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int data_watch_reserve(void *ctx, struct probe *probe)
{
	struct event *event = probe->event;
	struct guest_thread *th = event->target ? task_host(event->target) : NULL;
	struct thread_trace *tt = th ? trace_of_thread(th) : NULL;

	if (!event->target)
		return hold(ctx, probe);
	if (!tt)
		return -ENOMEM;
	/* A child's has what its parent's has, once its thread is there. */
	if (!event->parent && (!th->tid || !guest_thread_meter(th))) {
		int err = would_open(event_attr(event));

		if (err)
			return err;
	}
	return get(tt, probe);
}

void data_watch_release(void *ctx, struct probe *probe)
{
	(void)ctx;
	put(probe);
}

int data_watch_ready(struct thread_trace *tt, struct probe *probe)
{
	if (probe->watch && !is_for(probe->watch, event_attr(probe->event)))
		put(probe);
	return probe->watch ? open_it(tt, probe->watch) : get(tt, probe);
}

void data_watch_on(struct probe *probe)
{
	if (!probe->watch->on && probe->watch->fd >= 0)
		ioctl(probe->watch->fd, PERF_EVENT_IOC_ENABLE, 0);
	probe->watch->on = true;
}

void data_watches_tell(const struct thread_trace *tt, struct trace_watch *watch)
{
	const struct data_watch *w;
	const struct probe *probe;

	memset(watch, 0, sizeof(*watch));
	list_for_each_entry (w, &tt->watches, link)
		list_for_each_entry (probe, &w->probes, watched)
			probe_tell_watch(probe->event, watch);
}

bool data_watches_open(struct thread_trace *tt)
{
	struct data_watch *w;
	bool all = true;

	list_for_each_entry (w, &tt->watches, link)
		if (open_it(tt, w) && w->on)
			all = false;
	return all;
}

void data_watches_close(struct thread_trace *tt)
{
	struct data_watch *w;

	list_for_each_entry (w, &tt->watches, link)
		close_it(w);
}

void data_watches_free(struct thread_trace *tt)
{
	struct data_watch *w, *tmp;
	struct probe *probe, *next;

	list_for_each_entry_safe (w, tmp, &tt->watches, link)
		list_for_each_entry_safe (probe, next, &w->probes, watched)
			put(probe);
}

struct data_watch *data_watch_find(const struct thread_trace *tt, u64 id)
{
	struct data_watch *w;

	list_for_each_entry (w, &tt->watches, link)
		if (w->fd >= 0 && w->id == id)
			return w;
	return NULL;
}

static bool is_within(const u64 *range, u64 addr)
{
	return addr >= __atomic_load_n(&range[0], __ATOMIC_RELAXED) &&
	       addr < __atomic_load_n(&range[1], __ATOMIC_RELAXED);
}

void data_watch_noted(struct thread_trace *tt, struct data_watch *w, const struct kernel_note *note,
		      const struct trace_sample *s, const struct sample_facts *facts)
{
	u32 mode = note->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct sample_facts mine = *facts;
	struct probe_hit hit = {.kind = PROBE_ACCESSED, .watch = w, .cpu = s->cpu};

	mine.sample.phys_addr = note->phys_addr;
	mine.sample.data_page_size = note->page_size;
	if (mode == PERF_RECORD_MISC_KERNEL) {
		mine.cpumode = mode;
		mine.sample.ip = note->ip;
		hit.by_kernel = true;
	} else if (is_within(tt->trace->copy, note->ip)) {
		/* The runtime has done what a kernel does. */
		hit.by_kernel = true;
	} else if (is_within(tt->trace->own[0], note->ip)) {
		return;
	} else {
		/* An instruction has told already, or has but read what its translation writes. */
		if (w->stop == tt->stop ||
		    (s->entry.flags & TRACE_STOP_RETURNED && w->type == HW_BREAKPOINT_W))
			return;
		w->stop = tt->stop;
	}
	if (probes_happened(tt->thread, &tt->probes, &hit, &mine) || w->fd < 0)
		return;
	/* All of its probes are off. */
	for (const struct list *l = w->probes.next; l != &w->probes; l = l->next)
		if (!list_empty(&container_of(l, struct probe, watched)->armed))
			return;
	w->on = false;
	ioctl(w->fd, PERF_EVENT_IOC_DISABLE, 0);
}
