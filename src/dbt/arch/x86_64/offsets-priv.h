/* PURPOSE: offsets into struct dbt_thread for enter.S; stubs.c asserts that they are true. */
#ifndef DBT_ARCH_X86_64_OFFSETS_PRIV_H
#define DBT_ARCH_X86_64_OFFSETS_PRIV_H

#define T_GPR       0x08
#define T_RFLAGS    0x90
#define T_INTERRUPT 0xa8
#define T_RT_SP     0xc0
#define T_ENTER_PC  0xc8

#endif
