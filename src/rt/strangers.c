/*
 * A process in our memory that is killed leaves its locks as they are. Who kills one from within this memory
 * therefore holds all of them until the other cannot run any more. For one that is killed by somebody
 * else, or whose threads die by each other's exit_group, nobody does that: whoever needs a lock that it had
 * finds that out, late, and repairs what it guards (lock_acquire).
 */
#include "rt/strangers.h"

#include "rt/meter.h"
#include "rt/process.h"
#include "rt/signal.h"
#include "rt/syscall.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/sched.h>

#define KCMP_VM 1

/* Strangers may be as many dead ones as alive before somebody looks. */
static u32 strangers, sweep_at = 16;

/* Whether the task @tid is gone from the memory that @t lives in, by its end or an execve. */
static bool has_left(const struct thread *t, u32 tid)
{
	long same = raw_call5(__NR_kcmp, (long)t->tid, (long)tid, KCMP_VM, 0, 0);

	return same > 0 || same == -ESRCH;
}

/* Of each id the last thread of that remainder: the upper half is its id, the lower one its tid. */
static u64 known[256];

void thread_know(struct thread *t, u32 tid)
{
	__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
	__atomic_store_n(&known[t->id % ARRAY_SIZE(known)], (u64)t->id << 32 | tid,
			 __ATOMIC_RELAXED);
}

bool thread_gone(u32 id)
{
	u64 k = __atomic_load_n(&known[id % ARRAY_SIZE(known)], __ATOMIC_RELAXED);

	return k >> 32 == id && !meter_namespaces() && has_left(this_thread(), (u32)k);
}

static bool stranger_has_left(const struct thread *t, const struct thread *o)
{
	u32 tid = __atomic_load_n(&o->tid, __ATOMIC_ACQUIRE);

	return o->proc != t->proc && !o->vfork_child && tid && has_left(t, tid);
}

static void sweep(struct thread *t)
{
	for (;;) {
		struct thread *o;

		strangers = 0;
		for (o = threads_lock(t); o && !stranger_has_left(t, o); o = o->all_next)
			strangers += o->proc != t->proc;
		threads_unlock(t);
		if (!o)
			break;
		if (!o->begun)
			meter_return(o->meter);
		else if (!o->execing)
			meter_free(o->meter, o->tid);
		thread_release(o);
	}
	sweep_at = 2 * strangers + 16;
}

void strangers_expect(struct thread *t, u64 flags)
{
	if (!(flags & CLONE_VFORK) && ++strangers > sweep_at)
		sweep(t);
}

/* Whom @pidfd is of; 0 unknown. */
static long pid_of(int pidfd)
{
	char path[64], text[512];
	u64 pid = 0;
	long n;
	int fd;

	fmt(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	fd = (int)sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	n = sys_read(fd, text, sizeof(text) - 1);
	sys_close(fd);
	text[n > 0 ? n : 0] = 0;
	for (const char *line = text; line; line = str_chr(line, '\n')) {
		line += *line == '\n';
		if (str_starts(line, "Pid:\t"))
			str_u64(line + 5, 10, &pid);
	}
	return (long)pid;
}

/* Whom the call kills: a process or thread, -1 times a group; 0: nobody, or all that can be. */
static long kill_target(struct thread *t)
{
	u64 nr = t->dbt.regs.gpr[DBT_RAX];
	bool names_two = nr == __NR_tgkill || nr == __NR_rt_tgsigqueueinfo;
	int pid = (int)guest_arg(t, names_two);

	if ((int)guest_arg(t, 1 + names_two) != SIGKILL || pid == -1)
		return 0;
	return nr == __NR_pidfd_send_signal ? pid_of(pid) : pid;
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

/* What has been killed runs on until its CPU hears of it, and ends a little later. Not one in the kernel's hands. */
static void wait_for_end(struct thread *t, u32 tid)
{
	const struct __kernel_timespec pause = {.tv_nsec = 100000};
	u32 never = 0;

	for (u32 i = 0; i < 10000 && !has_left(t, tid); i++) {
		if (i < 10)
			sys_sched_yield();
		else
			sys_futex(&never, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
	}
}

long guest_kill(struct thread *t)
{
	long pid = kill_target(t), ret = -EFAULT;
	const struct thread *first;
	bool found = false;

	/* A group that is our own: we die of it. */
	if (!pid || (pid < 0 && raw_call1(__NR_getpgid, 0) == -pid))
		return call_kernel(t);
	signal_block_all();
	if (t->pending_count) {
		signal_set_mask(~SIGNALS_SYNC);
		return CALL_REDO;
	}
	first = locks_take(t);
	for (const struct thread *o = first; o && !found; o = o->all_next)
		found = is_target(t, o, pid);
	if (found)
		ret = raw_call4((long)t->dbt.regs.gpr[DBT_RAX], (long)guest_arg(t, 0),
				(long)guest_arg(t, 1), (long)guest_arg(t, 2),
				(long)guest_arg(t, 3));
	for (const struct thread *o = first; o && !ret; o = o->all_next)
		if (is_target(t, o, pid))
			wait_for_end(t, o->tid);
	locks_give(t);
	signal_set_mask(signal_kernel_mask(t->sigmask));
	/* Nobody of ours; or a siginfo that the kernel could not read, without locks. */
	return ret == -EFAULT ? call_kernel(t) : ret;
}
