/*
 * PURPOSE: in what this CPU differs from others: which flags instructions set beyond what is
 * promised of them, whose CPU it is, which instructions are slow. It is asked; see cpu-probe.c.
 */
#ifndef DBT_ARCH_X86_64_CPU_PROBE_PRIV_H
#define DBT_ARCH_X86_64_CPU_PROBE_PRIV_H

#include "dbt/arch/x86_64/decode.h"

/*
 * Asks the CPU, once and before there are threads, and tells the decoder. @cpuid: as in struct
 * dbt_arch_ops. Until then it is taken for Intel's, with no more than is promised.
 */
void cpu_probe(void (*cpuid)(u32 leaf, u32 subleaf, u32 regs[4]));

/* A number for what was found: code that one CPU's translator has made is for equal ones. */
u64 cpu_found(void);

/* Whether it is AMD's, or Hygon's, which are derived from those. */
bool cpu_is_amd(void);
/* Whether pext (BMI2) is done in hardware: AMD's CPUs before Zen 3 take twenty cycles or more. */
bool cpu_has_fast_pext(void);

/* Whether jumps that cross or end a line of 32 bytes are slow; whole-jumps.c. */
bool cpu_likes_whole_jumps(void);

/* Which of FL_ARITH this CPU sets though they are documented as undefined after @d. */
u16 flags_set_besides(const struct insn *d);

/* Which of FL_ARITH do not depend, after @d, on what they were before it. */
static inline u16 flags_set(const struct insn *d)
{
	/* Without CF the shift is by nothing, or by more than was asked about. */
	if (!(d->fl_written & FL_CF) || d->fl_written == FL_ARITH)
		return d->fl_written;
	return d->fl_written | flags_set_besides(d);
}

#endif
