/*
 * The filter of accesses: abi/path-trace.h. In front of each access code looks whether its line is
 * the one that was accessed last in its set, or, of a store, stored to last; such an access is told
 * to nobody. Any other is appended to the thread's records, and its line becomes the last one.
 *
 *   lea A, [operand]; shr A, line; and A, sets - 1     the set
 *   mov A, gs:filter[A]                                minus the address of its line
 *   lea A, [A + operand]                               where it is in that line,
 *   cmp A, line - size; ja cold                        if all of it is there
 *
 * Where flags matter pext and jrcxz do the same with the last byte, or lahf keeps them. What ends
 * in that line and begins in the one before has been looked for in another set, if there is one.
 */
#include "dbt/arch/x86_64/filter-priv.h"

#define COLD_BYTES  80u  /* of an access, at most */
#define GROUP_BYTES 104u /* of one of several */
#define GROUP_MORE  112u /* and of what is around them */

/* Its displacement, and with it any byte of the operand, is one of an instruction. */
static bool is_near(const struct access_site *s)
{
	return fits_s32(s->disp) && fits_s32(s->disp + s->size);
}

static bool has_segment(const struct access_site *s)
{
	return s->flags & (PATH_FS | PATH_GS);
}

static u32 segment_at(const struct access_site *s)
{
	return s->flags & PATH_FS ? GS(filter.fs_base) : GS(arch.gs_base);
}

static bool is_constant(const struct access_site *s)
{
	return s->base == REG_NONE && s->index == REG_NONE && !has_segment(s);
}

/* lea @to, [@to + (@reg << @scale) + @disp] */
static void emit_add_reg(struct emitter *e, u8 to, u8 reg, u8 scale, s32 disp)
{
	u8 base = to, index = reg;

	/* rsp is no index. */
	if (index == REG_RSP) {
		base = REG_RSP;
		index = to;
	}
	emit4(e, (u8)(0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3), 0x8d,
	      (u8)((fits_s8(disp) ? 0x44 : 0x84) | (to & 7) << 3),
	      (u8)(scale << 6 | (index & 7) << 3 | (base & 7)));
	if (fits_s8(disp))
		emit1(e, (u8)disp);
	else
		emit_u32(e, (u32)disp);
}

/* lea @to, [@to + @disp] */
static void emit_add_constant(struct emitter *e, u8 to, s32 disp)
{
	emit3(e, (u8)(0x48 | (to >> 3) * 5), 0x8d, (u8)(0x80 | (to & 7) * 9));
	emit_u32(e, (u32)disp);
}

/* Adds the operand, without a segment's base, and @more to @to. */
static void emit_add_operand(struct emitter *e, const struct access_site *s, u8 to, u32 more)
{
	s32 disp = (s32)(s->disp + more);

	if (s->base != REG_NONE)
		emit_add_reg(e, to, s->base, 0, disp);
	else if (s->index == REG_NONE)
		emit_add_constant(e, to, disp);
	if (s->index != REG_NONE)
		emit_add_reg(e, to, s->index, s->scale, s->base == REG_NONE ? disp : 0);
}

/* @to = the address, of which it is no register; no flags. @other is neither, and spilled. */
static void emit_address(struct emitter *e, const struct access_site *s, u8 to, u8 other)
{
	bool byte = s->flags & PATH_BYTE_INDEX;

	if (!byte && !(s->flags & PATH_ADDR32) && is_near(s) && !is_constant(s)) {
		if (has_segment(s)) {
			emit_load_gs(e, to, segment_at(s));
			emit_add_operand(e, s, to, 0);
		} else if (s->base != REG_NONE) {
			s32 disp = (s32)s->disp;

			emit3(e, (u8)(0x48 | (to >> 3) << 2 | s->base >> 3), 0x8d,
			      (u8)((fits_s8(disp) ? 0x40 : 0x80) | (to & 7) << 3 | (s->base & 7)));
			if ((s->base & 7) == REG_RSP)
				emit1(e, 0x24);
			if (fits_s8(disp))
				emit1(e, (u8)disp);
			else
				emit_u32(e, (u32)disp);
			if (s->index != REG_NONE)
				emit_add_reg(e, to, s->index, s->scale, 0);
		} else {
			/* lea to, [index * scale + disp32] */
			emit4(e, (u8)(0x48 | (to >> 3) << 2 | (s->index >> 3) << 1), 0x8d,
			      (u8)(0x04 | (to & 7) << 3),
			      (u8)(s->scale << 6 | (s->index & 7) << 3 | 5));
			emit_u32(e, (u32)s->disp);
		}
		return;
	}
	if (byte) {
		/* movzx to, al */
		emit4(e, (u8)(0x40 | (to >> 3) << 2), 0x0f, 0xb6, (u8)(0xc0 | (to & 7) << 3));
		emit_add_reg(e, to, s->base, 0, (s32)s->disp);
	} else {
		emit_mov_imm(e, to, s->disp);
		if (s->base != REG_NONE)
			emit_add_reg(e, to, s->base, 0, 0);
		if (s->index != REG_NONE)
			emit_add_reg(e, to, s->index, s->scale, 0);
	}
	if (s->flags & PATH_ADDR32) /* mov to32, to32 */
		emit3(e, (u8)(0x40 | (to >> 3) * 5), 0x89, (u8)(0xc0 | (to & 7) * 9));
	if (!has_segment(s))
		return;
	emit_load_gs(e, other, segment_at(s));
	emit_add_reg(e, to, other, 0, 0);
}

/* @reg = gs:[@reg * 8 + @at] */
static void emit_load_entry(struct emitter *e, u8 reg, u32 at)
{
	emit4(e, PREFIX_GS, (u8)(0x48 | (reg >> 3) * 6), 0x8b, (u8)(0x04 | (reg & 7) << 3));
	emit1(e, (u8)(3 << 6 | (reg & 7) << 3 | 5));
	emit_u32(e, at);
}

/* pext rcx, rcx, [@word] */
static void emit_pext_rcx(struct emitter *e, u32 word)
{
	emit4(e, 0xc4, 0xe2, 0xf2, 0xf5);
	emit1(e, 0x0d);
	emit_rel_to(e, word);
}

static u32 table_of(const struct access_site *s)
{
	return s->kind == PATH_STORE && !cache.filter_plain ? GS(filter.store) : GS(filter.load);
}

static u32 stub_of(const struct access_site *s, bool dead)
{
	switch (s->kind) {
	case PATH_LOAD: return dead ? cache.record_dead_load : cache.record_load;
	case PATH_STORE: return dead ? cache.record_dead_store : cache.record_store;
	case PATH_PREFETCH: return cache.record_only;
	default: return has_segment(s) ? cache.record_far_string : cache.record_string;
	}
}

static u32 what_of(const struct access_site *s)
{
	return path_record_what(s->number, s->insn, s->counted, s->size ? s->size - 1u : 0);
}

/* filter.addr has the address: records it, and goes on at @back. Changes @reg, and @dead flags. */
static void emit_record(struct emitter *e, const struct access_site *s, u8 reg, bool dead, u64 back)
{
	emit_store_gs_imm(e, GS(filter.what), what_of(s));
	/* lea reg, [rip + back] */
	emit3(e, (u8)(0x48 | (reg >> 3) << 2), 0x8d, (u8)(0x05 | (reg & 7) << 3));
	emit_rel(e, back, 0);
	emit_store_gs(e, GS(filter.back), reg);
	emit_jmp(e, stub_of(s, dead));
}

/* The register that is best spilled in front of instruction @index, none of @not. */
static u8 spare_register(const struct build *b, u32 index, u16 not )
{
	const struct recording *r = &b->recording;
	u16 left = (u16)(0x0fff & ~(not | BIT(REG_RSP))), dead = 0;

	for (u32 i = index; i < b->plan.nr_insns && i < index + 16; i++) {
		u16 after = (u16)(left & ~r->read[i]);

		if (!after)
			break;
		left = after;
		dead = (u16)(left & r->written[i]);
		if (dead)
			break;
	}
	return (u8)__builtin_ctz(dead ? dead : left);
}

static u16 bit_of(u8 reg)
{
	return reg == REG_NONE ? 0 : (u16)BIT(reg);
}

/* What is too odd for the filter is recorded in any case. */
static void emit_always(struct build *b, const struct access_site *s, u16 regs)
{
	u8 to = spare_register(b, s->insn, regs);
	u8 other = spare_register(b, s->insn, (u16)(regs | BIT(to)));
	struct emitter *e = &b->e, c;

	emit_spill(e, to);
	emit_spill(e, other);
	emit_address(e, s, to, other);
	emit_store_gs(e, GS(filter.addr), to);
	c = *e;
	/* Twice: the first time it is not known where it ends. */
	emit_record(&c, s, to, false, 0);
	emit_record(e, s, to, false, emit_addr(&c));
	emit_unspill(e, to);
	emit_unspill(e, other);
}

/*
 * Goes on where the filter leaves the access out, and else jumps: where to is put behind what is
 * returned. With arithmetic flags that are @dead, or else by rcx and no flag.
 */
static u8 *emit_look(struct emitter *e, const struct access_site *s, u8 reg, bool dead)
{
	u32 table = table_of(s);

	if (is_constant(s)) {
		u64 line = s->disp >> cache.filter_shift;
		u32 set = (u32)line & (cache.filter_sets - 1);

		emit_mov_imm(e, reg, -(line << cache.filter_shift));
		emit_gs_op(e, 0x3b, reg, table + set * 8); /* cmp reg, gs:[] */
		emit2(e, 0x0f, 0x85);                      /* jne */
	} else if (dead) {
		emit_address(e, s, reg, REG_NONE);
		emit_shift(e, true, reg);
		emit_group1(e, false, OP_AND, reg, cache.filter_sets - 1);
		emit_load_entry(e, reg, table);
		emit_add_operand(e, s, reg, 0);
		if (has_segment(s))
			emit_gs_op(e, 0x03, reg, segment_at(s)); /* add */
		emit_group1(e, true, OP_CMP, reg, (1u << cache.filter_shift) - s->size);
		emit2(e, 0x0f, 0x87); /* ja */
	} else {
		emit_address(e, s, REG_RCX, REG_NONE);
		emit_pext_rcx(e, cache.filter_set_bits);
		emit_load_entry(e, REG_RCX, table);
		emit_add_operand(e, s, REG_RCX, s->size - 1u);
		emit_pext_rcx(e, cache.filter_line_bits);
		emit2(e, 0xe3, 5); /* jrcxz over the jmp */
		emit1(e, 0xe9);
	}
	emit_u32(e, 0);
	return e->p;
}

static void look_goes_to(u8 *look, u32 distance)
{
	__builtin_memcpy(look - 4, &distance, 4);
}

/* Records an access that has been looked at, and goes on at @back; or behind this, with 0. */
static void emit_address_and_record(struct emitter *e, const struct access_site *s, u8 reg,
				    bool dead, u64 back)
{
	struct emitter c;

	emit_address(e, s, reg, REG_NONE);
	emit_store_gs(e, GS(filter.addr), reg);
	c = *e;
	/* Twice: the first time it is not known where it ends. */
	if (!back)
		emit_record(&c, s, reg, dead, 0);
	emit_record(e, s, reg, dead, back ? back : emit_addr(&c));
}

/* The sites that the filter is asked of at once, and what they are together. */
struct sites {
	const struct access_site *s;
	u32 n;
	struct access_site all;
};

/* The access of one byte of it. */
static struct access_site byte_of(const struct access_site *s, u32 at)
{
	struct access_site byte = *s;

	byte.disp += at;
	byte.size = 1;
	return byte;
}

/*
 * All of several are left out if they are in two lines that were accessed last in their sets: those
 * of the first byte and of the last one. One that crosses from one to the other is, too, so this is
 * for a plain filter.
 */
static void emit_two_lines(struct emitter *e, const struct sites *sites, u8 reg, bool dead,
			   u64 back)
{
	struct access_site low = byte_of(&sites->all, 0);
	struct access_site high = byte_of(&sites->all, sites->all.size - 1u);
	u8 *first = emit_look(e, &low, reg, dead), *last = emit_look(e, &high, reg, dead);

	emit1(e, 0xe9); /* jmp */
	emit_rel(e, back, 0);
	look_goes_to(first, (u32)(e->p - first));
	look_goes_to(last, (u32)(e->p - last));
}

/* Not all of several are in the line that was accessed last in its set: each is looked at. */
static void emit_cold_group(struct emitter *e, const struct sites *sites, u8 reg, bool dead,
			    u64 back)
{
	if (cache.filter_plain)
		emit_two_lines(e, sites, reg, dead, back);
	for (u32 i = 0; i < sites->n; i++) {
		u8 *look = emit_look(e, &sites->s[i], reg, dead), *over;

		emit2(e, 0xeb, 0); /* jmp */
		over = e->p;
		look_goes_to(look, (u32)(e->p - look));
		emit_address_and_record(e, &sites->s[i], reg, dead, 0);
		over[-1] = (u8)(e->p - over);
	}
	emit1(e, 0xe9);
	emit_rel(e, back, 0);
}

static u32 emit_cold(const struct sites *sites, u8 reg, bool dead, u64 back)
{
	u32 size = sites->n == 1 ? COLD_BYTES : sites->n * GROUP_BYTES + GROUP_MORE;
	struct emitter c = cold_begin(size);
	const u8 *begin = c.p;
	u32 at = emit_at(&c);

	if (sites->n == 1)
		emit_address_and_record(&c, sites->s, reg, dead, back);
	else
		emit_cold_group(&c, sites, reg, dead, back);
	CHECK(c.p - begin <= size);
	return at;
}

static void emit_filter(struct emitter *e, const struct sites *sites, u8 reg, bool dead)
{
	u8 *look = emit_look(e, &sites->all, reg, dead);

	look_goes_to(look, emit_cold(sites, reg, dead, emit_addr(e)) - emit_at(e));
}

static bool crosses(const struct access_site *s)
{
	u64 line = 1ull << cache.filter_shift;

	return s->size > line || (is_constant(s) && (s->disp & (line - 1)) + s->size > line);
}

static bool is_odd(const struct access_site *s)
{
	return s->kind >= PATH_PREFETCH || !s->size || crosses(s) ||
	       s->flags & (PATH_ADDR32 | PATH_BYTE_INDEX) || (!is_constant(s) && !is_near(s));
}

/* The first @n of @s together; one alone is as it is. */
static struct sites take_together(const struct access_site *s, u32 n)
{
	struct sites all = {s, n, *s};
	u64 end = s->disp + s->size;

	for (u32 i = 1; i < n; i++) {
		if ((s64)(s[i].disp - all.all.disp) < 0)
			all.all.disp = s[i].disp;
		if ((s64)(s[i].disp + s[i].size - end) > 0)
			end = s[i].disp + s[i].size;
	}
	all.all.size = (u16)(end - all.all.disp);
	return all;
}

static bool all_near(const struct sites *sites)
{
	for (u32 i = 1; i < sites->n; i++)
		if (!is_near(&sites->s[i]))
			return false;
	return true;
}

u32 filter_accesses(struct build *b, const struct access_site *s, u32 n)
{
	u16 live = b->plan.insns[s->insn].live;
	u16 regs = bit_of(s->base) | bit_of(s->index);
	struct sites sites = take_together(s, n);
	struct emitter *e = &b->e;
	u8 reg;

	if (is_odd(&sites.all) || !all_near(&sites))
		sites = take_together(s, 1);
	if (is_odd(s)) {
		emit_always(b, s, regs);
		return 1;
	}
	if (!live) {
		reg = spare_register(b, s->insn, regs);
		emit_spill(e, reg);
		emit_filter(e, &sites, reg, true);
		emit_unspill(e, reg);
		return sites.n;
	}
	if (!is_constant(s) && !has_segment(s) && !cache.fixed_tables && cache.filter_sets > 1 &&
	    !(regs & BIT(REG_RCX))) {
		emit_spill(e, REG_RCX);
		emit_filter(e, &sites, REG_RCX, false);
		emit_unspill(e, REG_RCX);
		return sites.n;
	}
	if (regs & BIT(REG_RAX)) {
		emit_always(b, s, regs);
		return 1;
	}
	reg = spare_register(b, s->insn, (u16)(regs | BIT(REG_RAX)));
	emit_spill(e, REG_RAX);
	emit_spill(e, reg);
	emit4(e, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto al */
	emit_filter(e, &sites, reg, true);
	emit3(e, 0x04, 0x7f, 0x9e); /* add al, 0x7f; sahf */
	emit_unspill(e, reg);
	emit_unspill(e, REG_RAX);
	return sites.n;
}

static u32 string_at(u8 reg)
{
	return reg == REG_RSI ? GS(filter.from[0]) : GS(filter.from[1]);
}

void filter_strings(struct build *b)
{
	emit_store_gs(&b->e, string_at(REG_RSI), REG_RSI);
	emit_store_gs(&b->e, string_at(REG_RDI), REG_RDI);
}

/* Where it began is in filter.from, where it is now in its register. */
void filter_string_after(struct build *b, const struct access_site *s)
{
	struct emitter *e = &b->e, c;

	emit_spill(e, REG_RAX);
	emit_load_gs(e, REG_RAX, string_at(s->base));
	emit_store_gs(e, GS(filter.addr), REG_RAX);
	emit_store_gs(e, GS(filter.upto), s->base);
	c = *e;
	emit_record(&c, s, REG_RAX, false, 0);
	emit_record(e, s, REG_RAX, false, emit_addr(&c));
	emit_unspill(e, REG_RAX);
}

void filter_segment(struct build *b, const struct insn *i)
{
	emit_store_gs(&b->e, GS(filter.fs_base), insn_rm(i));
	/* Of 32 bits the others become zero: mov dword gs:[], 0 */
	if (i->opsize == 8)
		return;
	emit4(&b->e, PREFIX_GS, 0xc7, 0x04, 0x25);
	emit_u32(&b->e, GS(filter.fs_base) + 4);
	emit_u32(&b->e, 0);
}
