/* What the files of the simulation share: the model and its cores as they lie in memory. */
#ifndef MODEL_MODEL_PRIV_H
#define MODEL_MODEL_PRIV_H

#include "model/model.h"
#include "model/predictor.h"
#include "model/sights.h"
#include "model/tags.h"

/* Flags of a line. */
#define LINE_DIRTY      2ull
#define LINE_OWNED      4ull /* no other core has it: a store need not ask */
#define LINE_PREFETCHED 8ull /* and not used since */

#define MODEL_HUGE_RANGES 32u
#define MODEL_STRIDES     64u

enum model_tlb_array {
	TLB_SMALL,
	TLB_HUGE,
};

struct stride {
	u64 ip, last;
	s64 step;
	u32 sure;
};

/* What was not where it was looked for, perhaps because the model has not seen all (estimate.c). */
enum model_unsure {
	/* Lines from memory, by enum sight_kind, and walks. */
	UNSURE_LINE,
	UNSURE_PAGE = UNSURE_LINE + SIGHT_KINDS,
	UNSURE_PREFETCH = UNSURE_PAGE + SIGHT_KINDS,
	/* Cycles that these lines have cost, but those of walks. */
	UNSURE_COST,
	/* Loads that were slow for them, by latency. */
	UNSURE_SLOW = UNSURE_COST + SIGHT_KINDS,
	UNSURES = UNSURE_SLOW + MODEL_LATENCIES,
};

#define SEEN_LINES 512u
#define SEEN_PAGES 64u

/* Of a core that sees its program in windows (estimate.c). */
struct core_windows {
	u32 number, weight; /* of the window */
	bool told;          /* model_keep() */
	/* What the core's stood at when it was weighed last, and what was taken from them then. */
	u64 count[MODEL_COUNTERS], ticks, stalled_front, stalled_back, unsure[UNSURES];
	s64 taken[MODEL_COUNTERS], taken_front, taken_back;
	u64 line[SEEN_LINES], page[SEEN_PAGES]; /* seen in this window; | 1 */
};

struct model_core {
	/* What nearly every access touches comes first. */
	u64 fetch_line, fetch_page; /* of the last fetch, + 1; 0: there was none */
	u64 data_page; /* likewise of the last look into the TLB for data; 0 with huge pages */
	u32 parts;
	u32 page_shift;
	bool in_windows; /* else all is seen */
	u64 line_mask;
	u64 page_mask;
	u64 count[MODEL_COUNTERS];       /* those that are not worked out in model_count() */
	u64 ticks;                       /* without what is stalled */
	u64 stalled_front, stalled_back; /* cycles */
	u64 missed_at;                   /* instructions before the last miss to memory, + 1 */
	struct model *model;
	u32 index;
	u32 l1_latency;
	/*
	 * Of each set of L1D the line that the program accessed last, LINE_DIRTY if it was stored
	 * to since: to access it again changes nothing. One tag a set.
	 */
	struct tags recent;
	u64 *filter[2]; /* that of translated code, or NULL: for loads and for stores */
	u64 unsure[UNSURES];
	struct core_windows *windows;
	struct tags l1i, l1d, l2;
	struct tags tlb[MACHINE_TLBS][2];
	struct predictor predictor;
	struct stride stride[MODEL_STRIDES];
};

struct huge_range {
	u64 start, end;
};

struct model {
	struct machine machine;
	u32 parts;
	u32 cores;  /* that there are */
	u32 active; /* of these, below which all that have been asked for lie */
	u32 nr_huge;
	u32 page_shift, huge_shift;
	u32 nr_slow, slow[MODEL_LATENCIES]; /* latencies of loads beyond that of L1D; ascending */
	u8 *bias;                           /* of branches, enum site_bias; with TAGE */
	struct tags ll;
	u32 windows;                  /* how many have begun */
	struct sights *lines, *pages; /* of all cores; with caches, with TLBs */
	struct huge_range huge[MODEL_HUGE_RANGES];
	u64 cores_at, core_size, ll_at, end;
	struct model_core *core[MODEL_CORES]; /* those that have been asked for */
};

/* estimate.c. The rest of see_line() and see_page(). */
void see_line_other(struct model_core *core, u64 line, enum sight_kind kind);
void see_page_other(struct model_core *core, u64 page, enum sight_kind kind);

/* The program uses a line, or a page by its number. */
static inline void see_line(struct model_core *core, u64 line, enum sight_kind kind)
{
	if (unlikely(core->in_windows) &&
	    core->windows->line[(line >> core->recent.shift) % SEEN_LINES] != (line | 1))
		see_line_other(core, line, kind);
}

static inline void see_page(struct model_core *core, u64 page, enum sight_kind kind)
{
	if (unlikely(core->in_windows) && core->windows->page[page % SEEN_PAGES] != (page << 1 | 1))
		see_page_other(core, page, kind);
}

/* The line is accessed, and is the last of its set from now on. What was. */
static inline u64 recent_use(struct model_core *core, u64 line, bool store)
{
	u64 *word = core->recent.word + tags_set(&core->recent, line), was = *word;

	if (!tag_is(was, line | TAG_VALID))
		*word = line | TAG_VALID;
	if (store)
		*word |= LINE_DIRTY;
	return was;
}

/* A load has taken longer than one that hits L1D. */
static inline void count_slow(struct model_core *core, u32 latency, bool from_memory)
{
	u32 i = 0;

	while (i < core->model->nr_slow && core->model->slow[i] < latency)
		i++;
	if (i == core->model->nr_slow)
		return;
	core->count[MODEL_SLOW_LOADS + i]++;
	core->unsure[UNSURE_SLOW + i] += from_memory;
}

static inline bool recent_is(const struct model_core *core, u64 line)
{
	return tag_is(core->recent.word[tags_set(&core->recent, line)], line | TAG_VALID);
}

static inline void count(struct model_core *core, u32 counter)
{
	core->count[counter]++;
}

static inline void count_cache(struct model_core *core, u32 id, u32 op, bool miss)
{
	core->count[model_cache_counter(id, op, miss)]++;
}

/* As model_work(). */
static inline void work(struct model_core *core, u32 insns, u64 ticks)
{
	core->count[MODEL_INSTRUCTIONS] += insns;
	core->ticks += ticks;
}

/* Cycles are lost to data or to instructions. */
static inline void lose(struct model_core *core, u32 cycles)
{
	core->stalled_back += cycles;
}

static inline void lose_front(struct model_core *core, u32 cycles)
{
	core->stalled_front += cycles;
}

/* tlb.c. The rest of tlb_lookup(). */
enum model_tlb_source tlb_lookup_other(struct model_core *core, enum machine_tlb_id id, u64 addr,
				       u32 op);

/* A page's key: its number, its size, and that it is one. */
static inline u64 tlb_key(u64 page, bool huge)
{
	return page << 5 | (huge ? 16 : 0) | TAG_VALID;
}

static inline enum sight_kind tlb_sight(enum machine_tlb_id id, u32 op)
{
	return id == MACHINE_ITLB ? SIGHT_FETCH : op == MODEL_WRITE ? SIGHT_STORE : SIGHT_LOAD;
}

/* Looks the page of @addr up; counts a miss for @op. */
static inline enum model_tlb_source tlb_lookup(struct model_core *core, enum machine_tlb_id id,
					       u64 addr, u32 op)
{
	struct tags *t = &core->tlb[id][TLB_SMALL];

	see_page(core, addr >> core->page_shift, tlb_sight(id, op));
	/* One set, in which the page is where one like it was last. */
	if (likely(t->hint && !core->model->nr_huge) &&
	    tags_touch_hinted(t, tlb_key(addr >> core->page_shift, false)))
		return MODEL_TLB_L1;
	return tlb_lookup_other(core, id, addr, op);
}

#endif
