/*
 * PURPOSE: a PMU of the shape of Armv8's PMUv3, as the kernel's arm64 document describes it: 32-bit
 * counters that chain to 64, a 64-bit cycle counter, `long` and `rdpmc` bits, thresholds, cores of
 * two kinds, and what the exclude bits mean on hosts and in guests [ARM-01..26]. It needs no such
 * processor: the numbers come from an op. Any machine's tests exercise it.
 *
 * Lifetime: arm64_pmu_new() to arm64_pmu_free(), the latter after core_free(). Locking: none.
 */
#ifndef PMU_ARM64_H
#define PMU_ARM64_H

#include "core/pmu.h"

/* Where the kernel that counts runs. */
struct arm64_env {
	bool vhe;   /* host kernel at EL2; a guest's is always at EL1 */
	bool guest; /* it is a guest's kernel: EL2 is never counted */
};

/* What is counted, and how that is brought about at the entry to a guest and the exit from it. */
struct arm64_modes {
	bool el0, el1, el2;        /* while the kernel's own side runs */
	bool guest_el0, guest_el1; /* while a guest of it runs */
	bool event_switched;       /* non-VHE: the event is switched on and off there */
	bool el0_switched;         /* VHE: just its EL0 is */
	bool blackout;             /* host events are missed for a moment there */
};

/* The exclude_* bits' meaning [ARM-01..11]. Pure. */
struct arm64_modes arm64_modes(const struct pe_attr *attr, const struct arm64_env *env);

enum arm64_compare { ARM64_NOT_EQUAL, ARM64_EQUAL, ARM64_AT_LEAST, ARM64_LESS };

struct arm64_threshold {
	u32 value; /* 0: off */
	enum arm64_compare compare;
	bool count; /* advance by 1 instead of by the cycle's occurrences */
};

/* By how much the counter advances on a cycle with @n occurrences [ARM-21..23, ARM-25]. Pure. */
u32 arm64_threshold_step(const struct arm64_threshold *threshold, u32 n);

/* config1, and its parts as format/ shows them. */
#define ARM64_LONG             BIT(0)
#define ARM64_RDPMC            BIT(1)
#define ARM64_TH_COUNT         BIT(2)
#define ARM64_TH_COMPARE(c)    ((u64)(c) << 3)
#define ARM64_THRESHOLD(v)     ((u64)(v) << 5)
#define ARM64_EVENT_CPU_CYCLES 0x11
#define ARM64_EVENT_CHAIN      0x1e

/* The user page's index of the cycle counter: 32 [ARM-14]. */
#define ARM64_CYCLE_IDX 31

struct arm64_pmu_config {
	/*
	 * What a 64-bit counter of event @code with those filters would have reached: for @task,
	 * or, NULL, on @cpu. Free-running; the driver cuts it to the width that the hardware has.
	 */
	u64 (*value)(void *ctx, struct task *task, u32 cpu, u32 code,
		     const struct arm64_modes *modes, const struct arm64_threshold *threshold);
	void *ctx;
	struct arm64_env env;
	u32 counters;      /* beside the cycle counter, at most 31 */
	bool long_events;  /* FEAT_PMUv3p5: all counters have 64 bits */
	bool user_access;  /* sysctl kernel/perf_user_access */
	u32 threshold_max; /* 0: no FEAT_PMUv3_TH */
	bool aarch32;      /* an aarch32 guest: no thresholds whatever the hardware has */
	u64 cpus;          /* the cores it is on, bit per CPU; 0: all */
};

/* "armv8_pmuv3", of a dynamic type, taking generic hardware ids as well. */
int must_check arm64_pmu_new(struct core *core, const struct arm64_pmu_config *config,
			     struct pmu **pmu);
void arm64_pmu_free(struct pmu *pmu);

/* The sysctl changed: pages show their index, or 0, from their next update on. */
void arm64_pmu_set_user_access(struct pmu *pmu, bool on);

#endif
