/*
 * Accesses of memory, for the trace. Code records values of registers, and not addresses: where a
 * register is used by several instructions of a path it is recorded once, and what is added to it
 * on the way is known (push, add of a constant, copies). What a path finds in a register when it
 * begins is recorded then, all of it together. The description says what addresses are made of.
 */
#include "dbt/arch/x86_64/branch-priv.h"

/* What is known of a register: it is what @reg was before (or behind) @insn, and so much more. */
struct origin {
	u8 insn;
	u8 reg;
	bool known; /* else nobody has needed it yet, and it is recorded where it is needed */
	bool after;
	u64 more;
};

/* An access whose slots have no numbers yet. */
struct draft {
	struct path_access access;
	struct origin base, index;
	u8 base_reg, index_reg; /* enum insn_reg: those of the instruction */
};

#define ACCESSES_MAX (4 * BLOCK_INSNS_MAX)

/* Too large for the stack; used with the lock. */
static struct draft drafts[ACCESSES_MAX] used_late;
static struct path_access accesses[ACCESSES_MAX] used_late;
static u8 slot_insn[PATH_SLOTS_MAX];

struct planning {
	struct build *b;
	struct origin regs[16];
	u32 n;     /* drafts */
	u32 insn;  /* that is looked at */
	u32 slots; /* how many there are */
	bool full; /* the instruction needs more than there can be */
};

static const struct origin none = {.reg = REG_NONE};

static bool is_filtered(void)
{
	return cache.form_mask & DBT_MASK_FILTER;
}

static void want(struct planning *p, const struct origin *o)
{
	struct recording *r = &p->b->recording;
	u16 *regs = o->after ? &r->after[o->insn] : &r->before[o->insn];

	if (is_filtered())
		return;
	if (*regs & BIT(o->reg))
		return;
	if (p->slots == PATH_SLOTS_MAX) {
		p->full = true;
		return;
	}
	p->slots++;
	*regs |= (u16)BIT(o->reg);
}

/* @reg as it is now: recorded at its origin. */
static struct origin use(struct planning *p, u8 reg)
{
	struct origin *o = &p->regs[reg];

	if (!o->known)
		*o = (struct origin){.insn = (u8)p->insn, .reg = reg, .known = true};
	want(p, o);
	return *o;
}

static void use_base(struct planning *p, struct draft *d, u8 reg)
{
	d->base = use(p, reg);
	d->base_reg = reg;
}

static void use_index(struct planning *p, struct draft *d, u8 reg)
{
	d->index = use(p, reg);
	d->index_reg = reg;
}

/* At the start of a path every register has a value that can be recorded there. */
static void begin_path(struct planning *p)
{
	for (u8 i = 0; i < 16; i++)
		p->regs[i] = (struct origin){.insn = (u8)p->insn, .reg = i, .known = true};
}

static struct draft *add(struct planning *p, enum path_access_kind kind, u32 size)
{
	struct draft *d = &drafts[p->n++];

	CHECK(p->n <= ACCESSES_MAX);
	*d = (struct draft){
		.base = none, .index = none, .base_reg = REG_NONE, .index_reg = REG_NONE};
	d->access.insn = (u8)p->insn;
	d->access.kind = (u8)kind;
	d->access.size = (u16)size;
	return d;
}

/* Of the stack: @more bytes above rsp, or above @reg in its place. */
static void add_stack(struct planning *p, enum path_access_kind kind, u32 size, u8 reg, s64 more)
{
	struct draft *d = add(p, kind, size);

	use_base(p, d, reg);
	d->access.disp = (u64)more;
}

static u8 segment_flag(const struct insn *d)
{
	return d->mem.seg == SEG_FS ? PATH_FS : d->mem.seg == SEG_GS ? PATH_GS : 0;
}

/* The operand that modrm or a constant says. */
static void add_operand(struct planning *p, const struct insn *i, u64 pc,
			enum path_access_kind kind, u32 size)
{
	struct draft *d = add(p, kind, size);

	d->access.flags = segment_flag(i) | (i->attr & INSN_ADDR32 ? PATH_ADDR32 : 0);
	if (i->attr & INSN_MOFFS) {
		d->access.disp = (u64)i->imm;
		return;
	}
	if (i->attr & INSN_RIPREL) {
		d->access.disp = insn_rip_address(i, pc);
		return;
	}
	d->access.disp = (u64)(s64)i->mem.disp;
	if (i->mem.base != REG_NONE)
		use_base(p, d, i->mem.base);
	/* pop addresses its operand with rsp as it is afterwards. */
	if (i->map == MAP_1 && i->opcode == 0x8f && i->mem.base == REG_RSP)
		d->access.disp += i->opsize;
	if (i->mem.index != REG_NONE) {
		use_index(p, d, i->mem.index);
		d->access.scale = i->mem.scale;
	}
}

/* Of a string instruction; @reg goes over it, which has a segment if it is rsi. */
static void add_string(struct planning *p, const struct insn *i, u8 reg, bool store, u32 size)
{
	bool rep = i->attr & INSN_REP;
	struct draft *d =
		add(p, rep ? (store ? PATH_STORES : PATH_LOADS) : (store ? PATH_STORE : PATH_LOAD),
		    size);

	use_base(p, d, reg);
	d->access.flags = (reg == REG_RSI ? segment_flag(i) : 0) |
			  (i->attr & INSN_ADDR32 ? PATH_ADDR32 : 0);
	if (!rep)
		return;
	d->index = (struct origin){.insn = (u8)p->insn, .reg = reg, .known = true, .after = true};
	want(p, &d->index);
}

static void add_strings(struct planning *p, const struct insn *i)
{
	u32 size = string_step(i);

	if (i->mem_read && i->gpr_read & BIT(REG_RSI))
		add_string(p, i, REG_RSI, false, size);
	/* cmps reads both, scas and cmps their rdi. */
	if (i->gpr_read & BIT(REG_RDI))
		add_string(p, i, REG_RDI, i->mem_write, size);
}

/* The image of xsave is as large as what it saves, which elements tell; about that, with AVX. */
#define XSAVE_SIZE 832u

static u32 size_of(u32 size)
{
	return size == INSN_SIZE_VARIES ? XSAVE_SIZE : size;
}

static void add_implicit(struct planning *p, const struct insn *i)
{
	struct draft *d;

	if (i->special == SP_XLAT) {
		d = add(p, PATH_LOAD, 1);
		use_base(p, d, REG_RBX);
		use_index(p, d, REG_RAX);
		d->access.flags = segment_flag(i) | PATH_BYTE_INDEX |
				  (i->attr & INSN_ADDR32 ? PATH_ADDR32 : 0);
	} else if (i->special == SP_MASKMOV) {
		d = add(p, PATH_STORE, i->mem_write);
		use_base(p, d, REG_RDI);
		d->access.flags = segment_flag(i) | (i->attr & INSN_ADDR32 ? PATH_ADDR32 : 0);
	}
}

static bool is_leave(const struct insn *i)
{
	return i->enc == ENC_LEGACY && i->map == MAP_1 && i->opcode == 0xc9;
}

static bool is_enter(const struct insn *i)
{
	return i->enc == ENC_LEGACY && i->map == MAP_1 && i->opcode == 0xc8;
}

/*
 * Of what is done to memory at once, but for cmpxchg, Valgrind makes a load and a loop of
 * compare-and-exchange, which loads as well. It alone has a plain filter.
 */
static bool valgrind_loads_twice(const struct insn *i)
{
	bool cmpxchg = i->map == MAP_0F && ((i->opcode & 0xfe) == 0xb0 || i->opcode == 0xc7);
	bool xchg = i->map == MAP_1 && (i->opcode & 0xfe) == 0x86;

	return cache.form_mask & DBT_MASK_FILTER && cache.filter_plain && i->enc == ENC_LEGACY &&
	       (xchg || (i->attr & INSN_LOCK && !cmpxchg));
}

static void add_accesses(struct planning *p, const struct insn *i, u64 pc)
{
	bool about = tells_elements(i);

	if (i->attr & INSN_PREFETCH) {
		if (i->special != SP_GATHER)
			add_operand(p, i, pc, PATH_PREFETCH, 1);
		return;
	}
	if (i->special == SP_STRING) {
		add_strings(p, i);
		return;
	}
	/* Elements tell: their addresses are in vector registers; of tiles there are many. */
	if (i->special == SP_GATHER || i->special == SP_TILE)
		return;
	if (i->mem_read && i->attr & (INSN_MEM | INSN_MOFFS) && !(i->attr & INSN_NOADDR))
		for (u32 n = valgrind_loads_twice(i) ? 2 : 1; n; n--)
			add_operand(p, i, pc, about ? PATH_LOAD_ABOUT : PATH_LOAD,
				    size_of(i->mem_read));
	else if (i->mem_read || i->mem_write)
		add_implicit(p, i);
	if (i->stack_read)
		add_stack(p, PATH_LOAD, i->stack_read, is_leave(i) ? REG_RBP : REG_RSP, 0);
	if (i->mem_write && i->attr & (INSN_MEM | INSN_MOFFS) && !(i->attr & INSN_NOADDR))
		add_operand(p, i, pc, about ? PATH_STORE_ABOUT : PATH_STORE, size_of(i->mem_write));
	if (i->special == SP_DIR64)
		add_stack(p, PATH_STORE, 64, insn_reg_field(i), 0);
	if (i->stack_write)
		add_stack(p, PATH_STORE, i->stack_write, REG_RSP,
			  -(s64)(is_enter(i) ? i->opsize : i->stack_write));
}

/*
 * By how much @i changes the register, if it only adds a constant to all 64 bits; false: it does
 * something else.
 */
static bool adds(const struct insn *i, u8 reg, u64 *more)
{
	if (reg == REG_RSP && i->attr & INSN_STACK && !is_leave(i) && !is_enter(i)) {
		/* pop rsp, and what addresses rsp as well, is seen below. */
		if (i->stack_read && (i->opcode == 0x5c || i->opcode == 0x8f))
			return false;
		*more = (u64)i->stack_read - i->stack_write;
		if (i->cf == CF_RET && i->imm_size)
			*more += (u16)i->imm;
		return true;
	}
	if (i->enc != ENC_LEGACY || i->map != MAP_1 || !(i->rex & REX_W) || i->attr & INSN_MEM ||
	    insn_rm(i) != reg)
		return false;
	if (i->opcode == 0x81 || i->opcode == 0x83) {
		u8 op = i->modrm >> 3 & 7;

		*more = op == 5 ? -(u64)i->imm : (u64)i->imm;
		return op == 0 || op == 5;
	}
	if (i->opcode == 0xff) {
		*more = i->modrm >> 3 & 7 ? ~0ull : 1;
		return (i->modrm >> 3 & 7) <= 1;
	}
	return false;
}

/* What the register is set to, if that is known: another register and a constant. */
static bool copies(const struct insn *i, u8 *to, u8 *from, u64 *more)
{
	if (i->enc != ENC_LEGACY || i->map != MAP_1 || !(i->rex & REX_W))
		return false;
	*more = 0;
	if (i->opcode == 0x8d && !(i->attr & (INSN_RIPREL | INSN_ADDR32)) &&
	    i->mem.base != REG_NONE && i->mem.index == REG_NONE) {
		*to = insn_reg_field(i);
		*from = i->mem.base;
		*more = (u64)(s64)i->mem.disp;
		return true;
	}
	if (i->attr & INSN_MEM || (i->opcode != 0x89 && i->opcode != 0x8b))
		return false;
	*to = i->opcode == 0x89 ? insn_rm(i) : insn_reg_field(i);
	*from = i->opcode == 0x89 ? insn_reg_field(i) : insn_rm(i);
	return true;
}

/* The registers as @i leaves them. */
static void follow(struct planning *p, const struct insn *i)
{
	u16 written = i->gpr_written;
	u8 to, from;
	u64 more;

	if (copies(i, &to, &from, &more)) {
		p->regs[to] = p->regs[from];
		p->regs[to].more += more;
		if (!p->regs[to].known)
			p->regs[to] = (struct origin){0};
		return;
	}
	for (; written; written &= (u16)(written - 1)) {
		u8 reg = (u8)__builtin_ctz(written);

		if (adds(i, reg, &more)) {
			p->regs[reg].more += more;
			continue;
		}
		p->regs[reg] = (struct origin){0};
		if (i->special == SP_STRING && i->attr & INSN_REP &&
		    (reg == REG_RSI || reg == REG_RDI) && p->b->recording.after[p->insn] & BIT(reg))
			p->regs[reg] = (struct origin){
				.insn = (u8)p->insn, .reg = reg, .known = true, .after = true};
	}
	if (is_leave(i))
		p->regs[REG_RSP] = (struct origin){0};
}

static u32 count_bits(u32 mask)
{
	u32 n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

/* Its number among the slots of the block; *more is added to what is at it. */
static u16 slot_of(const struct recording *r, const struct origin *o)
{
	u32 slot;

	if (o->reg == REG_NONE)
		return PATH_NO_SLOT;
	slot = r->slots_before[o->insn];
	if (!o->after)
		return (u16)(slot + count_bits(r->before[o->insn] & (BIT(o->reg) - 1)));
	return (u16)(slot + count_bits(r->before[o->insn]) +
		     count_bits(r->after[o->insn] & (BIT(o->reg) - 1)));
}

/* Where there are no slots: for who asks whether two accesses are of the same place. */
static u16 number_of(u8 reg)
{
	return reg == REG_NONE ? PATH_NO_SLOT : reg;
}

static void number_slots(struct recording *r, u32 nr_insns)
{
	u32 n = 0;

	for (u32 i = 0; i < nr_insns; i++) {
		u32 here = count_bits(r->before[i]) + count_bits(r->after[i]);

		r->slots_before[i] = (u16)n;
		while (here--)
			slot_insn[n++] = (u8)i;
	}
	r->slots_before[nr_insns] = (u16)n;
}

/* Instructions that are done in C leave the block before they retire. */
static bool is_done_here(const struct plan_insn *i)
{
	return i->role != ROLE_END ||
	       !(i->d.cf == CF_NONE || i->d.cf == CF_SYSENTER || is_emulated_branch(&i->d));
}

void accesses_plan(struct build *b, const struct insn *whole, struct path_details *details)
{
	struct recording *r = &b->recording;
	const struct plan *plan = &b->plan;
	struct planning p = {.b = b};
	u32 frag = 0, drafts_before;

	/* The others are set below. */
	memset(r->before, 0, plan->nr_insns * sizeof(r->before[0]));
	memset(r->after, 0, plan->nr_insns * sizeof(r->after[0]));
	r->filtered = 0;
	for (u32 n = 0; n < plan->nr_insns; n++) {
		const struct plan_insn *i = &plan->insns[n];
		const struct insn *full = &whole[n];

		p.insn = n;
		if (n == 0)
			begin_path(&p);
		for (; frag < plan->nr_frags && plan->frags[frag].first <= n; frag++)
			if (plan->frags[frag].flags & FRAG_RESTART)
				begin_path(&p);
		drafts_before = p.n;
		r->accesses_before[n] = (u16)p.n;
		r->read[n] = full->gpr_read;
		r->written[n] = full->gpr_written;
		if (is_done_here(i))
			add_accesses(&p, full, i->pc);
		/* No program has so many; what is left out is an access that nobody sees. */
		if (p.full)
			p.n = drafts_before;
		follow(&p, full);
	}
	r->accesses_before[plan->nr_insns] = (u16)p.n;
	number_slots(r, plan->nr_insns);
	for (u32 i = 0; i < p.n; i++) {
		const struct draft *d = &drafts[i];
		struct path_access *a = &accesses[i];

		*a = d->access;
		a->base = a->index = PATH_NO_SLOT;
		if (is_filtered()) {
			a->base = number_of(d->base_reg);
			a->index = number_of(d->index_reg);
			continue;
		}
		a->base = slot_of(r, &d->base);
		a->index = slot_of(r, &d->index);
		a->disp += d->base.more + (d->index.more << a->scale);
	}
	details->memory = true;
	details->records = is_filtered();
	details->slot_insn = slot_insn;
	details->nr_slots = r->slots_before[plan->nr_insns];
	details->accesses = accesses;
	details->nr_accesses = p.n;
}

/* Where a slot of instruction @index is from slots_at: below 0 if its path is counted already. */
static s32 slot_offset(const struct build *b, u32 index, u32 slot)
{
	const struct block_count *c = b->nr_counts ? &b->counts[b->nr_counts - 1] : NULL;
	u32 from = c && c->upto > index ? b->recording.slots_before[c->upto]
					: b->recording.slots_before[b->restart];

	return ((s32)slot - (s32)from) * 8;
}

static void record(struct build *b, u32 index, u16 regs, u32 slot)
{
	u8 at = regs & BIT(REG_RAX) ? (u8)__builtin_ctz((u16) ~(regs | BIT(REG_RSP))) : REG_RAX;
	struct emitter *e = &b->e;

	/* r12 as a base has another form. */
	if (at == REG_R12)
		at = (u8)__builtin_ctz((u16) ~(regs | BIT(REG_RSP) | BIT(REG_R12)));
	emit_spill(e, at);
	emit_load_gs(e, at, GS(slots_at));
	for (u8 reg = 0; reg < 16; reg++) {
		s32 offset;

		if (!(regs & BIT(reg)))
			continue;
		offset = slot_offset(b, index, slot++);
		/* mov [at + offset], reg */
		emit2(e, 0x48 | (reg >> 3) << 2 | at >> 3, 0x89);
		if (offset >= -128 && offset < 128) {
			emit2(e, 0x40 | (u8)((reg & 7) << 3) | (at & 7), (u8)offset);
		} else {
			emit1(e, 0x80 | (u8)((reg & 7) << 3) | (at & 7));
			emit_u32(e, (u32)offset);
		}
	}
	emit_unspill(e, at);
}

static bool records(const struct build *b)
{
	return cache.form_mask & DBT_MASK_MEMORY && b->block->path_block;
}

static bool is_counted(const struct build *b, u32 index)
{
	return b->nr_counts && b->counts[b->nr_counts - 1].upto > index;
}

static struct access_site site_of(const struct build *b, u32 number)
{
	const struct draft *d = &drafts[number];

	return (struct access_site){.disp = d->access.disp,
				    .number = (u16)number,
				    .size = d->access.size,
				    .kind = d->access.kind,
				    .flags = d->access.flags,
				    .base = d->base_reg,
				    .index = d->index_reg,
				    .scale = d->access.scale,
				    .insn = d->access.insn,
				    .counted = is_counted(b, d->access.insn)};
}

static bool is_string(u8 kind)
{
	return kind == PATH_LOADS || kind == PATH_STORES;
}

/* It is where the access before it has loaded, by the same instruction. */
static bool is_again(u32 number)
{
	const struct draft *d = &drafts[number], *load = d - 1;

	return number && d->access.kind <= PATH_STORE && load->access.kind == PATH_LOAD &&
	       load->access.insn == d->access.insn && load->access.disp == d->access.disp &&
	       load->access.size == d->access.size && load->access.flags == d->access.flags &&
	       load->access.scale == d->access.scale && load->base_reg == d->base_reg &&
	       load->index_reg == d->index_reg;
}

/* As dbt_filter() says of @plain; false: the access is nothing. */
static bool make_plain(struct access_site *s)
{
	u32 line = 1u << cache.filter_shift;

	if (s->kind == PATH_PREFETCH || is_again(s->number))
		return false;
	if (s->kind == PATH_LOAD_ABOUT)
		s->kind = PATH_LOAD;
	if (s->kind == PATH_STORE_ABOUT)
		s->kind = PATH_STORE;
	if (s->size > line)
		s->size = (u16)line;
	return true;
}

/* What comes between two instructions is neither left nor entered. */
static bool goes_through(const struct plan *plan, u32 from, u32 upto)
{
	for (u32 i = from; i < upto; i++)
		if (plan->insns[i].role != ROLE_COPY && plan->insns[i].role != ROLE_ELIDE)
			return false;
	return true;
}

/*
 * By how much access @number is above @first, if that is known: both are by the same register, or
 * by what was added to it on the way.
 */
static bool is_beside(const struct build *b, u32 number, u32 first, s64 *above)
{
	const struct draft *d = &drafts[number], *f = &drafts[first];

	*above = (s64)(d->access.disp + d->base.more - f->access.disp - f->base.more);
	return d->access.kind <= PATH_STORE && !d->access.flags && d->base_reg != REG_NONE &&
	       d->index_reg == REG_NONE && d->base.reg == f->base.reg &&
	       d->base.insn == f->base.insn && d->base.after == f->base.after &&
	       goes_through(&b->plan, f->access.insn, d->access.insn);
}

/*
 * Accesses one after the other that are in one line if they are where that of @s is, which is
 * number @first: the filter is asked once for all, before the first. They get the registers of
 * that. Returns how many.
 */
static u32 find_group(const struct build *b, struct access_site *s, u32 first)
{
	u32 nr = b->recording.accesses_before[b->plan.nr_insns], n = 1;
	s64 low = 0, high = s[0].size, above;

	if (drafts[first].access.kind > PATH_STORE || s[0].flags || s[0].index != REG_NONE ||
	    s[0].base == REG_NONE)
		return 1;
	for (u32 i = first + 1; i < nr && n < FILTER_GROUP; i++) {
		struct access_site more = site_of(b, i);

		if (cache.filter_plain && !make_plain(&more))
			continue;
		if (!is_beside(b, i, first, &above) ||
		    (!cache.filter_plain && more.kind != s[0].kind))
			break;
		low = above < low ? above : low;
		high = above + more.size > high ? above + more.size : high;
		if (high - low > 1 << cache.filter_shift)
			break;
		more.disp = s[0].disp + (u64)above;
		more.base = s[0].base;
		more.counted = s[0].counted;
		s[n++] = more;
	}
	return n;
}

static void filter(struct build *b, u32 index, bool after)
{
	struct recording *r = &b->recording;

	for (u32 i = r->accesses_before[index]; i < r->accesses_before[index + 1]; i++) {
		bool string = is_string(drafts[i].access.kind);
		struct access_site s[FILTER_GROUP];
		u32 n;

		if (i < r->filtered || after != string)
			continue;
		s[0] = site_of(b, i);
		if ((cache.filter_plain && !make_plain(s)) || s->kind > PATH_STORES)
			continue;
		if (after) {
			filter_string_after(b, s);
			continue;
		}
		n = filter_accesses(b, s, find_group(b, s, i));
		r->filtered = s[n - 1].number + 1u;
	}
	if (after && b->plan.insns[index].d.special == SP_WRFSBASE)
		filter_segment(b, &b->plan.insns[index].d);
}

bool accesses_repeat(const struct build *b, u32 index)
{
	u32 first = b->recording.accesses_before[index];

	return records(b) && first < b->recording.accesses_before[index + 1] &&
	       is_string(drafts[first].access.kind);
}

void accesses_record(struct build *b, u32 index)
{
	const struct recording *r = &b->recording;

	if (!records(b))
		return;
	if (is_filtered())
		filter(b, index, false);
	else if (r->before[index])
		record(b, index, r->before[index], r->slots_before[index]);
	/* For who interrupts it as well: slots may be of an instruction before, and be others. */
	if (accesses_repeat(b, index))
		filter_strings(b);
}

void accesses_record_after(struct build *b, u32 index)
{
	const struct recording *r = &b->recording;

	if (!records(b))
		return;
	if (is_filtered())
		filter(b, index, true);
	else if (r->after[index])
		record(b, index, r->after[index],
		       r->slots_before[index] + count_bits(r->before[index]));
}
