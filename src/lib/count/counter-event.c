#include "lib/count/event-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <anyperf/spec.h>

#include "lib/refusal/fail.h"
#include "lib/machine/machine-pmu.h"

/* Newer than some system headers. */
#ifndef PERF_EVENT_IOC_MODIFY_ATTRIBUTES
#define PERF_EVENT_IOC_MODIFY_ATTRIBUTES _IOW('$', 11, struct perf_event_attr *)
#endif

static void event_free(struct ap_event *e)
{
	if (!e)
		return;
	free(e->attr);
	free(e->name);
	free(e);
}

/* A copy of @attr with room for every field that this library knows; beyond them, as it came. */
static struct pe_attr *attr_copy(const struct perf_event_attr *attr)
{
	u32 size = attr->size ? attr->size : PE_ATTR_SIZE_VER0;
	struct pe_attr *copy = calloc(1, size > sizeof(*copy) ? size : sizeof(*copy));

	if (!copy)
		return NULL;
	memcpy(copy, attr, size);
	copy->size = size;
	return copy;
}

static struct ap_event *event_new(struct ap_machine *m, const struct perf_event_attr *attr,
				  const struct ap__where *where)
{
	struct ap_event *e = calloc(1, sizeof(*e));
	char name[128];

	if (!e)
		return NULL;
	e->m = m;
	e->tid = where->tid;
	e->cpu = where->cpu;
	e->leader = where->leader;
	e->members = 1;
	e->attr = attr_copy(attr);
	e->name = strdup(where->name ? where->name : ap_attr_describe(attr, m, name, sizeof(name)));
	if (e->attr && e->name)
		return e;
	event_free(e);
	return NULL;
}

int ap__event_open(struct ap_event **out, struct ap_machine *m, const struct perf_event_attr *attr,
		   const struct ap__where *where, struct ap_error *err)
{
	u64 flags = PERF_FLAG_FD_CLOEXEC;
	struct ap_event *e;
	struct ap__ask ask;
	int group = -1;
	pid_t pid;

	if (attr->size > (u32)sysconf(_SC_PAGESIZE) ||
	    (attr->size && attr->size < PE_ATTR_SIZE_VER0))
		return ap__fail(err, -E2BIG, AP_CAUSE_BAD_VALUE,
				"attr.size is %u; it is between 64 and the size of a page",
				attr->size);
	e = event_new(m, attr, where);
	if (!e)
		return ap__fail_memory(err);
	if (where->leader)
		group = where->leader->handle;
	if (where->output && !where->leader) {
		group = where->output->handle;
		flags |= PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT;
	}
	pid = where->tid;
	if (where->cgroup_fd >= 0) {
		pid = where->cgroup_fd;
		flags |= PERF_FLAG_PID_CGROUP;
	}
	ask = (struct ap__ask){.attr = e->attr,
			       .name = e->name,
			       .tid = where->tid,
			       .cpu = where->cpu,
			       .has_leader = where->leader,
			       .cgroup = where->cgroup_fd >= 0,
			       .cgroup_fd = where->cgroup_fd};
	e->handle = ap__open_compat(m, e->attr, pid, where->cpu, group, flags, &ask.known_size);
	if (e->handle < 0) {
		int r = ap__explain_open(m, &ask, -e->handle, err);

		event_free(e);
		return r;
	}
	if (e->leader)
		e->leader->members++;
	*out = e;
	if (where->output && where->leader) {
		int r = ap_event_set_output(e, where->output, err);

		if (r) {
			ap_event_close(e);
			return r;
		}
	}
	return 0;
}

int ap_event_open(struct ap_event **out, struct ap_machine *m, const struct perf_event_attr *attr,
		  const struct ap_event_opts *opts, struct ap_error *err)
{
	struct ap_event_opts o = {.size = sizeof(o)};
	struct ap_place place = {.tid = 0, .cpu = -1};
	struct ap__where where;
	struct ap_event *e = NULL;
	int r;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	if (o.place)
		place = *o.place;
	where = (struct ap__where){.tid = place.tid,
				   .cpu = place.cpu,
				   .cgroup_fd = -1,
				   .leader = o.leader,
				   .output = o.output,
				   .name = o.name};
	if (place.cpu < -1)
		return ap__fail(err, -EINVAL, AP_CAUSE_CPU, "there is no CPU %d", place.cpu);
	r = o.cgroup ? 0 : ap__pmu_refuse_self(m, place.tid, err);
	if (r)
		return r;
	if (o.cgroup) {
		where.cgroup_fd = ap__cgroup_open(m, o.cgroup, err);
		if (where.cgroup_fd < 0)
			return where.cgroup_fd;
		where.tid = -1;
	}
	r = ap__event_open(&e, m, attr, &where, err);
	if (where.cgroup_fd >= 0)
		close(where.cgroup_fd);
	if (!r)
		*out = e;
	return r;
}

void ap_event_close(struct ap_event *e)
{
	if (!e)
		return;
	if (e->page)
		e->m->ops->munmap(e->m->be, e->page, e->page_len);
	e->m->ops->close(e->m->be, e->handle);
	event_free(e);
}

int ap_event_fd(const struct ap_event *e)
{
	return e->handle;
}

const struct perf_event_attr *ap_event_attr(const struct ap_event *e)
{
	return (const struct perf_event_attr *)e->attr;
}

static int control(struct ap_event *e, unsigned long request, unsigned long arg)
{
	return e->m->ops->ioctl(e->m->be, e->handle, request, arg);
}

static unsigned long scope_flag(enum ap_scope scope)
{
	return scope == AP_GROUP ? PERF_IOC_FLAG_GROUP : 0;
}

int ap_event_enable(struct ap_event *e, enum ap_scope scope)
{
	return control(e, PERF_EVENT_IOC_ENABLE, scope_flag(scope));
}

int ap_event_disable(struct ap_event *e, enum ap_scope scope)
{
	return control(e, PERF_EVENT_IOC_DISABLE, scope_flag(scope));
}

int ap_event_reset(struct ap_event *e, enum ap_scope scope)
{
	return control(e, PERF_EVENT_IOC_RESET, scope_flag(scope));
}

/* Fills in @err for a call with the errno -@r that the backend can explain; else false. */
static bool told(struct ap_event *e, int r, struct ap_error *err)
{
	if (r < 0 && e->m->ops->refusal)
		ap__tell(err, e->name, e->m->ops->refusal(e->m->be));
	return r < 0 && e->m->ops->refusal;
}

#define refuse(e, r, err, id, ...) ap__refuse(err, r, (e)->name, id, __VA_ARGS__)

/* An errno of the call @what that says no more than it says. */
static int call_failed(struct ap_event *e, int r, const char *what, struct ap_error *err)
{
	return refuse(e, r, err, CALL_ERRNO, .name = {what, strerror(-r)});
}

int ap_event_refresh(struct ap_event *e, int overflows, struct ap_error *err)
{
	int r;

	if (overflows <= 0)
		return refuse(e, -EINVAL, err, REFRESH_NUMBER);
	r = control(e, PERF_EVENT_IOC_REFRESH, (unsigned long)overflows);
	if (!r || told(e, r, err))
		return r;
	if (r == -EINVAL && e->attr->inherit)
		return refuse(e, r, err, REFRESH_INHERITED);
	if (r == -EINVAL)
		return refuse(e, r, err, NOT_SAMPLING, .name = {"REFRESH"});
	return call_failed(e, r, "refresh", err);
}

int ap_event_set_period(struct ap_event *e, uint64_t period, struct ap_error *err)
{
	const char *what = e->attr->freq ? "frequency" : "period";
	long long max = -1;
	int r;

	r = control(e, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
	if (!r || told(e, r, err))
		return r;
	if (r != -EINVAL)
		return call_failed(e, r, e->attr->freq ? "new frequency" : "new period", err);
	if (!e->attr->sample_period)
		return refuse(e, r, err, NOT_SAMPLING, .name = {"PERIOD"});
	if (e->attr->freq &&
	    ap__slurp_number(e->m, &max, "/proc/sys/kernel/perf_event_max_sample_rate") == 0 &&
	    period > (uint64_t)max)
		return refuse(e, r, err, SAMPLE_RATE, .number = {period, (u64)max});
	return refuse(e, r, err, PERIOD_BAD, .number = {period}, .name = {what});
}

int ap_event_id(struct ap_event *e, uint64_t *id)
{
	struct ap_value v;
	u64 got = 0;
	int r;

	if (e->id) {
		*id = e->id;
		return 0;
	}
	r = control(e, PERF_EVENT_IOC_ID, (unsigned long)&got);
	/* Before 3.12 only a read tells it. */
	if (r == -ENOTTY && (e->attr->read_format & PERF_FORMAT_ID) &&
	    !(e->attr->read_format & PERF_FORMAT_GROUP) && ap_event_read(e, &v, 1) == 1) {
		got = v.id;
		r = 0;
	}
	if (r)
		return r;
	*id = e->id = got;
	return 0;
}

int ap_event_set_filter(struct ap_event *e, const char *filter, struct ap_error *err)
{
	int r = control(e, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter);

	if (!r || told(e, r, err))
		return r;
	if (r == -EINVAL && e->attr->type == PERF_TYPE_TRACEPOINT)
		return refuse(e, r, err, FILTER_TEXT, .name = {filter});
	if (r == -EEXIST)
		return refuse(e, r, err, FILTER_HAS_ONE);
	if (r == -EINVAL)
		return refuse(e, r, err, FILTER_KIND, .name = {filter});
	return refuse(e, r, err, FILTER_ERRNO, .name = {filter, strerror(-r)});
}

int ap_event_set_bpf(struct ap_event *e, int prog_fd, struct ap_error *err)
{
	int r = control(e, PERF_EVENT_IOC_SET_BPF, (unsigned long)prog_fd);

	if (!r || told(e, r, err))
		return r;
	if (r == -EBADF)
		return refuse(e, r, err, BPF_FD, .number = {prog_fd});
	if (r == -EACCES || r == -EPERM)
		return refuse(e, r, err, CAP_SET_BPF);
	if (r == -EEXIST)
		return refuse(e, r, err, BPF_HAS_ONE);
	return refuse(e, r, err, BPF_KIND, .name = {strerror(-r)});
}

int ap_event_query_bpf(struct ap_event *e, uint32_t *ids, unsigned int max, unsigned int *n,
		       struct ap_error *err)
{
	/* struct perf_event_query_bpf: ids_len in, prog_cnt out, then the ids. */
	u32 *query = calloc(2 + (size_t)max, sizeof(*query));
	int r;

	if (!query)
		return ap__fail_memory(err);
	query[0] = max;
	r = control(e, _IOWR('$', 10, void *), (unsigned long)query);
	if (r == 0 || r == -ENOSPC)
		*n = query[1];
	if (r == 0)
		memcpy(ids, query + 2, (query[1] < max ? query[1] : max) * sizeof(*ids));
	free(query);
	if (!r || told(e, r, err))
		return r;
	if (r == -ENOSPC)
		return refuse(e, r, err, BPF_ROOM, .number = {*n, max});
	if (r == -EINVAL)
		return refuse(e, r, err, BPF_TRACEPOINTS, .name = {"this event"});
	if (r == -EPERM)
		return refuse(e, r, err, CAP_QUERY_BPF);
	return call_failed(e, r, "asking for BPF programs", err);
}

int ap_event_modify(struct ap_event *e, const struct perf_event_attr *attr, struct ap_error *err)
{
	struct pe_attr *copy = attr_copy(attr);
	int r;

	if (!copy)
		return ap__fail_memory(err);
	/*
	 * The kernel compares the sizes too, and opening has trimmed ours; what is beyond is zero.
	 */
	if (copy->size >= PE_ATTR_SIZE_VER2)
		copy->size = e->attr->size;
	r = control(e, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)copy);
	if (r == 0) {
		e->attr->bp_type = copy->bp_type;
		e->attr->bp_addr = copy->bp_addr;
		e->attr->bp_len = copy->bp_len;
	}
	free(copy);
	if (!r || told(e, r, err))
		return r;
	if (r == -EOPNOTSUPP)
		return refuse(e, r, err, MODIFY_BREAKPOINTS);
	if (r == -EINVAL)
		return refuse(e, r, err, MODIFY_FIELDS);
	return call_failed(e, r, "modify", err);
}

int ap_event_set_output(struct ap_event *e, struct ap_event *to, struct ap_error *err)
{
	int r = control(e, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)(to ? to->handle : -1));

	if (!r || told(e, r, err))
		return r;
	return r == -EINVAL ? refuse(e, r, err, OUTPUT_MISFIT) : call_failed(e, r, "output", err);
}

int ap_event_pause_output(struct ap_event *e, bool pause, struct ap_error *err)
{
	int r = control(e, PERF_EVENT_IOC_PAUSE_OUTPUT, pause);

	if (!r || told(e, r, err))
		return r;
	return r == -EINVAL ? refuse(e, r, err, PAUSE_NO_BUFFER) : call_failed(e, r, "pause", err);
}

int ap_event_read(struct ap_event *e, struct ap_value *values, unsigned int max)
{
	/*
	 * On the stack, so that a signal handler may read; only groups of 80 and more need the
	 * heap.
	 */
	u64 words[256], *buf = words;
	const struct ap_event *leader = e->leader ? e->leader : e;
	size_t want = ap_read_size(e->attr->read_format, leader->members);
	ssize_t n;
	int r;

	if (want > sizeof(words)) {
		buf = malloc(want);
		if (!buf)
			return -ENOMEM;
	}
	n = e->m->ops->read(e->m->be, e->handle, buf, want > sizeof(words) ? want : sizeof(words));
	r = n < 0 ? (int)n : ap_read_decode(buf, (size_t)n, e->attr->read_format, values, max);
	if (buf != words)
		free(buf);
	return r;
}
