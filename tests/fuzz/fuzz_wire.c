/*
 * The session's end of the wire under random and mutated messages: whatever a guest puts into its
 * slots and sends on its socket, the session answers or ignores it, and its own structures stay
 * whole (session_check()). A process of its own plays the guest, so that forks, deaths and
 * descriptors are real.
 *
 *	fuzz_wire [SEED [ROUNDS]]
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/session/mock-guest.h"

static u64 state;

static u64 any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static u64 below(u64 n)
{
	return any() % n;
}

/* Numbers that limits are made of. */
static u64 odd(void)
{
	static const u64 values[] = {
		0,          1,    2,     3,          7,          8,
		23,         24,   63,    64,         255,        4095,
		4096,       4097, 16384, WIRE_DATA,  WIRE_SLOTS, 0x7fffffff,
		0x80000000, ~0u,  ~0ull, 1ull << 63, ~0ull >> 1, WIRE_NO_METER};

	return below(4) ? values[below(ARRAY_SIZE(values))] : any();
}

static u64 handles[64];
static u32 nr_handles;
static int fds[64];
static u32 nr_fds;

static u64 some_handle(void)
{
	u64 h = nr_handles ? handles[below(nr_handles)] : 0;

	return below(8) ? h : h ^ BIT(below(64));
}

/*
 * An event of the caller that can be counted, and has a snapshot unless it inherits or leads a
 * read.
 */
static void good_open(struct wire_slot *sl)
{
	struct pe_attr attr = mock_attr();

	attr.disabled = below(2);
	attr.inherit = below(4) == 0;
	attr.pinned = below(8) == 0;
	attr.read_format = below(16);
	attr.enable_on_exec = below(4) == 0;
	memcpy(sl->data, &attr, sizeof(attr));
	sl->len = sizeof(attr);
	sl->args.open = (struct wire_open_args){.cpu = -1,
						.group = below(2) ? WIRE_NO_EVENT : some_handle(),
						.attr_size = attr.size};
}

static void some_open(struct wire_slot *sl)
{
	struct pe_attr attr = mock_attr();

	attr.type = (u32)below(8);
	attr.config = below(4) ? below(12) : any();
	attr.disabled = below(2);
	attr.inherit = below(2);
	attr.read_format = below(32);
	attr.pinned = below(8) == 0;
	attr.exclusive = below(8) == 0;
	attr.enable_on_exec = below(4) == 0;
	attr.remove_on_exec = below(8) == 0;
	if (below(8) == 0)
		attr.sample_period = odd();
	memcpy(sl->data, &attr, sizeof(attr));
	if (below(4) == 0)
		sl->data[below(sizeof(attr))] = (u8)any();
	sl->len = (u32)(below(4) ? sizeof(attr) : odd());
	sl->args.open.pid = (s32)(below(2) ? 0 : odd());
	sl->args.open.cpu = (s32)(below(2) ? ~0ull : odd());
	sl->args.open.group = below(2) ? WIRE_NO_EVENT : some_handle();
	sl->args.open.flags = below(16);
	sl->args.open.attr_size = (u32)(below(4) ? sizeof(attr) : odd());
	sl->args.open.attr_flags = (u32)below(4);
}

/* A request that looks like one, with something wrong in it more often than not. */
static void fill(struct mock *g, u32 op)
{
	static const u32 cmds[] = {0x2400,     0x2401,     0x2402,     0x2403,
				   0x40082404, 0x2405,     0x40082406, 0x80082407,
				   0x40042408, 0x40042409, 0xc008240a, 0x4008240b};
	struct wire_slot *sl = g->slot;

	for (u32 i = 0; i < ARRAY_SIZE(sl->args.words); i++)
		sl->args.words[i] = odd();
	sl->len = (u32)(below(2) ? below(300) : odd());
	for (u32 i = 0; i < 64; i++)
		sl->data[i] = (u8)any();
	switch (op) {
	case WIRE_OP_OPEN: (below(2) ? good_open : some_open)(sl); break;
	case WIRE_OP_READ:
	case WIRE_OP_MMAP:
	case WIRE_OP_MUNMAP:
	case WIRE_OP_POLL:
	case WIRE_OP_HANGUP:
		sl->args.event.handle = some_handle();
		if (op == WIRE_OP_MMAP && below(2))
			sl->args.mmap = (struct wire_mmap_args){
				sl->args.event.handle, 4096 * (1 + (below(2) << below(4))),
				PROT_READ | PROT_WRITE, MAP_SHARED, 0};
		break;
	case WIRE_OP_IOCTL:
		sl->args.ioctl.handle = some_handle();
		/* Half of them ENABLE, DISABLE, REFRESH or RESET. */
		sl->args.ioctl.cmd = below(2)   ? cmds[below(4)]
				     : below(8) ? cmds[below(ARRAY_SIZE(cmds))]
						: (u32)any();
		sl->args.ioctl.arg = odd();
		sl->args.ioctl.output = some_handle();
		break;
	case WIRE_OP_FORK:
		sl->args.fork.clone_flags = below(2) ? 17 : any();
		sl->args.fork.meter = below(2) ? mock_take_meter(g) : (u32)odd();
		break;
	default: break;
	}
	/* Anywhere in the request and the reply; `word` and `awake` would only hang ourselves. */
	if (below(16) == 0)
		for (u32 i = 0; i < 16; i++)
			((u8 *)sl)[offsetof(struct wire_slot, op) + below(512)] = (u8)any();
}

static void keep_fd(int fd)
{
	if (nr_fds == ARRAY_SIZE(fds))
		close(fds[below(nr_fds)]);
	else
		nr_fds++;
	fds[nr_fds - 1] = fd;
}

/* The session has hung up, as it may do after what was sent to it. Its events are still there. */
static void say_hello_again(struct mock *g)
{
	munmap(g->page, WIRE_SIZE);
	close(g->sock);
	if (mock_hello(g, -1, 0))
		_exit(0);
}

static void one_call(struct mock *g)
{
	u32 op = below(16) ? 1 + (u32)below(WIRE_OP_COUNT) : (u32)odd();
	s64 ret;
	int fd;

	if (op == WIRE_OP_EXIT && below(8))
		op = WIRE_OP_READ;
	if (nr_handles && below(4) == 0)
		op = WIRE_OP_IOCTL;
	fill(g, op);
	if (below(8) == 0)
		mock_send_fd(g, nr_fds ? fds[below(nr_fds)] : 0);
	mock_count(g, below(1000), below(100));
	ret = mock_call(g, op);
	if (ret == -ETIMEDOUT)
		_exit(3);
	if (ret == -ENODEV) {
		say_hello_again(g);
		return;
	}
	if (ret >= 0 && op == WIRE_OP_OPEN) {
		handles[nr_handles % ARRAY_SIZE(handles)] = g->slot->result.event.handle;
		if (nr_handles < ARRAY_SIZE(handles))
			nr_handles++;
	}
	if (g->slot->reply_flags & WIRE_REPLY_FD) {
		fd = mock_take_fd(g);
		if (fd >= 0)
			keep_fd(fd);
	}
	if (nr_fds && below(6) == 0) {
		u32 i = (u32)below(nr_fds);

		close(fds[i]);
		fds[i] = fds[--nr_fds];
	}
}

/* Bytes of any length on the socket and through the bootstrap socket. */
static void one_message(struct mock *g)
{
	u8 bytes[128];
	size_t len = below(2) ? sizeof(struct wire_kick) : below(sizeof(bytes));
	struct wire_kick k = {.what = (u32)below(6),
			      .version = below(2) ? WIRE_VERSION : (u32)any(),
			      .slot = (u32)odd(),
			      .flags = (u32)below(4),
			      .meter = below(2) ? g->meter : (u32)odd(),
			      .tid = below(2) ? gettid() : (s32)odd()};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)any();
	if (below(2))
		memcpy(bytes, &k, sizeof(k));
	send(below(4) ? g->sock : g->bootstrap, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void guest(struct session *s, u64 seed)
{
	struct mock g;
	int err;

	state = seed * 0x9e3779b97f4a7c15ull + 1;
	alarm(30);
	mock_init(&g, session_segment_fd(s), session_bootstrap_fd(s));
	err = mock_hello(&g, -1, 0);
	if (err) {
		fprintf(stderr, "HELLO: %s\n", strerror(-err));
		_exit(2);
	}
	for (u32 i = 0; i < 150; i++) {
		if (below(12) == 0)
			one_message(&g);
		else
			one_call(&g);
	}
	if (below(2))
		raise(SIGKILL);
	_exit(0);
}

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	u64 rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 20;
	struct session_config config = {
		.paranoid = SESSION_PARANOID_HOST,
		.segment_fd = -1,
		.segment_flags =
			SEGMENT_VERIFY, /* the session looks at its invariants all the time */
		.counters = 4,
	};
	struct session *s;
	char why[300];

	signal(SIGPIPE, SIG_IGN);
	if (session_new(&config, &s, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	for (u64 i = 0; i < rounds; i++) {
		pid_t pid = fork();
		int status = 0;

		if (!pid)
			guest(s, seed + i);
		while (waitpid(pid, &status, WNOHANG) == 0)
			session_run(s, 5);
		session_run(s, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status)) {
			fprintf(stderr, "seed %llu: the guest ended with %d\n",
				(unsigned long long)(seed + i), WEXITSTATUS(status));
			return 1;
		}
	}
	session_free(s);
	return 0;
}
