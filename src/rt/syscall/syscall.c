/*
 * The table of the calls that need care, and how a call is answered. Everything that is not in the
 * table is the kernel's.
 */
#include "rt/syscall/syscall.h"

#include "rt/deterministic/deterministic.h"
#include "rt/syscall/user-dispatch.h"
#include "rt/load/execve.h"
#include "rt/syscall/fd.h"
#include "rt/mm/mm.h"
#include "rt/perf/perf.h"
#include "rt/proc/proc-view.h"
#include "rt/task/process.h"
#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/task/strangers.h"
#include "rt/syscall/syscall-fill.h"
#include "rt/mm/window.h"
#include "sys/guest-call.h"

#include <linux/audit.h>

#define CALLS 512u

static long guest_rseq(struct thread *t);

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
	[NR_MSEAL] = guest_mseal,
	/* signals */
	[__NR_rt_sigaction] = guest_rt_sigaction,
	[__NR_rt_sigprocmask] = guest_rt_sigprocmask,
	[__NR_rt_sigreturn] = guest_rt_sigreturn,
	[__NR_rt_sigpending] = guest_rt_sigpending,
	[__NR_rt_sigsuspend] = guest_rt_sigsuspend,
	[__NR_rt_sigtimedwait] = guest_rt_sigtimedwait,
	[__NR_sigaltstack] = guest_sigaltstack,
	[__NR_ppoll] = guest_poll,
	[__NR_pselect6] = guest_select,
	[__NR_epoll_pwait] = guest_mask_call,
	[__NR_epoll_pwait2] = guest_mask_call,
	[__NR_io_pgetevents] = guest_mask_call,
	[__NR_kill] = guest_kill,
	[__NR_tkill] = guest_kill,
	[__NR_tgkill] = guest_kill,
	[__NR_rt_sigqueueinfo] = guest_kill,
	[__NR_rt_tgsigqueueinfo] = guest_kill,
	[__NR_pidfd_send_signal] = guest_kill,
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
	[__NR_ptrace] = guest_ptrace,
	[__NR_unshare] = guest_namespace,
	[__NR_setns] = guest_namespace,
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
	[__NR_poll] = guest_poll,
	[__NR_select] = guest_select,
	/* what cannot be had */
	[__NR_rseq] = guest_rseq,
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
	 * The kernel could not write where translated code was read from. Calls that take something away
	 * before they find that out are in syscall-fill.c.
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

/*
 * A critical section is known to the kernel by its addresses, and ours are others, so none would ever be
 * restarted. Without rseq programs use what they use on kernels without it.
 */
static long guest_rseq(struct thread *t)
{
	(void)t;
	return -ENOSYS;
}

long syscall_answer(struct thread *t, u64 nr)
{
	if (unlikely(mm_has_writable_code()))
		fill_release(t, nr);
	return nr < CALLS && table[nr] ? table[nr](t) : call_kernel(t);
}

bool syscall_has_row(u64 nr)
{
	return nr < CALLS && table[nr];
}

long syscall_plain(struct thread *t, u64 nr)
{
	return unlikely(deterministic) ? deterministic_syscall(t, nr) : syscall_answer(t, nr);
}

void syscall_finish(struct thread *t, long ret)
{
	struct dbt_regs *r = &t->dbt.regs;

	if (ret == CALL_SET)
		return;
	if (likely(ret != CALL_REDO)) {
		r->gpr[DBT_RAX] = (u64)ret;
		return;
	}
	/*
	 * Back onto the instruction. A call that the kernel had begun and wants restarted has executed it
	 * once, and that counts, as it does on the bare kernel.
	 */
	r->rip -= 2;
	if (!t->call_restarts) {
		dbt_meter(&t->dbt)->count[0][METER_INSTRUCTIONS]--;
		dbt_meter(&t->dbt)->count[0][METER_BRANCHES]--;
	}
	t->call_restarts = false;
}

long syscall_guest(struct thread *t, u64 nr)
{
	long ret;

	if (unlikely(fd_hidden(t, nr)))
		return -EBADF;
	if (t->proc->perf && perf_syscall(t, nr, &ret))
		return ret;
	return syscall_plain(t, nr);
}

void syscall_run(struct thread *t)
{
	u64 nr = t->dbt.regs.gpr[DBT_RAX];

	if (unlikely(t->dispatch.on) && dispatch_catches(t, AUDIT_ARCH_X86_64, nr))
		return;
	if (unlikely(t->filters || t->seccomp_mode || t->proc->filters) &&
	    !seccomp_allows(t, AUDIT_ARCH_X86_64, nr))
		return;
	syscall_finish(t, syscall_guest(t, nr));
}
