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

enum validity {
	OF_ALL_CPUS,
	OF_ONE_CPU, /* it names the CPU, or one of what CPUs have in common */
	OF_NOTHING, /* not known: it may change */
};

/*
 * Where that of a leaf holds which shows no state that changes (SDM vol. 2 and APM vol. 3, CPUID).
 * *@subleaf becomes 0 where it does not matter.
 */
static enum validity holds_where(u32 leaf, u32 *subleaf)
{
	switch (leaf) {
	case 0:
	case 2:
	case 0x80000000 ... 0x80000008: *subleaf = 0; return OF_ALL_CPUS;
	case 4:
	case 7:
	case 0xd:
	case 0x14: return OF_ALL_CPUS;
	case 1:
	case 0x19:
	case 0x8000001e: *subleaf = 0; return OF_ONE_CPU;
	case 0xb:
	case 0x1f:
	case 0x8000001d: return OF_ONE_CPU;
	default: return OF_NOTHING;
	}
}

#define CPU_SEGMENT 0x7bu /* its limit tells the CPU's number, for the vDSO's getcpu */
#define CPU_BITS    0xfffu

/* CONTROL_CPUID_ALL: not known. */
static u32 cpu_now(void)
{
	u32 limit = 0;
	bool told;

	__asm__ volatile("lsl %2, %0" : "+r"(limit), "=@ccz"(told) : "r"(CPU_SEGMENT));
	return told ? limit & CPU_BITS : CONTROL_CPUID_ALL;
}

static void remember(u32 leaf, u32 subleaf, u32 cpu, const u32 regs[4])
{
	u32 seven[4];

	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	if (known.state == CONTROL_CPUID_UNKNOWN) {
		ask(7, 0, seven);
		known.state = seven[3] & HYBRID ? CONTROL_CPUID_DIFFER : CONTROL_CPUID_SAME;
	}
	if ((known.state == CONTROL_CPUID_SAME || cpu != CONTROL_CPUID_ALL) &&
	    known.n < CONTROL_CPUIDS) {
		known.at[known.n].leaf = leaf;
		known.at[known.n].subleaf = subleaf;
		known.at[known.n].cpu = cpu;
		memcpy(known.at[known.n].regs, regs, sizeof(known.at[0].regs));
		__atomic_store_n(&known.n, known.n + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

void cpuid(u32 leaf, u32 subleaf, u32 regs[4])
{
	u32 key = subleaf, n, cpu = CONTROL_CPUID_ALL;
	enum validity v = holds_where(leaf, &key);

	if (v == OF_NOTHING) {
		ask(leaf, subleaf, regs);
		return;
	}
	if (v == OF_ONE_CPU)
		cpu = cpu_now();
	n = __atomic_load_n(&known.n, __ATOMIC_ACQUIRE);
	for (u32 i = 0; i < n; i++) {
		if (known.at[i].leaf != leaf || known.at[i].subleaf != key ||
		    known.at[i].cpu != cpu)
			continue;
		memcpy(regs, known.at[i].regs, sizeof(known.at[i].regs));
		return;
	}
	ask(leaf, subleaf, regs);
	/* The thread may have been moved before it asked. */
	if (v == OF_ALL_CPUS || (cpu != CONTROL_CPUID_ALL && cpu == cpu_now()))
		remember(leaf, key, cpu, regs);
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
