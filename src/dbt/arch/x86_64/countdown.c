/*
 * Code on its way to a deadline; deadline.c tells the whole. No flags are changed where they are
 * live: whether a budget is below 0 is told by its highest byte then.
 */
#include "dbt/arch/x86_64/branch-priv.h"

/* A 32-bit field of the thread gets a constant. */
static void emit_store_gs_u32(struct emitter *e, u32 off, u32 imm)
{
	emit4(e, PREFIX_GS, 0xc7, 0x04, 0x25);
	emit_u32(e, off);
	emit_u32(e, imm);
}

static void emit_sub_gs(struct emitter *e, u32 off, u32 n)
{
	emit4(e, PREFIX_GS, 0x48, n < 128 ? 0x83 : 0x81, 0x2c);
	emit1(e, 0x25);
	emit_u32(e, off);
	if (n < 128)
		emit1(e, (u8)n);
	else
		emit_u32(e, n);
}

#define SPENT_BYTES 29

/* Cold code that says where the budget was spent; returns its cache offset. */
static u32 emit_spent(u32 resume, u32 index, u32 stub)
{
	struct emitter e = cold_begin(SPENT_BYTES);
	u32 at = emit_at(&e);

	emit_store_gs_u32(&e, GS(deadline.at), resume);
	emit_store_gs_u32(&e, GS(deadline.index), index);
	emit_jmp(&e, stub);
	return at;
}

void countdown_path(struct build *b, u32 n, u16 live, u32 index)
{
	u32 budget = GS(deadline.budget) + 8 * (cache.budget_turn++ % DBT_BUDGETS);
	struct emitter *e = &b->e;

	if (!n)
		return;
	if (!live) {
		emit_sub_gs(e, budget, n);
		emit2(e, 0x0f, 0x88); /* js */
		emit_rel_to(e, emit_spent(emit_at(e) + 4, index, cache.budget_code));
		return;
	}
	emit_spill(e, REG_RCX);
	emit_load_gs(e, REG_RCX, budget);
	emit3(e, 0x48, 0x8d, 0x89); /* lea rcx, [rcx - n] */
	emit_u32(e, -n);
	emit_store_gs(e, budget, REG_RCX);
	emit4(e, PREFIX_GS, 0x0f, 0xb6, 0x0c); /* movzx ecx, byte gs:[budget + 7] */
	emit1(e, 0x25);
	emit_u32(e, budget + 7);
	emit2(e, 0xe3, 5); /* jrcxz over the jmp */
	emit_jmp(e, emit_spent(emit_at(e) + 5 + 9, index, cache.budget_spilled_code));
	emit_unspill(e, REG_RCX);
}

void countdown_before(struct build *b, u32 index)
{
	struct emitter *e = &b->e;
	u8 *over;

	emit_spill(e, REG_RCX);
	emit_load_gs(e, REG_RCX, GS(deadline.left));
	emit2(e, 0xe3, 2); /* jrcxz */
	emit2(e, 0xeb, 0); /* jmp */
	over = e->p;
	emit_store_gs_u32(e, GS(deadline.at), b->block->code);
	emit_store_gs_u32(e, GS(deadline.index), index);
	emit_jmp(e, cache.exact_code);
	over[-1] = (u8)(e->p - over);
	emit4(e, 0x48, 0x8d, 0x49, 0xff); /* lea rcx, [rcx - 1] */
	emit_store_gs(e, GS(deadline.left), REG_RCX);
	emit_unspill(e, REG_RCX);
}

void countdown_from(struct build *b, u64 pc)
{
	emit_store_gs_u32(&b->e, GS(deadline.from), (u32)pc);
	emit_store_gs_u32(&b->e, GS(deadline.from) + 4, (u32)(pc >> 32));
}

void countdown_init(struct emitter *e)
{
	cache.budget_spilled_code = emit_at(e);
	emit_unspill(e, REG_RCX);
	cache.budget_code = emit_at(e);
	emit_store_gs_imm(e, GS(exit_id), EXIT_ID_BUDGET);
	emit_jmp_gs(e, GS(exit_pc));
	cache.resume_code = emit_at(e);
	emit_store_gs_u32(e, GS(deadline.resuming), 0);
	emit_jmp_gs(e, GS(deadline.resume_pc));
	cache.exact_code = emit_at(e);
	emit_unspill(e, REG_RCX);
	emit_store_gs_imm(e, GS(exit_id), EXIT_ID_EXACT);
	emit_jmp_gs(e, GS(exit_pc));
}
