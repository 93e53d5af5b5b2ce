/*
 * PURPOSE: what is decided about a session's programs before the first of them runs. Who makes the
 * counter segment (meter.h) decides it, and nobody changes it. It does not stand in the segment,
 * since all guests can write to that: each holder has a copy in memory of its own. These are the
 * command; the session, which is told at its start (session-start.h) and tells who joins it; and
 * each runtime, which is told by the command or by the runtime that was in the process before
 * (control.h), or is a copy of its parent's. Shapes only.
 */
#ifndef ABI_RUN_CONFIG_H
#define ABI_RUN_CONFIG_H

#include "base/types.h"

#define RUN_CONFIG_MACHINE 1024u
#define PROFILED_EVENTS    16u

struct run_config {
	u32 flags;           /* enum counter_segment_flags */
	u32 cache_mb;        /* limit of a process's code cache; 0: the usual one */
	u32 slots;           /* meters that may be used, of SEGMENT_SLOTS; 0: all */
	u32 cpu;             /* of a deterministic run: enum meter_cpu */
	u32 cpus;            /* of one: how many; 0: the machine's */
	u32 cpuid_signature; /* CPUID leaf 1 EAX to show, 0: the CPU's own */
	u32 counters;        /* general counters to show in CPUID leaf 0xA; 0: no limit */
	u32 nr_profiled;     /* of profiled[] */
	u32 beside;          /* simulation beside the program: enum model_beside of modeled.h */
	/*
	 * The model sees so many instructions in a row of each window_every; 0: all. Without
	 * window_every: of a part of what has been executed (modeled.h).
	 */
	u32 window, window_every;
	/*
	 * With SEGMENT_ACCESSES, of the filter of accesses (path-trace.h): how many sets, how many
	 * bytes a line has, as a power of two, and how many lines of each set it knows: 1 or 2.
	 */
	u16 filter_sets;
	u8 filter_shift;
	u8 filter_lines;
	u64 seed; /* of a deterministic run */
	/* Modeled events that are attributed to instructions (modeled-profile.h), as counters. */
	u8 profiled[PROFILED_EVENTS];
	/*
	 * struct machine of model/machine.h, whose model counts what depends on one; of version 0:
	 * there is none. Who reads it checks it (machine_check()).
	 */
	u64 machine[RUN_CONFIG_MACHINE / sizeof(u64)];
};

#endif
