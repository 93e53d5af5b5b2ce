/* What the CPU's own instructions tell of the PMU: cpuid and rdpmc. */
#include "abi/wire.h"
#include "model/machine.h"
#include "rt/arch/x86_64/cpuid.h"
#include "rt/perf/perf-priv.h"
#include "rt/task/meter-page.h"

/* Bits of leaf 0xA's EBX are architectural events that are not there: without a model these. */
#define MODELED_EVENTS (BIT(0) | BIT(2) | BIT(3) | BIT(4) | BIT(6)) /* cycles, ref, LLC, missed */

static bool has_model(const struct run_config *run)
{
	return ((const struct machine *)(const void *)run->machine)->version;
}

/*
 * Clients choose their tables by family and model, so one that they know is shown; everything else
 * of CPUID stays. Leaf 0xA says version 2 and 48-bit counters.
 */
void perf_cpuid(u32 leaf, u32 regs[4])
{
	const struct run_config *run = run_config();

	/* Also without a session: who asks for counts must not change them. */
	if (!run->cpuid_signature)
		return;
	if (leaf == 0 && regs[0] < 0xa)
		regs[0] = 0xa;
	/* A level of features has a model of its own, rt/arch/x86_64/deterministic-cpuid.c. */
	if (leaf == 1 && !(run->flags & SEGMENT_DETERMINISTIC && run->cpu != METER_CPU_HOST))
		regs[0] = run->cpuid_signature;
	if (leaf == 0xa) {
		u32 counters = run->counters ? run->counters : 8;

		regs[0] = 7u << 24 | 48u << 16 | (counters > 255 ? 255 : counters) << 8 | 2;
		regs[1] = has_model(run) ? 0 : MODELED_EVENTS;
		regs[2] = 0;
		regs[3] = 0;
	}
}

/*
 * Whether the session lets us, which it says in memory that no other guest has. Who has no counter
 * mapped may be one that it does not know yet.
 */
static bool may_rdpmc(struct thread *t)
{
	const struct perf *p = t->proc->perf;
	u32 rdpmc;

	if (!p || !wire_connect(t))
		return false;
	rdpmc = __atomic_load_n(&p->wire.page->rdpmc, __ATOMIC_RELAXED);
	return rdpmc & WIRE_RDPMC_ALL || (rdpmc & WIRE_RDPMC_MAPPED && p->nr_counters);
}

/* The counters' numbers are those of the user page, enum cpu_what in pmu/drivers.h. */
bool perf_rdpmc(struct thread *t, u32 index, u64 *value)
{
	static const enum meter_quantity quantity[] = {
		METER_INSTRUCTIONS, METER_BRANCHES, METER_CONDITIONAL, METER_TAKEN,
		METER_CALLS,        METER_RETURNS,  METER_INDIRECT,
	};

	if (index >= ARRAY_SIZE(quantity) || !may_rdpmc(t))
		return false;
	*value = perf_own_count(t, quantity[index]);
	return true;
}
