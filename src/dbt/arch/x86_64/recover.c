/*
 * From a native pc back to the exact guest state. Asynchronous signals are taken where an
 * instruction's native form begins, because every register is in place there. Anywhere else the
 * thread is single-stepped until it is at such a place or out of the cache. Faults happen in the
 * middle of native forms; for them the block says which registers are spilled there. The lock is
 * taken for write faults only, when the thread cannot hold it.
 */
#include <asm/sigcontext.h>
#include <asm/signal.h>
#include <asm/ucontext.h>

#include "dbt/arch/x86_64/branch-priv.h"

extern const char dbt_enter_critical[], dbt_enter_critical_end[], dbt_abort[];
extern const char dbt_fetch_load[], dbt_fetch_fault[];

bool dbt_in_cache(u64 pc)
{
	return pc - (u64)cache.code < cache.code_size;
}

static bool within(u64 pc, const char *begin, const char *end)
{
	return pc >= (u64)begin && pc < (u64)end;
}

static void regs_from(struct dbt_regs *r, const struct sigcontext_64 *m)
{
	r->gpr[DBT_RAX] = m->ax;
	r->gpr[DBT_RCX] = m->cx;
	r->gpr[DBT_RDX] = m->dx;
	r->gpr[DBT_RBX] = m->bx;
	r->gpr[DBT_RSP] = m->sp;
	r->gpr[DBT_RBP] = m->bp;
	r->gpr[DBT_RSI] = m->si;
	r->gpr[DBT_RDI] = m->di;
	r->gpr[DBT_R8] = m->r8;
	r->gpr[DBT_R9] = m->r9;
	r->gpr[DBT_R10] = m->r10;
	r->gpr[DBT_R11] = m->r11;
	r->gpr[DBT_R12] = m->r12;
	r->gpr[DBT_R13] = m->r13;
	r->gpr[DBT_R14] = m->r14;
	r->gpr[DBT_R15] = m->r15;
	r->rflags = m->flags & ~X86_EFLAGS_RF;
}

/* The handler will return to the end of dbt_enter(), on the stack that this was called on. */
static void redirect(struct dbt_thread *t, struct sigcontext_64 *m)
{
	m->ip = (u64)dbt_abort;
	m->sp = t->rt_sp;
	m->flags &= ~(X86_EFLAGS_TF | X86_EFLAGS_DF | X86_EFLAGS_AC);
	t->stepping = 0;
}

/*
 * The index of the instruction whose native form is at offset @off; nr_insns behind the last one.
 * If several begin there (elided jumps have no bytes) it is the last. *@exact: it begins right
 * there.
 */
static u32 insn_at(const struct dbt_block *b, u32 off, bool *exact)
{
	u32 start = b->first, i = 0;

	if (off == 0) {
		*exact = true;
		return 0;
	}
	while (i < b->nr_insns && start + block_insns(b)[i].native <= off)
		start += block_insns(b)[i++].native;
	/* Behind the last one the guest is at an instruction only if the block falls through. */
	*exact = start == off && (i < b->nr_insns || b->flags & BLOCK_FALLS);
	return i;
}

u64 arch_insn_pc(const struct dbt_block *b, u32 index)
{
	const struct block_frag *f = &block_frags(b)[b->nr_frags - 1];
	u64 pc;

	while (f->first > index)
		f--;
	pc = f->pc;
	for (u32 i = f->first; i < index; i++)
		pc += insn_len_of(&block_insns(b)[i]);
	return pc;
}

u64 dbt_guest_pc(struct dbt_thread *t, u64 pc)
{
	bool inside = __atomic_load_n(&t->in_cache, __ATOMIC_SEQ_CST), exact;
	const struct dbt_block *b;
	u64 found = 0;

	if (!dbt_in_cache(pc))
		return pc;
	/* While the thread is inside, blocks stay. */
	if (!inside)
		cache_lock(t);
	b = block_by_code(pc);
	if (b && pc >= code_addr(b->code))
		found = arch_insn_pc(b, insn_at(b, (u32)(pc - code_addr(b->code)), &exact));
	if (!inside)
		cache_unlock(t);
	return found;
}

static void meter_add(struct dbt_thread *t, u64 w, u64 sign)
{
	u32 n = METER_BRANCHES + 1;

	if (!(cache.mask & DBT_MASK_COUNT))
		return;
	if (cache.mask & DBT_MASK_SPLIT)
		n = METER_QUANTITIES;
	for (u32 q = 0; q < n; q++)
		dbt_meter(t)->count[0][q] += sign * weight_byte(w, q);
}

/* Corrects the meter: of the path through the block the instructions before @index have retired. */
void arch_meter_correct(struct dbt_thread *t, const struct dbt_block *b, u32 off, u32 index)
{
	u32 restart = 0;
	u64 w;

	for (u32 i = 0; i < b->nr_frags; i++)
		if (block_frags(b)[i].flags & FRAG_RESTART && block_frags(b)[i].first <= index)
			restart = block_frags(b)[i].first;
	for (u32 i = 0; i < b->nr_counts; i++) {
		const struct block_count *c = &block_counts(b)[i];

		if (c->offset <= off && c->upto >= index && c->upto > restart) {
			path_records_drop(t, index, true);
			w = weight_of(block_insns(b), index, c->upto);
			meter_add(t, w, -1ull);
			path_correct(t, b->path_block, index, c->upto, -1);
			return;
		}
	}
	path_records_drop(t, index, false);
	w = weight_of(block_insns(b), restart, index);
	meter_add(t, w, 1);
	path_correct(t, b->path_block, restart, index, 1);
}

/*
 * The string instruction at @off, with code in front of it, as it is traced or its source has GS:
 * the thread is between two iterations. To wait for its end takes a trap for each.
 */
static const struct spill_range *string_at(const struct dbt_block *b, u32 off)
{
	for (u32 i = 0; i < b->nr_spill_ranges; i++) {
		const struct spill_range *s = &block_spill_ranges(b)[i];

		if ((s->moved || s->repeats) && s->begin == off)
			return s;
	}
	return NULL;
}

static void at_boundary(struct dbt_thread *t, const struct dbt_block *b, u32 off, u32 index,
			struct sigcontext_64 *m)
{
	regs_from(&t->regs, m);
	t->regs.rip = arch_insn_pc(b, index);
	/* Who has come to the place again, all in the cache, is at the block that tells of it. */
	if (!(b->flags & BLOCK_PASSES) || index)
		t->pass_pc = 0;
	arch_meter_correct(t, b, off, index);
	redirect(t, m);
}

/*
 * The CPU has trapped outside the cache for the guest's trap flag: clears the flag, since C code is
 * not to be stepped. dbt_run() puts it back into the guest's registers, because the flags that
 * dbt_exit() saves do not have it then.
 */
static void trace_leave(struct dbt_thread *t, struct sigcontext_64 *m)
{
	if (t->traced == TRACE_ENTERING)
		t->traced = TRACE_SILENT;
	else if (t->traced == TRACE_INSIDE)
		t->traced = TRACE_LEFT;
	m->flags &= ~X86_EFLAGS_TF;
}

/* The native form of instruction @index as it begins; false: it has none. */
static bool native_insn(const struct dbt_block *b, u32 index, struct insn *d)
{
	u32 off = b->first;

	for (u32 i = 0; i < index; i++)
		off += block_insns(b)[i].native;
	return index < b->nr_insns && block_insns(b)[index].native &&
	       insn_decode(d, (const u8 *)code_addr(b->code) + off, INSN_MAX) > 0;
}

#define SREG_SS 2u

/* Behind it the CPU does not trap, and traps in what stands there in front of the next one. */
static bool loads_ss(const struct dbt_block *b, u32 index)
{
	struct insn d;

	return native_insn(b, index, &d) && d.special == SP_MOV_TO_SEG &&
	       (insn_reg_field(&d) & 7) == SREG_SS;
}

/*
 * Whether an instruction's native form begins at @off, and *@index, the first one that does. Of
 * elided jumps in a row each is reported, as natively. What stands in front of a block's first
 * instruction, as counting, belongs to none: the thread may leave in there, and has not begun it.
 */
static bool traced_at(const struct dbt_block *b, u32 off, u32 *index)
{
	bool exact;

	*index = insn_at(b, off, &exact);
	if (!exact || (*index && loads_ss(b, *index - 1)))
		return false;
	while (*index > 0 && block_insns(b)[*index - 1].native == 0)
		--*index;
	return *index || off == b->first;
}

/*
 * Whether the code at @pc leads to a call in the middle of another block, where the same one was
 * translated before (branch_call()): the instruction that begins there has begun here.
 */
static bool is_known_call(u64 pc)
{
	const struct dbt_block *to;
	u32 index;
	s32 rel;

	if (*(const u8 *)pc != 0xe9)
		return false;
	__builtin_memcpy(&rel, (const u8 *)pc + 1, sizeof(rel));
	pc += 5 + (u64)(s64)rel;
	to = block_by_code(pc);
	return to && pc > code_addr(to->code) &&
	       traced_at(to, (u32)(pc - code_addr(to->code)), &index);
}

static void rewind_to_insn(struct dbt_thread *t, const struct dbt_block *b,
			   struct sigcontext_64 *m);

/* Whether the thread is at a string instruction of which an iteration has retired. */
static bool has_iterated(const struct dbt_thread *t, const struct dbt_block *b, u32 off,
			 const struct sigcontext_64 *m)
{
	const struct spill_range *string = string_at(b, off);
	u64 more;

	if (!string || !string->repeats)
		return false;
	more = string->moved ? t->arch.gs_base : 0;
	return m->di != t->filter.from[1] || m->si - more != t->filter.from[0];
}

enum dbt_where dbt_trace(struct dbt_thread *t, void *context)
{
	struct sigcontext_64 *m =
		(struct sigcontext_64 *)&((struct ucontext *)context)->uc_mcontext;
	const struct dbt_block *b;
	u32 off, index;

	if (within(m->ip, dbt_enter_critical, dbt_enter_critical_end))
		return DBT_RESUME;
	if (!dbt_in_cache(m->ip)) {
		trace_leave(t, m);
		return DBT_IN_RUNTIME;
	}
	/* The first trap after a popf that has set the flag; nothing has retired since then. */
	if (t->traced == TRACE_NONE)
		t->traced = TRACE_ENTERING;
	b = block_by_code(m->ip);
	off = b ? (u32)(m->ip - code_addr(b->code)) : 0;
	if (!b || m->ip < code_addr(b->code))
		return DBT_RESUME;
	if (!traced_at(b, off, &index)) {
		if (t->traced == TRACE_INSIDE && has_iterated(t, b, off, m)) {
			t->traced = TRACE_NONE;
			rewind_to_insn(t, b, m);
			redirect(t, m);
			return DBT_AT_BOUNDARY;
		}
		if (t->traced == TRACE_INSIDE && is_known_call(m->ip))
			t->traced = TRACE_ENTERING;
		return DBT_RESUME;
	}
	if (t->traced == TRACE_ENTERING) {
		if (!is_known_call(m->ip))
			t->traced = TRACE_INSIDE;
		if (off != b->first || b->nr_insns == 0 || block_insns(b)[0].native)
			return DBT_RESUME;
		index = 1; /* an elided jump, which has retired by now */
	}
	t->traced = TRACE_NONE;
	at_boundary(t, b, off, index, m);
	return DBT_AT_BOUNDARY;
}

bool arch_at_boundary(const struct dbt_block *b, u32 off)
{
	bool exact;

	insn_at(b, off, &exact);
	return exact || string_at(b, off);
}

/* @first: of jumps in a row that take no instruction, to the first. */
static enum dbt_where recover(struct dbt_thread *t, void *context, bool first)
{
	struct sigcontext_64 *m =
		(struct sigcontext_64 *)&((struct ucontext *)context)->uc_mcontext;
	const struct dbt_block *b;
	u32 off, index, traced;
	bool exact;

	if (within(m->ip, dbt_enter_critical, dbt_enter_critical_end)) {
		deadline_no_resume(t);
		redirect(t, m);
		return DBT_AT_BOUNDARY;
	}
	if (!dbt_in_cache(m->ip)) {
		if (t->stepping) {
			t->stepping = 0;
			trace_leave(t, m);
			m->flags &= ~X86_EFLAGS_TF;
			dbt_interrupt(t);
		}
		return DBT_IN_RUNTIME;
	}
	b = block_by_code(m->ip);
	off = b ? (u32)(m->ip - code_addr(b->code)) : 0;
	if (b && m->ip >= code_addr(b->code)) {
		index = insn_at(b, off, &exact);
		if (exact) {
			while (first && off && index && block_insns(b)[index - 1].native == 0)
				index--;
			if (t->stepping && !t->traced)
				m->flags &= ~X86_EFLAGS_TF;
			/* An instruction of a guest that steps itself has retired by now. */
			if (t->traced == TRACE_INSIDE &&
			    (t->stepping || !traced_at(b, off, &traced)))
				t->traced = TRACE_LEFT;
			at_boundary(t, b, off, index, m);
			return DBT_AT_BOUNDARY;
		}
		if (string_at(b, off)) {
			rewind_to_insn(t, b, m);
			redirect(t, m);
			return DBT_AT_BOUNDARY;
		}
	}
	t->stepping = 1;
	m->flags |= X86_EFLAGS_TF;
	return DBT_STEP;
}

enum dbt_where dbt_recover(struct dbt_thread *t, void *context)
{
	return recover(t, context, false);
}

enum dbt_where dbt_accessed(struct dbt_thread *t, void *context)
{
	return recover(t, context, true);
}

static bool block_reads_page(const struct dbt_block *b, u64 addr)
{
	u64 number = addr >> PAGE_SHIFT;

	for (u32 i = 0; i < b->nr_frags; i++) {
		const struct block_frag *f = &block_frags(b)[i];

		if (f->len && number >= f->pc >> PAGE_SHIFT &&
		    number <= (f->pc + f->len - 1) >> PAGE_SHIFT)
			return true;
	}
	return false;
}

static const struct spill_range *spill_range_at(const struct dbt_block *b, u32 off)
{
	for (u32 i = 0; i < b->nr_spill_ranges; i++)
		if (off >= block_spill_ranges(b)[i].begin && off < block_spill_ranges(b)[i].end)
			return &block_spill_ranges(b)[i];
	return NULL;
}

/*
 * Of a spill range's mask rsp means that the native rsp is 8 less than the guest's; registers in
 * @moved have the guest's GS base added to them.
 */
u32 arch_rewind(const struct dbt_thread *t, const struct dbt_block *b, u32 off,
		struct dbt_regs *regs)
{
	const struct spill_range *spill = spill_range_at(b, off);
	bool exact;
	u32 index = spill && spill->insn ? spill->insn - 1u : insn_at(b, off, &exact);

	regs->rip = arch_insn_pc(b, index);
	for (u32 reg = 0; spill && reg < ARRAY_SIZE(t->spill); reg++) {
		if (reg == DBT_RSP)
			regs->gpr[reg] += spill->mask & BIT(DBT_RSP) ? 8 : 0;
		else if (spill->mask & BIT(reg))
			regs->gpr[reg] = t->spill[reg];
		if (spill->moved & BIT(reg))
			regs->gpr[reg] -= t->arch.gs_base;
	}
	return index;
}

/* Sets t->regs to the state before the instruction that @b was executing at @m. */
static void rewind_to_insn(struct dbt_thread *t, const struct dbt_block *b, struct sigcontext_64 *m)
{
	u32 off = (u32)(m->ip - code_addr(b->code));
	const struct spill_range *string = string_at(b, off);

	if (t->stepping && !t->traced)
		m->flags &= ~X86_EFLAGS_TF;
	regs_from(&t->regs, m);
	arch_meter_correct(t, b, off, arch_rewind(t, b, off, &t->regs));
	if (string && string->repeats)
		elements_of_string(t, (const u8 *)m->ip, string->moved);
}

/*
 * Finishes a guest's return in C. Its stack can be read but not written, so our native return
 * cannot be made; or what that has overwritten cannot be put back, because another thread has just
 * taken the permission away. The return has been counted already. @pop: by how much rsp is still to
 * go up.
 */
static void finish_ret(struct dbt_thread *t, struct sigcontext_64 *m, u64 pop)
{
	regs_from(&t->regs, m);
	t->regs.rip = t->regs.gpr[DBT_R11];
	t->pass_pc = 0;
	t->regs.gpr[DBT_RSP] += pop;
	t->regs.gpr[DBT_R11] = t->spill[DBT_R11];
	t->regs.gpr[DBT_RCX] = t->spill[DBT_RCX];
	if (t->traced == TRACE_INSIDE)
		t->traced = TRACE_LEFT;
	redirect(t, m);
	t->handed = DBT_HANDED_RESUME;
}

static bool is_ret(const struct dbt_block *b, u32 off)
{
	const struct spill_range *spill = spill_range_at(b, off);
	bool exact;
	u32 index = insn_at(b, off, &exact);

	return spill && !spill->insn && index < b->nr_insns &&
	       insn_class_of(&block_insns(b)[index]) == CLASS_RET;
}

/*
 * Whether a return is to put its slot back at @pc: at its return point, or after a wrong guess in a
 * stub.
 */
static bool is_put_back(const struct dbt_block *b, u64 pc)
{
	const struct spill_range *spill = b ? spill_range_at(b, (u32)(pc - code_addr(b->code)))
					    : NULL;

	return (!b || (spill && spill->insn)) && stores_slot((const u8 *)pc);
}

/*
 * Takes the lock. A thread in the cache must not wait for it while the holder flushes, because that
 * waits for the thread. Nor can it take the lock over from a holder that was killed. False in both
 * cases, without the lock.
 */
static bool lock_unless_flushing(struct dbt_thread *t)
{
	for (u32 i = 0; !lock_try(&cache.lock, t->id); i++) {
		if (!__atomic_load_n(&t->in_cache, __ATOMIC_SEQ_CST)) {
			cache_lock(t);
			return true;
		}
		if (__atomic_load_n(&cache.flushing, __ATOMIC_SEQ_CST) ||
		    (i % 4096 == 4095 && lock_is_left(&cache.lock, cache.ops.gone)))
			return false;
		sys_sched_yield();
	}
	return true;
}

static enum dbt_where write_fault(struct dbt_thread *t, struct sigcontext_64 *m,
				  const struct dbt_block *b, u64 addr)
{
	bool own = b && block_reads_page(b, addr), ours;

	if (lock_held_by(&cache.lock, t->id))
		return DBT_IN_RUNTIME;
	if (!lock_unless_flushing(t)) {
		if (b) {
			rewind_to_insn(t, b, m);
			redirect(t, m);
			t->handed = DBT_HANDED_RESUME;
		} else {
			/*
			 * A flush forgets all blocks, and none can be made again before this thread
			 * is out.
			 */
			cache.ops.protect(ALIGN_DOWN(addr, PAGE_SIZE), PAGE_SIZE, false);
		}
		return DBT_RESUME;
	}
	ours = page_written(addr, own);
	cache_unlock(t);
	if (!ours)
		return DBT_IN_RUNTIME;
	if (b && b->flags & BLOCK_DEAD) {
		/* It may be about to write what it executes next: that is translated again. */
		rewind_to_insn(t, b, m);
		redirect(t, m);
		t->handed = DBT_HANDED_RESUME;
	}
	return DBT_RESUME;
}

/* Whether the records have come to their end: emit_append() goes on at the beginning. */
static bool records_are_full(struct dbt_thread *t, struct sigcontext_64 *m, u64 addr)
{
	u64 next = path_records_full(t, addr);

	if (next)
		m->cx = next;
	return next;
}

/* Whether emit_trace() has come to the end of the trace: it goes on at the beginning. */
static bool trace_is_full(struct dbt_thread *t, struct sigcontext_64 *m, u64 addr)
{
	u64 start = path_trace_full(t, addr);

	if (!start)
		return false;
	/* The register that the instruction addresses it by. */
	if (((const u8 *)m->ip)[1] == REG_RCX)
		m->cx = start;
	else
		m->ax = start;
	return true;
}

enum dbt_where dbt_fault(struct dbt_thread *t, void *context, u64 addr, bool write, u64 *guest_addr)
{
	struct sigcontext_64 *m =
		(struct sigcontext_64 *)&((struct ucontext *)context)->uc_mcontext;
	const struct dbt_block *b = NULL;
	u64 pc = m->ip;
	bool exact;
	u32 index;

	*guest_addr = addr;
	if (pc == (u64)dbt_fetch_load) {
		m->ip = (u64)dbt_fetch_fault;
		return DBT_RESUME;
	}
	if (write && dbt_in_cache(pc) &&
	    (trace_is_full(t, m, addr) || records_are_full(t, m, addr)))
		return DBT_RESUME;
	if (dbt_in_cache(pc)) {
		b = block_by_code(pc);
		if (b && pc < code_addr(b->code))
			b = NULL;
	}
	if (write && write_fault(t, m, b, addr) == DBT_RESUME)
		return DBT_RESUME;
	if (!dbt_in_cache(pc))
		return DBT_IN_RUNTIME;
	if (write && is_put_back(b, pc)) {
		finish_ret(t, m, 0);
		return DBT_RESUME;
	}
	/* Stubs, which are of no block, access nothing else of the guest's. */
	CHECK(b);
	if (write && is_ret(b, (u32)(pc - code_addr(b->code)))) {
		index = insn_at(b, (u32)(pc - code_addr(b->code)), &exact);
		finish_ret(t, m, 8);
		/* The fault came before the code that logs it. */
		branch_taken(t, arch_insn_pc(b, index), t->regs.rip, TRACE_BRANCH_RETURN);
		return DBT_RESUME;
	}
	if (b->flags & BLOCK_CHECKED && pc < code_addr(b->code) + b->first) {
		/* The guest's bytes cannot be read for the comparison: dbt_run() finds out why. */
		rewind_to_insn(t, b, m);
		redirect(t, m);
		t->handed = DBT_HANDED_RESUME;
		return DBT_RESUME;
	}
	rewind_to_insn(t, b, m);
	if (addr == pc)
		*guest_addr = t->regs.rip;
	redirect(t, m);
	return DBT_AT_BOUNDARY;
}

enum dbt_where dbt_touched(struct dbt_thread *t, void *context)
{
	struct sigcontext_64 *m =
		(struct sigcontext_64 *)&((struct ucontext *)context)->uc_mcontext;
	const struct dbt_block *b = dbt_in_cache(m->ip) ? block_by_code(m->ip) : NULL;
	u64 off = b ? m->ip - code_addr(b->code) : 0;

	/* What a return does to its slot is done behind the instruction. */
	if (t->stepping || !b || m->ip < code_addr(b->code) || is_put_back(b, m->ip) ||
	    is_ret(b, (u32)off) || (b->flags & BLOCK_CHECKED && off < b->first))
		return dbt_recover(t, context);
	rewind_to_insn(t, b, m);
	redirect(t, m);
	return DBT_AT_BOUNDARY;
}

/* The block that @context's thread is in, and where. */
static const struct dbt_block *block_at(const void *context, u64 *pc, u32 *off)
{
	const struct sigcontext_64 *m =
		(const struct sigcontext_64 *)&((const struct ucontext *)context)->uc_mcontext;
	const struct dbt_block *b = dbt_in_cache(m->ip) ? block_by_code(m->ip) : NULL;

	*pc = m->ip;
	if (b && m->ip < code_addr(b->code))
		b = NULL;
	*off = b ? (u32)(m->ip - code_addr(b->code)) : 0;
	return b;
}

bool dbt_is_in_return(const void *context)
{
	const struct dbt_block *b;
	u64 pc;
	u32 off;

	b = block_at(context, &pc, &off);
	return dbt_in_cache(pc) && ((b && is_ret(b, off)) || is_put_back(b, pc));
}

bool dbt_is_in_check(const void *context)
{
	const struct dbt_block *b;
	u64 pc;
	u32 off;

	b = block_at(context, &pc, &off);
	return b && b->flags & BLOCK_CHECKED && off && off <= b->first;
}
