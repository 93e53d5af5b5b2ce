/*
 * PURPOSE: what registers in samples are called, for each CPU that a recording may be of: the bits
 * of attr.sample_regs_user are numbered as in the kernel's <asm/perf_regs.h>. The names are perf's,
 * in lower case.
 */
#ifndef DATA_REG_NAMES_H
#define DATA_REG_NAMES_H

#include "base/types.h"

/* @arch as uname(2) and the feature ARCH say it; NULL if neither it nor the register is known. */
const char *data_reg_name(const char *arch, u32 bit);

/* The number of a register's bit, or -1. */
int data_reg_find(const char *arch, const char *name);

/* All that user mode has, for unwinding; 0: the CPU is not known. */
u64 data_regs_all(const char *arch);

#endif
