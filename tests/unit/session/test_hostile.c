/*
 * Guests that mean harm: what they send, claim and write does not stop the session, which others
 * need as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session-priv.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

#define NOT_HERE 77 /* of a guest: what it would do harm with is not to be had */

static struct session *start(void)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	struct session *s = NULL;
	char why[300];

	if (session_new(&config, &s, why, sizeof(why))) {
		fprintf(stderr, "session_new: %s\n", why);
		exit(1);
	}
	return s;
}

/* Runs the session until @child has been waited for; its exit status. */
static int serve_until_exit(struct session *s, pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0)
		session_run(s, 10);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect_served(void (*body)(struct mock *g))
{
	struct session *s = start();
	int status = serve_until_exit(s, mock_fork(s, body));

	if (status != NOT_HERE)
		EXPECT_EQ(status, 0);
	session_free(s);
}

static int listening(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) || listen(fd, 200) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		_exit(NOT_HERE);
	return fd;
}

/*
 * A socket that has something to say to somebody who does not listen: to close it takes a minute.
 */
static int lingering(int listener, const struct sockaddr_in *at)
{
	const struct linger minute = {.l_onoff = 1, .l_linger = 60};
	char bytes[65536] = {0};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(fd >= 0 && listener >= 0);
	NEED(connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0);
	NEED(setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)) == 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* With or without a call that wants it, and more of them in one message than any call wants. */
static void send_what_lingers(struct mock *g)
{
	struct sockaddr_in at;
	int listener = listening(&at), fd;

	NEED(mock_hello(g, -1, 0) == 0);
	for (int i = 0; i < 3; i++) {
		fd = lingering(listener, &at);
		mock_send_fd(g, fd);
		close(fd);
		NEED(i == 0 || mock_call(g, WIRE_OP_PING) == 0);
		NEED(mock_call(g, WIRE_OP_LOOKUP) == -ENOENT);
	}
	fd = lingering(listener, &at);
	mock_send_fds(g, fd, 40);
	close(fd);
	NEED(mock_call(g, WIRE_OP_PING) == 0);
}

TEST(a_descriptor_that_takes_long_to_close)
{
	expect_served(send_what_lingers);
}

/* It is still in the socket when that is closed. */
static void leave_what_lingers(struct mock *g)
{
	struct sockaddr_in at;
	int listener = listening(&at), fd;

	NEED(mock_hello(g, -1, 0) == 0);
	for (int i = 0; i < 100; i++) {
		fd = lingering(listener, &at);
		mock_send_fd(g, fd);
		/* Ours stays: it would be us who waits if it was not sent. */
	}
	NEED(mock_hello(g, -1, 0) == 0);
	NEED(mock_call(g, WIRE_OP_PING) == 0);
}

TEST(a_socket_with_what_takes_long_to_close)
{
	expect_served(leave_what_lingers);
}

/* A file system whose server never answers: whoever asks it anything waits for ever. */
static int silent_root(char *dir)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[100];

	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    !mkdtemp(dir))
		_exit(NOT_HERE);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mount("silent", dir, "fuse", 0, options))
		_exit(NOT_HERE);
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void send_what_never_answers(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	char dir[] = "/tmp/anyperf-silent-XXXXXX";
	int fd = silent_root(dir);
	u64 h;

	NEED(fd >= 0);
	NEED(mock_hello(g, -1, 0) == 0);
	/* So that there are settings that it could be. */
	NEED(mock_call(g, WIRE_OP_VIEW) == 0);
	mock_send_fd(g, fd);
	NEED(mock_call(g, WIRE_OP_LOOKUP) == -ENOENT);
	mock_send_fd(g, fd);
	NEED(mock_open(g, &attr, fd, 0, WIRE_NO_EVENT, PERF_FLAG_PID_CGROUP, &h) == -EBADF);
	NEED(mock_call(g, WIRE_OP_PING) == 0);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
}

TEST(a_file_whose_file_system_never_answers)
{
	expect_served(send_what_never_answers);
}

/* The number of the kernel's PMU; -1: it has none. */
static s32 uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -1;
	if (f)
		fclose(f);
	return type;
}

static void probe_what_never_answers(struct mock *g)
{
	char dir[] = "/tmp/anyperf-silent-XXXXXX", path[100];
	struct pe_attr attr = mock_attr();
	int fd;

	attr.type = (u32)uprobe_type();
	attr.config = 0;
	attr.exclude_kernel = attr.exclude_hv = 0;
	attr.uprobe_path = 1;
	if (uprobe_type() < 0)
		_exit(NOT_HERE);
	fd = silent_root(dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	NEED(fd >= 0);
	NEED(mock_hello(g, -1, 0) == 0);
	for (int i = 0; i < 20; i++) {
		memcpy(g->slot->data, &attr, sizeof(attr));
		strcpy((char *)g->slot->data + sizeof(attr), path);
		g->slot->len = (u32)(sizeof(attr) + strlen(path) + 1);
		g->slot->args.open = (struct wire_open_args){.cpu = -1,
							     .group = WIRE_NO_EVENT,
							     .attr_size = sizeof(attr),
							     .path = sizeof(attr)};
		NEED(mock_call(g, WIRE_OP_OPEN) == -ETIMEDOUT);
		NEED(g->slot->refusal.cause == CAUSE_PROBE_SILENT);
	}
	NEED(mock_call(g, WIRE_OP_PING) == 0);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
}

TEST(a_probe_in_a_file_system_that_never_answers)
{
	expect_served(probe_what_never_answers);
}

/* Says that all meters are in use, and writes in none. */
static void claim_all(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h;

	NEED(mock_hello(g, -1, 0) == 0);
	g->segment->used = ~0u;
	NEED(mock_open(g, &attr, -1, 0, WIRE_NO_EVENT, 0, &h) >= 0);
	NEED(mock_open(g, &attr, getppid(), -1, WIRE_NO_EVENT, 0, &h) == -ENOENT);
}

TEST(meters_that_are_claimed_are_not_made)
{
	struct session *s = start();
	struct stat st;

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, claim_all)), 0);
	EXPECT_EQ(fstat(session_segment_fd(s), &st), 0);
	EXPECT(st.st_blocks < 200);
	session_free(s);
}

#define LIES 20000

/* Meters that name somebody who is there and no guest. */
static void name_others(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h, word;

	NEED(mock_hello(g, -1, 0) == 0);
	for (u32 i = 0; i < LIES; i++) {
		u32 index = mock_take_meter(g);
		struct meter *m = (struct meter *)((u8 *)g->segment + segment_offset(index));

		m->tid = 1;
		m->pid = 1 + (i & 1);
		m->state = METER_RUNNING;
	}
	attr.disabled = 0;
	for (int i = 0; i < 10; i++) {
		NEED(mock_open(g, &attr, -1, 0, WIRE_NO_EVENT, 0, &h) >= 0);
		NEED(mock_read(g, h, &word, sizeof(word)) == 8);
	}
}

/* To see through each of them whenever somebody looks would take longer than anybody waits. */
TEST(meters_that_lie)
{
	expect_served(name_others);
}

#define FILES 400 /* descriptors that the session may have */

/* As many as it gets, and then processes that never come. All stay until the others are done. */
static void take_all(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	s64 ret = 0;
	u64 h;
	u32 n;

	NEED(mock_hello(g, -1, 0) == 0);
	for (n = 0; n < FILES && ret >= 0; n++)
		ret = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(ret == -EMFILE && g->slot->refusal.cause == CAUSE_SESSION_SHARE);
	NEED(n > FILES / 3 * 2);
	g->slot->args.fork = (struct wire_fork_args){.clone_flags = SIGCHLD, .meter = 5};
	NEED(mock_call(g, WIRE_OP_FORK) == -EMFILE);
	NEED(g->slot->refusal.cause == CAUSE_SESSION_SHARE);
	pause();
}

static void take_some(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h;

	NEED(mock_hello(g, -1, 0) == 0);
	for (int i = 0; i < 30; i++)
		NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	for (int i = 0; i < 5; i++) {
		g->slot->args.fork = (struct wire_fork_args){.clone_flags = SIGCHLD, .meter = 7};
		NEED(mock_call(g, WIRE_OP_FORK) > 0);
		close(mock_take_fd(g));
	}
}

TEST(descriptors_are_left_for_others)
{
	const struct rlimit few = {FILES, FILES};
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct session *s;
		pid_t greedy;
		u32 before;

		NEED(setrlimit(RLIMIT_NOFILE, &few) == 0);
		s = start();
		greedy = mock_fork(s, take_all);
		/* Until it has all that it gets: nothing more is opened. */
		do {
			before = s->files.by_pipe.n;
			for (int i = 0; i < 20; i++)
				session_run(s, 5);
		} while (!before || s->files.by_pipe.n != before);
		NEED(serve_until_exit(s, mock_fork(s, take_some)) == 0);
		NEED(waitpid(greedy, &status, WNOHANG) == 0);
		kill(greedy, SIGKILL);
		waitpid(greedy, NULL, 0);
		session_run(s, 0);
		session_free(s);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
}

#define LITTLE  (24u << 20) /* bytes that there are for all */
#define INHERIT 50u

static s64 announce(struct mock *g, u64 flags, u32 meter)
{
	g->slot->args.fork = (struct wire_fork_args){.clone_flags = flags, .meter = meter};
	return mock_call(g, WIRE_OP_FORK);
}

/* Threads that never begin, with all that they inherit, until there is no more. */
static void announce_all(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	s64 ret = 0;
	u64 h;
	u32 n;

	attr.inherit = 1;
	NEED(mock_hello(g, -1, 0) == 0);
	for (n = 0; n < INHERIT; n++)
		NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	for (n = 0; n < LITTLE / 4096 && ret >= 0; n++)
		ret = announce(g, CLONE_THREAD, 1000 + n);
	NEED(ret == -ENOMEM && g->slot->refusal.cause == CAUSE_SESSION_MEMORY);
	NEED(g->slot->refusal.number[0] > 4 && n > 100);
	pause();
}

/* An honest one beside it. */
static void announce_some(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	s64 token = 0;
	u64 h;

	attr.inherit = 1;
	NEED(mock_hello(g, -1, 0) == 0);
	for (u32 i = 0; i < 20; i++)
		NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	for (u32 i = 0; i < 100; i++) {
		token = announce(g, CLONE_THREAD, 100 + i);
		NEED(token > 0);
	}
	/* What it takes back it may have again. */
	for (u32 i = 0; i < 2000; i++) {
		g->slot->args.unfork.token = (u32)token;
		NEED(mock_call(g, WIRE_OP_UNFORK) == 0);
		token = announce(g, CLONE_THREAD, 100 + 99);
		NEED(token > 0);
	}
}

TEST(memory_is_left_for_others)
{
	struct session *s = start();
	int status = 0;
	u64 before;
	pid_t pid;

	s->memory.limit = LITTLE;
	pid = mock_fork(s, announce_all);
	/* Until it has all that it gets. */
	do {
		before = s->memory.held;
		for (int i = 0; i < 20; i++)
			session_run(s, 5);
	} while (!before || s->memory.held != before);
	EXPECT(before <= LITTLE);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, announce_some)), 0);
	EXPECT_EQ(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	session_run(s, 0);
	EXPECT_EQ(s->memory.held, 0);
	session_free(s);
}

static void announce_thousands(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h;

	attr.inherit = 1;
	NEED(mock_hello(g, -1, 0) == 0);
	for (u32 i = 0; i < 20; i++)
		NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	for (u32 i = 0; i < 2000; i++)
		NEED(announce(g, CLONE_THREAD, 100 + i) > 0);
}

TEST(thousands_of_threads_are_no_harm)
{
	expect_served(announce_thousands);
}

/* Tasks are looked for by their meters. */
static void announce_one_meter(struct mock *g)
{
	u32 n = 0;
	s64 ret;

	NEED(mock_hello(g, -1, 0) == 0);
	do
		ret = announce(g, CLONE_THREAD, 1000);
	while (ret > 0 && ++n < 10000);
	NEED(ret == -EAGAIN && g->slot->refusal.cause == CAUSE_SESSION_AWAITS);
	NEED(announce(g, CLONE_THREAD, 1001) > 0);
}

TEST(tasks_are_announced_with_meters_of_their_own)
{
	expect_served(announce_one_meter);
}
