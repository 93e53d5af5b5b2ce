/*
 * Sockets: the bootstrap socket through which processes introduce themselves, each process's own
 * socket, and the name under which others find the session.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session-priv.h"

#define KICKS_AT_ONCE 64 /* of one socket, before others have their turn */

#define FDS_MOST 253 /* the kernel's: in one message */

struct kick_message {
	struct wire_kick kick;
	pid_t pid;  /* as the kernel says */
	int fd;     /* or -1; the receiver's to close */
	bool flood; /* @closer has too much to do */
};

/*
 * 1 and a message, 0 if there is none now, -errno (-EPIPE: hung up, -EBADMSG: not of ours). All
 * descriptors are taken: those for which there is no room the kernel would close at once, and wait.
 */
static int receive(int sock, struct kick_message *m, struct closer **closer)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FDS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&m->kick, sizeof(m->kick)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	m->pid = 0;
	m->fd = -1;
	m->flood = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			m->pid = cred.pid;
		} else if (c->cmsg_type == SCM_RIGHTS) {
			size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

			for (size_t i = 0; i < fds; i++) {
				int fd;

				memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
				if (m->fd < 0)
					m->fd = fd;
				else
					m->flood |= !closer_close(closer, fd);
			}
		}
	}
	/* An empty message has a sender, the end of the stream has none. */
	if (n == 0 && m->fd < 0 && !m->pid)
		return -EPIPE;
	if (n != sizeof(m->kick)) {
		m->flood |= !closer_close(closer, m->fd);
		return -EBADMSG;
	}
	return 1;
}

/* What is in it when it goes the kernel would close for us, and wait; after this nothing comes. */
void sock_close(int sock, struct closer **closer)
{
	struct kick_message m;
	int n;

	shutdown(sock, SHUT_RD);
	while ((n = receive(sock, &m, closer)) == 1 || n == -EBADMSG)
		if (n == 1)
			(void)closer_close(closer, m.fd);
	/* Behind them in the queue, if there is one. */
	if (*closer)
		(void)closer_close(closer, sock);
	else
		close(sock);
}

/* A guest may send any descriptor; only this is a socket that cannot block or surprise us. */
static bool is_own_kind(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX)
		return false;
	len = sizeof(type);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

static int take_socket(struct guest_process *p, int sock)
{
	int one = 1, err;

	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)))
		return -errno;
	err = poll_source_add(p->s->loop.all, sock, &p->sock_poll, POLL_SOURCE_SOCK, EPOLLIN);
	if (!err)
		p->sock = sock;
	return err;
}

/*
 * The session will not hear of this socket again. The process may live on: natively, after an exec
 * out of our reach, or with a runtime that has lost it; either way its tasks are not counted from
 * here on.
 */
static void drop_socket(struct guest_process *p)
{
	serve_forget(p->s, p);
	epoll_ctl(p->s->loop.all, EPOLL_CTL_DEL, p->sock, NULL);
	sock_close(p->sock, &p->closer);
	p->sock = -1;
}

void sock_refuse(struct guest_process *p)
{
	if (p->sock >= 0)
		drop_socket(p);
}

static struct guest_thread *hello_thread(struct guest_process *p, const struct wire_kick *k)
{
	bool same;
	s32 tid = pid_translate(p->pid, k->tid, &same);
	struct guest_thread *th = NULL;

	p->same_ns = same;
	if (tid <= 0 || (k->meter >= p->s->meters.slots && k->meter != WIRE_NO_METER))
		return NULL;
	if (k->flags & WIRE_HELLO_CHILD) {
		/* The task that WIRE_OP_FORK made is the only one of a new process. */
		th = list_first(&p->threads, struct guest_thread, link);
	} else if (k->flags & WIRE_HELLO_EXEC) {
		/* It has the leader's tid now, whoever it was before; it has kept its meter. */
		th = guest_thread_by_meter(p, k->meter);
		/* One that was adopted before its first exec has no meter to be known by. */
		if (!th) {
			th = guest_thread_by_tid(p, tid);
			if (th && th->meter != WIRE_NO_METER)
				th = NULL;
		}
	} else {
		th = guest_thread_by_tid(p, tid);
	}
	if (!th) {
		th = guest_thread_new(p, tid, WIRE_NO_METER);
		if (!th)
			return NULL;
	}
	guest_thread_set_tid(th, tid);
	guest_thread_set_token(th, 0);
	th->guest_tid = k->tid;
	guest_thread_set_meter(th, k->meter);
	clock_told(th, k->cpu_time);
	if (th->task)
		clock_attach(th);
	return th;
}

/* First words of a process on @p->sock. */
static int hello(struct guest_process *p, const struct kick_message *m)
{
	struct guest_thread *th;
	int err;

	if (m->kick.version != WIRE_VERSION)
		return -EPROTO;
	if (m->pid <= 0)
		return -EPERM;
	if (!p->pid) {
		if (guest_process_by_pid(p->s, m->pid))
			return -EPERM;
		guest_process_set_pid(p, m->pid);
		p->token = 0;
		err = guest_process_watch_end(p);
		if (err)
			return err;
	} else if (p->pid != m->pid) {
		return -EPERM;
	}
	th = hello_thread(p, &m->kick);
	if (!th)
		return -EINVAL;
	if (m->kick.flags & WIRE_HELLO_EXEC)
		guest_process_exec(p, th);
	if (p->s->wide.on) {
		err = guest_thread_need_task(th);
		if (err)
			return err;
		clock_attach(th);
		wide_place(th);
	}
	err = guest_process_make_memory(p);
	if (!err) {
		p->page->pid = (u32)p->pid;
		p->page->ppid = (u32)p->forker;
	}
	return err;
}

/* What arrived, for the body of an instant. */
struct arrival {
	struct guest_process *process; /* on its own socket; NULL: on the bootstrap socket */
	struct kick_message *message;
};

static void welcome(struct guest_process *p, const struct kick_message *m)
{
	int err = hello(p, m);

	if (err || fd_message_send(p->sock, WIRE_FD_MESSAGE_HELLO, 0, p->memfd)) {
		fd_message_send(p->sock, WIRE_FD_MESSAGE_HELLO, (u32)-err, -1);
		/* Nobody would tell of its end. */
		if (p->pidfd < 0)
			guest_process_end(p);
		else
			drop_socket(p);
	}
}

static void hello_arrived(struct session *s, void *arg)
{
	const struct arrival *a = arg;

	(void)s;
	if (!a->process->sock_poll.gone)
		welcome(a->process, a->message);
}

/* A process that the session may know already: an event was opened on it. */
static void introduce(struct session *s, void *arg)
{
	struct kick_message *m = ((const struct arrival *)arg)->message;
	struct guest_process *p;
	bool is_new = false;

	if (m->kick.what != WIRE_KICK_HELLO || m->pid <= 0 || m->fd < 0 || !is_own_kind(m->fd))
		return;
	if (m->pid == s->guests.own_pid) {
		fd_message_send(m->fd, WIRE_FD_MESSAGE_HELLO, EPERM, -1);
		return;
	}
	p = guest_process_by_pid(s, m->pid);
	if (p && p->sock >= 0) {
		/*
		 * Its image was replaced without word, or it lost its socket: the new one counts.
		 */
		drop_socket(p);
	}
	if (!p) {
		p = guest_process_new(s, m->pid);
		is_new = true;
		if (!p)
			return;
		if (guest_process_watch_end(p)) {
			guest_process_end(p);
			return;
		}
	}
	if (take_socket(p, m->fd)) {
		if (is_new)
			guest_process_end(p);
		return;
	}
	m->fd = -1;
	welcome(p, m);
}

int bootstrap_add(struct session *s, int sock)
{
	struct bootstrap *bootstrap = calloc(1, sizeof(*bootstrap));
	int err;

	if (!bootstrap) {
		close(sock);
		return -ENOMEM;
	}
	bootstrap->sock = sock;
	list_add_tail(&bootstrap->link, &s->bootstraps.open);
	err = poll_source_add(s->loop.all, sock, &bootstrap->poll, POLL_SOURCE_BOOTSTRAP, EPOLLIN);
	if (err)
		bootstrap_free(bootstrap);
	return err;
}

int bootstrap_open(struct session *s, int *guest_end)
{
	int inside = -1, outside = -1, err = bootstrap_pair(&inside, &outside);

	if (err)
		return err;
	err = bootstrap_add(s, inside);
	if (err)
		close(outside);
	else
		*guest_end = outside;
	return err;
}

void bootstrap_free(struct bootstrap *bootstrap)
{
	list_del(&bootstrap->link);
	close(bootstrap->sock);
	free(bootstrap);
}

void bootstrap_read(struct session *s, struct bootstrap *bootstrap)
{
	for (int i = 0; i < KICKS_AT_ONCE; i++) {
		struct kick_message m;
		int n = receive(bootstrap->sock, &m, &s->bootstraps.closer);

		if (n == 0)
			return;
		if (n == -EBADMSG)
			continue;
		if (n < 0) {
			epoll_ctl(s->loop.all, EPOLL_CTL_DEL, bootstrap->sock, NULL);
			bootstrap->poll.gone = true;
			list_move_tail(&bootstrap->link, &s->bootstraps.dead);
			return;
		}
		instant_run(s, introduce, &(struct arrival){.message = &m});
		(void)closer_close(&s->bootstraps.closer, m.fd);
	}
}

static void kick_fd(struct guest_process *p, struct kick_message *m)
{
	int *fd;

	if (m->kick.slot >= WIRE_SLOTS)
		return;
	fd = &p->fds[m->kick.slot];
	m->flood |= !closer_close(&p->closer, *fd);
	*fd = m->fd;
	m->fd = -1;
}

static bool has_meter(const struct guest_process *p)
{
	const struct guest_thread *th;

	list_for_each_entry (th, &p->threads, link)
		if (guest_thread_meter(th))
			return true;
	return false;
}

static void hung_up(struct session *s, void *arg)
{
	struct guest_process *p = arg;

	(void)s;
	if (p->sock_poll.gone)
		return;
	/*
	 * A guest is ended by its pidfd. Who has not said who it is has none; and a remote client
	 * may live on for long when it has left.
	 */
	if (!p->pid || !has_meter(p))
		guest_process_end(p);
	else
		drop_socket(p);
}

void sock_read(struct guest_process *p)
{
	for (int i = 0; i < KICKS_AT_ONCE && p->sock >= 0 && !p->sock_poll.gone; i++) {
		struct kick_message m;
		int n = receive(p->sock, &m, &p->closer);

		if (n == 0)
			return;
		if (n == -EBADMSG) {
			if (m.flood)
				sock_refuse(p);
			continue;
		}
		if (n < 0) {
			instant_run(p->s, hung_up, p);
			return;
		}
		switch (m.kick.what) {
		case WIRE_KICK_CALL: serve_slot(p, m.kick.slot); break;
		case WIRE_KICK_FD: kick_fd(p, &m); break;
		/* Every instant begins with what traces tell. */
		case WIRE_KICK_TRACE: instant_run(p->s, NULL, NULL); break;
		case WIRE_KICK_HELLO:
			instant_run(p->s, hello_arrived,
				    &(struct arrival){.process = p, .message = &m});
			break;
		}
		if ((!closer_close(&p->closer, m.fd) || m.flood) && !p->sock_poll.gone)
			sock_refuse(p);
	}
}

/* A process's own end of a socket that the session made for it (WIRE_OP_FORK). */
int guest_process_make_socket(struct guest_process *p, int *guest_end)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = take_socket(p, pair[0]);
	if (err) {
		close(pair[0]);
		close(pair[1]);
		return err;
	}
	*guest_end = pair[1];
	return 0;
}

int listen_open(struct session *s, const char *name, char *why, size_t len)
{
	struct sockaddr_un sa;
	socklen_t sa_len = session_address(&sa, name);
	int err;

	if (!sa_len) {
		snprintf(why, len, "the session's name \"%s\" is too long", name);
		return -ENAMETOOLONG;
	}
	s->bootstraps.listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->bootstraps.listen < 0 ||
	    bind(s->bootstraps.listen, (struct sockaddr *)&sa, sa_len) ||
	    listen(s->bootstraps.listen, 16)) {
		err = -errno;
		snprintf(why, len,
			 err == -EADDRINUSE ? "a session named \"%s\" is running already"
					    : "naming the session \"%s\" failed",
			 name);
		return err;
	}
	return 0;
}

/* Gives who joins what guests inherit: the segment and the bootstrap socket. */
void listen_accept(struct session *s)
{
	int sock = accept4(s->bootstraps.listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const struct session_joined joined = {SESSION_START_MAGIC, s->config.run};
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int bootstrap = -1;

	if (sock < 0)
		return;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	    (cred.uid == getuid() || cred.uid == 0) && bootstrap_open(s, &bootstrap) == 0) {
		if (!send_fd(sock, &joined, sizeof(joined), s->meters.fd, MSG_DONTWAIT))
			fd_message_send(sock, 1, 0, bootstrap);
		close(bootstrap);
	}
	/* Anybody can have sent anything. */
	sock_close(sock, &s->bootstraps.closer);
}
