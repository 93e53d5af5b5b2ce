/*
 * PURPOSE: tracepoints of the kernel for guests' tasks [TYPE-03]: a probe of the kernel has an
 * event of the kernel's on each thread that its copies are on, which counts, keeps the periods and
 * writes into the thread's buffer (task/thread-records.h); and one on nobody (its anchor), which
 * keeps the filter and the BPF program, and the kernel's own preparations.
 *
 * Ownership: a struct record_probe is its probes', whose `host` leads to it. Events of one task
 * that are on a CPU each share one, since the thread is on one CPU at a time.
 *
 * Events go off and on whenever a thread changes its CPU, while it runs. So the kernel's are turned
 * off at the end of the instant, if nobody has turned them on again: nothing is missed.
 */
#ifndef SESSION_TASK_KERNEL_PROBES_H
#define SESSION_TASK_KERNEL_PROBES_H

#include "base/types.h"

struct guest_thread;
struct probe;
struct record_probe;
struct session;

/* Of struct probe_host; @ctx is the session. */
int must_check kernel_probe_open(void *ctx, struct probe *probe);
void kernel_probe_close(void *ctx, struct probe *probe);
void kernel_probe_arm(struct probe *probe);
void kernel_probe_disarm(struct probe *probe);
bool kernel_probe_count(void *ctx, struct probe *probe, u64 *more);
int must_check kernel_probe_filter(void *ctx, struct probe *probe, const char *text);
int must_check kernel_probe_bpf(void *ctx, struct probe *probe);

/* It is to go on by itself when its task execs. */
void kernel_probe_on_exec(struct probe *probe);
/* @th runs another program, and its events are on or off as that leaves them. */
void kernel_probes_exec(struct guest_thread *th);
/* @th is there. */
void kernel_probes_watch(struct guest_thread *th);
/* Those that send @th signals may do so, or are closed. */
void kernel_probes_stop(struct guest_thread *th, bool on);
/* @th is not there any more. */
void kernel_probes_free(struct guest_thread *th);
/* The instant ends. */
void kernel_probes_settle(struct session *s);

/* Whether @probe's samples say where the program was: the thread is to tell its system calls. */
bool kernel_probe_wants_calls(const struct probe *probe);

/* What @probe's records have to pass here, not in the kernel; NULL: nothing. */
const struct tp_filter *kernel_probe_filtered(const struct probe *probe);

/* The one of @th whose event the kernel calls @id; NULL: it is gone. */
struct record_probe *kernel_probe_find(const struct guest_thread *th, u64 id);
/* Whose record it is that was made on @cpu. */
struct probe *kernel_probe_whose(const struct record_probe *rp, u32 cpu);

#endif
