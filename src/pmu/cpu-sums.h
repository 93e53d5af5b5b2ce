/*
 * PURPOSE: what an event counts where that is no single counter of the source: a sum of several,
 * each times a small factor. A raw code of a vendor's may be such a sum. Each that an open event
 * counts has a number of its own, which is a @what of the source that the cpu PMU shows to the
 * events.
 */
#ifndef PMU_CPU_SUMS_H
#define PMU_CPU_SUMS_H

#include "pmu/drivers.h"

#define CPU_SUMS     CPU_MODELED_MAX /* the number of the first */
#define CPU_SUMS_MAX (SOURCE_MAX - CPU_SUMS)

struct cpu_sum {
	s8 times[CPU_MODELED_MAX]; /* by enum cpu_what, or CPU_MODELED + enum model_counter */
};

/* Of one PMU; all zero at first. */
struct cpu_sums {
	const struct pmu_source *source; /* of the counters */
	struct {
		struct cpu_sum sum;
		u32 users;
	} used[CPU_SUMS_MAX];
};

/*
 * A @what that is @sum: a counter's own, or one to be given back. There are more than tables have.
 */
u32 cpu_sum_take(struct cpu_sums *sums, const struct cpu_sum *sum);
/* Of @what that are no sums it is nothing. */
void cpu_sum_drop(struct cpu_sums *sums, u32 what);

/* It is of nothing at all. */
bool cpu_sum_is_nothing(const struct cpu_sum *sum);

/* As pmu_source.read(). */
u64 cpu_sums_read(const struct cpu_sums *sums, struct task *task, u32 what);

/* It is of counters of the model alone. */
bool cpu_sum_is_modeled(const struct cpu_sums *sums, u32 what);

/* Which parts of the model (enum model_part) @what needs. */
u32 cpu_sum_parts(const struct cpu_sums *sums, u32 what);

#endif
