/*
 * Any sequence of open, ioctl, read, map, fork, exec, exit, migration and close, on a fake host.
 * After each step core_check() holds, and what can be said of a count without knowing the sequence
 * is true: the fake PMU counts one a nanosecond, so an event that was never reset has counted
 * exactly as long as it ran.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/check.h"
#include "base/cursor.h"
#include "unit/core/fake.h"

#define MAX_EVENTS 24
#define MAX_TASKS  8

struct run {
	struct fake *f;
	struct cursor in;
	int fds[MAX_EVENTS];
	u32 nr_fds;
	int tids[MAX_TASKS];
	u32 nr_tasks;
	int next_tid;
	bool resets; /* this run may reset, and so cannot compare counts with times */
	struct event *maps[MAX_EVENTS * 4];
	u32 nr_maps;
	struct cgroup *cgroups[3];
};

static u32 take(struct run *r, u32 below)
{
	return cursor_u8(&r->in) % below;
}

static int any_fd(struct run *r)
{
	return r->nr_fds ? r->fds[take(r, r->nr_fds)] : -1;
}

static struct task *any_task(struct run *r)
{
	return fake_task(r->f, r->tids[take(r, r->nr_tasks)])->task;
}

static void keep(struct run *r, int fd)
{
	if (fd < 0)
		return;
	if (r->nr_fds == MAX_EVENTS) {
		fake_close(r->f, fd);
		return;
	}
	r->fds[r->nr_fds++] = fd;
}

static void do_open(struct run *r)
{
	u64 bits = cursor_u16(&r->in);
	struct pe_attr attr = take(r, 3) ? fake_attr() : fake_sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	int pid = -1, cpu = (int)take(r, 3) - 1, group = take(r, 2) ? any_fd(r) : -1;
	u64 flags = 0;

	if (attr.type != PERF_TYPE_SOFTWARE)
		attr.config = take(r, 4) ? 0 : take(r, 8);
	attr.read_format = cursor_u8(&r->in) & 0x1f;
	attr.disabled = bits & 1;
	attr.inherit = bits >> 1 & 1;
	attr.pinned = (bits >> 2 & 7) == 7;
	attr.exclusive = (bits >> 5 & 7) == 7;
	attr.inherit_stat = bits >> 8 & 1;
	attr.enable_on_exec = bits >> 9 & 1;
	attr.remove_on_exec = (bits >> 10 & 3) == 3;
	attr.inherit_thread = (bits >> 12 & 3) == 3;
	if ((bits >> 14 & 3) == 3 && attr.type != PERF_TYPE_SOFTWARE)
		attr.sample_period = 100000;
	switch (take(r, 8)) {
	case 0: break;
	case 1:
		flags = take(r, 8);
		pid = 3000 + (int)take(r, 4);
		break;
	default: pid = r->tids[take(r, r->nr_tasks)];
	}
	keep(r, fake_open_as(r->f, r->tids[take(r, r->nr_tasks)], &attr, pid, cpu, group, flags));
}

/* Every byte of the attr and the arguments as they come. */
static void do_open_any(struct run *r)
{
	struct pe_attr attr = fake_attr();
	u8 *bytes = (u8 *)&attr;
	struct open_call call = {
		.caller = any_task(r), .attr = &attr, .attr_len = sizeof(attr), .cpu = -1};
	u32 n = take(r, 12);
	int err;

	while (n--)
		bytes[take(r, sizeof(attr))] = cursor_u8(&r->in);
	call.attr_len = take(r, 4) ? sizeof(attr) : take(r, sizeof(attr));
	call.pid = (s8)cursor_u8(&r->in);
	call.cpu = (int)take(r, 5) - 2;
	call.group_fd = take(r, 2) ? (int)take(r, 64) - 2 : -1;
	call.flags = take(r, 32);
	err = perf_open(r->f->core, &call);
	CHECK(!err || core_refusal(r->f->core)->err == err);
	CHECK(!err == !core_refusal(r->f->core)->cause);
	CHECK(!call.store_size || err == -E2BIG);
	/* It may count anything, so it is looked at once and closed. */
	if (!err) {
		core_check(r->f->core);
		(void)!event_read(call.event, r->f->words, sizeof(r->f->words));
		event_put(call.event);
	}
}

static void do_close(struct run *r)
{
	u32 i;

	if (!r->nr_fds)
		return;
	i = take(r, r->nr_fds);
	fake_close(r->f, r->fds[i]);
	r->fds[i] = r->fds[--r->nr_fds];
}

static void do_ioctl(struct run *r)
{
	static const u32 cmds[] = {
		PERF_EVENT_IOC_ENABLE,       PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_ENABLE,
		PERF_EVENT_IOC_DISABLE,      PERF_EVENT_IOC_REFRESH, PERF_EVENT_IOC_SET_OUTPUT,
		PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_EVENT_IOC_ID,      PERF_EVENT_IOC_PERIOD,
		PERF_EVENT_IOC_SET_FILTER,   PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_RESET};
	u32 cmd = cmds[take(r, r->resets ? ARRAY_SIZE(cmds) : ARRAY_SIZE(cmds) - 1)];
	int fd = any_fd(r);
	u64 arg = take(r, 4), period = 500 + arg;
	struct ioctl_call call = {.caller = any_task(r), .cmd = cmd, .arg = arg};

	if (fd < 0)
		return;
	if (cmd == PERF_EVENT_IOC_SET_OUTPUT)
		call.arg = arg ? (u64)any_fd(r) : ~0ull;
	if (cmd == PERF_EVENT_IOC_PERIOD) {
		call.in = &period;
		call.in_len = arg ? sizeof(period) : 3;
	}
	if (event_ioctl(fake_event(r->f, fd), &call))
		CHECK(core_refusal(r->f->core)->cause);
}

static void do_fork(struct run *r)
{
	int parent = r->tids[take(r, r->nr_tasks)], tid = r->next_tid++;
	bool thread = take(r, 2);

	if (r->nr_tasks == MAX_TASKS)
		return;
	r->f->hw.init_err = take(r, 16) ? 0 : -ENOSPC;
	if (fake_fork(r->f, parent, tid, thread))
		r->tids[r->nr_tasks++] = tid;
	r->f->hw.init_err = 0;
}

/* The first one stays: somebody has to call. */
static void do_exit(struct run *r)
{
	u32 i;

	if (r->nr_tasks < 2)
		return;
	i = 1 + take(r, r->nr_tasks - 1);
	fake_exit(r->f, r->tids[i]);
	r->tids[i] = r->tids[--r->nr_tasks];
}

static void do_move(struct run *r)
{
	struct task *task = any_task(r);
	u32 where = take(r, 8);

	if (where < 5)
		task_sched_in(task, where & 1);
	else if (where == 5)
		task_sched_out(task);
	else
		task_set_cgroup(task, r->cgroups[take(r, 3)]);
}

static void do_map(struct run *r)
{
	int fd = any_fd(r);
	struct event *event;
	struct map_call call = {.shared = true};

	if (fd < 0 || r->nr_maps == ARRAY_SIZE(r->maps))
		return;
	event = fake_event(r->f, fd);
	call.caller = any_task(r);
	call.len = 4096 * (u64)take(r, 4);
	call.writable = take(r, 2);
	if (event_map(event, &call))
		return;
	if (call.len == 4096 * 3)
		event_lossless(event);
	r->maps[r->nr_maps++] = event;
}

static void do_unmap(struct run *r)
{
	u32 i;

	if (!r->nr_maps)
		return;
	i = take(r, r->nr_maps);
	event_unmap(r->maps[i]);
	r->maps[i] = r->maps[--r->nr_maps];
}

static void do_overflow(struct run *r)
{
	int fd = any_fd(r);

	/* Only what counts can overflow. */
	if (fd < 0 || fake_event(r->f, fd)->state != EVENT_ACTIVE)
		return;
	(void)!event_overflow(fake_event(r->f, fd), &r->f->facts, r->f->throttle);
	if (core_has_backlog(r->f->core))
		core_backlogs_write(r->f->core);
	core_settle(r->f->core);
}

static void check_counts(struct run *r)
{
	for (u32 i = 0; i < r->nr_fds; i++) {
		struct event *event = fake_event(r->f, r->fds[i]);
		u64 format = event->attr.read_format, *w = r->f->words;
		s64 n;

		(void)event_poll(event);
		n = fake_read(r->f, r->fds[i]);
		CHECK(n >= 0 || n == -ECHILD);
		event->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
					  PERF_FORMAT_TOTAL_TIME_RUNNING;
		n = fake_read(r->f, r->fds[i]);
		event->attr.read_format = format;
		CHECK(n == 24 || (n == 0 && event->state == EVENT_ERROR));
		CHECK(!n || w[2] <= w[1]);
		CHECK(!n || r->resets || w[0] == w[2]);
	}
}

static void step(struct run *r)
{
	switch (take(r, 20)) {
	case 0:
	case 1:
	case 2:
	case 3: do_open(r); break;
	case 4: do_close(r); break;
	case 5:
	case 6:
	case 7: do_ioctl(r); break;
	case 8: do_fork(r); break;
	case 9: do_exit(r); break;
	case 10: task_exec(any_task(r)); break;
	case 11:
	case 12: do_move(r); break;
	case 13: perf_prctl(any_task(r), take(r, 2)); break;
	case 14: do_map(r); break;
	case 15: do_unmap(r); break;
	case 16: do_overflow(r); break;
	case 17: do_open_any(r); break;
	case 18: task_uncount(any_task(r)); break;
	default: fake_advance(r->f, 1 + (u64)take(r, 256) * 40000);
	}
}

static void begin(struct run *r)
{
	r->f = fake_new(1 + take(r, 4));
	r->resets = take(r, 2);
	/* What is throttled runs without counting. */
	r->f->throttle = r->resets;
	r->tids[r->nr_tasks++] = 100;
	r->next_tid = 101;
	for (int i = 0; i < 3; i++) {
		r->cgroups[i] = cgroup_new(r->f->core, i ? r->cgroups[0] : NULL, (u64)i + 1);
		CHECK(r->cgroups[i]);
		r->f->cgroup_fds[i] = r->cgroups[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct run r = {.in = cursor_over(data, len)};

	begin(&r);
	while (!r.in.torn && cursor_left(&r.in)) {
		step(&r);
		core_check(r.f->core);
		check_counts(&r);
	}
	while (r.nr_maps)
		do_unmap(&r);
	fake_free(r.f);
	return 0;
}
