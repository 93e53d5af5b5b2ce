/*
 * PURPOSE: the x86-64 part of the translator's interface, for dbt.h to include: the guest's
 * registers, the instructions that stop, what else a thread keeps, and what is asked of the
 * runtime.
 */
#ifndef DBT_ARCH_X86_64_DBT_ARCH_H
#define DBT_ARCH_X86_64_DBT_ARCH_H

#include "base/types.h"

/* Guest registers, in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15. */
struct dbt_regs {
	u64 gpr[16];
	u64 rip;
	u64 rflags;
};

enum dbt_gpr {
	DBT_RAX,
	DBT_RCX,
	DBT_RDX,
	DBT_RBX,
	DBT_RSP,
	DBT_RBP,
	DBT_RSI,
	DBT_RDI,
	DBT_R8,
	DBT_R9,
	DBT_R10,
	DBT_R11,
	DBT_R12,
	DBT_R13,
	DBT_R14,
	DBT_R15,
};

/*
 * More of enum dbt_stop. (Of DBT_SYSCALL there: rcx and r11 are as the CPU leaves them.)
 *
 * DBT_INT80 is int 0x80, which has retired as the `syscall` has; rcx and r11 are untouched. The
 * others are virtualized instructions. DBT_RDRAND is rdrand and rdseed: the result goes to
 * gpr[t->stop_reg], t->stop_size bytes of it, and success to CF. DBT_REQUEST is the last one of
 * those by which programs ask something of Valgrind; the request is at rax, the answer goes to rdx.
 */
#define DBT_ARCH_STOPS \
	DBT_INT80, DBT_CPUID, DBT_RDPMC, DBT_RDTSC, DBT_RDTSCP, DBT_RDRAND, DBT_REQUEST

/* Of a thread: the guest's GS, which cannot be in the CPU, where ours is. */
struct dbt_arch_thread {
	u64 gs_base;     /* the runtime's arch_prctl sets it */
	u64 gs_selector; /* what the guest believes to be in GS; 16 bits */
};

/* Of struct dbt_ops. */
struct dbt_arch_ops {
	/* The cpuid instruction, if there is a cheaper way than that; may be NULL. */
	void (*cpuid)(u32 leaf, u32 subleaf, u32 regs[4]);
	/*
	 * The components of the extended state that guests see: what xgetbv says, xsave
	 * writes and xrstor reads at most. 0, or NULL: the CPU's. Of x87, SSE and AVX only.
	 */
	u64 (*xcr0)(void);
};

/* Registers that native code may spill, by number: rax to r11. */
#define DBT_SPILLS 12

#endif
