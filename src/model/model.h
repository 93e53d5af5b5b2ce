/*
 * PURPOSE: simulates a machine for the threads of one process: caches, TLBs, branch prediction and
 * what that costs. Whoever sees a program's instructions feeds it, and reads counters that stand
 * for those of a PMU. doc/model.md says what is modelled and how far off that is.
 *
 * The caller brings the memory; nothing is allocated, and the memory holds pointers into itself, so
 * it stays where it is (a fork's copy can be used). Cores share the last-level cache: one caller at
 * a time, and what he feeds decides, nothing else: the same trace gives the same counts.
 *
 * A part that was not asked for has no memory, and its functions are not to be called.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "model/machine.h"

enum model_part {
	MODEL_BRANCHES = 1, /* model_branch() */
	MODEL_CACHES = 2,   /* model_fetch(), model_load(), model_store() */
	MODEL_TLBS = 4,     /* the same */
	MODEL_CYCLES = 8,   /* model_work(), and the penalties of the other parts */
	MODEL_TIMING = 15,  /* all that cycles depend on */
	MODEL_FLOATS = 16,  /* model_floats(): nothing of a machine */
	MODEL_PARTS = 31,
};

#define MODEL_CORES 64u

/* The ids, operations and results of PERF_TYPE_HW_CACHE in its order. */
enum model_cache_id {
	MODEL_L1D,
	MODEL_L1I,
	MODEL_LL,
	MODEL_DTLB,
	MODEL_ITLB,
	MODEL_BPU,
	MODEL_NODE,
	MODEL_CACHE_IDS,
};

enum model_cache_op {
	MODEL_READ,
	MODEL_WRITE,
	MODEL_PREFETCH,
	MODEL_OPS,
};

#define MODEL_LATENCIES 14u /* of loads that find something not at once; most */

enum model_counter {
	/* PERF_TYPE_HARDWARE in its order: MODEL_CPU_CYCLES + config. */
	MODEL_CPU_CYCLES,
	MODEL_INSTRUCTIONS,
	MODEL_CACHE_REFERENCES,
	MODEL_CACHE_MISSES,
	MODEL_BRANCH_INSTRUCTIONS,
	MODEL_BRANCH_MISSES,
	MODEL_BUS_CYCLES,
	MODEL_STALLED_FRONTEND,
	MODEL_STALLED_BACKEND,
	MODEL_REF_CYCLES,
	/* + model_cache_counter(id, op, miss) */
	MODEL_HW_CACHE,
	MODEL_L2_ACCESSES = MODEL_HW_CACHE + MODEL_CACHE_IDS * MODEL_OPS * 2,
	MODEL_L2_MISSES,
	MODEL_LL_FETCHES, /* instructions looked for in LL; the matrix has data only */
	MODEL_LL_FETCH_MISSES,
	MODEL_TLB2_HITS,
	MODEL_SNOOP_HITS,         /* a line came while another core had it, unmodified */
	MODEL_SNOOP_HITMS,        /* the same, modified */
	MODEL_INVALIDATIONS,      /* lines that other cores lost to a store of this one */
	MODEL_WRITEBACKS,         /* modified lines that left for memory */
	MODEL_BTB_MISSES,         /* taken direct branches that the BTB did not know */
	MODEL_CONDITIONAL_MISSES, /* of MODEL_BRANCH_MISSES */
	MODEL_ITLB2_HITS,         /* of MODEL_TLB2_HITS those of instructions */
	MODEL_DATA_ACCESSES,      /* loads and stores */
	/* What is calculated, as AMD counts it: + model_flops_counter(). */
	MODEL_FLOPS,
	MODEL_FLOPS_BF16 = MODEL_FLOPS + 8,
	/* Instructions that calculate, as Intel counts them: + model_float_insns_counter(). */
	MODEL_FLOAT_INSNS,
	/* Instructions of each set, whatever they do. */
	MODEL_INSNS_X87 = MODEL_FLOAT_INSNS + 8,
	MODEL_INSNS_MMX,
	MODEL_INSNS_SSE, /* and AVX */
	/* From here on sums of others: model_counts() works them out. */
	MODEL_INSNS_FLOAT, /* of all three sets */
	/* Of both types: + enum model_flops; and all of these. */
	MODEL_FLOPS_OF,
	MODEL_FLOPS_ALL = MODEL_FLOPS_OF + 4,
	MODEL_SLOW_LOADS, /* that take long: model_loads_from() */
	MODEL_COUNTERS = MODEL_SLOW_LOADS + MODEL_LATENCIES,
};

enum model_flops {
	MODEL_ADD, /* and subtract */
	MODEL_MUL,
	MODEL_DIV,   /* and square roots */
	MODEL_FUSED, /* multiply and add: two for each element */
};

static inline u32 model_flops_counter(enum model_flops kind, bool is_double)
{
	return MODEL_FLOPS + kind * 2 + is_double;
}

/* @width: enum floats_width (floats.h). What multiplies and adds counts twice. */
static inline u32 model_float_insns_counter(u32 width, bool is_double)
{
	return MODEL_FLOAT_INSNS + width * 2 + is_double;
}

static inline u32 model_cache_counter(u32 id, u32 op, bool miss)
{
	return MODEL_HW_CACHE + (id * MODEL_OPS + op) * 2 + miss;
}

/* Where data came from. */
enum model_source {
	MODEL_FROM_L1,
	MODEL_FROM_L2,
	MODEL_FROM_LL,
	MODEL_FROM_CORE, /* another core's cache, modified */
	MODEL_FROM_MEMORY,
};

enum model_tlb_source {
	MODEL_TLB_L1,
	MODEL_TLB_L2,
	MODEL_TLB_WALK,
};

enum model_snoop {
	MODEL_SNOOP_NONE, /* nobody was asked */
	MODEL_SNOOP_MISS,
	MODEL_SNOOP_HIT,
	MODEL_SNOOP_HITM,
};

/* What became of an access; of one to two lines or pages the worse. */
struct model_access {
	u32 latency; /* cycles */
	u8 source;   /* enum model_source */
	u8 tlb;      /* enum model_tlb_source */
	u8 snoop;    /* enum model_snoop */
	u8 misses;   /* lines that were not in L1 */
};

/* As trace_branch_type of abi/trace.h. */
enum model_branch_kind {
	MODEL_COND = 1,
	MODEL_JUMP,
	MODEL_JUMP_IND,
	MODEL_CALL,
	MODEL_CALL_IND,
	MODEL_RETURN,
};

struct model;
struct model_core;

/*
 * Bytes that a model of @cores needs, 1 to MODEL_CORES, of @parts; a multiple of 64. @m has been
 * checked.
 */
u64 model_size(const struct machine *m, u32 cores, u32 parts);

/*
 * Makes one in @memory: model_size() bytes of zeros at an address that is a multiple of 64. Pages
 * that nobody writes to stay zero. Never fails.
 */
struct model *model_init(void *memory, const struct machine *m, u32 cores, u32 parts);

/*
 * Of that memory the first bytes, which with LL's tables are nearly all that a program of one
 * thread uses.
 */
u64 model_usual(const struct model *model);

/* LL's tables, *@size bytes. How much of them is used is the program's: a line takes some ten. */
const void *model_ll_tables(const struct model *model, u64 *size);

/* The core of a thread, @index below the number of cores. More threads than cores share some. */
struct model_core *model_core(struct model *model, u32 index);

const struct machine *model_machine(const struct model *model);

/*
 * Addresses from @start to before @end are in huge pages, or no longer. Both are multiples of their
 * size. False: there are too many such ranges; these stay small.
 */
bool model_huge_pages(struct model *model, u64 start, u64 end, bool huge);

/* Instructions of @len bytes at @addr: one, or a run of them without a branch in between. */
void model_fetch(struct model_core *core, u64 addr, u32 len);

/*
 * The same of lines @first to @last, which are not just that of the last fetch. *near: where it was
 * found the last time, 0 at first; that makes it quicker.
 */
void model_fetch_lines(struct model_core *core, u64 first, u64 last, u32 *near);

/* @ip is that of the instruction. An instruction that does both loads before it stores. */
struct model_access model_load(struct model_core *core, u64 ip, u64 addr, u32 size);
struct model_access model_store(struct model_core *core, u64 ip, u64 addr, u32 size);

/*
 * What a string instruction at @ip does that repeats @n times and goes over @nr strings, one or
 * two: the same as so many accesses, of an element of each in turn. @down: to lower addresses. Each
 * string is where it would go on, then.
 */
struct model_string {
	u64 at;
	u32 size; /* of an element, not 0 */
	bool stores;
};
void model_strings(struct model_core *core, u64 ip, struct model_string *s, u32 nr, u64 n,
		   bool down);

#define MODEL_FILTER_SETS 512u /* most */

/*
 * A filter before the model. It has an entry for each of model_filter_sets() sets of lines, that of
 * an address being its line's number modulo that: the line that was accessed last, and whether it
 * has been stored to since it became that. A load of the line in its entry, and a store to one that
 * was stored to, change nothing, and may be told by their number alone: model_hits(). An access to
 * several lines is told in any case, and makes each of them the last one of its set. An entry may
 * be forgotten at any time. 0 sets: this machine has no such filter.
 */
u32 model_filter_sets(const struct machine *m);
void model_hits(struct model_core *core, u64 loads, u64 stores);

/*
 * Where the filter of @core is, so that an entry whose line another core takes is set to 0: two
 * arrays of an entry for each set, for loads and for stores. NULL: there is none.
 */
void model_use_filter(struct model_core *core, u64 *loads, u64 *stores);

/* By the program: into L1D. */
void model_prefetch(struct model_core *core, u64 addr);

/*
 * A branch at @ip, behind which @next follows. @target: where it goes if it is taken. True: it was
 * predicted wrongly.
 */
bool model_branch(struct model_core *core, u64 ip, u64 next, enum model_branch_kind kind,
		  bool taken, u64 target);

/* @insns instructions have retired that take @ticks (cycles.h) by themselves. */
void model_work(struct model_core *core, u32 insns, u64 ticks);

/* As many instructions have retired that do @work (floats_work() of floats.h). */
void model_floats(struct model_core *core, u16 work, u64 times);

/*
 * Which parts a counter needs, enum model_part: without one of them it says something else. 0: the
 * counter is no one's, a cell of the matrix that no machine has.
 */
u32 model_parts_of(enum model_counter counter);

/*
 * The counter of the loads that take @latency cycles or more on @m; MODEL_COUNTERS: none takes as
 * long.
 */
u32 model_loads_from(const struct machine *m, u32 latency);

/* What a counter stands at; never decreases. */
u64 model_count(const struct model_core *core, enum model_counter counter);

/*
 * Of a model that sees a program in windows, between which the program does what nobody tells of
 * (estimate.c). What @core is fed with next counts @weight times; 0: it only warms up; 1: all is
 * seen, and this is said of the first, too. @apart: a window begins, and something came before it.
 * A filter before the model has forgotten its entries then.
 */
void model_window(struct model_core *core, u32 weight, bool apart);

/* That was it. Until @core is fed again its counters stand at what is estimated. */
void model_weigh(struct model_core *core);

/*
 * Of what it has just been fed with somebody has been told counts: when it is weighed nothing of it
 * is taken back, but what is too much of what comes later.
 */
void model_keep(struct model_core *core);

/*
 * A machine as models of their own, its halves: predictors have nothing in common with caches and
 * TLBs. Each has its part of the counters when all are fed with the same trace, one after the other
 * or side by side.
 */
#define MODEL_HALVES 2u

struct model_half {
	u32 parts; /* of its model */
	u32 fed;   /* of these, which its feed (feed.h) tells of; work is told to one half alone */
};

/* The halves of a model of @parts; returns how many there are. */
u32 model_halves(u32 parts, struct model_half *half);

/* What all counters stand at. */
void model_counts(const struct model_core *core, u64 *counts);

/* The sums of what model_counts() says of the same core of @n halves. */
void model_halves_sum(const struct machine *m, const u64 (*counts)[MODEL_COUNTERS], u32 n,
		      u64 *sum);

#endif
