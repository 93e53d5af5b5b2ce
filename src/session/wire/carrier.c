/*
 * A perf descriptor of a guest is the read end of a pipe; here is the write end. dup, fork, exec
 * and SCM_RIGHTS need nothing from us, and when the last copy has been closed the write end reports
 * an error, once.
 *
 * Guests name events by handles: an index and 32 random bits, so that a guest cannot name an event
 * whose descriptor it never had.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session-priv.h"

#define HANDLES_FIRST 64

static int take_handle(struct session *s, struct carrier *c)
{
	u32 secret, i;

	for (i = s->handle_hint; i < s->nr_handles && s->handles[i]; i++)
		;
	if (i == s->nr_handles) {
		u32 more = s->nr_handles ? s->nr_handles * 2 : HANDLES_FIRST;
		struct carrier **grown = reallocarray(s->handles, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + s->nr_handles, 0, (more - s->nr_handles) * sizeof(*grown));
		s->handles = grown;
		s->nr_handles = more;
	}
	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return -EAGAIN;
	s->handle_hint = i + 1;
	s->handles[i] = c;
	c->index = i;
	/* Neither WIRE_NO_EVENT nor WIRE_BAD_EVENT. */
	c->handle = (u64)(secret >> 1) << 32 | (i + 1);
	return 0;
}

/* Takes over the reference to @event. *@guest_fd is the caller's to send and close. */
int carrier_new(struct session *s, struct event *event, struct carrier **carrier, int *guest_fd)
{
	struct carrier *c = calloc(1, sizeof(*c));
	struct epoll_event ev = {.events = EPOLLERR | EPOLLET};
	struct stat st;
	int pipefd[2], err;

	if (!c)
		return -ENOMEM;
	c->page_fd = c->hung_fd = -1;
	if (pipe2(pipefd, O_CLOEXEC)) {
		free(c);
		return -errno;
	}
	/* Only our end: the guest sees the flags of its own. */
	fcntl(pipefd[1], F_SETFL, O_NONBLOCK);
	err = take_handle(s, c);
	if (err)
		goto fail;
	c->s = s;
	c->event = event;
	c->wfd = pipefd[1];
	c->poll.kind = POLLEE_CARRIER;
	ev.data.ptr = &c->poll;
	if (fstat(c->wfd, &st) || epoll_ctl(s->ends, EPOLL_CTL_ADD, c->wfd, &ev)) {
		err = -errno;
		s->handles[c->index] = NULL;
		goto fail;
	}
	c->ino = st.st_ino;
	c->dev = st.st_dev;
	list_add_tail(&c->link, &s->carriers);
	event_set_host(event, c);
	*guest_fd = pipefd[0];
	*carrier = c;
	return 0;
fail:
	free(c);
	close(pipefd[0]);
	close(pipefd[1]);
	return err;
}

struct carrier *carrier_by_handle(struct session *s, u64 handle)
{
	u32 index = (u32)handle - 1;
	struct carrier *c;

	if (index >= s->nr_handles)
		return NULL;
	c = s->handles[index];
	return c && c->handle == handle ? c : NULL;
}

/* By a copy of the descriptor itself. */
struct carrier *carrier_by_fd(struct session *s, int fd)
{
	struct carrier *c;
	struct stat st;

	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return NULL;
	list_for_each_entry (c, &s->carriers, link)
		if (c->ino == st.st_ino && c->dev == st.st_dev)
			return c;
	return NULL;
}

static int reopen(const struct carrier *c, int from, int flags)
{
	char path[40];

	(void)c;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	return open(path, flags | O_CLOEXEC);
}

/*
 * A pipe whose writer is closed hangs up by itself, for epoll too. The pipe is kept by an O_PATH
 * descriptor; without a writer nothing tells of the last close, so carriers_probe() asks.
 */
void carrier_hang_up(struct carrier *c, bool hung)
{
	struct epoll_event ev = {.events = EPOLLERR | EPOLLET, .data.ptr = &c->poll};

	if (c->closed || hung == (c->hung_fd >= 0))
		return;
	if (hung) {
		c->hung_fd = reopen(c, c->wfd, O_PATH);
		if (c->hung_fd < 0)
			return;
		epoll_ctl(c->s->ends, EPOLL_CTL_DEL, c->wfd, NULL);
		close(c->wfd);
		c->wfd = -1;
		c->s->nr_hung++;
		return;
	}
	c->wfd = reopen(c, c->hung_fd, O_WRONLY | O_NONBLOCK);
	close(c->hung_fd);
	c->hung_fd = -1;
	c->s->nr_hung--;
	if (c->wfd < 0) {
		c->closed = true;
		if (!c->maps)
			carrier_end(c);
		return;
	}
	epoll_ctl(c->s->ends, EPOLL_CTL_ADD, c->wfd, &ev);
}

/* The hung ones: a pipe without readers cannot be opened for writing. */
void carriers_probe(struct session *s)
{
	struct carrier *c, *tmp;

	list_for_each_entry_safe (c, tmp, &s->carriers, link) {
		int fd;

		if (c->hung_fd < 0 || c->closed)
			continue;
		fd = reopen(c, c->hung_fd, O_WRONLY | O_NONBLOCK);
		if (fd >= 0) {
			close(fd);
		} else if (errno == ENXIO) {
			c->closed = true;
			if (!c->maps)
				carrier_end(c);
		}
	}
}

/* No descriptor is left; a mapping keeps the event as it keeps a file. */
void carrier_closed(struct carrier *c)
{
	c->closed = true;
	if (c->wfd >= 0)
		epoll_ctl(c->s->ends, EPOLL_CTL_DEL, c->wfd, NULL);
	if (!c->maps)
		carrier_end(c);
}

void carrier_end(struct carrier *c)
{
	struct session *s = c->s;
	bool frozen = session_freeze(s);

	c->poll.gone = true;
	if (c->hung_fd >= 0)
		s->nr_hung--;
	snapshot_drop(c);
	/*
	 * To ask a thread on another CPU what time it has is to interrupt it, and that CPU's
	 * hypervisor with it. When exactly an event ends nobody can see, unless another one takes
	 * its place.
	 */
	if (frozen && c->event->target && task_host(c->event->target) &&
	    !event_is_waited_for(c->event))
		clock_skip(task_host(c->event->target));
	snapshots_invalidate(s);
	s->handles[c->index] = NULL;
	if (c->index < s->handle_hint)
		s->handle_hint = c->index;
	event_set_host(c->event, NULL);
	event_put(c->event);
	c->event = NULL;
	list_move_tail(&c->link, &s->dead_carriers);
	snapshots_revalidate(s);
	session_thaw(s, frozen);
}

/* @p has mapped @c's event once more (@times 1) or once less (-1: 0, or -EINVAL if it had not). */
int map_note(struct proc *p, struct carrier *c, int times)
{
	struct mapping *m, *found = NULL;

	list_for_each_entry (m, &p->mappings, link)
		if (m->carrier == c)
			found = m;
	if (times > 0) {
		if (!found) {
			found = calloc(1, sizeof(*found));
			if (!found) {
				event_unmap(c->event);
				return -ENOMEM;
			}
			found->carrier = c;
			list_add_tail(&found->link, &p->mappings);
		}
		found->times++;
		c->maps++;
		return 0;
	}
	if (!found)
		return -EINVAL;
	if (--found->times == 0) {
		list_del(&found->link);
		free(found);
	}
	c->maps--;
	event_unmap(c->event);
	if (!c->maps && c->closed)
		carrier_end(c);
	return 0;
}

/* The address space went: exec or the end. */
void maps_drop(struct proc *p)
{
	while (!list_empty(&p->mappings)) {
		struct mapping *m = list_first(&p->mappings, struct mapping, link);

		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		map_note(p, m->carrier, -1);
	}
}

void carrier_free(struct carrier *c)
{
	list_del(&c->link);
	if (c->wfd >= 0)
		close(c->wfd);
	if (c->hung_fd >= 0)
		close(c->hung_fd);
	if (c->page)
		munmap(c->page, 4096);
	if (c->page_fd >= 0)
		close(c->page_fd);
	free(c);
}
