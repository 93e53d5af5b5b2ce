/*
 * Far branches, near ones of 16 bits, loads of GS and of its base, done in C because they are rare, and what has to
 * be mended behind stores of the x87 state. What they do to the real segment registers is none of the guest's
 * business: GS is ours, and CS stays the 64-bit user code segment, since a program in another one would not be
 * 64-bit code. Semantics: SDM vol. 2 and APM vol. 3, JMP, CALL, RET, IRET, MOV, LGS.
 */
#include "dbt/arch/x86_64/plan-priv.h"
#include "sys/call.h"

#include <asm/prctl.h>

#define RPL           3u
#define SELECTOR_NULL 3u          /* the highest of four */
#define FLAGS_IRET    0x254dd5ull /* what user mode may change: CF PF AF ZF SF TF DF OF NT RF AC ID */
#define FLAG_NT       0x4000u

/* An instruction under way. */
struct far {
	struct dbt_thread *t;
	struct insn d;
	u64 pc;
	u64 fault; /* address of an access that failed */
	bool write;
	bool stack; /* it goes through the stack segment */
};

static u16 code_selector(void)
{
	u16 cs;

	__asm__("mov %%cs, %0" : "=r"(cs));
	return cs;
}

static u16 stack_selector(void)
{
	u16 ss;

	__asm__("mov %%ss, %0" : "=r"(ss));
	return ss;
}

static bool canonical(u64 addr)
{
	return (u64)((s64)(addr << 16) >> 16) == addr;
}

static bool load_guest(struct far *f, u64 at, u32 size, u64 *value)
{
	*value = 0;
	if (canonical(at) && dbt_fetch(value, at, size) == size)
		return true;
	f->fault = at;
	f->write = false;
	return false;
}

static bool store_guest(struct far *f, u64 at, u32 size, u64 value)
{
	/* Code that was translated may lie there, and then we have taken the right to write. */
	if (canonical(at) &&
	    (dbt_fetch((void *)at, (u64)&value, size) == size ||
	     (dbt_unprotect(f->t, at, size) && dbt_fetch((void *)at, (u64)&value, size) == size)))
		return true;
	f->fault = at;
	f->write = true;
	return false;
}

static bool pop(struct far *f, u64 at, u32 size, u64 *value)
{
	f->stack = true;
	return load_guest(f, at, size, value);
}

static bool push(struct far *f, u64 at, u32 size, u64 value)
{
	f->stack = true;
	return store_guest(f, at, size, value);
}

/* Addresses that are not canonical are general protection or stack faults, not page faults. */
static enum dbt_stop access_failed(const struct far *f)
{
	if (!canonical(f->fault))
		return f->stack ? DBT_STACK_FAULT : DBT_REFUSED;
	f->t->stop_addr = f->fault;
	f->t->stop_size = f->write;
	return DBT_PAGE_FAULT;
}

static u64 operand_address(struct far *f)
{
	const struct insn_mem *m = &f->d.mem;
	const u64 *gpr = f->t->regs.gpr;
	u64 addr = (u64)(s64)m->disp, base = 0;

	if (m->base == REG_RIP)
		addr += f->pc + f->d.len;
	else if (m->base != REG_NONE)
		addr += gpr[m->base];
	if (m->index != REG_NONE)
		addr += gpr[m->index] << m->scale;
	if (f->d.attr & INSN_ADDR32)
		addr = (u32)addr;
	f->stack = m->seg == SEG_NONE && (m->base == REG_RSP || m->base == REG_RBP);
	if (m->seg == SEG_GS)
		base = f->t->guest_gs;
	else if (m->seg == SEG_FS)
		sys_arch_prctl(ARCH_GET_FS, (u64)&base);
	return addr + base;
}

/*
 * The base that loading a data segment register with @selector gives in 64-bit mode; false if it faults.
 * FS serves to find out, after LAR has said that it can be loaded.
 */
static bool segment_base(u16 selector, u64 *base)
{
	u64 fs = 0;
	u32 rights, type;
	u16 was;
	bool seen;

	*base = 0;
	if (selector <= SELECTOR_NULL)
		return true;
	__asm__ volatile("lar %2, %1\n\tsetz %0"
			 : "=q"(seen), "=r"(rights)
			 : "r"((u32)selector)
			 : "cc");
	if (!seen)
		return false;
	type = rights >> 8 &
	       31; /* S, then executable, conforming or expand-down, readable or writable */
	if (!(type & 16) || ((type & 8) && !(type & 2)) || !(rights & 0x8000))
		return false;
	sys_arch_prctl(ARCH_GET_FS, (u64)&fs);
	__asm__ volatile("mov %%fs, %0" : "=r"(was));
	__asm__ volatile("mov %0, %%fs" : : "r"(selector));
	sys_arch_prctl(ARCH_GET_FS, (u64)base);
	__asm__ volatile("mov %0, %%fs" : : "r"(was));
	sys_arch_prctl(ARCH_SET_FS, fs);
	return true;
}

static bool set_gs(struct dbt_thread *t, u16 selector)
{
	u64 base;

	if (!segment_base(selector, &base))
		return false;
	t->guest_gs = base;
	t->guest_gs_sel = selector;
	return true;
}

static void set_gpr(u64 *gpr, u64 value, u32 size)
{
	if (size == 2)
		*gpr = (*gpr & ~0xffffull) | (value & 0xffff);
	else
		*gpr = size == 4 ? (u32)value : value;
}

static enum dbt_stop load_gs(struct far *f)
{
	struct dbt_regs *r = &f->t->regs;
	u32 size = f->d.opsize;
	u64 selector, offset = 0;

	switch (f->d.special) {
	case SP_POP_SEG:
		if (!pop(f, r->gpr[DBT_RSP], size, &selector))
			return access_failed(f);
		if (!set_gs(f->t, (u16)selector))
			return DBT_REFUSED;
		r->gpr[DBT_RSP] += size;
		return DBT_INTERRUPTED;
	case SP_LOAD_FAR:
		if (!load_guest(f, operand_address(f), size, &offset) ||
		    !load_guest(f, operand_address(f) + size, 2, &selector))
			return access_failed(f);
		if (!set_gs(f->t, (u16)selector))
			return DBT_REFUSED;
		set_gpr(&r->gpr[insn_reg_field(&f->d)], offset, size);
		return DBT_INTERRUPTED;
	default:
		if (!(f->d.attr & INSN_MEM))
			selector = r->gpr[insn_rm(&f->d)];
		else if (!load_guest(f, operand_address(f), 2, &selector))
			return access_failed(f);
		return set_gs(f->t, (u16)selector) ? DBT_INTERRUPTED : DBT_REFUSED;
	}
}

static enum dbt_stop write_gs_base(struct far *f)
{
	u64 base = f->t->regs.gpr[insn_rm(&f->d)];

	if (!canonical(base))
		return DBT_REFUSED;
	f->t->guest_gs = base;
	return DBT_INTERRUPTED;
}

/* Bytes of an offset: AMD knows no far pointers with 64 bits (APM vol. 3, JMP Far). */
static u32 offset_size(const struct insn *d)
{
	u32 a = 0, b, c = 0, e;

	if (!(d->rex & 8))
		return d->attr & INSN_OPSIZE16 ? 2 : 4;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(e));
	return b == 0x68747541 || b == 0x6f677948 ? 4 : 8; /* "Auth", "Hygo" */
}

static enum dbt_stop far_jump(struct far *f, bool call)
{
	struct dbt_regs *r = &f->t->regs;
	u32 size = offset_size(&f->d);
	u64 at = operand_address(f), to, selector, sp = r->gpr[DBT_RSP], next = f->pc + f->d.len;

	if (!load_guest(f, at, size, &to) || !load_guest(f, at + size, 2, &selector))
		return access_failed(f);
	/* The requested privilege may be higher; the segment is entered with ours. */
	if ((selector | RPL) != code_selector() || !canonical(to))
		return DBT_REFUSED;
	if (call) {
		if (!push(f, sp - size, size, code_selector()) ||
		    !push(f, sp - 2 * size, size, next))
			return access_failed(f);
		r->gpr[DBT_RSP] = sp - 2 * size;
	}
	r->rip = to;
	return DBT_INTERRUPTED;
}

/* Near branches of 16 bits that go to where a register or memory says, or use the stack. */
static enum dbt_stop near_branch(struct far *f)
{
	struct dbt_regs *r = &f->t->regs;
	u64 sp = r->gpr[DBT_RSP], next = f->pc + f->d.len, to = insn_target(&f->d, f->pc);

	if (f->d.cf == CF_RET) {
		if (!pop(f, sp, 2, &to))
			return access_failed(f);
		r->gpr[DBT_RSP] = sp + 2 + (f->d.imm_size ? (u16)f->d.imm : 0);
	} else if (f->d.cf != CF_CALL) {
		if (!(f->d.attr & INSN_MEM))
			to = r->gpr[insn_rm(&f->d)];
		else if (!load_guest(f, operand_address(f), 2, &to))
			return access_failed(f);
	}
	if (f->d.cf == CF_CALL || f->d.cf == CF_CALL_IND) {
		if (!push(f, sp - 2, 2, next))
			return access_failed(f);
		r->gpr[DBT_RSP] = sp - 2;
	}
	r->rip = (u16)to;
	return DBT_INTERRUPTED;
}

static u32 stack_size(const struct insn *d)
{
	return d->rex & 8 ? 8 : d->attr & INSN_OPSIZE16 ? 2 : 4;
}

static enum dbt_stop far_return(struct far *f)
{
	struct dbt_regs *r = &f->t->regs;
	u32 size = stack_size(&f->d);
	u64 sp = r->gpr[DBT_RSP], to, selector;

	/* The selector first, as the CPU does. */
	if (!pop(f, sp + size, size, &selector) || !pop(f, sp, size, &to))
		return access_failed(f);
	if ((u16)selector != code_selector() || !canonical(to))
		return DBT_REFUSED;
	r->rip = to;
	r->gpr[DBT_RSP] = sp + 2 * size + (f->d.imm_size ? (u16)f->d.imm : 0);
	return DBT_INTERRUPTED;
}

static enum dbt_stop interrupt_return(struct far *f)
{
	struct dbt_regs *r = &f->t->regs;
	u32 size = stack_size(&f->d);
	static const u8 order[5] = {2, 1, 0, 3,
				    4}; /* the CPU's, by the address of its page faults */
	u64 word[5], mask = FLAGS_IRET;

	if (r->rflags & FLAG_NT)
		return DBT_REFUSED;
	for (u32 i = 0; i < 5; i++)
		if (!pop(f, r->gpr[DBT_RSP] + order[i] * size, size, &word[order[i]]))
			return access_failed(f);
	if ((u16)word[1] != code_selector() || (u16)word[4] != stack_selector() ||
	    !canonical(word[0]))
		return DBT_REFUSED;
	if (size == 2)
		mask &= 0xffff;
	r->rip = word[0];
	r->rflags = (r->rflags & ~mask) | (word[2] & mask);
	r->gpr[DBT_RSP] = word[3];
	return DBT_INTERRUPTED;
}

static void retire(struct dbt_thread *t, u8 cf)
{
	u64 *count = dbt_meter(t)->count[0];

	if (!(cache.mask & DBT_MASK_COUNT))
		return;
	count[METER_INSTRUCTIONS]++;
	count[METER_BRANCHES] += cf != CF_NONE;
	if (!(cache.mask & DBT_MASK_SPLIT))
		return;
	count[METER_CALLS] += cf == CF_FAR_CALL || cf == CF_CALL || cf == CF_CALL_IND;
	count[METER_RETURNS] += cf == CF_FAR_RET || cf == CF_RET;
	count[METER_INDIRECT] += cf == CF_FAR_CALL || cf == CF_FAR_JMP || cf == CF_CALL_IND ||
				 cf == CF_JMP_IND;
}

static bool fetch_insn(struct far *f)
{
	size_t n = PAGE_SIZE - (f->pc & (PAGE_SIZE - 1));
	u8 bytes[INSN_MAX];

	n = dbt_fetch(bytes, f->pc, n < INSN_MAX ? n : INSN_MAX);
	if (n < INSN_MAX && !((f->pc + n) & (PAGE_SIZE - 1)))
		n += dbt_fetch(bytes + n, f->pc + n, INSN_MAX - n);
	return insn_decode(&f->d, bytes, n) > 0;
}

/*
 * Only the lower half of an address may be there: of all addresses that end like this, one within the cache
 * it is, since x87 instructions are executed nowhere else.
 */
static u64 whole_address(u64 low)
{
	return (u64)cache.code + (u32)(low - (u64)cache.code);
}

void arch_mend_image(struct dbt_thread *t, u64 pc)
{
	struct far f = {.t = t, .pc = pc};
	u32 at = 8, size = 4;
	u64 image, value;

	if (!fetch_insn(&f) || !(f.d.attr & INSN_MEM))
		return;
	if (f.d.special == SP_X87_ENV) {
		at = 12;
		if (f.d.attr & INSN_OPSIZE16)
			return; /* 16 bits of an address, with nothing to tell whose */
	} else {
		size = f.d.rex & 8 ? 8 : 4;
		/* xsave and its like leave out what is not asked for; fxsave is /0. */
		if ((f.d.opcode == 0xc7 || f.d.modrm & 0x38) && !(t->regs.gpr[DBT_RAX] & 1))
			return;
	}
	image = operand_address(&f);
	if (!load_guest(&f, image + at, size, &value))
		return;
	if (size == 4)
		value = whole_address(value);
	if (dbt_in_cache(value))
		(void)store_guest(&f, image + at, size, dbt_guest_pc(t, value));
}

enum dbt_stop arch_emulate(struct dbt_thread *t)
{
	struct far f = {.t = t, .pc = t->regs.rip};
	bool traced = t->regs.rflags & FLAG_TF;
	enum dbt_stop stop;

	/* Rewritten since it was translated: whatever it is now is found by going on. */
	if (!fetch_insn(&f) || (f.d.cf != CF_NONE && !is_emulated_branch(&f.d)))
		return DBT_INTERRUPTED;
	switch (f.d.cf) {
	case CF_NONE:
		t->regs.rip += f.d.len;
		switch (f.d.special) {
		case SP_MOV_TO_SEG:
		case SP_POP_SEG:
		case SP_LOAD_FAR: stop = load_gs(&f); break;
		case SP_WRGSBASE: stop = write_gs_base(&f); break;
		default: t->regs.rip = f.pc; return DBT_INTERRUPTED;
		}
		break;
	case CF_FAR_JMP: stop = far_jump(&f, false); break;
	case CF_FAR_CALL: stop = far_jump(&f, true); break;
	case CF_FAR_RET: stop = far_return(&f); break;
	case CF_IRET: stop = interrupt_return(&f); break;
	default: stop = near_branch(&f);
	}
	if (stop != DBT_INTERRUPTED) {
		t->regs.rip = f.pc;
		return stop;
	}
	if (traced)
		t->traced = TRACE_LEFT;
	retire(t, f.d.cf);
	return DBT_INTERRUPTED;
}
