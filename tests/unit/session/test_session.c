/*
 * A session and guests that have no runtime: life of an event over the wire, forks, execs, deaths.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session/session-priv.h"
#include "session/wire/rendezvous.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

static struct session *start(u32 counters)
{
	struct session_config config = {
		.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1, .counters = counters};
	struct session *s = NULL;
	char why[300];

	if (session_new(&config, &s, why, sizeof(why))) {
		fprintf(stderr, "session_new: %s\n", why);
		exit(1);
	}
	return s;
}

/* A guest in this process; the session itself is served from within its calls. */
static void start_guest(struct session *s, struct mock *g)
{
	mock_init(g, session_segment_fd(s), session_bootstrap_fd(s));
	g->serve = s;
}

/* Runs the session until @child has been waited for; its exit status. */
static int serve_until_exit(struct session *s, pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0)
		session_run(s, 10);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void count_self(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h, words[5];
	int fd;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.read_format = 0x17;
	mock_count(g, 1000, 10);
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 8, &h);
	NEED(fd >= 0);
	NEED(mock_read(g, h, words, sizeof(words)) == 40);
	NEED(words[0] == 0 && words[1] == 0 && words[2] == 0 && words[3] != 0);
	NEED(mock_ioctl(g, h, PERF_EVENT_IOC_ENABLE, 0) == 0);
	mock_count(g, 500, 5);
	NEED(mock_ioctl(g, h, PERF_EVENT_IOC_DISABLE, 0) == 0);
	mock_count(g, 7, 5);
	NEED(mock_read(g, h, words, sizeof(words)) == 40);
	NEED(words[0] == 500);
	NEED(words[1] > 0 && words[1] == words[2]);
	NEED(mock_ioctl(g, h, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(mock_read(g, h, words, 40) == 40 && words[0] == 0);
	/* Each says why, whatever the session does for its snapshots before it answers. */
	NEED(mock_read(g, h, words, 32) == -ENOSPC);
	NEED(g->slot->refusal.cause == CAUSE_READ_SPACE);
	NEED(mock_ioctl(g, h, 0x1234, 0) == -ENOTTY);
	NEED(g->slot->refusal.cause == CAUSE_IOCTL_UNKNOWN);
	NEED(g->slot->refusal.number[0] == 0x1234 && g->slot->refusal.err == -ENOTTY);
	/* After the last close the handle names nothing. */
	close(fd);
	NEED(mock_read(g, h, words, 40) == -EBADF);
	NEED(g->slot->refusal.cause == CAUSE_NO_EVENT);
	NEED(mock_call(g, 99) == -ENOSYS);
	NEED(g->slot->refusal.cause == CAUSE_SESSION_ERRNO);
}

TEST(a_guest_counts_itself)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, count_self)), 0);
	session_free(s);
}

/* In a process that may not set socket options: what is wrong, or 0. */
static int bootstrap_without_credentials(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_setsockopt, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
	int inside = -7, outside = -7, next = dup(0);

	close(next);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 0;
	if (bootstrap_pair(&inside, &outside) != -EPERM || inside != -7 || outside != -7)
		return 1;
	/* Nothing is left open. */
	return dup(0) == next && dup(0) == next + 1 ? 0 : 2;
}

TEST(a_bootstrap_that_cannot_be_made)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(bootstrap_without_credentials());
	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(the_session_is_no_guest)
{
	struct session *s = start(0);
	struct mock g;

	/* The session's own process is no guest: it may not say HELLO. */
	start_guest(s, &g);
	EXPECT(mock_hello(&g, -1, 0) < 0);
	mock_release(&g);
	session_free(s);
}

/* An event that is opened on a CPU without being off runs as long as it is enabled. */
static void open_on_a_cpu(struct mock *g)
{
	struct pe_attr attr = {.type = PERF_TYPE_SOFTWARE,
			       .size = sizeof(attr),
			       .config = PERF_COUNT_SW_DUMMY,
			       .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
					      PERF_FORMAT_TOTAL_TIME_RUNNING};
	u64 words[3], h;

	NEED(mock_hello(g, -1, 0) == 0);
	for (int i = 0; i < 3; i++) {
		NEED(mock_open(g, &attr, -1, 0, WIRE_NO_EVENT, 8, &h) >= 0);
		NEED(mock_read(g, h, words, sizeof(words)) == 24);
		NEED(words[1] > 0 && words[1] == words[2]);
	}
}

TEST(the_session_opens_at_one_instant)
{
	struct session_config config = {.paranoid = -1, .ignore_kernel = true, .segment_fd = -1};
	struct session *s = NULL;
	char why[300];

	ASSERT(session_new(&config, &s, why, sizeof(why)) == 0);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, open_on_a_cpu)), 0);
	session_free(s);
}

/* A remote client has no meter: it may make a child a guest, and is none itself. */
static void adopt_a_child(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	pid_t child;
	int fds[2];
	u64 h;

	NEED(pipe(fds) == 0);
	child = fork();
	NEED(child >= 0);
	if (!child) {
		char byte;

		close(fds[1]);
		(void)!read(fds[0], &byte, 1);
		_exit(0);
	}
	g->meter = WIRE_NO_METER;
	NEED(mock_hello(g, -1, 0) == 0);
	NEED(mock_open(g, &attr, child, -1, WIRE_NO_EVENT, 8, &h) == -ENOENT);
	g->slot->args.adopt = (struct wire_adopt_args){.pid = 1};
	NEED(mock_call(g, WIRE_OP_ADOPT) == -EPERM);
	g->slot->args.adopt = (struct wire_adopt_args){.pid = child};
	NEED(mock_call(g, WIRE_OP_ADOPT) == 0);
	NEED(mock_call(g, WIRE_OP_ADOPT) == -EEXIST);
	NEED(mock_open(g, &attr, child, -1, WIRE_NO_EVENT, 8, &h) >= 0);
	close(fds[1]);
	NEED(waitpid(child, NULL, 0) == child);
	NEED(mock_open(g, &attr, child, -1, WIRE_NO_EVENT, 8, &h) == -ESRCH);
}

static void adopt_as_a_guest(struct mock *g)
{
	NEED(mock_hello(g, -1, 0) == 0);
	g->slot->args.adopt = (struct wire_adopt_args){.pid = getppid()};
	NEED(mock_call(g, WIRE_OP_ADOPT) == -EPERM);
}

TEST(a_remote_client_makes_a_guest)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, adopt_a_child)), 0);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, adopt_as_a_guest)), 0);
	session_free(s);
}

static void wrong_calls(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h;

	NEED(mock_hello(g, -1, 0) == 0);
	NEED(mock_open(g, &attr, 0, -1, WIRE_BAD_EVENT, 0, &h) == -EBADF);
	NEED(g->slot->result.open_refusal.past_fd_check ==
	     1); /* a missing descriptor would have won [CALL-16] */
	NEED(mock_open(g, &attr, 0, -1, 0x1234500000001, 0, &h) == -EBADF);
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 16, &h) == -EINVAL);
	NEED(g->slot->result.open_refusal.past_fd_check == 0);
	attr.size = 4;
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) == -E2BIG);
	NEED(g->slot->result.open_refusal.attr_size >= PE_ATTR_SIZE_VER7);
	attr = mock_attr();
	attr.exclude_kernel = 0;
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) == -EACCES);
	NEED(g->slot->refusal.cause != CAUSE_NONE);
	attr = mock_attr();
	attr.type = 77;
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) == -ENOENT);
	attr = mock_attr();
	NEED(mock_open(g, &attr, 1, -1, WIRE_NO_EVENT, 0, &h) == -ENOENT);
	NEED(g->slot->refusal.cause == CAUSE_NOT_A_GUEST);
	NEED(mock_open(g, &attr, 4194304, -1, WIRE_NO_EVENT, 0, &h) == -ESRCH);
	NEED(mock_call(g, 99) == -ENOSYS);
	NEED(mock_call(g, 0) == -ENOSYS);
	NEED(mock_read(g, ~0ull, NULL, 0) == -EBADF);
	g->slot->len = WIRE_DATA + 1;
	NEED(mock_call(g, WIRE_OP_PING) == -EPROTO);
	g->slot->len = 0;
	g->meter = SEGMENT_SLOTS;
	NEED(mock_call(g, WIRE_OP_PING) == -EPROTO);
}

TEST(refusals)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, wrong_calls)), 0);
	session_free(s);
}

static int the_segment;

static void inherit(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h, words[3];
	s64 token;
	int sock, fd;
	pid_t child;
	u32 meter;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.inherit = 1;
	attr.disabled = 0;
	attr.read_format = 3;
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(fd >= 0);
	NEED(g->m->watch & WIRE_WATCH_TASKS);
	mock_count(g, 100, 1);
	for (int i = 0; i < 3; i++) {
		meter = mock_take_meter(g);
		g->slot->args.fork = (struct wire_fork_args){SIGCHLD, meter};
		token = mock_call(g, WIRE_OP_FORK);
		NEED(token > 0);
		sock = mock_take_fd(g);
		NEED(sock >= 0);
		child = fork();
		if (child == 0) {
			struct mock c;

			if (i == 1)
				_exit(0); /* before it said anything */
			mock_init(&c, the_segment, g->bootstrap);
			mock_set_meter(&c, meter);
			NEED(mock_hello(&c, sock, WIRE_HELLO_CHILD) == 0);
			mock_count(&c, 1000, 10);
			if (i == 2)
				raise(SIGKILL);
			_exit(0);
		}
		close(sock);
		waitpid(child, NULL, 0);
		NEED(mock_read(g, h, words, 24) == 24);
		NEED(words[0] == (i == 2 ? 2100u : 1100u));
	}
	/* A fork that failed. */
	g->slot->args.fork = (struct wire_fork_args){SIGCHLD, mock_take_meter(g)};
	token = mock_call(g, WIRE_OP_FORK);
	close(mock_take_fd(g));
	g->slot->args.unfork.token = (u32)token;
	mock_call(g, WIRE_OP_UNFORK);
	NEED(mock_read(g, h, words, 24) == 24 && words[0] == 2100);
}

TEST(inherited_counts_are_complete_after_wait)
{
	struct session *s = start(0);

	the_segment = session_segment_fd(s);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, inherit)), 0);
	session_free(s);
}

static void unfork_of_a_stranger(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	int sock, status;
	pid_t stranger;
	s64 token;
	u64 h;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.inherit = 1;
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	g->slot->args.fork = (struct wire_fork_args){SIGCHLD, mock_take_meter(g)};
	token = mock_call(g, WIRE_OP_FORK);
	sock = mock_take_fd(g);
	NEED(token > 0 && sock >= 0);
	stranger = fork();
	if (stranger == 0) {
		struct mock c;

		mock_init(&c, the_segment, g->bootstrap);
		NEED(mock_hello(&c, -1, 0) == 0);
		c.slot->args.unfork.token = (u32)token;
		NEED(mock_call(&c, WIRE_OP_UNFORK) == -ENOENT);
		_exit(0);
	}
	NEED(waitpid(stranger, &status, 0) == stranger && status == 0);
	g->slot->args.unfork.token = (u32)token;
	NEED(mock_call(g, WIRE_OP_UNFORK) == 0);
}

TEST(only_who_announced_a_process_takes_it_back)
{
	struct session *s = start(0);

	the_segment = session_segment_fd(s);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, unfork_of_a_stranger)), 0);
	session_free(s);
}

static void remote(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h, words[3];
	int up[2], down[2], fd;
	char byte;
	pid_t child;

	NEED(pipe(up) == 0 && pipe(down) == 0);
	child = fork();
	if (child == 0) {
		struct mock c;

		/* It makes no perf call: the session must find it by its meter. */
		mock_init(&c, the_segment, g->bootstrap);
		mock_count(&c, 5000, 50);
		NEED(write(up[1], "", 1) == 1 && read(down[0], &byte, 1) == 1);
		mock_count(&c, 300, 3);
		NEED(write(up[1], "", 1) == 1 && read(down[0], &byte, 1) == 1);
		NEED(c.m->watch & WIRE_WATCH_EXEC);
		/* "exec": only this thread, a new program. */
		NEED(mock_hello(&c, -1, WIRE_HELLO_EXEC) == 0);
		mock_count(&c, 40, 4);
		_exit(0);
	}
	NEED(read(up[0], &byte, 1) == 1);
	NEED(mock_hello(g, -1, 0) == 0);
	attr.enable_on_exec = 1;
	attr.read_format = 3;
	fd = mock_open(g, &attr, child, -1, WIRE_NO_EVENT, 0, &h);
	NEED(fd >= 0);
	NEED(write(down[1], "", 1) == 1 && read(up[0], &byte, 1) == 1);
	NEED(mock_read(g, h, words, 24) == 24 && words[0] == 0);
	NEED(write(down[1], "", 1) == 1);
	waitpid(child, NULL, 0);
	NEED(mock_read(g, h, words, 24) == 24);
	NEED(words[0] == 40 && words[1] == words[2] && words[1] > 0);
}

TEST(an_event_on_another_guest_enabled_by_its_exec)
{
	struct session *s = start(0);

	the_segment = session_segment_fd(s);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, remote)), 0);
	session_free(s);
}

static void shared_descriptor(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h, words[3];
	int fd, copy;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.disabled = 0;
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(fd >= 0);
	copy = dup(fd);
	close(fd);
	mock_count(g, 10, 1);
	NEED(mock_read(g, h, words, 8) == 8 && words[0] == 10);
	/* Who only has the descriptor finds the event. */
	mock_send_fd(g, copy);
	NEED(mock_call(g, WIRE_OP_LOOKUP) == 0 && g->slot->result.event.handle == h);
	mock_send_fd(g, 0);
	NEED(mock_call(g, WIRE_OP_LOOKUP) == -ENOENT);
	NEED(mock_call(g, WIRE_OP_LOOKUP) == -ENOENT);
	close(copy);
	NEED(mock_read(g, h, words, 8) == -EBADF);
}

TEST(descriptors_are_real)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, shared_descriptor)), 0);
	session_free(s);
}

static void map_page(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	struct perf_event_mmap_page *page;
	u64 h, words[3];
	int fd, mem;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.disabled = 0;
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(fd >= 0);
	g->slot->args.mmap = (struct wire_mmap_args){h, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
						     0};
	NEED(mock_call(g, WIRE_OP_MMAP) == 1);
	mem = mock_take_fd(g);
	NEED(mem >= 0);
	NEED(ftruncate(mem, 0) < 0); /* sealed */
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	NEED(page != MAP_FAILED && page->cap_bit0_is_deprecated && page->cap_user_rdpmc);
	NEED(page->index > 0);
	/* A mapping keeps the event open, as it keeps a file. */
	close(fd);
	NEED(mock_read(g, h, words, 8) == 8);
	g->slot->args.event.handle = h;
	NEED(mock_call(g, WIRE_OP_MUNMAP) == 0);
	NEED(mock_read(g, h, words, 8) == -EBADF);
}

TEST(the_user_page)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, map_page)), 0);
	session_free(s);
}

/*
 * The session is our parent. A limit that it runs into is the guest's ENOMEM, however often it
 * tries.
 */
static void map_page_without_memory(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	struct rlimit limit, none;
	u64 h;
	int fd;

	NEED(mock_hello(g, -1, 0) == 0);
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(fd >= 0);
	NEED(prlimit(getppid(), RLIMIT_FSIZE, NULL, &limit) == 0);
	none = (struct rlimit){0, limit.rlim_max};
	NEED(prlimit(getppid(), RLIMIT_FSIZE, &none, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		g->slot->args.mmap = (struct wire_mmap_args){h, 4096, PROT_READ, MAP_SHARED, 0};
		NEED(mock_call(g, WIRE_OP_MMAP) == -ENOMEM);
	}
	NEED(prlimit(getppid(), RLIMIT_FSIZE, &limit, NULL) == 0);
	NEED(mock_call(g, WIRE_OP_MMAP) == 1);
	close(mock_take_fd(g));
	close(fd);
}

TEST(a_user_page_for_which_there_is_no_memory)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, map_page_without_memory)), 0);
	session_free(s);
}

static void read_snapshot(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	const struct wire_snapshot *snapshot;
	u64 h, words[3];
	int fd;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.read_format = 3;
	fd = mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(fd >= 0 && g->slot->result.event.snapshot == 1);
	snapshot = &g->page->snapshots[0];
	NEED(snapshot->kind == WIRE_SNAPSHOT_METER && snapshot->handle == h &&
	     snapshot->base == 0 && !snapshot->flags);
	mock_count(g, 77, 0);
	NEED(mock_ioctl(g, h, PERF_EVENT_IOC_ENABLE, 0) == 0);
	NEED(snapshot->flags == (WIRE_SNAPSHOT_ENABLED | WIRE_SNAPSHOT_RUNNING));
	mock_count(g, 23, 0);
	NEED(snapshot->base + meter_sum(g->m, snapshot->quantity) == 23);
	NEED(mock_ioctl(g, h, PERF_EVENT_IOC_DISABLE, 0) == 0);
	mock_count(g, 1000, 0);
	NEED(!snapshot->flags && snapshot->base == 23);
	NEED(mock_read(g, h, words, 24) == 24);
	NEED(words[1] == snapshot->enabled_base && words[2] == snapshot->running_base);
	NEED(mock_ioctl(g, h, PERF_EVENT_IOC_RESET, 0) == 0);
	NEED(snapshot->base == 0);
	close(fd);
	NEED(mock_call(g, WIRE_OP_PING) == 0);
	NEED(snapshot->kind == WIRE_SNAPSHOT_NONE);
}

TEST(event_snapshots)
{
	struct session *s = start(0);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, read_snapshot)), 0);
	session_free(s);
}

struct reading {
	u64 count, enabled, running;
};

/* As the runtime does it: the clock is read, and left in the meter, before the snapshot. */
static bool look_at_snapshot(struct mock *g, u32 at, struct reading *r)
{
	const struct wire_snapshot *snapshot = &g->page->snapshots[at];
	struct timespec ts;
	struct wire_snapshot c;
	u64 clock, least, gate;
	u32 seq;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	clock = (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
	__atomic_store_n(&g->m->cpu_time, clock, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	gate = __atomic_load_n(&g->m->snapshot_gate, __ATOMIC_ACQUIRE);
	seq = __atomic_load_n(&snapshot->seq, __ATOMIC_ACQUIRE);
	memcpy(&c, snapshot, sizeof(c));
	least = __atomic_load_n(&g->m->snapshot_clock, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (gate & 1 || gate != __atomic_load_n(&g->m->snapshot_gate, __ATOMIC_RELAXED))
		return false;
	if (seq & 1 || seq != __atomic_load_n(&snapshot->seq, __ATOMIC_RELAXED))
		return false;
	clock = clock < least ? least : clock;
	r->count = c.base;
	r->enabled = c.enabled_base + (c.flags & WIRE_SNAPSHOT_ENABLED ? clock : 0);
	r->running = c.running_base;
	if (c.flags & WIRE_SNAPSHOT_RUNNING) {
		r->count += meter_sum(g->m, c.quantity);
		r->running += clock;
	}
	return true;
}

/*
 * The session moves them while the guest runs on: no reading is less than the one before, or more
 * than what there is.
 */
static void read_in_turns(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	struct reading last[3] = {{0}}, now;
	u32 turns = 0, flags = 0;
	u64 counted = 0, h;

	NEED(mock_hello(g, -1, 0) == 0);
	attr.read_format = 3;
	attr.disabled = 0;
	for (u32 i = 0; i < 3; i++)
		NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	while (turns < 40) {
		mock_count(g, 1, 0);
		counted++;
		for (u32 i = 0; i < 3; i++) {
			if (!look_at_snapshot(g, i, &now))
				continue;
			NEED(now.count >= last[i].count && now.count <= counted);
			NEED(now.enabled >= last[i].enabled && now.running >= last[i].running);
			NEED(now.running <= now.enabled);
			last[i] = now;
		}
		turns += flags != g->page->snapshots[0].flags;
		flags = g->page->snapshots[0].flags;
	}
}

TEST(event_snapshots_of_events_that_take_turns)
{
	struct session *s = start(1);

	EXPECT_EQ(serve_until_exit(s, mock_fork(s, read_in_turns)), 0);
	session_free(s);
}

/*
 * It comes to a CPU whose only counter another event wants, and leaves it: nothing that it reads
 * goes back.
 */
static void read_while_moving(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	struct reading now, last = {0};
	u64 own, wide, words[3];

	NEED(mock_hello(g, -1, 0) == 0);
	attr.read_format = 3;
	attr.disabled = 0;
	g->cpu = 0;
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &own) >= 0);
	NEED(mock_open(g, &attr, -1, 1, WIRE_NO_EVENT, 0, &wide) >= 0);
	for (u32 i = 0; i < 200; i++) {
		g->cpu = i & 1;
		/* What the move changes does not take away why the call was refused. */
		NEED(mock_ioctl(g, own, 0x1234, 0) == -ENOTTY &&
		     g->slot->refusal.cause != CAUSE_NONE);
		NEED(mock_read(g, wide, words, 24) == 24);
		mock_count(g, 100, 0);
		while (!look_at_snapshot(g, 0, &now))
			;
		NEED(now.count >= last.count && now.enabled >= last.enabled &&
		     now.running >= last.running);
		last = now;
		NEED(mock_read(g, own, words, 24) == 24);
		NEED(words[0] >= last.count && words[1] >= last.enabled &&
		     words[2] >= last.running);
		last = (struct reading){words[0], words[1], words[2]};
	}
}

TEST(an_own_event_and_a_cpu_with_one_counter)
{
	struct session_config config = {.paranoid = -1, .segment_fd = -1, .counters = 1};
	struct session *s = NULL;
	char why[300];

	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		return;
	ASSERT(session_new(&config, &s, why, sizeof(why)) == 0);
	EXPECT_EQ(serve_until_exit(s, mock_fork(s, read_while_moving)), 0);
	session_free(s);
}

static int told[2];

static void count_on_a_cpu(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	char c;
	u64 h;

	NEED(mock_hello(g, -1, 0) == 0);
	NEED(mock_open(g, &attr, 0, 0, WIRE_NO_EVENT, 8, &h) >= 0);
	NEED(read(told[0], &c, 1) == 1);
}

/* Guests say where they go, and the session looks, as long as somebody counts on a CPU. */
TEST(nobody_counts_on_a_cpu_any_more)
{
	struct session *s = start(0);
	pid_t child;

	ASSERT(pipe(told) == 0);
	child = mock_fork(s, count_on_a_cpu);
	for (int i = 0; i < 1000 && !(s->shown.view->flags & WIRE_VIEW_PLACES); i++)
		session_run(s, 10);
	EXPECT(s->shown.view->flags & WIRE_VIEW_PLACES);
	EXPECT_EQ(write(told[1], "", 1), 1);
	EXPECT_EQ(serve_until_exit(s, child), 0);
	for (int i = 0; i < 1000 && s->shown.view->flags & WIRE_VIEW_PLACES; i++)
		session_run(s, 10);
	EXPECT(!(s->shown.view->flags & WIRE_VIEW_PLACES));
	close(told[0]);
	close(told[1]);
	session_free(s);
}

static void sleep_on(struct mock *g)
{
	NEED(mock_hello(g, -1, 0) == 0);
	/* The session ends while a call is under way or later: an error, not a hang. */
	while (mock_call(g, WIRE_OP_PING) == 0)
		;
}

TEST(a_session_that_ends_leaves_guests_alive)
{
	struct session *s = start(0);
	pid_t child = mock_fork(s, sleep_on);
	int status;

	for (int i = 0; i < 20; i++)
		session_run(s, 10);
	session_free(s);
	waitpid(child, &status, 0);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(is_over_with_its_last_guest)
{
	struct session *s = start(0);
	pid_t child = mock_fork(s, count_self);

	session_close_bootstrap(s);
	EXPECT(!session_is_over(s));
	EXPECT_EQ(serve_until_exit(s, child), 0);
	for (int i = 0; i < 100 && !session_is_over(s); i++)
		session_run(s, 10);
	EXPECT(session_is_over(s));
	session_free(s);
}
