/* Kept paths that come one after the other, as nearly all do. */
#include "model/feed-path.h"

static inline void tell_fetch(struct model_core *core, struct feed_fetch *f)
{
	if (f->line + 1 != core->fetch_line || f->more)
		model_fetch_lines(core, f->line, f->line + f->more * (~core->line_mask + 1),
				  &f->near);
}

/* As feed_ahead(), of the word at @word. */
static inline s32 ahead(const struct path_record *r, u32 word)
{
	return (s32)(r->at - (r->what >> 16 & sizeof(u32)) - word);
}

/*
 * Of a path of which not everything was filtered out: accesses, and the fetches between them. Where
 * the other fetches begin.
 */
__attribute__((noinline)) static struct feed_fetch *
tell_accesses(struct feed_thread *t, struct model_core *core, struct feed_path *p)
{
	struct feed_fetch *fetches = fetches_of(p), *next = fetches;
	const struct feed_access *a = (const struct feed_access *)(fetches + p->nr_ops);
	const struct path_record *r = t->record, *end = t->record_end;
	u32 word = (u32)t->trace + 4 * (u32)t->word;

	/* Those of a path that is not described. */
	while (r < end && ahead(r, word) < 0)
		r++;
	while (p->nr_accesses && r < end && ahead(r, word) == 0) {
		u32 i = path_record_access(r) - a->number;

		/* Numbers of a block's accesses follow one another. */
		if (i >= p->nr_accesses || a[i].number != path_record_access(r)) {
			r++;
			continue;
		}
		while (next < fetches + a[i].before)
			tell_fetch(core, next++);
		if (a[i].kind == PATH_LOAD) {
			model_load(core, a[i].pc, r->addr, a[i].size);
			t->loads--;
			r++;
		} else if (a[i].kind == PATH_STORE) {
			model_store(core, a[i].pc, r->addr, a[i].size);
			t->stores--;
			r++;
		} else {
			bool with = i + 1 < p->nr_accesses && a[i].kind >= PATH_LOADS &&
				    a[i + 1].kind >= PATH_LOADS && a[i + 1].pc == a[i].pc;

			t->record = r;
			feed_recorded(t, core, a + i, with ? a + i + 1 : NULL);
			/* One of a string alone says nothing. */
			r = t->record == r ? r + 1 : t->record;
		}
	}
	/* Of a path that was taken in part there may be more. */
	while (r < end && ahead(r, word) <= 0)
		r++;
	t->record = r;
	return next;
}

static void tell_floats(struct model_core *core, struct feed_path *p)
{
	const struct feed_access *access = (const struct feed_access *)(fetches_of(p) + p->nr_ops);
	const struct feed_floats *floats = (const struct feed_floats *)(access + p->nr_accesses);

	for (u32 i = 0; i < p->nr_floats; i++)
		model_floats(core, floats[i].work, floats[i].times);
}

void feed_tell_plain(struct feed_thread *t, struct model_core *core, struct feed_path *p)
{
	struct feed_fetch *fetch = fetches_of(p), *end = fetch + p->nr_ops;

	if (t->record < t->record_end && feed_ahead(t, t->record) <= 0)
		fetch = tell_accesses(t, core, p);
	for (; fetch < end; fetch++) {
		tell_fetch(core, fetch);
		if (unlikely(t->watching))
			feed_watch_fetch(t, core, fetch->line + fetch->begin);
	}
	if (p->nr_floats) {
		tell_floats(core, p);
		if (unlikely(t->watching))
			feed_watch_insn(t, core, p->pc);
	}
}

/*
 * Without other parts than branches. Is what branch-misses alone cost.
 * @by_path: targets are found by the last ones of all branches.
 */
static inline u32 take_branches_by(struct feed *f, struct feed_thread *t, struct model_core *core,
				   const u32 *words, u32 n, bool by_path)
{
	struct predictor *predictor = &core->predictor;
	u64 targets = predictor->path, nr = 0, open_pc = t->open_pc, open_next = t->open_next;
	u64 insns = 0;
	u32 i, wrong = 0, wrong_open = 0, open = t->open;

	_Static_assert(!(PATH_WORDS & (PATH_WORDS - 1)), "two are compared at once");
	for (i = 0; i + 1 < n && (words[i] | words[i + 1]) < PATH_WORDS; i++) {
		const struct feed_path *p = feed_path_kept(f, words[i]);
		const struct path_branches *b;
		const struct branch_place *cond;
		bool last_wrong;

		if (unlikely(!p))
			break;
		b = &p->branches;
		cond = (const struct branch_place *)(p + 1);
		if (open) {
			if (by_path)
				predictor->path = targets;
			wrong_open += !predict_open(predictor, open_pc, open_next, (u8)open, p->pc);
			nr++;
			if (by_path) {
				predictor_path(predictor, p->pc);
				targets = predictor->path;
			}
		}
		nr += b->nr;
		insns += p->insns;
		if (by_path)
			targets = targets << b->shift ^ b->targets;
		if (b->nr_conds && !predict_runs(predictor, cond, b->nr_conds, b->taken))
			wrong += predict_directions(predictor, cond, b->nr_conds, b->taken,
						    &last_wrong);
		open = p->open;
		if (b->nr_calls | open) {
			const u64 *call =
				(const u64 *)((const struct branch_place *)(p + 1) + b->nr_conds);

			for (u32 k = 0; k < b->nr_calls; k++)
				predictor_call(predictor, call[k]);
			open_pc = p->open_pc;
			open_next = open_pc + p->open_len;
		}
	}
	predictor->path = targets;
	t->open = (u8)open;
	t->open_pc = open_pc;
	t->open_next = open_next;
	core->count[MODEL_BRANCH_INSTRUCTIONS] += nr;
	core->count[MODEL_INSTRUCTIONS] += f->counts ? insns : 0;
	branches_missed(core, wrong, true);
	branches_missed(core, wrong_open, false);
	return i;
}

static u32 take_branches(struct feed *f, struct feed_thread *t, struct model_core *core,
			 const u32 *words, u32 n)
{
	return core->predictor.target_table ? take_branches_by(f, t, core, words, n, false)
					    : take_branches_by(f, t, core, words, n, true);
}

/* The branch that @p has ended with has gone to @pc. As model_branch(). */
static inline void close_branch_of(struct model_core *core, struct feed_path *p, u64 pc)
{
	struct predictor *predictor = &core->predictor;
	bool right = predict_open(predictor, p->open_pc, p->open_pc + p->open_len, p->open, pc);

	core->count[MODEL_BRANCH_INSTRUCTIONS]++;
	predictor_path(predictor, pc);
	if (unlikely(!right)) {
		branches_missed(core, 1, false);
	} else if (core->parts & MODEL_CYCLES && p->open_in_btb != predictor->btb_lost) {
		branch_look_in_btb(core, p->open_pc);
		p->open_in_btb = predictor->btb_lost;
	}
}

/* Where the word is to which the next record belongs, in bytes from the one that is looked at. */
static inline s32 next_record(const struct feed_thread *t)
{
	return t->record < t->record_end ? feed_ahead(t, t->record) : 0x7fffffff;
}

/* Plain paths. */
static u32 take_plain(struct feed *f, struct feed_thread *t, struct model_core *core,
		      const u32 *words, u32 n)
{
	struct feed_path *before = NULL; /* its branch is open */
	bool counts = f->counts, works = f->parts & MODEL_CYCLES;
	u64 loads = 0, stores = 0;
	s32 from = t->word, record = next_record(t);
	u32 i;

	for (i = 0; i + 1 < n && (words[i] | words[i + 1]) < PATH_WORDS; i++) {
		struct feed_path *p = feed_path_kept(f, words[i]);
		struct feed_fetch *fetch, *end;

		if (unlikely(!p || !p->plain))
			break;
		if (before) {
			close_branch_of(core, before, p->pc);
		} else if (unlikely(t->open)) {
			model_branch(core, t->open_pc, t->open_next,
				     (enum model_branch_kind)t->open, true, p->pc);
			t->open = 0;
		}
		if (p->branches.nr)
			model_path_branches(core, &p->branches, p + 1);
		fetch = fetches_of(p);
		end = fetch + p->nr_ops;
		if (unlikely(record <= (s32)(4 * i))) {
			t->word = from + (s32)i;
			fetch = tell_accesses(t, core, p);
			t->word = from;
			record = next_record(t);
		}
		for (; fetch < end; fetch++)
			tell_fetch(core, fetch);
		if (unlikely(p->nr_floats))
			tell_floats(core, p);
		loads += p->loads;
		stores += p->stores;
		before = p->open ? p : NULL;
		if (counts)
			work(core, p->insns, works ? p->ticks : 0);
	}
	if (before) {
		t->open = before->open;
		t->open_pc = before->open_pc;
		t->open_next = before->open_pc + before->open_len;
	}
	t->loads += loads;
	t->stores += stores;
	t->word = from + (s32)i;
	return i;
}

u32 feed_take_kept(struct feed *f, struct feed_thread *t, struct model_core *core, const u32 *words,
		   u32 n)
{
	if (f->parts == MODEL_BRANCHES && !(core->parts & MODEL_CYCLES))
		return take_branches(f, t, core, words, n);
	return take_plain(f, t, core, words, n);
}
