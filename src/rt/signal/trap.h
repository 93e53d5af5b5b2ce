/* PURPOSE: answers to what translated code cannot do by itself and is no system call. */
#ifndef RT_SIGNAL_TRAP_H
#define RT_SIGNAL_TRAP_H

#include "rt/task/thread.h"

/* Execution reached what the guest may not execute: a page fault on fetch, or the vsyscall page. */
void trap_no_exec(struct thread *t);
/* An instruction that is done in C could not reach its operand: a page fault on data. */
void trap_page_fault(struct thread *t);
void trap_cpuid(struct thread *t);
/* rdpmc; false: it is to fault. */
bool trap_rdpmc(struct thread *t);
/* rdtsc, rdtscp, rdrand, rdseed of a deterministic run. */
void trap_virtual(struct thread *t, enum dbt_stop stop);

#endif
