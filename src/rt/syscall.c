/*
 * The table of the calls that need care, and how a call is answered. Everything that is not in the
 * table is the kernel's.
 */
#include "rt/syscall.h"

#include "rt/deterministic.h"
#include "rt/exec.h"
#include "rt/fd.h"
#include "rt/mm.h"
#include "rt/perf.h"
#include "rt/proc-view.h"
#include "rt/process.h"
#include "rt/seccomp.h"
#include "rt/signal.h"
#include "rt/window.h"
#include "sys/guest-call.h"

#define CALLS 512u

static long (*const table[CALLS])(struct thread *t) = {
	/* memory */
	[__NR_mmap] = guest_mmap,
	[__NR_munmap] = guest_munmap,
	[__NR_mprotect] = guest_mprotect,
	[__NR_pkey_mprotect] = guest_mprotect,
	[__NR_mremap] = guest_mremap,
	[__NR_brk] = guest_brk,
	[__NR_madvise] = guest_madvise,
	[__NR_shmat] = guest_shmat,
	[__NR_shmdt] = guest_shmdt,
	/* signals */
	[__NR_rt_sigaction] = guest_rt_sigaction,
	[__NR_rt_sigprocmask] = guest_rt_sigprocmask,
	[__NR_rt_sigreturn] = guest_rt_sigreturn,
	[__NR_rt_sigpending] = guest_rt_sigpending,
	[__NR_rt_sigsuspend] = guest_rt_sigsuspend,
	[__NR_rt_sigtimedwait] = guest_rt_sigtimedwait,
	[__NR_sigaltstack] = guest_sigaltstack,
	[__NR_ppoll] = guest_mask_call,
	[__NR_pselect6] = guest_mask_call,
	[__NR_epoll_pwait] = guest_mask_call,
	[__NR_epoll_pwait2] = guest_mask_call,
	[__NR_io_pgetevents] = guest_mask_call,
	/* processes and threads */
	[__NR_clone] = guest_clone,
	[__NR_clone3] = guest_clone3,
	[__NR_fork] = guest_fork,
	[__NR_vfork] = guest_vfork,
	[__NR_exit] = guest_exit,
	[__NR_exit_group] = guest_exit_group,
	[__NR_execve] = guest_execve,
	[__NR_execveat] = guest_execveat,
	[__NR_arch_prctl] = guest_arch_prctl,
	[__NR_prctl] = guest_prctl,
	[__NR_personality] = guest_personality,
	[__NR_seccomp] = guest_seccomp,
	/* descriptors */
	[__NR_close_range] = guest_close_range,
	[__NR_dup2] = guest_dup2,
	[__NR_dup3] = guest_dup2,
	[__NR_getdents64] = guest_getdents64,
	/* paths */
	[__NR_open] = guest_open,
	[__NR_openat] = guest_open,
	[__NR_readlink] = guest_readlink,
	[__NR_readlinkat] = guest_readlink,
	[__NR_stat] = guest_path_first,
	[__NR_lstat] = guest_path_first,
	[__NR_access] = guest_path_first,
	[__NR_newfstatat] = guest_path_second,
	[__NR_faccessat] = guest_path_second,
	[__NR_faccessat2] = guest_path_second,
	[__NR_statx] = guest_path_second,
	/* buffers that the kernel fills, where a program reads code into writable code */
	[__NR_read] = guest_read_call,
	[__NR_pread64] = guest_read_call,
	[__NR_recvfrom] = guest_read_call,
	[__NR_getrandom] = guest_read_call,
};

long call_kernel_with(struct thread *t, u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	u64 args[7] = {nr, a, b, c, d, e, f};
	struct sys_guest_ret r;

	do {
		t->call_again = false;
		r = guest_call(args, &t->pending_count);
	} while (unlikely(t->call_again) && !r.redo && r.val == -EINTR && !t->pending_count);
	/*
	 * The kernel could not write where translated code was read from. Most calls have done nothing by
	 * the time they find that out.
	 */
	if (unlikely(r.val == -EFAULT) && !r.redo && mm_has_writable_code() &&
	    dbt_unprotect(&t->dbt, 0, TASK_SIZE))
		r = guest_call(args, &t->pending_count);
	return r.redo ? CALL_REDO : r.val;
}

long call_kernel(struct thread *t)
{
	return call_kernel_with(t, t->dbt.regs.gpr[DBT_RAX], guest_arg(t, 0), guest_arg(t, 1),
				guest_arg(t, 2), guest_arg(t, 3), guest_arg(t, 4), guest_arg(t, 5));
}

long guest_read_call(struct thread *t)
{
	u64 nr = t->dbt.regs.gpr[DBT_RAX], at = guest_arg(t, 1), len = guest_arg(t, 2);

	if (mm_has_writable_code()) {
		if (nr == __NR_getrandom) {
			at = guest_arg(t, 0);
			len = guest_arg(t, 1);
		}
		if (len && at + len > at)
			dbt_unprotect(&t->dbt, at, len);
	}
	return call_kernel(t);
}

long syscall_answer(struct thread *t, u64 nr)
{
	return nr < CALLS && table[nr] ? table[nr](t) : call_kernel(t);
}

long syscall_plain(struct thread *t, u64 nr)
{
	return unlikely(deterministic) ? deterministic_syscall(t, nr) : syscall_answer(t, nr);
}

void syscall_run(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 nr = r->gpr[DBT_RAX];
	long ret;

	if (unlikely(t->filters || t->seccomp_mode || t->proc->filters) && !seccomp_allows(t, nr))
		return;
	if (unlikely(fd_hidden(t, nr)))
		ret = -EBADF;
	else if (!t->proc->perf || !perf_syscall(t, nr, &ret))
		ret = syscall_plain(t, nr);
	if (ret == CALL_SET)
		return;
	if (unlikely(ret == CALL_REDO)) {
		/*
		 * Back onto the instruction. A call that the kernel had begun and wants restarted has
		 * executed it once, and that counts, as it does on the bare kernel.
		 */
		r->rip -= 2;
		if (!t->call_restarts) {
			dbt_meter(&t->dbt)->count[0][METER_INSTRUCTIONS]--;
			dbt_meter(&t->dbt)->count[0][METER_BRANCHES]--;
		}
		t->call_restarts = false;
		return;
	}
	r->gpr[DBT_RAX] = (u64)ret;
}

/*
 * The legacy gate in 64-bit code: the i386 calls that a 64-bit program could mean, by the number of
 * their 64-bit twin. Arguments are 32 bits wide, so pointers reach the low 4 GB only.
 */
void syscall_int80(struct thread *t)
{
	static const u16 twin[] = {
		[1] = __NR_exit,         [2] = __NR_fork,          [3] = __NR_read,
		[4] = __NR_write,        [5] = __NR_open,          [6] = __NR_close,
		[19] = __NR_lseek,       [20] = __NR_getpid,       [24] = __NR_getuid,
		[33] = __NR_access,      [37] = __NR_kill,         [39] = __NR_mkdir,
		[41] = __NR_dup,         [42] = __NR_pipe,         [45] = __NR_brk,
		[47] = __NR_getgid,      [49] = __NR_geteuid,      [50] = __NR_getegid,
		[63] = __NR_dup2,        [64] = __NR_getppid,      [91] = __NR_munmap,
		[125] = __NR_mprotect,   [158] = __NR_sched_yield, [224] = __NR_gettid,
		[252] = __NR_exit_group,
	};
	static const u8 from[6] = {DBT_RBX, DBT_RCX, DBT_RDX, DBT_RSI, DBT_RDI, DBT_RBP};
	static const u8 to[6] = {DBT_RDI, DBT_RSI, DBT_RDX, DBT_R10, DBT_R8, DBT_R9};
	struct dbt_regs *r = &t->dbt.regs, was = *r;
	u32 nr = (u32)r->gpr[DBT_RAX];
	u64 rip = r->rip;

	if (nr >= ARRAY_SIZE(twin) || (!twin[nr] && nr != 3)) {
		r->gpr[DBT_RAX] = (u64)-ENOSYS;
		return;
	}
	for (u32 i = 0; i < 6; i++)
		r->gpr[to[i]] = (u32)was.gpr[from[i]];
	r->gpr[DBT_RAX] = twin[nr];
	syscall_run(t);
	for (u32 i = 0; i < 16; i++)
		if (i != DBT_RAX && !(i == DBT_RSP))
			r->gpr[i] = was.gpr[i];
	if (r->rip != rip)
		r->gpr[DBT_RAX] = nr; /* to be made again, which is two bytes as well */
}
