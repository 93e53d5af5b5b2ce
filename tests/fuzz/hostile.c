/*
 * Hostile guests: processes that map what a guest maps and send a session anything, from several
 * threads at once: requests in all slots, changed while they are served; meters, traces and the
 * segment's header full of whatever comes; messages with descriptors of every kind. Beside them an
 * honest guest wants its calls to be answered.
 *
 *	hostile SECONDS [SEED]
 *
 * The session lives in this process, with whatever sanitizer it was built with.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
#include "fuzz/any.h"
#include "unit/session/mock-guest.h"

#define GUESTS  3 /* hostile ones at a time */
#define CALLERS 3 /* threads of one that make calls */

static struct mock g;
static struct trace *trace;
static u64 handles[256]; /* shared by all threads, as it comes */

static u64 some_handle(void)
{
	u64 h = handles[below(ARRAY_SIZE(handles))];

	return below(8) ? h : h ^ BIT(below(64));
}

static void some_attr(struct pe_attr *attr)
{
	*attr = mock_attr();
	attr->type = below(2) ? PERF_TYPE_HARDWARE : (u32)below(9);
	attr->config = below(2) ? below(12) : odd();
	attr->disabled = below(2);
	attr->inherit = below(3) == 0;
	attr->read_format = below(32);
	attr->sample_period = below(2) ? 0 : 1 + below(5000);
	attr->sample_type = below(1 << 12);
	attr->sample_stack_user = (u32)(8 * below(8190));
	attr->context_switch = below(8) == 0;
	attr->mmap = below(8) == 0;
	attr->comm = below(8) == 0;
	attr->task = below(8) == 0;
	attr->enable_on_exec = below(8) == 0;
	attr->pinned = below(8) == 0;
	if (below(8) == 0)
		((u8 *)attr)[below(sizeof(*attr))] = (u8)any();
}

static void some_request(struct wire_slot *sl)
{
	struct pe_attr attr;

	sl->op = below(12) ? 1 + (u32)below(WIRE_OP_COUNT) : (u32)odd();
	if (below(4) == 0)
		sl->op = WIRE_OP_OPEN;
	for (u32 i = 0; i < ARRAY_SIZE(sl->args.words); i++)
		sl->args.words[i] = odd();
	sl->len = (u32)(below(2) ? below(300) : odd());
	switch (sl->op) {
	case WIRE_OP_OPEN:
		some_attr(&attr);
		memcpy(sl->data, &attr, sizeof(attr));
		sl->len = sizeof(attr);
		sl->args.open = (struct wire_open_args){.pid = (s32)(below(3) == 0   ? -1
								     : below(2) == 0 ? getppid()
										     : 0),
							.cpu = (s32)below(4) - 1,
							.group = below(2) ? WIRE_NO_EVENT
									  : some_handle(),
							.flags = below(4) ? 0 : below(16),
							.attr_size = attr.size};
		break;
	case WIRE_OP_MMAP:
		sl->args.mmap = (struct wire_mmap_args){some_handle(),
							4096 * (1 + (1ull << below(6))),
							PROT_READ | PROT_WRITE, MAP_SHARED, 0};
		break;
	case WIRE_OP_EXIT:
		/* Not always: nothing would be left to do. */
		if (below(8))
			sl->op = WIRE_OP_PING;
		break;
	case WIRE_OP_FORK:
		sl->args.fork.clone_flags = below(2) ? 17 : 0x10000;
		sl->args.fork.meter = (u32)below(100);
		break;
	default:
		if (below(4))
			sl->args.event.handle = some_handle();
		break;
	}
	if (sl->op == WIRE_OP_IOCTL && below(4))
		sl->args.ioctl.cmd = (u32)(0x2400 + below(12));
}

static int some_fd(void)
{
	int pair[2];

	switch (below(12)) {
	case 0: return eventfd(0, 0);
	case 1: return memfd_create("any", 0);
	case 2: return open("/", O_RDONLY | O_PATH);
	case 3: return open("/proc/self/maps", O_RDONLY);
	case 4: return socket(AF_INET, SOCK_STREAM, 0);
	case 5: return timerfd_create(CLOCK_MONOTONIC, 0);
	case 6: return epoll_create1(0);
	case 7: return inotify_init1(0);
	case 8: return open("/sys/fs/cgroup", O_RDONLY);
	case 9: return (int)syscall(SYS_pidfd_open, getpid(), 0);
	case 10:
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
			return -1;
		close(pair[1]);
		return pair[0];
	default:
		if (pipe(pair))
			return -1;
		close(pair[1]);
		return pair[0];
	}
}

static void send_any(int sock)
{
	struct wire_kick k = {.what = (u32)below(6),
			      .version = below(4) ? WIRE_VERSION : (u32)odd(),
			      .slot = (u32)(below(4) ? below(WIRE_SLOTS) : odd()),
			      .flags = (u32)below(4),
			      .meter = (u32)(below(2) ? g.meter : odd()),
			      .tid = below(2) ? gettid() : (s32)odd()};
	union {
		char buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {&k, below(8) ? sizeof(k) : below(sizeof(k) + 1)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[8], n = 0, want = below(2) ? 0 : 1 + (int)below(8);

	while (n < want && (fds[n] = some_fd()) >= 0)
		n++;
	if (n) {
		struct cmsghdr *c = &control.align;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	}
	sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n)
		close(fds[--n]);
}

/* Calls in a slot of its own, which others change meanwhile. */
static void *call(void *arg)
{
	u32 slot = (u32)(uintptr_t)arg;
	struct wire_slot *sl = (struct wire_slot *)((u8 *)g.page + WIRE_SLOT_OFF(slot));
	struct wire_kick k = {.what = WIRE_KICK_CALL, .slot = slot};
	const struct timespec moment = {0, 2000000};

	any_state ^= slot * 0x9e3779b97f4a7c15ull + 77;
	for (;;) {
		some_request(sl);
		sl->tid = below(16) ? gettid() : (s32)odd();
		sl->meter = below(16) ? g.meter : (u32)odd();
		sl->cpu = (u32)below(4);
		sl->cpu_time += below(1000000);
		sl->seq++;
		__atomic_store_n(&sl->word, WIRE_WAITED, __ATOMIC_SEQ_CST);
		send(g.sock, &k, sizeof(k), MSG_NOSIGNAL | MSG_DONTWAIT);
		syscall(SYS_futex, &sl->word, FUTEX_WAIT, WIRE_WAITED, &moment, NULL, 0);
		if (sl->op == WIRE_OP_OPEN && sl->ret == 0)
			handles[below(ARRAY_SIZE(handles))] = sl->result.event.handle;
	}
	return NULL;
}

/* Takes what is sent, keeps some of it and closes the rest. */
static void *take(void *arg)
{
	static int kept[64];

	any_state ^= (uintptr_t)arg * 0x9e3779b97f4a7c15ull + 99;
	memset(kept, -1, sizeof(kept));
	for (;;) {
		char control[CMSG_SPACE(4 * sizeof(int))], bytes[64];
		struct iovec iov = {bytes, sizeof(bytes)};
		struct msghdr m = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = control,
				   .msg_controllen = sizeof(control)};
		struct cmsghdr *c;
		u32 i = (u32)below(ARRAY_SIZE(kept));

		if (recvmsg(g.sock, &m, 0) <= 0)
			usleep(1000);
		c = m.msg_controllen ? CMSG_FIRSTHDR(&m) : NULL;
		if (!c)
			continue;
		if (kept[i] >= 0)
			close(kept[i]);
		memcpy(&kept[i], CMSG_DATA(c), sizeof(int));
	}
	return NULL;
}

static void *scribble(void *arg)
{
	u8 *head = (u8 *)g.segment;

	any_state ^= (uintptr_t)arg * 0x9e3779b97f4a7c15ull;
	for (;;) {
		u32 index = (u32)below(24);
		u8 *meter = head + segment_offset(index);
		struct wire_slot *sl =
			(struct wire_slot *)((u8 *)g.page + WIRE_SLOT_OFF(below(CALLERS + 1)));

		switch (below(9)) {
		case 0: ((u64 *)meter)[below(METER_SIZE / 8)] = odd(); break;
		case 1:
			((u32 *)meter)[(offsetof(struct meter, state) / 4) + below(16)] =
				(u32)odd();
			break;
		case 2: g.segment->used = (u32)odd(); break;
		case 3: head[sizeof(u64) + below(METER_SIZE - sizeof(u64))] = (u8)any(); break;
		case 4: ((u8 *)sl)[below(sizeof(*sl))] = (u8)any(); break;
		case 5: sl->args.words[below(6)] = odd(); break;
		case 6: sl->len = (u32)odd(); break;
		case 7: ((u8 *)trace)[below(TRACE_SIZE)] = (u8)any(); break;
		default:
			trace->head += below(2) ? 8 * below(500) : odd();
			((u32 *)((u8 *)trace + TRACE_HEAD))[below(TRACE_RING / 4)] =
				(u32)(below(2) ? below(512) * 8 : odd());
			break;
		}
		((u8 *)g.page)[below(sizeof(struct wire_proc))] = (u8)any();
		/* Who shares two CPUs with all of them wants to run as well. */
		if (below(32) == 0)
			usleep(200);
	}
	return NULL;
}

static void hostile(int segment, int bootstrap, u64 seed)
{
	struct rlimit files = {2000, 2000};
	struct timespec now, end;
	pthread_t thread;

	any_state = seed * 0x9e3779b97f4a7c15ull + 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_NOFILE, &files);
	alarm(30);
	mock_init(&g, segment, bootstrap);
	/* What was there before has been scribbled over. */
	mock_set_meter(&g, (u32)below(24));
	if (mock_hello(&g, -1, 0))
		_exit(0);
	trace = g.trace;
	for (u64 i = 0; i < CALLERS; i++)
		pthread_create(&thread, NULL, call, (void *)(uintptr_t)(1 + i));
	pthread_create(&thread, NULL, scribble, (void *)(uintptr_t)seed);
	pthread_create(&thread, NULL, take, (void *)(uintptr_t)seed);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 1;
	do {
		send_any(below(4) ? g.sock : bootstrap);
		if (below(50) == 0 && fork() == 0)
			raise(below(2) ? SIGKILL : SIGTERM);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep((useconds_t)below(2000));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec || now.tv_nsec < end.tv_nsec);
	raise(below(2) ? SIGKILL : SIGTERM);
}

/* Says who it is, and asks. Its meter is anybody's to write to; an answer it shall have. */
/* Who asks for page faults of everybody has the kernel stop everybody: a runtime takes that. */
static void stopped(int sig)
{
	(void)sig;
}

static void honest(int segment, int bootstrap)
{
	struct pe_attr attr = mock_attr();
	u64 h, words[8];
	s64 got;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTRAP, stopped);
	/*
	 * An answer has to come, but not soon: on a machine that is busy otherwise the session has
	 * been without a CPU for longer than most tests wait.
	 */
	alarm(600);
	mock_init(&g, segment, bootstrap);
	g.patient = true;
	mock_set_meter(&g, 400);
	NEED(mock_hello(&g, -1, 0) == 0);
	for (int i = 0; i < 200; i++) {
		got = mock_call(&g, WIRE_OP_PING);
		if (got)
			fprintf(stderr, "ping: %lld, cause %u\n", (long long)got,
				g.slot->refusal.cause);
		NEED(!got);
		fd = mock_open(&g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
		if (fd < 0)
			fprintf(stderr, "open: %d, cause %u\n", fd, g.slot->refusal.cause);
		NEED(fd >= 0);
		got = mock_read(&g, h, words, sizeof(words));
		if (got != 8)
			fprintf(stderr, "read: %lld, cause %u\n", (long long)got,
				g.slot->refusal.cause);
		NEED(got == 8);
		close(fd);
	}
}

static struct {
	pid_t pid;
	bool honest;
} guests[GUESTS + 1];

static u64 nr_honest;

/* One that has ended is followed by another. False: the honest one was not served. */
static bool keep_guests(struct session *s, u64 *seed)
{
	for (u32 i = 0; i <= GUESTS; i++) {
		int status = 0;

		if (guests[i].pid && waitpid(guests[i].pid, &status, WNOHANG) != guests[i].pid)
			continue;
		if (guests[i].pid && guests[i].honest && status) {
			fprintf(stderr, "seed %llu: the honest guest ended with %#x\n",
				(unsigned long long)*seed, (unsigned)status);
			return false;
		}
		guests[i].honest = i == GUESTS;
		nr_honest += i == GUESTS;
		++*seed;
		guests[i].pid = fork();
		if (guests[i].pid)
			continue;
		if (guests[i].honest)
			honest(session_segment_fd(s), session_bootstrap_fd(s));
		else
			hostile(session_segment_fd(s), session_bootstrap_fd(s), *seed);
		_exit(0);
	}
	return true;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 5);
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, first = seed;
	struct session_config config = {
		.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1, .counters = 4};
	struct session *s;
	bool served = true;
	char why[300];

	signal(SIGPIPE, SIG_IGN);
	if (session_new(&config, &s, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	while (served && time(NULL) < end) {
		served = keep_guests(s, &seed);
		for (int i = 0; i < 50; i++)
			session_run(s, 2);
	}
	for (u32 i = 0; i <= GUESTS; i++)
		if (guests[i].pid) {
			kill(guests[i].pid, SIGKILL);
			waitpid(guests[i].pid, NULL, 0);
		}
	session_run(s, 0);
	session_free(s);
	printf("%llu hostile guests, %llu honest ones\n",
	       (unsigned long long)(seed - first - nr_honest), (unsigned long long)nr_honest);
	return served ? 0 : 1;
}
