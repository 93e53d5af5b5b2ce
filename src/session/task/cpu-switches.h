/*
 * PURPOSE: who was on a CPU before and after a guest's thread [REC-14]. Of one thread the kernel
 * records that it comes and goes, of a whole CPU with whom it changes places. So where somebody
 * asks for the switches of a CPU there is an event of the kernel's on that CPU, and what it has
 * recorded last is kept to be looked up.
 *
 * Ownership: the session's, for its life. Where the kernel refuses such an event nobody is found.
 */
#ifndef SESSION_TASK_CPU_SWITCHES_H
#define SESSION_TASK_CPU_SWITCHES_H

#include "base/types.h"

struct cpu_switches;
struct session;

/* Somebody asks for the switches of @cpu. */
void cpu_switches_watch(struct session *s, u32 cpu);
/*
 * Whom @tid has left @cpu to, or taken it from, when the kernel told of that at @time,
 * CLOCK_MONOTONIC ns; *@pid and *@other are 0 if that is not known.
 */
void cpu_switches_find(struct session *s, u32 cpu, u32 tid, bool out, u64 time, u32 *pid,
		       u32 *other);
void cpu_switches_free(struct session *s);

#endif
