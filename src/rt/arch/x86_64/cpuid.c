#include "rt/arch/x86_64/cpuid.h"

#include "rt/arch.h"
#include "sys/string.h"

#define HYBRID BIT(15) /* leaf 7, edx: CPUs of several kinds, that differ in caches and more */

static struct control_cpuid known;
static u32 busy; /* somebody adds to it; stays set in a child that was forked meanwhile */

static void ask(u32 leaf, u32 subleaf, u32 regs[4])
{
	regs[0] = leaf;
	regs[1] = regs[3] = 0;
	regs[2] = subleaf;
	__asm__ volatile("cpuid" : "+a"(regs[0]), "=b"(regs[1]), "+c"(regs[2]), "=d"(regs[3]));
}

/*
 * Leaves that name no CPU and show no state that changes (SDM vol. 2, CPUID). *@subleaf becomes 0
 * where it does not matter.
 */
static bool is_constant(u32 leaf, u32 *subleaf)
{
	switch (leaf) {
	case 0:
	case 2:
	case 0x80000000 ... 0x80000008: *subleaf = 0; return true;
	case 4:
	case 7:
	case 0xd:
	case 0x14: return true;
	default: return false;
	}
}

static void remember(u32 leaf, u32 subleaf, const u32 regs[4])
{
	u32 seven[4];

	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	if (known.state == CONTROL_CPUID_UNKNOWN) {
		ask(7, 0, seven);
		known.state = seven[3] & HYBRID ? CONTROL_CPUID_DIFFER : CONTROL_CPUID_SAME;
	}
	if (known.state == CONTROL_CPUID_SAME && known.n < CONTROL_CPUIDS) {
		known.at[known.n].leaf = leaf;
		known.at[known.n].subleaf = subleaf;
		memcpy(known.at[known.n].regs, regs, sizeof(known.at[0].regs));
		__atomic_store_n(&known.n, known.n + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void cpuid(u32 leaf, u32 subleaf, u32 regs[4])
{
	u32 key = subleaf, n;

	if (!is_constant(leaf, &key)) {
		ask(leaf, subleaf, regs);
		return;
	}
	n = __atomic_load_n(&known.n, __ATOMIC_ACQUIRE);
	for (u32 i = 0; i < n; i++) {
		if (known.at[i].leaf != leaf || known.at[i].subleaf != key)
			continue;
		memcpy(regs, known.at[i].regs, sizeof(known.at[i].regs));
		return;
	}
	ask(leaf, subleaf, regs);
	remember(leaf, key, regs);
}

void arch_save(struct rt_control *control)
{
	control->cpuid = known;
}

void arch_load(const struct rt_control *control)
{
	if (control->cpuid.n <= CONTROL_CPUIDS)
		known = control->cpuid;
}

const struct dbt_arch_ops arch_dbt_ops = {.cpuid = cpuid, .xcr0 = deterministic_xcr0};
