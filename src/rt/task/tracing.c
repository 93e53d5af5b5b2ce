/*
 * What tracing means for guests. A tracee that begins another program runs it natively, since its
 * tracer is to find that program there. A thread of the tracer's own memory is shown as the guest
 * that it is: LeakSanitizer makes itself a tracer with clone(CLONE_VM), stops all threads, and
 * looks for pointers in their registers and from their stack pointers on.
 */
#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "rt/task/process.h"

#include <linux/elf.h>
#include <linux/ptrace.h>
#include <linux/uio.h>

#define LIST_TRIES 100u

/*
 * The thread @tid of this memory; NULL: there is none, or one that is stopped holds the list. A
 * tracee does not go away while its tracer asks for it.
 */
static struct thread *tracee_here(struct thread *t, u32 tid)
{
	struct thread *o = threads_try_lock(t);

	for (u32 i = 0; !o && i < LIST_TRIES; i++) {
		sys_sched_yield();
		o = threads_try_lock(t);
	}
	if (!o)
		return NULL;
	while (o && o->tid != tid)
		o = o->all_next;
	threads_unlock(t);
	return o;
}

/* Writes over what the kernel has written at @at, @len bytes. */
static long show(struct thread *t, struct thread *tracee, u64 at, u64 len)
{
	u64 user[USER_REGS_SIZE / sizeof(u64)];

	if (len < sizeof(user))
		return 0;
	if (guest_read(user, at, sizeof(user)))
		return -EFAULT;
	/* In the cache its registers are the guest's, but for what an instruction has borrowed. */
	if (dbt_in_cache(ptrace_regs_pc(user)))
		ptrace_regs_set_pc(user, dbt_guest_pc(&tracee->dbt, ptrace_regs_pc(user)));
	else
		regs_to_ptrace(&tracee->dbt.regs, user);
	ptrace_regs_set_gs(user, tracee->dbt.arch.gs_base);
	return guest_write(t, at, user, sizeof(user)) ? -EFAULT : 0;
}

static long show_registers(struct thread *t, u64 request, struct thread *tracee)
{
	struct iovec iov = {0};

	if (request == PTRACE_GETREGS)
		return show(t, tracee, guest_arg(t, 3), USER_REGS_SIZE);
	if (guest_read(&iov, guest_arg(t, 3), sizeof(iov)))
		return -EFAULT;
	return show(t, tracee, (u64)iov.iov_base, iov.iov_len);
}

long guest_ptrace(struct thread *t)
{
	u64 request = guest_arg(t, 0), pid = guest_arg(t, 1);
	long ret = call_kernel(t);
	struct thread *tracee;

	if (ret)
		return ret;
	switch (request) {
	case PTRACE_TRACEME: meter_set_traced(t->proc->pid, true); break;
	case PTRACE_ATTACH:
	case PTRACE_SEIZE: meter_set_traced((u32)pid, true); break;
	case PTRACE_DETACH: meter_set_traced((u32)pid, false); break;
	case PTRACE_GETREGSET:
		if (guest_arg(t, 2) != NT_PRSTATUS)
			break;
		__attribute__((fallthrough));
	case PTRACE_GETREGS:
		tracee = tracee_here(t, (u32)pid);
		return tracee ? show_registers(t, request, tracee) : 0;
	}
	return 0;
}
