/*
 * Runs a command under the runtime with a sampling event that it sets itself, as a session would,
 * and tells what the trace of its first thread says. To what a runtime asks of a session besides
 * it answers that it cannot.
 *
 *	sampled RUNTIME QUANTITY PERIOD WANTS COMMAND...
 *
 * PERIOD 0: it is only counted; "noise" and a number: it is asked for anything. WANTS is enum
 * trace_wants. Prints "count N", "samples N" and, as far as they are still in the ring, "ip pc
 * chain..." of each; of noise how much is told. Nobody drains: the ring never looks full to the
 * thread, and the newest entries replace the oldest.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/control.h"
#include "abi/runs.h"
#include "abi/trace.h"

#define NEVER_FULL (1ull << 62)

/* Their places are known to cli_uids.py. */
_Static_assert(offsetof(struct meter, watch) == 1108, "WATCH");
_Static_assert(offsetof(struct meter, asked) == 3272, "ASKED");
_Static_assert(offsetof(struct meter, kickable) == 3276, "KICKABLE");
_Static_assert(METER_SIZE == 32768 && SEGMENT_SLOTS == 262144, "METER");

static void *map(int fd, u64 offset, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED) {
		perror("sampled: mmap");
		exit(2);
	}
	return p;
}

static int memory(const char *name, u64 size)
{
	int fd = memfd_create(name, MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size)) {
		perror("sampled: memfd");
		exit(2);
	}
	return fd;
}

/* Descriptors of ours are inherited by the runtime, which takes charge of them. */
static void become(const char *runtime, int segment, int session, char **argv)
{
	static struct rt_control c;
	char number[16];
	char *args[64] = {(char *)"anyperf-rt", number};
	int control = memory("control", 0), rt = open(runtime, O_PATH), n = 2;

	c.magic = CONTROL_MAGIC;
	c.version = CONTROL_VERSION;
	c.flags = CONTROL_LAUNCH;
	c.segment_fd = segment;
	c.rt_fd = rt;
	c.exe_fd = c.interp_fd = -1;
	c.session_fd = session;
	c.meter = 0;
	c.run = 1;
	c.config.flags = SEGMENT_DETERMINISTIC;
	snprintf(c.exe, sizeof(c.exe), "%s", argv[0]);
	if (write(control, &c, sizeof(c)) != (ssize_t)sizeof(c) || lseek(control, 0, SEEK_SET))
		_exit(2);
	snprintf(number, sizeof(number), "%d", control);
	while (*argv && n < 63)
		args[n++] = *argv++;
	personality(ADDR_NO_RANDOMIZE);
	syscall(SYS_execveat, rt, "", args, environ, AT_EMPTY_PATH);
	perror("sampled: the runtime");
	_exit(2);
}

/* The one process's. */
static struct {
	int fd, sock; /* its memory; its socket, or -1 */
	struct wire_proc *page;
} guest = {.sock = -1};

/* A kick from @sock, and the descriptor that came with it or -1; false: hung up. */
static bool receive(int sock, struct wire_kick *kick, int *fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {kick, sizeof(*kick)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	*fd = -1;
	if (n == sizeof(*kick) && c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n == sizeof(*kick);
}

/* Its memory, as the answer to HELLO or to request @seq of @slot. */
static void send_memory(u32 slot, u32 seq)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct wire_fd_message message = {slot, seq};
	struct iovec iov = {&message, sizeof(message)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.align), &guest.fd, sizeof(guest.fd));
	(void)sendmsg(guest.sock, &m, MSG_NOSIGNAL);
}

static void answer(u32 slot)
{
	struct wire_slot *sl = (struct wire_slot *)((u8 *)guest.page + WIRE_SLOT_OFF(slot));

	sl->reply_flags = sl->reply_len = 0;
	memset(&sl->result, 0, sizeof(sl->result));
	sl->ret = sl->op == WIRE_OP_TRACE ? 0 : -ENOSYS;
	if (sl->op == WIRE_OP_TRACE) {
		send_memory(slot, sl->seq);
		sl->reply_flags = WIRE_REPLY_FD;
	}
	if (__atomic_exchange_n(&sl->word, WIRE_DONE, __ATOMIC_ACQ_REL) == WIRE_WAITED)
		syscall(SYS_futex, &sl->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void hear(const struct wire_kick *kick, int fd)
{
	if (kick->what == WIRE_KICK_HELLO && fd >= 0) {
		if (guest.sock >= 0)
			close(guest.sock);
		guest.sock = fd;
		send_memory(WIRE_FD_MESSAGE_HELLO, 0);
	} else if (kick->what == WIRE_KICK_CALL && kick->slot < WIRE_SLOTS) {
		answer(kick->slot);
	}
}

/* Until everybody has gone who could introduce himself. */
static void serve(int bootstrap)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = bootstrap, .events = POLLIN},
				       {.fd = guest.sock, .events = POLLIN}};
		struct wire_kick kick;
		int fd;

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents) {
			if (receive(guest.sock, &kick, &fd)) {
				hear(&kick, fd);
			} else {
				close(guest.sock);
				guest.sock = -1;
			}
		}
		if (!fds[0].revents)
			continue;
		if (!receive(bootstrap, &kick, &fd))
			return;
		hear(&kick, fd);
	}
}

static void copy_out(void *to, const struct trace *trace, u64 at, size_t len)
{
	const u8 *ring = (const u8 *)trace + TRACE_HEAD;

	for (size_t i = 0; i < len; i++)
		((u8 *)to)[i] = ring[(at + i) % TRACE_RING];
}

static void show(const struct trace *trace)
{
	static u64 entry[TRACE_ENTRY_MAX / 8 + 1];
	struct trace_sample *s = (struct trace_sample *)entry;
	u64 at = 0;

	if (trace->head > TRACE_RING)
		return;
	for (; at < trace->head; at += s->entry.size) {
		const u64 *chain = (const u64 *)(s + 1);

		copy_out(entry, trace, at, sizeof(*s));
		if (s->entry.size < sizeof(*s) || s->entry.size > TRACE_ENTRY_MAX)
			exit(3);
		copy_out(entry, trace, at, s->entry.size);
		printf("%#llx %#llx", (unsigned long long)s->ip, (unsigned long long)s->pc);
		for (u32 i = 0; i < s->nr_chain; i++)
			printf(" %#llx", (unsigned long long)chain[i]);
		printf(" stack %u/%u\n", s->stack_used, s->stack_size);
	}
}

static u64 any(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* What no session asks for. Most numbers are small, so that some of it is taken for what it is. */
static void ask_nonsense(struct trace *trace, u64 seed)
{
	u8 *from = (u8 *)trace->event, *upto = (u8 *)trace + sizeof(*trace);

	for (u32 *word = (u32 *)from; word < (u32 *)upto; word++) {
		u64 x = any(&seed);

		*word = (u32)x >> (x >> 32) % 32;
	}
	for (u32 i = 0; i < TRACE_EVENTS; i++) {
		struct trace_event *e = &trace->event[i];

		/* A sample of each instruction takes long. */
		e->period = e->period && any(&seed) % 2 ? e->period | 4096 : 0;
		e->quantity %= 1 + any(&seed) % 160;
	}
	for (u32 i = 0; i < TRACE_PLACES; i++)
		trace->place[i].addr &= any(&seed) % 2 ? 0 : ~0ull;
	trace->to_tell = (u32)any(&seed);
	trace->traps = (u32)any(&seed);
}

int main(int argc, char **argv)
{
	u64 period, before[METER_QUANTITIES];
	struct counter_segment *head;
	struct trace *trace;
	struct meter *m;
	int fd, status, bootstrap[2];
	u32 q;

	if (argc < 6)
		return 2;
	q = (u32)atoi(argv[2]);
	period = !strncmp(argv[3], "noise", 5) ? 1 : strtoull(argv[3], NULL, 0);
	fd = memory("segment", segment_offset(SEGMENT_SLOTS));
	head = map(fd, 0, METER_SIZE);
	m = map(fd, segment_offset(0), METER_SIZE);
	guest.fd = memory("wire", WIRE_MEMORY);
	guest.page = map(guest.fd, 0, WIRE_SIZE);
	guest.page->magic = WIRE_MAGIC;
	guest.page->version = WIRE_VERSION;
	guest.page->slots = WIRE_SLOTS;
	trace = map(guest.fd, trace_offset(0), TRACE_SIZE);
	head->magic = SEGMENT_MAGIC;
	head->used = 1;
	meter_runs(head)->run[0].number = 1;
	m->state = METER_RUNNING;
	m->run = 1;
	meter_sums(m, METER_QUANTITIES, before);
	if (period) {
		trace->tail = NEVER_FULL;
		trace->bell = 1;
		trace->event[3] = (struct trace_event){.next = period,
						       .period = period,
						       .generation = 1,
						       .quantity = q,
						       .wants = (u32)atoi(argv[4]),
						       .stack_size = 256,
						       .chain_max = 127,
						       .id = 7};
		if (!strncmp(argv[3], "noise", 5))
			ask_nonsense(trace, strtoull(argv[3] + 5, NULL, 0));
		trace->seq = 2;
		guest.page->asked[0] = m->asked = 1;
	}
	if (fcntl(guest.fd, F_ADD_SEALS, F_SEAL_SHRINK) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bootstrap)) {
		perror("sampled: session");
		return 2;
	}
	fflush(stdout);
	if (!fork()) {
		fcntl(bootstrap[1], F_SETFD, 0);
		close(guest.fd);
		become(argv[1], fd, bootstrap[1], argv + 5);
	}
	close(bootstrap[1]);
	serve(bootstrap[0]);
	if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "sampled: status %#x\n", (unsigned)status);
		return 1;
	}
	printf("count %llu\n", (unsigned long long)meter_sum(m, q));
	printf("samples %llu\n",
	       period ? (unsigned long long)((trace->armed[3].next - period) / period) : 0);
	if (strncmp(argv[3], "noise", 5))
		show(trace);
	else
		printf("0x0 %llu\n", (unsigned long long)trace->head);
	return 0;
}
