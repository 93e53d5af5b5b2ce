#include "model/feed-watch.h"

#include "model/feed-path.h"
#include "model/feed-tally.h"

/* Room for a hit of @name; if there is little, the last one of it. */
static struct feed_hit *hit_for(struct feed_watching *w, u32 name)
{
	for (u32 i = w->nr_hits; w->nr_hits >= FEED_HITS - FEED_WATCHES && i > 0; i--)
		if (w->hit[i - 1].name == name)
			return &w->hit[i - 1];
	/* There is: names are different. */
	if (w->nr_hits == FEED_HITS)
		return &w->hit[FEED_HITS - 1];
	w->hit[w->nr_hits].periods = 0;
	return &w->hit[w->nr_hits++];
}

void feed_watch_begin(struct feed_watching *w, const struct model_core *core, u32 weight)
{
	w->weight = weight;
	w->found = false;
	for (u32 i = 0; i < w->nr; i++)
		w->watch[i].begin = model_count(core, (enum model_counter)w->watch[i].counter);
}

/*
 * What the counter will stand at when the piece is weighed (model_weigh()), at least: of cycles
 * there are fractions, by which two counts differ by one less than their difference says.
 */
static u64 count_of(const struct feed_watching *w, const struct model_core *core, u32 i)
{
	const struct feed_watch *watch = &w->watch[i];
	u64 n = model_count(core, (enum model_counter)watch->counter) - watch->begin;

	if (w->weight > 1 && watch->counter != MODEL_BRANCH_MISSES && n)
		n--;
	return watch->begin + n * w->weight;
}

void feed_watch_look(struct feed_watching *w, const struct model_core *core,
		     const struct feed_hit *what)
{
	bool data = what->kind == FEED_HIT_LOAD || what->kind == FEED_HIT_STORE;

	if (w->tally)
		feed_tally_add(w->tally, core, what->ip, data ? what->addr : 0);
	for (u32 i = 0; i < w->nr; i++) {
		struct feed_watch *watch = &w->watch[i];
		u64 now = count_of(w, core, i), late = now - watch->at, periods;
		struct feed_hit *hit;

		/*
		 * A number may be behind already when it is told: that of a frequency, which
		 * somebody else has worked out. It is reached by what counts next.
		 */
		if ((s64)late < 0 || now == watch->begin)
			continue;
		w->found = true;
		periods = late / watch->period + 1;
		watch->at += periods * watch->period;
		hit = hit_for(w, watch->name);
		periods += hit->periods;
		*hit = *what;
		hit->name = watch->name;
		hit->count = now;
		hit->periods = periods;
		hit->locked = w->path && feed_path_is_atomic(w->feed, w->path, what->ip);
	}
}

static void look(struct feed_thread *t, const struct model_core *core, enum feed_hit_kind kind,
		 u64 ip, u64 addr, struct model_access access)
{
	const struct feed_hit what = {.kind = kind, .ip = ip, .addr = addr, .access = access};

	feed_watch_look(t->watching, core, &what);
}

void feed_watch_branch(struct feed_thread *t, const struct model_core *core, u64 ip, u64 target)
{
	look(t, core, FEED_HIT_BRANCH, ip, target, (struct model_access){0});
}

void feed_watch_target(struct feed_thread *t, const struct model_core *core, u64 ip, u64 target)
{
	struct feed_tally *tally = t->watching->tally;

	if (tally)
		tally->branch = PATH_EVENT_BRANCH;
	feed_watch_branch(t, core, ip, target);
	if (tally)
		tally->branch = 0;
}

void feed_watch_told(struct feed_thread *t)
{
	if (t->watching->tally)
		t->watching->tally->told++;
}

void feed_watch_access(struct feed_thread *t, const struct model_core *core, u8 kind, u64 ip,
		       u64 addr, struct model_access access)
{
	enum feed_hit_kind hit = FEED_HIT_PREFETCH;

	if (kind == PATH_LOAD || kind == PATH_LOADS)
		hit = FEED_HIT_LOAD;
	else if (kind == PATH_STORE || kind == PATH_STORES)
		hit = FEED_HIT_STORE;
	look(t, core, hit, ip, addr, access);
}

void feed_watch_fetch(struct feed_thread *t, const struct model_core *core, u64 pc)
{
	look(t, core, FEED_HIT_FETCH, pc, pc, (struct model_access){0});
}

void feed_watch_insn(struct feed_thread *t, const struct model_core *core, u64 pc)
{
	look(t, core, FEED_HIT_WORK, pc, 0, (struct model_access){0});
}

/* What a path costs is spread evenly over its instructions: that in which a number is reached. */
void feed_watch_work(const struct feed *f, struct feed_thread *t, struct model_core *core,
		     const struct feed_path *p)
{
	struct feed_watching *w = t->watching;
	u64 before[FEED_WATCHES], at = 0, part = 0;
	bool any = false;

	if (!(f->parts & MODEL_CYCLES)) {
		feed_work(f, core, p->insns, p->ticks);
		return;
	}
	for (u32 i = 0; i < w->nr; i++)
		before[i] = count_of(w, core, i);
	model_work(core, p->insns, p->ticks);
	if (w->tally)
		feed_tally_add(w->tally, core, path_part(p->block, p->from, p->from + p->insns), 0);
	for (u32 i = 0; i < w->nr && !any; i++) {
		u64 now = count_of(w, core, i);

		any = now > before[i] && (s64)(now - w->watch[i].at) >= 0;
		at = w->watch[i].at > before[i] ? w->watch[i].at - before[i] - 1 : 0;
		part = any ? at * p->insns / (now - before[i]) : 0;
	}
	if (any)
		feed_watch_insn(t, core, feed_path_pc(f, p, (u32)part));
}
