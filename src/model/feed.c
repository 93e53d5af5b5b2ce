#include "model/feed-path.h"

#include "model/cycles.h"

/* An indirect branch has gone to @pc. */
static inline void close_branch(struct feed_thread *t, struct model_core *core, u64 pc)
{
	if (!t->open)
		return;
	model_branch(core, t->open_pc, t->open_next, (enum model_branch_kind)t->open, true, pc);
	t->open = 0;
	if (unlikely(t->watching))
		feed_watch_target(t, core, t->open_pc, pc);
}

static u64 address(const struct feed_thread *t, const struct feed_op *op, const u64 *slots)
{
	u64 a = op->target;

	if (op->base != PATH_NO_SLOT)
		a += slots[op->base];
	if (op->index != PATH_NO_SLOT && op->kind != OP_STRING)
		a += (op->taken & PATH_BYTE_INDEX ? (u8)slots[op->index] : slots[op->index])
		     << (op->taken >> 4);
	if (op->taken & PATH_ADDR32)
		a = (u32)a;
	if (op->taken & PATH_FS)
		a += t->fs_base;
	if (op->taken & PATH_GS)
		a += t->gs_base;
	return a;
}

static void access(struct feed_thread *t, struct model_core *core, const struct feed_op *op,
		   u64 addr)
{
	struct model_access a = {0};

	switch (op->branch) {
	case PATH_LOAD:
	case PATH_LOADS: a = model_load(core, op->pc, addr, op->size); break;
	case PATH_STORE:
	case PATH_STORES: a = model_store(core, op->pc, addr, op->size); break;
	default: model_prefetch(core, addr);
	}
	if (unlikely(t->watching))
		feed_watch_access(t, core, op->branch, op->pc, addr, a);
}

/* A repeated string instruction, by what it has done to the registers that go over the strings. */
static void string(struct feed_thread *t, struct model_core *core, const struct feed_op *op,
		   const u64 *slots)
{
	u64 moved = slots[op->index] - (slots[op->base] + op->target);
	struct model_string s[2];
	u32 nr = op->and_next ? 2 : 1;
	bool down;
	u64 n;

	if (op->taken & PATH_ADDR32)
		moved = (u64)(s64)(s32)moved;
	down = (s64)moved < 0;
	n = (down ? -moved : moved) / op->size;
	/* Both strings have elements of a size. */
	for (u32 i = 0; i < nr; i++)
		s[i] = (struct model_string){.at = address(t, op + i, slots),
					     .size = op->size,
					     .stores = op[i].branch == PATH_STORES};
	if (likely(!t->watching)) {
		model_strings(core, op->pc, s, nr, n, down);
		return;
	}
	for (; n; n--) {
		for (u32 i = 0; i < nr; i++) {
			access(t, core, op + i, s[i].at);
			s[i].at += down ? -(u64)op->size : op->size;
		}
	}
}

static void branch(struct feed *f, struct model_core *core, const struct feed_op *op)
{
	bool filtered = op->branch == MODEL_COND && predictor_filters(&core->predictor, op->pc);

	model_branch(core, op->pc, op->pc + op->len, (enum model_branch_kind)op->branch, op->taken,
		     op->target);
	if (filtered && !predictor_filters(&core->predictor, op->pc))
		feed_path_take_in(f, branch_place(op->pc).site);
}

/* The records of @a, which are no others': as many as it can have, or none. Moves past them. */
static inline const struct path_record *take_records(struct feed_thread *t,
						     const struct feed_access *a)
{
	const struct path_record *r = t->record;
	u32 n = a->kind >= PATH_LOADS ? 2 : 1;

	if (r == t->record_end || path_record_access(r) != a->number || feed_ahead(t, r))
		return NULL;
	if (n == 2 && (t->record_end - r < 2 || path_record_access(r + 1) != a->number))
		return NULL;
	t->record += n;
	return r;
}

/* Strings that an instruction has gone over, each from where it began to where it stopped. */
static void recorded_strings(struct feed_thread *t, struct model_core *core,
			     const struct feed_access *a, const struct path_record *r,
			     const struct feed_access *next)
{
	struct feed_op op[2] = {{.kind = OP_STRING, .index = 1, .size = a->size, .pc = a->pc},
				{.kind = OP_STRING, .base = 2, .index = 3, .pc = a->pc}};
	u64 slots[4] = {r[0].addr, r[1].addr};

	op[0].branch = a->kind;
	op[0].taken = a->flags;
	r = next ? take_records(t, next) : NULL;
	if (r) {
		op[0].and_next = 1;
		op[1].branch = next->kind;
		op[1].taken = next->flags;
		op[1].size = next->size;
		slots[2] = r[0].addr;
		slots[3] = r[1].addr;
	}
	string(t, core, op, slots);
}

void feed_recorded(struct feed_thread *t, struct model_core *core, const struct feed_access *a,
		   const struct feed_access *next)
{
	const struct path_record *r = take_records(t, a);

	if (!r)
		return;
	switch (a->kind) {
	case PATH_LOAD:
	case PATH_STORE:
	case PATH_PREFETCH:
		t->loads -= a->kind == PATH_LOAD;
		t->stores -= a->kind == PATH_STORE;
		access(t, core, &(struct feed_op){.branch = a->kind, .size = a->size, .pc = a->pc},
		       r->addr);
		break;
	default: recorded_strings(t, core, a, r, next);
	}
}

static void recorded_op(struct feed_thread *t, struct model_core *core, const struct feed_op *op)
{
	struct feed_access a = access_of(op), next = op->and_next ? access_of(op + 1) : a;

	feed_recorded(t, core, &a, op->and_next ? &next : NULL);
}

static inline void tell_ops(struct feed *f, struct feed_thread *t, struct model_core *core,
			    struct feed_op *op, const struct feed_op *end, const u64 *slots)
{
	for (; op < end; op++) {
		/* With records nothing else is kept. */
		if (likely(op->kind == OP_FETCH)) {
			if (op->pc + 1 != core->fetch_line || op->pc != op->target)
				model_fetch_lines(core, op->pc, op->target, &op->near);
			continue;
		}
		switch (op->kind) {
		case OP_BRANCH: branch(f, core, op); break;
		case OP_OPEN:
			t->open = op->branch;
			t->open_pc = op->pc;
			t->open_next = op->pc + op->len;
			break;
		case OP_LOAD:
			model_load(core, op->pc, slots[op->base] + op->target, op->size);
			break;
		case OP_STORE:
			model_store(core, op->pc, slots[op->base] + op->target, op->size);
			break;
		case OP_ACCESS: access(t, core, op, address(t, op, slots)); break;
		case OP_RECORDED: recorded_op(t, core, op); break;
		case OP_FLOATS: model_floats(core, op->base, op->size); break;
		default: string(t, core, op, slots); op += op->and_next;
		}
	}
}

/* tell_ops() for a thread that watches. */
__attribute__((noinline)) static void tell_watched(struct feed *f, struct feed_thread *t,
						   struct model_core *core, struct feed_op *op,
						   const struct feed_op *end, const u64 *slots)
{
	for (; op < end; op++) {
		switch (op->kind) {
		case OP_FETCH:
			if (op->pc + 1 != core->fetch_line || op->pc != op->target)
				model_fetch_lines(core, op->pc, op->target, &op->near);
			feed_watch_fetch(t, core, op->pc + op->len);
			break;
		case OP_BRANCH:
			branch(f, core, op);
			feed_watch_branch(t, core, op->pc, op->target);
			break;
		case OP_LOAD:
		case OP_STORE: access(t, core, op, slots[op->base] + op->target); break;
		case OP_FLOATS:
			model_floats(core, op->base, op->size);
			feed_watch_insn(t, core, op->pc);
			break;
		default:
			tell_ops(f, t, core, op, op + 1, slots);
			op += op->kind == OP_STRING && op->and_next;
		}
	}
}

/* What it fetches and accesses, of a path with ops. */
static inline void tell_path(struct feed *f, struct feed_thread *t, struct model_core *core,
			     struct feed_path *p, const u64 *slots)
{
	struct feed_op *op = ops_of(p), *end = op + p->nr_ops;

	/* Those of a path that is not described. */
	while (t->record < t->record_end && feed_ahead(t, t->record) < 0)
		t->record++;
	if (unlikely(t->watching))
		tell_watched(f, t, core, op, end, slots);
	else
		tell_ops(f, t, core, op, end, slots);
	/* Of a path that was taken in part there may be more. */
	while (t->record < t->record_end && feed_ahead(t, t->record) <= 0)
		t->record++;
}

/* False: it is left out, since slots are missing. */
static inline bool tell(struct feed *f, struct feed_thread *t, struct model_core *core,
			struct feed_path *p)
{
	const u64 *slots = t->next;

	if (unlikely(t->end - slots < p->nr_slots)) {
		f->unknown++;
		return false;
	}
	t->next = slots + p->nr_slots;
	close_branch(t, core, p->pc);
	if (unlikely(t->watching)) {
		t->watching->feed = f;
		t->watching->path = p;
	}
	if (p->branches.nr)
		model_path_branches(core, &p->branches, p + 1);
	if (p->plain)
		feed_tell_plain(t, core, p);
	else
		tell_path(f, t, core, p, slots);
	t->loads += p->loads;
	t->stores += p->stores;
	if (p->open) {
		t->open = p->open;
		t->open_pc = p->open_pc;
		t->open_next = p->open_pc + p->open_len;
	}
	if (unlikely(t->watching)) {
		feed_watch_work(f, t, core, p);
		t->watching->path = NULL;
	} else {
		feed_work(f, core, p->insns, p->ticks);
	}
	return true;
}

/* A path that is not kept. */
__attribute__((noinline)) static void take_other(struct feed *f, struct feed_thread *t,
						 struct model_core *core, u32 number)
{
	struct feed_path *p = number >= PATH_FIRST ? feed_path_of(f, number) : NULL;

	if (p) {
		if (tell(f, t, core, p))
			feed_path_keep(f, core, number, p);
		return;
	}
	/* Of code for which there was no room the number is that of its instructions. */
	f->unknown += number < PATH_FIRST ? number : 1;
	t->open = 0;
	if (number < PATH_FIRST)
		feed_work(f, core, number, number * (u64)MACHINE_TICKS);
	if (t->watching)
		feed_watch_insn(t, core, 0);
}

static inline void take_path(struct feed *f, struct feed_thread *t, struct model_core *core,
			     u32 number)
{
	struct feed_path *p = feed_path_kept(f, number);

	if (likely(p))
		tell(f, t, core, p);
	else
		take_other(f, t, core, number);
	if (unlikely(t->watching))
		feed_watch_told(t);
}

static void take_part(struct feed *f, struct feed_thread *t, struct model_core *core, u32 block,
		      u32 from, u32 upto)
{
	struct feed_path *p = from < upto ? feed_path_make(f, block, from, upto, false) : NULL;

	if (p)
		tell(f, t, core, p);
	else
		f->unknown++;
	if (t->watching)
		feed_watch_told(t);
}

/* The path ends before instruction @upto of its block, and perhaps before its first one. */
static void take_path_upto(struct feed *f, struct feed_thread *t, struct model_core *core,
			   u32 number, u32 upto)
{
	struct path_entry e = f->space->path[number];

	if (number >= PATH_FIRST && e.known && upto > e.from)
		take_part(f, t, core, e.block, e.from, upto);
}

static void take_insn(struct feed *f, struct feed_thread *t, struct model_core *core, u64 pc)
{
	close_branch(t, core, pc);
	if (f->parts & (MODEL_CACHES | MODEL_TLBS))
		model_fetch(core, pc, 1);
	feed_work(f, core, 1, f->system);
	if (t->watching) {
		feed_watch_insn(t, core, pc);
		feed_watch_told(t);
	}
}

static void take_elements(struct feed_thread *t, const u32 *words)
{
	t->elements_pc = words[1] | (u64)words[2] << 32;
	t->string_flags = (u8)words[0];
	t->string_ends = (u8)(words[0] >> 8);
	t->nr_ends = 0;
}

/* Of an interrupted instruction where a string began, and where it is now; when all is told. */
static void take_end(struct feed_thread *t, struct model_core *core, const u32 *words)
{
	struct feed_op op[2];

	if (t->nr_ends == ARRAY_SIZE(t->ends))
		return;
	t->end_what[t->nr_ends] = words[0];
	t->ends[t->nr_ends++] = words[1] | (u64)words[2] << 32;
	if (t->nr_ends < t->string_ends)
		return;
	for (u32 i = 0; i < 2; i++)
		op[i] = (struct feed_op){.kind = OP_STRING,
					 .branch = (t->end_what[2 * i] >> 16 & 0xff) == PATH_STORES
							   ? PATH_STORES
							   : PATH_LOADS,
					 .size = (u16)t->end_what[2 * i],
					 .base = (u16)(2 * i),
					 .index = (u16)(2 * i + 1),
					 .and_next = !i && t->nr_ends == 4,
					 .taken = t->string_flags & (i ? PATH_ADDR32 : 0xff),
					 .pc = t->elements_pc};
	if (op[0].size)
		string(t, core, op, t->ends);
}

/* It comes before what it is of, with which a branch is closed that is open. */
static void take_element(const struct feed *f, struct feed_thread *t, struct model_core *core,
			 const u32 *words)
{
	const struct feed_op op = {.branch = words[0] >> 16 & 1 ? PATH_STORE : PATH_LOAD,
				   .size = (u16)words[0],
				   .pc = t->elements_pc};

	if (!has_memory(f))
		return;
	if (t->string_ends)
		take_end(t, core, words);
	else
		access(t, core, &op, words[1] | (u64)words[2] << 32);
}

static bool is_path(u32 word)
{
	return word < PATH_WORDS;
}

/* Path @number, behind which come @n words at @next. Returns how many of them are about it. */
static u32 settle(struct feed *f, struct feed_thread *t, struct model_core *core, u32 number,
		  const u32 *next, u32 n)
{
	u32 kind = n && !is_path(next[0]) ? next[0] & PATH_TRACE_KIND : 0;

	if (kind == PATH_TRACE_BACK && n >= 2) {
		take_path_upto(f, t, core, number, next[0] >> 8 & 0xff);
		return 2;
	}
	if (kind == PATH_TRACE_AGAIN && n >= 3 && number >= PATH_FIRST) {
		take_path_upto(f, t, core, number, f->space->path[number].upto - 1u);
		return 3;
	}
	take_path(f, t, core, number);
	return 0;
}

/* An entry that is no path: how many words it has. */
static u32 take_entry(struct feed *f, struct feed_thread *t, struct model_core *core,
		      const u32 *words, u32 n)
{
	switch (words[0] & PATH_TRACE_KIND) {
	case PATH_TRACE_PART:
		if (n >= 2)
			take_part(f, t, core, words[1], words[0] >> 8 & 0xff, words[0] & 0xff);
		return 2;
	case PATH_TRACE_INSN:
		if (n >= 3)
			take_insn(f, t, core, words[1] | (u64)words[2] << 32);
		return 3;
	case PATH_TRACE_ELEMENTS:
		if (n >= 3)
			take_elements(t, words);
		return 3;
	case PATH_TRACE_ELEMENT:
		if (n >= 3)
			take_element(f, t, core, words);
		return 3;
	/* What they are about has been settled, as that a system call was made. */
	case PATH_TRACE_BACK: return 2;
	case PATH_TRACE_AGAIN: return 3;
	default: f->unknown++; return 1;
	}
}

/* The path that is pending has what slots there were when it was, and the first of those now. */
static void complete_pending(struct feed *f, struct feed_thread *t, const u64 **slots,
			     const u64 *end)
{
	struct path_entry e = f->space->path[t->pending];
	const struct feed_path *p = NULL;

	if (t->pending >= PATH_FIRST && e.known) {
		p = feed_path_kept(f, t->pending);
		p = p ? p : feed_path_of(f, t->pending);
	}

	while (p && t->nr_stashed < p->nr_slots && t->nr_stashed < PATH_SLOTS_MAX && *slots < end)
		t->stash[t->nr_stashed++] = *(*slots)++;
}

/* Keeps the next records that are of word @word, for the path that is pending. */
static void stash_records(struct feed_thread *t, s32 word)
{
	for (; t->record < t->record_end && path_record_word(t->record, t->trace) <= word;
	     t->record++) {
		if (t->nr_stashed_records == ARRAY_SIZE(t->stash_record))
			continue;
		t->stash_record[t->nr_stashed_records] = *t->record;
		/* Of the first word of a trace at 0. */
		t->stash_record[t->nr_stashed_records++].at = t->record->what & PATH_RECORD_COUNTED
								      ? 4
								      : 0;
	}
}

/* The pending one, behind which come @n words at @next. Returns how many of them are about it. */
static u32 settle_pending(struct feed *f, struct feed_thread *t, struct model_core *core,
			  const u32 *next, u32 n)
{
	const struct path_record *record = t->record, *end = t->record_end;
	u64 trace = t->trace;
	u32 used;

	t->next = t->stash;
	t->end = t->stash + t->nr_stashed;
	t->record = t->stash_record;
	t->record_end = t->stash_record + t->nr_stashed_records;
	t->trace = 0;
	t->word = 0;
	used = settle(f, t, core, t->pending, next, n);
	t->pending = t->nr_stashed = t->nr_stashed_records = 0;
	t->record = record;
	t->record_end = end;
	t->trace = trace;
	return used;
}

static void tell_hits(struct feed_thread *t, struct model_core *core)
{
	model_hits(core, t->loads, t->stores);
	t->loads = t->stores = 0;
	if (t->watching)
		feed_watch_insn(t, core, 0);
}

static void take_words(struct feed *f, struct feed_thread *t, struct model_core *core,
		       const struct feed_input *in)
{
	const u32 *words = in->words;
	const u64 *slots = in->slots, *end = slots + (has_memory(f) ? in->nr_slots : 0);
	u32 i = 0, n = in->nr_words;

	t->record = in->records;
	t->record_end = in->records + in->nr_records;
	t->trace = in->trace;
	if (t->pending && n) {
		stash_records(t, -1);
		if (is_path(words[0]) || (words[0] & PATH_TRACE_KIND) != PATH_TRACE_BACK)
			complete_pending(f, t, &slots, end);
		i = settle_pending(f, t, core, words, n);
	}
	t->next = slots;
	t->end = end;
	while (i < n) {
		t->word = (s32)i;
		if (unlikely(!is_path(words[i]))) {
			i += take_entry(f, t, core, words + i, n - i);
		} else if (unlikely(i + 1 == n)) {
			t->pending = words[i];
			while (t->next < t->end && t->nr_stashed < PATH_SLOTS_MAX)
				t->stash[t->nr_stashed++] = *t->next++;
			stash_records(t, (s32)i);
			return;
		} else if (likely(is_path(words[i + 1]))) {
			if (!f->each && !t->watching)
				i += feed_take_kept(f, t, core, words + i, n - i);
			if (i + 1 < n && is_path(words[i]) && is_path(words[i + 1]))
				take_path(f, t, core, words[i++]);
		} else {
			u32 number = words[i++];

			i += settle(f, t, core, number, words + i, n - i);
		}
	}
}

void feed_words(struct feed *f, struct feed_thread *t, struct model_core *core,
		const struct feed_input *in)
{
	take_words(f, t, core, in);
	tell_hits(t, core);
}

void feed_settle(struct feed *f, struct feed_thread *t, struct model_core *core)
{
	t->record = t->record_end = NULL;
	if (t->pending)
		settle_pending(f, t, core, NULL, 0);
	tell_hits(t, core);
}

void feed_init(struct feed *f, struct model *model, const struct path_space *space, u32 parts,
	       bool each)
{
	const struct machine *m = model_machine(model);
	struct cost cost = {0};

	cost_add(&cost, m, COST_SYSTEM, 0, 0);
	f->model = model;
	f->space = space;
	f->parts = parts;
	f->each = each;
	f->counts = true;
	f->line = m->memory.line;
	f->system = cost_ticks(&cost, m);
}
