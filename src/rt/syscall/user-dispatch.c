#include "rt/syscall/user-dispatch.h"

#include "rt/mm/guest-mem.h"
#include "rt/signal/signal.h"
#include "rt/task/shared-mm.h"
#include "sys/string.h"

#include <linux/prctl.h>

/* As the kernel's task_set_syscall_user_dispatch(). */
long dispatch_prctl(struct thread *t)
{
	u64 mode = guest_arg(t, 1), start = guest_arg(t, 2), len = guest_arg(t, 3);
	u64 selector = guest_arg(t, 4);

	switch (mode) {
	case PR_SYS_DISPATCH_OFF:
		if (start || len || selector)
			return -EINVAL;
		break;
	case PR_SYS_DISPATCH_ON: /* all but what comes from the range is caught */
		if (start && start + len <= start)
			return -EINVAL;
		break;
	case PR_SYS_DISPATCH_INCLUSIVE_ON: /* only what comes from the range */
		if (!len || start + len <= start)
			return -EINVAL;
		start += len;
		len = -len;
		break;
	default: return -EINVAL;
	}
	if (selector >= TASK_SIZE)
		return -EFAULT;
	t->dispatch.on = mode != PR_SYS_DISPATCH_OFF;
	t->dispatch.start = start;
	t->dispatch.len = len;
	t->dispatch.selector = selector;
	return 0;
}

/* The end of the process by @sig, whatever its disposition is. */
static void force_exit(struct thread *t, int sig)
{
	lock_acquire(&t->sighand->lock, t->id, thread_gone);
	memset(&t->sighand->act[sig], 0, sizeof(t->sighand->act[sig]));
	lock_release(&t->sighand->lock, t->id);
	t->sigmask &= ~SIG(sig);
	signal_fault(t, sig, SI_KERNEL, 0, (struct cpu_fault){0});
}

bool dispatch_catches(struct thread *t, u32 arch, u64 nr)
{
	u64 pc = regs_pc(&t->dbt.regs);
	siginfo_t info;
	u8 state;

	if (pc - t->dispatch.start < t->dispatch.len)
		return false;
	if (t->dispatch.selector) {
		if (guest_read(&state, t->dispatch.selector, 1)) {
			force_exit(t, SIGSEGV);
			return true;
		}
		if (state == SYSCALL_DISPATCH_FILTER_ALLOW)
			return false;
		if (state != SYSCALL_DISPATCH_FILTER_BLOCK) {
			force_exit(t, SIGSYS);
			return true;
		}
	}
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSYS;
	info.si_code = SYS_USER_DISPATCH;
	info.si_call_addr = (void *)pc;
	info.si_syscall = (int)nr;
	info.si_arch = arch;
	signal_raise(t, &info, (struct cpu_fault){0});
	return true;
}
