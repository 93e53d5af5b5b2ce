/*
 * PURPOSE: deterministic runs (`--deterministic`, doc/deterministic.md). What a program can see of
 * the outside and differs from run to run is made the same in each. What cannot be is noted in the
 * segment's header (enum nondet_source), for the report.
 *
 * Random numbers come from a tree of streams. Each task has a key of its own, made from its
 * creator's key and from how many tasks the creator had made before; so it does not matter which of
 * two tasks is faster. An execve begins a new stream.
 *
 * In any other run these functions do nothing. Those that take a thread are called by that thread.
 */
#ifndef RT_DETERMINISTIC_DETERMINISTIC_RUN_H
#define RT_DETERMINISTIC_DETERMINISTIC_RUN_H

#include "rt/load/stack.h"
#include "rt/task/thread.h"

struct syscall_row;

/* Set once, before the program runs. */
extern bool deterministic;

/*
 * Takes out of the auxiliary vector @in what differs, and begins @t's random numbers with those of
 * @control.
 */
void deterministic_start(struct thread *t, struct stack_in *in, const struct rt_control *control);

/* What the next child of @t begins with. */
struct deterministic_task deterministic_child(struct thread *t);

/* What the program that @t is about to become begins with. */
void deterministic_exec(struct thread *t, struct rt_control *control);

/*
 * A system call whose @row has SYSCALL_NONDET: answers it, or lets syscall_answer() do so and looks
 * at the result. The functions below are named by syscall.tbl, for calls of which the table's
 * `nondet` does not say enough.
 */
long deterministic_syscall(struct thread *t, u64 nr, const struct syscall_row *row);
long deterministic_clock_gettime(struct thread *t, u64 nr);
long deterministic_clone(struct thread *t, u64 nr);
long deterministic_getaffinity(struct thread *t, u64 nr);
long deterministic_getcpu(struct thread *t, u64 nr);
long deterministic_getdents(struct thread *t, u64 nr);
long deterministic_getrandom(struct thread *t, u64 nr);
long deterministic_mmap(struct thread *t, u64 nr);
long deterministic_open(struct thread *t, u64 nr);
long deterministic_personality(struct thread *t, u64 nr);
long deterministic_read(struct thread *t, u64 nr);
long deterministic_setaffinity(struct thread *t, u64 nr);
long deterministic_shmat(struct thread *t, u64 nr);
long deterministic_wait(struct thread *t, u64 nr);

/* @t is being handed a signal. */
void deterministic_signal(struct thread *t, const siginfo_t *info);

u64 deterministic_random(struct thread *t);
u64 deterministic_tsc(struct thread *t);

/* The CPUs that there are (--cpus), as a mask; 0: the machine's, which are not fixed. */
u64 deterministic_cpus(void);

/* The one that @t is on. */
u32 deterministic_cpu(const struct thread *t);

/*
 * Call @nr opens @path: if that says how many CPUs there are and --cpus does, or which one it is
 * and --cpu-features does, answers it and returns true.
 */
bool deterministic_cpu_file(struct thread *t, u64 nr, const char *path, long *fd);
/* It says which CPU there is, and --cpu-features does. */
bool deterministic_cpu_file_is_fixed(const char *path);

/* @line of /proc/self/status is to be another, which goes to @text. */
bool deterministic_status(const struct thread *t, const char *line, char *text, size_t size);

/* The program has made use of @what. */
void nondet_used(u32 what);

#endif
