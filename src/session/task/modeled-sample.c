#include "session/task/modeled-sample.h"

#include "abi/modeled.h"
#include "model/feed-watch.h"

#define SRC(field, what) ((u64)PERF_MEM_##field##_##what << PERF_MEM_##field##_SHIFT)
#define NUM(what)        ((u64)PERF_MEM_LVLNUM_##what << PERF_MEM_LVLNUM_SHIFT)

#define NOTHING_KNOWN \
	(SRC(OP, NA) | SRC(LVL, NA) | SRC(SNOOP, NA) | SRC(LOCK, NA) | SRC(TLB, NA) | NUM(NA))

/* As Linux has it of Intel's CPUs: another core's line is found by way of the last level. */
static u64 level(u8 source)
{
	switch (source) {
	case MODEL_FROM_L1: return SRC(LVL, HIT) | SRC(LVL, L1) | NUM(L1);
	case MODEL_FROM_L2: return SRC(LVL, HIT) | SRC(LVL, L2) | NUM(L2);
	case MODEL_FROM_LL:
	case MODEL_FROM_CORE: return SRC(LVL, HIT) | SRC(LVL, L3) | NUM(L3);
	case MODEL_FROM_MEMORY: return SRC(LVL, HIT) | SRC(LVL, LOC_RAM) | NUM(RAM);
	default: return SRC(LVL, NA) | NUM(NA);
	}
}

static u64 snoop(u8 how)
{
	switch (how) {
	case MODEL_SNOOP_NONE: return SRC(SNOOP, NONE);
	case MODEL_SNOOP_MISS: return SRC(SNOOP, MISS);
	case MODEL_SNOOP_HIT: return SRC(SNOOP, HIT);
	case MODEL_SNOOP_HITM: return SRC(SNOOP, HITM);
	default: return SRC(SNOOP, NA);
	}
}

static u64 tlb(u8 source)
{
	switch (source) {
	case MODEL_TLB_L1: return SRC(TLB, HIT) | SRC(TLB, L1);
	case MODEL_TLB_L2: return SRC(TLB, HIT) | SRC(TLB, L2);
	case MODEL_TLB_WALK: return SRC(TLB, MISS) | SRC(TLB, L2);
	default: return SRC(TLB, NA);
	}
}

u64 modeled_data_src(const struct trace_modeled *hit, u32 parts)
{
	u64 src = hit->locked ? SRC(LOCK, LOCKED) : 0;

	switch (hit->kind) {
	case FEED_HIT_LOAD: src |= SRC(OP, LOAD); break;
	case FEED_HIT_STORE: src |= SRC(OP, STORE); break;
	case FEED_HIT_PREFETCH: return SRC(OP, PFETCH) | (NOTHING_KNOWN & ~SRC(OP, NA));
	case FEED_HIT_FETCH: return SRC(OP, EXEC) | (NOTHING_KNOWN & ~SRC(OP, NA));
	default: return NOTHING_KNOWN;
	}
	src |= parts & MODEL_TLBS ? tlb(hit->tlb) : SRC(TLB, NA);
	if (!(parts & MODEL_CACHES))
		return src | SRC(LVL, NA) | NUM(NA) | SRC(SNOOP, NA);
	src |= snoop(hit->snoop);
	/* Of a store PMUs say whether L1 had the line, and no more. */
	if (hit->kind == FEED_HIT_STORE && hit->misses)
		return src | SRC(LVL, MISS) | SRC(LVL, L1) | NUM(L1);
	return src | level(hit->source);
}

void modeled_sample(struct guest_thread *th, u32 counter, const struct trace_sample *s,
		    struct sample_facts *facts)
{
	u32 parts = __atomic_load_n(segment_model_parts(th->process->s->meters.segment),
				    __ATOMIC_RELAXED);

	guest_thread_modeled_at(th, counter, s->hit.count);
	facts->exact_ip = true;
	facts->sample.ip = s->ip;
	facts->sample.addr = s->hit.addr;
	facts->sample.weight = s->hit.latency;
	facts->sample.data_src = modeled_data_src(&s->hit, parts);
	facts->has |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT |
		      PERF_SAMPLE_DATA_SRC;
}
