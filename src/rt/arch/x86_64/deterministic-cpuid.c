/*
 * CPUID in a deterministic run. With --cpu-features=host it is the machine's, but for the number of
 * the CPU that answers. With a level of the x86-64 psABI it is a CPU with one core, the features of
 * that level and caches of a fixed size, the same on every machine, whoever made it: the C library
 * chooses its string functions and their thresholds by vendor, features and cache sizes, and so do
 * JIT compilers and libraries of cryptography.
 *
 * It is Intel's, since more programs know that vendor's leaves than another's. The session shows
 * the events of that model (cpuid-profile.c). What the vendors do differently in user mode is not
 * asked of CPUID: nobody executes in 64-bit mode what only one of them has.
 */
#include "rt/arch.h"
#include "rt/arch/x86_64/cpuid.h"
#include "rt/task/meter-page.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/auxvec.h>

#define HWCAP2_FSGSBASE BIT(1)
/* Enough for the frames of every machine, but for tiles. The kernel's word grows with the CPU. */
#define FRAME_MOST 4096

/* A server of 2017 (Skylake): family 6, model 85, stepping 4. */
#define SIGNATURE 0x00050654

/* Components of the extended state, as in XCR0, and where AVX's lies in the standard format. */
#define XCR0_V2    3
#define XCR0_V3    7
#define AVX_OFFSET 576
#define AVX_SIZE   256

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
	const struct run_config *run = run_config();

	if (!(run->flags & SEGMENT_DETERMINISTIC) || run->cpu == METER_CPU_HOST)
		return true;
	if (!has(1, 2, V2_ECX) || !has(0x80000001, 2, V2_ECX_EXT))
		return false;
	return run->cpu == METER_CPU_V2 ||
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

/* What leaves 0x80000002 to 0x80000004 say, and /proc/cpuinfo. */
static const char *brand(bool v3)
{
	return v3 ? "anyperf x86-64-v3 CPU" : "anyperf x86-64-v2 CPU";
}

static void brand_leaf(bool v3, u32 part, u32 r[4])
{
	char text[48] = {0};

	str_put(text, sizeof(text), brand(v3));
	memcpy(r, text + part * 16, 16);
}

/* The extended state: standard format, and none of the instructions that came later. */
static void xstate(bool v3, u32 subleaf, u32 r[4])
{
	if (subleaf == 0 && v3)
		set(r, XCR0_V3, AVX_OFFSET + AVX_SIZE, AVX_OFFSET + AVX_SIZE, 0);
	if (subleaf == 2 && v3)
		set(r, AVX_SIZE, AVX_OFFSET, 0, 0);
}

static void level(bool v3, u32 leaf, u32 subleaf, u32 r[4])
{
	set(r, 0, 0, 0, 0);
	switch (leaf) {
	case 0: set(r, 0xd, 0x756e6547, 0x6c65746e, 0x49656e69); break; /* GenuineIntel */
	case 1: set(r, SIGNATURE, 8 << 8 | 1 << 16, v3 ? V3_ECX : V2_ECX, ONE_EDX); break;
	case 2: set(r, 0x0000ff01, 0, 0, 0); break; /* the caches are in leaf 4 */
	case 4: caches(subleaf, r); break;
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
	case 0xd: xstate(v3, subleaf, r); break;
	case 0x80000000: set(r, 0x80000008, 0, 0, 0); break;
	case 0x80000001: set(r, 0, 0, v3 ? V3_ECX_EXT : V2_ECX_EXT, EXT_EDX); break;
	case 0x80000002:
	case 0x80000003:
	case 0x80000004: brand_leaf(v3, leaf - 0x80000002, r); break;
	case 0x80000006: set(r, 0, 0, 1024u << 16 | 8 << 12 | 64, 0); break; /* L2: 1 MB, 16 ways */
	case 0x80000008: set(r, 48 << 8 | 48, 0, 0, 0); break;
	}
}

/* The level that is shown; METER_CPU_HOST also of a run that is not deterministic. */
static u32 shown_level(void)
{
	const struct run_config *run = run_config();

	return run->flags & SEGMENT_DETERMINISTIC ? run->cpu : METER_CPU_HOST;
}

u64 deterministic_xcr0(void)
{
	switch (shown_level()) {
	case METER_CPU_V2: return XCR0_V2;
	case METER_CPU_V3: return XCR0_V3;
	default: return 0;
	}
}

void deterministic_cpuid(u32 leaf, u32 subleaf, u32 r[4])
{
	u32 shown = shown_level();

	if (!(run_config()->flags & SEGMENT_DETERMINISTIC))
		return;
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
	bool host = run_config()->cpu == METER_CPU_HOST;
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

u64 deterministic_frame(void)
{
	return shown_level() == METER_CPU_HOST ? 0 : FRAME_MOST;
}

/* The words of leaf 1, of 0x80000001, and of 7, as the kernel has them. */
#define FLAGS_V2                                                                          \
	"fpu tsc cx8 cmov clflush mmx fxsr sse sse2 syscall nx lm pni ssse3 cx16 sse4_1 " \
	"sse4_2 popcnt lahf_lm"
#define FLAGS_V3                                                                              \
	"fpu tsc cx8 cmov clflush mmx fxsr sse sse2 syscall nx lm pni ssse3 fma cx16 sse4_1 " \
	"sse4_2 movbe popcnt xsave avx f16c lahf_lm abm bmi1 avx2 bmi2"

size_t deterministic_cpuinfo(char *text, size_t size, u32 cpu, u32 cpus)
{
	bool v3 = shown_level() == METER_CPU_V3;

	if (shown_level() == METER_CPU_HOST)
		return 0;
	return fmt(text, size,
		   "processor\t: %u\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
		   "model name\t: %s\nstepping\t: 4\ncpu MHz\t\t: 2000.000\n"
		   "cache size\t: 16384 KB\nphysical id\t: 0\nsiblings\t: %u\ncore id\t\t: %u\n"
		   "cpu cores\t: %u\napicid\t\t: %u\ninitial apicid\t: %u\nfpu\t\t: yes\n"
		   "fpu_exception\t: yes\ncpuid level\t: 13\nwp\t\t: yes\nflags\t\t: %s\n"
		   "bugs\t\t:\nbogomips\t: 4000.00\nclflush size\t: 64\ncache_alignment\t: 64\n"
		   "address sizes\t: 48 bits physical, 48 bits virtual\npower management:\n\n",
		   cpu, brand(v3), cpus, cpu, cpus, cpu, cpu, v3 ? FLAGS_V3 : FLAGS_V2);
}
