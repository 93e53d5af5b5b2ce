/*
 * PURPOSE: writes x86-64 machine code. An emitter is a pointer into the code cache, where the
 * callers have made sure that there is room. Functions are named after instructions; _gs means a
 * field of the thread, which lies at the base of GS.
 */
#ifndef DBT_ARCH_X86_64_EMIT_PRIV_H
#define DBT_ARCH_X86_64_EMIT_PRIV_H

#include "dbt/arch/x86_64/decode.h"
#include "dbt/arch-priv.h"
#include "sys/string.h"

struct emitter {
	u8 *p;
};

static inline u32 emit_at(const struct emitter *e)
{
	return (u32)(e->p - cache.write);
}

static inline void emit1(struct emitter *e, u8 a)
{
	*e->p++ = a;
}

static inline void emit2(struct emitter *e, u8 a, u8 b)
{
	e->p[0] = a;
	e->p[1] = b;
	e->p += 2;
}

static inline void emit3(struct emitter *e, u8 a, u8 b, u8 c)
{
	e->p[0] = a;
	e->p[1] = b;
	e->p[2] = c;
	e->p += 3;
}

static inline void emit4(struct emitter *e, u8 a, u8 b, u8 c, u8 d)
{
	emit2(e, a, b);
	emit2(e, c, d);
}

static inline void emit_u32(struct emitter *e, u32 v)
{
	__builtin_memcpy(e->p, &v, 4);
	e->p += 4;
}

static inline void emit_u64(struct emitter *e, u64 v)
{
	__builtin_memcpy(e->p, &v, 8);
	e->p += 8;
}

/* At most INSN_MAX bytes. */
static inline void emit_bytes(struct emitter *e, const u8 *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		e->p[i] = from[i];
	e->p += n;
}

/* A whole instruction. 16 bytes may be read at @from, and written at e->p. */
static inline void emit_insn(struct emitter *e, const u8 *from, size_t n)
{
	__builtin_memcpy(e->p, from, 8);
	__builtin_memcpy(e->p + 8, from + 8, 8);
	e->p += n;
}

static inline bool fits_s32(u64 v)
{
	return (u64)(s64)(s32)v == v;
}

/* Where what is written next will be executed. */
static inline u64 emit_addr(const struct emitter *e)
{
	return code_addr(emit_at(e));
}

/* A rel32 or disp32 that @tail bytes of immediate follow, which end the instruction. */
static inline void emit_rel(struct emitter *e, u64 target, u32 tail)
{
	emit_u32(e, (u32)(target - (emit_addr(e) + 4 + tail)));
}

static inline void emit_rel_to(struct emitter *e, u32 target)
{
	emit_rel(e, code_addr(target), 0);
}

#define GS(field)     ((u32)offsetof(struct dbt_thread, field))
#define GS_SPILL(reg) (GS(spill) + 8u * (u32)(reg))
#define GS_METER(lane, q)                                             \
	((u32)-DBT_METER_BELOW + (u32)offsetof(struct meter, count) + \
	 ((lane)*METER_QUANTITIES + (q)) * 8u)

#define GS_METER_HITS(class) \
	((u32)-DBT_METER_BELOW + (u32)offsetof(struct meter, hits) + (class) * 8u)

#define GS_METER_GRANTED(class) \
	((u32)-DBT_METER_BELOW + (u32)offsetof(struct meter, granted) + (class) * 8u)

/* gs: opcode /reg with a 64-bit operand at a constant offset. */
static inline void emit_gs_op(struct emitter *e, u8 op, u8 reg, u32 off)
{
	emit4(e, PREFIX_GS, (u8)(0x48 | (reg & 8 ? 4 : 0)), op, (u8)(0x04 | (reg & 7) << 3));
	emit1(e, 0x25);
	emit_u32(e, off);
}

static inline void emit_store_gs(struct emitter *e, u32 off, u8 reg)
{
	emit_gs_op(e, 0x89, reg, off);
}

static inline void emit_load_gs(struct emitter *e, u8 reg, u32 off)
{
	emit_gs_op(e, 0x8b, reg, off);
}

static inline void emit_spill(struct emitter *e, u8 reg)
{
	emit_store_gs(e, GS_SPILL(reg), reg);
}

static inline void emit_unspill(struct emitter *e, u8 reg)
{
	emit_load_gs(e, reg, GS_SPILL(reg));
}

static inline void emit_push_gs(struct emitter *e, u32 off)
{
	emit4(e, PREFIX_GS, 0xff, 0x34, 0x25);
	emit_u32(e, off);
}

static inline void emit_jmp_gs(struct emitter *e, u32 off)
{
	emit4(e, PREFIX_GS, 0xff, 0x24, 0x25);
	emit_u32(e, off);
}

/* A 64-bit field gets a 32-bit constant, sign-extended. */
static inline void emit_store_gs_imm(struct emitter *e, u32 off, u32 imm)
{
	emit4(e, PREFIX_GS, 0x48, 0xc7, 0x04);
	emit1(e, 0x25);
	emit_u32(e, off);
	emit_u32(e, imm);
}

static inline void emit_mov_imm(struct emitter *e, u8 reg, u64 v)
{
	if (v <= 0xffffffffu) {
		if (reg & 8)
			emit1(e, 0x41);
		emit1(e, 0xb8 | (reg & 7));
		emit_u32(e, (u32)v);
	} else if (fits_s32(v)) {
		emit3(e, 0x48 | (reg >> 3), 0xc7, 0xc0 | (reg & 7));
		emit_u32(e, (u32)v);
	} else {
		emit2(e, 0x48 | (reg >> 3), 0xb8 | (reg & 7));
		emit_u64(e, v);
	}
}

static inline void emit_mov_reg(struct emitter *e, u8 to, u8 from)
{
	emit3(e, 0x48 | (from >> 3) << 2 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | (to & 7));
}

/*
 * Indirect branches spill two registers: r11, because compilers use it least, holds the guest pc
 * that is wanted; rcx holds the number in a table and what is found there, because jrcxz tests it
 * without flags.
 */
#define REG_TARGET    REG_R11
#define TARGET_SPILLS ((u16)(BIT(REG_TARGET) | BIT(REG_RCX)))

static inline void emit_spill_target(struct emitter *e)
{
	emit_spill(e, REG_TARGET);
	emit_spill(e, REG_RCX);
}

static inline void emit_unspill_target(struct emitter *e)
{
	emit_unspill(e, REG_RCX);
	emit_unspill(e, REG_TARGET);
}

#define WHOLE_LINE 32u

/*
 * Before a jump of @len bytes, with what fuses with it: it will neither cross the end of a line nor
 * lie right in front of it, if this CPU likes that; see whole-jumps.c.
 */
static inline void emit_whole(struct emitter *e, u32 len)
{
	static const u8 nop[] = {0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
	u32 pad = WHOLE_LINE - emit_at(e) % WHOLE_LINE;

	if (likely(!cache.whole_jumps) || len < pad)
		return;
	for (; pad >= sizeof(nop); pad -= (u32)sizeof(nop))
		emit_bytes(e, nop, sizeof(nop));
	for (; pad > 1; pad -= 2)
		emit2(e, 0x66, 0x90);
	if (pad)
		emit1(e, 0x90);
}

/* ecx = the number in a jump table of the guest pc in r11; changes no flags. */
static inline void emit_index_pc(struct emitter *e, u32 set)
{
	if (cache.fixed_tables) {
		emit4(e, 0x41, 0x0f, 0xb7, 0xcb); /* movzx ecx, r11w */
		return;
	}
	/* pext ecx, r11d, gs:[mask] (BMI2) */
	emit4(e, PREFIX_GS, 0xc4, 0xe2, 0x22);
	emit3(e, 0xf5, 0x0c, 0x25);
	emit_u32(e, set ? GS(tables[1].jump_mask) : GS(tables[0].jump_mask));
}

/* ecx = the number in a ring of the stack slot at rsp; changes no flags. */
static inline void emit_index_ring(struct emitter *e, u32 set)
{
	if (cache.fixed_tables) {
		emit3(e, 0x0f, 0xb7, 0xcc); /* movzx ecx, sp */
		return;
	}
	/* pext ecx, esp, gs:[mask] */
	emit4(e, PREFIX_GS, 0xc4, 0xe2, 0x5a);
	emit3(e, 0xf5, 0x0c, 0x25);
	emit_u32(e, set ? GS(tables[1].ring_mask) : GS(tables[0].ring_mask));
}

/* mov [rsp - 8], r11 */
static const u8 store_slot[] = {0x4c, 0x89, 0x5c, 0x24, 0xf8};

static inline void emit_store_slot(struct emitter *e)
{
	emit_bytes(e, store_slot, sizeof(store_slot));
}

static inline bool stores_slot(const u8 *code)
{
	return memcmp(code, store_slot, sizeof(store_slot)) == 0;
}

/* mov r11, [rsp] */
static inline void emit_load_slot(struct emitter *e)
{
	emit4(e, 0x4c, 0x8b, 0x1c, 0x24);
}

/* Whether a disp32 reaches @target from wherever it may end in an instruction emitted here. */
static inline bool emit_reaches(const struct emitter *e, u64 target)
{
	return fits_s32(target - emit_addr(e)) && fits_s32(target - (emit_addr(e) + 2 * INSN_MAX));
}

/*
 * Pads so that the rel32 of a branch, @opcode bytes from here, lies within an aligned quadword.
 * Only a store to such a place is atomic to the instruction fetch of another CPU on every x86-64
 * (AMD APM vol. 2, 7.3.2).
 */
static inline void emit_align_rel(struct emitter *e, u32 opcode)
{
	static const u8 nops[4][3] = {{0}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};
	u32 at = (emit_at(e) + opcode) & 7;

	if (at > 4)
		emit_bytes(e, nops[8 - at], 8 - at);
}

/* A prefix that says nothing, where no operand is in memory: longer, but no instruction more. */
#define PREFIX_PADDING 0x2e

/*
 * A jmp whose target may be changed while others execute it. Returns the cache offset of its rel32,
 * which lies as emit_align_rel() has it.
 */
static inline u32 emit_jmp_patchable(struct emitter *e, u32 target)
{
	u32 prefixes = ((emit_at(e) + 1) & 7) > 4 ? 8 - ((emit_at(e) + 1) & 7) : 0;

	emit_whole(e, 5 + prefixes);
	while (((emit_at(e) + 1) & 7) > 4)
		emit1(e, PREFIX_PADDING);
	emit1(e, 0xe9);
	emit_rel_to(e, target);
	return emit_at(e) - 4;
}

/* The same of a conditional branch. */
static inline u32 emit_jcc_patchable(struct emitter *e, u8 cond, u32 target)
{
	u32 prefixes = ((emit_at(e) + 2) & 7) > 4 ? 8 - ((emit_at(e) + 2) & 7) : 0;

	emit_whole(e, 6 + prefixes);
	while (((emit_at(e) + 2) & 7) > 4)
		emit1(e, PREFIX_PADDING);
	emit2(e, 0x0f, 0x80 | cond);
	emit_rel_to(e, target);
	return emit_at(e) - 4;
}

static inline void emit_jmp(struct emitter *e, u32 target)
{
	emit1(e, 0xe9);
	emit_rel_to(e, target);
}

/* Puts a word into the cold part, for code to refer to; its cache offset. */
static inline u32 cold_word(u64 v)
{
	cache.cold = (u32)ALIGN_DOWN(cache.cold - 8, 8);
	__builtin_memcpy(code_at(cache.cold), &v, 8);
	return cache.cold;
}

/* Begins a piece of cold code of @size bytes, which lies below the last one. */
static inline struct emitter cold_begin(u32 size)
{
	cache.cold -= size;
	return (struct emitter){code_at(cache.cold)};
}

#endif
