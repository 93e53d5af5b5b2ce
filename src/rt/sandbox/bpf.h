/*
 * PURPOSE: classic BPF over struct seccomp_data as the kernel runs it for seccomp: the subset that
 * it accepts there, and the same answer for every program. Pure.
 */
#ifndef RT_SANDBOX_BPF_H
#define RT_SANDBOX_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/types.h"

/*
 * The kernel's checks at installation (bpf_check_classic(), seccomp_check_filter()): 0 or -EINVAL.
 * A program that passes ends, reads inside the data, and reads no scratch word that it has not
 * written.
 */
int bpf_check(const struct sock_filter *code, u32 len);

/* Runs a checked program; what it returns. */
u32 bpf_run(const struct sock_filter *code, u32 len, const struct seccomp_data *data);

#endif
