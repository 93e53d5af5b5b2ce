/*
 * Far branches, near ones of 16 bits, loads of GS and of its base, done in C because they are rare,
 * and what has to be mended behind stores of the x87 state. What they do to the real segment
 * registers is none of the guest's business: GS is ours, and CS stays the 64-bit user code segment,
 * since a program in another one would not be 64-bit code. Semantics: SDM vol. 2 and APM vol. 3,
 * JMP, CALL, RET, IRET, MOV, LGS.
 */
#include "dbt/arch/x86_64/cpu-probe-priv.h"
#include "dbt/arch/x86_64/plan-priv.h"
#include "sys/kernel.h"

#include <asm/prctl.h>

#define RPL           3u
#define SELECTOR_NULL 3u /* the highest of four */
/* What user mode may change. */
#define FLAGS_IRET                                                                  \
	(FL_ARITH | X86_EFLAGS_TF | X86_EFLAGS_DF | X86_EFLAGS_NT | X86_EFLAGS_RF | \
	 X86_EFLAGS_AC | X86_EFLAGS_ID)

/* What an instruction has accessed, for the trace. */
struct emulated_access {
	u64 addr;
	u32 size;
	enum path_access_kind kind;
};

#define EMULATED_ACCESSES 5u /* iret's */

/* An instruction under way. */
struct emulation {
	struct dbt_thread *t;
	struct insn d;
	u32 nr_accesses;
	struct emulated_access access[EMULATED_ACCESSES];
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

static void note_access(struct emulation *em, enum path_access_kind kind, u64 at, u32 size)
{
	CHECK(em->nr_accesses < EMULATED_ACCESSES);
	em->access[em->nr_accesses++] = (struct emulated_access){at, size, kind};
}

static bool load_guest(struct emulation *em, u64 at, u32 size, u64 *value)
{
	*value = 0;
	if (canonical(at) && dbt_fetch(value, at, size) == size) {
		note_access(em, PATH_LOAD, at, size);
		return true;
	}
	em->fault = at;
	em->write = false;
	return false;
}

static bool store_guest(struct emulation *em, u64 at, u32 size, u64 value)
{
	/* We may have write-protected it, because there is code that was translated. */
	if (canonical(at) && (dbt_fetch((void *)at, (u64)&value, size) == size ||
			      (dbt_unprotect(em->t, at, size) &&
			       dbt_fetch((void *)at, (u64)&value, size) == size))) {
		note_access(em, PATH_STORE, at, size);
		return true;
	}
	em->fault = at;
	em->write = true;
	return false;
}

static bool pop(struct emulation *em, u64 at, u32 size, u64 *value)
{
	em->stack = true;
	return load_guest(em, at, size, value);
}

static bool push(struct emulation *em, u64 at, u32 size, u64 value)
{
	em->stack = true;
	return store_guest(em, at, size, value);
}

/* An address that is not canonical is a general protection or stack fault, not a page fault. */
static enum dbt_stop access_failed(const struct emulation *em)
{
	if (!canonical(em->fault))
		return em->stack ? DBT_STACK_FAULT : DBT_REFUSED;
	em->t->stop_addr = em->fault;
	em->t->stop_size = em->write;
	return DBT_PAGE_FAULT;
}

static u64 operand_address(struct emulation *em)
{
	const struct insn_mem *m = &em->d.mem;
	const u64 *gpr = em->t->regs.gpr;
	u64 addr = (u64)(s64)m->disp, base = 0;

	if (m->base == REG_RIP)
		addr += em->pc + em->d.len;
	else if (m->base != REG_NONE)
		addr += gpr[m->base];
	if (m->index != REG_NONE)
		addr += gpr[m->index] << m->scale;
	if (em->d.attr & INSN_ADDR32)
		addr = (u32)addr;
	em->stack = m->seg == SEG_NONE && (m->base == REG_RSP || m->base == REG_RBP);
	if (m->seg == SEG_GS)
		base = em->t->arch.gs_base;
	else if (m->seg == SEG_FS)
		sys_arch_prctl(ARCH_GET_FS, (u64)&base);
	return addr + base;
}

/*
 * The base that loading a data segment register with @selector gives in 64-bit mode; false if that
 * faults. LAR tells whether it can be loaded; then FS is loaded with it to find out.
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

/* The CPU names the selector that it refuses in the error code (SDM 3A 6.13). */
static enum dbt_stop refuse_selector(struct emulation *em, u64 selector)
{
	em->t->stop_selector = (u16)selector;
	return DBT_REFUSED;
}

static bool set_gs(struct dbt_thread *t, u16 selector)
{
	u64 base;

	if (!segment_base(selector, &base))
		return false;
	t->arch.gs_base = base;
	t->arch.gs_selector = selector;
	return true;
}

static void set_gpr(u64 *gpr, u64 value, u32 size)
{
	if (size == 2)
		*gpr = (*gpr & ~0xffffull) | (value & 0xffff);
	else
		*gpr = size == 4 ? (u32)value : value;
}

static enum dbt_stop load_gs(struct emulation *em)
{
	struct dbt_regs *r = &em->t->regs;
	u32 size = em->d.opsize;
	u64 selector, offset = 0;

	switch (em->d.special) {
	case SP_POP_SEG:
		if (!pop(em, r->gpr[DBT_RSP], size, &selector))
			return access_failed(em);
		if (!set_gs(em->t, (u16)selector))
			return refuse_selector(em, selector);
		r->gpr[DBT_RSP] += size;
		return DBT_INTERRUPTED;
	case SP_LOAD_FAR:
		if (!load_guest(em, operand_address(em), size, &offset) ||
		    !load_guest(em, operand_address(em) + size, 2, &selector))
			return access_failed(em);
		if (!set_gs(em->t, (u16)selector))
			return refuse_selector(em, selector);
		set_gpr(&r->gpr[insn_reg_field(&em->d)], offset, size);
		return DBT_INTERRUPTED;
	default:
		if (!(em->d.attr & INSN_MEM))
			selector = r->gpr[insn_rm(&em->d)];
		else if (!load_guest(em, operand_address(em), 2, &selector))
			return access_failed(em);
		return set_gs(em->t, (u16)selector) ? DBT_INTERRUPTED
						    : refuse_selector(em, selector);
	}
}

static enum dbt_stop write_gs_base(struct emulation *em)
{
	u64 base = em->t->regs.gpr[insn_rm(&em->d)];

	if (!canonical(base))
		return DBT_REFUSED;
	em->t->arch.gs_base = base;
	return DBT_INTERRUPTED;
}

/*
 * The size of the offset in a far pointer: AMD's CPUs have none of 64 bits (APM vol. 3, JMP Far).
 */
static u32 offset_size(const struct insn *d)
{
	if (!(d->rex & REX_W))
		return d->attr & INSN_OPSIZE16 ? 2 : 4;
	return cpu_is_amd() ? 4 : 8;
}

static enum dbt_stop far_jump(struct emulation *em, bool call)
{
	struct dbt_regs *r = &em->t->regs;
	u32 size = offset_size(&em->d);
	u64 at = operand_address(em), to, selector, sp = r->gpr[DBT_RSP], next = em->pc + em->d.len;

	if (!load_guest(em, at, size, &to) || !load_guest(em, at + size, 2, &selector))
		return access_failed(em);
	/* The requested privilege may be higher; the segment is entered with ours. */
	if ((selector | RPL) != code_selector())
		return refuse_selector(em, selector);
	if (!canonical(to))
		return DBT_REFUSED;
	if (call) {
		if (!push(em, sp - size, size, code_selector()) ||
		    !push(em, sp - 2 * size, size, next))
			return access_failed(em);
		r->gpr[DBT_RSP] = sp - 2 * size;
	}
	r->rip = to;
	return DBT_INTERRUPTED;
}

/* Near branches of 16 bits that go to where a register or memory says, or use the stack. */
static enum dbt_stop near_branch(struct emulation *em)
{
	struct dbt_regs *r = &em->t->regs;
	u64 sp = r->gpr[DBT_RSP], next = em->pc + em->d.len, to = insn_target(&em->d, em->pc);

	if (em->d.cf == CF_RET) {
		if (!pop(em, sp, 2, &to))
			return access_failed(em);
		r->gpr[DBT_RSP] = sp + 2 + (em->d.imm_size ? (u16)em->d.imm : 0);
	} else if (em->d.cf != CF_CALL) {
		if (!(em->d.attr & INSN_MEM))
			to = r->gpr[insn_rm(&em->d)];
		else if (!load_guest(em, operand_address(em), 2, &to))
			return access_failed(em);
	}
	if (em->d.cf == CF_CALL || em->d.cf == CF_CALL_IND) {
		if (!push(em, sp - 2, 2, next))
			return access_failed(em);
		r->gpr[DBT_RSP] = sp - 2;
	}
	r->rip = (u16)to;
	return DBT_INTERRUPTED;
}

static u32 stack_size(const struct insn *d)
{
	return d->rex & REX_W ? 8 : d->attr & INSN_OPSIZE16 ? 2 : 4;
}

static enum dbt_stop far_return(struct emulation *em)
{
	struct dbt_regs *r = &em->t->regs;
	u32 size = stack_size(&em->d);
	u64 sp = r->gpr[DBT_RSP], to, selector;

	/* The selector first, as the CPU does. */
	if (!pop(em, sp + size, size, &selector) || !pop(em, sp, size, &to))
		return access_failed(em);
	if ((u16)selector != code_selector())
		return refuse_selector(em, selector);
	if (!canonical(to))
		return DBT_REFUSED;
	r->rip = to;
	r->gpr[DBT_RSP] = sp + 2 * size + (em->d.imm_size ? (u16)em->d.imm : 0);
	return DBT_INTERRUPTED;
}

static enum dbt_stop interrupt_return(struct emulation *em)
{
	struct dbt_regs *r = &em->t->regs;
	u32 size = stack_size(&em->d);
	static const u8 order[5] = {2, 1, 0, 3,
				    4}; /* the CPU's, by the address of its page faults */
	u64 word[5], mask = FLAGS_IRET;

	if (r->rflags & X86_EFLAGS_NT)
		return DBT_REFUSED;
	for (u32 i = 0; i < 5; i++)
		if (!pop(em, r->gpr[DBT_RSP] + order[i] * size, size, &word[order[i]]))
			return access_failed(em);
	if ((u16)word[1] != code_selector())
		return refuse_selector(em, word[1]);
	if ((u16)word[4] != stack_selector())
		return refuse_selector(em, word[4]);
	if (!canonical(word[0]))
		return DBT_REFUSED;
	if (size == 2)
		mask &= 0xffff;
	r->rip = word[0];
	r->rflags = (r->rflags & ~mask) | (word[2] & mask);
	r->gpr[DBT_RSP] = word[3];
	return DBT_INTERRUPTED;
}

static enum trace_branch_type branch_type(u8 cf)
{
	switch (cf) {
	case CF_FAR_JMP:
	case CF_JMP_IND: return TRACE_BRANCH_JUMP_IND;
	case CF_CALL: return TRACE_BRANCH_CALL;
	case CF_FAR_CALL:
	case CF_CALL_IND: return TRACE_BRANCH_CALL_IND;
	case CF_FAR_RET:
	case CF_RET: return TRACE_BRANCH_RETURN;
	default: return TRACE_BRANCH_OTHER;
	}
}

/* As those of a gather: entries in front of the instruction. */
static void tell_accesses(const struct emulation *em)
{
	if (!em->nr_accesses || !(cache.mask & DBT_MASK_MEMORY))
		return;
	path_elements(em->t, em->pc);
	for (u32 i = 0; i < em->nr_accesses; i++)
		path_element(em->t, em->access[i].kind, em->access[i].size, em->access[i].addr);
}

static void retire(struct dbt_thread *t, u64 pc, u8 cf)
{
	u64 *count = dbt_meter(t)->count[0];

	if (cf != CF_NONE && cache.mask & DBT_MASK_BRANCHES)
		branch_taken(t, pc, t->regs.rip, branch_type(cf));
	path_retired(t, pc, 1);
	if (!(cache.mask & DBT_MASK_COUNT))
		return;
	deadline_retired(t, pc);
	count[METER_INSTRUCTIONS]++;
	count[METER_BRANCHES] += cf != CF_NONE;
	if (!(cache.mask & DBT_MASK_SPLIT))
		return;
	count[METER_CALLS] += cf == CF_FAR_CALL || cf == CF_CALL || cf == CF_CALL_IND;
	count[METER_RETURNS] += cf == CF_FAR_RET || cf == CF_RET;
	count[METER_INDIRECT] += cf == CF_FAR_CALL || cf == CF_FAR_JMP || cf == CF_CALL_IND ||
				 cf == CF_JMP_IND;
}

static bool fetch_insn(struct emulation *em)
{
	size_t n = PAGE_SIZE - (em->pc & (PAGE_SIZE - 1));
	u8 bytes[INSN_MAX];

	n = dbt_fetch(bytes, em->pc, n < INSN_MAX ? n : INSN_MAX);
	if (n < INSN_MAX && !((em->pc + n) & (PAGE_SIZE - 1)))
		n += dbt_fetch(bytes + n, em->pc + n, INSN_MAX - n);
	return insn_decode(&em->d, bytes, n) > 0;
}

/*
 * Some images have only the lower half of an address. x87 instructions are executed in the cache
 * only, so it is the address in the cache that ends like this.
 */
static u64 whole_address(u64 low)
{
	return (u64)cache.code + (u32)(low - (u64)cache.code);
}

void arch_stopped(struct dbt_thread *t, enum dbt_stop stop)
{
	/* As the CPU leaves them. */
	if (stop == DBT_SYSCALL) {
		t->regs.gpr[DBT_RCX] = t->regs.rip;
		t->regs.gpr[DBT_R11] = t->regs.rflags;
	}
}

void arch_mend(struct dbt_thread *t, u64 pc)
{
	struct emulation em = {.t = t, .pc = pc};
	u32 at = 8, size = 4;
	u64 image, value;

	if (!fetch_insn(&em) || !(em.d.attr & INSN_MEM))
		return;
	if (em.d.special == SP_X87_ENV) {
		at = 12;
		if (em.d.attr & INSN_OPSIZE16)
			return; /* 16 bits of an address, with nothing to tell whose */
	} else {
		size = em.d.rex & REX_W ? 8 : 4;
		/* xsave and its like leave out what is not asked for; fxsave is /0. */
		if ((em.d.opcode == 0xc7 || em.d.modrm & 0x38) && !(t->regs.gpr[DBT_RAX] & 1))
			return;
	}
	image = operand_address(&em);
	if (!load_guest(&em, image + at, size, &value))
		return;
	if (!value)
		return; /* there was no x87 instruction; not one whose address ends like that */
	if (size == 4)
		value = whole_address(value);
	if (dbt_in_cache(value))
		(void)store_guest(&em, image + at, size, dbt_guest_pc(t, value));
}

/* The extended state in the standard format: x87, SSE, the header, and AVX. */
struct xstate {
	u8 x87[24];
	u32 mxcsr;
	u8 legacy[512 - 28];
	u64 header[8]; /* XSTATE_BV, XCOMP_BV, and what is to be 0 */
	u8 avx[256];
} __attribute__((aligned(64)));

#define MXCSR_BITS 0xffffu

/*
 * Copies it from the guest at @at: no more than the guest has made room for, by what it is shown.
 * The CPU's own xsave and xrstor reach for the place of components that it knows nothing of, even
 * where they have none to save.
 */
static bool load_xstate(struct emulation *em, u64 at, struct xstate *x, size_t *len)
{
	*len = cache.ops.arch.xcr0() & BIT(2) ? sizeof(*x) : offsetof(struct xstate, avx);
	em->fault = at;
	em->write = em->d.mem_write;
	return dbt_fetch(x, at, *len) == *len;
}

/* The vector registers are the guest's here, too. */
static enum dbt_stop save_xstate(struct emulation *em, u64 at)
{
	u32 some = (u32)(em->t->regs.gpr[DBT_RAX] & cache.ops.arch.xcr0());
	struct xstate x;
	size_t len;

	/* What it does not write stays. */
	if (!load_xstate(em, at, &x, &len))
		return access_failed(em);
	if (em->d.rex & REX_W)
		__asm__ volatile("xsave64 %0" : "+m"(x) : "a"(some), "d"(0));
	else
		__asm__ volatile("xsave %0" : "+m"(x) : "a"(some), "d"(0));
	if (dbt_fetch((void *)at, (u64)&x, len) != len &&
	    (!dbt_unprotect(em->t, at, len) || dbt_fetch((void *)at, (u64)&x, len) != len))
		return access_failed(em);
	note_access(em, PATH_STORE, at, (u32)len);
	arch_mend(em->t, em->pc);
	return DBT_INTERRUPTED;
}

static enum dbt_stop restore_xstate(struct emulation *em, u64 at)
{
	u64 xcr0 = cache.ops.arch.xcr0();
	u32 some = (u32)(em->t->regs.gpr[DBT_RAX] & xcr0);
	struct xstate x;
	size_t len;

	if (!load_xstate(em, at, &x, &len))
		return access_failed(em);
	/* SDM vol. 1, 13.8: what raises a general protection fault. */
	if (x.header[0] & ~xcr0 || x.header[1] || x.header[2] ||
	    (some & 6 && x.mxcsr & ~MXCSR_BITS))
		return DBT_REFUSED;
	note_access(em, PATH_LOAD, at, (u32)len);
	if (em->d.rex & REX_W)
		__asm__ volatile("xrstor64 %0" : : "m"(x), "a"(some), "d"(0));
	else
		__asm__ volatile("xrstor %0" : : "m"(x), "a"(some), "d"(0));
	return DBT_INTERRUPTED;
}

static enum dbt_stop move_xstate(struct emulation *em)
{
	u64 at = operand_address(em);

	if (!canonical(at)) {
		em->fault = at;
		return access_failed(em);
	}
	if (at & 63)
		return DBT_REFUSED;
	return em->d.mem_write ? save_xstate(em, at) : restore_xstate(em, at);
}

static enum dbt_stop get_xcr0(struct emulation *em)
{
	u64 *gpr = em->t->regs.gpr;

	if ((u32)gpr[DBT_RCX])
		return DBT_REFUSED;
	gpr[DBT_RAX] = cache.ops.arch.xcr0();
	gpr[DBT_RDX] = 0;
	return DBT_INTERRUPTED;
}

enum dbt_stop arch_emulate(struct dbt_thread *t)
{
	struct emulation em = {.t = t, .pc = t->regs.rip};
	bool traced = t->regs.rflags & X86_EFLAGS_TF;
	enum dbt_stop stop;

	/* It has been rewritten since it was translated: dbt_run() goes on with what it is now. */
	if (!fetch_insn(&em) || (em.d.cf != CF_NONE && !is_emulated_branch(&em.d)))
		return DBT_INTERRUPTED;
	switch (em.d.cf) {
	case CF_NONE:
		t->regs.rip += em.d.len;
		switch (em.d.special) {
		case SP_MOV_TO_SEG:
		case SP_POP_SEG:
		case SP_LOAD_FAR: stop = load_gs(&em); break;
		case SP_WRGSBASE: stop = write_gs_base(&em); break;
		case SP_XGETBV: stop = get_xcr0(&em); break;
		case SP_XSAVE: stop = move_xstate(&em); break;
		default: t->regs.rip = em.pc; return DBT_INTERRUPTED;
		}
		break;
	case CF_FAR_JMP: stop = far_jump(&em, false); break;
	case CF_FAR_CALL: stop = far_jump(&em, true); break;
	case CF_FAR_RET: stop = far_return(&em); break;
	case CF_IRET: stop = interrupt_return(&em); break;
	default: stop = near_branch(&em);
	}
	if (stop != DBT_INTERRUPTED) {
		t->regs.rip = em.pc;
		return stop;
	}
	if (traced)
		t->traced = TRACE_LEFT;
	tell_accesses(&em);
	retire(t, em.pc, em.d.cf);
	return DBT_INTERRUPTED;
}
