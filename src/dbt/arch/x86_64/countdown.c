/*
 * Code on its way to a deadline; deadline.c tells the whole. No flags are changed where they are
 * live: whether a word is below 0 is told by its highest byte then.
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
	emit4(e, PREFIX_GS, 0x48, n < 128 ? 0x83 : 0x81, 0x04);
	emit1(e, 0x25);
	emit_u32(e, off);
	if (n < 128)
		emit1(e, (u8)n);
	else
		emit_u32(e, n);
}

/* Leaves the cache because the pool is used up. */
static void emit_used_up(struct emitter *e, u32 resume, u32 index, u32 stub)
{
	emit_store_gs_u32(e, GS(deadline.at), resume);
	emit_store_gs_u32(e, GS(deadline.index), index);
	emit_jmp(e, stub);
}

/* ecx = the highest byte of the word at GS + @off; 0 if that is not below 0. */
static void emit_load_top(struct emitter *e, u32 off)
{
	emit4(e, PREFIX_GS, 0x0f, 0xb6, 0x0c); /* movzx ecx, byte gs:[off + 7] */
	emit1(e, 0x25);
	emit_u32(e, off + 7);
}

/* With rcx spilled: ecx is 0 afterwards if the pool is used up. */
static void emit_take(struct emitter *e, u32 n)
{
	emit_load_gs(e, REG_RCX, GS(deadline.pool));
	emit3(e, 0x48, 0x8d, 0x89); /* lea rcx, [rcx + n] */
	emit_u32(e, n);
	emit_store_gs(e, GS(deadline.pool), REG_RCX);
	emit_load_top(e, GS(deadline.pool));
}

#define USED_UP_BYTES 29
#define TAKE_BYTES    (13 + 6 + USED_UP_BYTES)
#define TAKE_SPILLED  (9 + 7 + 9 + 10 + 2 + USED_UP_BYTES + 5)

/*
 * Cold code that takes @n from the pool and goes on at @back, with the sign flag set; returns its
 * cache offset.
 */
static u32 emit_cold_take(u32 n, u32 back, u32 index)
{
	struct emitter e = cold_begin(TAKE_BYTES);
	u32 at = emit_at(&e);

	emit_add_gs_imm(&e, GS(deadline.pool), n);
	emit2(&e, 0x0f, 0x88); /* js */
	emit_rel_to(&e, back);
	emit_used_up(&e, back, index, cache.pool_code);
	return at;
}

/* The same with rcx spilled; it leaves by @stub for @resume. */
static u32 emit_cold_take_spilled(u32 n, u32 back, u32 resume, u32 index, u32 stub)
{
	struct emitter e = cold_begin(TAKE_SPILLED);
	u32 at = emit_at(&e);

	emit_take(&e, n);
	emit2(&e, 0xe3, 5); /* jrcxz over the jmp */
	emit_jmp(&e, back);
	emit_used_up(&e, resume, index, stub);
	return at;
}

#define UNSPILL_BYTES 9

/* Adds 1 to the word at @hits, which sets the sign flag as long as it is below 0. */
static void emit_hit(struct emitter *e, u32 hits)
{
	emit4(e, PREFIX_GS, 0x48, 0x83, 0x04); /* add qword gs:[hits], 1 */
	emit1(e, 0x25);
	emit_u32(e, hits);
	emit1(e, 1);
}

/* The same with rcx spilled and no flag changed. */
static void emit_hit_spilled(struct emitter *e, u32 hits)
{
	emit_load_gs(e, REG_RCX, hits);
	emit4(e, 0x48, 0x8d, 0x49, 1); /* lea rcx, [rcx + 1] */
	emit_store_gs(e, hits, REG_RCX);
}

/* The cold code of a path whose count has rcx spilled, if @live says that it already was. */
static u32 cold_spilled(u32 n, u16 live, u32 back, u32 index)
{
	if (live == COUNT_SPILLED)
		return emit_cold_take_spilled(n, back, back, index, cache.pool_target_code);
	/* It goes on behind emit_unspill(). */
	return emit_cold_take_spilled(n, back, back + UNSPILL_BYTES, index,
				      cache.pool_spilled_code);
}

void countdown_hit(struct build *b, u32 class, u32 n, u16 live, u32 index)
{
	u32 hits = GS_METER_HITS(class);
	struct emitter *e = &b->e;

	if (!live) {
		emit_hit(e, hits);
		emit2(e, 0x0f, 0x89); /* jns */
		emit_rel_to(e, emit_cold_take(n, emit_at(e) + 4, index));
		return;
	}
	if (live != COUNT_SPILLED)
		emit_spill(e, REG_RCX);
	emit_hit_spilled(e, hits);
	if (b->near_ends) {
		emit_load_top(e, hits);
		emit2(e, 0xe3, 0); /* jrcxz */
		b->near = e->p;
		b->near_cold = cold_spilled(n, live, emit_at(e), index);
	} else {
		emit4(e, PREFIX_GS, 0x0f, 0xbe, 0x0c); /* movsx ecx, byte gs:[hits + 7] */
		emit1(e, 0x25);
		emit_u32(e, hits + 7);
		emit3(e, 0x8d, 0x49, 1); /* lea ecx, [rcx + 1] */
		emit2(e, 0xe3, 5);       /* jrcxz over the jmp */
		emit_jmp(e, cold_spilled(n, live, emit_at(e) + 5, index));
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
		emit_hit(e, hits);
		emit_align_rel(e, 2);
		back = emit_at(e);
		emit2(e, 0x0f, 0x88); /* js */
		emit_rel_to(e, x->stub);
		x->patch = emit_at(e) - 4;
		emit_jmp(e, emit_cold_take(n, back, DEADLINE_TAKEN));
		return;
	}
	emit_spill(e, REG_RCX);
	emit_hit_spilled(e, hits);
	emit_load_top(e, hits);
	emit2(e, 0xe3, 0); /* jrcxz */
	over = e->p;
	back = emit_at(e);
	emit_unspill(e, REG_RCX);
	x->patch = emit_jmp_patchable(e, x->stub);
	over[-1] = (u8)(e->p - over);
	emit_jmp(e, emit_cold_take_spilled(n, back, back, DEADLINE_TAKEN, cache.pool_spilled_code));
}

void countdown_lanes(struct build *b, u32 n, u16 live, u32 index)
{
	struct emitter *e = &b->e;

	if (!live) {
		emit_jmp(e, emit_cold_take(n, emit_at(e) + 5, index));
		return;
	}
	if (live != COUNT_SPILLED)
		emit_spill(e, REG_RCX);
	emit_jmp(e, cold_spilled(n, live, emit_at(e) + 5, index));
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
