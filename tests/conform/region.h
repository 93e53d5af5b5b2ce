/*
 * PURPOSE: regions whose instructions are known, for the programs that check a PMU. ENABLE's system
 * call instruction is outside a region, DISABLE's inside.
 *
 * The virtual PMU must give exactly the number of instructions written down. A hardware PMU counts
 * interrupts and restarted instructions too, so there a little more is accepted.
 */
#ifndef CONFORM_REGION_H
#define CONFORM_REGION_H

#include "conform/conform.h"

/* Instructions of a region besides its body: two moves and DISABLE's system call. */
#define REGION_REST 3

/*
 * For each CPU:
 *   REGION(fd, body)        runs BODY, an assembler text, with fd counting; BODY keeps rdi and
 *                           rdx, on arm64 x8 and x19
 *   LOOP(n), LOOP_CLOBBERS  a body of 2 * n + 1 instructions, n of them branches; n is below
 *                           65,536 or a power of two
 *   PRCTL_REGION(body)      the same between prctl's ENABLE and DISABLE
 *   counter_read(index)     the counter that the user page names so
 *   RAW_INSTRUCTIONS        the vendor's code
 *   USER_ACCESS             config1 of an event that user mode may read
 */
#if defined(__x86_64__)

#define REGION(fd, body)                                                                    \
	asm volatile("movl $16, %%eax\n\t"                                                  \
		     "movl $0x2400, %%esi\n\t"                                              \
		     "xorl %%edx, %%edx\n\t"                                                \
		     "syscall\n\t" body "\n\t"                                              \
		     "movl $16, %%eax\n\t"                                                  \
		     "movl $0x2401, %%esi\n\t"                                              \
		     "syscall"                                                              \
		     :                                                                      \
		     : "D"((long)(fd)), "b"(region_buffer)                                  \
		     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "xmm0", \
		       "xmm1", "memory", "cc")

#define LOOP(n)       "movl $" #n ", %%ecx\n1: decl %%ecx\n\tjnz 1b"
#define LOOP_CLOBBERS "ecx", "cc"

#define PRCTL_REGION(body)                                                     \
	asm volatile("movl $157, %%eax\n\tmovl $32, %%edi\n\tsyscall\n\t" body \
		     "\n\tmovl $157, %%eax\n\tmovl $31, %%edi\n\tsyscall"      \
		     :                                                         \
		     : "S"(0L), "d"(0L)                                        \
		     : "rax", "rdi", "rcx", "r8", "r9", "r10", "r11", "memory")

static inline u64 counter_read(u32 index)
{
	u32 lo, hi;

	asm volatile("rdpmc" : "=a"(lo), "=d"(hi) : "c"(index - 1));
	return lo | (u64)hi << 32;
}

#define RAW_INSTRUCTIONS 0xc0
#define USER_ACCESS      0

#elif defined(__aarch64__)

#define REGION(fd, body)                                                                       \
	do {                                                                                   \
		register long region_fd asm("x19") = (fd);                                     \
		register char *region_base asm("x20") = region_buffer;                         \
		asm volatile("mov x0, x19\n\tmov w1, #0x2400\n\tmov x2, #0\n\tmov w8, #29\n"   \
			     "svc #0\n\t" body "\n\tmov x0, x19\n\tmov w1, #0x2401\n\tsvc #0"  \
			     :                                                                 \
			     : "r"(region_fd), "r"(region_base)                                \
			     : "x0", "x1", "x2", "x8", "x9", "x10", "x11", "x12", "x30", "v0", \
			       "v1", "memory", "cc");                                          \
	} while (0)

#define LOOP(n)       "mov w9, #" #n "\n1: subs w9, w9, #1\n\tb.ne 1b"
#define LOOP_CLOBBERS "x9", "cc"

#define PRCTL_REGION(body)                                                                        \
	asm volatile("mov x0, #32\n\tmov x1, #0\n\tmov x2, #0\n\tmov w8, #167\n\tsvc #0\n\t" body \
		     "\n\tmov x0, #31\n\tmov w8, #167\n\tsvc #0"                                  \
		     :                                                                            \
		     :                                                                            \
		     : "x0", "x1", "x2", "x8", "memory")

/*
 * Through the register that selects a counter, which the kernel clears whenever it changes the
 * page's lock.
 */
static inline u64 counter_read(u32 index)
{
	u64 value;

	if (index == 32)
		asm volatile("mrs %0, pmccntr_el0" : "=r"(value));
	else
		asm volatile("msr pmselr_el0, %1\n\tisb\n\tmrs %0, pmxevcntr_el0"
			     : "=r"(value)
			     : "r"((u64)index - 1));
	return value;
}

#define RAW_INSTRUCTIONS 0x08
#define USER_ACCESS      2

#else
#error "the regions are x86-64 and arm64 code"
#endif

/* What bodies may use: memory at rbx, on arm64 at x20. */
extern char region_buffer[4096];

/* A user-mode event of the PMU on the caller: PERF_COUNT_HW_INSTRUCTIONS and the like. */
int pmu_open(u64 config, int group);

/* The same, for reading in user mode. */
int pmu_open_readable(u64 config);

/* What fd counted in one REGION since it was reset. */
#define REGION_COUNT(fd, body)                                    \
	({                                                        \
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0); \
		REGION(fd, body);                                 \
		ev_count(fd);                                     \
	})

/* Exactly WANT from the virtual PMU; from hardware perhaps a little more. */
void check_exact(const char *row, const char *text, u64 got, u64 want);

/*
 * Each skips the row and returns true where there is nothing to check: no PMU, none that counts
 * branches, no counters for user mode.
 */
bool no_pmu(const char *row, const char *text);
bool no_branches(const char *row, const char *text);
bool no_user_access(const char *row, const char *text);

/* What the file @name of the PMU @device says in sysfs, or "". Until the next call. */
const char *device_file(const char *device, const char *name);

#endif
