/*
 * How a call is answered. Each step looks at the call's row (syscall.tbl); most calls need none.
 *
 *   syscall_run()     user dispatch       the program catches its own calls: SIGSYS
 *        |            seccomp             the program's own filters: a verdict
 *        |            probes              somebody wants to be told of the call; and of its end
 *   syscall_guest()   a row with steps?   no: straight to the kernel
 *        |            hidden descriptors  one of the runtime's: EBADF
 *        |            perf                a perf descriptor, setting or file: the session is asked
 *   syscall_plain()   deterministic run   noted or answered, where runs would differ
 *   syscall_answer()  filled buffers      translations of where the kernel will write are given up
 *        |            guest_NAME()        the function of ours, or else
 *        |            call_kernel()       the kernel, with the guest's own arguments
 *   syscall_finish()                      the result, or back onto the call: a signal came first
 *
 * What the CPU has besides (`int $0x80`, arch/x86_64/syscall-int80.c) joins at syscall_guest().
 */
#include "rt/syscall/syscall.h"

#include "rt/deterministic/deterministic-run.h"
#include "rt/mm/mm.h"
#include "rt/perf/perf-guest.h"
#include "rt/sample/trace-hits.h"
#include "rt/sandbox/seccomp.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall-fill.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/user-dispatch.h"
#include "sys/guest-call.h"

long call_by(struct thread *t, guest_call_fn *call, const u64 args[7])
{
	struct sys_guest_ret r;

	do {
		t->call_again = false;
		r = call(args, &t->pending_count);
	} while (unlikely(t->call_again) && !r.redo && r.val == -EINTR && !t->pending_count);
	/*
	 * The kernel could not write where translated code was read from. Calls that take something
	 * away before they find that out have a fill= in syscall.tbl.
	 */
	if (unlikely(r.val == -EFAULT) && !r.redo && mm_has_writable_code() &&
	    dbt_unprotect(&t->dbt, 0, TASK_SIZE))
		r = call(args, &t->pending_count);
	return r.redo ? CALL_REDO : r.val;
}

long call_kernel_with(struct thread *t, u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	const u64 args[7] = {nr, a, b, c, d, e, f};

	return call_by(t, guest_call, args);
}

long call_kernel(struct thread *t)
{
	return call_kernel_with(t, guest_nr(t), guest_arg(t, 0), guest_arg(t, 1), guest_arg(t, 2),
				guest_arg(t, 3), guest_arg(t, 4), guest_arg(t, 5));
}

/*
 * The kernel knows a critical section by the program's addresses, and translated code is at others:
 * none would be restarted. Without rseq programs do what they do on kernels without it.
 */
long guest_rseq(struct thread *t)
{
	(void)t;
	return -ENOSYS;
}

long syscall_answer(struct thread *t, u64 nr)
{
	const struct syscall_row *row = syscall_row(nr);

	if (row->steps & SYSCALL_FILL && unlikely(mm_has_writable_code()))
		fill_release(t, row);
	return row->guest_call ? row->guest_call(t) : call_kernel(t);
}

long syscall_plain(struct thread *t, u64 nr)
{
	const struct syscall_row *row = syscall_row(nr);

	if (unlikely(deterministic) && row->steps & SYSCALL_NONDET)
		return deterministic_syscall(t, nr, row);
	return syscall_answer(t, nr);
}

void syscall_finish(struct thread *t, long ret)
{
	struct dbt_regs *r = &t->dbt.regs;

	if (ret == CALL_SET)
		return;
	if (likely(ret != CALL_REDO)) {
		regs_set_result(r, ret);
		return;
	}
	/*
	 * Back onto the instruction. A call that the kernel had begun and wants restarted has
	 * executed it once, and that counts, as it does on the bare kernel.
	 */
	regs_restart(r);
	if (!t->call_restarts)
		dbt_call_again(&t->dbt, regs_pc(r));
	t->call_restarts = false;
}

long syscall_guest(struct thread *t, u64 nr)
{
	const struct syscall_row *row = syscall_row(nr);
	long ret;

	if (!row->steps)
		return call_kernel(t);
	if (row->steps & SYSCALL_FD && unlikely(fd_hidden(t, nr)))
		return -EBADF;
	if (row->steps & (SYSCALL_PATH | SYSCALL_PERF) && t->proc->perf &&
	    perf_syscall(t, nr, row, &ret))
		return ret;
	return syscall_plain(t, nr);
}

void syscall_run(struct thread *t)
{
	u64 nr = guest_nr(t);
	bool restarts;
	long ret;

	if (unlikely(t->dispatch.on) && dispatch_catches(t, ARCH_AUDIT, nr))
		return;
	if (unlikely(t->filters || t->seccomp_mode || t->proc->filters) && !seccomp_allows(t, nr))
		return;
	if (unlikely(t->sampling.calls))
		probe_call_enter(t, nr);
	ret = syscall_guest(t, nr);
	restarts = t->call_restarts;
	syscall_finish(t, ret);
	if (unlikely(t->sampling.calls || sample_is_stale(t)))
		probe_call_exit(t, nr, ret, restarts);
}
