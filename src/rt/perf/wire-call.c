/*
 * Connecting and calling.
 *
 * Order of a call, mate of session/wire/serve.c:
 *	request, word = POSTED (release), full barrier, awake == 0? kick
 * The wait spins only while the session is known to be looking, which it is only on another CPU.
 */
#include "rt/perf/wire-call.h"

#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-priv.h"
#include "rt/sample/sample.h"
#include "rt/signal/signal.h"
#include "rt/syscall/fd.h"
#include "sys/arch/x86_64/cpu.h"
#include "sys/string.h"

#include <linux/futex.h>
#include <linux/poll.h>
#include <linux/resource.h>
#include <linux/socket.h>
#include <linux/time.h>

#define SPIN_NS 100000
#define LOST_MS 100 /* how long a wait goes by before it asks whether the session is there */

/* A control message with room for one descriptor. */
struct fd_control {
	struct cmsghdr head;
	s32 fd, pad;
};

u64 perf_cpu_time(void)
{
	return sys_clock(CLOCK_THREAD_CPUTIME_ID);
}

static u32 current_cpu(void)
{
	u32 cpu = 0;

	raw_call3(__NR_getcpu, (long)&cpu, 0, 0);
	return cpu;
}

u64 perf_switches(void)
{
	struct rusage usage;

	return sys_failed(raw_call2(__NR_getrusage, RUSAGE_THREAD, (long)&usage))
		       ? 0
		       : (u64)(usage.ru_nvcsw + usage.ru_nivcsw);
}

void perf_own_switches(struct thread *t, u64 before)
{
	dbt_meter(&t->dbt)->own_switches += perf_switches() - before;
	sample_own_end(t);
}

static int send(int sock, const void *bytes, size_t len, int fd)
{
	struct iovec iov = {(void *)bytes, len};
	struct fd_control control = {{20, SOL_SOCKET, SCM_RIGHTS}, .fd = fd};
	struct user_msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	long n;

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	do
		n = raw_call3(__NR_sendmsg, sock, (long)&m, MSG_NOSIGNAL);
	while (n == -EINTR);
	return n < 0 ? (int)n : 0;
}

/* 1 with a message, and in *@fd its descriptor or -1; 0: hung up; -errno. */
static int receive(int sock, struct wire_fd_message *message, int *fd, int flags)
{
	struct iovec iov = {message, sizeof(*message)};
	struct fd_control control = {0};
	/* Room for one: there would be place for a second, which nobody would close. */
	struct user_msghdr m = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = offsetof(struct fd_control, pad)};
	long n;

	do
		n = raw_call3(__NR_recvmsg, sock, (long)&m, flags | MSG_CMSG_CLOEXEC);
	while (n == -EINTR);
	*fd = m.msg_controllen >= 20 && control.head.cmsg_level == SOL_SOCKET &&
			      control.head.cmsg_type == SCM_RIGHTS
		      ? control.fd
		      : -1;
	if (n == sizeof(*message))
		return 1;
	if (*fd >= 0)
		sys_close(*fd);
	*fd = -1;
	return n < 0 ? (int)n : 0;
}

/*
 * Is @fd memory of @size bytes that nobody can cut under us? Who could would end us by a signal.
 */
bool wire_memory_is(int fd, u64 size)
{
	long seals = sys_fcntl(fd, F_GET_SEALS, 0);
	struct statx st;

	return seals >= 0 && seals & F_SEAL_SHRINK &&
	       !sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &st) && st.stx_size >= size;
}

u64 wire_lock(struct thread *t)
{
	u64 mask = signal_block_all();

	lock_acquire(&t->proc->perf->wire.lock, t->id, NULL);
	return mask;
}

void wire_unlock(struct thread *t, u64 mask)
{
	lock_release(&t->proc->perf->wire.lock, t->id);
	signal_set_mask(mask);
}

void wire_init(struct wire *w)
{
	memset(w, 0, sizeof(*w));
	w->sock = -1;
	w->dead = fd_get(FD_SESSION) < 0;
	w->free = ~0ull;
	for (u32 i = 0; i < WIRE_SLOTS; i++)
		w->parked[i] = -1;
}

/*
 * Faults of ours would be counted as the program's: what is used is there beforehand, and no more,
 * since a short program makes few calls, and a page takes as long as one of them.
 */
static void populate(const void *at)
{
	sys_madvise((void *)ALIGN_DOWN((u64)at, PAGE_SIZE), PAGE_SIZE, MADV_POPULATE_WRITE);
}

static struct wire_proc *map_memory(const struct thread *t, int fd)
{
	struct wire_proc *at = region_map_file(WIRE_SIZE, fd, 0);

	if (!at)
		return NULL;
	sys_madvise(at, WIRE_SIZE, MADV_DONTDUMP);
	populate(at);
	populate(&at->asked[t->meter % WIRE_ASKED]);
	return at;
}

static int sock_of(const struct wire *w)
{
	return w->guest_sock ? w->sock : fd_get(FD_WIRE);
}

/* Where there was no page for the thread it is served, though it counts for nobody. */
static u32 meter_told(const struct thread *t)
{
	return t->meter < SEGMENT_SLOTS ? t->meter : WIRE_NO_METER;
}

/*
 * HELLO on @sock (through the bootstrap socket with @peer), and the shared memory that comes back.
 */
static bool hello(struct thread *t, struct wire *w, int sock, int peer, u32 flags)
{
	struct wire_kick kick = {
		.what = WIRE_KICK_HELLO,
		.version = WIRE_VERSION,
		.flags = flags,
		.meter = meter_told(t),
		.tid = (s32)t->tid,
		.cpu_time = perf_cpu_time(),
	};
	struct wire_fd_message message;
	struct wire_proc *map;
	int fd = -1;

	if (send(peer >= 0 ? fd_get(FD_SESSION) : sock, &kick, sizeof(kick), peer))
		return false;
	if (peer >= 0)
		sys_close(peer);
	if (receive(sock, &message, &fd, 0) != 1)
		return false;
	if (message.slot != WIRE_FD_MESSAGE_HELLO || message.seq || fd < 0) {
		if (fd >= 0)
			sys_close(fd);
		return false;
	}
	map = wire_memory_is(fd, WIRE_SIZE) ? map_memory(t, fd) : NULL;
	sys_close(fd);
	if (!map)
		return false;
	w->page = map;
	t->proc->perf->pid = map->pid;
	t->proc->perf->ppid = map->ppid;
	w->present = 0;
	/*
	 * A vfork child shares the runtime's memory with its parent, and with it the table of own
	 * fds.
	 */
	w->guest_sock = t->vfork_child || t->own_proc;
	if (!w->guest_sock)
		sock = fd_adopt(FD_WIRE, sock);
	sys_fcntl(sock, F_SETFD, FD_CLOEXEC);
	w->sock = sock;
	return w->page->magic == WIRE_MAGIC && w->page->version == WIRE_VERSION &&
	       w->page->slots == WIRE_SLOTS;
}

static void connect(struct thread *t, struct wire *w, u32 flags)
{
	s32 pair[2];

	if (w->page || w->dead)
		return;
	/* Descriptors may be free again at the next try. */
	if (raw_call4(__NR_socketpair, AF_UNIX, SOCK_SEQPACKET | O_CLOEXEC, 0, (long)pair))
		return;
	if (!hello(t, w, pair[0], pair[1], flags)) {
		w->dead = true;
		if (w->sock < 0)
			sys_close(pair[0]);
	}
}

static bool connect_as(struct thread *t, u32 flags)
{
	struct wire *w = &t->proc->perf->wire;
	u64 mask;

	if (w->dead)
		return false;
	mask = wire_lock(t);
	connect(t, w, flags);
	wire_unlock(t, mask);
	return w->page && !w->dead;
}

bool wire_connect(struct thread *t)
{
	const struct wire *w = &t->proc->perf->wire;

	return likely(w->page) ? !w->dead : connect_as(t, 0);
}

void wire_hello_exec(struct thread *t)
{
	u64 before = perf_switches();

	sample_own_begin(t);
	(void)connect_as(t, WIRE_HELLO_EXEC);
	perf_own_switches(t, before);
}

void wire_forked(struct wire *w, int sock)
{
	lock_reset(&w->lock);
	if (sock >= 0)
		sys_close(sock);
	for (u32 i = 0; i < WIRE_SLOTS; i++) {
		if (w->parked[i] >= 0)
			sys_close(w->parked[i]);
		w->parked[i] = -1;
	}
	w->page = NULL;
	w->free = ~0ull;
	w->sock = -1;
	w->guest_sock = false;
}

void wire_hello_child(struct thread *t, int sock)
{
	struct wire *w = &t->proc->perf->wire;
	u64 before = perf_switches();
	bool welcome = !w->dead && hello(t, w, sock, -1, WIRE_HELLO_CHILD);

	perf_own_switches(t, before);
	if (!welcome) {
		w->dead = true;
		if (w->sock < 0)
			sys_close(sock);
		return;
	}
	if (!w->guest_sock)
		return;
	/* What it has to say more it says on a new one; this one is in the guest's way. */
	sys_close(sock);
	region_unmap_file(w->page, WIRE_SIZE);
	wire_forked(w, -1);
}

/* Takes a slot for @t; false: the session is dead. Calls that it has not answered keep theirs. */
static bool take_slot(struct thread *t, struct wire *w)
{
	u64 free, bit;

	while (!__atomic_load_n(&w->dead, __ATOMIC_RELAXED)) {
		free = __atomic_load_n(&w->free, __ATOMIC_RELAXED);
		/* The one it had last: the session knows it there. */
		bit = BIT(t->perf_slot % WIRE_SLOTS);
		if (!(free & bit))
			bit = free & -free;
		if (!bit) {
			sys_sched_yield();
		} else if (__atomic_compare_exchange_n(&w->free, &free, free & ~bit, false,
						       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			t->perf_slot = (u32)__builtin_ctzll(bit);
			return true;
		}
	}
	return false;
}

struct wire_slot *wire_begin(struct thread *t)
{
	struct wire *w = &t->proc->perf->wire;
	struct wire_slot *sl;

	sample_own_begin(t);
	t->perf_switches = perf_switches();
	if (!wire_connect(t) || !take_slot(t, w))
		return NULL;
	sl = (struct wire_slot *)((u8 *)w->page + WIRE_SLOT_OFF(t->perf_slot));
	if (!(__atomic_fetch_or(&w->present, BIT(t->perf_slot), __ATOMIC_RELAXED) &
	      BIT(t->perf_slot)))
		populate(sl);
	sl->tid = (s32)t->tid;
	sl->meter = meter_told(t);
	sl->token = t->perf_token;
	sl->switches = t->perf_switches - dbt_meter(&t->dbt)->own_switches;
	sl->len = 0;
	memset(&sl->args, 0, sizeof(sl->args));
	return sl;
}

int wire_send_fd(struct thread *t, struct wire_slot *sl, int fd)
{
	struct wire *w = &t->proc->perf->wire;
	struct wire_kick kick = {.what = WIRE_KICK_FD, .slot = t->perf_slot};
	int err = send(sock_of(w), &kick, sizeof(kick), fd);

	(void)sl;
	if (err == -EPIPE || err == -ECONNRESET)
		w->dead = true;
	return err ? -ENODEV : 0;
}

/* Has the session hung up? Its messages stay where they are. */
static bool lost(struct wire *w)
{
	struct pollfd poll = {.fd = sock_of(w)};

	return raw_call3(__NR_poll, (long)&poll, 1, 0) == 1 && poll.revents & POLLHUP;
}

static bool wait(struct thread *t, struct wire *w, struct wire_slot *sl)
{
	const struct __kernel_timespec patience = {0, LOST_MS * 1000000};
	struct wire_kick kick = {.what = WIRE_KICK_CALL, .slot = t->perf_slot};
	struct iovec iov = {&kick, sizeof(kick)};
	const struct user_msghdr again = {.msg_iov = &iov, .msg_iovlen = 1};
	long ret;

	if (__atomic_load_n(&sl->awake, __ATOMIC_RELAXED)) {
		u64 until = sys_clock(CLOCK_MONOTONIC) + SPIN_NS;

		do {
			for (int i = 0; i < 32; i++) {
				if (__atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) == WIRE_DONE)
					return true;
				cpu_relax();
			}
		} while (sys_clock(CLOCK_MONOTONIC) < until);
	}
	for (;;) {
		u32 word = WIRE_POSTED;

		if (!__atomic_compare_exchange_n(&sl->word, &word, WIRE_WAITED, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
		    word == WIRE_DONE)
			break;
		ret = sys_futex(&sl->word, FUTEX_WAIT, WIRE_WAITED, &patience, NULL, 0);
		if (ret == -ETIMEDOUT) {
			if (lost(w))
				return false;
			/*
			 * Should somebody who shares our memory have spoilt `awake`, this wakes the
			 * session.
			 */
			raw_call3(__NR_sendmsg, sock_of(w), (long)&again,
				  MSG_NOSIGNAL | MSG_DONTWAIT);
		}
	}
	return true;
}

/* Nothing in the slot is an answer, whatever the last call has left there. */
static long hung_up(struct thread *t, struct wire *w)
{
	w->dead = true;
	t->perf_reply = (struct wire_reply){.ret = -ENODEV};
	return -ENODEV;
}

/* What the reply to the request in @sl is measured by. */
static u64 asked_for(const struct wire_slot *sl, u32 op)
{
	return op == WIRE_OP_READ    ? sl->args.read.len
	       : op == WIRE_OP_IOCTL ? sl->args.ioctl.cmd
				     : 0;
}

long wire_call(struct thread *t, struct wire_slot *sl, u32 op)
{
	struct wire *w = &t->proc->perf->wire;
	u64 asked = asked_for(sl, op);

	if (w->dead)
		return hung_up(t, w);
	sl->op = op;
	sl->seq++;
	sl->cpu = current_cpu();
	sl->cpu_time = perf_cpu_time();
	__atomic_store_n(&sl->word, WIRE_POSTED, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&sl->awake, __ATOMIC_RELAXED)) {
		struct wire_kick kick = {.what = WIRE_KICK_CALL, .slot = t->perf_slot};

		if (send(sock_of(w), &kick, sizeof(kick), -1))
			return hung_up(t, w);
	}
	if (!wait(t, w, sl))
		return hung_up(t, w);
	t->perf_token = 0;
	(void)wire_reply_take(&t->perf_reply, sl, op, asked);
	return (long)t->perf_reply.ret;
}

/* The descriptor for @t's slot, or -EMFILE. Under the lock. */
static int take_fd(struct thread *t, struct wire *w)
{
	u32 slot = t->perf_slot;
	int fd;

	while (w->parked[slot] < 0) {
		struct wire_fd_message message;
		int got;

		/*
		 * It was sent before the reply, so it is here; whose it is, is not said by the
		 * order.
		 */
		if (receive(sock_of(w), &message, &got, MSG_DONTWAIT) != 1)
			break;
		if (message.slot >= WIRE_SLOTS) {
			if (got >= 0)
				sys_close(got);
			continue;
		}
		if (got < 0) {
			if (message.slot == slot)
				break;
			continue;
		}
		if (w->parked[message.slot] >= 0)
			sys_close(w->parked[message.slot]);
		w->parked[message.slot] = got;
	}
	fd = w->parked[slot];
	w->parked[slot] = -1;
	return fd < 0 ? -EMFILE : fd;
}

int wire_take_fd(struct thread *t, bool cloexec)
{
	struct wire *w = &t->proc->perf->wire;
	int fd;
	u64 mask;

	if (!(t->perf_reply.flags & WIRE_REPLY_FD))
		return -EMFILE;
	mask = wire_lock(t);
	fd = take_fd(t, w);
	if (fd >= 0 && !cloexec)
		sys_fcntl(fd, F_SETFD, 0);
	wire_unlock(t, mask);
	return fd;
}

bool wire_map_fd(struct thread *t, void *at, u64 len, u64 offset)
{
	struct wire *w = &t->proc->perf->wire;
	u64 mask = wire_lock(t);
	int fd = take_fd(t, w);
	bool mapped;

	mapped = fd >= 0 && wire_memory_is(fd, offset + len) &&
		 !sys_failed(sys_mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
				      offset));
	if (fd >= 0)
		sys_close(fd);
	wire_unlock(t, mask);
	return mapped;
}

void wire_end(struct thread *t, struct wire_slot *sl)
{
	struct wire *w = &t->proc->perf->wire;

	perf_own_switches(t, t->perf_switches);
	/* A request that was never answered keeps its slot: the session may yet write there. */
	if (!w->dead) {
		__atomic_store_n(&sl->word, WIRE_IDLE, __ATOMIC_RELEASE);
		__atomic_fetch_or(&w->free, BIT(t->perf_slot % WIRE_SLOTS), __ATOMIC_RELEASE);
	}
}

bool wire_tell_trace(struct thread *t)
{
	struct wire_kick kick = {.what = WIRE_KICK_TRACE, .meter = t->meter};
	u64 before;
	int err;

	if (!t->proc->perf)
		return false;
	sample_own_begin(t);
	before = perf_switches();
	if (!wire_connect(t))
		return false;
	err = send(sock_of(&t->proc->perf->wire), &kick, sizeof(kick), -1);
	perf_own_switches(t, before);
	return !err;
}

bool wire_is_lost(struct thread *t)
{
	return !t->proc->perf || t->proc->perf->wire.dead || lost(&t->proc->perf->wire);
}
