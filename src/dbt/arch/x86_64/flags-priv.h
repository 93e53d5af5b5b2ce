/* PURPOSE: which flags an instruction sets on this CPU, beyond what is promised of it. See flags.c. */
#ifndef DBT_ARCH_X86_64_FLAGS_PRIV_H
#define DBT_ARCH_X86_64_FLAGS_PRIV_H

#include "dbt/arch/x86_64/decode.h"

/* Asks the CPU; before that flags_set() says what is promised. */
void flags_init(void);

/* Which of FL_ARITH do not depend, after @d, on what they were before it. */
u16 flags_set(const struct insn *d);

#endif
