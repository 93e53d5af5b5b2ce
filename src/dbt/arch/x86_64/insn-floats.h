/*
 * PURPOSE: what an x86-64 instruction does with floating-point numbers, floats_work() of the model.
 * Pure, as the decoder.
 */
#ifndef DBT_ARCH_X86_64_INSN_FLOATS_H
#define DBT_ARCH_X86_64_INSN_FLOATS_H

#include "dbt/arch/x86_64/decode.h"
#include "model/floats.h"

/* @insn is one that insn_decode() has filled, not insn_scan(). */
u16 insn_floats(const struct insn *insn);

#endif
