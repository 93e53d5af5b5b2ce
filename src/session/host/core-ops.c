/* What the core asks of its host, where the session has no file of its own for it. */
#include "session/host/core-ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "session/session-priv.h"

/* The handle of the event that the call names beside its own. */
static u64 named_handle(const struct call *c)
{
	return c->op == WIRE_OP_OPEN ? c->args.open.group : c->args.ioctl.output;
}

/*
 * One operation has one time: an event that it enables and puts on a counter runs as long as it is
 * on.
 */
static u64 host_clock(void *ctx)
{
	struct session *s = ctx;

	return instant_wall_time(s);
}

/* The moment of the instant, which may be an earlier one's, as that clock has it. */
static u64 host_record_clock(void *ctx, s32 clockid)
{
	struct session *s = ctx;
	struct timespec t;

	if (clockid < 0 || clockid == CLOCK_MONOTONIC || clock_gettime(clockid, &t))
		return instant_wall_time(s);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec - session_now() + instant_wall_time(s);
}

static u64 host_task_clock(void *ctx, struct task *task)
{
	struct guest_thread *th = task_host(task);

	(void)ctx;
	return th ? clock_read(th) : 0;
}

static void host_timer(void *ctx, u64 deadline)
{
	struct session *s = ctx;
	struct itimerspec when = {{0}};

	if (deadline != CORE_NO_TIMER) {
		/* Zero would switch it off. */
		if (!deadline)
			deadline = 1;
		when.it_value.tv_sec = (time_t)(deadline / 1000000000);
		when.it_value.tv_nsec = (long)(deadline % 1000000000);
	}
	timerfd_settime(s->loop.timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static bool host_capable(void *ctx, struct task *task, enum core_cap cap)
{
	struct guest_thread *th = task_host(task);

	(void)ctx;
	return th && cred_capable(th->process->pid, th->tid, cap);
}

static bool host_may_access(void *ctx, struct task *task, struct task *target,
			    enum core_access access)
{
	struct guest_thread *th = task_host(task), *other = task_host(target);

	(void)ctx;
	return th && other && cred_may_access(th, other, access);
}

/* The guest's runtime looks whether there is a free one when the refusal comes later than this. */
static int host_fd_reserve(void *ctx, struct open_call *call)
{
	struct call *c = call->host;

	(void)ctx;
	if (c)
		c->past_fd_check = true;
	return 0;
}

static struct event *host_fd_event(void *ctx, struct task *caller, int fd)
{
	struct session *s = ctx;
	struct perf_file *file;

	(void)caller;
	if (fd != FD_NAMED || !s->call)
		return NULL;
	file = perf_file_by_handle(s, named_handle(s->call));
	return file ? file->event : NULL;
}

/* A process that asks without being counted: it has introduced itself, and has no meter. */
static bool is_remote_client(const struct session *s, const struct guest_thread *th)
{
	return th->process->sock >= 0 && !guest_thread_meter(th) && s->instant.caller != th;
}

/*
 * @pid is a task, but no guest. A member cannot count another task than its leader; of a leader
 * that the session itself does not have it has said so before.
 */
static int no_guest(struct session *s, int pid, s32 tid)
{
	struct call *c = s->call;
	u32 type;

	if (c && c->op == WIRE_OP_OPEN) {
		/* A child that was just forked says who it is as its first thing. */
		c->ask_again = pid_same_exe(tid, c->process->pid);
		if (!c->ask_again && c->args.open.group != WIRE_NO_EVENT &&
		    !(c->args.open.flags & PERF_FLAG_FD_NO_GROUP))
			return core_refuse(s->core, -EINVAL, GROUP_TARGET);
		memcpy(&type, c->in, sizeof(type));
		c->ask_kernel = !c->ask_again && c->len >= PE_ATTR_SIZE_VER0 &&
				type == PERF_TYPE_SOFTWARE;
	}
	return core_refuse(s->core, -ENOENT, NOT_A_GUEST, .number = {pid});
}

static int host_find_task(void *ctx, struct task *caller, int pid, struct task **task)
{
	struct session *s = ctx;
	struct guest_thread *th, *from = task_host(caller);
	s32 tid;
	int err;

	if (pid <= 0)
		return -ESRCH;
	tid = from ? pid_from_guest(from->process, pid) : pid;
	th = tid > 0 ? guest_find(s, tid) : NULL;
	if (!th || is_remote_client(s, th)) {
		if (tid <= 0 || !pid_exists(tid))
			return -ESRCH;
		return no_guest(s, pid, tid);
	}
	err = guest_thread_need_task(th);
	if (err)
		return core_refuse(s->core, err, NO_MEMORY, .name = {"a task"});
	if (s->instant.caller != th)
		clock_attach(th);
	*task = th->task;
	return 0;
}

/* A guest's descriptor came with its request. */
static int host_fd_cgroup(void *ctx, struct task *caller, int fd, struct cgroup **cgroup)
{
	struct session *s = ctx;
	int err;

	(void)caller;
	(void)fd;
	if (!s->call)
		return -EBADF;
	err = cgroup_by_fd(s, s->call->fd_in, cgroup);
	s->call->fd_in_known = !err;
	return err;
}

/* The number says nothing here, so the kernel is asked what the guest has there. */
static int host_fd_bpf(void *ctx, struct task *caller, int fd)
{
	const struct guest_thread *th = task_host(caller);
	char path[64], link[64];
	ssize_t n;

	(void)ctx;
	if (!th)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", th->process->pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return -EBADF;
	link[n] = '\0';
	return strcmp(link, "anon_inode:bpf-prog") ? -EINVAL : 0;
}

static void host_wake(void *ctx, struct event *event)
{
	struct perf_file *file = event_host(event);

	(void)ctx;
	if (file)
		perf_file_wake(file);
}

static void host_sigio(void *ctx, struct event *event, bool hup)
{
	struct perf_file *file = event_host(event);

	(void)ctx;
	if (file)
		perf_file_signal(file, hup);
}

/* The host's name for it is its descriptor, which every guest that maps it is sent. */
static int host_memory_new(void *ctx, size_t size, void **memory, void **host)
{
	int fd;

	(void)ctx;
	fd = sealed_memory_map("anon_inode:[perf_event]", size, memory);
	if (fd < 0)
		return -ENOMEM;
	*host = (void *)(intptr_t)fd;
	return 0;
}

static void host_memory_free(void *ctx, void *memory, size_t size, void *host)
{
	(void)ctx;
	munmap(memory, size);
	close((int)(intptr_t)host);
}

/* Where nobody can be asked there is no limit but the machine's memory. */
static void host_mlock_limit(void *ctx, struct task *task, u32 *uid, u64 *limit)
{
	const struct guest_thread *th = task_host(task);

	(void)ctx;
	*uid = th ? cred_euid(th->process->pid, th->tid) : ~0u;
	*limit = th ? cred_memlock(th->process->pid) : ~0ull;
}

const struct core_ops session_core_ops = {
	.clock = host_clock,
	.record_clock = host_record_clock,
	.task_clock = host_task_clock,
	.timer = host_timer,
	.capable = host_capable,
	.may_access = host_may_access,
	.fd_reserve = host_fd_reserve,
	.fd_event = host_fd_event,
	.find_task = host_find_task,
	.fd_cgroup = host_fd_cgroup,
	.fd_bpf = host_fd_bpf,
	.wake = host_wake,
	.sigio = host_sigio,
	.sigtrap = trace_sigtrap,
	.memory_new = host_memory_new,
	.memory_free = host_memory_free,
	.mlock_limit = host_mlock_limit,
	.namespaces = track_links,
	.event_changed = snapshot_event_changed,
};
