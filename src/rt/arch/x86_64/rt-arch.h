/*
 * PURPOSE: x86-64 in the runtime's types and inline functions. rt/arch.h lists the functions that
 * this folder has besides.
 */
#ifndef RT_ARCH_X86_64_RT_ARCH_H
#define RT_ARCH_X86_64_RT_ARCH_H

#include <linux/audit.h>
#include <linux/elf-em.h>

#include "base/types.h"
#include "dbt/arch/x86_64/dbt-arch.h"
#include "sys/string.h"

#define TASK_SIZE 0x7ffffffff000ul /* 4-level paging; higher addresses only on request */

/* Where the kernel puts position-independent programs: two thirds up, moved by 28 random bits. */
#define ELF_ET_DYN_BASE ALIGN_DOWN(TASK_SIZE / 3 * 2, PAGE_SIZE)

#define ARCH_ELF   EM_X86_64
#define ARCH_AUDIT AUDIT_ARCH_X86_64 /* what seccomp and user dispatch call the CPU */

/* Whether programs for @machine may run natively under a 64-bit kernel, as 32-bit ones. */
static inline bool arch_elf_compat(u32 machine)
{
	return machine == EM_386 || machine == EM_486 || machine == EM_X86_64;
}

/* What a signal's frame says of the fault that raised it; all 0 if none did. */
struct cpu_fault {
	u64 trapno, err, cr2;
};

/* A general protection fault; the kernel reports no address. */
#define CPU_FAULT_PROTECTION ((struct cpu_fault){.trapno = 13})
/* The same by `int $n`: the error code is its selector in the IDT (SDM 3A 6.13). */
#define CPU_FAULT_NO_GATE(n) ((struct cpu_fault){.trapno = 13, .err = (n) << 3 | 2})
/* Of a selector, what an error code has: not who asks (SDM 3A 6.13). */
#define SELECTOR_TABLE_INDEX 0xfffcu
/* A debug exception. */
#define CPU_FAULT_DEBUG ((struct cpu_fault){.trapno = 1})

/* What a thread has of the CPU's own; a new thread gets a copy of its creator's. */
struct arch_thread {
	bool cpuid_faults; /* arch_prctl(ARCH_SET_CPUID, 0) */
};

/* The running thread's struct dbt_thread, once arch_install() has been called. */
static inline void *arch_self(void)
{
	void *self;

	__asm__("movq %%gs:0, %0" : "=r"(self));
	return self;
}

/* The registers of a system call. The kernel ignores the upper half of the number. */

static const u8 arch_arg_regs[6] = {DBT_RDI, DBT_RSI, DBT_RDX, DBT_R10, DBT_R8, DBT_R9};

static inline u64 regs_nr(const struct dbt_regs *r)
{
	return (u32)r->gpr[DBT_RAX];
}

static inline u64 regs_arg(const struct dbt_regs *r, u32 n)
{
	return r->gpr[arch_arg_regs[n]];
}

static inline void regs_set_arg(struct dbt_regs *r, u32 n, u64 value)
{
	r->gpr[arch_arg_regs[n]] = value;
}

static inline void regs_set_result(struct dbt_regs *r, long ret)
{
	r->gpr[DBT_RAX] = (u64)ret;
}

static inline long regs_result(const struct dbt_regs *r)
{
	return (long)r->gpr[DBT_RAX];
}

/* Back onto the instruction: `syscall` and `int $0x80` have two bytes each. */
static inline void regs_restart(struct dbt_regs *r)
{
	r->rip -= 2;
}

static inline u64 regs_pc(const struct dbt_regs *r)
{
	return r->rip;
}

static inline u64 regs_sp(const struct dbt_regs *r)
{
	return r->gpr[DBT_RSP];
}

static inline void regs_set_sp(struct dbt_regs *r, u64 sp)
{
	r->gpr[DBT_RSP] = sp;
}

/* The frame pointer, if the program keeps one. */
static inline u64 regs_frame(const struct dbt_regs *r)
{
	return r->gpr[DBT_RBP];
}

/* As perf numbers them (PERF_REG_X86_AX ... R15), 24 of them. */
static inline void regs_to_perf(const struct dbt_regs *r, u64 *to)
{
	static const u8 low[8] = {DBT_RAX, DBT_RBX, DBT_RCX, DBT_RDX,
				  DBT_RSI, DBT_RDI, DBT_RBP, DBT_RSP};
	u16 cs, ss;

	__asm__("mov %%cs, %0" : "=r"(cs));
	__asm__("mov %%ss, %0" : "=r"(ss));
	for (u32 i = 0; i < 8; i++) {
		to[i] = r->gpr[low[i]];
		to[16 + i] = r->gpr[DBT_R8 + i];
	}
	to[8] = r->rip;
	to[9] = r->rflags;
	to[10] = cs;
	to[11] = ss;
}

/* Registers as ptrace has them (struct user_regs_struct), so many bytes. */
#define USER_REGS_SIZE (27 * sizeof(u64))

/* The general ones, in the order in which they come first; the stack pointer comes later. */
static const u8 ptrace_order[15] __attribute__((unused)) = {
	DBT_R8 + 7, DBT_R8 + 6, DBT_R8 + 5, DBT_R8 + 4, DBT_RBP, DBT_RBX, DBT_R8 + 3, DBT_R8 + 2,
	DBT_R8 + 1, DBT_R8,     DBT_RAX,    DBT_RCX,    DBT_RDX, DBT_RSI, DBT_RDI};

static inline void ptrace_to_regs(const u64 *user, struct dbt_regs *r)
{
	for (u32 i = 0; i < ARRAY_SIZE(ptrace_order); i++)
		r->gpr[ptrace_order[i]] = user[i];
	r->rip = user[16];
	r->rflags = user[18];
	r->gpr[DBT_RSP] = user[19];
}

static inline bool ptrace_regs_in_call(const u64 *user)
{
	return (s64)user[15] >= 0;
}

static inline void ptrace_regs_no_call(u64 *user)
{
	user[15] = ~0ull;
}

/* What a system call under way makes of its result's register stays. */
static inline void regs_to_ptrace(const struct dbt_regs *r, u64 *user)
{
	for (u32 i = 0; i < ARRAY_SIZE(ptrace_order); i++)
		if (ptrace_order[i] != DBT_RAX || !ptrace_regs_in_call(user))
			user[i] = r->gpr[ptrace_order[i]];
	user[16] = r->rip;
	user[18] = r->rflags;
	user[19] = r->gpr[DBT_RSP];
}

/* The number of the call. */
static inline u64 ptrace_regs_nr(const u64 *user)
{
	return user[15];
}

/*
 * What @wanted has otherwise than @shown goes into @real, if it is of the system call alone: its
 * number, arguments and result. False: there is more, and nothing is done. Another stack pointer is
 * let pass and not set, since it is ours to which the call comes back.
 */
static inline bool ptrace_set_call(u64 *real, const u64 *shown, const u64 *wanted)
{
	/* r10 r9 r8 rax rdx rsi rdi, and the number */
	static const u8 of_call[] = {7, 8, 9, 10, 12, 13, 14, 15};
	u64 rest[USER_REGS_SIZE / sizeof(u64)];

	memcpy(rest, wanted, sizeof(rest));
	for (u32 i = 0; i < ARRAY_SIZE(of_call); i++)
		rest[of_call[i]] = shown[of_call[i]];
	rest[19] = shown[19];
	if (memcmp(rest, shown, sizeof(rest)) != 0)
		return false;
	for (u32 i = 0; i < ARRAY_SIZE(of_call); i++)
		if (wanted[of_call[i]] != shown[of_call[i]])
			real[of_call[i]] = wanted[of_call[i]];
	return true;
}

/* The base of GS: of a guest as the kernel has it, the base of its struct dbt_thread. */
static inline u64 ptrace_regs_gs(const u64 *user)
{
	return user[22];
}

static inline void ptrace_regs_set_gs(u64 *user, u64 base)
{
	user[22] = base;
}

/* A program begins; everything else is 0. */
static inline void regs_start(struct dbt_regs *r, u64 pc, u64 sp)
{
	r->gpr[DBT_RSP] = sp;
	r->rip = pc;
	r->rflags = 0x202; /* interrupts, and the bit that is always set */
}

#endif
