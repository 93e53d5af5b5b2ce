#include "rt/deterministic/deterministic-run.h"

#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "sys/string.h"

#include <linux/auxvec.h>
#include <linux/mman.h>
#include <linux/personality.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/wait.h>

#define RW_MAX    0x7ffff000ul /* no call moves more */
#define GOLDEN    0x9e3779b97f4a7c15ull
#define EXEC_STEP BIT(63)

bool deterministic;

/* Memory that another process may write to is mapped. */
static bool shares_memory;

void nondet_used(u32 what)
{
	struct counter_segment *segment = counter_segment();

	if (deterministic && (__atomic_load_n(&segment->nondet, __ATOMIC_RELAXED) & what) != what)
		__atomic_fetch_or(&segment->nondet, what, __ATOMIC_RELAXED);
}

/* The finalizer of splitmix64. */
static u64 mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static u64 derive(u64 key, u64 step)
{
	return mix(mix(key) + (2 * step + 1) * GOLDEN);
}

u64 deterministic_random(struct thread *t)
{
	return mix(t->deterministic.key + ++t->deterministic.drawn * GOLDEN);
}

/* The instructions that the thread has retired, added to its creator's clock at the time. */
u64 deterministic_tsc(struct thread *t)
{
	const struct meter *m = dbt_meter(&t->dbt);

	return t->deterministic.tsc + meter_sum(m, METER_INSTRUCTIONS) -
	       m->base[METER_INSTRUCTIONS];
}

struct deterministic_task deterministic_child(struct thread *t)
{
	struct deterministic_task child = {0};

	if (!deterministic)
		return child;
	child.key = derive(t->deterministic.key, t->deterministic.made++);
	child.tsc = deterministic_tsc(t);
	child.affinity = t->deterministic.affinity;
	return child;
}

void deterministic_exec(struct thread *t, struct rt_control *control)
{
	if (!deterministic)
		return;
	control->random_key = derive(t->deterministic.key, EXEC_STEP | t->deterministic.made);
	/* The meter goes on to the new program. */
	control->tsc = t->deterministic.tsc;
	control->affinity = t->deterministic.affinity;
}

static void deterministic_auxv(struct thread *t, struct stack_in *in)
{
	u64 n = 0;

	for (u64 i = 0; i < in->auxc; i++) {
		u64 type = in->auxv[i][0], value = in->auxv[i][1];

		switch (type) {
		/*
		 * The vDSO's clocks and random numbers would not be seen here. rseq tells the CPU.
		 */
		case AT_SYSINFO_EHDR:
			/* An old kernel has no entry of that type; its place is taken. */
			if (!deterministic_frame())
				continue;
			type = AT_MINSIGSTKSZ;
			value = deterministic_frame();
			break;
		case AT_MINSIGSTKSZ:
			if (deterministic_frame())
				continue;
			break;
		case AT_RSEQ_FEATURE_SIZE:
		case AT_RSEQ_ALIGN: continue;
		case AT_RANDOM:
			for (u32 k = 0; k < 16; k += 8) {
				u64 word = deterministic_random(t);

				memcpy((u8 *)value + k, &word, sizeof(word));
			}
			break;
		default:
			if (!deterministic_hwcap(type, &value))
				continue;
		}
		in->auxv[n][0] = type;
		in->auxv[n++][1] = value;
	}
	in->auxc = n;
}

void deterministic_start(struct thread *t, struct stack_in *in, const struct rt_control *control)
{
	const struct run_config *run = run_config();

	deterministic = run->flags & SEGMENT_DETERMINISTIC;
	if (!deterministic)
		return;
	t->deterministic.key = control->flags & CONTROL_LAUNCH ? derive(run->seed, 0)
							       : control->random_key;
	t->deterministic.tsc = control->tsc;
	t->deterministic.affinity = control->flags & CONTROL_LAUNCH ? deterministic_cpus()
								    : control->affinity;
	deterministic_auxv(t, in);
}

static bool from_cpu(const siginfo_t *info)
{
	return info->si_code > 0 && SIG(info->si_signo) & SIGNALS_SYNC;
}

/*
 * Not noted: faults, which happen at their instruction, and what a thread sends to itself, which
 * arrives before the call returns.
 */
void deterministic_signal(struct thread *t, const siginfo_t *info)
{
	if (!deterministic || from_cpu(info))
		return;
	if (info->si_code <= 0 && info->si_code != SI_TIMER && info->si_code != SI_ASYNCIO &&
	    (u32)info->si_pid == t->proc->pid)
		return;
	nondet_used(NONDET_SIGNALS);
}

/* Random bytes for the guest: how many, or -EFAULT if none. */
static long fill(struct thread *t, u64 at, u64 len)
{
	u64 words[32], done = 0;

	len = min_u64(len, RW_MAX);
	while (done < len) {
		u64 n = min_u64(len - done, sizeof(words));

		for (u32 i = 0; i < (n + 7) / 8; i++)
			words[i] = deterministic_random(t);
		if (guest_write(t, at + done, words, n))
			return done ? (long)done : -EFAULT;
		done += n;
	}
	return (long)done;
}

long deterministic_getrandom(struct thread *t, u64 nr)
{
	u64 flags = guest_arg(t, 2);

	(void)nr;
	if (flags & ~(u64)(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) ||
	    (flags & GRND_RANDOM && flags & GRND_INSECURE))
		return -EINVAL;
	return fill(t, guest_arg(t, 0), guest_arg(t, 1));
}

static long fill_vector(struct thread *t, u64 at, u64 n)
{
	long done = 0;

	if (n > UIO_MAXIOV)
		return -EINVAL;
	for (u64 i = 0; i < n; i++) {
		u64 iov[2];
		long ret;

		if (guest_read(iov, at + i * sizeof(iov), sizeof(iov)))
			return done ? done : -EFAULT;
		ret = fill(t, iov[0], iov[1]);
		if (ret < 0)
			return done ? done : ret;
		done += ret;
	}
	return done;
}

/*
 * What comes from a file does not vary. A read that gets all it asks a pipe for, or the pipe's end,
 * would do so at any speed of the writer. From a socket or a terminal comes what others send.
 */
long deterministic_read(struct thread *t, u64 nr)
{
	int fd = (int)guest_arg(t, 0);
	bool vector = nr != __NR_read && nr != __NR_pread64;
	struct statx st;
	u32 kind;
	long ret;

	if (sys_statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st))
		return syscall_answer(t, nr);
	kind = st.stx_mode & S_IFMT;
	if (kind == S_IFCHR && st.stx_rdev_major == 1) {
		bool random = st.stx_rdev_minor == 8 || st.stx_rdev_minor == 9;

		if (!random || (sys_fcntl(fd, F_GETFL, 0) & O_ACCMODE) == O_WRONLY)
			return syscall_answer(t, nr);
		return vector ? fill_vector(t, guest_arg(t, 1), guest_arg(t, 2))
			      : fill(t, guest_arg(t, 1), guest_arg(t, 2));
	}
	ret = syscall_answer(t, nr);
	if (kind == S_IFREG || kind == S_IFDIR || ret == CALL_REDO)
		return ret;
	if (kind != S_IFIFO || vector || (ret && ret != (long)guest_arg(t, 2)))
		nondet_used(NONDET_IO);
	return ret;
}

/* Whether @path names a file in /proc whose content varies between runs. */
static bool shows_machine(const char *path)
{
	/* What is the program's own, or a constant of the machine. */
	static const char *const same[] = {
		"sys/",         "filesystems",   "self/exe",  "self/maps",
		"self/cmdline", "self/environ",  "self/auxv", "self/fd",
		"self/task",    "self/coredump", "self/root", "self/cwd",
	};

	if (!str_starts(path, "/proc/"))
		return false;
	for (u32 i = 0; i < ARRAY_SIZE(same); i++)
		if (str_starts(path + 6, same[i]))
			return false;
	return true;
}

long deterministic_open(struct thread *t, u64 nr)
{
	char path[64];
	long fd;

	memset(path, 0, sizeof(path));
	if (guest_string(path, guest_arg(t, syscall_row(nr)->path), sizeof(path)) < 0)
		return syscall_answer(t, nr);
	if (shows_machine(path) && !deterministic_cpu_file_is_fixed(path))
		nondet_used(NONDET_MACHINE);
	return deterministic_cpu_file(t, nr, path, &fd) ? fd : syscall_answer(t, nr);
}

long deterministic_clock_gettime(struct thread *t, u64 nr)
{
	s32 id = (s32)guest_arg(t, 0);

	/* Negative ones are CPU clocks of tasks. */
	if (id < 0 || id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID)
		nondet_used(NONDET_CPU_TIME);
	else
		nondet_used(NONDET_TIME);
	return syscall_answer(t, nr);
}

/* Noted: waits whose result depends on which child ends first, or on whether one has ended yet. */
long deterministic_wait(struct thread *t, u64 nr)
{
	bool wait4 = nr == __NR_wait4;
	u64 options = guest_arg(t, wait4 ? 2 : 3);
	bool any = wait4 ? (s32)guest_arg(t, 0) <= 0 : guest_arg(t, 0) != P_PID;
	long ret;

	if (options & WNOHANG || (any && t->deterministic.made > t->deterministic.ended + 1))
		nondet_used(NONDET_PROCESSES);
	if (guest_arg(t, wait4 ? 3 : 4))
		nondet_used(NONDET_CPU_TIME);
	ret = syscall_answer(t, nr);
	if (wait4 ? ret > 0 : !ret && options & WEXITED && !(options & (WNOHANG | WNOWAIT)))
		t->deterministic.ended += t->deterministic.ended < t->deterministic.made;
	return ret;
}

long deterministic_mmap(struct thread *t, u64 nr)
{
	u64 prot = guest_arg(t, 2), flags = guest_arg(t, 3);

	if (flags & MAP_SHARED && prot & PROT_WRITE) {
		shares_memory = true;
		if (!(flags & MAP_ANONYMOUS) &&
		    __atomic_load_n(&counter_segment()->used, __ATOMIC_RELAXED) > 1)
			nondet_used(NONDET_PROCESSES);
	}
	return syscall_answer(t, nr);
}

long deterministic_shmat(struct thread *t, u64 nr)
{
	shares_memory = true;
	return syscall_answer(t, nr);
}

long deterministic_clone(struct thread *t, u64 nr)
{
	u64 flags = 0;

	if (nr == __NR_clone)
		flags = guest_arg(t, 0);
	else if (nr == __NR_clone3 && guest_read(&flags, guest_arg(t, 0), sizeof(flags)))
		return syscall_answer(t, nr);
	if (flags & CLONE_VM && !(flags & CLONE_VFORK))
		nondet_used(NONDET_THREADS);
	else if (shares_memory && !(flags & CLONE_VFORK) && nr != __NR_vfork)
		nondet_used(NONDET_PROCESSES);
	return syscall_answer(t, nr);
}

/* ADDR_NO_RANDOMIZE stays on, so that programs that are executed later have fixed addresses too. */
long deterministic_personality(struct thread *t, u64 nr)
{
	u64 was = guest_arg(t, 0);
	long ret;

	if ((u32)was != PERSONALITY_ASK)
		regs_set_arg(&t->dbt.regs, 0, was | ADDR_NO_RANDOMIZE);
	ret = syscall_answer(t, nr);
	regs_set_arg(&t->dbt.regs, 0, was);
	return ret;
}

long deterministic_syscall(struct thread *t, u64 nr, const struct syscall_row *row)
{
	long ret;

	if (row->deterministic_call)
		return row->deterministic_call(t, nr);
	if (row->steps & SYSCALL_NONDET_AGAIN) {
		ret = syscall_answer(t, nr);
		if (ret == -EAGAIN || ret == -EINTR)
			nondet_used(row->nondet);
		return ret;
	}
	if (!(row->steps & SYSCALL_NONDET_ARG) || guest_arg(t, row->nondet_arg))
		nondet_used(row->nondet);
	return syscall_answer(t, nr);
}
