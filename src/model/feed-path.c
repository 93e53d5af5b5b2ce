#include "model/feed-path.h"

#include "model/cycles.h"
#include "model/floats.h"

#define INSNS_MAX    255u
#define ACCESSES_MAX 1024u /* of a block */
#define OPS_MAX      (INSNS_MAX * 3 + ACCESSES_MAX)

/* A path that leaves a branch out; of a list. */
struct left_out {
	u32 path, next;
};

_Static_assert(sizeof(struct feed_path) + OPS_MAX * sizeof(struct feed_op) < FEED_PATH_MAX,
	       "a path has room");
#define PATH_ROOM (FEED_PATH_MAX + INSNS_MAX * (u32)sizeof(struct left_out)) /* and its lists */

/* A block as it is described, within its bounds. */
struct described {
	struct path_block head;
	const u8 *frags, *targets, *insns, *costs, *slot_insn, *accesses;
	struct path_accesses of; /* accesses */
};

/*
 * Others that count in the same segment could write to it, so lengths are read once. The parts are
 * not aligned to what they are.
 */
static bool see(const struct feed *f, u32 block, struct described *d)
{
	const u8 *log = f->space->log;
	u64 at = (u64)block * 8, end;

	if (!block || at > PATH_LOG - sizeof(d->head))
		return false;
	__builtin_memcpy(&d->head, log + at, sizeof(d->head));
	if (!d->head.nr_frags || d->head.nr_frags > INSNS_MAX || !d->head.nr_insns ||
	    d->head.nr_insns > INSNS_MAX || d->head.nr_targets > INSNS_MAX)
		return false;
	d->frags = log + at + sizeof(d->head);
	d->targets = d->frags + d->head.nr_frags * sizeof(struct path_frag);
	d->insns = d->targets + d->head.nr_targets * sizeof(u64);
	d->costs = d->insns + path_costs_begin(d->head.nr_insns);
	end = (u64)(d->insns - log) +
	      (d->head.traced ? path_costs_end(d->head.nr_insns) : d->head.nr_insns);
	d->of = (struct path_accesses){0};
	d->slot_insn = d->accesses = NULL;
	if (d->head.traced < PATH_TRACED_ACCESSES || end > PATH_LOG - 2 * sizeof(d->of))
		return end <= PATH_LOG;
	end = ALIGN_UP(end, 8ull);
	__builtin_memcpy(&d->of, log + end, sizeof(d->of));
	end += sizeof(d->of);
	d->slot_insn = log + end;
	end += ALIGN_UP((u32)d->of.nr_slots, 8u);
	d->accesses = log + end;
	end += d->of.nr_accesses * sizeof(struct path_access);
	return d->of.nr_accesses <= ACCESSES_MAX && end <= PATH_LOG;
}

/* How many slots its instructions before @insn have. */
static u32 slots_before(const struct described *d, u32 insn)
{
	u32 n = 0;

	while (n < d->of.nr_slots && d->slot_insn[n] < insn)
		n++;
	return n;
}

/* Moves from one instruction of a block to the next. */
struct insn_walk {
	u32 insn, frag;
	u64 pc;
};

static void walk_begin(struct insn_walk *w, const struct described *d)
{
	struct path_frag at;

	__builtin_memcpy(&at, d->frags, sizeof(at));
	*w = (struct insn_walk){.pc = at.pc};
}

/* Several may begin with the same instruction, all but the last being empty. */
static void walk_to_frag(struct insn_walk *w, const struct described *d)
{
	struct path_frag next;

	for (; w->frag + 1 < d->head.nr_frags; w->frag++) {
		__builtin_memcpy(&next, d->frags + (w->frag + 1) * sizeof(next), sizeof(next));
		if (next.first != w->insn)
			break;
		w->pc = next.pc;
	}
}

static void walk_on(struct insn_walk *w, const struct described *d)
{
	w->pc += d->insns[w->insn++] & 15;
}

/* A path being worked out. */
struct making {
	const struct feed *f;
	struct feed_path *path;
	struct cost cost;
	u64 line; /* of the last fetch, + 1; 0: there was none */
	u32 first_slot, end_slot;
	bool records; /* the block's accesses have records */
};

static struct feed_op *add_op(struct making *m, u8 kind, u64 pc, u32 len)
{
	struct feed_op *op = (struct feed_op *)(m->path + 1) + m->path->nr_ops++;

	*op = (struct feed_op){.kind = kind, .len = (u8)len, .pc = pc};
	return op;
}

/*
 * Within the line of the last fetch the model is told nothing, since nothing would be counted. What
 * others have described may have no length.
 */
static void add_fetch(struct making *m, u64 pc, u32 len)
{
	u64 mask = ~((u64)m->f->line - 1), first = pc & mask, last = (pc + len - (len > 0)) & mask;

	if (!(m->f->parts & (MODEL_CACHES | MODEL_TLBS)) || (first == last && first + 1 == m->line))
		return;
	m->line = last + 1;
	add_op(m, OP_FETCH, first, (u32)(pc - first))->target = last;
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

/* A slot of the block as one of the path; false: it is none of its own. */
static bool slot_of_path(const struct making *m, u16 *slot)
{
	if (*slot == PATH_NO_SLOT)
		return true;
	if (*slot < m->first_slot || *slot >= m->end_slot)
		return false;
	*slot -= (u16)m->first_slot;
	return true;
}

static void add_recorded(struct making *m, u64 pc, const struct path_access *a, u32 number)
{
	struct feed_op *op;

	if (a->kind > PATH_STORES || !a->size)
		return;
	op = add_op(m, OP_RECORDED, pc, 0);
	op->branch = a->kind;
	op->taken = a->flags;
	op->size = a->size;
	op->base = (u16)number;
	if (a->kind >= PATH_LOADS && m->path->nr_ops > 1 && op[-1].kind == OP_RECORDED &&
	    op[-1].branch >= PATH_LOADS && op[-1].pc == pc)
		op[-1].and_next = 1;
	m->path->loads += a->kind == PATH_LOAD;
	m->path->stores += a->kind == PATH_STORE;
}

static void add_access(struct making *m, u64 pc, const u8 *at, u32 number)
{
	struct path_access a;
	struct feed_op *op;
	bool plain;

	if (!(m->f->parts & (MODEL_CACHES | MODEL_TLBS)))
		return;
	__builtin_memcpy(&a, at, sizeof(a));
	if (m->records) {
		add_recorded(m, pc, &a, number);
		return;
	}
	if (!slot_of_path(m, &a.base) || !slot_of_path(m, &a.index) || a.kind > PATH_STORES)
		return;
	plain = a.base != PATH_NO_SLOT && a.index == PATH_NO_SLOT && !a.flags &&
		a.kind <= PATH_STORE;
	if (a.kind >= PATH_LOADS && (a.base == PATH_NO_SLOT || a.index == PATH_NO_SLOT || !a.size))
		return;
	op = add_op(m, OP_ACCESS, pc, 0);
	if (plain)
		op->kind = a.kind == PATH_LOAD ? OP_LOAD : OP_STORE;
	if (a.kind >= PATH_LOADS) {
		op->kind = OP_STRING;
		/* What one string instruction does to two strings comes one after the other. */
		if (m->path->nr_ops > 1 && op[-1].kind == OP_STRING && op[-1].pc == pc)
			op[-1].and_next = 1;
	}
	op->branch = a.kind;
	op->taken = (u8)(a.flags | a.scale << 4);
	op->size = a.size;
	op->base = a.base;
	op->index = a.index;
	op->target = a.disp;
}

/* Where nobody watches, those of a kind are one op. */
static void add_floats(struct making *m, u64 pc, u32 work)
{
	struct feed_op *op = (struct feed_op *)(m->path + 1), *end = op + m->path->nr_ops;

	if (!work || work >= FLOATS_WORK_MAX)
		return;
	for (; !m->f->each && op < end; op++)
		if (op->kind == OP_FLOATS && op->base == work) {
			op->size++;
			return;
		}
	op = add_op(m, OP_FLOATS, pc, 0);
	op->base = (u16)work;
	op->size = 1;
}

static void add_cost(struct making *m, u64 pc, const u8 *at)
{
	const struct machine *machine = model_machine(m->f->model);
	u32 class, cost;

	__builtin_memcpy(&cost, at, sizeof(cost));
	if (m->f->parts & MODEL_FLOATS)
		add_floats(m, pc, cost >> 16);
	class = cost & 0xff;
	if (class < COST_CLASSES)
		cost_add(&m->cost, machine, (enum cost_class) class, cost >> 8 & 15,
			 cost >> 12 & 15);
}

/*
 * Works out instructions [from, upto) of a block, of which the last one is a branch that was @taken
 * if it is conditional. In made[]. NULL: they are not described.
 */
struct feed_path *feed_path_make(struct feed *f, u32 block, u32 from, u32 upto, bool taken)
{
	struct making m = {.f = f, .path = (struct feed_path *)f->made};
	u32 target = 0, access = 0;
	struct described d;
	struct insn_walk w;

	if (!see(f, block, &d) || from >= upto || upto > d.head.nr_insns)
		return NULL;
	m.records = d.head.traced == PATH_TRACED_RECORDS;
	m.first_slot = slots_before(&d, from);
	m.end_slot = slots_before(&d, upto);
	*m.path = (struct feed_path){.insns = (u8)(upto - from),
				     .block = block,
				     .from = from,
				     .nr_slots = (u16)(m.end_slot - m.first_slot)};
	if (!has_memory(f))
		m.path->nr_slots = 0;
	walk_begin(&w, &d);
	for (; w.insn < upto; walk_on(&w, &d)) {
		u32 i = w.insn;
		u8 len = d.insns[i] & 15, kind = d.insns[i] >> 4;
		u64 to = 0, pc;

		walk_to_frag(&w, &d);
		pc = w.pc;
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
				add_cost(&m, pc, d.costs + i * sizeof(u32));
			for (; access < d.of.nr_accesses; access++) {
				const u8 *a = d.accesses + access * sizeof(struct path_access);
				u8 insn = a[offsetof(struct path_access, insn)];

				if (insn > i)
					break;
				if (insn == i)
					add_access(&m, pc, a, access);
			}
			if (path_insn_is_direct(kind) || i + 1 == upto)
				add_branch(&m, pc, len, kind, taken && i + 1 == upto, to);
		}
	}
	m.path->ticks = (u32)cost_ticks(&m.cost, model_machine(f->model));
	return m.path;
}

u64 feed_path_pc(const struct feed *f, const struct feed_path *p, u32 insn)
{
	struct described d;
	struct insn_walk w;

	if (!see(f, p->block, &d) || p->from + insn >= d.head.nr_insns)
		return 0;
	walk_begin(&w, &d);
	for (;; walk_on(&w, &d)) {
		walk_to_frag(&w, &d);
		if (w.insn == p->from + insn)
			return w.pc;
	}
}

bool feed_path_is_atomic(const struct feed *f, const struct feed_path *p, u64 pc)
{
	struct described d;
	struct insn_walk w;
	u32 cost;

	if (!see(f, p->block, &d) || !d.head.traced)
		return false;
	walk_begin(&w, &d);
	for (; w.insn < d.head.nr_insns; walk_on(&w, &d)) {
		walk_to_frag(&w, &d);
		__builtin_memcpy(&cost, d.costs + w.insn * sizeof(cost), sizeof(cost));
		if (w.pc == pc && w.insn >= p->from)
			return (cost & 0xff) == COST_ATOMIC;
	}
	return false;
}

/* The path of that number as it is made; NULL: it is not described. */
struct feed_path *feed_path_of(struct feed *f, u32 number)
{
	struct path_entry e = f->space->path[number];

	return e.known ? feed_path_make(f, e.block, e.from, e.upto, e.taken) : NULL;
}

/* Room for a path with its lists; NULL: there is none. */
static void *room_for(struct feed *f)
{
	return f->used + PATH_ROOM <= sizeof(f->room) ? f->room + f->used : NULL;
}

/* A branch of a path that is left out, until branches of its site have gone both ways. */
static void leave_out(struct feed *f, u32 number, u32 site)
{
	struct left_out *l = (struct left_out *)(f->room + f->used);

	*l = (struct left_out){.path = number, .next = f->left_out[site]};
	f->left_out[site] = (u32)(f->used / 8) + 1;
	f->used += sizeof(*l);
}

/* They have: the paths are worked out again when they are taken next. */
void feed_path_take_in(struct feed *f, u32 site)
{
	for (u32 i = f->left_out[site]; i;) {
		const struct left_out *l = (const struct left_out *)(f->room + (i - 1) * 8ull);

		f->at[l->path] = 0;
		i = l->next;
	}
	f->left_out[site] = 0;
}

/* All that it has with memory are fetches, and accesses that may have records. */
static bool is_plain(const struct feed_op *op, const struct feed_op *end)
{
	for (; op < end; op++) {
		switch (op->kind) {
		case OP_FETCH:
		case OP_BRANCH:
		case OP_OPEN:
		case OP_RECORDED:
		case OP_FLOATS: break;
		default: return false;
		}
	}
	return true;
}

/* In their place behind @p; where they end. */
static u8 *keep_ops(struct feed_path *p, const struct feed_op *op, const struct feed_op *end)
{
	struct feed_op *to = ops_of(p);

	for (; op < end; op++)
		if (op->kind != OP_BRANCH && op->kind != OP_OPEN)
			*to++ = *op;
	p->nr_ops = (u16)(to - ops_of(p));
	return (u8 *)to;
}

static u8 *keep_plain(const struct feed *f, struct feed_path *p, const struct feed_op *op,
		      const struct feed_op *end)
{
	struct feed_fetch *fetch = fetches_of(p);
	struct feed_floats *floats;
	struct feed_access *access;

	for (const struct feed_op *o = op; o < end; o++)
		if (o->kind == OP_FETCH)
			*fetch++ = (struct feed_fetch){.line = o->pc,
						       .near = o->near,
						       .more = (u16)((o->target - o->pc) / f->line),
						       .begin = o->len};
	p->nr_ops = (u16)(fetch - fetches_of(p));
	access = (struct feed_access *)fetch;
	fetch = fetches_of(p);
	for (const struct feed_op *o = op; o < end; o++) {
		fetch += o->kind == OP_FETCH;
		if (o->kind == OP_RECORDED) {
			access[p->nr_accesses] = access_of(o);
			access[p->nr_accesses++].before = (u16)(fetch - fetches_of(p));
		}
	}
	floats = (struct feed_floats *)(access + p->nr_accesses);
	for (const struct feed_op *o = op; o < end; o++)
		if (o->kind == OP_FLOATS)
			floats[p->nr_floats++] = (struct feed_floats){o->base, o->size};
	return (u8 *)(floats + p->nr_floats);
}

/* What has been told of a path, of which the predictor has learned, in the form to be kept. */
void feed_path_keep(struct feed *f, const struct model_core *core, u32 number,
		    struct feed_path *made)
{
	const struct predictor *predictor = &core->predictor;
	const struct feed_op *op = (const struct feed_op *)(made + 1), *end = op + made->nr_ops;
	struct branch_place cond[INSNS_MAX];
	u64 call[INSNS_MAX], jump[INSNS_MAX];
	struct path_branches b = {0};
	struct feed_path *p;
	u8 *then;

	if (!room_for(f))
		return;
	if (f->each) {
		u64 size = sizeof(*made) + made->nr_ops * sizeof(*op);

		__builtin_memcpy(f->room + f->used, made, size);
		f->at[number] = (u32)(f->used / 8) + 1;
		f->used += size;
		return;
	}
	for (const struct feed_op *o = op; o < end; o++) {
		if (o->kind != OP_BRANCH)
			continue;
		b.nr++;
		b.if_right = b.taken = 0;
		if (o->branch == MODEL_COND) {
			struct branch_place place = branch_place(o->pc);

			if (predictor_filters(predictor, o->pc)) {
				leave_out(f, number, place.site);
			} else {
				cond[b.nr_conds++] = place;
				b.if_right = b.taken = o->taken;
			}
		}
		if (o->branch == MODEL_CALL)
			call[b.nr_calls++] = o->pc + o->len;
		if (o->taken) {
			b.targets = b.targets << 5 ^ o->target >> 1;
			b.shift += 5;
			jump[b.nr_jumps++] = o->pc;
		}
		/* Nobody has so many that what was before is forgotten. */
		if (b.shift >= 64 || b.nr_conds >= 64)
			return;
	}
	p = (struct feed_path *)(f->room + f->used);
	*p = *made;
	p->branches = b;
	then = (u8 *)(p + 1);
	__builtin_memcpy(then, cond, b.nr_conds * sizeof(cond[0]));
	then += b.nr_conds * sizeof(cond[0]);
	__builtin_memcpy(then, call, b.nr_calls * sizeof(call[0]));
	then += b.nr_calls * sizeof(call[0]);
	__builtin_memcpy(then, jump, b.nr_jumps * sizeof(jump[0]));
	then += b.nr_jumps * sizeof(jump[0]);
	p->first_op = (u16)((then - (u8 *)(p + 1)) / 8);
	for (const struct feed_op *o = op; o < end; o++) {
		if (o->kind == OP_OPEN) {
			p->open = o->branch;
			p->open_pc = o->pc;
			p->open_len = o->len;
		}
	}
	p->plain = !p->nr_slots && is_plain(op, end);
	then = p->plain ? keep_plain(f, p, op, end) : keep_ops(p, op, end);
	f->at[number] = (u32)(f->used / 8) + 1;
	f->used = ALIGN_UP((u64)(then - f->room), 8ull);
}
