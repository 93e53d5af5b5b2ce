/*
 * Code on its way to a deadline; deadline.c tells the whole. The word of a class counts up and is
 * used up when it gets to 0, which is told without flags where they are live.
 */
#include "dbt/arch/x86_64/branch-priv.h"

/* A 32-bit field of the thread gets a constant. */
static void emit_store_gs_u32(struct emitter *e, u32 off, u32 imm)
{
	emit4(e, PREFIX_GS, 0xc7, 0x04, 0x25);
	emit_u32(e, off);
	emit_u32(e, imm);
}

static void emit_add_gs_imm(struct emitter *e, u32 off, u32 n)
{
	bool small = n + 128 < 256;

	emit4(e, PREFIX_GS, 0x48, small ? 0x83 : 0x81, 0x04);
	emit1(e, 0x25);
	emit_u32(e, off);
	if (small)
		emit1(e, (u8)n);
	else
		emit_u32(e, n);
}

/* The same by way of rcx, which has the sum afterwards: no flags. */
static void emit_add_spilled(struct emitter *e, u32 off, u32 n)
{
	emit_load_gs(e, REG_RCX, off);
	if (n < 128) {
		emit4(e, 0x48, 0x8d, 0x49, (u8)n); /* lea rcx, [rcx + n] */
	} else {
		emit3(e, 0x48, 0x8d, 0x89);
		emit_u32(e, n);
	}
	emit_store_gs(e, off, REG_RCX);
}

/* The rel32 at @p, which ends an instruction, leads to @target. */
static void emit_rel_at(u8 *p, u32 target)
{
	struct emitter e = {p};

	emit_rel_to(&e, target);
}

/* Leaves the cache because the pool is used up. */
static void emit_used_up(struct emitter *e, u32 resume, u32 index, u32 stub)
{
	emit_store_gs_u32(e, GS(deadline.at), resume);
	emit_store_gs_u32(e, GS(deadline.index), index);
	emit_jmp(e, stub);
}

#define NO_CLASS      (~0u)
#define USED_UP_BYTES 29
#define TAKE_BYTES    (10 + 10 + 13 + 6 + USED_UP_BYTES)
#define TAKE_SPILLED  (22 + 9 + 7 + 9 + 3 + 3 + 2 + 5 + USED_UP_BYTES)
#define UNSPILL_BYTES 9

/*
 * Cold code for a path whose class, if it has one, is used up: its word has got to 0. It goes back
 * to -1, and what it is behind grows by 1 instead, so that the next path comes here, too. Takes @n
 * from the pool and goes on at @back, with the zero flag clear; returns its cache offset.
 */
static u32 emit_cold_take(u32 class, u32 n, u32 back, u32 index)
{
	struct emitter e = cold_begin(TAKE_BYTES);
	u32 at = emit_at(&e);

	if (class != NO_CLASS) {
		emit_add_gs_imm(&e, GS_METER_HITS(class), (u32)-1);
		emit_add_gs_imm(&e, GS_METER_GRANTED(class), 1);
	}
	emit_add_gs_imm(&e, GS(deadline.pool), n);
	emit2(&e, 0x0f, 0x88); /* js */
	emit_rel_to(&e, back);
	emit_used_up(&e, back, index, cache.pool_code);
	return at;
}

/*
 * The same with rcx spilled and no flag changed, before 0 is stored into the word. If the pool is
 * used up it leaves by @stub for @resume.
 */
static u32 emit_cold_take_spilled(u32 class, u32 n, u32 back, u32 resume, u32 index, u32 stub)
{
	struct emitter e = cold_begin(TAKE_SPILLED);
	u32 at = emit_at(&e);

	if (class != NO_CLASS)
		emit_add_spilled(&e, GS_METER_GRANTED(class), 1);
	emit_add_spilled(&e, GS(deadline.pool), n);
	/* Whether it is below 0 is told by its highest byte. */
	emit3(&e, 0x48, 0x0f, 0xc9); /* bswap rcx */
	emit3(&e, 0x0f, 0xb6, 0xc9); /* movzx ecx, cl */
	emit2(&e, 0xe3, 5);          /* jrcxz over the jmp */
	emit_jmp(&e, back);
	emit_used_up(&e, resume, index, stub);
	return at;
}

/* The cold code of a path whose count has rcx spilled, if @live says that it already was. */
static u32 cold_spilled(u32 class, u32 n, u16 live, u32 back, u32 index)
{
	if (live == COUNT_SPILLED)
		return emit_cold_take_spilled(class, n, back, back, index, cache.pool_target_code);
	/* It goes on behind emit_unspill(). */
	return emit_cold_take_spilled(class, n, back, back + UNSPILL_BYTES, index,
				      cache.pool_spilled_code);
}

/* With rcx spilled: its new value, before that is stored. */
static void emit_next_hit(struct emitter *e, u32 hits)
{
	emit_load_gs(e, REG_RCX, hits);
	emit4(e, 0x48, 0x8d, 0x49, 1); /* lea rcx, [rcx + 1] */
}

void countdown_hit(struct build *b, u32 class, u32 n, u16 live, u32 index)
{
	u32 hits = GS_METER_HITS(class);
	struct emitter *e = &b->e;
	u8 *cold;

	if (!live) {
		emit_add_gs_imm(e, hits, 1);
		emit2(e, 0x0f, 0x84); /* jz */
		emit_rel_to(e, emit_cold_take(class, n, emit_at(e) + 4, index));
		return;
	}
	if (live != COUNT_SPILLED)
		emit_spill(e, REG_RCX);
	emit_next_hit(e, hits);
	if (b->near_ends) {
		emit2(e, 0xe3, 0); /* jrcxz */
		b->near = e->p;
		emit_store_gs(e, hits, REG_RCX);
		b->near_cold = cold_spilled(class, n, live, emit_at(e), index);
	} else {
		emit2(e, 0xe3, 2); /* jrcxz over the short jmp */
		emit2(e, 0xeb, 5); /* jmp over the other one */
		cold = e->p;
		emit_jmp(e, 0);
		emit_store_gs(e, hits, REG_RCX);
		emit_rel_at(cold + 1, cold_spilled(class, n, live, emit_at(e), index));
	}
	if (live != COUNT_SPILLED)
		emit_unspill(e, REG_RCX);
}

void countdown_near(struct build *b)
{
	if (!b->near)
		return;
	CHECK(b->e.p - b->near < 128);
	b->near[-1] = (u8)(b->e.p - b->near);
	emit_jmp(&b->e, b->near_cold);
	b->near = NULL;
}

void countdown_exit(struct build *b, u32 class, u32 n, u16 live, struct dbt_exit *x)
{
	u32 hits = GS_METER_HITS(class), back;
	struct emitter *e = &b->e;
	u8 *over;

	if (!live) {
		emit_add_gs_imm(e, hits, 1);
		emit_align_rel(e, 2);
		back = emit_at(e);
		emit2(e, 0x0f, 0x85); /* jnz */
		emit_rel_to(e, x->stub);
		x->patch = emit_at(e) - 4;
		emit_jmp(e, emit_cold_take(class, n, back, DEADLINE_TAKEN));
		return;
	}
	emit_spill(e, REG_RCX);
	emit_next_hit(e, hits);
	emit2(e, 0xe3, 0); /* jrcxz */
	over = e->p;
	emit_store_gs(e, hits, REG_RCX);
	back = emit_at(e);
	emit_unspill(e, REG_RCX);
	x->patch = emit_jmp_patchable(e, x->stub);
	over[-1] = (u8)(e->p - over);
	emit_jmp(e, emit_cold_take_spilled(class, n, back, back, DEADLINE_TAKEN,
					   cache.pool_spilled_code));
}

void countdown_lanes(struct build *b, u32 n, u16 live, u32 index)
{
	struct emitter *e = &b->e;

	if (!live) {
		emit_jmp(e, emit_cold_take(NO_CLASS, n, emit_at(e) + 5, index));
		return;
	}
	if (live != COUNT_SPILLED)
		emit_spill(e, REG_RCX);
	emit_jmp(e, cold_spilled(NO_CLASS, n, live, emit_at(e) + 5, index));
	if (live != COUNT_SPILLED)
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

#define INIT_BYTES 256

void countdown_init(void)
{
	struct emitter code = cold_begin(INIT_BYTES), *e = &code;

	cache.pool_spilled_code = emit_at(e);
	emit_unspill(e, REG_RCX);
	cache.pool_code = emit_at(e);
	emit_store_gs_imm(e, GS(exit_id), EXIT_ID_POOL);
	emit_jmp_gs(e, GS(exit_pc));
	cache.resume_code = emit_at(e);
	emit_store_gs_u32(e, GS(deadline.resuming), 0);
	emit_jmp_gs(e, GS(deadline.resume_pc));
	cache.pool_target_code = emit_at(e);
	emit_store_gs(e, GS(deadline.target), REG_TARGET);
	emit_unspill_target(e);
	emit_store_gs_imm(e, GS(exit_id), EXIT_ID_POOL_TARGET);
	emit_jmp_gs(e, GS(exit_pc));
	cache.resume_target_code = emit_at(e);
	emit_store_gs_u32(e, GS(deadline.resuming), 0);
	emit_spill_target(e);
	emit_load_gs(e, REG_TARGET, GS(deadline.target));
	emit_jmp_gs(e, GS(deadline.resume_pc));
	cache.exact_code = emit_at(e);
	emit_unspill(e, REG_RCX);
	emit_store_gs_imm(e, GS(exit_id), EXIT_ID_EXACT);
	emit_jmp_gs(e, GS(exit_pc));
	CHECK(e->p - code_at(cache.cold) <= INIT_BYTES);
}
