/* The guest's system calls that are about signals. */
#include "rt/signal/signal-priv.h"

#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/perf/perf-guest.h"
#include "rt/signal/altstack.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "rt/task/path-stream.h"
#include "rt/task/shared-mm.h"
#include "sys/guest-call.h"
#include "sys/string.h"

long guest_rt_sigaction(struct thread *t)
{
	u64 sig = guest_arg(t, 0), new = guest_arg(t, 1), old = guest_arg(t, 2);
	struct sys_sigaction act, was;

	if (guest_arg(t, 3) != SIGSET_SIZE)
		return -EINVAL;
	if (new &&guest_read(&act, new, sizeof(act)))
		return -EFAULT;
	if (!sig || sig > SIGNALS || (new &&SIG(sig) & SIGNALS_KILL))
		return -EINVAL;
	lock_acquire(&t->sighand->lock, t->id, thread_gone);
	was = t->sighand->act[sig];
	if (new) {
		act.mask &= ~SIGNALS_KILL;
		/*
		 * The kernel clears flag bits that it does not know, which is how programs probe.
		 */
		act.flags &= SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART |
			     SA_NODEFER | SA_RESETHAND | SA_RESTORER | SA_EXPOSE_TAGBITS;
		t->sighand->act[sig] = act;
		signal_install((int)sig, &act);
		/* Ignoring a signal discards it where it is pending. */
		if (act.handler == (u64)SIG_IGN ||
		    (act.handler == (u64)SIG_DFL && SIG(sig) & SIGNALS_IGNORED))
			t->held &= ~SIG(sig);
	}
	lock_release(&t->sighand->lock, t->id);
	if (old && guest_write(t, old, &was, sizeof(was)))
		return -EFAULT;
	return 0;
}

long guest_rt_sigprocmask(struct thread *t)
{
	u64 how = guest_arg(t, 0), new = guest_arg(t, 1), old = guest_arg(t, 2), set, mask;
	u64 was = t->sigmask;

	if (guest_arg(t, 3) != SIGSET_SIZE)
		return -EINVAL;
	if (new) {
		if (guest_read(&set, new, sizeof(set)))
			return -EFAULT;
		set &= ~SIGNALS_KILL;
		switch ((int)how) {
		case SIG_BLOCK: mask = was | set; break;
		case SIG_UNBLOCK: mask = was & ~set; break;
		case SIG_SETMASK: mask = set; break;
		default: return -EINVAL;
		}
		/* With a signal noted the kernel's mask stays full until it has been delivered. */
		if (mask != was) {
			struct sys_guest_ret r;
			u64 kmask = signal_kernel_mask(mask);
			u64 args[7] = {__NR_rt_sigprocmask, SIG_SETMASK, (u64)&kmask, 0,
				       SIGSET_SIZE};

			r = guest_call(args, &t->pending_count);
			if (r.redo)
				return CALL_REDO;
			t->sigmask = mask;
			if (t->held & ~mask)
				dbt_interrupt(&t->dbt);
			if (unlikely((mask ^ was) & t->owned_signals))
				perf_owner_masked(t);
		}
	}
	if (old && guest_write(t, old, &was, sizeof(was)))
		return -EFAULT;
	return 0;
}

long guest_rt_sigreturn(struct thread *t)
{
	struct cpu_fault fault;
	u64 mask;
	int ret;

	/*
	 * What is noted belongs to the state that the frame brings back; it is delivered on top of
	 * that.
	 */
	ret = sigframe_restore(t, &mask, &fault);
	if (ret < 0) {
		signal_force_segv(t);
		return CALL_SET;
	}
	stream_note(t, PATH_NOTE_RETURN, NULL, 0);
	t->sigmask = mask;
	if (!t->pending_count)
		signal_set_mask(signal_kernel_mask(mask));
	if (t->held & ~mask)
		dbt_interrupt(&t->dbt);
	if (ret)
		signal_fault(t, SIGSEGV, SI_KERNEL, 0, fault);
	return CALL_SET;
}

long guest_rt_sigpending(struct thread *t)
{
	u64 set = guest_arg(t, 0), size = guest_arg(t, 1), pending = 0;

	if (size > SIGSET_SIZE)
		return -EINVAL;
	raw_call2(__NR_rt_sigpending, (long)&pending, SIGSET_SIZE);
	pending = (pending | t->held) & t->sigmask;
	return guest_write(t, set, &pending, size);
}

static long with_mask(struct thread *t, u64 mask)
{
	long ret;

	t->call_mask = mask & ~SIGNALS_KILL;
	t->in_mask_call = true;
	if (t->held & ~t->call_mask) {
		u64 keep = t->sigmask;

		t->sigmask = t->call_mask;
		signal_release_held(t);
		t->sigmask = keep;
	}
	ret = call_kernel(t);
	/* Kept while a signal is noted: its handler runs with this mask as the base. */
	if (!t->pending_count)
		t->in_mask_call = false;
	return ret;
}

long guest_rt_sigsuspend(struct thread *t)
{
	u64 mask, kmask, args[7];
	struct sys_guest_ret r;

	if (guest_arg(t, 1) != SIGSET_SIZE)
		return -EINVAL;
	if (guest_read(&mask, guest_arg(t, 0), sizeof(mask)))
		return -EFAULT;
	kmask = signal_kernel_mask(mask);
	memset(args, 0, sizeof(args));
	args[0] = __NR_rt_sigsuspend;
	args[1] = (u64)&kmask;
	args[2] = SIGSET_SIZE;
	t->call_mask = mask & ~SIGNALS_KILL;
	t->in_mask_call = true;
	r = guest_call(args, &t->pending_count);
	if (!t->pending_count)
		t->in_mask_call = false;
	return r.redo ? CALL_REDO : r.val;
}

long guest_mask_call(struct thread *t)
{
	const struct syscall_row *row = syscall_row(guest_nr(t));
	u64 at = guest_arg(t, row->mask), mask;

	if (!(row->steps & (SYSCALL_MASK | SYSCALL_MASK_PAIR)))
		return call_kernel(t);
	if (row->steps & SYSCALL_MASK_PAIR && at && guest_read(&at, at, sizeof(at)))
		return call_kernel(t);
	if (!at || guest_read(&mask, at, sizeof(mask)))
		return call_kernel(t);
	return with_mask(t, mask);
}

long guest_rt_sigtimedwait(struct thread *t)
{
	u64 set, info = guest_arg(t, 1);
	siginfo_t got;
	long taken;

	/* Signals that only we hold are taken first; the rest is the kernel's. */
	if (t->held && guest_arg(t, 3) == SIGSET_SIZE &&
	    !guest_read(&set, guest_arg(t, 0), sizeof(set)) && set & t->held) {
		int sig = __builtin_ctzll(set & t->held) + 1;

		if (info && guest_write(t, info, &t->held_info[sig % 8], sizeof(siginfo_t)))
			return -EFAULT;
		t->held &= ~SIG(sig);
		return sig;
	}
	taken = call_kernel(t);
	if (taken > 0 && info && !guest_read(&got, info, sizeof(got))) {
		const int code = got.si_code;

		perf_signal(t, &got);
		if (got.si_code != code && guest_write(t, info, &got, sizeof(got)))
			return -EFAULT;
	}
	return taken;
}

long guest_sigaltstack(struct thread *t)
{
	u64 new = guest_arg(t, 0), old = guest_arg(t, 1), sp = regs_sp(&t->dbt.regs);
	stack_t was, ss;

	memset(&was, 0, sizeof(was));
	was.ss_sp = (void *)t->alt_sp;
	was.ss_flags = (int)(altstack_flags(t, sp) | (t->alt_flags & SS_AUTODISARM));
	was.ss_size = t->alt_size;
	if (new) {
		int ret;

		if (guest_read(&ss, new, sizeof(ss)))
			return -EFAULT;
		ret = altstack_set(t, &ss, sp);
		if (ret)
			return ret;
	}
	if (old && guest_write(t, old, &was, sizeof(was)))
		return -EFAULT;
	return 0;
}
