/*
 * PURPOSE: what this CPU does that others do otherwise, found by asking it: flags that an instruction sets beyond
 * what is promised of it, the vendor's own ways, instructions that are slow. See cpu-probe.c.
 */
#ifndef DBT_ARCH_X86_64_CPU_PROBE_PRIV_H
#define DBT_ARCH_X86_64_CPU_PROBE_PRIV_H

#include "dbt/arch/x86_64/decode.h"

/*
 * Asks the CPU, once and before there are threads; sets the decoder as well. @cpuid: as in struct dbt_arch_ops. Before
 * that it is taken for one that does no more than is promised, an Intel one.
 */
void cpu_probe(void (*cpuid)(u32 leaf, u32 subleaf, u32 regs[4]));

/* AMD's, or Hygon's, which are like them. */
bool cpu_is_amd(void);
/* BMI2's pext in hardware: AMD's before Zen 3 and Hygon's take some twenty cycles and more for it. */
bool cpu_has_fast_pext(void);

/* Which of FL_ARITH do not depend, after @d, on what they were before it. */
u16 flags_set(const struct insn *d);

#endif
