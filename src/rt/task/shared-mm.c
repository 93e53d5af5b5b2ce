/*
 * A process that shares our memory and is killed leaves its locks as they are. So a guest that
 * kills one holds all locks until the victim cannot run any more. If somebody else kills it, or its
 * threads end by exit_group, nobody does that. Then whoever needs a lock that it held finds out,
 * late, and repairs what the lock guards (lock_acquire()).
 */
#include "rt/task/shared-mm.h"

#include "rt/signal/signal.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "rt/task/process.h"
#include "rt/task/stopped.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/kcmp.h>
#include <linux/sched.h>

/* Sharers may be as many dead ones as alive before somebody looks. */
static u32 sharers, sweep_at = 16;

/* Z, X, or 0 for one that there is not, of a task in our own PID namespace. */
static char state_of(u32 tid)
{
	char path[40], text[512], *p;
	long n;

	fmt(path, sizeof(path), "/proc/%u/stat", tid);
	n = fd_read_text(path, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT || n == -ESRCH ? 0 : '?';
	p = str_rchr(text, ')');
	return p && p[1] ? p[2] : '?';
}

enum presence {
	HERE,
	LEFT,
	UNKNOWN,
};

/*
 * Whether the task @tid runs in our memory, or has left it by its end or by an execve. Where
 * kcmp(2) is forbidden, as Docker's filter does, an execve is not found. Nothing is known of
 * threads in other PID namespaces, whose numbers are others.
 */
static enum presence presence(u32 tid)
{
	long me = (long)this_thread()->tid, same;
	char state;

	if (meter_namespaces())
		return UNKNOWN;
	same = raw_call5(__NR_kcmp, me, (long)tid, KCMP_VM, 0, 0);
	if (same >= 0 || same == -ESRCH)
		return same ? LEFT : HERE;
	state = state_of(tid);
	return state == '?' ? UNKNOWN : !state || state == 'Z' || state == 'X' ? LEFT : HERE;
}

bool thread_has_left(u32 tid)
{
	return presence(tid) == LEFT;
}

/*
 * Of the threads that are not released yet: the upper half is the id, the lower one the tid; 0
 * free.
 */
static u64 known[KNOWN_MAX];
#define KNOWN_TRIES 64u

static u64 *known_at(u32 id, u32 i)
{
	return &known[(id + i) % ARRAY_SIZE(known)];
}

void thread_know(struct thread *t, u32 tid)
{
	__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
	thread_forget(t);
	for (u32 i = 0; i < KNOWN_TRIES; i++) {
		u64 none = 0;

		if (__atomic_compare_exchange_n(known_at(t->id, i), &none, (u64)t->id << 32 | tid,
						false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	}
}

static u64 *known_find(u32 id)
{
	for (u32 i = 0; i < KNOWN_TRIES; i++)
		if (__atomic_load_n(known_at(id, i), __ATOMIC_RELAXED) >> 32 == id)
			return known_at(id, i);
	return NULL;
}

void thread_forget(struct thread *t)
{
	u64 *k = known_find(t->id);

	if (k)
		__atomic_store_n(k, 0, __ATOMIC_RELAXED);
}

void threads_forget_others(const struct thread *t)
{
	for (u32 i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i] && known[i] >> 32 != t->id)
			known[i] = 0;
}

u32 known_tid(u32 i)
{
	return (u32)__atomic_load_n(&known[i % KNOWN_MAX], __ATOMIC_RELAXED);
}

bool thread_gone(u32 id)
{
	const u64 *k = known_find(id);

	if (k && thread_has_left((u32)__atomic_load_n(k, __ATOMIC_RELAXED)))
		return true;
	stopped_run_on();
	return false;
}

static bool sharer_has_left(const struct thread *t, const struct thread *o)
{
	u32 tid = __atomic_load_n(&o->tid, __ATOMIC_ACQUIRE);

	return o->proc != t->proc && !o->vfork_child && tid && thread_has_left(tid);
}

static void sweep(struct thread *t)
{
	for (;;) {
		struct thread *o;

		sharers = 0;
		for (o = threads_lock(t); o && !sharer_has_left(t, o); o = o->all_next)
			sharers += o->proc != t->proc;
		/* Whoever sweeps at the same time must not find it again. */
		if (o)
			threads_unlink(o);
		threads_unlock(t);
		if (!o)
			break;
		if (!o->begun)
			meter_return_of(o);
		else if (!o->execing)
			meter_free(o->meter, o->tid);
		thread_release(o);
	}
	sweep_at = 2 * sharers + 16;
}

void sharers_expect(struct thread *t, u64 flags)
{
	if (!(flags & CLONE_VFORK) && ++sharers > sweep_at)
		sweep(t);
}

/* Whom @pidfd is of; 0 unknown. */
static long pid_of(int pidfd)
{
	char path[64], text[512];
	u64 pid = 0;

	fmt(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	if (fd_read_text(path, text, sizeof(text)) < 0)
		return 0;
	for (const char *line = text; line; line = str_chr(line, '\n')) {
		line += *line == '\n';
		if (str_starts(line, "Pid:\t"))
			str_u64(line + 5, 10, &pid);
	}
	return (long)pid;
}

/*
 * Whom the call kills: a process or thread, -1 times a group, or whom *@pidfd is of. 0: nobody, or
 * everybody.
 */
static long kill_target(struct thread *t, int *pidfd)
{
	u64 nr = guest_nr(t);
	bool names_two = nr == __NR_tgkill || nr == __NR_rt_tgsigqueueinfo;
	int pid = (int)guest_arg(t, names_two);

	if ((int)guest_arg(t, 1 + names_two) != SIGKILL || pid == -1)
		return 0;
	if (nr != __NR_pidfd_send_signal)
		return pid;
	*pidfd = pid;
	return 0;
}

static bool is_target(const struct thread *t, const struct thread *o, long pid)
{
	u32 tid = __atomic_load_n(&o->tid, __ATOMIC_ACQUIRE);

	if (o->proc == t->proc || !tid)
		return false;
	if (pid < 0)
		return raw_call1(__NR_getpgid, (long)tid) == -pid;
	/* Until it has begun, o->proc->pid is its creator's. */
	return (long)tid == pid || (o->begun && (long)o->proc->pid == pid);
}

/*
 * A killed task runs on until its CPU hears of it. Not waited for is one that hangs in the kernel.
 */
static void wait_for_end(u32 tid)
{
	const struct __kernel_timespec pause = {.tv_nsec = 100000};
	u32 never = 0;

	for (u32 i = 0; i < 2000 && presence(tid) == HERE; i++) {
		if (i < 10)
			sys_sched_yield();
		else
			sys_futex(&never, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
	}
}

static const struct thread *find_target(const struct thread *t, const struct thread *o, long pid)
{
	while (o && !is_target(t, o, pid))
		o = o->all_next;
	return o;
}

/* Asked before the locks are taken, because mm's may be held for long. */
static bool has_target(struct thread *t, long *pid, int pidfd)
{
	const struct thread *o = threads_lock(t);
	bool found;

	while (o && o->proc == t->proc)
		o = o->all_next;
	/* Only where there are sharers: a look takes a descriptor. */
	if (o && pidfd >= 0)
		*pid = pid_of(pidfd);
	found = o && *pid && find_target(t, o, *pid);
	threads_unlock(t);
	return found;
}

long guest_kill(struct thread *t)
{
	int pidfd = -1;
	long pid = kill_target(t, &pidfd), ret = -EFAULT;
	const struct thread *first, *o;

	/* A group that is our own: we die of it. */
	if ((!pid && pidfd < 0) || (pid < 0 && raw_call1(__NR_getpgid, 0) == -pid))
		return call_kernel(t);
	signal_block_all();
	if (t->pending_count) {
		signal_set_mask(~SIGNALS_SYNC);
		return CALL_REDO;
	}
	if (has_target(t, &pid, pidfd)) {
		first = locks_take(t);
		ret = raw_call4((long)guest_nr(t), (long)guest_arg(t, 0), (long)guest_arg(t, 1),
				(long)guest_arg(t, 2), (long)guest_arg(t, 3));
		for (o = find_target(t, first, pid); o && !ret;
		     o = find_target(t, o->all_next, pid))
			wait_for_end(o->tid);
		locks_give(t);
	}
	signal_set_mask(signal_kernel_mask(t->sigmask));
	/* Nobody of ours; or a siginfo that the kernel could not read. */
	return ret == -EFAULT ? call_kernel(t) : ret;
}
