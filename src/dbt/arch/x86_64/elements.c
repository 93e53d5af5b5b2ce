/*
 * Accesses that slots do not tell, for the trace. Where accesses are traced a block ends in front
 * of such an instruction, as at a place (place.c), and C code looks at the registers, which are the
 * guest's: vector registers of gathers and scatters, the offset of a bit test, how many rows a tile
 * has, and what of the extended state is in use that an instruction saves or restores.
 */
#include "dbt/arch/x86_64/plan-priv.h"
#include "sys/kernel.h"

#include <asm/prctl.h>

#define READ(insn, n, to)                                       \
	case n:                                                 \
		__asm__ volatile(insn #n ", %0" : "=m"(*(to))); \
		break
#define READ_8(insn, tens, to)   \
	READ(insn, tens##0, to); \
	READ(insn, tens##1, to); \
	READ(insn, tens##2, to); \
	READ(insn, tens##3, to); \
	READ(insn, tens##4, to); \
	READ(insn, tens##5, to); \
	READ(insn, tens##6, to); \
	READ(insn, tens##7, to)
#define READ_10(insn, tens, to)  \
	READ_8(insn, tens, to);  \
	READ(insn, tens##8, to); \
	READ(insn, tens##9, to)

union vector {
	u8 byte[64];
	s32 dword[16];
	s64 qword[8];
};

/* Instructions of 256 bits see the first 16 registers, of AVX-512 all. */
static void read_ymm(u8 reg, union vector *to)
{
	switch (reg) {
		READ_10("vmovdqu %%ymm", , to);
		READ("vmovdqu %%ymm", 10, to);
		READ("vmovdqu %%ymm", 11, to);
		READ("vmovdqu %%ymm", 12, to);
		READ("vmovdqu %%ymm", 13, to);
		READ("vmovdqu %%ymm", 14, to);
		READ("vmovdqu %%ymm", 15, to);
	default: break;
	}
}

static void read_zmm(u8 reg, union vector *to)
{
	switch (reg) {
		READ_10("vmovdqu64 %%zmm", , to);
		READ_10("vmovdqu64 %%zmm", 1, to);
		READ_10("vmovdqu64 %%zmm", 2, to);
		READ("vmovdqu64 %%zmm", 30, to);
		READ("vmovdqu64 %%zmm", 31, to);
	default: break;
	}
}

static u32 read_mask(u8 reg)
{
	u32 mask = 0;

	switch (reg) {
#define MASK(n) \
	case n: __asm__ volatile("kmovw %%k" #n ", %0" : "=r"(mask)); break
		MASK(1);
		MASK(2);
		MASK(3);
		MASK(4);
		MASK(5);
		MASK(6);
		MASK(7);
#undef MASK
	default: break;
	}
	return mask;
}

static bool is_gather(const struct insn *d)
{
	return d->special == SP_GATHER && !(d->attr & INSN_PREFETCH);
}

/* bt, bts, btr, btc of memory with a register, whose word lies as far away as it says. */
static bool is_bit_test(const struct insn *d)
{
	return d->enc == ENC_LEGACY && d->map == MAP_0F && (d->opcode & 0xe7) == 0xa3 &&
	       d->modrm < 0xc0;
}

/* Of fxsave the size is known. Those that are done in C tell by themselves. */
static bool is_xstate(const struct insn *d)
{
	return d->special == SP_XSAVE && !is_virtual_xstate(d) &&
	       (d->mem_read == INSN_SIZE_VARIES || d->mem_write == INSN_SIZE_VARIES);
}

/* tileloadd, tileloaddt1, tilestored */
static bool is_tile(const struct insn *d)
{
	return d->special == SP_TILE && d->attr & INSN_MEM && d->opcode == 0x4b;
}

bool tells_elements(const struct insn *d)
{
	return is_gather(d) || is_bit_test(d) || is_xstate(d) || is_tile(d);
}

static u64 base_of(const struct dbt_thread *t, const struct insn *d)
{
	u64 fs = 0;

	if (d->mem.seg == SEG_GS)
		return t->arch.gs_base;
	if (d->mem.seg == SEG_FS)
		sys_arch_prctl(ARCH_GET_FS, (u64)&fs);
	return fs;
}

u64 address_of(const struct dbt_thread *t, const struct insn *d, u64 pc, u64 more)
{
	u64 addr = (u64)(s64)d->mem.disp + more;

	if (d->attr & INSN_RIPREL)
		addr = insn_rip_address(d, pc) + more;
	else if (d->mem.base != REG_NONE)
		addr += t->regs.gpr[d->mem.base];
	if (!(d->attr & (INSN_RIPREL | INSN_VSIB)) && d->mem.index != REG_NONE)
		addr += t->regs.gpr[d->mem.index] << d->mem.scale;
	if (d->attr & INSN_ADDR32)
		addr = (u32)addr;
	return base_of(t, d) + addr;
}

static void tell_gather(struct dbt_thread *t, const struct insn *d, u64 pc)
{
	u32 size = d->rex & REX_W ? 8 : 4, step = d->opcode & 1 ? 8 : 4, bits = 0, n;
	union vector index = {{0}}, mask = {{0}};

	if (d->vl > 2)
		return;
	n = (16u << d->vl) / (size > step ? size : step);
	if (d->enc == ENC_EVEX) {
		read_zmm(d->mem.index, &index);
		bits = read_mask(d->evex_aaa);
	} else {
		read_ymm(d->mem.index, &index);
		read_ymm(d->vvvv, &mask);
		for (u32 i = 0; i < n; i++)
			bits |= (u32)(mask.byte[i * size + size - 1] >> 7) << i;
	}
	path_elements(t, pc);
	for (u32 i = 0; i < n; i++) {
		u64 at = (u64)(step == 8 ? index.qword[i] : index.dword[i]) << d->mem.scale;

		if (bits & BIT(i))
			path_element(t, d->mem_write ? PATH_STORE : PATH_LOAD, size,
				     address_of(t, d, pc, at));
	}
}

static void tell_bit_test(struct dbt_thread *t, const struct insn *d, u64 pc)
{
	u64 offset = t->regs.gpr[insn_reg_field(d)], addr;
	u32 size = d->opsize;

	offset = size == 8 ? offset : size == 4 ? (u64)(s64)(s32)offset : (u64)(s64)(s16)offset;
	/* A negative one is rounded down. */
	addr = address_of(t, d, pc,
			  (u64)((s64)offset >> (size == 8   ? 6
						: size == 4 ? 5
							    : 4)) *
				  size);
	path_elements(t, pc);
	path_element(t, PATH_LOAD, size, addr);
	if (d->mem_write)
		path_element(t, PATH_STORE, size, addr);
}

u32 string_step(const struct insn *d)
{
	if (d->mem_read && d->mem_read != INSN_SIZE_VARIES)
		return d->mem_read;
	return d->mem_write && d->mem_write != INSN_SIZE_VARIES ? d->mem_write : d->opsize;
}

static void tell_ends(struct dbt_thread *t, enum path_access_kind kind, u32 size, u64 from, u64 now)
{
	path_element(t, kind, size, from);
	path_element(t, kind, size, now);
}

void elements_of_string(struct dbt_thread *t, const u8 *native, bool of_gs)
{
	u64 si = t->regs.gpr[REG_RSI], di = t->regs.gpr[REG_RDI];
	bool source, dest;
	struct insn d;
	u32 flags;

	CHECK(insn_decode(&d, native, INSN_MAX) > 0);
	source = d.mem_read && d.gpr_read & BIT(REG_RSI);
	dest = d.gpr_read & BIT(REG_RDI);
	/* It stands before its first iteration. */
	if (source ? si == t->filter.from[0] : di == t->filter.from[1])
		return;
	flags = d.attr & INSN_ADDR32 ? PATH_ADDR32 : 0;
	if (source)
		flags |= of_gs ? PATH_GS : d.mem.seg == SEG_FS ? PATH_FS : 0;
	path_strings(t, t->regs.rip, (source + dest) * 2u, flags);
	if (source)
		tell_ends(t, PATH_LOADS, string_step(&d), t->filter.from[0], si);
	if (dest)
		tell_ends(t, d.mem_write ? PATH_STORES : PATH_LOADS, string_step(&d),
			  t->filter.from[1], di);
}

void arch_tell_elements(struct dbt_thread *t)
{
	u64 pc = t->regs.rip;
	u8 bytes[INSN_MAX + 1] = {0};
	struct insn d;

	if (dbt_fetch(bytes, pc, INSN_MAX) == 0 || insn_decode(&d, bytes, INSN_MAX) <= 0)
		return;
	if (is_gather(&d))
		tell_gather(t, &d, pc);
	else if (is_bit_test(&d))
		tell_bit_test(t, &d, pc);
	else if (is_xstate(&d))
		tell_xstate(t, &d, pc);
	else if (is_tile(&d))
		tell_tile(t, &d, pc);
}
