#include "model/feed.h"

#include "model/cycles.h"
#include "model/path-branches.h"

#define INSNS_MAX    255u
#define ACCESSES_MAX 1024u /* of a block */
#define OPS_MAX      (INSNS_MAX * 2 + ACCESSES_MAX)

enum feed_op_kind {
	OP_FETCH,
	OP_BRANCH,
	OP_OPEN, /* a branch whose target is the next path; the last one */
	OP_LOAD, /* of slot[base] + target */
	OP_STORE,
	OP_ACCESS,   /* any other; `access` says which */
	OP_STRING,   /* likewise; with a second one behind it, which goes along, if `and_next` */
	OP_RECORDED, /* an access that may have records; `base` is its number; likewise */
};

struct feed_op {
	u8 kind;   /* enum feed_op_kind */
	u8 len;    /* bytes of the instruction */
	u8 branch; /* enum model_branch_kind; of OP_ACCESS enum path_access_kind */
	u8 taken;  /* of OP_ACCESS enum path_access_flags, | scale << 4 */
	u16 size;  /* of an access */
	u16 base, index;
	u16 and_next;
	u32 reserved;
	u64 pc, target; /* of an access its displacement */
};

/* An access that may have records. */
struct feed_access {
	u64 pc;
	u16 number; /* of the block's accesses */
	u16 size;
	u16 before; /* comes before this op */
	u8 kind;    /* enum path_access_kind */
	u8 flags;   /* enum path_access_flags */
};

/*
 * What the model is told when a path is taken. It is made with an op for each branch; what is kept
 * has none, and an open one in its head.
 */
struct feed_path {
	u64 pc;
	u64 open_pc;
	u32 ticks;
	u16 nr_ops;
	u16 nr_slots;
	u8 insns;
	u8 open; /* enum model_branch_kind; 0: none */
	u8 open_len;
	u16 first_op; /* behind the head, in units of 8 bytes */
	u16 nr_accesses;
	u16 loads, stores; /* that may have records */
	struct path_branches branches;
	/*
	 * Then what goes with these; struct feed_op op[nr_ops]; struct feed_access[nr_accesses],
	 * which are ops as well when it is made.
	 */
};

static inline const struct feed_op *ops_of(const struct feed_path *p)
{
	return (const struct feed_op *)((const u8 *)(p + 1) + p->first_op * 8);
}

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
	d->of = (struct path_accesses){0};
	d->slot_insn = d->accesses = NULL;
	if (d->head.traced < PATH_TRACED_ACCESSES || end > PATH_LOG - 2 * sizeof(d->of))
		return end <= PATH_LOG;
	end = ALIGN_UP(end, 8ull);
	__builtin_memcpy(&d->of, f->space->log + end, sizeof(d->of));
	end += sizeof(d->of);
	d->slot_insn = f->space->log + end;
	end += ALIGN_UP((u32)d->of.nr_slots, 8u);
	d->accesses = f->space->log + end;
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

/* A path being worked out. */
struct making {
	const struct feed *f;
	struct feed_path *path;
	struct cost cost;
	u64 line; /* of the last fetch, + 1; 0: there was none */
	u32 first_slot, end_slot;
	bool records; /* the block's accesses have records */
};

/* Whether accesses and fetches are simulated. */
static bool has_memory(const struct feed *f)
{
	return f->parts & (MODEL_CACHES | MODEL_TLBS);
}

static struct feed_op *add_op(struct making *m, u8 kind, u64 pc, u32 len)
{
	struct feed_op *op = (struct feed_op *)(m->path + 1) + m->path->nr_ops++;

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
 * if it is conditional. In made[]. NULL: they are not described.
 */
static struct feed_path *make(struct feed *f, u32 block, u32 from, u32 upto, bool taken)
{
	struct making m = {.f = f, .path = (struct feed_path *)f->made};
	u32 frag = 0, target = 0, access = 0;
	struct path_frag at, next;
	struct described d;
	u64 pc;

	if (!see(f, block, &d) || from >= upto || upto > d.head.nr_insns)
		return NULL;
	m.records = d.head.traced == PATH_TRACED_RECORDS;
	m.first_slot = slots_before(&d, from);
	m.end_slot = slots_before(&d, upto);
	*m.path = (struct feed_path){.insns = (u8)(upto - from),
				     .nr_slots = (u16)(m.end_slot - m.first_slot)};
	if (!has_memory(f))
		m.path->nr_slots = 0;
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
		pc += len;
	}
	m.path->ticks = (u32)cost_ticks(&m.cost, model_machine(f->model));
	return m.path;
}

/* The path of that number as it is made; NULL: it is not described. */
static struct feed_path *path_of(struct feed *f, u32 number)
{
	struct path_entry e = f->space->path[number];

	return e.known ? make(f, e.block, e.from, e.upto, e.taken) : NULL;
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
static void take_in(struct feed *f, u32 site)
{
	for (u32 i = f->left_out[site]; i;) {
		const struct left_out *l = (const struct left_out *)(f->room + (i - 1) * 8ull);

		f->at[l->path] = 0;
		i = l->next;
	}
	f->left_out[site] = 0;
}

static struct feed_access access_of(const struct feed_op *op)
{
	return (struct feed_access){.pc = op->pc,
				    .number = op->base,
				    .size = op->size,
				    .kind = op->branch,
				    .flags = op->taken};
}

/* What has been told of a path, of which the predictor has learned, in the form to be kept. */
static void keep(struct feed *f, const struct model_core *core, u32 number,
		 const struct feed_path *made)
{
	const struct predictor *predictor = &core->predictor;
	const struct feed_op *op = (const struct feed_op *)(made + 1), *end = op + made->nr_ops;
	struct branch_place cond[INSNS_MAX];
	u64 call[INSNS_MAX], jump[INSNS_MAX];
	struct path_branches b = {0};
	struct feed_access *access;
	struct feed_path *p;
	struct feed_op *to;
	u8 *then;

	if (!room_for(f))
		return;
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
	to = (struct feed_op *)(then + b.nr_jumps * sizeof(jump[0]));
	p->first_op = (u16)(((u8 *)to - (u8 *)(p + 1)) / 8);
	p->nr_ops = 0;
	for (const struct feed_op *o = op; o < end; o++) {
		if (o->kind == OP_OPEN) {
			p->open = o->branch;
			p->open_pc = o->pc;
			p->open_len = o->len;
		} else if (o->kind != OP_BRANCH && o->kind != OP_RECORDED) {
			*to++ = *o;
			p->nr_ops++;
		}
	}
	access = (struct feed_access *)to;
	to -= p->nr_ops;
	for (const struct feed_op *o = op; o < end; o++) {
		if (o->kind == OP_RECORDED) {
			*access = access_of(o);
			access++->before = (u16)(to - ops_of(p));
			p->nr_accesses++;
		} else if (o->kind != OP_BRANCH && o->kind != OP_OPEN) {
			to++;
		}
	}
	f->at[number] = (u32)(f->used / 8) + 1;
	f->used += (u64)((u8 *)access - (u8 *)p);
}

/* An indirect branch has gone to @pc. */
static inline void close_branch(struct feed_thread *t, struct model_core *core, u64 pc)
{
	if (!t->open)
		return;
	model_branch(core, t->open_pc, t->open_next, (enum model_branch_kind)t->open, true, pc);
	t->open = 0;
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

static void access(struct model_core *core, const struct feed_op *op, u64 addr)
{
	switch (op->branch) {
	case PATH_LOAD:
	case PATH_LOADS: model_load(core, op->pc, addr, op->size); break;
	case PATH_STORE:
	case PATH_STORES: model_store(core, op->pc, addr, op->size); break;
	default: model_prefetch(core, addr);
	}
}

/* A repeated string instruction, by what it has done to the registers that go over the strings. */
static void string(const struct feed_thread *t, struct model_core *core, const struct feed_op *op,
		   const u64 *slots)
{
	u64 moved = slots[op->index] - (slots[op->base] + op->target), step = op->size;
	u64 n, at[2];

	if (op->taken & PATH_ADDR32)
		moved = (u64)(s64)(s32)moved;
	if ((s64)moved < 0) {
		moved = -moved;
		step = -step;
	}
	n = moved / op->size;
	at[0] = address(t, op, slots);
	at[1] = op->and_next ? address(t, op + 1, slots) : 0;
	for (; n; n--, at[0] += step, at[1] += step) {
		access(core, op, at[0]);
		if (op->and_next)
			access(core, op + 1, at[1]);
	}
}

static void branch(struct feed *f, struct model_core *core, const struct feed_op *op)
{
	bool filtered = op->branch == MODEL_COND && predictor_filters(&core->predictor, op->pc);

	model_branch(core, op->pc, op->pc + op->len, (enum model_branch_kind)op->branch, op->taken,
		     op->target);
	if (filtered && !predictor_filters(&core->predictor, op->pc))
		take_in(f, branch_place(op->pc).site);
}

/* The records of @a, which are no others': as many as it can have, or none. Moves past them. */
static inline const struct path_record *take_records(struct feed_thread *t,
						     const struct feed_access *a)
{
	const struct path_record *r = t->record;
	u32 n = a->kind >= PATH_LOADS ? 2 : 1;

	if (r == t->record_end || path_record_access(r) != a->number ||
	    path_record_word(r, t->trace) != t->word)
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

/* An access that may have been recorded; @next, which goes along with it, may be NULL. */
static void recorded(struct feed_thread *t, struct model_core *core, const struct feed_access *a,
		     const struct feed_access *next)
{
	const struct path_record *r = take_records(t, a);

	if (!r)
		return;
	switch (a->kind) {
	case PATH_LOAD:
		model_load(core, a->pc, r->addr, a->size);
		t->loads--;
		break;
	case PATH_STORE:
		model_store(core, a->pc, r->addr, a->size);
		t->stores--;
		break;
	case PATH_PREFETCH: model_prefetch(core, r->addr); break;
	default: recorded_strings(t, core, a, r, next);
	}
}

static void recorded_op(struct feed_thread *t, struct model_core *core, const struct feed_op *op)
{
	struct feed_access a = access_of(op), next = op->and_next ? access_of(op + 1) : a;

	recorded(t, core, &a, op->and_next ? &next : NULL);
}

static inline void tell_ops(struct feed *f, struct feed_thread *t, struct model_core *core,
			    const struct feed_op *op, const struct feed_op *end, const u64 *slots)
{
	for (; op < end; op++) {
		switch (op->kind) {
		case OP_FETCH: model_fetch(core, op->pc, op->len); break;
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
		case OP_ACCESS: access(core, op, address(t, op, slots)); break;
		case OP_RECORDED: recorded_op(t, core, op); break;
		default: string(t, core, op, slots); op += op->and_next;
		}
	}
}

/* A path of which not everything was filtered out. */
__attribute__((noinline)) static void tell_records(struct feed *f, struct feed_thread *t,
						   struct model_core *core,
						   const struct feed_path *p)
{
	const struct feed_op *op = ops_of(p), *next = op, *end = op + p->nr_ops;
	const struct feed_access *a = (const struct feed_access *)end;

	/* Those of a path that is not described. */
	while (t->record < t->record_end && path_record_word(t->record, t->trace) < t->word)
		t->record++;
	while (p->nr_accesses && t->record < t->record_end &&
	       path_record_word(t->record, t->trace) == t->word) {
		const struct path_record *r = t->record;
		u32 i = path_record_access(r) - a->number;

		/* Numbers of a block's accesses follow one another. */
		if (i >= p->nr_accesses || a[i].number != path_record_access(r)) {
			t->record++;
			continue;
		}
		if (next < op + a[i].before) {
			tell_ops(f, t, core, next, op + a[i].before, NULL);
			next = op + a[i].before;
		}
		if (a[i].kind == PATH_LOAD) {
			model_load(core, a[i].pc, r->addr, a[i].size);
			t->loads--;
			t->record++;
		} else if (a[i].kind == PATH_STORE) {
			model_store(core, a[i].pc, r->addr, a[i].size);
			t->stores--;
			t->record++;
		} else {
			bool with = i + 1 < p->nr_accesses && a[i].kind >= PATH_LOADS &&
				    a[i + 1].kind >= PATH_LOADS && a[i + 1].pc == a[i].pc;

			recorded(t, core, a + i, with ? a + i + 1 : NULL);
			/* One of a string alone says nothing. */
			if (t->record == r)
				t->record++;
		}
	}
	tell_ops(f, t, core, next, end, NULL);
	/* Of a path that was taken in part there may be more. */
	while (t->record < t->record_end && path_record_word(t->record, t->trace) <= t->word)
		t->record++;
	t->loads += p->loads;
	t->stores += p->stores;
}

/* False: it is left out, since slots are missing. */
static inline bool tell(struct feed *f, struct feed_thread *t, struct model_core *core,
			const struct feed_path *p)
{
	const u64 *slots = t->next;

	if (unlikely(t->end - slots < p->nr_slots)) {
		f->unknown++;
		return false;
	}
	t->next = slots + p->nr_slots;
	close_branch(t, core, p->pc);
	if (p->branches.nr)
		model_path_branches(core, &p->branches, p + 1);
	if (t->record < t->record_end && path_record_word(t->record, t->trace) <= t->word) {
		tell_records(f, t, core, p);
	} else {
		tell_ops(f, t, core, ops_of(p), ops_of(p) + p->nr_ops, slots);
		t->loads += p->loads;
		t->stores += p->stores;
	}
	if (p->open) {
		t->open = p->open;
		t->open_pc = p->open_pc;
		t->open_next = p->open_pc + p->open_len;
	}
	if (f->parts & MODEL_CYCLES)
		model_work(core, p->insns, p->ticks);
	return true;
}

/* The path of that number as it is kept; NULL: it is not. */
static inline const struct feed_path *lookup(const struct feed *f, u32 number)
{
	u32 at = f->at[number];

	return likely(at) ? (const struct feed_path *)(f->room + (at - 1) * 8ull) : NULL;
}

/* A path that is not kept. */
__attribute__((noinline)) static void take_other(struct feed *f, struct feed_thread *t,
						 struct model_core *core, u32 number)
{
	const struct feed_path *p = number >= PATH_FIRST ? path_of(f, number) : NULL;

	if (p) {
		if (tell(f, t, core, p))
			keep(f, core, number, p);
		return;
	}
	/* Of code for which there was no room the number is that of its instructions. */
	f->unknown += number < PATH_FIRST ? number : 1;
	t->open = 0;
	if (f->parts & MODEL_CYCLES && number < PATH_FIRST)
		model_work(core, number, number * (u64)MACHINE_TICKS);
}

static inline void take_path(struct feed *f, struct feed_thread *t, struct model_core *core,
			     u32 number)
{
	const struct feed_path *p = lookup(f, number);

	if (likely(p))
		tell(f, t, core, p);
	else
		take_other(f, t, core, number);
}

/*
 * Without other parts than branches: kept paths, as many as come one after the other, but for the
 * last one, which something may be said of. Returns how many. Is what branch-misses alone cost.
 */
static u32 take_branches(struct feed *f, struct feed_thread *t, struct model_core *core,
			 const u32 *words, u32 n)
{
	struct predictor *predictor = &core->predictor;
	u64 targets = predictor->path, nr = 0;
	u32 i, wrong = 0, open = t->open;

	_Static_assert(!(PATH_WORDS & (PATH_WORDS - 1)), "two are compared at once");
	for (i = 0; i + 1 < n && (words[i] | words[i + 1]) < PATH_WORDS; i++) {
		const struct feed_path *p = lookup(f, words[i]);
		const struct branch_place *cond = (const struct branch_place *)(p + 1);
		const struct path_branches *b = &p->branches;
		bool last_wrong;

		if (unlikely(!p))
			break;
		if (open) {
			predictor->path = targets;
			model_open_branch(core, t->open_pc, t->open_next, (u8)open, p->pc);
			targets = predictor->path;
		}
		nr += b->nr;
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
			t->open_pc = p->open_pc;
			t->open_next = p->open_pc + p->open_len;
		}
	}
	t->open = (u8)open;
	predictor->path = targets;
	core->count[MODEL_BRANCH_INSTRUCTIONS] += nr;
	branches_missed(core, wrong, true);
	return i;
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

/* The path that is pending has what slots there were when it was, and the first of those now. */
static void complete_pending(struct feed *f, struct feed_thread *t, const u64 **slots,
			     const u64 *end)
{
	struct path_entry e = f->space->path[t->pending];
	const struct feed_path *p = NULL;

	if (t->pending >= PATH_FIRST && e.known) {
		p = lookup(f, t->pending);
		p = p ? p : path_of(f, t->pending);
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
			if (f->parts == MODEL_BRANCHES)
				i += take_branches(f, t, core, words + i, n - i);
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
