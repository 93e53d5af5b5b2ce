/* What the CPU's own instructions tell of the PMU: cpuid and rdpmc. */
#include "abi/wire.h"
#include "rt/arch/x86_64/cpuid.h"
#include "rt/perf/perf-priv.h"
#include "rt/task/meter-page.h"

/*
 * Clients choose their tables by family and model, so one that they know is shown; everything else
 * of CPUID stays. Leaf 0xA says version 2, 48-bit counters, and that instructions and branches are
 * there (bits set in EBX are events that are not).
 */
void perf_cpuid(u32 leaf, u32 regs[4])
{
	const struct counter_segment *segment = counter_segment();
	const struct wire_view *view =
		(const struct wire_view *)((const u8 *)segment + WIRE_VIEW_IN);

	/* Also without a session: who asks for counts must not change them. */
	if (!view->cpuid_signature)
		return;
	if (leaf == 0 && regs[0] < 0xa)
		regs[0] = 0xa;
	/* A level of features has a model of its own, rt/arch/x86_64/deterministic-cpuid.c. */
	if (leaf == 1 &&
	    !(segment->flags & SEGMENT_DETERMINISTIC && segment->cpu != METER_CPU_HOST))
		regs[0] = view->cpuid_signature;
	if (leaf == 0xa) {
		u32 counters = view->counters ? view->counters : 8;

		regs[0] = 7u << 24 | 48u << 16 | (counters > 255 ? 255 : counters) << 8 | 2;
		regs[1] = BIT(0) | BIT(2) | BIT(3) | BIT(4) |
			  BIT(6); /* cycles, ref, LLC, mispredicted */
		regs[2] = 0;
		regs[3] = 0;
	}
}

/* The counters' numbers are those of the user page, enum cpu_what in pmu/drivers.h. */
bool perf_rdpmc(struct thread *t, u32 index, u64 *value)
{
	static const enum meter_quantity quantity[] = {METER_INSTRUCTIONS, METER_BRANCHES};
	const struct perf *p = t->proc->perf;
	u32 flags = p ? __atomic_load_n(&p->view->flags, __ATOMIC_RELAXED) : 0;

	if (!(flags & WIRE_VIEW_RDPMC_ALL) && !(flags & WIRE_VIEW_RDPMC && p->nr_counters))
		return false;
	if (index >= ARRAY_SIZE(quantity))
		return false;
	*value = perf_own_count(t, quantity[index]);
	return true;
}
