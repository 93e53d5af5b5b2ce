/*
 * PURPOSE: who counts on a machine: the kernel where it can count what is asked for, else the
 * virtual PMU, which can count what is started under it and nothing else. What ap_machine_choose()
 * does, in steps, for who must also explain it.
 */
#ifndef LIB_MACHINE_MACHINE_PMU_H
#define LIB_MACHINE_MACHINE_PMU_H

#include <anyperf/machine.h>

#include "base/types.h"

struct ap__advice;
struct machine;
struct perf_event_attr;

/* The part of ap_machine_new(). -ENOMEM, -EINVAL. */
int ap__pmu_init(struct ap_machine *m, const struct ap_machine_opts *opts);

/* What some events need, and whether the kernel has it. */
struct ap__needs {
	bool any;         /* there is an event */
	bool kernel_mode; /* and of those that need the CPU's PMU none is of user mode */
	const char
		*lacks; /* why the kernel cannot count them; NULL: it can, or says itself why not */
};

/*
 * Looks at the events of @text (NULL: none), whose attrs @shape (NULL: nothing) may change before.
 * The machine's PMU must be the kernel's.
 */
struct ap__needs ap__pmu_needs(struct ap_machine *m, const char *text,
			       void (*shape)(void *data, struct perf_event_attr *attr), void *data);

/* Why the kernel has refused with @err what the virtual PMU may count; NULL: it would as well. */
const char *ap__pmu_lacks(struct ap_machine *m, const struct ap_error *err);

/*
 * The machine's PMU is the virtual one from now on, with its session; or, if this program runs
 * under one, that. @why is words for a sentence. Specs must be parsed again. -errno with the
 * reason.
 */
int ap__pmu_turn(struct ap_machine *m, const char *why, struct ap_error *err);

/*
 * The same where it is asked for: this program may run under one itself, which counts for it then.
 */
int ap__pmu_want(struct ap_machine *m, const char *why, struct ap_error *err);

/*
 * The name of the machine whose model counts what depends on one; false: there is none, or the
 * hardware counts. Of a virtual PMU of our own it is known once it has a segment.
 */
bool ap__pmu_modeled(struct ap_machine *m, char *name, size_t size);
/* Likewise whether it sees windows only, and which: MODEL_WINDOWS_TEXT bytes are enough. */
bool ap__pmu_windows(struct ap_machine *m, char *text, size_t size);
/* What it lacks by now, of enum model_lack: MODEL_ESTIMATED if counts are estimates. */
u32 ap__pmu_model_lacks(struct ap_machine *m);

/*
 * Before either: programs under the virtual PMU count each path of theirs (path-profile.h), and
 * their threads keep their meters.
 */
void ap__pmu_exact(struct ap_machine *m);

/*
 * With that: what these counters of the model (enum model_counter) count is attributed to
 * instructions (modeled-profile.h), with SEGMENT_DATA and SEGMENT_SITES of @flags to data as well.
 * At most PROFILED_EVENTS of them.
 */
void ap__pmu_profiled(struct ap_machine *m, const u8 *counters, u32 n, u32 flags);

/*
 * Likewise: they hand out what they execute, in order (path-trace.h), and wait for whoever reads
 * it. With @requests they are answered as under Valgrind. With @caches they say what they access,
 * as far as it changes anything in the data cache of that machine, which is one as Valgrind has it.
 */
void ap__pmu_traced(struct ap_machine *m, bool requests, const struct machine *caches);

/*
 * The reason of what src/backend has refused with @why, which it may be about an option. Returns
 * @r.
 */
int ap__pmu_fail(struct ap_error *err, int r, const char *why);

/*
 * What a refusal is to advise from now on where the kernel has no CPU PMU and user mode is asked
 * for: not everything can be counted in user space. @advice is borrowed.
 */
void ap__machine_set_advice(struct ap_machine *m, const struct ap__advice *advice);

/* Sets ap_machine_pmu_why(). */
void ap__pmu_because(struct ap_machine *m, const char *fmt, ...) printf_like(2, 3);

/*
 * Refuses thread @tid of a task target if it is the caller's and the PMU is virtual: 0 or -ENOENT
 * with the reason.
 */
int ap__pmu_refuse_self(struct ap_machine *m, pid_t tid, struct ap_error *err);

/*
 * Whether this process itself runs under the translator, as far as what it is shown tells: the
 * kernel that counts for it is a session then.
 */
bool ap__machine_is_guest(void);

#endif
