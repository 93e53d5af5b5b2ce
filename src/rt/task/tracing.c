/*
 * What tracing means for guests. A tracee that begins another program runs it natively, since its
 * tracer is to find that program there. Threads of guests that run translated are shown as what
 * they are for the program: LeakSanitizer makes itself a tracer with clone(CLONE_VM), stops all
 * threads, and looks for pointers in their registers and from their stack pointers on; a debugger
 * that attaches looks for frames. They can be looked at only: what is set would be registers of the
 * code cache.
 */
#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/syscall/syscall.h"
#include "rt/task/core-threads.h"
#include "rt/task/meter-page.h"
#include "rt/task/process.h"
#include "rt/task/stopped.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <linux/elf.h>
#include <linux/ptrace.h>
#include <linux/uio.h>

#define USER_REGS (USER_REGS_SIZE / sizeof(u64))

static bool read_tracee(void *ctx, const void *addr, void *to, u64 len)
{
	return mm_read_foreign(*(const u32 *)ctx, addr, to, len);
}

bool tracee_as_guest(u32 tid, u64 *user)
{
	const struct dbt_foreign memory = {read_tracee, &tid};
	struct dbt_regs regs;
	u64 base = ptrace_regs_gs(user), gs;

	ptrace_to_regs(user, &regs);
	if (!dbt_foreign_regs(&memory, base, &regs, &gs))
		return false;
	if (ptrace_regs_in_call(user) && debug_is_trapping(tid, base))
		ptrace_regs_no_call(user);
	regs_to_ptrace(&regs, user);
	ptrace_regs_set_gs(user, gs);
	return true;
}

bool tracee_trace_is_full(u32 tid, const u64 *user, u64 addr)
{
	const struct dbt_foreign memory = {read_tracee, &tid};

	return dbt_foreign_trace_full(&memory, ptrace_regs_gs(user), addr);
}

bool tracee_is_stepped(u32 tid, const u64 *user)
{
	const struct dbt_foreign memory = {read_tracee, &tid};

	return dbt_foreign_is_stepped(&memory, ptrace_regs_gs(user));
}

/* The registers of @tid as a guest. */
static bool guest_registers(u32 tid, u64 *user)
{
	return !raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)user) &&
	       tracee_as_guest(tid, user);
}

/* Writes over what the kernel has written at @at, @len bytes. */
static long show(struct thread *t, u32 tid, u64 at, u64 len)
{
	u64 user[USER_REGS];

	if (len < sizeof(user))
		return 0;
	if (guest_read(user, at, sizeof(user)))
		return -EFAULT;
	return tracee_as_guest(tid, user) && guest_write(t, at, user, sizeof(user)) ? -EFAULT : 0;
}

/* Of an instruction that has raised a signal the kernel tells the address in the cache. */
static long show_siginfo(struct thread *t, u32 tid, u64 at)
{
	u64 user[USER_REGS];
	struct dbt_regs regs;
	siginfo_t info;
	u64 pc;

	if (guest_read(&info, at, sizeof(info)))
		return -EFAULT;
	if (info.si_code <= 0 ||
	    !(SIG(info.si_signo) & (SIG(SIGTRAP) | SIG(SIGILL) | SIG(SIGFPE))) ||
	    raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)user))
		return 0;
	ptrace_to_regs(user, &regs);
	pc = regs_pc(&regs);
	if ((u64)info.si_addr != pc || !tracee_as_guest(tid, user))
		return 0;
	ptrace_to_regs(user, &regs);
	info.si_addr = (void *)regs_pc(&regs);
	return guest_write(t, at, &info, sizeof(info)) ? -EFAULT : 0;
}

/* The kernel has been asked, and has answered. */
static long show_registers(struct thread *t, u64 request, u32 tid)
{
	u64 user[USER_REGS], at = guest_arg(t, 2);
	struct iovec iov;

	switch (request) {
	case PTRACE_GETREGS: return show(t, tid, guest_arg(t, 3), USER_REGS_SIZE);
	case PTRACE_GETREGSET:
		if (at != NT_PRSTATUS)
			return 0;
		if (guest_read(&iov, guest_arg(t, 3), sizeof(iov)))
			return -EFAULT;
		return show(t, tid, (u64)iov.iov_base, iov.iov_len);
	case PTRACE_PEEKUSR:
		if (at >= USER_REGS_SIZE || !guest_registers(tid, user))
			return 0;
		return guest_write(t, guest_arg(t, 3), &user[at / 8], 8) ? -EFAULT : 0;
	case PTRACE_GETSIGINFO: return show_siginfo(t, tid, guest_arg(t, 3));
	}
	return 0;
}

/*
 * Whether a thread makes the execve that its program has asked for. A tracer that does not want it
 * to be made has set another number.
 */
static bool in_execve(const u64 *real, const u64 *shown)
{
	struct dbt_regs regs;
	u64 nr = ptrace_regs_nr(real);

	if (!ptrace_regs_in_call(real)) {
		ptrace_to_regs(shown, &regs);
		nr = regs_nr(&regs);
	}
	ptrace_to_regs(real, &regs);
	return regs_pc(&regs) == (u64)guest_call_end && (nr == __NR_execve || nr == __NR_execveat);
}

/*
 * Sets the registers of a guest, which are @real in truth and shown as @shown, to what is @wanted:
 * of an execve, of which proot makes another; elsewhere EIO, if they are not so already.
 */
static long set_guest(u32 tid, u64 *real, const u64 *shown, const u64 *wanted)
{
	if (!memcmp(shown, wanted, USER_REGS_SIZE))
		return 0;
	if (!in_execve(real, shown) || !ptrace_set_call(real, shown, wanted))
		return -EIO;
	return raw_call4(__NR_ptrace, PTRACE_SETREGS, tid, 0, (long)real);
}

/* Of a guest's registers: 0 or -errno. 1: the kernel is to be asked. */
static long set_registers(struct thread *t, u64 request, u32 tid)
{
	u64 real[USER_REGS], user[USER_REGS], wanted[USER_REGS];
	u64 at = guest_arg(t, 2), from = guest_arg(t, 3);
	struct iovec iov = {(void *)from, USER_REGS_SIZE};
	bool one = request == PTRACE_POKEUSR && at % 8 == 0 && at < USER_REGS_SIZE;

	if (!one && request != PTRACE_SETREGS && (request != PTRACE_SETREGSET || at != NT_PRSTATUS))
		return 1;
	if (request == PTRACE_SETREGSET && guest_read(&iov, from, sizeof(iov)))
		return -EFAULT;
	if (raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)real))
		return 1;
	memcpy(user, real, sizeof(user));
	if (!tracee_as_guest(tid, user))
		return 1;
	memcpy(wanted, user, sizeof(wanted));
	if (one)
		wanted[at / 8] = from;
	else if (guest_read(wanted, (u64)iov.iov_base, min_u64(iov.iov_len, USER_REGS_SIZE)))
		return -EFAULT;
	return set_guest(tid, real, user, wanted);
}

long guest_ptrace(struct thread *t)
{
	u64 request = guest_arg(t, 0);
	u32 tid = (u32)guest_arg(t, 1);
	u64 at = guest_arg(t, 2);
	long ret = set_registers(t, request, tid);
	enum debug_kicked kicked = DEBUG_NOT_KICKED;
	bool passed;

	if (ret <= 0)
		return ret;
	debug_before_ptrace(request, tid, at);
	if (request == PTRACE_ATTACH || request == PTRACE_SEIZE || request == PTRACE_TRACEME)
		stopped_expect();
	passed = tracee_goes_on(request) && stopped_has_passed(tid, guest_arg(t, 3));
	if (tracee_goes_on(request) && request != PTRACE_SINGLESTEP && (passed || !guest_arg(t, 3)))
		kicked = debug_kick(tid);
	if (tracee_goes_on(request))
		stopped_resume_by(tid, request);
	if (kicked == DEBUG_RUNS)
		return 0;
	if (kicked == DEBUG_KICKED)
		ret = raw_call4(__NR_ptrace, (long)request, tid, (long)at, SIGNAL_KICK);
	else if (passed)
		ret = raw_call4(__NR_ptrace, (long)request, tid, (long)at, 0);
	else
		ret = call_kernel(t);
	if (ret)
		return ret;
	ret = debug_after_ptrace(request, tid, at);
	if (ret)
		return ret;
	switch (request) {
	case PTRACE_TRACEME:
		t->traced = true;
		meter_set_traced(t->proc->pid, true);
		break;
	case PTRACE_ATTACH:
	case PTRACE_SEIZE: meter_set_traced(tid, true); break;
	case PTRACE_DETACH: meter_set_traced(tid, false); break;
	}
	return show_registers(t, request, tid);
}
