#include "model/feed.h"

#include "model/cycles.h"

#define INSNS_MAX 255u
#define OPS_MAX   (INSNS_MAX * 2) /* of a path */

enum feed_op_kind {
	OP_FETCH,
	OP_BRANCH,
	OP_OPEN, /* a branch whose target is the next path; the last one */
};

struct feed_op {
	u8 kind;   /* enum feed_op_kind */
	u8 len;    /* bytes of the instruction */
	u8 branch; /* enum model_branch_kind */
	u8 taken;
	u32 reserved;
	u64 pc, target;
};

/* What the model is told when a path is taken. */
struct feed_path {
	u64 pc;
	u64 ticks;
	u32 insns;
	u32 nr_ops;
	struct feed_op op[];
};

_Static_assert(sizeof(struct feed_path) + OPS_MAX * sizeof(struct feed_op) < 65536, "PATH_ROOM");
#define PATH_ROOM 65536u /* bytes that the largest may take */

/* A block as it is described, within its bounds. */
struct described {
	struct path_block head;
	const u8 *frags, *targets, *insns, *costs;
};

/*
 * Others that count in the same segment could write to it, so lengths are read once. The parts are
 * not aligned to what they are.
 */
static bool see(const struct feed *f, u32 block, struct described *d)
{
	u64 at = (u64)block * 8, end;

	if (!block || at > PATH_LOG - sizeof(d->head))
		return false;
	__builtin_memcpy(&d->head, f->space->log + at, sizeof(d->head));
	if (!d->head.nr_frags || d->head.nr_frags > INSNS_MAX || !d->head.nr_insns ||
	    d->head.nr_insns > INSNS_MAX || d->head.nr_targets > INSNS_MAX)
		return false;
	d->frags = f->space->log + at + sizeof(d->head);
	d->targets = d->frags + d->head.nr_frags * sizeof(struct path_frag);
	d->insns = d->targets + d->head.nr_targets * sizeof(u64);
	d->costs = d->insns + ALIGN_UP((u32)d->head.nr_insns, 2u);
	end = (u64)(d->costs - f->space->log) +
	      (d->head.traced ? d->head.nr_insns * sizeof(u16) : 0);
	return end <= PATH_LOG;
}

/* A path being worked out. */
struct making {
	const struct feed *f;
	struct feed_path *path;
	struct cost cost;
	u64 line; /* of the last fetch, + 1; 0: there was none */
};

static struct feed_op *add_op(struct making *m, u8 kind, u64 pc, u32 len)
{
	struct feed_op *op = &m->path->op[m->path->nr_ops++];

	*op = (struct feed_op){.kind = kind, .len = (u8)len, .pc = pc};
	return op;
}

/* Within the line of the last fetch the model is told nothing, since nothing would be counted. */
static void add_fetch(struct making *m, u64 pc, u32 len)
{
	u64 mask = ~((u64)m->f->line - 1), first = pc & mask, last = (pc + len - 1) & mask;

	if (!(m->f->parts & (MODEL_CACHES | MODEL_TLBS)) || (first == last && first + 1 == m->line))
		return;
	m->line = last + 1;
	add_op(m, OP_FETCH, pc, len);
}

static void add_branch(struct making *m, u64 pc, u32 len, u8 kind, bool taken, u64 target)
{
	static const u8 kinds[] = {
		[PATH_COND] = MODEL_COND,         [PATH_JUMP] = MODEL_JUMP,
		[PATH_CALL] = MODEL_CALL,         [PATH_CALL_IND] = MODEL_CALL_IND,
		[PATH_JUMP_IND] = MODEL_JUMP_IND, [PATH_RETURN] = MODEL_RETURN,
	};
	struct feed_op *op;

	if (!(m->f->parts & MODEL_BRANCHES) || kind >= ARRAY_SIZE(kinds) || !kinds[kind])
		return;
	op = add_op(m, path_insn_is_direct(kind) ? OP_BRANCH : OP_OPEN, pc, len);
	op->branch = kinds[kind];
	op->taken = kind != PATH_COND || taken;
	op->target = target;
}

static void add_cost(struct making *m, const u8 *at)
{
	const struct machine *machine = model_machine(m->f->model);
	u32 class;
	u16 cost;

	__builtin_memcpy(&cost, at, sizeof(cost));
	class = cost & 0xff;
	if (class < COST_CLASSES)
		cost_add(&m->cost, machine, (enum cost_class) class, cost >> 8 & 15, cost >> 12);
}

/*
 * Works out instructions [from, upto) of a block, of which the last one is a branch that was @taken
 * if it is conditional. In room[] behind what is used. NULL: they are not described.
 */
static struct feed_path *make(struct feed *f, u32 block, u32 from, u32 upto, bool taken)
{
	struct making m = {.f = f, .path = (struct feed_path *)(f->room + f->used)};
	u32 frag = 0, target = 0;
	struct path_frag at, next;
	struct described d;
	u64 pc;

	if (!see(f, block, &d) || from >= upto || upto > d.head.nr_insns)
		return NULL;
	*m.path = (struct feed_path){.insns = upto - from};
	__builtin_memcpy(&at, d.frags, sizeof(at));
	pc = at.pc;
	for (u32 i = 0; i < upto; i++) {
		u8 len = d.insns[i] & 15, kind = d.insns[i] >> 4;
		u64 to = 0;

		/* Several may begin with the same instruction, all but the last being empty. */
		for (; frag + 1 < d.head.nr_frags; frag++) {
			__builtin_memcpy(&next, d.frags + (frag + 1) * sizeof(next), sizeof(next));
			if (next.first != i)
				break;
			pc = next.pc;
		}
		if (path_insn_is_direct(kind)) {
			if (target == d.head.nr_targets)
				return NULL;
			__builtin_memcpy(&to, d.targets + target++ * sizeof(to), sizeof(to));
		}
		if (i == from)
			m.path->pc = pc;
		if (i >= from) {
			add_fetch(&m, pc, len);
			if (d.head.traced)
				add_cost(&m, d.costs + i * sizeof(u16));
			if (path_insn_is_direct(kind) || i + 1 == upto)
				add_branch(&m, pc, len, kind, taken && i + 1 == upto, to);
		}
		pc += len;
	}
	m.path->ticks = cost_ticks(&m.cost, model_machine(f->model));
	return m.path;
}

/* The path of that number; NULL: it is not described. */
static const struct feed_path *path_of(struct feed *f, u32 number)
{
	struct path_entry e = f->space->path[number];
	struct feed_path *p;
	u64 size;

	if (!e.known)
		return NULL;
	p = make(f, e.block, e.from, e.upto, e.taken);
	if (!p)
		return NULL;
	size = ALIGN_UP(sizeof(*p) + p->nr_ops * sizeof(p->op[0]), 8);
	/* There is always room for one more. */
	if (f->used + size + PATH_ROOM > sizeof(f->room))
		return p;
	f->at[number] = (u32)(f->used / 8) + 1;
	f->used += size;
	return p;
}

/* An indirect branch has gone to @pc. */
static inline void close_branch(struct feed_thread *t, struct model_core *core, u64 pc)
{
	if (!t->open)
		return;
	model_branch(core, t->open_pc, t->open_next, (enum model_branch_kind)t->open, true, pc);
	t->open = 0;
}

static inline void tell(const struct feed *f, struct feed_thread *t, struct model_core *core,
			const struct feed_path *p)
{
	close_branch(t, core, p->pc);
	for (const struct feed_op *op = p->op, *end = op + p->nr_ops; op < end; op++) {
		switch (op->kind) {
		case OP_FETCH: model_fetch(core, op->pc, op->len); break;
		case OP_BRANCH:
			model_branch(core, op->pc, op->pc + op->len,
				     (enum model_branch_kind)op->branch, op->taken, op->target);
			break;
		default:
			t->open = op->branch;
			t->open_pc = op->pc;
			t->open_next = op->pc + op->len;
		}
	}
	if (f->parts & MODEL_CYCLES)
		model_work(core, p->insns, p->ticks);
}

static inline void take_path(struct feed *f, struct feed_thread *t, struct model_core *core,
			     u32 number)
{
	const struct feed_path *p;

	if (likely(f->at[number])) {
		tell(f, t, core, (const struct feed_path *)(f->room + (f->at[number] - 1) * 8ull));
		return;
	}
	p = number >= PATH_FIRST ? path_of(f, number) : NULL;
	if (p) {
		tell(f, t, core, p);
		return;
	}
	/* Of code for which there was no room the number is that of its instructions. */
	f->unknown += number < PATH_FIRST ? number : 1;
	t->open = 0;
	if (f->parts & MODEL_CYCLES && number < PATH_FIRST)
		model_work(core, number, number * (u64)MACHINE_TICKS);
}

static void take_part(struct feed *f, struct feed_thread *t, struct model_core *core, u32 block,
		      u32 from, u32 upto)
{
	const struct feed_path *p = from < upto ? make(f, block, from, upto, false) : NULL;

	if (p)
		tell(f, t, core, p);
	else
		f->unknown++;
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
	if (f->parts & MODEL_CYCLES)
		model_work(core, 1, f->system);
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
	/* What they are about has been settled, as that a system call was made. */
	case PATH_TRACE_BACK: return 2;
	case PATH_TRACE_AGAIN: return 3;
	default: f->unknown++; return 1;
	}
}

void feed_words(struct feed *f, struct feed_thread *t, struct model_core *core, const u32 *words,
		u32 n)
{
	u32 i = 0;

	if (t->pending && n)
		i = settle(f, t, core, t->pending, words, n);
	t->pending = 0;
	while (i < n) {
		if (unlikely(!is_path(words[i]))) {
			i += take_entry(f, t, core, words + i, n - i);
		} else if (unlikely(i + 1 == n)) {
			t->pending = words[i];
			return;
		} else if (likely(is_path(words[i + 1]))) {
			take_path(f, t, core, words[i++]);
		} else {
			u32 number = words[i++];

			i += settle(f, t, core, number, words + i, n - i);
		}
	}
}

void feed_settle(struct feed *f, struct feed_thread *t, struct model_core *core)
{
	if (t->pending)
		take_path(f, t, core, t->pending);
	t->pending = 0;
}

void feed_init(struct feed *f, struct model *model, const struct path_space *space, u32 parts)
{
	const struct machine *m = model_machine(model);
	struct cost cost = {0};

	cost_add(&cost, m, COST_SYSTEM, 0, 0);
	f->model = model;
	f->space = space;
	f->parts = parts;
	f->line = m->memory.line;
	f->system = cost_ticks(&cost, m);
}
