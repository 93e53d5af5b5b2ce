/*
 * From the same tables as raw-codes.c. What is taken is what the model means by it; where the
 * vendors count operations or requests, the model has accesses and lines. What depends on queues,
 * wrong paths, ports and DRAM is not there.
 */
#include "pmu/raw-codes.h"

#include <string.h>

#include "model/floats.h"

/* Of a term: what is added, and what is taken away. 0: none. */
#define ADD(what)   ((s16)((what) + 1))
#define SUB(what)   ((s16) - ((what) + 1))
#define COUNT(name) (CPU_MODELED + MODEL_##name)
#define CELL(id, op, miss) \
	(CPU_MODELED + MODEL_HW_CACHE + (MODEL_##id * MODEL_OPS + MODEL_##op) * 2 + (miss))

#define LOADS      CELL(L1D, READ, 0)
#define STORES     CELL(L1D, WRITE, 0)
#define LOAD_L1    CELL(L1D, READ, 1) /* misses of L1, and so on */
#define STORE_L1   CELL(L1D, WRITE, 1)
#define PREF_L1    CELL(L1D, PREFETCH, 1)
#define CODE_L1    CELL(L1I, READ, 1)
#define LOAD_L2    CELL(LL, READ, 0)
#define STORE_L2   CELL(LL, WRITE, 0)
#define CODE_L2    COUNT(LL_FETCHES)
#define PREF_L2    CELL(LL, PREFETCH, 0)
#define PREF_LL    CELL(LL, PREFETCH, 1)
#define FETCHES    CELL(L1I, READ, 0)
#define LOAD_LL    CELL(LL, READ, 1)
#define STORE_LL   CELL(LL, WRITE, 1)
#define CODE_LL    COUNT(LL_FETCH_MISSES)
#define LOAD_WALK  CELL(DTLB, READ, 1)
#define STORE_WALK CELL(DTLB, WRITE, 1)
#define CODE_WALK  CELL(ITLB, READ, 1)

#define FLOPS_OF(kind, is_double) (CPU_MODELED + MODEL_FLOPS + MODEL_##kind * 2 + (is_double))
#define FLOPS(kind)               ADD(CPU_MODELED + MODEL_FLOPS_OF + MODEL_##kind)
#define FLOATS(width, is_double) \
	ADD(CPU_MODELED + MODEL_FLOAT_INSNS + FLOATS_##width * 2 + (is_double))

#define TERMS_MAX 6

struct modeled_code {
	u16 models; /* enum raw_code_model; 0: the end */
	u32 code;   /* umask << 8 | event select; AMD's events above 0xff: bits 16 to 19 */
	s16 terms[TERMS_MAX];
};

/* clang-format off */
static const struct modeled_code codes[] = {
	/* CPU_CLK_UNHALTED.THREAD_P, .REF_XCLK, .REF_TSC: architectural, as the next two. */
	{INTEL_ALL, 0x003c, {ADD(COUNT(CPU_CYCLES))}},
	{INTEL_ALL, 0x013c, {ADD(COUNT(BUS_CYCLES))}},
	{INTEL_ALL, 0x0300, {ADD(COUNT(REF_CYCLES))}},
	{INTEL_ALL, 0x4f2e, {ADD(COUNT(CACHE_REFERENCES))}},
	{INTEL_ALL, 0x412e, {ADD(COUNT(CACHE_MISSES))}},
	/* BR_MISP_RETIRED.ALL_BRANCHES, .CONDITIONAL */
	{INTEL_ALL, 0x00c5, {ADD(COUNT(BRANCH_MISSES))}},
	{INTEL_SANDYBRIDGE, 0x01c5, {ADD(COUNT(CONDITIONAL_MISSES))}},
	{INTEL_SANDYBRIDGE, 0x04c5, {ADD(COUNT(BRANCH_MISSES))}},
	{INTEL_ICELAKE, 0x11c5, {ADD(COUNT(CONDITIONAL_MISSES))}},
	/* BR_INST_RETIRED.NOT_TAKEN, NEAR_TAKEN */
	{INTEL_SANDYBRIDGE, 0x10c4, {ADD(CPU_CONDITIONAL), SUB(CPU_TAKEN)}},
	{INTEL_ICELAKE, 0x10c4, {ADD(CPU_CONDITIONAL), SUB(CPU_TAKEN)}},
	{INTEL_SINCE, 0x20c4, {ADD(CPU_BRANCHES), SUB(CPU_CONDITIONAL), ADD(CPU_TAKEN)}},
	/* MEM_INST_RETIRED: .STLB_MISS_LOADS, _STORES, .ALL_LOADS, _STORES, .ANY */
	{INTEL_SINCE, 0x11d0, {ADD(LOAD_WALK)}},
	{INTEL_SINCE, 0x12d0, {ADD(STORE_WALK)}},
	{INTEL_SINCE, 0x81d0, {ADD(LOADS)}},
	{INTEL_SINCE, 0x82d0, {ADD(STORES)}},
	{INTEL_SINCE, 0x83d0, {ADD(LOADS), ADD(STORES)}},
	/* MEM_TRANS_RETIRED.STORE_SAMPLE, and .PRECISE_STORE before */
	{INTEL_STORE_SAMPLE, 0x02cd, {ADD(STORES)}},
	/* what perf opens beside loads with latencies: it counts nothing here */
	{INTEL_LOADS_AUX, LOADS_AUX, {0}},
	/* MEM_LOAD_RETIRED: hits of L1, L2, L3, misses of these */
	{INTEL_SINCE, 0x01d1, {ADD(LOADS), SUB(LOAD_L1)}},
	{INTEL_SINCE, 0x02d1, {ADD(LOAD_L1), SUB(LOAD_L2)}},
	{INTEL_SINCE, 0x04d1, {ADD(LOAD_L2), SUB(LOAD_LL)}},
	{INTEL_SINCE, 0x08d1, {ADD(LOAD_L1)}},
	{INTEL_SINCE, 0x10d1, {ADD(LOAD_L2)}},
	{INTEL_SINCE, 0x20d1, {ADD(LOAD_LL)}},
	/* L1D.REPLACEMENT */
	{INTEL_SINCE, 0x0151, {ADD(LOAD_L1), ADD(STORE_L1), ADD(PREF_L1)}},
	/* L2_RQSTS: requests, their misses, their hits: loads, stores, code */
	{INTEL_SINCE, 0xe124, {ADD(LOAD_L1)}},
	{INTEL_SINCE, 0xe224, {ADD(STORE_L1)}},
	{INTEL_SINCE, 0xe424, {ADD(CODE_L1)}},
	{INTEL_SINCE, 0xe724, {ADD(LOAD_L1), ADD(STORE_L1), ADD(CODE_L1)}},
	{INTEL_SINCE, 0x2124, {ADD(LOAD_L2)}},
	{INTEL_SINCE, 0x2224, {ADD(STORE_L2)}},
	{INTEL_SINCE, 0x2424, {ADD(CODE_L2)}},
	{INTEL_SINCE, 0x2724, {ADD(LOAD_L2), ADD(STORE_L2), ADD(CODE_L2)}},
	{INTEL_SINCE, 0x4124, {ADD(LOAD_L1), SUB(LOAD_L2)}},
	{INTEL_SINCE, 0xc124, {ADD(LOAD_L1), SUB(LOAD_L2)}},
	{INTEL_SINCE, 0x4224, {ADD(STORE_L1), SUB(STORE_L2)}},
	{INTEL_SINCE, 0xc224, {ADD(STORE_L1), SUB(STORE_L2)}},
	{INTEL_SINCE, 0x4424, {ADD(CODE_L1), SUB(CODE_L2)}},
	{INTEL_SINCE, 0xc424, {ADD(CODE_L1), SUB(CODE_L2)}},
	{INTEL_SINCE, 0x3f24, {ADD(COUNT(L2_MISSES))}},
	{INTEL_SINCE, 0xef24, {ADD(COUNT(L2_ACCESSES))}},
	{INTEL_SINCE, 0xff24, {ADD(COUNT(L2_ACCESSES))}},
	/* PF_MISS: lines that prefetchers ask for beyond L2 */
	{INTEL_SKYLAKE, 0x3824, {ADD(PREF_L2)}},
	/* OFFCORE_REQUESTS: loads, code, stores; loads and what is prefetched */
	{INTEL_SINCE, 0x01b0, {ADD(LOAD_L2)}},
	{INTEL_SINCE, 0x02b0, {ADD(CODE_L2)}},
	{INTEL_SINCE, 0x04b0, {ADD(STORE_L2)}},
	{INTEL_SINCE, 0x08b0, {ADD(LOAD_L2), ADD(PREF_L2)}},
	/* DTLB_LOAD_MISSES, DTLB_STORE_MISSES, ITLB_MISSES: walks, and those that came to an end */
	{INTEL_SINCE, 0x0108, {ADD(LOAD_WALK)}},
	{INTEL_SINCE, 0x0e08, {ADD(LOAD_WALK)}},
	{INTEL_SINCE, 0x0149, {ADD(STORE_WALK)}},
	{INTEL_SINCE, 0x0e49, {ADD(STORE_WALK)}},
	{INTEL_SINCE, 0x0185, {ADD(CODE_WALK)}},
	{INTEL_SINCE, 0x0e85, {ADD(CODE_WALK)}},
	/* RESOURCE_STALLS.ANY */
	{INTEL_SINCE, 0x01a2, {ADD(COUNT(STALLED_BACKEND))}},

	/* FP_ARITH_INST_RETIRED: scalar, of 128 bits and more; double, single; sums with names */
	{INTEL_FLOATS, 0x01c7, {FLOATS(SCALAR, 1)}},
	{INTEL_FLOATS, 0x02c7, {FLOATS(SCALAR, 0)}},
	{INTEL_FLOATS, 0x03c7, {FLOATS(SCALAR, 1), FLOATS(SCALAR, 0)}},
	{INTEL_FLOATS, 0x04c7, {FLOATS(128, 1)}},
	{INTEL_FLOATS, 0x08c7, {FLOATS(128, 0)}},
	{INTEL_FLOATS, 0x10c7, {FLOATS(256, 1)}},
	{INTEL_FLOATS, 0x18c7, {FLOATS(128, 0), FLOATS(256, 1)}},
	{INTEL_FLOATS, 0x20c7, {FLOATS(256, 0)}},
	{INTEL_FLOATS, 0x40c7, {FLOATS(512, 1)}},
	{INTEL_FLOATS, 0x60c7, {FLOATS(256, 0), FLOATS(512, 1)}},
	{INTEL_FLOATS, 0x80c7, {FLOATS(512, 0)}},
	{INTEL_FLOATS, 0xfcc7, {FLOATS(128, 1), FLOATS(128, 0), FLOATS(256, 1), FLOATS(256, 0),
				FLOATS(512, 1), FLOATS(512, 0)}},

	/* ls_not_halted_cyc; what the kernel has for the generic ids */
	{AMD_ALL, 0x0076, {ADD(COUNT(CPU_CYCLES))}},
	{AMD_ZEN, 0xff60, {ADD(COUNT(CACHE_REFERENCES))}},
	{AMD_ZEN, 0x0964, {ADD(COUNT(CACHE_MISSES))}},
	{AMD_ZEN, 0x0287, {ADD(COUNT(STALLED_FRONTEND))}},
	{AMD_ZEN, 0x0187, {ADD(COUNT(STALLED_BACKEND))}},
	/* ex_ret_brn_misp, ex_ret_brn_tkn */
	{AMD_ALL, 0x00c3, {ADD(COUNT(BRANCH_MISSES))}},
	{AMD_ALL, 0x00c4, {ADD(CPU_BRANCHES), SUB(CPU_CONDITIONAL), ADD(CPU_TAKEN)}},
	/* Zen 1: data cache accesses */
	{AMD_ZEN, 0x0040, {ADD(LOADS), ADD(STORES)}},
	/* l2_pf_hit_l2, and what misses: l2_pf_miss_l2_hit_l3, l2_pf_miss_l2_l3 */
	{AMD_ZEN, 0xff70, {0}},
	{AMD_ZEN, 0xff71, {ADD(PREF_L2), SUB(PREF_LL)}},
	{AMD_ZEN, 0xff72, {ADD(PREF_LL)}},
	/* ic_tag_hit_miss: hits, misses, both */
	{AMD_ZEN, 0x1078e, {ADD(FETCHES), SUB(CODE_L1)}},
	{AMD_ZEN, 0x1188e, {ADD(CODE_L1)}},
	{AMD_ZEN, 0x11f8e, {ADD(FETCHES)}},
	/* fp_ret_sse_avx_ops.all, PAPI's ANY; ex_ret_mmx_fp_instr, all: these sample */
	{AMD_ZEN1, 0x0f03, {ADD(FLOPS_OF(ADD, 0)), ADD(FLOPS_OF(MUL, 0)), ADD(FLOPS_OF(DIV, 0)),
			    ADD(FLOPS_OF(FUSED, 0))}},
	{AMD_ZEN1, 0xff03, {ADD(COUNT(FLOPS_ALL))}},
	{AMD_ZEN, 0x0f03, {ADD(COUNT(FLOPS_ALL))}},
	{AMD_ZEN, 0x07cb, {ADD(COUNT(INSNS_FLOAT))}},
	/* bp_l1_tlb_miss_l2_tlb_hit */
	{AMD_ZEN, 0x0084, {ADD(COUNT(ITLB2_HITS))}},
	{0},
};

/* AMD's umasks are sets: the count is the sum of what their bits count. */
static const struct modeled_code sets[] = {
	/* Retired SSE/AVX FLOPs of Zen 1: add, multiply, divide, fused; single, double */
	{AMD_ZEN1, 0x0103, {ADD(FLOPS_OF(ADD, 0))}},
	{AMD_ZEN1, 0x0203, {ADD(FLOPS_OF(MUL, 0))}},
	{AMD_ZEN1, 0x0403, {ADD(FLOPS_OF(DIV, 0))}},
	{AMD_ZEN1, 0x0803, {ADD(FLOPS_OF(FUSED, 0))}},
	{AMD_ZEN1, 0x1003, {ADD(FLOPS_OF(ADD, 1))}},
	{AMD_ZEN1, 0x2003, {ADD(FLOPS_OF(MUL, 1))}},
	{AMD_ZEN1, 0x4003, {ADD(FLOPS_OF(DIV, 1))}},
	{AMD_ZEN1, 0x8003, {ADD(FLOPS_OF(FUSED, 1))}},
	/* fp_ret_sse_avx_ops of later ones: both; of bfloat16 */
	{AMD_ZEN, 0x0103, {FLOPS(ADD)}},
	{AMD_ZEN, 0x0203, {FLOPS(MUL)}},
	{AMD_ZEN, 0x0403, {FLOPS(DIV)}},
	{AMD_ZEN, 0x0803, {FLOPS(FUSED)}},
	{AMD_ZEN, 0x1003, {ADD(COUNT(FLOPS_BF16))}},
	{AMD_ZEN, 0x2003, {0}},
	{AMD_ZEN, 0x4003, {0}},
	{AMD_ZEN, 0x8003, {0}},
	/* ex_ret_mmx_fp_instr: x87, MMX, SSE and AVX */
	{AMD_ZEN, 0x01cb, {ADD(COUNT(INSNS_X87))}},
	{AMD_ZEN, 0x02cb, {ADD(COUNT(INSNS_MMX))}},
	{AMD_ZEN, 0x04cb, {ADD(COUNT(INSNS_SSE))}},
	/* ls_dispatch: loads, stores; what does both is among either */
	{AMD_ZEN, 0x0129, {ADD(LOADS)}},
	{AMD_ZEN, 0x0229, {ADD(STORES)}},
	{AMD_ZEN, 0x0429, {0}},
	/* ls_mab_alloc: loads, stores, prefetches */
	{AMD_ZEN, 0x0141, {ADD(LOAD_L1)}},
	{AMD_ZEN, 0x0241, {ADD(STORE_L1)}},
	{AMD_ZEN, 0x0841, {ADD(PREF_L1)}},
	/* ls_dmnd_fills_from_sys: from L2, LL, memory; not from elsewhere */
	{AMD_ZEN, 0x0143, {ADD(LOAD_L1), ADD(STORE_L1), SUB(LOAD_L2), SUB(STORE_L2)}},
	{AMD_ZEN, 0x0243, {ADD(LOAD_L2), ADD(STORE_L2), SUB(LOAD_LL), SUB(STORE_LL)}},
	{AMD_ZEN, 0x0443, {0}},
	{AMD_ZEN, 0x0843, {ADD(LOAD_LL), ADD(STORE_LL)}},
	{AMD_ZEN, 0x1043, {0}},
	{AMD_ZEN, 0x4043, {0}},
	/* ls_l1_d_tlb_miss: hits in L2 of four sizes, misses in it */
	{AMD_ZEN, 0x0145, {ADD(COUNT(TLB2_HITS)), SUB(COUNT(ITLB2_HITS))}},
	{AMD_ZEN, 0x0245, {0}},
	{AMD_ZEN, 0x0445, {0}},
	{AMD_ZEN, 0x0845, {0}},
	{AMD_ZEN, 0x1045, {ADD(LOAD_WALK), ADD(STORE_WALK)}},
	{AMD_ZEN, 0x2045, {0}},
	{AMD_ZEN, 0x4045, {0}},
	{AMD_ZEN, 0x8045, {0}},
	/*
	 * l2_request_g1: others, its prefetcher's, the program's prefetches, change_to_x, code,
	 * shared loads, stores, loads
	 */
	{AMD_ZEN, 0x0160, {0}},
	{AMD_ZEN, 0x0260, {ADD(PREF_L2)}},
	{AMD_ZEN, 0x0460, {0}},
	{AMD_ZEN, 0x0860, {0}},
	{AMD_ZEN, 0x1060, {ADD(CODE_L1)}},
	{AMD_ZEN, 0x2060, {0}},
	{AMD_ZEN, 0x4060, {ADD(STORE_L1)}},
	{AMD_ZEN, 0x8060, {ADD(LOAD_L1)}},
	/* l2_cache_req_stat: code that misses, hits; data that misses; stores, loads that hit */
	{AMD_ZEN, 0x0164, {ADD(CODE_L2)}},
	{AMD_ZEN, 0x0264, {0}},
	{AMD_ZEN, 0x0464, {ADD(CODE_L1), SUB(CODE_L2)}},
	{AMD_ZEN, 0x0864, {ADD(LOAD_L2), ADD(STORE_L2)}},
	{AMD_ZEN, 0x1064, {ADD(STORE_L1), SUB(STORE_L2)}},
	{AMD_ZEN, 0x2064, {0}},
	{AMD_ZEN, 0x4064, {ADD(LOAD_L1), SUB(LOAD_L2)}},
	{AMD_ZEN, 0x8064, {0}},
	/* bp_l1_tlb_miss_l2_tlb_miss: by size */
	{AMD_ZEN, 0x0185, {ADD(CODE_WALK)}},
	{AMD_ZEN, 0x0285, {0}},
	{AMD_ZEN, 0x0485, {0}},
	{AMD_ZEN, 0x0885, {0}},
	{AMD_ZEN, 0x1085, {0}},
	{AMD_ZEN, 0x2085, {0}},
	{AMD_ZEN, 0x4085, {0}},
	{AMD_ZEN, 0x8085, {0}},
	{0},
};
/* clang-format on */

static const struct modeled_code *find(const struct modeled_code *in, u32 model, u64 code)
{
	for (; in->models; in++)
		if (in->models & model && in->code == code)
			return in;
	return NULL;
}

static void add_terms(struct cpu_sum *sum, const struct modeled_code *code)
{
	for (u32 i = 0; i < TERMS_MAX && code->terms[i]; i++) {
		s16 term = code->terms[i];

		if (term > 0)
			sum->times[term - 1]++;
		else
			sum->times[-term - 1]--;
	}
}

bool loads_code(const struct cpu_pmu_config *config, u64 code)
{
	u32 model = raw_code_model(config);

	return (model & INTEL_SINCE && code == 0x01cd) || (model & INTEL_NEHALEM && code == 0x100b);
}

bool loads_need_aux(const struct cpu_pmu_config *config)
{
	return raw_code_model(config) & INTEL_LOADS_AUX;
}

bool modeled_code_find(const struct cpu_pmu_config *config, u64 code, struct cpu_sum *sum)
{
	u32 model = raw_code_model(config);
	const struct modeled_code *c = find(codes, model, code);

	memset(sum, 0, sizeof(*sum));
	if (c) {
		add_terms(sum, c);
		return true;
	}
	for (u64 bit = 0x100; bit < 0x10000; bit <<= 1) {
		if (!(code & bit))
			continue;
		c = find(sets, model, (code & ~0xff00ull) | bit);
		if (!c)
			return false;
		add_terms(sum, c);
	}
	return code & 0xff00;
}

/* clang-format off */
static const struct {
	u32 models;
	struct pmu_file file;
} files[] = {
	{INTEL_ALL, {"events/cpu-cycles", "event=0x3c\n"}},
	{INTEL_ALL, {"events/cache-references", "event=0x2e,umask=0x4f\n"}},
	{INTEL_ALL, {"events/cache-misses", "event=0x2e,umask=0x41\n"}},
	{INTEL_ALL, {"events/branch-misses", "event=0xc5\n"}},
	{INTEL_ALL, {"events/bus-cycles", "event=0x3c,umask=0x1\n"}},
	{INTEL_ALL, {"events/ref-cycles", "event=0x0,umask=0x3\n"}},
	{INTEL_NEHALEM, {"events/mem-loads", "event=0x0b,umask=0x10,ldlat=3\n"}},
	{INTEL_SINCE, {"events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"}},
	{INTEL_LOADS_AUX, {"events/mem-loads-aux", "event=0x03,umask=0x82\n"}},
	{INTEL_STORE_SAMPLE, {"events/mem-stores", "event=0xcd,umask=0x2\n"}},
	{INTEL_ALL_STORES, {"events/mem-stores", "event=0xd0,umask=0x82\n"}},
	{AMD_ALL, {"events/cpu-cycles", "event=0x76\n"}},
	{AMD_ALL, {"events/branch-misses", "event=0xc3\n"}},
	{AMD_ZEN, {"events/cache-references", "event=0x60,umask=0xff\n"}},
	{AMD_ZEN, {"events/cache-misses", "event=0x64,umask=0x9\n"}},
	{AMD_ZEN, {"events/stalled-cycles-frontend", "event=0x87,umask=0x2\n"}},
	{AMD_ZEN, {"events/stalled-cycles-backend", "event=0x87,umask=0x1\n"}},
};
/* clang-format on */

void modeled_code_files(const struct cpu_pmu_config *config, struct pmu_file *into)
{
	u32 model = raw_code_model(config);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i].models & model)
			into[n++] = files[i].file;
}
