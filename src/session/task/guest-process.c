/* Processes and threads of guests, and what they must tell. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/runs.h"
#include "session/session-priv.h"

struct guest_process *guest_process_new(struct session *s, pid_t pid)
{
	struct guest_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->s = s;
	p->pid = pid;
	p->pidfd = p->sock = p->memfd = -1;
	p->same_ns = -1;
	memset(p->fds, -1, sizeof(p->fds));
	p->sock_poll.kind = POLL_SOURCE_SOCK;
	p->pid_poll.kind = POLL_SOURCE_PIDFD;
	list_init(&p->threads);
	list_init(&p->mappings);
	list_add_tail(&p->link, &s->processes);
	return p;
}

struct guest_process *guest_process_by_pid(struct session *s, pid_t pid)
{
	struct guest_process *p;

	list_for_each_entry (p, &s->processes, link)
		if (p->pid == pid && p->pid)
			return p;
	return NULL;
}

/* Its end will be noticed from now on. -ESRCH: it is over already. */
int guest_process_watch_end(struct guest_process *p)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &p->pid_poll};

	if (p->pidfd >= 0)
		return 0;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		return -errno;
	return epoll_ctl(p->s->ends, EPOLL_CTL_ADD, p->pidfd, &ev) ? -errno : 0;
}

int guest_process_make_memory(struct guest_process *p)
{
	if (p->memfd >= 0)
		return 0;
	p->memfd = memfd_create("anyperf-wire", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->memfd < 0)
		return -errno;
	if (ftruncate(p->memfd, WIRE_SIZE) ||
	    fcntl(p->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	p->page = mmap(NULL, WIRE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, p->memfd, 0);
	if (p->page == MAP_FAILED)
		goto fail;
	p->page->version = WIRE_VERSION;
	p->page->slots = WIRE_SLOTS;
	p->page->magic = WIRE_MAGIC;
	return 0;
fail:;
	int err = -errno;

	p->page = NULL;
	close(p->memfd);
	p->memfd = -1;
	return err;
}

/* NULL: no such slot. */
struct wire_slot *guest_process_slot(struct guest_process *p, u32 slot)
{
	if (slot >= WIRE_SLOTS || !p->page)
		return NULL;
	return (struct wire_slot *)((u8 *)p->page + WIRE_SLOT_OFF(slot));
}

struct guest_thread *guest_thread_new(struct guest_process *p, s32 tid, u32 meter)
{
	struct guest_thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->process = p;
	th->tid = tid;
	th->meter = WIRE_NO_METER;
	clock_init(th);
	guest_thread_set_meter(th, meter);
	list_add_tail(&th->link, &p->threads);
	return th;
}

struct guest_thread *guest_thread_by_tid(struct guest_process *p, s32 tid)
{
	struct guest_thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->tid == tid && tid)
			return th;
	return NULL;
}

struct guest_thread *guest_thread_by_meter(struct guest_process *p, u32 meter)
{
	struct guest_thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->meter == meter)
			return th;
	return NULL;
}

struct guest_thread *guest_thread_by_token(struct guest_process *p, u64 token)
{
	struct guest_thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->token == token && token)
			return th;
	return NULL;
}

void guest_thread_watch(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);

	if (m)
		__atomic_store_n(&m->watch,
				 WIRE_WATCH_TASKS | WIRE_WATCH_EXIT | WIRE_WATCH_EXEC |
					 (clock_outlives() ? 0 : WIRE_WATCH_END),
				 __ATOMIC_SEQ_CST);
}

/*
 * All threads of a process must tell of an exec, as it ends those that are watched. When the first
 * one is, the others are marked; of threads made later the runtime sees to it (perf_exec() in
 * rt/perf/perf-task.c). The scan goes by what guests wrote; a wrong pid costs its writer a message.
 */
static void watch_process(struct guest_process *p)
{
	struct session *s = p->s;
	struct meter *any = NULL;
	struct guest_thread *th;
	u32 used = __atomic_load_n(&s->tree->used, __ATOMIC_RELAXED), pid;

	if (p->watched)
		return;
	list_for_each_entry (th, &p->threads, link)
		if (!any)
			any = guest_thread_meter(th);
	if (!any)
		return;
	p->watched = true;
	pid = __atomic_load_n(&any->pid, __ATOMIC_RELAXED);
	for (u32 i = 0; i < used && i < s->slots; i++) {
		struct meter *m = (struct meter *)((u8 *)s->tree + meter_tree_offset(i));

		if (m->pid == pid && m->state == METER_RUNNING)
			__atomic_fetch_or(&m->watch, WIRE_WATCH_EXEC, __ATOMIC_RELAXED);
	}
}

/*
 * The page of a watched thread is not free before its counts have been taken; its runtime leaves
 * that to the session, as it does when it is killed.
 */
static void release_meter(struct session *s, struct meter *m, u32 index)
{
	u32 exited = METER_EXITED;

	__atomic_store_n(&m->watch, 0, __ATOMIC_SEQ_CST);
	if (meter_run_keeps(s->tree, m->run) ||
	    !__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	meter_note_freed(s->tree, m->run, index);
}

/*
 * Was it too late to watch @th? Watch before state, mate: release() in rt/task/meter-page.c. A
 * thread whose call is being answered is there.
 */
static bool has_left(const struct guest_thread *th)
{
	const struct call *c = th->process->s->call;
	const struct meter *m = guest_thread_meter(th);

	return m && !(c && c->thread == th) &&
	       (__atomic_load_n(&m->state, __ATOMIC_SEQ_CST) != METER_RUNNING ||
		(s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED) !=
			(th->guest_tid ? th->guest_tid : th->tid));
}

/* From here on its forks, its end and its exec concern the session. -ESRCH: it has just ended. */
int guest_thread_need_task(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);

	instant_check(th->process->s);
	if (th->task)
		return 0;
	th->task = task_new(th->process->s->core, th->tid, th->process->pid, th);
	if (!th->task)
		return -ENOMEM;
	task_sched_in(th->task, 0);
	guest_thread_watch(th);
	if (has_left(th)) {
		task_exit(th->task);
		th->task = NULL;
		if (m->state == METER_EXITED)
			release_meter(th->process->s, m, th->meter);
		return -ESRCH;
	}
	watch_process(th->process);
	if (th->process->s->wide) {
		clock_attach(th);
		wide_place(th);
	}
	return 0;
}

void guest_thread_end(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);
	struct guest_process *p = th->process;

	instant_check(p->s);
	if (th->task) {
		task_exit(th->task);
		th->task = NULL;
		if (m)
			release_meter(th->process->s, m, th->meter);
	}
	for (u32 i = 0; i < WIRE_SLOTS; i++)
		if (p->callers[i] == th)
			p->callers[i] = NULL;
	clock_release(th);
	list_del(&th->link);
	free(th);
}

/* The process is gone, or never came to be. Freed after the batch. */
void guest_process_end(struct guest_process *p)
{
	struct guest_thread *th, *tmp;
	struct perf_file *c;

	instant_check(p->s);
	p->sock_poll.gone = p->pid_poll.gone = true;
	list_for_each_entry (c, &p->s->files, link)
		if (c->opener == p)
			snapshot_drop(c);
	list_for_each_entry_safe (th, tmp, &p->threads, link)
		guest_thread_end(th);
	maps_drop(p);
	serve_forget(p->s, p);
	if (p->pidfd >= 0)
		epoll_ctl(p->s->ends, EPOLL_CTL_DEL, p->pidfd, NULL);
	if (p->sock >= 0)
		epoll_ctl(p->s->epoll, EPOLL_CTL_DEL, p->sock, NULL);
	list_move_tail(&p->link, &p->s->dead_processes);
}

void guest_process_free(struct guest_process *p)
{
	list_del(&p->link);
	for (u32 i = 0; i < WIRE_SLOTS; i++)
		if (p->fds[i] >= 0)
			close(p->fds[i]);
	if (p->page)
		munmap(p->page, WIRE_SIZE);
	if (p->sock >= 0)
		close(p->sock);
	if (p->pidfd >= 0)
		close(p->pidfd);
	if (p->memfd >= 0)
		close(p->memfd);
	free(p);
}

/* @survivor has become the leader with a new program; its siblings died of it. */
void guest_process_exec(struct guest_process *p, struct guest_thread *survivor)
{
	struct guest_thread *th, *tmp;

	instant_check(p->s);
	list_for_each_entry_safe (th, tmp, &p->threads, link)
		if (th != survivor)
			guest_thread_end(th);
	maps_drop(p);
	survivor->tid = p->pid;
	if (survivor->task) {
		task_set_ids(survivor->task, p->pid, p->pid);
		task_exec(survivor->task);
	}
}

/* A thread that was announced has come to be. */
void guest_thread_set_tid(struct guest_thread *th, s32 tid)
{
	th->tid = tid;
	if (th->task)
		task_set_ids(th->task, tid, th->process->pid);
}

/* The same as its meter tells it; threads that make no call do not say it otherwise. */
void guest_thread_learn_tid(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);
	s32 tid;

	if (th->tid || !m || !th->process->pid || th->process->same_ns == 0 ||
	    __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != METER_RUNNING)
		return;
	tid = (s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED);
	if ((pid_t)m->pid == th->process->pid && tid > 0 && pid_has_tid(th->process->pid, tid))
		guest_thread_set_tid(th, tid);
}

/*
 * The process that WIRE_OP_FORK announced with meter @index for its only thread, and that runs as
 * @pid but has not said HELLO yet. NULL: none, or it is over.
 */
static struct guest_thread *announced(struct session *s, u32 index, pid_t pid, s32 tid)
{
	struct guest_thread *th;
	struct guest_process *p;

	list_for_each_entry (p, &s->processes, link) {
		th = p->pid ? NULL : guest_thread_by_meter(p, index);
		if (!th)
			continue;
		p->pid = pid;
		if (guest_process_watch_end(p)) {
			/* Its socket tells the end. */
			p->pid = 0;
			return NULL;
		}
		p->token = 0;
		guest_thread_set_tid(th, tid);
		return th;
	}
	return NULL;
}

/*
 * The thread with meter @index, which is @tid of process @in->tgid; NULL: it ended, or memory did.
 */
static struct guest_thread *meet(struct session *s, u32 index, s32 tid, const struct pid_inside *in)
{
	struct guest_process *p = guest_process_by_pid(s, in->tgid);
	struct guest_thread *th;
	bool is_new = !p;

	if (is_new) {
		th = announced(s, index, in->tgid, tid);
		if (th)
			return th;
		p = guest_process_new(s, in->tgid);
		if (!p)
			return NULL;
		p->same_ns = in->same;
	}
	if (guest_process_watch_end(p))
		goto fail;
	th = guest_thread_by_meter(p, index);
	if (th) {
		guest_thread_set_tid(th, tid);
		return th;
	}
	th = guest_thread_new(p, tid, index);
	if (!th)
		goto fail;
	th->guest_tid = in->tid;
	return th;
fail:
	if (is_new)
		guest_process_end(p);
	return NULL;
}

/*
 * The guest thread @tid of the session's namespace, connected or not: one that is known, or one
 * whose meter names it. The kernel has the last word on whose thread a tid is, what its own
 * namespace calls it, and whether its process has our meters.
 */
struct guest_thread *guest_find(struct session *s, s32 tid)
{
	u32 used = __atomic_load_n(&s->tree->used, __ATOMIC_RELAXED);
	struct pid_inside in;
	struct guest_process *p;
	struct guest_thread *th;

	if (tid <= 0)
		return NULL;
	list_for_each_entry (p, &s->processes, link) {
		if (p == s->self_process)
			continue;
		th = guest_thread_by_tid(p, tid);
		if (th)
			return th;
	}
	if (!pid_inside(tid, &in) || in.tgid == s->self_process->pid)
		return NULL;
	for (u32 i = 0; i < used && i < s->slots; i++) {
		struct meter *m = (struct meter *)((u8 *)s->tree + meter_tree_offset(i));

		if (__atomic_load_n(&m->state, __ATOMIC_RELAXED) != METER_RUNNING ||
		    (s32)m->tid != in.tid || (pid_t)m->pid != in.pid)
			continue;
		if (guest_process_by_pid(s, in.tgid) || pid_has_file(in.tgid, s->tree_fd))
			return meet(s, i, tid, &in);
		return NULL;
	}
	return NULL;
}

/* All threads of process @pid, if it is a guest. */
static void meet_process(struct session *s, pid_t pid)
{
	char path[40];
	struct dirent *d;
	DIR *dir;

	if (pid == s->self_process->pid ||
	    (!guest_process_by_pid(s, pid) && !pid_has_file(pid, s->tree_fd)))
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		(void)guest_find(s, atoi(d->d_name));
	if (dir)
		closedir(dir);
}

void guests_meet(struct session *s)
{
	u32 used = __atomic_load_n(&s->tree->used, __ATOMIC_RELAXED), strange = 0;
	struct dirent *d;
	DIR *dir;

	for (u32 i = 0; i < used && i < s->slots; i++) {
		struct meter *m = (struct meter *)((u8 *)s->tree + meter_tree_offset(i));
		s32 tid = (s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED);

		/* Who is watched has been met. */
		if (__atomic_load_n(&m->state, __ATOMIC_RELAXED) != METER_RUNNING || tid <= 0 ||
		    __atomic_load_n(&m->watch, __ATOMIC_RELAXED) & WIRE_WATCH_TASKS)
			continue;
		strange += !guest_find(s, tid);
	}
	/*
	 * In another pid namespace, where its numbers mean nothing to us; or killed, and nobody's.
	 */
	dir = strange > s->strangers ? opendir("/proc") : NULL;
	s->strangers = strange;
	while (dir && (d = readdir(dir)))
		if (atoi(d->d_name) > 0)
			meet_process(s, atoi(d->d_name));
	if (dir)
		closedir(dir);
}
