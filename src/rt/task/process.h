/*
 * PURPOSE: how guests' processes and threads come to be and end: clone in all its forms, exit, and
 * the small per-process calls (prctl, personality). For guest_*, see rt/syscall/syscall.h.
 */
#ifndef RT_TASK_PROCESS_H
#define RT_TASK_PROCESS_H

#include "rt/task/thread.h"

/* The list of threads of this address space, for fork's child and for kicking. */
void threads_add(struct thread *t);
void threads_remove(struct thread *t);
/* Whether @t is the only thread of its memory. */
bool process_is_single(struct thread *t);
/* No other process has the same memory. */
bool process_is_alone(struct thread *t);
/* The list's first, with its lock held until threads_unlock(). */
struct thread *threads_lock(struct thread *t);
void threads_unlock(struct thread *t);
/* Where the list's first stands, for who reads another process. */
struct thread *const *threads_list(void);
/* threads_remove() for who holds it; once more does nothing. */
void threads_unlink(struct thread *t);
/* Takes all locks that tasks in our memory share, signals blocked; returns the list's first. */
struct thread *locks_take(struct thread *t);
void locks_give(struct thread *t);
/* What the session wants to be told of any thread of @t's process (enum wire_watch). */
u32 threads_watch(struct thread *t);

/* dbt_ops.kick: makes @t's CPU thread run our handler. */
bool process_kick(struct dbt_thread *t);
/* @info becomes that of such a kick. */
void process_make_kick(siginfo_t *info);
/* Whether a signal is one. */
bool process_is_kick(const siginfo_t *info);
#define SIGNAL_KICK SIGSYS

void proc_put(struct proc *p);
/* Gives back what a child in our memory had, when it is gone or was never made. */
void thread_release(struct thread *c);

/* Where a cloned thread that shares our memory comes out, on its own runtime stack. */
__attribute__((noreturn)) void thread_begin(struct thread *t);

long guest_clone(struct thread *t);
long guest_clone3(struct thread *t);
long guest_fork(struct thread *t);
long guest_vfork(struct thread *t);
/* Ends this thread, signals blocked; @code as wait(2) shows it, @status for exit(2). */
__attribute__((noreturn)) void thread_end(struct thread *t, u32 code, int status);

long guest_exit(struct thread *t);
long guest_exit_group(struct thread *t);
long guest_prctl(struct thread *t);
long guest_personality(struct thread *t);
long guest_ptrace(struct thread *t);
long guest_wait4(struct thread *t);
long guest_waitid(struct thread *t);
long guest_namespace(struct thread *t); /* unshare, setns */

#endif
