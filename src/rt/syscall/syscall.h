/*
 * PURPOSE: the system-call layer: what happens when translated code has executed `syscall`.
 *
 * Most calls are the kernel's, with the guest's own arguments. What needs care has a row in
 * syscall.tbl, and a row may name a function `long guest_NAME(struct thread *t)`. It finds the
 * arguments with guest_arg(), returns what the guest is to have as result, and runs with the
 * guest's registers in t->regs, the pc after the instruction. Such a function
 *  - touches guest memory only through rt/mm/guest-mem.h;
 *  - makes calls that may block, or change what signals can come, with call_kernel() or
 *    guest_call(), and passes their CALL_REDO on: a signal came first, the guest is set back onto
 *    its `syscall`;
 *  - returns CALL_SET if it has set all of t->regs itself.
 */
#ifndef RT_SYSCALL_SYSCALL_H
#define RT_SYSCALL_SYSCALL_H

#include "rt/task/thread.h"
#include "sys/guest-call.h"

#define CALL_REDO ((long)0x8000000000000000)
#define CALL_SET  ((long)0x8000000000000001)

/* Answers the call at which dbt_run() stopped. */
void syscall_run(struct thread *t);

/* Call @nr, which is guest_nr(), past seccomp: its result, or a CALL_ value. */
long syscall_guest(struct thread *t, u64 nr);
/* Gives the guest its result, or sets it back onto the instruction. */
void syscall_finish(struct thread *t, long ret);

/* Call @nr without a look at perf descriptors. */
long syscall_plain(struct thread *t, u64 nr);
/* By guest_NAME() or the kernel, and nothing else. */
long syscall_answer(struct thread *t, u64 nr);

long guest_rseq(struct thread *t);

/* The call with number and arguments @args, by one of the gates that sys/guest-call.h speaks of. */
long call_by(struct thread *t, guest_call_fn *call, const u64 args[7]);
/* The guest's call as it stands, or with other arguments. */
long call_kernel(struct thread *t);
long call_kernel_with(struct thread *t, u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);

#endif
