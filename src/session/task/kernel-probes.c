#include "session/task/kernel-probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "abi/trace.h"
#include "pmu/tracepoint-filter.h"
#include "session/task/thread-records-priv.h"
#include "session/task/thread-trace-priv.h"

bool kernel_probe_wants_calls(const struct probe *probe)
{
	const struct pe_attr *attr = event_attr(probe->event);

	return probe->kind == PROBE_KERNEL && event_is_sampling(probe->event) &&
	       (attr->sample_type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER) ||
		(attr->sample_type & PERF_SAMPLE_CALLCHAIN && !attr->exclude_callchain_user));
}

static const struct probe *original_of(const struct probe *probe)
{
	return probe->event->parent ? probe_of(probe->event->parent) : probe;
}

const struct tp_filter *kernel_probe_filtered(const struct probe *probe)
{
	return original_of(probe)->filter;
}

/*
 * As the guest's, but for what is the session's: who is told, what is taken from a sample and in
 * which order. The kernel keeps periods and frequencies, but of what is filtered here.
 */
static struct pe_attr probe_attr(const struct probe *probe)
{
	const struct event *event = probe->event;
	const struct pe_attr *guests = event_attr(event);
	struct pe_attr attr = recorder_attr();

	attr.type = guests->type;
	attr.config = guests->config;
	attr.disabled = 1;
	attr.exclude_user = guests->exclude_user;
	attr.exclude_kernel = guests->exclude_kernel;
	attr.exclude_hv = guests->exclude_hv;
	attr.exclude_idle = guests->exclude_idle;
	attr.sigtrap = attr.remove_on_exec = guests->sigtrap;
	attr.sig_data = guests->sigtrap ? TRACE_SIG_DATA : 0;
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
	if (kernel_probe_filtered(probe)) {
		attr.sample_period = 1;
		attr.freq = 0;
		attr.sample_type |= PERF_SAMPLE_RAW;
	}
	return attr;
}

static struct probe *first_user(const struct record_probe *rp)
{
	return container_of(rp->users.next, struct probe, watched);
}

/* The signal would end a thread that has no runtime yet, or is about to get another. */
static bool may_be_stopped(const struct guest_thread *th)
{
	return guest_thread_meter(th) && !th->process->execing &&
	       !(th->trace && th->trace->left_alone);
}

static void open_it(struct record_probe *rp)
{
	const struct probe *original = original_of(first_user(rp));
	const char *filter = original->filter ? NULL : original->text;

	if (rp->attr.sigtrap && !may_be_stopped(rp->thread))
		return;
	rp->attr.enable_on_exec = rp->on_exec;
	rp->fd = recorder_open(rp->thread, rp->thread->records, &rp->attr);
	if (rp->fd >= 0 && (ioctl(rp->fd, PERF_EVENT_IOC_ID, &rp->id) ||
			    (filter && ioctl(rp->fd, PERF_EVENT_IOC_SET_FILTER, filter)))) {
		close(rp->fd);
		rp->fd = -1;
	}
	rp->period = rp->attr.sample_period;
	rp->counted = 0;
	rp->enabled = false;
}

/* What nobody has been told of; 0: nothing, or there is no event of the kernel's. */
static u64 count_more(struct record_probe *rp)
{
	u64 now, more;

	if (kernel_probe_filtered(first_user(rp)))
		now = rp->passed;
	else if (rp->fd < 0 || read(rp->fd, &now, sizeof(now)) != sizeof(now))
		return 0;
	more = now - rp->counted;
	rp->counted = now;
	return more;
}

static void enable(struct record_probe *rp)
{
	const struct event *event = rp->active->event;
	u64 period = event->attr.freq ? event->attr.sample_freq : event->hw.sample_period;

	if (rp->fd < 0)
		return;
	if (event_is_sampling(event) && !kernel_probe_filtered(rp->active) &&
	    period != rp->period && !ioctl(rp->fd, PERF_EVENT_IOC_PERIOD, &period))
		rp->period = period;
	if (!rp->enabled)
		ioctl(rp->fd, PERF_EVENT_IOC_ENABLE, 0);
	rp->enabled = true;
}

static void disable(struct record_probe *rp)
{
	rp->enabled = false;
	if (rp->fd < 0)
		return;
	ioctl(rp->fd, PERF_EVENT_IOC_DISABLE, 0);
	(void)count_more(rp);
}

void kernel_probes_settle(struct session *s)
{
	struct record_probe *rp;

	if (!s->kernel_probes_off)
		return;
	s->kernel_probes_off = false;
	list_for_each_entry (rp, &s->kernel_probes, all)
		if (!rp->active && rp->enabled)
			disable(rp);
}

void kernel_probes_watch(struct guest_thread *th)
{
	struct record_probe *rp;

	list_for_each_entry (rp, &th->records->probes, link) {
		if (rp->fd >= 0)
			continue;
		open_it(rp);
		if (rp->active)
			enable(rp);
	}
}

void kernel_probes_stop(struct guest_thread *th, bool on)
{
	struct record_probe *rp;

	if (!th->records)
		return;
	if (on)
		kernel_probes_watch(th);
	list_for_each_entry (rp, &th->records->probes, link) {
		if (on || !rp->attr.sigtrap || rp->fd < 0)
			continue;
		if (rp->active)
			rp->active->event->pmu->read(rp->active->event);
		close(rp->fd);
		rp->fd = -1;
	}
}

static bool same_filter(const struct probe *a, const struct probe *b)
{
	const char *x = original_of(a)->text, *y = original_of(b)->text;

	return x == y || (x && y && !strcmp(x, y));
}

/*
 * Whether @probe can do with @rp: the others that do are on other CPUs. With a longer period each
 * has a phase of its own.
 */
static bool may_share(const struct record_probe *rp, const struct probe *probe)
{
	const struct event *event = probe->event;
	struct pe_attr attr = probe_attr(probe);
	const struct probe *other;

	if (event->cpu < 0 || rp->on_exec || attr.freq || attr.sample_period > 1)
		return false;
	attr.enable_on_exec = rp->attr.enable_on_exec;
	if (memcmp(&attr, &rp->attr, sizeof(attr)) != 0)
		return false;
	list_for_each_entry (other, &rp->users, watched)
		if (other->event->cpu < 0 || other->event->cpu == event->cpu ||
		    !same_filter(other, probe))
			return false;
	return true;
}

static void use(struct record_probe *rp, struct probe *probe)
{
	list_add_tail(&probe->watched, &rp->users);
	probe->host = rp;
}

/* Of @th's thread; NULL: there is no memory for it. */
static struct record_probe *make(struct guest_thread *th, struct probe *probe, bool on_exec)
{
	struct record_probe *rp = calloc(1, sizeof(*rp));

	if (!rp)
		return NULL;
	rp->thread = th;
	rp->attr = probe_attr(probe);
	rp->fd = -1;
	rp->on_exec = on_exec;
	list_init(&rp->users);
	list_add_tail(&rp->link, &th->records->probes);
	list_add_tail(&rp->all, &th->process->s->kernel_probes);
	use(rp, probe);
	if (th->tid)
		open_it(rp);
	return rp;
}

/* The event of @probe on the thread that it is on; NULL: there is none, and no memory for it. */
static struct record_probe *get(struct probe *probe, bool on_exec)
{
	struct guest_thread *th = task_host(event_on_task(probe->event));
	const struct thread_records *r = th ? records_of_thread(th) : NULL;
	struct record_probe *rp;

	if (probe->host || !r)
		return probe->host;
	list_for_each_entry (rp, &r->probes, link) {
		if (on_exec || !may_share(rp, probe))
			continue;
		use(rp, probe);
		return rp;
	}
	return make(th, probe, on_exec);
}

static void free_it(struct record_probe *rp)
{
	if (rp->fd >= 0)
		close(rp->fd);
	list_del(&rp->link);
	list_del(&rp->all);
	free(rp);
}

static void put(struct probe *probe)
{
	struct record_probe *rp = probe->host;

	if (!rp)
		return;
	kernel_probe_disarm(probe);
	list_del(&probe->watched);
	probe->host = NULL;
	if (list_empty(&rp->users))
		free_it(rp);
}

void kernel_probes_free(struct guest_thread *th)
{
	struct record_probe *rp, *tmp;
	bool last;

	list_for_each_entry_safe (rp, tmp, &th->records->probes, link)
		do {
			struct probe *probe = first_user(rp);

			/* With the last one it is gone. */
			last = probe->watched.next == &rp->users;
			put(probe);
		} while (!last);
}

void kernel_probe_on_exec(struct probe *probe)
{
	(void)get(probe, true);
}

void kernel_probes_exec(struct guest_thread *th)
{
	struct record_probe *rp;

	if (!th->records)
		return;
	list_for_each_entry (rp, &th->records->probes, link) {
		/* The kernel has turned it on. */
		if (rp->on_exec && rp->fd >= 0) {
			rp->enabled = true;
			th->process->s->kernel_probes_off = true;
		}
		rp->on_exec = false;
	}
}

int kernel_probe_open(void *ctx, struct probe *probe)
{
	struct pe_attr attr = probe_attr(probe);

	(void)ctx;
	probe->anchor = kernel_event_open(&attr, 0);
	return probe->anchor < 0 ? probe->anchor : 0;
}

void kernel_probe_close(void *ctx, struct probe *probe)
{
	(void)ctx;
	put(probe);
	if (probe->anchor >= 0)
		close(probe->anchor);
	free(probe->text);
}

void kernel_probe_arm(struct probe *probe)
{
	struct record_probe *rp = get(probe, false);

	if (!rp)
		return;
	rp->active = probe;
	enable(rp);
}

void kernel_probe_disarm(struct probe *probe)
{
	struct record_probe *rp = probe->host;

	if (!rp || rp->active != probe)
		return;
	rp->active = NULL;
	rp->thread->process->s->kernel_probes_off = true;
}

bool kernel_probe_count(void *ctx, struct probe *probe, u64 *more)
{
	struct record_probe *rp = probe->host;

	(void)ctx;
	if (!rp || rp->fd < 0 || rp->active != probe)
		return false;
	*more = count_more(rp);
	return true;
}

/* Those that it shares with have another filter from here on. */
static int filter_alone(struct probe *probe, const char *text)
{
	struct record_probe *rp = probe->host;
	struct guest_thread *th = rp->thread;
	bool on = rp->active == probe;
	u64 unread = 0;

	if (rp->users.next->next == &rp->users && !kernel_probe_filtered(probe))
		return rp->fd >= 0 && ioctl(rp->fd, PERF_EVENT_IOC_SET_FILTER, text) ? -errno : 0;
	unread = on && read(rp->fd, &unread, sizeof(unread)) == sizeof(unread)
			 ? unread - rp->counted
			 : 0;
	put(probe);
	rp = make(th, probe, false);
	if (!rp)
		return -ENOMEM;
	rp->counted -= unread;
	if (on)
		kernel_probe_arm(probe);
	return 0;
}

int kernel_probe_filter(void *ctx, struct probe *probe, const char *text)
{
	struct session *s = ctx;
	struct record_probe *rp, *tmp;
	struct probe *user, *next;
	const struct tp_format *format;
	const struct list *last;
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
	/* The kernel executes the runtime's file: the guest's name is known here alone. */
	format = tracepoint_exec_format(s, event_attr(probe->event)->config);
	if (format && tp_filter_parse(format, text, &probe->filter))
		probe->filter = NULL;
	last = s->kernel_probes.prev;
	list_for_each_entry_safe (rp, tmp, &s->kernel_probes, all) {
		bool is_last = &rp->all == last;

		list_for_each_entry_safe (user, next, &rp->users, watched) {
			int failed = original_of(user) == probe ? filter_alone(user, text) : 0;

			err = failed ? failed : err;
		}
		/* Those behind it were made here, with the filter. */
		if (is_last)
			break;
	}
	return err;
}

int kernel_probe_bpf(void *ctx, struct probe *probe)
{
	const struct session *s = ctx;

	if (!s->call || s->call->fd_in < 0)
		return -EBADF;
	return ioctl(probe->anchor, PERF_EVENT_IOC_SET_BPF, s->call->fd_in) ? -errno : 0;
}

struct record_probe *kernel_probe_find(const struct guest_thread *th, u64 id)
{
	struct record_probe *rp;

	list_for_each_entry (rp, &th->records->probes, link)
		if (rp->fd >= 0 && rp->id == id)
			return rp;
	return NULL;
}

/* Of @rp's; NULL: none of them is on @cpu. */
static struct probe *user_on(const struct record_probe *rp, u32 cpu)
{
	struct probe *probe;

	list_for_each_entry (probe, &rp->users, watched)
		if (probe->event->cpu < 0 || (u32)probe->event->cpu == cpu)
			return probe;
	return NULL;
}

/*
 * Of events on one CPU each the one of that CPU, though another was on when the task was brought
 * there unseen.
 */
struct probe *kernel_probe_whose(const struct record_probe *rp, u32 cpu)
{
	struct probe *probe = user_on(rp, cpu), *first = first_user(rp);
	const struct record_probe *other;

	if (probe)
		return probe;
	list_for_each_entry (other, &rp->thread->records->probes, link) {
		probe = user_on(other, cpu);
		if (probe && probe->event->cpu == (int)cpu &&
		    probe->event->owner == first->event->owner &&
		    other->attr.type == rp->attr.type && other->attr.config == rp->attr.config)
			return probe;
	}
	return rp->active ? rp->active : first;
}
