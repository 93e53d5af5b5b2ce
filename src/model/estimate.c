/*
 * What a model counts of a program that it sees in windows. All that it counts in a window counts
 * as often as the window is for; but a line or a page that it has never seen, because the program
 * has used it in gaps only, looks new, and what that costs would be multiplied with the rest. How
 * many of these were new is estimated (sights.h). The others would have been in some cache, or in a
 * TLB, and are taken back.
 *
 * In which cache is estimated, too. One that has more places than the program uses lines for some
 * time has all of them. If it has fewer it is full, and the places that are not for lines which
 * the model knows are for those that it does not know. Wood, Hill and Kessler ("A model for
 * estimating trace-sample miss ratios", SIGMETRICS 1991) ask likewise how often what is unknown
 * would have been a hit.
 */
#include "model/model-priv.h"

void see_line_other(struct model_core *core, u64 line, enum sight_kind kind)
{
	struct core_windows *w = core->windows;

	u64 number = line >> core->recent.shift;

	w->line[number % SEEN_LINES] = line | 1;
	sights_see(core->model->lines, number, kind, w->number, w->weight);
}

void see_page_other(struct model_core *core, u64 page, enum sight_kind kind)
{
	struct core_windows *w = core->windows;

	w->page[page % SEEN_PAGES] = page << 1 | 1;
	sights_see(core->model->pages, page, kind, w->number, w->weight);
}

void model_window(struct model_core *core, u32 weight, bool apart)
{
	struct core_windows *w = core->windows;

	core->in_windows = true;
	w->weight = weight;
	if (!apart)
		return;
	w->number = ++core->model->windows;
	if (core->model->lines)
		sights_window(core->model->lines, w->number);
	if (core->model->pages)
		sights_window(core->model->pages, w->number);
	__builtin_memset(w->line, 0, sizeof(w->line));
	__builtin_memset(w->page, 0, sizeof(w->page));
	/* What is used again at once has to be seen once in each window. */
	if (core->recent.sets)
		__builtin_memset(core->recent.word, 0, core->recent.sets * sizeof(u64));
	core->fetch_line = core->fetch_page = core->data_page = 0;
}

/* Of SIGHTS_ALL: how often what is unknown, and not new, is in none of @places for @all. */
static u64 not_there(const struct sights *s, u64 all, u64 places)
{
	u64 known = min_u64(sights_seen(s), places);

	return all > places ? (all - places) * SIGHTS_ALL / (all - known) : 0;
}

/* Of SIGHTS_ALL: how often one that was taken for new, of which so many are, is in these. */
static u64 is_there(const struct sights *s, u32 fresh, u64 all, u64 places)
{
	return (SIGHTS_ALL - fresh) * (SIGHTS_ALL - not_there(s, all, places)) / SIGHTS_ALL;
}

/* As much as @amount is to be taken from *count in all; no more than what has come since @was. */
static void take_back(u64 *count, u64 was, s64 *taken, u64 amount)
{
	s64 more = (s64)amount - *taken, most = (s64)(*count - was);

	if (more > most)
		more = most;
	*taken += more;
	*count -= (u64)more;
}

static void take_from(struct model_core *core, u32 counter, u64 amount)
{
	struct core_windows *w = core->windows;

	take_back(&core->count[counter], w->count[counter], &w->taken[counter], amount);
}

static u64 part(u64 n, u64 share)
{
	return n * share / SIGHTS_ALL;
}

static u64 places(const struct tags *t)
{
	return (u64)t->sets * t->ways;
}

/* Cycles that were lost to memory, and would have been to nearer caches. */
static u64 too_dear(u64 cost, u64 l2, u64 ll)
{
	return cost > l2 + ll ? cost - l2 - ll : 0;
}

struct lines_back {
	u64 l2, ll; /* lines that are in this cache or a nearer one */
	u64 cycles;
};

static struct lines_back taken_for_new(struct model_core *core, enum sight_kind kind)
{
	struct core_windows *w = core->windows;
	const struct machine *m = &core->model->machine;
	const struct machine_penalty *p = &m->penalty;
	const struct sights *s = core->model->lines;
	u64 n = w->unsure[UNSURE_LINE + kind];
	u64 l2 = core->l2.sets ? places(&core->l2) : 0, ll = places(&core->model->ll);
	/* LL keeps lines for so long that all count which are used again some time. */
	u64 some = sights_in_use(s), all = max_u64(sights_used_again(s), some), in_ll;
	u32 fresh = sights_new_by(s, kind);
	struct lines_back b;

	if (m->cache[MACHINE_LL].inclusion == MACHINE_VICTIM)
		ll += l2;
	ll = max_u64(ll, l2);
	in_ll = is_there(s, fresh, all, ll);
	b.l2 = l2 ? part(n, is_there(s, fresh, some, l2)) : 0;
	b.ll = part(n, in_ll);
	if (kind == SIGHT_FETCH)
		b.cycles = too_dear(part(w->unsure[UNSURE_COST + kind], in_ll), b.l2 * p->fetch_l2,
				    (b.ll - b.l2) * p->fetch_ll);
	else
		b.cycles = too_dear(part(w->unsure[UNSURE_COST + kind], in_ll), b.l2 * p->l2,
				    (b.ll - b.l2) * p->ll);
	if (kind == SIGHT_LOAD) {
		for (u32 i = 0; i < MODEL_LATENCIES; i++)
			take_from(core, MODEL_SLOW_LOADS + i,
				  part(w->unsure[UNSURE_SLOW + i], in_ll));
		take_from(
			core, model_cache_counter(MODEL_LL, MODEL_PREFETCH, true),
			part(w->unsure[UNSURE_PREFETCH], is_there(s, sights_new_data(s), all, ll)));
	}
	return b;
}

static void data_back(struct model_core *core, const struct lines_back *b, u32 op)
{
	take_from(core, model_cache_counter(MODEL_LL, op, false), b->l2);
	take_from(core, model_cache_counter(MODEL_LL, op, true), b->ll);
}

/* Returns cycles that data has not cost. */
static u64 caches_back(struct model_core *core)
{
	struct core_windows *w = core->windows;
	struct lines_back fetch = taken_for_new(core, SIGHT_FETCH),
			  load = taken_for_new(core, SIGHT_LOAD);
	struct lines_back store = taken_for_new(core, SIGHT_STORE);

	take_from(core, MODEL_LL_FETCHES, fetch.l2);
	take_from(core, MODEL_LL_FETCH_MISSES, fetch.ll);
	data_back(core, &load, MODEL_READ);
	data_back(core, &store, MODEL_WRITE);
	take_from(core, MODEL_L2_MISSES, fetch.l2 + load.l2 + store.l2);
	take_from(core, model_cache_counter(MODEL_NODE, MODEL_READ, false),
		  fetch.ll + load.ll + store.ll);
	take_back(&core->stalled_front, w->stalled_front, &w->taken_front, fetch.cycles);
	return load.cycles + store.cycles;
}

/* The same of walks. */
static u64 tlbs_back(struct model_core *core)
{
	const struct machine_penalty *p = &core->model->machine.penalty;
	const struct tags *tlb = &core->tlb[MACHINE_TLB2][TLB_SMALL];
	const struct sights *s = core->model->pages;
	u64 all = 0;

	for (u32 k = 0; k < SIGHT_KINDS; k++) {
		const struct tags *of =
			tlb->sets ? tlb
				  : &core->tlb[k == SIGHT_FETCH ? MACHINE_ITLB : MACHINE_DTLB]
					      [TLB_SMALL];
		u64 n = part(core->windows->unsure[UNSURE_PAGE + k],
			     is_there(s, sights_new(s, (enum sight_kind)k), sights_in_use(s),
				      places(of)));

		all += n;
		take_from(core,
			  k == SIGHT_FETCH
				  ? model_cache_counter(MODEL_ITLB, MODEL_READ, true)
				  : model_cache_counter(MODEL_DTLB,
							k == SIGHT_STORE ? MODEL_WRITE : MODEL_READ,
							true),
			  n);
	}
	return core->parts & MODEL_CYCLES ? too_dear(all * p->walk, 0, all * p->tlb2) : 0;
}

/* *count has grown since *was, and does so @weight times. */
static void weigh(u64 *count, u64 was, u32 weight)
{
	*count = was + (*count - was) * weight;
}

void model_keep(struct model_core *core)
{
	core->windows->told = true;
}

void model_weigh(struct model_core *core)
{
	struct core_windows *w = core->windows;
	u64 insns = core->count[MODEL_INSTRUCTIONS], back = 0;

	for (u32 i = 0; i < MODEL_COUNTERS; i++)
		weigh(&core->count[i], w->count[i], w->weight);
	weigh(&core->ticks, w->ticks, w->weight);
	weigh(&core->stalled_front, w->stalled_front, w->weight);
	weigh(&core->stalled_back, w->stalled_back, w->weight);
	/* What all was seen of is sure. */
	for (u32 i = 0; i < UNSURES; i++)
		weigh(&core->unsure[i], w->unsure[i], w->weight > 1 ? w->weight : 0);
	__builtin_memcpy(w->unsure, core->unsure, sizeof(w->unsure));
	if (core->missed_at)
		core->missed_at += core->count[MODEL_INSTRUCTIONS] - insns;
	if (w->weight > 1 && !w->told) {
		if (core->parts & MODEL_CACHES)
			back += caches_back(core);
		if (core->parts & MODEL_TLBS)
			back += tlbs_back(core);
		take_back(&core->stalled_back, w->stalled_back, &w->taken_back, back);
	}
	w->told = false;
	__builtin_memcpy(w->count, core->count, sizeof(w->count));
	w->ticks = core->ticks;
	w->stalled_front = core->stalled_front;
	w->stalled_back = core->stalled_back;
}
