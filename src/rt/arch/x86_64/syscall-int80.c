/*
 * The i386 gate in 64-bit code. The kernel makes the call as it would for the program, with the i386
 * number and arguments of 32 bits, so pointers reach the low 4 GB only and structures are those of
 * 32-bit programs. What concerns us must be answered by our own function instead: calls whose
 * arguments mean the same in both worlds are, by the number of their 64-bit twin.
 */
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/mm/window.h"
#include "rt/syscall/user-dispatch.h"
#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "sys/guest-call.h"

#include <linux/audit.h>
#include <linux/sched.h>

#define MAP_32BIT_ 0x40

/* Of i386. */
#define I386_VFORK  190
#define I386_CLONE  120
#define I386_MMAP2  192
#define I386_MREMAP 163

static const u16 twins[] = {
	[1] = __NR_exit,
	[2] = __NR_fork,
	[3] = __NR_read,
	[4] = __NR_write,
	[5] = __NR_open,
	[6] = __NR_close,
	[10] = __NR_unlink,
	[12] = __NR_chdir,
	[15] = __NR_chmod,
	[20] = __NR_getpid,
	[24] = __NR_getuid,
	[33] = __NR_access,
	[37] = __NR_kill,
	[38] = __NR_rename,
	[39] = __NR_mkdir,
	[40] = __NR_rmdir,
	[41] = __NR_dup,
	[42] = __NR_pipe,
	[45] = __NR_brk,
	[47] = __NR_getgid,
	[49] = __NR_geteuid,
	[50] = __NR_getegid,
	[57] = __NR_setpgid,
	[60] = __NR_umask,
	[63] = __NR_dup2,
	[64] = __NR_getppid,
	[65] = __NR_getpgrp,
	[66] = __NR_setsid,
	[85] = __NR_readlink,
	[91] = __NR_munmap,
	[94] = __NR_fchmod,
	[118] = __NR_fsync,
	[125] = __NR_mprotect,
	[133] = __NR_fchdir,
	[136] = __NR_personality,
	[158] = __NR_sched_yield,
	[172] = __NR_prctl,
	[175] = __NR_rt_sigprocmask,
	[176] = __NR_rt_sigpending,
	[183] = __NR_getcwd,
	[219] = __NR_madvise,
	[220] = __NR_getdents64,
	[224] = __NR_gettid,
	[252] = __NR_exit_group,
	[270] = __NR_tgkill,
	[295] = __NR_openat,
	[305] = __NR_readlinkat,
	[307] = __NR_faccessat,
	[328] = __NR_eventfd2,
	[330] = __NR_dup3,
	[331] = __NR_pipe2,
	[355] = __NR_getrandom,
	[356] = __NR_memfd_create,
	[380] = __NR_pkey_mprotect,
	[383] = __NR_statx,
	[384] = __NR_arch_prctl,
	[398] = __NR_shmdt,
};

/* What would act on the runtime, and whose arguments would have to be translated. */
static const u16 refused[] = {
	11,  /* execve */
	48,  /* signal */
	67,  /* sigaction */
	72,  /* sigsuspend */
	73,  /* sigpending */
	86,  /* uselib */
	90,  /* mmap with its arguments in memory */
	117, /* ipc */
	119, /* sigreturn */
	126, /* sigprocmask */
	173, /* rt_sigreturn */
	174, /* rt_sigaction */
	177, /* rt_sigtimedwait */
	179, /* rt_sigsuspend */
	186, /* sigaltstack */
	257, /* remap_file_pages */
	336, /* perf_event_open */
	354, /* seccomp */
	358, /* execveat */
	386, /* rseq */
	397, /* shmat */
	421, /* rt_sigtimedwait with 64 bits of time */
};

static bool refuses(u32 nr)
{
	for (u32 i = 0; i < ARRAY_SIZE(refused); i++)
		if (refused[i] == nr)
			return true;
	return false;
}

/* The guest's call as call @twin of ours with @args; NULL: it has none, and a child in our memory its registers. */
static long as_twin(struct thread *t, u64 twin, const u64 args[6])
{
	static const u8 to[6] = {DBT_RDI, DBT_RSI, DBT_RDX, DBT_R10, DBT_R8, DBT_R9};
	struct dbt_regs *r = &t->dbt.regs, was = *r;
	long ret;

	for (u32 i = 0; args && i < 6; i++)
		r->gpr[to[i]] = args[i];
	r->gpr[DBT_RAX] = twin;
	ret = syscall_guest(t, twin);
	for (u32 i = 0; i < 16; i++)
		if (i != DBT_RAX && i != DBT_RSP)
			r->gpr[i] = was.gpr[i];
	/* A forked child has its result and its stack already. */
	if (ret != CALL_SET)
		r->gpr[DBT_RAX] = was.gpr[DBT_RAX];
	return ret;
}

static long through_gate(struct thread *t, u32 nr, const u64 args[6])
{
	u64 all[7] = {nr, args[0], args[1], args[2], args[3], args[4], args[5]};
	struct sys_guest_ret r;

	do {
		t->call_again = false;
		r = guest_call80(all, &t->pending_count);
	} while (unlikely(t->call_again) && !r.redo && r.val == -EINTR && !t->pending_count);
	if (unlikely(r.val == -EFAULT) && !r.redo && mm_has_writable_code() &&
	    dbt_unprotect(&t->dbt, 0, TASK_SIZE))
		r = guest_call80(all, &t->pending_count);
	return r.redo ? CALL_REDO : r.val;
}

void syscall_int80(struct thread *t)
{
	static const u8 from[6] = {DBT_RBX, DBT_RCX, DBT_RDX, DBT_RSI, DBT_RDI, DBT_RBP};
	u32 nr = (u32)t->dbt.regs.gpr[DBT_RAX];
	u64 a[6];
	long ret;

	if (unlikely(t->dispatch.on) && dispatch_catches(t, AUDIT_ARCH_I386, nr))
		return;
	if (unlikely(t->filters || t->seccomp_mode || t->proc->filters) &&
	    !seccomp_allows(t, AUDIT_ARCH_I386, nr))
		return;
	for (u32 i = 0; i < 6; i++)
		a[i] = (u32)t->dbt.regs.gpr[from[i]];
	switch (nr) {
	case I386_CLONE: {
		/* tls comes before ctid, and is a segment descriptor. */
		u64 args[6] = {a[0], a[1], a[2], a[4], 0, 0};

		ret = a[0] & (CLONE_SETTLS | CLONE_VM) ? -ENOSYS : as_twin(t, __NR_clone, args);
		break;
	}
	case I386_VFORK: ret = as_twin(t, __NR_vfork, NULL); break;
	case I386_MMAP2: {
		/* The kernel finds a place below 4 GB for it. */
		u64 args[6] = {a[0],      a[1], a[2], a[3] | MAP_32BIT_, (u64)(s64)(s32)a[4],
			       a[5] << 12};

		ret = as_twin(t, __NR_mmap, args);
		break;
	}
	case I386_MREMAP:
		/* It may go where it could not be reached. */
		ret = a[3] & 1 && !(a[3] & 2) ? -ENOMEM : as_twin(t, __NR_mremap, a);
		break;
	default:
		if (nr < ARRAY_SIZE(twins) && (twins[nr] || nr == 3))
			ret = as_twin(t, twins[nr], a);
		else
			ret = refuses(nr) ? -ENOSYS : through_gate(t, nr, a);
	}
	syscall_finish(t, ret);
}
