/*
 * The i386 gate in 64-bit code. The kernel makes the call as it would for the program, with the
 * i386 number and arguments of 32 bits, so pointers reach the low 4 GB only and structures are
 * those of 32-bit programs. What concerns us must be answered by our own function instead, as
 * i386.tbl says. A kernel without the gate (booted with ia32_emulation=0, or built so) has a fault
 * in its place, and then the program has it too.
 */
#include "rt/arch/x86_64/i386.h"
#include "rt/arch/x86_64/int80.h"
#include "rt/mm/mm.h"
#include "rt/sample/trace-hits.h"
#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "rt/syscall/user-dispatch.h"
#include "rt/task/beside.h"
#include "sys/arch/x86_64/guest-call80.h"
#include "sys/string.h"

#include <linux/audit.h>
#include <linux/sched.h>

/*
 * Makes the guest's call as call @twin with @args; NULL: a call without any, whose child, if it is
 * in our memory, gets the guest's registers as they are.
 */
static long as_twin(struct thread *t, u64 twin, const u64 args[6])
{
	struct dbt_regs *r = &t->dbt.regs, was = *r;
	long ret;

	for (u32 i = 0; args && i < 6; i++)
		regs_set_arg(r, i, args[i]);
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

/* Calls whose arguments are others in 64-bit code. */
static long translated(struct thread *t, u32 nr, const u64 a[6])
{
	/* tls comes before ctid, and is a segment descriptor. */
	const u64 clone[6] = {a[0], a[1], a[2], a[4], 0, 0};
	/* The kernel finds a place below 4 GB for it. */
	const u64 mmap[6] = {a[0], a[1], a[2], a[3] | MAP_32BIT, (u64)(s64)(s32)a[4], a[5] << 12};

	switch (nr) {
	case I386_NR_clone:
		return a[0] & (CLONE_SETTLS | CLONE_VM) ? -ENOSYS : as_twin(t, __NR_clone, clone);
	case I386_NR_vfork: return as_twin(t, __NR_vfork, NULL);
	case I386_NR_mmap2: return as_twin(t, __NR_mmap, mmap);
	case I386_NR_mremap:
		/* It may go where it could not be reached. */
		return a[3] & MREMAP_MAYMOVE && !(a[3] & MREMAP_FIXED) ? -ENOMEM
								       : as_twin(t, __NR_mremap, a);
	}
	return -ENOSYS;
}

static bool allows(struct thread *t, u32 nr, const u64 args[6])
{
	struct seccomp_data data = {
		.nr = (int)nr,
		.arch = AUDIT_ARCH_I386,
		.instruction_pointer = t->dbt.regs.rip,
	};

	memcpy(data.args, args, sizeof(data.args));
	return seccomp_judge(t, &data,
			     nr == I386_NR_read || nr == I386_NR_write || nr == I386_NR_exit ||
				     nr == I386_NR_sigreturn);
}

/* Asked at the first call, by one that changes nothing; 0: not yet. Of the kernel, so of all. */
enum { GATE_IS = 1, GATE_IS_NOT };
static u8 gate;

static bool has_gate(struct thread *t)
{
	static const u64 getpid[7] = {I386_NR_getpid};
	static const u32 nothing;
	struct sys_guest_ret r;
	u8 is = __atomic_load_n(&gate, __ATOMIC_RELAXED);

	if (is)
		return is == GATE_IS;
	do /* a signal that comes meanwhile is noted */
		r = guest_call80(getpid, &nothing);
	while (r.redo && !t->call_refused);
	is = t->call_refused ? GATE_IS_NOT : GATE_IS;
	t->call_refused = false;
	__atomic_store_n(&gate, is, __ATOMIC_RELAXED);
	return is == GATE_IS;
}

void syscall_int80(struct thread *t)
{
	static const u8 from[6] = {DBT_RBX, DBT_RCX, DBT_RDX, DBT_RSI, DBT_RDI, DBT_RBP};
	u32 nr = (u32)t->dbt.regs.gpr[DBT_RAX];
	u64 all[7] = {nr}, *a = &all[1];
	bool restarts;
	long ret;

	if (unlikely(!has_gate(t))) {
		regs_restart(&t->dbt.regs);
		dbt_call_again(&t->dbt, regs_pc(&t->dbt.regs)); /* it has not retired */
		signal_fault(t, SIGSEGV, SI_KERNEL, 0, CPU_FAULT_NO_GATE(0x80));
		return;
	}
	/* Their numbers are others, and they are rare. */
	beside_end(t);
	if (unlikely(t->dispatch.on) && dispatch_catches(t, AUDIT_ARCH_I386, nr))
		return;
	for (u32 i = 0; i < 6; i++)
		a[i] = (u32)t->dbt.regs.gpr[from[i]];
	if (unlikely(t->filters || t->seccomp_mode || t->proc->filters) && !allows(t, nr, a))
		return;
	if (unlikely(t->sampling.calls))
		probe_other_enter(t, nr, a);
	switch (nr < I386_CALLS ? i386_calls[nr].how : I386_GATE) {
	case I386_TWIN: ret = as_twin(t, i386_calls[nr].twin, a); break;
	case I386_TRANSLATED: ret = translated(t, nr, a); break;
	case I386_REFUSED: ret = -ENOSYS; break;
	default: ret = call_by(t, guest_call80, all);
	}
	restarts = t->call_restarts;
	syscall_finish(t, ret);
	if (unlikely(t->sampling.calls || sample_is_stale(t)))
		probe_other_exit(t, nr, ret, restarts);
}
