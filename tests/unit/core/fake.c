#include "unit/core/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "pmu/drivers.h"

/* What the core keeps per task and CPU for the fake PMU. */
struct place {
	struct counters counters;
};

static u64 op_clock(void *ctx)
{
	return ((struct fake *)ctx)->now;
}

static u64 op_task_clock(void *ctx, struct task *task)
{
	(void)ctx;
	return ((struct fake_task *)task_host(task))->cpu_time;
}

static void op_timer(void *ctx, u64 deadline)
{
	((struct fake *)ctx)->timer = deadline;
}

static bool op_capable(void *ctx, struct task *task, enum core_cap cap)
{
	struct fake *f = ctx;

	(void)task;
	switch (cap) {
	case CORE_CAP_PERFMON: return f->perfmon;
	case CORE_CAP_SYS_ADMIN: return f->sys_admin;
	case CORE_CAP_KILL: return f->kill;
	case CORE_CAP_IPC_LOCK: return f->ipc_lock;
	case CORE_CAP_INITIAL: return !f->in_namespace;
	default: return false;
	}
}

static bool op_may_access(void *ctx, struct task *task, struct task *target,
			  enum core_access access)
{
	(void)task, (void)target, (void)access;
	return ((struct fake *)ctx)->access;
}

static int op_fd_reserve(void *ctx, struct open_call *call)
{
	(void)call;
	return ((struct fake *)ctx)->fd_err;
}

static struct event *op_fd_event(void *ctx, struct task *caller, int fd)
{
	(void)caller;
	return fd < FAKE_FDS ? ((struct fake *)ctx)->fds[fd] : NULL;
}

static int op_find_task(void *ctx, struct task *caller, int pid, struct task **task)
{
	struct fake_task *t = fake_task(ctx, pid);

	(void)caller;
	if (!t)
		return -ESRCH;
	*task = t->task;
	return 0;
}

static int op_fd_cgroup(void *ctx, struct task *caller, int fd, struct cgroup **cgroup)
{
	struct fake *f = ctx;

	(void)caller;
	if (fd < 3000 || fd >= 3016 || !f->cgroup_fds[fd - 3000])
		return -EBADF;
	*cgroup = f->cgroup_fds[fd - 3000];
	return 0;
}

static int op_fd_bpf(void *ctx, struct task *caller, int fd)
{
	(void)ctx, (void)caller;
	return !fd || fd == 77 ? 0 : fd == 78 ? -EINVAL : -EBADF;
}

static void op_wake(void *ctx, struct event *event)
{
	(void)event;
	((struct fake *)ctx)->wakes++;
}

static void op_event_changed(void *ctx, struct event *event)
{
	((struct fake *)ctx)->changed = event;
}

static void op_sigio(void *ctx, struct event *event, bool hup)
{
	struct fake *f = ctx;

	(void)event;
	f->overflows++;
	f->lasts += hup;
}

static void op_sigtrap(void *ctx, struct event *event, struct task *task, u64 addr)
{
	struct fake *f = ctx;

	(void)event;
	f->traps++;
	f->trap_tid = task_tid(task);
	f->trap_addr = addr;
}

static int op_memory_new(void *ctx, size_t size, void **memory, void **host)
{
	struct fake *f = ctx;

	if (f->memory_err)
		return f->memory_err;
	*memory = aligned_alloc(4096, size);
	CHECK(*memory);
	memset(*memory, 0, size);
	*host = f;
	f->memory += size;
	return 0;
}

static void op_memory_free(void *ctx, void *memory, size_t size, void *host)
{
	struct fake *f = ctx;

	CHECK(host == f && f->memory >= size);
	f->memory -= size;
	free(memory);
}

static u32 op_namespaces(void *ctx, struct task *task, struct perf_ns_link_info *links)
{
	const struct fake *f = ctx;

	for (u32 i = 0; i < f->nr_namespaces; i++)
		links[i] = (struct perf_ns_link_info){.dev = i + 1, .ino = (u64)task_tid(task)};
	return f->nr_namespaces;
}

static void op_mlock_limit(void *ctx, struct task *task, u32 *uid, u64 *limit)
{
	*uid = (u32)((struct fake_task *)task_host(task))->uid;
	*limit = ((struct fake *)ctx)->mlock_limit;
}

static void op_event_free(void *ctx, struct event *event)
{
	(void)event;
	((struct fake *)ctx)->frees++;
}

static const struct core_ops ops = {
	.clock = op_clock,
	.task_clock = op_task_clock,
	.timer = op_timer,
	.capable = op_capable,
	.may_access = op_may_access,
	.fd_reserve = op_fd_reserve,
	.fd_event = op_fd_event,
	.find_task = op_find_task,
	.fd_cgroup = op_fd_cgroup,
	.fd_bpf = op_fd_bpf,
	.wake = op_wake,
	.event_changed = op_event_changed,
	.sigio = op_sigio,
	.sigtrap = op_sigtrap,
	.memory_new = op_memory_new,
	.memory_free = op_memory_free,
	.namespaces = op_namespaces,
	.mlock_limit = op_mlock_limit,
	.event_free = op_event_free,
};

static struct fake_pmu *fake_pmu(struct pmu *pmu)
{
	return container_of(pmu, struct fake_pmu, pmu);
}

static struct fake *fake_of(struct event *event)
{
	return container_of(fake_pmu(event->pmu), struct fake, hw);
}

static struct place *place_of(struct event *event)
{
	struct task *task = event_on_task(event);

	return task ? pmu_task(event->pmu, task) : pmu_cpu(event->pmu, event_on_cpu(event));
}

static int hw_init(struct event *event)
{
	struct fake_pmu *hw = fake_pmu(event->pmu);

	if (event->attr.type != (u32)event->pmu->type)
		return -ENOENT;
	if (!hw->init_err)
		hw->inits++;
	return hw->init_err;
}

static void hw_destroy(struct event *event)
{
	fake_pmu(event->pmu)->destroys++;
}

static u64 hw_raw(struct event *event)
{
	struct task *task = event_on_task(event);

	return task ? ((struct fake_task *)task_host(task))->counter : fake_of(event)->now;
}

static void hw_read(struct event *event)
{
	u64 raw = hw_raw(event);

	if (event->hw.state & HW_STOPPED)
		return;
	event_counted(event, raw - event->hw.prev);
	event->hw.prev = raw;
}

static void hw_start(struct event *event, u32 flags)
{
	if (flags & PMU_EF_RELOAD && event_is_sampling(event))
		(void)event_set_period(event);
	event->hw.state = 0;
	event->hw.prev = hw_raw(event);
}

static void hw_stop(struct event *event, u32 flags)
{
	(void)flags;
	hw_read(event);
	event->hw.state = HW_STOPPED | HW_UPTODATE;
}

static void moved(struct event *event, u32 counter)
{
	event->hw.idx = (s32)counter;
}

static u64 others(struct event *event)
{
	struct cpu *cpu = event_on_cpu(event);
	u64 taken = fake_pmu(event->pmu)->taken;

	if (event_on_task(event))
		return taken | counters_used(&((struct place *)pmu_cpu(event->pmu, cpu))->counters);
	for (struct task *t = cpu_next_task(cpu, NULL); t; t = cpu_next_task(cpu, t))
		taken |= counters_used(&((struct place *)pmu_task(event->pmu, t))->counters);
	return taken;
}

static int hw_add(struct event *event, u32 flags)
{
	struct fake_pmu *hw = fake_pmu(event->pmu);
	u64 all = hw->counters ? ~0ull >> (64 - hw->counters) : 0;
	u64 mask = event->attr.config ? event->attr.config & all : all;

	CHECK(flags & PMU_EF_START);
	hw->adds++;
	if (counters_add(&place_of(event)->counters, event, mask, others(event), moved)) {
		/* In a transaction the verdict may wait for the commit. */
		if (!hw->in_txn)
			return -ENOSPC;
		hw->txn_bad = true;
		event->hw.idx = -1;
	}
	event->hw.state = HW_STOPPED;
	hw_start(event, PMU_EF_RELOAD);
	return 0;
}

static void hw_del(struct event *event, u32 flags)
{
	fake_pmu(event->pmu)->dels++;
	hw_stop(event, flags);
	if (event->hw.idx >= 0)
		counters_del(&place_of(event)->counters, event);
	event->hw.idx = -1;
}

static void hw_start_txn(struct pmu *pmu)
{
	fake_pmu(pmu)->in_txn = true;
	fake_pmu(pmu)->txn_bad = false;
	fake_pmu(pmu)->txns++;
}

static int hw_commit_txn(struct pmu *pmu)
{
	if (fake_pmu(pmu)->txn_bad)
		return -EAGAIN;
	fake_pmu(pmu)->in_txn = false;
	return 0;
}

static void hw_cancel_txn(struct pmu *pmu)
{
	CHECK(fake_pmu(pmu)->in_txn);
	fake_pmu(pmu)->in_txn = false;
	fake_pmu(pmu)->cancels++;
}

static u32 hw_event_idx(struct event *event)
{
	return (u32)event->hw.idx + 1;
}

static u16 hw_event_width(struct event *event)
{
	(void)event;
	return 64;
}

static int hw_check_period(struct event *event, u64 period)
{
	(void)event;
	return period == 13 ? -EINVAL : 0;
}

static const struct pmu_source no_source;

struct fake *fake_new(u32 counters)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct core_config config = {.ops = &ops, .ctx = f, .nr_cpus = 2, .sysctl.paranoid = 2};
	int err;

	CHECK(f);
	f->perfmon = f->sys_admin = f->kill = f->ipc_lock = f->access = true;
	f->timer = CORE_NO_TIMER;
	f->facts.cpumode = PERF_RECORD_MISC_USER;
	f->throttle = true;
	f->core = core_new(&config);
	CHECK(f->core);
	f->hw.counters = counters;
	f->hw.pmu = (struct pmu){
		.name = "fake",
		.type = -1,
		.class = PMU_HARDWARE,
		.event_init = hw_init,
		.destroy = hw_destroy,
		.add = hw_add,
		.del = hw_del,
		.start = hw_start,
		.stop = hw_stop,
		.read = hw_read,
		.start_txn = hw_start_txn,
		.commit_txn = hw_commit_txn,
		.cancel_txn = hw_cancel_txn,
		.event_idx = hw_event_idx,
		.event_width = hw_event_width,
		.check_period = hw_check_period,
		.task_size = sizeof(struct place),
		.cpu_size = sizeof(struct place),
	};
	err = pmu_register(f->core, &f->hw.pmu);
	CHECK(!err);
	err = software_pmu_new(f->core, &no_source, &f->software);
	CHECK(!err);
	fake_add_task(f, 100, 100);
	return f;
}

void fake_free(struct fake *f)
{
	core_check(f->core);
	core_free(f->core);
	/* Whatever happened to an event, its driver heard of the end, once. */
	CHECK(f->hw.inits == f->hw.destroys);
	CHECK(!f->memory);
	software_pmu_free(f->software);
	free(f);
}

static void move_clock(struct fake *f, u64 to)
{
	u64 delta = to - f->now;

	for (int i = 0; i < FAKE_TASKS; i++) {
		struct fake_task *t = &f->tasks[i];

		if (!t->task || t->asleep || task_cpu(t->task) < 0)
			continue;
		t->cpu_time += delta;
		t->counter += delta * t->rate;
	}
	f->now = to;
}

/* Who samples on the fake PMU, and has reached its period at @at if @reached. */
static struct event *sampler(struct fake *f, struct event *after)
{
	for (int fd = 3; fd <= f->last_fd; fd++) {
		struct event *event = f->fds[fd];

		if (!event)
			continue;
		if (after) {
			if (event == after)
				after = NULL;
			continue;
		}
		if (event->pmu == &f->hw.pmu && event->state == EVENT_ACTIVE &&
		    event_is_sampling(event) && !(event->hw.state & HW_STOPPED))
			return event;
	}
	return NULL;
}

/* As far as @event's counter is from its period, in ns of the clock; copies are left out. */
static u64 ns_left(struct event *event)
{
	struct task *task = event_on_task(event);
	struct fake_task *t = task ? task_host(task) : NULL;
	s64 left = event->hw.period_left - (s64)(hw_raw(event) - event->hw.prev);

	if (t && (t->asleep || !t->rate))
		return ~0ull;
	if (left <= 0)
		return 0;
	return t ? ((u64)left + t->rate - 1) / t->rate : (u64)left;
}

static void take_samples(struct fake *f)
{
	struct sample_facts facts = f->facts;

	for (struct event *e = sampler(f, NULL); e; e = sampler(f, e)) {
		facts.task = event_on_task(e);
		if (!facts.task)
			facts.task = fake_task(f, 100)->task;
		/* The program counter is where the counter is. */
		facts.sample.ip = hw_raw(e);
		(void)event_period_reached(e, &facts, f->throttle);
	}
	core_settle(f->core);
}

void fake_advance(struct fake *f, u64 ns)
{
	u64 to = f->now + ns;

	for (;;) {
		u64 next = to;

		if (f->timer < next)
			next = f->timer > f->now ? f->timer : f->now;
		for (struct event *e = sampler(f, NULL); e; e = sampler(f, e)) {
			u64 left = ns_left(e);

			if (left < next - f->now)
				next = f->now + left;
		}
		move_clock(f, next);
		take_samples(f);
		if (f->timer <= f->now) {
			core_timer_run(f->core);
			CHECK(f->timer > f->now);
		} else if (f->now == to) {
			return;
		}
	}
}

struct fake_task *fake_task(struct fake *f, int tid)
{
	for (int i = 0; i < FAKE_TASKS; i++)
		if (f->tasks[i].task && f->tasks[i].tid == tid)
			return &f->tasks[i];
	return NULL;
}

static struct fake_task *slot_for(struct fake *f, int tid, int tgid)
{
	for (int i = 0; i < FAKE_TASKS; i++) {
		struct fake_task *t = &f->tasks[i];

		if (t->task)
			continue;
		*t = (struct fake_task){.tid = tid, .tgid = tgid, .rate = 1};
		return t;
	}
	CHECK(!"a task slot is free");
}

struct task *fake_add_task(struct fake *f, int tid, int tgid)
{
	struct fake_task *t = slot_for(f, tid, tgid);

	t->task = task_new(f->core, tid, tgid, t);
	CHECK(t->task);
	task_sched_in(t->task, 0);
	return t->task;
}

struct task *fake_fork(struct fake *f, int parent, int tid, bool thread)
{
	struct fake_task *p = fake_task(f, parent), *t = slot_for(f, tid, thread ? p->tgid : tid);
	int err = task_fork(p->task, tid, t->tgid, thread, false, t, &t->task);

	if (err) {
		t->task = NULL;
		return NULL;
	}
	if (task_cpu(p->task) >= 0)
		task_sched_in(t->task, (u32)task_cpu(p->task));
	return t->task;
}

void fake_exit(struct fake *f, int tid)
{
	struct fake_task *t = fake_task(f, tid);

	task_exit(t->task);
	t->task = NULL;
}

struct pe_attr fake_attr(void)
{
	return (struct pe_attr){.type = 6, .size = PE_ATTR_SIZE_VER8, .exclude_kernel = 1};
}

struct pe_attr fake_sw_attr(u64 config)
{
	return (struct pe_attr){.type = PERF_TYPE_SOFTWARE,
				.size = PE_ATTR_SIZE_VER8,
				.config = config,
				.exclude_kernel = 1};
}

int fake_open_as(struct fake *f, int caller, const struct pe_attr *attr, int pid, int cpu,
		 int group, u64 flags)
{
	struct open_call call = {
		.caller = fake_task(f, caller)->task,
		.attr = attr,
		.attr_len = sizeof(*attr),
		.pid = pid,
		.cpu = cpu,
		.group_fd = group,
		.flags = flags,
		.path = f->path,
	};
	int err = perf_open(f->core, &call);

	if (err) {
		CHECK(core_refusal(f->core)->cause && core_refusal(f->core)->err == err);
		return err;
	}
	for (int fd = 3; fd < FAKE_FDS; fd++) {
		if (f->fds[fd])
			continue;
		f->fds[fd] = call.event;
		if (fd > f->last_fd)
			f->last_fd = fd;
		event_set_host(call.event, f);
		return fd;
	}
	CHECK(!"a descriptor is free");
}

int fake_open(struct fake *f, const struct pe_attr *attr, int pid, int cpu, int group)
{
	return fake_open_as(f, 100, attr, pid, cpu, group, 0);
}

const char *fake_why(struct fake *f)
{
	const struct refusal *r = core_refusal(f->core);
	char remedy[512];

	(void)refusal_why(r, NULL, f->why, sizeof(f->why));
	refusal_remedy(r, remedy, sizeof(remedy));
	if (*remedy) {
		size_t len = strlen(f->why);

		snprintf(f->why + len, sizeof(f->why) - len, "; %s", remedy);
	}
	return f->why;
}

struct event *fake_event(struct fake *f, int fd)
{
	return fd < 0 ? NULL : f->fds[fd];
}

void fake_close(struct fake *f, int fd)
{
	event_put(f->fds[fd]);
	f->fds[fd] = NULL;
}

int fake_map(struct fake *f, int fd, u64 pages, bool writable)
{
	struct map_call call = {.caller = fake_task(f, 100)->task,
				.len = pages * 4096,
				.shared = true,
				.writable = writable};

	return event_map(f->fds[fd], &call);
}

struct perf_event_mmap_page *fake_page(struct fake *f, int fd)
{
	return event_page(f->fds[fd]);
}

const struct ap_record *fake_take(struct fake *f, int fd)
{
	struct event *event = f->fds[fd];
	struct perf_event_mmap_page *page = event_page(event);
	const u8 *data = (const u8 *)page + page->data_offset;
	u64 left = page->data_head - page->data_tail;
	struct ap_layout layout;
	const char *why;
	int n;

	if (!left)
		return NULL;
	CHECK(left <= page->data_size);
	for (u64 i = 0; i < left && i < sizeof(f->bytes); i++)
		((u8 *)f->bytes)[i] = data[(page->data_tail + i) % page->data_size];
	layout = (struct ap_layout){
		.sample_type = event->attr.sample_type,
		.read_format = event->attr.read_format,
		.branch_sample_type = event->attr.branch_sample_type,
		.sample_regs_user = event->attr.sample_regs_user,
		.sample_regs_intr = event->attr.sample_regs_intr,
		.sample_id_all = event->attr.sample_id_all,
	};
	n = ap__record_decode(&f->record, f->bytes,
			      left < sizeof(f->bytes) ? left : sizeof(f->bytes), &layout, &why);
	if (n < 0) {
		fprintf(stderr, "a record that is none: %s\n", why);
		CHECK(n > 0);
	}
	page->data_tail += (u64)n;
	return &f->record;
}

const struct ap_record *fake_take_type(struct fake *f, int fd, u32 type)
{
	const struct ap_record *rec = fake_take(f, fd);

	return rec && rec->type == type ? rec : NULL;
}

int fake_ioctl(struct fake *f, int fd, u32 cmd, u64 arg)
{
	struct ioctl_call call = {.caller = fake_task(f, 100)->task, .cmd = cmd, .arg = arg};

	return event_ioctl(f->fds[fd], &call);
}

int fake_ioctl_in(struct fake *f, int fd, u32 cmd, const void *in, size_t len)
{
	struct ioctl_call call = {
		.caller = fake_task(f, 100)->task, .cmd = cmd, .in = in, .in_len = len};

	return event_ioctl(f->fds[fd], &call);
}

s64 fake_read(struct fake *f, int fd)
{
	memset(f->words, 0xee, sizeof(f->words));
	f->got = event_read(f->fds[fd], f->words, sizeof(f->words));
	return f->got;
}

u64 fake_count(struct fake *f, int fd)
{
	struct event *event = f->fds[fd];
	u64 format = event->attr.read_format, count;

	event->attr.read_format = 0;
	CHECK(fake_read(f, fd) == 8);
	count = f->words[0];
	event->attr.read_format = format;
	return count;
}
