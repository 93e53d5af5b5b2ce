/* Loads, stores and fetches: the way of those that hit, and what a PMU would say of the others. */
#include "model/hierarchy-priv.h"

static void worse(struct model_access *a, const struct found *f)
{
	if (f->source > a->source)
		a->source = f->source;
	if (f->snoop > a->snoop)
		a->snoop = f->snoop;
	if (f->latency > a->latency)
		a->latency = f->latency;
}

/* A line of a load or store that is no plain hit. */
static inline void data_other(struct model_core *core, u64 ip, u64 addr, bool store,
			      struct model_access *a)
{
	u64 line = addr & core->line_mask;
	u64 *tag = tags_touch(&core->l1d, tags_set(&core->l1d, line), line | TAG_VALID);
	bool first;
	struct found f = {.latency = core->l1_latency};

	if (!tag) {
		count_cache(core, MODEL_L1D, store ? MODEL_WRITE : MODEL_READ, true);
		a->misses++;
		hierarchy_data_miss(core, ip, addr, store, &f);
		worse(a, &f);
		return;
	}
	first = *tag & LINE_PREFETCHED;
	*tag &= ~LINE_PREFETCHED;
	if (store) {
		if (!(*tag & LINE_OWNED)) {
			f.snoop = (u8)hierarchy_own(core, line);
			f.latency = core->model->machine.memory.snoop;
			worse(a, &f);
		}
		*tag |= LINE_OWNED | LINE_DIRTY;
	}
	if (first)
		hierarchy_data_used_first(core, ip, addr);
}

static void data_two_lines(struct model_core *core, u64 ip, u64 first, u64 last, bool store,
			   struct model_access *a)
{
	struct found f;

	if (core->model->machine.memory.crossing == MACHINE_EACH) {
		for (u64 line = first;; line += ~core->line_mask + 1) {
			data_other(core, ip, line, store, a);
			if (line == last)
				return;
		}
	}
	if (hierarchy_crossing(core, first, last, store ? LINE_STORE : LINE_LOAD, &f))
		return;
	count_cache(core, MODEL_L1D, store ? MODEL_WRITE : MODEL_READ, true);
	a->misses++;
	worse(a, &f);
}

__attribute__((noinline)) static void data_tlb(struct model_core *core, u64 addr, u64 last, u32 op,
					       struct model_access *a)
{
	const struct machine *m = &core->model->machine;
	u64 page = addr & core->page_mask, end = last & core->page_mask;

	/* That page was used last. */
	if (page + 1 == core->data_page && page == end)
		return;
	core->data_page = core->model->nr_huge ? 0 : end + 1;
	a->tlb = (u8)tlb_lookup(core, MACHINE_DTLB, addr, op);
	if (page != end) {
		u8 other = (u8)tlb_lookup(core, MACHINE_DTLB, last, op);

		if (other > a->tlb)
			a->tlb = other;
	}
	if (a->tlb)
		a->latency += m->tlb[MACHINE_TLB2].latency +
			      (a->tlb == MODEL_TLB_WALK ? m->penalty.walk : 0);
}

/* What may change something. */
static inline struct model_access look_up(struct model_core *core, u64 ip, u64 addr, u64 last,
					  bool store)
{
	struct model_access a = {.latency = core->l1_latency};
	u64 first = addr & core->line_mask, end = last & core->line_mask;
	bool recent = true;

	if (likely(first == end)) {
		recent = tag_is(recent_use(core, first, store), first | TAG_VALID);
		if (unlikely(store && core->model->machine.cache[MACHINE_L1D].no_allocate))
			core->recent.word[tags_set(&core->recent, first)] = 0;
		see_line(core, first, store ? SIGHT_STORE : SIGHT_LOAD);
		if (core->parts & MODEL_CACHES)
			data_other(core, ip, addr, store, &a);
		if (core->parts & MODEL_TLBS && !recent)
			data_tlb(core, addr, last, store ? MODEL_WRITE : MODEL_READ, &a);
		return a;
	}
	/* A line that is accessed again at once has its translation from before. */
	for (u64 line = first;; line += ~core->line_mask + 1) {
		recent &= tag_is(recent_use(core, line, store), line | TAG_VALID);
		see_line(core, line, store ? SIGHT_STORE : SIGHT_LOAD);
		if (store && core->model->machine.cache[MACHINE_L1D].no_allocate)
			core->recent.word[tags_set(&core->recent, line)] = 0;
		if (line == end)
			break;
	}
	if (core->parts & MODEL_CACHES)
		data_two_lines(core, ip, first, end, store, &a);
	if (core->parts & MODEL_TLBS && !recent)
		data_tlb(core, addr, last, store ? MODEL_WRITE : MODEL_READ, &a);
	return a;
}

__attribute__((noinline)) static struct model_access data_slow(struct model_core *core, u64 ip,
							       u64 addr, u64 last, bool store)
{
	struct model_access a = look_up(core, ip, addr, last, store);

	if (!store && a.latency > core->l1_latency)
		count_slow(core, a.latency, a.source == MODEL_FROM_MEMORY);
	return a;
}

static inline struct model_access data(struct model_core *core, u64 ip, u64 addr, u32 size,
				       bool store)
{
	u64 last = addr + size - (size > 0);
	u64 line = addr & core->line_mask;
	u64 recent = core->recent.word[tags_set(&core->recent, line)];
	u64 matters = store ? ~0ull : ~LINE_DIRTY, wants = store ? LINE_DIRTY : 0;

	count_cache(core, MODEL_L1D, store ? MODEL_WRITE : MODEL_READ, false);
	if (likely((recent & matters) == (line | TAG_VALID | wants) &&
		   line == (last & core->line_mask)))
		return (struct model_access){.latency = core->l1_latency};
	return data_slow(core, ip, addr, last, store);
}

struct model_access model_load(struct model_core *core, u64 ip, u64 addr, u32 size)
{
	return data(core, ip, addr, size, false);
}

struct model_access model_store(struct model_core *core, u64 ip, u64 addr, u32 size)
{
	return data(core, ip, addr, size, true);
}

void model_prefetch(struct model_core *core, u64 addr)
{
	if (core->parts & MODEL_CACHES)
		hierarchy_prefetch(core, addr & core->line_mask);
}

static inline void fetch_line(struct model_core *core, u64 line, u32 *near)
{
	u64 *tag = tags_touch_near(&core->l1i, tags_set(&core->l1i, line), line | TAG_VALID, near);

	count_cache(core, MODEL_L1I, MODEL_READ, false);
	if (unlikely(!tag)) {
		count_cache(core, MODEL_L1I, MODEL_READ, true);
		hierarchy_fetch_miss(core, line);
	} else if (unlikely(*tag & LINE_PREFETCHED)) {
		*tag &= ~LINE_PREFETCHED;
		hierarchy_fetch_used_first(core, line);
	}
}

/* As model_fetch_lines(). */
static inline void fetch_one_line(struct model_core *core, u64 line, u32 *near)
{
	see_line(core, line, SIGHT_FETCH);
	if (likely(core->parts & MODEL_CACHES))
		fetch_line(core, line, near);
	if (core->parts & MODEL_TLBS) {
		u64 page = line & core->page_mask;

		core->count[model_cache_counter(MODEL_ITLB, MODEL_READ, false)] += 1;
		if (page + 1 != core->fetch_page)
			tlb_lookup(core, MACHINE_ITLB, line, MODEL_READ);
		core->fetch_page = page + 1;
	}
	core->fetch_line = line + 1;
}

/* More than a line. */
__attribute__((noinline)) static void fetch_several(struct model_core *core, u64 first, u64 last,
						    u32 *near)
{
	struct found f;

	if (core->model->machine.memory.crossing == MACHINE_EACH) {
		for (u64 line = first;; line += ~core->line_mask + 1) {
			if (line + 1 != core->fetch_line)
				fetch_line(core, line, near);
			if (line == last)
				break;
		}
	} else {
		count_cache(core, MODEL_L1I, MODEL_READ, false);
		if (!hierarchy_crossing(core, first, last, LINE_FETCH, &f))
			count_cache(core, MODEL_L1I, MODEL_READ, true);
	}
}

void model_fetch_lines(struct model_core *core, u64 first, u64 last, u32 *near)
{
	if (likely(first == last)) {
		fetch_one_line(core, first, near);
		return;
	}
	see_line(core, first, SIGHT_FETCH);
	see_line(core, last, SIGHT_FETCH);
	if (core->parts & MODEL_CACHES)
		fetch_several(core, first, last, near);
	if (core->parts & MODEL_TLBS) {
		u64 page = first & core->page_mask, end = last & core->page_mask;

		core->count[model_cache_counter(MODEL_ITLB, MODEL_READ, false)] += 1;
		if (page + 1 != core->fetch_page)
			tlb_lookup(core, MACHINE_ITLB, first, MODEL_READ);
		if (unlikely(end != page))
			tlb_lookup(core, MACHINE_ITLB, last, MODEL_READ);
		core->fetch_page = end + 1;
	}
	core->fetch_line = last + 1;
}

void model_fetch(struct model_core *core, u64 addr, u32 len)
{
	u64 first = addr & core->line_mask, last = (addr + len - (len > 0)) & core->line_mask;
	u32 near = 0;

	if (unlikely(first + 1 != core->fetch_line || first != last))
		model_fetch_lines(core, first, last, &near);
}
