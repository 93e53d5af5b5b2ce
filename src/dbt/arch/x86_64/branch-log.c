/*
 * Code that logs a taken branch; branch-ring.c tells the whole. No flags are changed. What is
 * constant is written as such: it stays true when the cache is flushed, and nothing has to be
 * looked up for a sample.
 */
#include "dbt/arch/x86_64/branch-priv.h"

struct logged_branch {
	u64 from, to, next; /* next: what follows in memory */
	enum trace_branch_type type;
	bool indirect; /* `to` is in r11 */
};

/* movzx ecx, byte or word gs:[off] */
static void emit_load_number(struct emitter *e, bool wide, u32 off)
{
	emit4(e, PREFIX_GS, 0x0f, wide ? 0xb7 : 0xb6, 0x0c);
	emit1(e, 0x25);
	emit_u32(e, off);
}

/* mov gs:[off], cl or cx */
static void emit_store_number(struct emitter *e, bool wide, u32 off)
{
	emit1(e, PREFIX_GS);
	if (wide)
		emit1(e, 0x66);
	emit3(e, wide ? 0x89 : 0x88, 0x0c, 0x25);
	emit_u32(e, off);
}

/* mov dword gs:[rcx * 8 + off], imm */
static void emit_store_u32(struct emitter *e, u32 off, u32 imm)
{
	emit4(e, PREFIX_GS, 0xc7, 0x04, 0xcd);
	emit_u32(e, off);
	emit_u32(e, imm);
}

/* The same for 64 bits. */
static void emit_store_u64(struct emitter *e, u32 off, u64 imm)
{
	if (!fits_s32(imm)) {
		emit_store_u32(e, off, (u32)imm);
		emit_store_u32(e, off + 4, (u32)(imm >> 32));
		return;
	}
	emit1(e, PREFIX_GS);
	emit4(e, 0x48, 0xc7, 0x04, 0xcd);
	emit_u32(e, off);
	emit_u32(e, (u32)imm);
}

/* A pair of words at @at, whose number is in rcx. */
static void emit_store_branch(struct emitter *e, u32 at, const struct logged_branch *l)
{
	emit_store_u64(e, at, l->from | (u64)l->type << BRANCH_TYPE_SHIFT);
	if (!l->indirect) {
		emit_store_u64(e, at + 8, l->to);
		return;
	}
	emit4(e, PREFIX_GS, 0x4c, 0x89, 0x1c); /* mov gs:[rcx * 8 + at + 8], r11 */
	emit1(e, 0xcd);
	emit_u32(e, at + 8);
}

static void emit_put(struct emitter *e, bool wide, u32 number, u32 ring,
		     const struct logged_branch *l)
{
	emit_load_number(e, wide, number);
	emit_store_branch(e, ring, l);
	emit3(e, 0x8d, 0x49, 2); /* lea ecx, [rcx + 2] */
	emit_store_number(e, wide, number);
}

static void emit_take_off(struct emitter *e)
{
	emit_load_number(e, true, GS(open_calls));
	emit3(e, 0x8d, 0x49, 0xfe); /* lea ecx, [rcx - 2] */
	emit3(e, 0x0f, 0xb7, 0xc9); /* movzx ecx, cx */
	emit_store_number(e, true, GS(open_calls));
	emit_store_u64(e, BRANCH_OPEN_AT, 0);
}

static void log_branch(struct emitter *e, const struct logged_branch *l, bool spilled)
{
	bool call = l->type == TRACE_BRANCH_CALL || l->type == TRACE_BRANCH_CALL_IND;
	/* A call of what comes next only tells where it is: nothing returns from there. */
	bool open = branch_open_calls(cache.mask) && l->to != l->next;
	bool any = open && (call || l->type == TRACE_BRANCH_RETURN);

	for (u32 i = 0; i < DBT_BRANCH_RINGS; i++)
		any |= !!(branch_kinds(cache.mask, i) & BIT(l->type));
	if (!any)
		return;
	if (!spilled)
		emit_spill(e, REG_RCX);
	for (u32 i = 0; i < DBT_BRANCH_RINGS; i++)
		if (branch_kinds(cache.mask, i) & BIT(l->type))
			emit_put(e, false, GS(branch_at) + i, BRANCH_RING_AT(i), l);
	if (open && call)
		emit_put(e, true, GS(open_calls), BRANCH_OPEN_AT, l);
	else if (open && l->type == TRACE_BRANCH_RETURN)
		emit_take_off(e);
	if (!spilled)
		emit_unspill(e, REG_RCX);
}

void log_direct_branch(struct build *b, u32 index, bool spilled)
{
	const struct plan_insn *i = &b->plan.insns[index];
	struct logged_branch l = {
		.from = i->pc, .to = insn_target(&i->d, i->pc), .next = i->pc + i->d.len};

	switch (i->d.cf) {
	case CF_JCC:
	case CF_LOOP: l.type = TRACE_BRANCH_COND; break;
	case CF_JMP: l.type = TRACE_BRANCH_JUMP; break;
	case CF_CALL: l.type = TRACE_BRANCH_CALL; break;
	default: l.type = TRACE_BRANCH_OTHER;
	}
	log_branch(&b->e, &l, spilled);
}

void log_target_branch(struct build *b, u32 index)
{
	const struct plan_insn *i = &b->plan.insns[index];
	struct logged_branch l = {.from = i->pc, .indirect = true};

	l.next = ~0ull;
	switch (i->d.cf) {
	case CF_RET: l.type = TRACE_BRANCH_RETURN; break;
	case CF_CALL_IND: l.type = TRACE_BRANCH_CALL_IND; break;
	default: l.type = TRACE_BRANCH_JUMP_IND;
	}
	log_branch(&b->e, &l, true);
}
