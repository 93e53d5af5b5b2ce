#include "rt/signal/trap.h"

#include "rt/arch/x86_64/cpuid.h"
#include "rt/deterministic/deterministic-run.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/perf/perf-guest.h"
#include "rt/signal/signal.h"
#include "rt/mm/region.h"

#define VSYSCALL 0xffffffffff600000ul

/*
 * The legacy vsyscall page is executable but not readable, so it cannot be translated. The kernel
 * itself emulates it: the three entries are calls that return.
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
	if (guest_read(&to, r->gpr[DBT_RSP], sizeof(to)))
		return false;
	ret = raw_call3(nr, (long)r->gpr[DBT_RDI], (long)r->gpr[DBT_RSI], 0);
	if (ret == -EFAULT)
		return false;
	r->gpr[DBT_RAX] = (u64)ret;
	r->gpr[DBT_RSP] += 8;
	r->rip = to;
	return true;
}

static bool mapped(u64 addr)
{
	u8 resident;

	return !raw_call3(__NR_mincore, (long)ALIGN_DOWN(addr, 4096), 1, (long)&resident);
}

/* SIGSEGV at @addr; @err is the error code of the page fault but for bit 0, which says that there is a page. */
static void page_fault(struct thread *t, u64 addr, u64 err)
{
	int code = SEGV_MAPERR;

	if (addr >= TASK_SIZE) {
		err |= 1; /* the kernel does not tell what of its own is mapped */
	} else if (!region_overlaps(addr, 1) && mapped(addr)) {
		code = SEGV_ACCERR;
		err |= 1;
	}
	signal_fault(t, SIGSEGV, code, addr, 14, err);
}

void trap_page_fault(struct thread *t)
{
	page_fault(t, t->dbt.stop_addr, t->dbt.stop_size ? 6 : 4);
}

void trap_no_exec(struct thread *t)
{
	u64 addr = t->dbt.stop_addr;

	if (t->dbt.regs.rip >= VSYSCALL && vsyscall(t))
		return;
	if (addr >= TASK_SIZE + 0x1000 && addr < 0xffff800000000000ul) {
		/* Not canonical: a general protection fault. */
		signal_fault(t, SIGSEGV, SI_KERNEL, 0, 13, 0);
		return;
	}
	if (mm_exec_grown(t, addr))
		return;
	if (mm_executable(t, addr)) {
		u8 byte;

		/* Forgotten for a moment only, while another thread's call about it failed. */
		if (!guest_read(&byte, addr, 1))
			return;
		if (mapped(addr)) {
			/* It cannot be read: beyond the end of the mapped file. */
			signal_fault(t, SIGBUS, BUS_ADRERR, addr, 14, 0x14);
			return;
		}
	}
	page_fault(t, addr, 0x14);
}

void trap_cpuid(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u32 leaf = (u32)r->gpr[DBT_RAX], regs[4];

	if (t->cpuid_faults) {
		signal_force_segv(t);
		return;
	}
	cpuid(leaf, (u32)r->gpr[DBT_RCX], regs);
	deterministic_cpuid(leaf, (u32)r->gpr[DBT_RCX], regs);
	perf_cpuid(t, leaf, regs);
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
	/* CF says that there was one; OF, SF, ZF, AF and PF are cleared. */
	r->rflags = (r->rflags & ~0x8d5ul) | 1;
}

void trap_virtual(struct thread *t, enum dbt_stop stop)
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
			r->gpr[DBT_RCX] = 0; /* CPU 0 of node 0, as getcpu(2) says too */
	}
	dbt_retire(&t->dbt);
}

bool trap_rdpmc(struct thread *t)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 value;

	if (!perf_rdpmc(t, (u32)r->gpr[DBT_RCX], &value))
		return false;
	r->gpr[DBT_RAX] = (u32)value;
	r->gpr[DBT_RDX] = value >> 32;
	dbt_retire(&t->dbt);
	return true;
}
