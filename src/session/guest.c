/*
 * Processes and threads of guests, and what they must tell.
 *
 * A thread's meter may have been another's before; `zero` holds what was there when it took it. For a
 * thread that the session has seen being made that is exact, for others the page says it (meter.base).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/session-priv.h"

struct proc *proc_new(struct session *s, pid_t pid)
{
	struct proc *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->s = s;
	p->pid = pid;
	p->pidfd = p->sock = p->memfd = -1;
	p->same_ns = -1;
	memset(p->fds, -1, sizeof(p->fds));
	p->sock_poll.kind = POLLEE_SOCK;
	p->pid_poll.kind = POLLEE_PIDFD;
	list_init(&p->threads);
	list_add_tail(&p->link, &s->procs);
	return p;
}

struct proc *proc_by_pid(struct session *s, pid_t pid)
{
	struct proc *p;

	list_for_each_entry (p, &s->procs, link)
		if (p->pid == pid && p->pid)
			return p;
	return NULL;
}

/* Its end will be noticed from now on. -ESRCH: it is over already. */
int proc_watch_end(struct proc *p)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &p->pid_poll};

	if (p->pidfd >= 0)
		return 0;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		return -errno;
	return epoll_ctl(p->s->ends, EPOLL_CTL_ADD, p->pidfd, &ev) ? -errno : 0;
}

int proc_make_memory(struct proc *p)
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
struct wire_slot *proc_slot(struct proc *p, u32 slot)
{
	if (slot >= WIRE_SLOTS || !p->page)
		return NULL;
	return (struct wire_slot *)((u8 *)p->page + WIRE_SLOT_OFF(slot));
}

static struct meter *thread_meter(const struct thread *th)
{
	if (th->meter >= METER_TREE_SLOTS)
		return NULL;
	return (struct meter *)((u8 *)th->proc->s->tree + meter_tree_offset(th->meter));
}

struct thread *thread_new(struct proc *p, s32 tid, u32 meter)
{
	struct thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->proc = p;
	th->tid = tid;
	th->meter = WIRE_NO_METER;
	clock_init(th);
	thread_set_meter(th, meter, false);
	list_add_tail(&th->link, &p->threads);
	return th;
}

struct thread *thread_by_tid(struct proc *p, s32 tid)
{
	struct thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->tid == tid && !th->token)
			return th;
	return NULL;
}

struct thread *thread_by_token(struct proc *p, u64 token)
{
	struct thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (th->token == token && token)
			return th;
	return NULL;
}

/*
 * @fresh: the thread has not executed anything yet, so that what is in the meter is others'. A thread
 * that goes on in another meter (exec) keeps what it had.
 */
void thread_set_meter(struct thread *th, u32 meter, bool fresh)
{
	u64 had[METER_QUANTITIES] = {0};
	struct meter *m = thread_meter(th);
	bool first = !m;

	if (th->meter == meter || meter >= METER_TREE_SLOTS)
		return;
	for (u32 q = 0; m && q < METER_QUANTITIES; q++)
		had[q] = meter_sum(m, q) - th->zero[q];
	th->meter = meter;
	m = thread_meter(th);
	for (u32 q = 0; q < METER_QUANTITIES; q++)
		th->zero[q] = (fresh || !first ? meter_sum(m, q)
					       : __atomic_load_n(&m->base[q], __ATOMIC_RELAXED)) -
			      had[q];
	if (th->task)
		__atomic_store_n(&m->watch, WIRE_WATCH_TASKS | WIRE_WATCH_EXIT | WIRE_WATCH_EXEC,
				 __ATOMIC_RELAXED);
}

/*
 * All threads of a process must tell of an exec, as it ends those that are watched. The scan goes by
 * what guests wrote; a wrong pid costs its writer a message.
 */
static void watch_process(struct proc *p)
{
	struct session *s = p->s;
	struct meter *any = NULL;
	struct thread *th;
	u32 used = __atomic_load_n(&s->tree->used, __ATOMIC_RELAXED), pid;

	list_for_each_entry (th, &p->threads, link)
		if (!any)
			any = thread_meter(th);
	if (!any)
		return;
	pid = __atomic_load_n(&any->pid, __ATOMIC_RELAXED);
	for (u32 i = 0; i < used && i < METER_TREE_SLOTS; i++) {
		struct meter *m = (struct meter *)((u8 *)s->tree + meter_tree_offset(i));

		if (m->pid == pid && m->state == METER_RUNNING)
			__atomic_fetch_or(&m->watch, WIRE_WATCH_EXEC, __ATOMIC_RELAXED);
	}
}

/* From here on its forks, its end and its exec concern the session. */
int thread_need_task(struct thread *th)
{
	struct meter *m = thread_meter(th);

	if (th->task)
		return 0;
	th->task = task_new(th->proc->s->core, th->tid, th->proc->pid, th);
	if (!th->task)
		return -ENOMEM;
	task_sched_in(th->task, 0);
	if (m) {
		__atomic_store_n(&m->watch, WIRE_WATCH_TASKS | WIRE_WATCH_EXIT | WIRE_WATCH_EXEC,
				 __ATOMIC_RELAXED);
		watch_process(th->proc);
	}
	return 0;
}

void thread_end(struct thread *th)
{
	struct meter *m = thread_meter(th);
	struct proc *p = th->proc;

	if (th->task) {
		task_exit(th->task);
		th->task = NULL;
		if (m)
			__atomic_store_n(&m->watch, 0, __ATOMIC_RELAXED);
	}
	for (u32 i = 0; i < WIRE_SLOTS; i++)
		if (p->callers[i] == th)
			p->callers[i] = NULL;
	clock_release(th);
	list_del(&th->link);
	free(th);
}

/* The process is gone, or never came to be. Freed after the batch. */
void proc_end(struct proc *p)
{
	struct thread *th, *tmp;
	struct carrier *c;

	p->sock_poll.gone = p->pid_poll.gone = true;
	list_for_each_entry (c, &p->s->carriers, link)
		if (c->opener == p)
			card_drop(c);
	list_for_each_entry_safe (th, tmp, &p->threads, link)
		thread_end(th);
	serve_forget(p->s, p);
	if (p->pidfd >= 0)
		epoll_ctl(p->s->ends, EPOLL_CTL_DEL, p->pidfd, NULL);
	if (p->sock >= 0)
		epoll_ctl(p->s->epoll, EPOLL_CTL_DEL, p->sock, NULL);
	list_move_tail(&p->link, &p->s->graveyard);
	cards_publish(p->s);
}

void proc_free(struct proc *p)
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
void proc_exec(struct proc *p, struct thread *survivor)
{
	struct thread *th, *tmp;

	list_for_each_entry_safe (th, tmp, &p->threads, link)
		if (th != survivor)
			thread_end(th);
	survivor->tid = p->pid;
	if (survivor->task) {
		task_set_tid(survivor->task, p->pid);
		task_exec(survivor->task);
	}
	cards_publish(p->s);
}

/*
 * The guest thread @tid of the session's namespace, connected or not: one that is known, or one whose
 * meter names it. The kernel has the last word on whose thread a tid is.
 */
struct thread *guest_find(struct session *s, s32 tid)
{
	struct proc *p;
	struct thread *th;
	u32 used = __atomic_load_n(&s->tree->used, __ATOMIC_RELAXED);

	if (tid <= 0)
		return NULL;
	list_for_each_entry (p, &s->procs, link) {
		if (p == s->self_proc)
			continue;
		th = thread_by_tid(p, tid);
		if (th)
			return th;
	}
	for (u32 i = 0; i < used && i < METER_TREE_SLOTS; i++) {
		struct meter *m = (struct meter *)((u8 *)s->tree + meter_tree_offset(i));
		pid_t pid = (pid_t)__atomic_load_n(&m->pid, __ATOMIC_RELAXED);
		bool is_new = false;

		if (m->state != METER_RUNNING || (s32)m->tid != tid || pid <= 0 ||
		    pid == s->self_proc->pid || !pid_has_tid(pid, tid))
			continue;
		p = proc_by_pid(s, pid);
		if (!p) {
			p = proc_new(s, pid);
			is_new = true;
			if (!p)
				return NULL;
		}
		if (proc_watch_end(p)) {
			if (is_new)
				proc_end(p);
			return NULL;
		}
		th = thread_new(p, tid, i);
		if (!th && is_new)
			proc_end(p);
		return th;
	}
	return NULL;
}
