/*
 * CPUID in a deterministic run. With --cpu-features=host it is the machine's, but for the number of
 * the CPU that answers. With a level of the x86-64 psABI it is a CPU with one core and the features
 * of that level, whatever else the machine has; the C library chooses its string functions and
 * their thresholds by features and cache sizes. The vendor stays, since the events' codes follow
 * it.
 *
 * Leaf 0xD stays too where XSAVE does: XCR0 is the machine's, so is what xsave writes.
 */
#include "rt/arch.h"
#include "rt/arch/x86_64/cpuid.h"
#include "rt/task/meter-page.h"

#include <linux/auxvec.h>

#define HWCAP2_FSGSBASE BIT(1)

#define AMD_EBX 0x68747541 /* "Auth" */

/* Leaf 1. */
#define ONE_EDX \
	(BIT(0) | BIT(4) | BIT(8) | BIT(15) | BIT(19) | BIT(23) | BIT(24) | BIT(25) | BIT(26))
#define V2_ECX (BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23))
#define V3_ECX (V2_ECX | BIT(12) | BIT(22) | BIT(26) | BIT(27) | BIT(28) | BIT(29))
/* Leaf 7: BMI1, AVX2, BMI2. Leaf 0x80000001: LAHF, LZCNT; SYSCALL, NX, LM. */
#define V3_EBX7    (BIT(3) | BIT(5) | BIT(8))
#define V2_ECX_EXT BIT(0)
#define V3_ECX_EXT (BIT(0) | BIT(5))
#define EXT_EDX    (BIT(11) | BIT(20) | BIT(29))

/* Types of caches in leaf 4. */
enum { CACHE_DATA = 1, CACHE_CODE, CACHE_UNIFIED };

static void machine_cpuid(u32 leaf, u32 r[4])
{
	r[0] = leaf;
	r[2] = 0;
	__asm__ volatile("cpuid" : "+a"(r[0]), "=b"(r[1]), "+c"(r[2]), "=d"(r[3]));
}

static void set(u32 r[4], u64 a, u64 b, u64 c, u64 d)
{
	r[0] = (u32)a;
	r[1] = (u32)b;
	r[2] = (u32)c;
	r[3] = (u32)d;
}

static bool has(u32 leaf, u32 reg, u32 bits)
{
	u32 r[4];

	machine_cpuid(leaf, r);
	return (r[reg] & bits) == bits;
}

bool deterministic_supported(void)
{
	const struct counter_segment *segment = counter_segment();

	if (!(segment->flags & SEGMENT_DETERMINISTIC) || segment->cpu == METER_CPU_HOST)
		return true;
	if (!has(1, 2, V2_ECX) || !has(0x80000001, 2, V2_ECX_EXT))
		return false;
	return segment->cpu == METER_CPU_V2 ||
	       (has(1, 2, V3_ECX) && has(7, 1, V3_EBX7) && has(0x80000001, 2, V3_ECX_EXT));
}

/* 64-byte lines. */
static void cache(u32 r[4], u32 type, u32 level, u32 ways, u32 kb)
{
	set(r, type | level << 5 | BIT(8), 63 | (ways - 1) << 22, kb * 1024 / 64 / ways - 1, 0);
}

static void caches(u32 subleaf, u32 r[4])
{
	switch (subleaf) {
	case 0: cache(r, CACHE_DATA, 1, 8, 32); break;
	case 1: cache(r, CACHE_CODE, 1, 8, 32); break;
	case 2: cache(r, CACHE_UNIFIED, 2, 16, 1024); break;
	case 3: cache(r, CACHE_UNIFIED, 3, 16, 16384); break;
	}
}

static bool is_amd(void)
{
	u32 r[4];

	machine_cpuid(0, r);
	return r[1] == AMD_EBX;
}

/* Model of a server of 2017 or 2019, the one that the session shows, so that all see the same. */
static u32 model(void)
{
	return is_amd() ? 0x00830f10 : 0x00050654;
}

static void level(bool v3, u32 leaf, u32 subleaf, u32 r[4])
{
	u32 was[4] = {r[0], r[1], r[2], r[3]};

	set(r, 0, 0, 0, 0);
	switch (leaf) {
	case 0: set(r, 0xd, was[1], was[2], was[3]); break;
	case 1: set(r, model(), 8 << 8 | 1 << 16, v3 ? V3_ECX : V2_ECX, ONE_EDX); break;
	case 2: set(r, 0x0000ff01, 0, 0, 0); break; /* the caches are in leaf 4 */
	case 4:
		if (!is_amd())
			caches(subleaf, r);
		break;
	case 7:
		if (!subleaf)
			set(r, 0, v3 ? V3_EBX7 : 0, 0, 0);
		break;
	case 0xb:
		if (subleaf < 2)
			set(r, 0, 1, (subleaf + 1) << 8 | subleaf, 0);
		else
			set(r, 0, 0, subleaf & 0xff, 0);
		break;
	case 0xd:
		if (v3)
			set(r, was[0], was[1], was[2], was[3]);
		break;
	case 0x80000000: set(r, 0x80000008, was[1], was[2], was[3]); break;
	case 0x80000001:
		set(r, is_amd() ? model() : 0, 0, v3 ? V3_ECX_EXT : V2_ECX_EXT, EXT_EDX);
		break;
	/* 32 KB, 8 ways; 1 MB, 16 ways; 16 MB. AMD's form, which others leave in part empty. */
	case 0x80000005:
		if (is_amd())
			set(r, 0, 0, 32u << 24 | 8 << 16 | 1 << 8 | 64,
			    32u << 24 | 8 << 16 | 1 << 8 | 64);
		break;
	case 0x80000006:
		set(r, 0, 0, 1024u << 16 | 8 << 12 | 1 << 8 | 64,
		    is_amd() ? 32u << 18 | 8 << 12 | 1 << 8 | 64 : 0);
		break;
	case 0x80000008: set(r, 48 << 8 | 48, 0, 0, 0); break;
	}
}

void deterministic_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
	u32 shown;

	if (!(counter_segment()->flags & SEGMENT_DETERMINISTIC))
		return;
	shown = counter_segment()->cpu;
	if (shown != METER_CPU_HOST) {
		level(shown == METER_CPU_V3, leaf, subleaf, r);
		return;
	}
	switch (leaf) {
	case 1: r[1] &= 0x00ffffff; break;
	case 0xb:
	case 0x1f: r[3] = 0; break;
	case 0x1a: r[0] = 0; break; /* the kind of core */
	case 0x8000001e:
		r[0] = 0;
		r[1] &= ~0xffu;
		r[2] &= ~0xffu;
		break;
	}
}

bool deterministic_hwcap(u64 type, u64 *value)
{
	bool host = counter_segment()->cpu == METER_CPU_HOST;
	u32 regs[4];

	switch (type) {
	case AT_HWCAP:
		machine_cpuid(1, regs);
		deterministic_cpuid(1, 0, regs);
		*value = regs[3];
		return true;
	case AT_HWCAP2: *value = host ? *value & HWCAP2_FSGSBASE : 0; return true;
	case AT_HWCAP3:
	case AT_HWCAP4: return host;
	default: return true;
	}
}
