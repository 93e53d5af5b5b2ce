/*
 * Caches: from a core's first level to memory, one line at a time. What is worth speed is in
 * model_load(), model_store() and model_fetch(); all else happens on a miss.
 *
 * Coherence is MESI without its bus: a line that is LINE_OWNED is in no other core's L1D or L2, and
 * may be written. Another core's load takes the flag from it, another core's store takes the line.
 * With one core everything is owned from the start, and nobody is ever asked.
 */
#include "model/hierarchy-priv.h"

static u64 line_key(u64 line)
{
	return line | TAG_VALID;
}

static u64 line_of(u64 tag)
{
	return tag & ~(TAG_VALID | TAG_FLAGS);
}

/* A modified line that leaves this cache: into a farther one if that has it, else to memory. */
static void write_back(struct model_core *core, u64 line, struct tags *const *farther, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		u64 *tag = farther[i]->sets ? tags_find(farther[i], tags_set(farther[i], line),
							line_key(line))
					    : NULL;

		if (tag) {
			*tag |= LINE_DIRTY;
			return;
		}
	}
	count(core, MODEL_WRITEBACKS);
	count_cache(core, MODEL_NODE, MODEL_WRITE, false);
}

/* The line is no longer one that can be accessed without a change. */
static void forget_recent(struct model_core *core, u64 line)
{
	u32 set = tags_set(&core->recent, line);

	if (!recent_is(core, line))
		return;
	core->recent.word[set] = 0;
	/* Its thread may be using it; whatever it has accessed by now came before. */
	for (u32 i = 0; i < 2; i++)
		if (core->filter[i])
			__atomic_store_n(&core->filter[i][set], 0, __ATOMIC_RELAXED);
}

/*
 * Takes a line from a core's near caches. Its flags; TAG_VALID among them if it was there. With
 * @spare the one that L1D's set has used last stays there.
 */
static u64 take_from_core(struct model_core *core, u64 line, bool from_l2, bool spare)
{
	u64 flags = 0;

	if (!spare || !recent_is(core, line)) {
		flags = tags_remove(&core->l1d, tags_set(&core->l1d, line), line_key(line));
		forget_recent(core, line);
	}
	if (core->l1i.sets && tags_remove(&core->l1i, tags_set(&core->l1i, line), line_key(line)))
		core->fetch_line = 0;
	if (from_l2 && core->l2.sets)
		flags |= tags_remove(&core->l2, tags_set(&core->l2, line), line_key(line));
	return flags & (TAG_VALID | TAG_FLAGS);
}

/* LL has lost a line. */
static void evicted_from_ll(struct model_core *core, u64 tag)
{
	struct model *model = core->model;
	u64 flags = tag;

	if (model->machine.cache[MACHINE_LL].inclusion == MACHINE_INCLUSIVE)
		for (u32 i = 0; i < model->active; i++)
			if (model->core[i])
				flags |= take_from_core(model->core[i], line_of(tag), true, true);
	if (flags & LINE_DIRTY)
		write_back(core, line_of(tag), NULL, 0);
}

static void into_ll(struct model_core *core, u64 line, u64 flags)
{
	struct tags *ll = &core->model->ll;
	u32 set = tags_set(ll, line);
	u64 *there = tags_find(ll, set, line_key(line)), old;

	if (there) {
		*there |= flags & LINE_DIRTY;
		return;
	}
	old = tags_insert(ll, set, line_key(line) | (flags & (LINE_DIRTY | LINE_PREFETCHED)));
	if (old)
		evicted_from_ll(core, old);
}

static void into_l2(struct model_core *core, u64 line, u64 flags)
{
	const struct machine *m = &core->model->machine;
	struct tags *ll = &core->model->ll;
	u64 old = tags_insert(&core->l2, tags_set(&core->l2, line), line_key(line) | flags);

	if (!old)
		return;
	if (m->cache[MACHINE_L2].inclusion == MACHINE_INCLUSIVE)
		old |= take_from_core(core, line_of(old), false, true) & LINE_DIRTY;
	if (m->cache[MACHINE_LL].inclusion == MACHINE_VICTIM)
		into_ll(core, line_of(old), old & LINE_DIRTY);
	else if (old & LINE_DIRTY)
		write_back(core, line_of(old), &ll, 1);
}

static bool shared(const struct model_core *core)
{
	return core->model->active > 1;
}

/* What @old was goes from L1D. */
static void evicted_from_l1d(struct model_core *core, u64 old)
{
	u64 *tag;

	/* With one core L2 has it as its own already. */
	if (!(old & LINE_DIRTY) && (!old || !shared(core)))
		return;
	tag = core->l2.sets ? tags_find(&core->l2, tags_set(&core->l2, line_of(old)),
					line_key(line_of(old)))
			    : NULL;
	if (tag)
		*tag |= old & (LINE_DIRTY | LINE_OWNED);
	else if (old & LINE_DIRTY)
		write_back(core, line_of(old), (struct tags *[]){&core->model->ll}, 1);
}

static void into_l1d(struct model_core *core, u64 line, u64 flags)
{
	u64 old = tags_insert(&core->l1d, tags_set(&core->l1d, line), line_key(line) | flags);

	evicted_from_l1d(core, old);
}

/*
 * Asks the other cores for a line that this one lacks or does not own. A store takes it from them;
 * a load leaves it with them, no longer owned.
 */
static enum model_snoop snoop(struct model_core *core, u64 line, bool store)
{
	struct model *model = core->model;
	u64 found = 0;

	for (u32 i = 0; i < model->active; i++) {
		struct model_core *other = model->core[i];
		u64 *tag;

		if (other == core || !other)
			continue;
		if (store) {
			u64 flags = take_from_core(other, line, true, false);

			if (flags)
				count(core, MODEL_INVALIDATIONS);
			found |= flags;
			continue;
		}
		forget_recent(other, line);
		for (u32 level = 0; level < 2; level++) {
			struct tags *t = level ? &other->l2 : &other->l1d;

			tag = t->sets ? tags_find(t, tags_set(t, line), line_key(line)) : NULL;
			if (tag) {
				found |= *tag & (TAG_VALID | TAG_FLAGS);
				*tag &= ~(LINE_DIRTY | LINE_OWNED);
			}
		}
	}
	if (found & LINE_DIRTY) {
		count(core, MODEL_SNOOP_HITMS);
		/* What it wrote is in LL, or in memory, from now on. */
		if (!store)
			write_back(core, line, (struct tags *[]){&model->ll}, 1);
		return MODEL_SNOOP_HITM;
	}
	if (found) {
		count(core, MODEL_SNOOP_HITS);
		return MODEL_SNOOP_HIT;
	}
	return MODEL_SNOOP_MISS;
}

/* Gives a line that is here to this core alone. */
static enum model_snoop own(struct model_core *core, u64 line)
{
	enum model_snoop s = snoop(core, line, true);
	u64 *tag = core->l2.sets ? tags_find(&core->l2, tags_set(&core->l2, line), line_key(line))
				 : NULL;

	if (tag)
		*tag |= LINE_OWNED;
	return s;
}

/*
 * Looks a line up in LL, and puts it there if it belongs there. *had: LINE_DIRTY if LL gives a
 * modified line away.
 */
static bool find_in_ll(struct model_core *core, u64 line, u64 flags, u64 *had)
{
	const struct machine *m = &core->model->machine;
	struct tags *ll = &core->model->ll;
	u32 set = tags_set(ll, line);
	u64 *tag = tags_touch(ll, set, line_key(line));

	*had = 0;
	if (tag) {
		if (m->cache[MACHINE_LL].inclusion == MACHINE_VICTIM)
			*had = tags_remove(ll, set, line_key(line)) & LINE_DIRTY;
		else
			*tag &= ~LINE_PREFETCHED;
		return true;
	}
	if (m->cache[MACHINE_LL].inclusion != MACHINE_VICTIM)
		into_ll(core, line, flags);
	return false;
}

static bool same_page(const struct model_core *core, u64 a, u64 b)
{
	return !((a ^ b) & core->page_mask);
}

/* Brings a line into L2 before somebody asks for it. False: it came from memory. */
static bool prefetch_beyond(struct model_core *core, u64 line, u64 flags, u64 *owned)
{
	enum model_snoop s = MODEL_SNOOP_NONE;
	bool in_ll;
	u64 had;

	*owned = LINE_OWNED;
	if (core->l2.sets) {
		u64 *tag = tags_touch(&core->l2, tags_set(&core->l2, line), line_key(line));

		if (tag) {
			*owned = *tag & LINE_OWNED;
			return true;
		}
	}
	if (shared(core))
		s = snoop(core, line, false);
	if (s == MODEL_SNOOP_HIT || s == MODEL_SNOOP_HITM)
		*owned = 0;
	in_ll = find_in_ll(core, line, flags, &had);
	count_cache(core, MODEL_LL, MODEL_PREFETCH, false);
	if (!in_ll) {
		count_cache(core, MODEL_LL, MODEL_PREFETCH, true);
		core->unsure[UNSURE_PREFETCH]++;
	}
	if (core->l2.sets)
		into_l2(core, line, flags | *owned | had);
	return in_ll;
}

static void prefetch_l2(struct model_core *core, u64 line)
{
	u64 owned;

	if (!tags_find(&core->l2, tags_set(&core->l2, line), line_key(line)))
		prefetch_beyond(core, line, LINE_PREFETCHED, &owned);
}

static void prefetch_ll(struct model_core *core, u64 line)
{
	struct tags *ll = &core->model->ll;

	if (tags_find(ll, tags_set(ll, line), line_key(line)))
		return;
	count_cache(core, MODEL_LL, MODEL_PREFETCH, false);
	count_cache(core, MODEL_LL, MODEL_PREFETCH, true);
	core->unsure[UNSURE_PREFETCH]++;
	into_ll(core, line, LINE_PREFETCHED);
}

/* Behind the line that the set has used last: what the program did last stays the last. */
static void prefetch_l1d(struct model_core *core, u64 line)
{
	u64 owned, old;

	count_cache(core, MODEL_L1D, MODEL_PREFETCH, false);
	if (tags_find(&core->l1d, tags_set(&core->l1d, line), line_key(line)))
		return;
	count_cache(core, MODEL_L1D, MODEL_PREFETCH, true);
	prefetch_beyond(core, line, 0, &owned);
	if (tags_insert_behind(&core->l1d, tags_set(&core->l1d, line),
			       line_key(line) | LINE_PREFETCHED | owned, &old))
		evicted_from_l1d(core, old);
}

static void prefetch_l1i(struct model_core *core, u64 line)
{
	u64 owned;

	count_cache(core, MODEL_L1I, MODEL_PREFETCH, false);
	if (tags_find(&core->l1i, tags_set(&core->l1i, line), line_key(line)))
		return;
	count_cache(core, MODEL_L1I, MODEL_PREFETCH, true);
	prefetch_beyond(core, line, 0, &owned);
	tags_insert(&core->l1i, tags_set(&core->l1i, line), line_key(line) | LINE_PREFETCHED);
}

/* What an instruction's loads and stores have in common, learned where they miss. */
static void train_stride(struct model_core *core, u64 ip, u64 addr)
{
	struct stride *s = &core->stride[(ip ^ ip >> 6) % MODEL_STRIDES];
	s64 step = (s64)(addr - s->last);
	u64 ahead;

	if (s->ip != ip) {
		*s = (struct stride){.ip = ip, .last = addr};
		return;
	}
	s->last = addr;
	if (!step)
		return;
	if (step != s->step) {
		s->step = step;
		s->sure = 0;
		return;
	}
	if (++s->sure < 2)
		return;
	ahead = addr + (u64)step;
	if (same_page(core, ahead, addr) && (ahead ^ addr) & core->line_mask)
		prefetch_l1d(core, ahead & core->line_mask);
}

static void prefetch_for_data(struct model_core *core, u64 ip, u64 addr, u64 line)
{
	u32 how = core->model->machine.cache[MACHINE_L1D].prefetch;
	u64 next = line + ~core->line_mask + 1;

	if (how & MACHINE_STRIDE)
		train_stride(core, ip, addr);
	if (how & MACHINE_NEXT_LINE && same_page(core, next, line))
		prefetch_l1d(core, next);
}

static void prefetch_for_fetch(struct model_core *core, u64 line)
{
	u64 next = line + ~core->line_mask + 1;

	if (core->model->machine.cache[MACHINE_L1I].prefetch & MACHINE_NEXT_LINE &&
	    same_page(core, next, line))
		prefetch_l1i(core, next);
}

/* A line was looked for in L2 by the program: brings the next one. */
static void prefetch_after_l2(struct model_core *core, u64 line)
{
	const struct machine *m = &core->model->machine;
	u64 next = line + ~core->line_mask + 1;

	if (core->l2.sets && m->cache[MACHINE_L2].prefetch & MACHINE_NEXT_LINE &&
	    same_page(core, next, line))
		prefetch_l2(core, next);
}

static void prefetch_after_ll(struct model_core *core, u64 line)
{
	const struct machine *m = &core->model->machine;
	u64 next = line + ~core->line_mask + 1;

	if (m->cache[MACHINE_LL].prefetch & MACHINE_NEXT_LINE &&
	    m->cache[MACHINE_LL].inclusion != MACHINE_VICTIM && same_page(core, next, line))
		prefetch_ll(core, next);
}

/* The line is in none of the core's caches. */
static void from_beyond(struct model_core *core, u64 line, enum line_use use, struct found *f)
{
	const struct machine *m = &core->model->machine;
	bool in_ll;
	u64 had;

	f->owned = LINE_OWNED;
	if (shared(core)) {
		f->snoop = snoop(core, line, use == LINE_STORE);
		if (use != LINE_STORE && f->snoop != MODEL_SNOOP_MISS)
			f->owned = 0;
	}
	in_ll = find_in_ll(core, line, 0, &had);
	if (use == LINE_FETCH) {
		count(core, MODEL_LL_FETCHES);
		core->count[MODEL_LL_FETCH_MISSES] += !in_ll;
	} else {
		count_cache(core, MODEL_LL, use == LINE_STORE ? MODEL_WRITE : MODEL_READ, false);
		if (!in_ll)
			count_cache(core, MODEL_LL, use == LINE_STORE ? MODEL_WRITE : MODEL_READ,
				    true);
	}
	if (f->snoop == MODEL_SNOOP_HITM) {
		f->source = MODEL_FROM_CORE;
		f->latency = m->memory.snoop;
	} else {
		f->source = in_ll ? MODEL_FROM_LL : MODEL_FROM_MEMORY;
		f->latency = in_ll ? m->cache[MACHINE_LL].latency : m->memory.latency;
	}
	if (f->source == MODEL_FROM_MEMORY) {
		count_cache(core, MODEL_NODE, MODEL_READ, false);
		core->unsure[UNSURE_LINE + sight_of(use)]++;
	}
	if (core->l2.sets)
		into_l2(core, line, f->owned | had);
	else if (had && m->cache[MACHINE_LL].inclusion == MACHINE_VICTIM)
		write_back(core, line, NULL, 0);
	if (!in_ll)
		prefetch_after_ll(core, line);
}

void hierarchy_find(struct model_core *core, u64 line, enum line_use use, struct found *f)
{
	u64 *tag = NULL;

	*f = (struct found){0};
	if (core->l2.sets) {
		bool first;

		count(core, MODEL_L2_ACCESSES);
		tag = tags_touch(&core->l2, tags_set(&core->l2, line), line_key(line));
		first = tag && *tag & LINE_PREFETCHED;
		if (tag) {
			*tag &= ~LINE_PREFETCHED;
			f->source = MODEL_FROM_L2;
			f->latency = core->model->machine.cache[MACHINE_L2].latency;
			f->owned = *tag & LINE_OWNED;
			if (use == LINE_STORE && !f->owned) {
				f->snoop = own(core, line);
				f->owned = LINE_OWNED;
			}
		} else {
			count(core, MODEL_L2_MISSES);
		}
		if (!tag)
			from_beyond(core, line, use, f);
		if (!tag || first)
			prefetch_after_l2(core, line);
		return;
	}
	from_beyond(core, line, use, f);
}

/* What a miss costs, behind what runs on meanwhile. */
static void lose_to(struct model_core *core, enum model_source source, enum sight_kind kind)
{
	const struct machine_penalty *p = &core->model->machine.penalty;
	u64 now = core->count[MODEL_INSTRUCTIONS];

	if (source == MODEL_FROM_L2) {
		lose(core, p->l2);
	} else if (source == MODEL_FROM_LL) {
		lose(core, p->ll);
	} else {
		bool overlaps = core->missed_at &&
				now + 1 - core->missed_at < core->model->machine.core.window;
		u32 cycles = overlaps ? p->memory * (100 - p->overlap) / 100 : p->memory;

		lose(core, cycles);
		if (source == MODEL_FROM_MEMORY)
			core->unsure[UNSURE_COST + kind] += cycles;
		core->missed_at = now + 1;
	}
}

void hierarchy_data_miss(struct model_core *core, u64 ip, u64 addr, bool store, struct found *f)
{
	const struct machine *m = &core->model->machine;
	u64 line = addr & core->line_mask;

	hierarchy_find(core, line, store ? LINE_STORE : LINE_LOAD, f);
	if (store && m->cache[MACHINE_L1D].no_allocate)
		return;
	into_l1d(core, line, f->owned | (store ? LINE_DIRTY : 0));
	if (core->parts & MODEL_CYCLES)
		lose_to(core, f->source, sight_of(store ? LINE_STORE : LINE_LOAD));
	if (m->cache[MACHINE_L1D].prefetch)
		prefetch_for_data(core, ip, addr, line);
}

void hierarchy_data_used_first(struct model_core *core, u64 ip, u64 addr)
{
	prefetch_for_data(core, ip, addr, addr & core->line_mask);
}

enum model_snoop hierarchy_own(struct model_core *core, u64 line)
{
	return own(core, line);
}

void hierarchy_prefetch(struct model_core *core, u64 line)
{
	prefetch_l1d(core, line);
}

void hierarchy_fetch_miss(struct model_core *core, u64 line)
{
	const struct machine_penalty *p = &core->model->machine.penalty;
	struct found f;

	hierarchy_find(core, line, LINE_FETCH, &f);
	tags_insert(&core->l1i, tags_set(&core->l1i, line), line_key(line));
	if (core->parts & MODEL_CYCLES)
		lose_front(core, f.source == MODEL_FROM_L2   ? p->fetch_l2
				 : f.source == MODEL_FROM_LL ? p->fetch_ll
							     : p->fetch_memory);
	if (core->parts & MODEL_CYCLES && f.source == MODEL_FROM_MEMORY)
		core->unsure[UNSURE_COST + SIGHT_FETCH] += p->fetch_memory;
	prefetch_for_fetch(core, line);
}

void hierarchy_fetch_used_first(struct model_core *core, u64 line)
{
	prefetch_for_fetch(core, line);
}

/* Looks a line up in L1 and puts it there; as cachegrind, whose caches know nothing of owners. */
static bool in_l1(struct tags *l1, u64 line, u64 flags)
{
	u32 set = tags_set(l1, line);
	u64 *tag = tags_touch(l1, set, line_key(line));

	if (tag)
		*tag |= flags;
	else
		tags_insert(l1, set, line_key(line) | flags);
	return tag;
}

bool hierarchy_crossing(struct model_core *core, u64 first, u64 last, enum line_use use,
			struct found *f)
{
	const struct machine *m = &core->model->machine;
	struct tags *l1 = use == LINE_FETCH ? &core->l1i : &core->l1d;
	u64 flags = use == LINE_FETCH   ? 0
		    : use == LINE_STORE ? LINE_OWNED | LINE_DIRTY
					: LINE_OWNED;
	bool hit = in_l1(l1, first, flags), missed = false;
	u64 had;

	*f = (struct found){.source = MODEL_FROM_L1};
	hit &= in_l1(l1, last, flags);
	if (hit)
		return true;
	missed |= !find_in_ll(core, first, 0, &had);
	missed |= !find_in_ll(core, last, 0, &had);
	if (use == LINE_FETCH) {
		count(core, MODEL_LL_FETCHES);
		core->count[MODEL_LL_FETCH_MISSES] += missed;
	} else {
		u32 op = use == LINE_STORE ? MODEL_WRITE : MODEL_READ;

		count_cache(core, MODEL_LL, op, false);
		if (missed)
			count_cache(core, MODEL_LL, op, true);
	}
	core->unsure[UNSURE_LINE + sight_of(use)] += missed;
	f->source = missed ? MODEL_FROM_MEMORY : MODEL_FROM_LL;
	f->latency = missed ? m->memory.latency : m->cache[MACHINE_LL].latency;
	if (core->parts & MODEL_CYCLES) {
		if (use != LINE_FETCH)
			lose_to(core, f->source, sight_of(use));
		else
			lose_front(core, missed ? m->penalty.fetch_memory : m->penalty.fetch_ll);
		if (use == LINE_FETCH && missed)
			core->unsure[UNSURE_COST + SIGHT_FETCH] += m->penalty.fetch_memory;
	}
	return false;
}
