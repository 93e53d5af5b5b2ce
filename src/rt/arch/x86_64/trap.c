/* Answers the stops of translated code that are no system calls. */
#include "rt/arch.h"
#include "rt/arch/x86_64/cpuid.h"
#include "rt/arch/x86_64/int80.h"
#include "rt/deterministic/deterministic-run.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "rt/task/requests.h"

/* Exceptions by their vectors, and the error code of a page fault. */
#define TRAP_DEBUG       1
#define TRAP_STACK       12
#define TRAP_PAGE_FAULT  14
#define PAGE_PRESENT     1
#define PAGE_WRITE       2
#define PAGE_USER        4
#define PAGE_INSTRUCTION 16

/* Addresses between these two are not canonical. */
#define CANONICAL_LOW  (TASK_SIZE + 0x1000)
#define CANONICAL_HIGH 0xffff800000000000ul

#define FLAGS_CF         0x1ull
#define FLAGS_ARITHMETIC 0x8d5ull /* CF PF AF ZF SF OF */

#define VSYSCALL 0xffffffffff600000ul

/*
 * The legacy vsyscall page is executable but not readable, so it cannot be translated. The kernel
 * itself emulates it: the three entries are calls that return. What they cannot access it does not
 * tell (Linux 6.9), as an exploit could use that.
 */
static bool vsyscall(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	long nr, ret;
	u64 to;

	switch (r->rip - VSYSCALL) {
	case 0x000: nr = __NR_gettimeofday; break;
	case 0x400: nr = __NR_time; break;
	case 0x800: nr = __NR_getcpu; break;
	default:
		if (r->rip - VSYSCALL >= 0x1000)
			return false;
		signal_force_segv(t);
		return true;
	}
	nondet_used(NONDET_TIME);
	ret = guest_read(&to, r->gpr[DBT_RSP], sizeof(to))
		      ? -EFAULT
		      : raw_call3(nr, (long)guest_arg(t, 0), (long)guest_arg(t, 1), 0);
	if (ret == -EFAULT) {
		signal_force_segv(t);
		return true;
	}
	regs_set_result(r, ret);
	r->gpr[DBT_RSP] += 8;
	r->rip = to;
	return true;
}

static bool mapped(u64 addr)
{
	u8 resident;

	return !raw_call3(__NR_mincore, (long)ALIGN_DOWN(addr, 4096), 1, (long)&resident);
}

static void raise_page_fault(struct thread *t, int sig, int code, u64 addr, u64 err)
{
	signal_fault(t, sig, code, addr,
		     (struct cpu_fault){TRAP_PAGE_FAULT, err | PAGE_USER, addr});
}

/* SIGSEGV at @addr; @err is the error code of the page fault but for PAGE_PRESENT. */
static void page_fault(struct thread *t, u64 addr, u64 err)
{
	int code = SEGV_MAPERR;

	if (addr >= TASK_SIZE) {
		err |= PAGE_PRESENT; /* the kernel does not tell what of its own is mapped */
	} else if (!region_overlaps(addr, 1) && mapped(addr)) {
		code = SEGV_ACCERR;
		err |= PAGE_PRESENT;
	}
	raise_page_fault(t, SIGSEGV, code, addr, err);
}

/* Execution reached what the guest may not execute: a page fault on fetch, or the vsyscall page. */
static void no_exec(struct thread *t)
{
	u64 addr = t->dbt.stop_addr;
	u8 byte;

	if (t->dbt.regs.rip >= VSYSCALL && vsyscall(t))
		return;
	if (addr >= CANONICAL_LOW && addr < CANONICAL_HIGH) {
		signal_fault(t, SIGSEGV, SI_KERNEL, 0, CPU_FAULT_PROTECTION);
		return;
	}
	if (mm_exec_grown(t, addr))
		return;
	if (addr >= TASK_SIZE || region_overlaps(addr, 1)) {
		page_fault(t, addr, PAGE_INSTRUCTION);
		return;
	}
	/*
	 * The kernel gives who executes a page what who reads it gets, be it missing, no access,
	 * a guard, or beyond the end of its file. Only then the CPU finds that it may not be
	 * executed.
	 */
	if (guest_read(&byte, addr, 1)) {
		raise_page_fault(t, t->copy_fault.sig, t->copy_fault.code, addr, PAGE_INSTRUCTION);
		return;
	}
	/* Or it was taken out for a moment, while another thread's call about it failed. */
	if (!mm_executable(t, addr))
		raise_page_fault(t, SIGSEGV, SEGV_ACCERR, addr, PAGE_INSTRUCTION | PAGE_PRESENT);
}

static void stop_cpuid(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u32 leaf = (u32)r->gpr[DBT_RAX], regs[4];

	if (t->arch.cpuid_faults) {
		signal_force_segv(t);
		return;
	}
	cpuid(leaf, (u32)r->gpr[DBT_RCX], regs);
	deterministic_cpuid(leaf, (u32)r->gpr[DBT_RCX], regs);
	perf_cpuid(leaf, regs);
	r->gpr[DBT_RAX] = regs[0];
	r->gpr[DBT_RBX] = regs[1];
	r->gpr[DBT_RCX] = regs[2];
	r->gpr[DBT_RDX] = regs[3];
	dbt_retire(&t->dbt);
}

static void set_random(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 *to = &r->gpr[t->dbt.stop_reg], value = deterministic_random(t);

	switch (t->dbt.stop_size) {
	case 2: *to = (*to & ~0xfffful) | (value & 0xffff); break;
	case 4: *to = (u32)value; break;
	default: *to = value; break;
	}
	/* CF says that there was a number. OF, SF, ZF, AF and PF are cleared. */
	r->rflags = (r->rflags & ~FLAGS_ARITHMETIC) | FLAGS_CF;
}

/* rdtsc, rdtscp, rdrand, rdseed of a deterministic run. */
static void stop_virtual(struct thread *t, enum dbt_stop stop)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 tsc;

	CHECK(deterministic);
	if (stop == DBT_RDRAND) {
		set_random(t);
	} else {
		tsc = deterministic_tsc(t);
		r->gpr[DBT_RAX] = (u32)tsc;
		r->gpr[DBT_RDX] = tsc >> 32;
		if (stop == DBT_RDTSCP)
			r->gpr[DBT_RCX] = deterministic_cpu(t); /* of node 0 */
	}
	dbt_retire(&t->dbt);
}

static void stop_rdpmc(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 value;

	if (!perf_rdpmc(t, (u32)r->gpr[DBT_RCX], &value)) {
		signal_fault(t, SIGSEGV, SI_KERNEL, 0, CPU_FAULT_PROTECTION);
		return;
	}
	r->gpr[DBT_RAX] = (u32)value;
	r->gpr[DBT_RDX] = value >> 32;
	dbt_retire(&t->dbt);
}

/* The instructions in front of it have turned rdi round, to where it was. */
static void stop_request(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 args[6];

	if (!guest_read(args, r->gpr[DBT_RAX], sizeof(args)))
		r->gpr[DBT_RDX] = request_answer(t, args, r->gpr[DBT_RDX]);
	dbt_retire(&t->dbt);
}

static void refused(struct thread *t)
{
	struct cpu_fault fault = CPU_FAULT_PROTECTION;

	fault.err = t->dbt.stop_selector & SELECTOR_TABLE_INDEX;
	t->dbt.stop_selector = 0;
	signal_fault(t, SIGSEGV, SI_KERNEL, 0, fault);
}

void arch_stop(struct thread *t, enum dbt_stop stop)
{
	switch (stop) {
	case DBT_SYSCALL:
	case DBT_PLACE:
	case DBT_INTERRUPTED: break;
	case DBT_NO_EXEC: no_exec(t); break;
	case DBT_REFUSED: refused(t); break;
	/* The operand of an instruction that is done in C cannot be reached. */
	case DBT_PAGE_FAULT:
		page_fault(t, t->dbt.stop_addr, t->dbt.stop_size ? PAGE_WRITE : 0);
		break;
	case DBT_STACK_FAULT:
		signal_fault(t, SIGBUS, SI_KERNEL, 0, (struct cpu_fault){.trapno = TRAP_STACK});
		break;
	case DBT_TRACED:
		signal_fault(t, SIGTRAP, TRAP_TRACE, t->dbt.regs.rip,
			     (struct cpu_fault){.trapno = TRAP_DEBUG});
		break;
	case DBT_INT80: syscall_int80(t); break;
	case DBT_CPUID: stop_cpuid(t); break;
	case DBT_RDPMC: stop_rdpmc(t); break;
	case DBT_RDTSC:
	case DBT_RDTSCP:
	case DBT_RDRAND: stop_virtual(t, stop); break;
	case DBT_REQUEST: stop_request(t); break;
	}
}
