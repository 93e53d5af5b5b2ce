/*
 * The session's end of the wire under random and mutated messages: whatever a guest puts into its
 * slots, writes into its trace and sends on its socket, the session answers or ignores it, and its
 * own structures stay whole (session_check()). A process of its own plays the guest, so that forks,
 * deaths and descriptors are real.
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

#include "abi/trace.h"
#include "fuzz/any.h"
#include "unit/session/mock-guest.h"

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

/* One of the caller that samples, and wants anything to be told. */
static void sampling_open(struct wire_slot *sl)
{
	struct pe_attr attr = mock_attr();

	attr.config = below(4) ? PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	attr.disabled = below(8) == 0;
	attr.inherit = below(4) == 0;
	attr.freq = below(4) == 0;
	attr.sample_period = below(4) ? 1 + below(1000) : odd();
	attr.read_format = below(16);
	/* Up to PERF_SAMPLE_STREAM_ID, and what a trace tells. */
	attr.sample_type = below(1 << 10) | (below(2) ? PERF_SAMPLE_CALLCHAIN : 0) |
			   (below(2) ? PERF_SAMPLE_STACK_USER : 0);
	if (below(4) == 0) {
		attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	}
	if (below(4) == 0) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = 0xff0fff & any();
	}
	attr.sample_stack_user = (u32)(8 * (1 + below(8190)));
	attr.precise_ip = below(4);
	attr.sample_max_stack = (u16)below(130);
	attr.wakeup_events = (u32)below(3);
	/* Or a breakpoint, at one of a few addresses. */
	if (below(3) == 0) {
		attr.type = PERF_TYPE_BREAKPOINT;
		attr.config = 0;
		attr.precise_ip = 0;
		attr.bp_type = 4;
		attr.bp_addr = 1 + below(3);
		attr.bp_len = 8;
	}
	memcpy(sl->data, &attr, sizeof(attr));
	sl->len = sizeof(attr);
	sl->args.open =
		(struct wire_open_args){.cpu = -1, .group = WIRE_NO_EVENT, .attr_size = attr.size};
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
	case WIRE_OP_OPEN:
		(below(3) == 0 ? sampling_open : below(2) ? good_open : some_open)(sl);
		break;
	case WIRE_OP_READ:
	case WIRE_OP_MMAP:
	case WIRE_OP_MUNMAP:
	case WIRE_OP_POLL:
	case WIRE_OP_HANGUP:
	case WIRE_OP_LOSSLESS:
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

static void know(u64 handle)
{
	handles[nr_handles % ARRAY_SIZE(handles)] = handle;
	if (nr_handles < ARRAY_SIZE(handles))
		nr_handles++;
}

/* Some that sample, and have a buffer: chance alone comes to that too seldom. */
static void begin_sampling(struct mock *g)
{
	int fd;

	for (u32 i = 0; i < 3; i++) {
		sampling_open(g->slot);
		if (mock_call(g, WIRE_OP_OPEN) < 0)
			continue;
		know(g->slot->result.event.handle);
		fd = mock_take_fd(g);
		if (fd >= 0)
			keep_fd(fd);
		g->slot->args.mmap = (struct wire_mmap_args){handles[nr_handles - 1],
							     4096 * (1 + (1ull << below(6))),
							     PROT_READ | PROT_WRITE, MAP_SHARED, 0};
		if (mock_call(g, WIRE_OP_MMAP) < 0)
			continue;
		fd = mock_take_fd(g);
		if (fd >= 0)
			keep_fd(fd);
	}
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
	if (ret >= 0 && op == WIRE_OP_OPEN)
		know(g->slot->result.event.handle);
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

static struct trace *trace;

/* A sample of one of the thread's events, of any length that an entry may have. */
static u32 good_sample(struct mock *g, u64 *words)
{
	struct trace_sample *sample = (struct trace_sample *)words;
	const struct trace_event *e = &trace->event[below(4)];

	if (below(8) && !e->period)
		e = trace->event;
	for (u32 i = 0; i < sizeof(*sample) / 8; i++)
		words[i] = any();
	sample->entry = (struct trace_entry){.kind = TRACE_SAMPLE,
					     .time = below(4) ? any() : odd()};
	sample->id = e->id;
	sample->periods = 1;
	for (u32 q = 0; q < METER_QUANTITIES; q++)
		sample->sums[q] = below(8) ? g->m->count[0][q] + below(5000) : odd();
	sample->sums[e->quantity % METER_QUANTITIES] += below(2) * e->period;
	sample->nr_chain = (u32)(below(2) ? below(TRACE_CHAIN + 1) : below(4));
	sample->nr_branches = (u32)(below(2) ? below(TRACE_LBR + 1) : 0);
	sample->stack_size = (u32)(below(8) == 0 ? 8 * below(TRACE_STACK / 8 + 1) : 0);
	sample->stack_used = (u32)below(sample->stack_size + 1);
	sample->entry.size = (u32)(sizeof(*sample) + sample->nr_chain * 8 +
				   sample->nr_branches * sizeof(struct trace_branch) +
				   sample->stack_size);
	return sample->entry.size;
}

/* An occurrence, with a sample or without. */
static u32 good_hit(struct mock *g, u64 *words)
{
	struct trace_hit *hit = (struct trace_hit *)words;
	u32 len = sizeof(*hit);

	if (below(2))
		len += good_sample(g, words + sizeof(*hit) / 8);
	for (u32 i = 0; i < sizeof(*hit) / 8; i++)
		words[i] = any();
	hit->entry = (struct trace_entry){.kind = TRACE_HIT, .size = len};
	hit->kind = below(8) ? TRACE_EXECUTED : (u32)below(8);
	hit->addr = below(8) ? 1 + below(3) : odd();
	return len;
}

static void copy_in(const void *bytes, u64 len)
{
	u64 head = trace->head;

	for (u64 i = 0; i < len; i++)
		((u8 *)trace)[TRACE_HEAD + (head + i) % TRACE_RING] = ((const u8 *)bytes)[i];
	__atomic_store_n(&trace->head, head + len, __ATOMIC_RELEASE);
}

/* Entries, most of them as a runtime writes them, and something wrong among them or around. */
static void some_trace(struct mock *g)
{
	static u64 words[TRACE_ENTRY_MAX / 8];
	struct trace_sample *sample = (struct trace_sample *)words;
	struct wire_kick k = {.what = WIRE_KICK_TRACE, .meter = g->meter};

	for (u64 n = below(6); n; n--) {
		u32 len = below(3) ? good_sample(g, words) : good_hit(g, words);

		switch (below(24)) {
		case 0: sample->entry.size = (u32)odd(); break;
		case 1: sample->entry.kind = (u16)odd(); break;
		case 2: sample->nr_chain = (u32)odd(); break;
		case 3: sample->nr_branches = (u32)odd(); break;
		case 4: sample->stack_size = (u32)odd(); break;
		case 5: sample->stack_used = (u32)odd(); break;
		case 6: sample->id = (u32)odd(); break;
		case 7: ((u8 *)words)[below(len)] = (u8)any(); break;
		default: break;
		}
		copy_in(words, len);
	}
	if (below(8) == 0)
		trace->head += below(2) ? below(2 * TRACE_RING) : odd();
	/* Nothing of the session's own either. */
	if (below(8) == 0)
		((u8 *)trace)[below(sizeof(*trace))] = (u8)any();
	if (below(8) == 0)
		g->page->asked[below(WIRE_ASKED)] = g->m->asked = (u32)odd();
	send(g->sock, &k, sizeof(k), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void guest(struct session *s, u64 seed)
{
	struct mock g;
	int err;

	any_state = seed * 0x9e3779b97f4a7c15ull + 1;
	alarm(30);
	mock_init(&g, session_segment_fd(s), session_bootstrap_fd(s));
	err = mock_hello(&g, -1, 0);
	if (err) {
		fprintf(stderr, "HELLO: %s\n", strerror(-err));
		_exit(2);
	}
	trace = g.trace;
	begin_sampling(&g);
	for (u32 i = 0; i < 150; i++) {
		if (below(12) == 0)
			one_message(&g);
		else if (below(4) == 0)
			some_trace(&g);
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
		/* The session looks at its invariants all the time. */
		.run = {.flags = SEGMENT_VERIFY},
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
