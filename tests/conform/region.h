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

#if !defined(__x86_64__)
#error "the regions are x86-64 code"
#endif

/* Instructions of a region besides its body: two moves and DISABLE's syscall. */
#define REGION_REST 3

/* Runs BODY, an assembler text that keeps rdi and rdx, with fd counting. */
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

/* Bodies may use the memory at rbx. */
extern char region_buffer[4096];

/* A user-mode event of the PMU on the caller: PERF_COUNT_HW_INSTRUCTIONS and the like. */
int pmu_open(u64 config, int group);

/* What fd counted in one REGION since it was reset. */
#define REGION_COUNT(fd, body)                                    \
	({                                                        \
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0); \
		REGION(fd, body);                                 \
		ev_count(fd);                                     \
	})

/* Exactly WANT from the virtual PMU; from hardware perhaps a little more. */
void check_exact(const char *row, const char *text, u64 got, u64 want);

/* Skips the row and returns true where no PMU is. */
bool no_pmu(const char *row, const char *text);

#endif
