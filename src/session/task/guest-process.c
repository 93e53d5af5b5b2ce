/* Processes of guests, from the first word of them to their end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/trace.h"
#include "session/session-priv.h"

void guests_init(struct guests *g)
{
	list_init(&g->processes);
	list_init(&g->dead);
	hash_init(&g->by_pid);
	hash_init(&g->by_tid);
	hash_init(&g->by_meter);
	hash_init(&g->by_token);
}

void guests_release(struct guests *g)
{
	hash_release(&g->by_pid);
	hash_release(&g->by_tid);
	hash_release(&g->by_meter);
	hash_release(&g->by_token);
}

struct guest_process *guest_process_new(struct session *s, pid_t pid)
{
	struct guest_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->s = s;
	list_init(&p->snapshots.files);
	guest_process_set_pid(p, pid);
	p->pidfd = p->sock = p->memfd = p->spare = -1;
	p->same_ns = -1;
	memset(p->fds, -1, sizeof(p->fds));
	list_init(&p->threads);
	list_init(&p->mappings);
	list_add_tail(&p->link, &s->guests.processes);
	return p;
}

struct guest_process *guest_process_by_pid(struct session *s, pid_t pid)
{
	struct hash_link *l = hash_find(&s->guests.by_pid, (u64)pid);

	return l ? container_of(l, struct guest_process, by_pid) : NULL;
}

void guest_process_set_pid(struct guest_process *p, pid_t pid)
{
	hash_del(&p->s->guests.by_pid, &p->by_pid);
	p->pid = pid;
	/* It has come, and is its own kernel's to count. */
	if (pid)
		allowance_give(&p->announced, ANNOUNCED);
	if (pid)
		hash_add(&p->s->guests.by_pid, &p->by_pid, (u64)pid);
}

int guest_process_watch_end(struct guest_process *p)
{
	if (p->pidfd >= 0)
		return 0;
	if (p->spare >= 0)
		close(p->spare);
	p->spare = -1;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		return -errno;
	return poll_source_add(p->s->loop.ends, p->pidfd, &p->pid_poll, POLL_SOURCE_PIDFD, EPOLLIN);
}

/* A process whose memory cannot be as large as it should has traces for the first meters alone. */
static u64 memory_size(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_FSIZE, &limit);
	return limit.rlim_cur < WIRE_MEMORY ? ALIGN_DOWN(limit.rlim_cur, 4096ull) : WIRE_MEMORY;
}

int guest_process_make_memory(struct guest_process *p)
{
	u64 size = memory_size();
	void *memory;
	int fd, err;

	if (p->memfd >= 0)
		return 0;
	fd = size < WIRE_SIZE ? -EFBIG : sealed_memory_new("anyperf-wire", size);
	if (fd < 0)
		return fd;
	p->memory_size = size;
	memory = mmap(NULL, WIRE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		err = -errno;
		close(fd);
		return err;
	}
	p->memfd = fd;
	p->page = memory;
	p->page->version = WIRE_VERSION;
	p->page->slots = WIRE_SLOTS;
	p->page->rdpmc = setting_rdpmc(p->s);
	p->page->magic = WIRE_MAGIC;
	return 0;
}

int guest_process_reserve(struct guest_process *p)
{
	int err = guest_process_make_memory(p);

	if (err)
		return err;
	p->spare = fcntl(p->memfd, F_DUPFD_CLOEXEC, 0);
	return p->spare < 0 ? -errno : 0;
}

struct wire_slot *guest_process_slot(struct guest_process *p, u32 slot)
{
	if (slot >= WIRE_SLOTS || !p->page)
		return NULL;
	return (struct wire_slot *)((u8 *)p->page + WIRE_SLOT_OFF(slot));
}

void guest_process_end(struct guest_process *p)
{
	struct guest_thread *th, *tmp;

	instant_check(p->s);
	p->sock_poll.gone = p->pid_poll.gone = true;
	snapshots_drop(p);
	list_for_each_entry_safe (th, tmp, &p->threads, link)
		guest_thread_end(th);
	maps_drop(p);
	serve_forget(p->s, p);
	if (p->pidfd >= 0)
		epoll_ctl(p->s->loop.ends, EPOLL_CTL_DEL, p->pidfd, NULL);
	if (p->sock >= 0)
		epoll_ctl(p->s->loop.all, EPOLL_CTL_DEL, p->sock, NULL);
	hash_del(&p->s->guests.by_pid, &p->by_pid);
	list_move_tail(&p->link, &p->s->guests.dead);
}

void guest_process_free(struct guest_process *p)
{
	list_del(&p->link);
	for (u32 i = 0; i < WIRE_SLOTS; i++)
		(void)closer_close(&p->closer, p->fds[i]);
	if (p->page)
		munmap(p->page, WIRE_SIZE);
	if (p->sock >= 0)
		sock_close(p->sock, &p->closer);
	if (p->pidfd >= 0)
		close(p->pidfd);
	if (p->memfd >= 0)
		close(p->memfd);
	if (p->spare >= 0)
		close(p->spare);
	closer_end(p->closer);
	allowance_give(&p->announced, ANNOUNCED);
	allowance_put(p->allowance);
	guest_process_executes(p, NULL, NULL);
	free(p);
}

void guest_process_executes(struct guest_process *p, const char *program, const char *interp)
{
	free(p->program);
	free(p->interp);
	p->program = program ? strdup(program) : NULL;
	p->interp = p->program ? strdup(interp) : NULL;
}

int guest_process_adopt(struct session *s, pid_t pid, s8 same_ns)
{
	struct guest_process *p = guest_process_new(s, pid);
	struct guest_thread *th;
	int err;

	instant_check(s);
	if (!p)
		return -ENOMEM;
	err = guest_process_watch_end(p);
	if (err)
		goto fail;
	th = guest_thread_new(p, pid, WIRE_NO_METER);
	err = th ? guest_thread_need_task(th) : -ENOMEM;
	if (err)
		goto fail;
	p->same_ns = same_ns;
	clock_attach(th);
	s->shown.view->flags |= WIRE_VIEW_LAUNCH;
	return 0;
fail:
	guest_process_end(p);
	return err;
}

void guest_process_exec(struct guest_process *p, struct guest_thread *survivor)
{
	struct guest_thread *th, *tmp;

	instant_check(p->s);
	list_for_each_entry_safe (th, tmp, &p->threads, link)
		if (th != survivor)
			guest_thread_end(th);
	maps_drop(p);
	trace_execed(survivor);
	p->execing = 0;
	guest_process_executes(p, NULL, NULL);
	guest_thread_set_tid(survivor, p->pid);
	if (!survivor->task)
		return;
	task_exec(survivor->task);
	kernel_probes_exec(survivor);
	if (p->s->track_watch)
		track_named(survivor, true);
}
