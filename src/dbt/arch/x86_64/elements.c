/*
 * Elements of gathers and scatters, for the trace: their addresses are in vector registers, which
 * are the guest's while C code runs, so they can be read there. Where accesses are traced a block
 * ends in front of such an instruction, as at a place (place.c).
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

bool is_gather(const struct insn *d)
{
	return d->special == SP_GATHER && !(d->attr & INSN_PREFETCH);
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

void arch_tell_elements(struct dbt_thread *t)
{
	u64 pc = t->regs.rip, base, addr;
	union vector index = {{0}}, mask = {{0}};
	u8 bytes[INSN_MAX + 1] = {0};
	u32 n, size, step, bits = 0;
	struct insn d;

	if (dbt_fetch(bytes, pc, INSN_MAX) == 0 || insn_decode(&d, bytes, INSN_MAX) <= 0 ||
	    !is_gather(&d) || d.vl > 2)
		return;
	size = d.rex & REX_W ? 8 : 4;
	step = d.opcode & 1 ? 8 : 4;
	n = (16u << d.vl) / (size > step ? size : step);
	if (d.enc == ENC_EVEX) {
		read_zmm(d.mem.index, &index);
		bits = read_mask(d.evex_aaa);
	} else {
		read_ymm(d.mem.index, &index);
		read_ymm(d.vvvv, &mask);
		for (u32 i = 0; i < n; i++)
			bits |= (u32)(mask.byte[i * size + size - 1] >> 7) << i;
	}
	base = base_of(t, &d);
	path_elements(t, pc);
	for (u32 i = 0; i < n; i++) {
		if (!(bits & BIT(i)))
			continue;
		addr = (u64)(s64)d.mem.disp +
		       ((u64)(step == 8 ? index.qword[i] : index.dword[i]) << d.mem.scale);
		if (d.mem.base != REG_NONE)
			addr += t->regs.gpr[d.mem.base];
		if (d.attr & INSN_ADDR32)
			addr = (u32)addr;
		path_element(t, d.mem_write ? PATH_STORE : PATH_LOAD, size, base + addr);
	}
}
