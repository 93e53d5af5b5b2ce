/*
 * What a guest that traces another one learns by wait4(2) and waitid(2). The tracee's runtime gets
 * signals of its own, of which the program knows nothing: kicks, events that have a sample to take,
 * the end of a trace's buffer. The kernel stops the tracee for its tracer at each of them all the
 * same. The tracee gets them at once, and the tracer waits on. What it cannot be spared is that the
 * kernel tells it by SIGCHLD each time.
 *
 * A fault by which code is found to change is shown: whether it is the program's is only known to
 * the tracee.
 */
#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/sample/cpu-timer.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "rt/task/core-threads.h"
#include "rt/task/process.h"
#include "rt/task/stopped.h"
#include "sys/guest-call.h"

#include <linux/ptrace.h>
#include <linux/wait.h>

static bool is_kick(const siginfo_t *info)
{
	u32 slot, periods;

	return process_is_kick(info) || cpu_timer_is(info, &slot, &periods);
}

/* Whether @tid, which stands at signal @sig, has it for its runtime. */
static bool is_of_runtime(u32 tid, u32 sig)
{
	u64 user[USER_REGS_SIZE / sizeof(u64)];
	struct dbt_regs regs;
	siginfo_t info;

	/* Others are the program's in any case. */
	if (sig - 1 >= SIGNALS || !(SIG(sig) & (SIG(SIGNAL_KICK) | SIG(SIGTRAP) | SIG(SIGSEGV))) ||
	    raw_call4(__NR_ptrace, PTRACE_GETSIGINFO, tid, 0, (long)&info))
		return false;
	if (is_kick(&info) || signal_is_stop(&info))
		return true;
	if (info.si_code <= 0 || raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)user))
		return false;
	if (sig == SIGTRAP && info.si_code == TRAP_TRACE)
		return stopped_resumed_by(tid) != PTRACE_SINGLESTEP && tracee_is_stepped(tid, user);
	ptrace_to_regs(user, &regs);
	if (sig == SIGTRAP)
		return info.si_code == SI_KERNEL && regs_pc(&regs) == (u64)signal_trap_end;
	return sig == SIGSEGV && tracee_trace_is_full(tid, user, (u64)info.si_addr);
}

/*
 * Lets a tracee go on that stands at what is its runtime's; @untold: it is still to be waited for.
 * False: it does not.
 */
static bool goes_on(u32 tid, u32 sig, bool untold)
{
	if (!is_of_runtime(tid, sig))
		return false;
	if (untold)
		raw_call4(__NR_wait4, tid, 0, WNOHANG | __WALL, 0);
	return !raw_call4(__NR_ptrace, stopped_resumed_by(tid), tid, 0, sig);
}

static bool goes_on_after_wait4(struct thread *t, u32 tid)
{
	u32 status;

	/* Stopped by a signal, and not to tell of an event or a call. */
	if (!guest_arg(t, 1) || guest_read(&status, guest_arg(t, 1), sizeof(status)) ||
	    (status & 0xff) != 0x7f || status >> 15)
		return false;
	return goes_on(tid, status >> 8, false);
}

static bool goes_on_after_waitid(struct thread *t)
{
	siginfo_t info;

	if (!guest_arg(t, 2) || guest_read(&info, guest_arg(t, 2), sizeof(info)) ||
	    info.si_signo != SIGCHLD || info.si_code != CLD_TRAPPED)
		return false;
	return goes_on((u32)info.si_pid, (u32)info.si_status, guest_arg(t, 3) & WNOWAIT);
}

long guest_wait4(struct thread *t)
{
	long ret;

	do
		ret = call_kernel(t);
	while (ret > 0 && goes_on_after_wait4(t, (u32)ret));
	return ret;
}

long guest_waitid(struct thread *t)
{
	long ret;

	do
		ret = call_kernel(t);
	while (!ret && goes_on_after_waitid(t));
	return ret;
}
