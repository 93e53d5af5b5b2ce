/* Holds the decoder against Zydis, instruction by instruction. */
#ifndef UNIT_DBT_DECODE_ORACLE_H
#define UNIT_DBT_DECODE_ORACLE_H

#include "dbt/arch/x86_64/decode.h"

/*
 * Decodes @p (at most @n bytes) with both. Returns the length that they agree on, or 1 for bytes
 * that are no instruction. Differences that no listed exception explains are printed (the first few
 * of each kind) and counted in oracle_differences.
 */
unsigned int oracle_compare(const u8 *p, size_t n);

extern unsigned long oracle_differences;
extern unsigned long oracle_compared;   /* instructions that both accept */
extern unsigned long oracle_exceptions; /* differences that a listed exception explains */

#endif
