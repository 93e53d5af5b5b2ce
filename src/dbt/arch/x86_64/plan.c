/*
 * Plans a superblock: follows the guest code from its head, through unconditional jumps, past
 * conditional branches and past calls, until something ends it. Then goes backward over the
 * instructions to find where the flags are dead, looking a little way into the targets of exits.
 *
 * The block depends on every page whose bytes went into a decision, those of targets included: if
 * one changes, the block dies. Pages that the guest can write are protected before they are read.
 */
#include "dbt/arch/x86_64/plan-priv.h"
#include "dbt/arch/x86_64/rewrite-priv.h"

#include <linux/errno.h>

#include "dbt/arch/x86_64/cpu-probe-priv.h"
#include "sys/string.h"

#define BRANCHES_MAX 4 /* branches that a superblock goes past */
#define LONG_MAX     8
#define EXACT_MAX    24 /* instructions of an exact block */
#define LOOKAHEAD    12 /* instructions */
#define FETCH_AHEAD  128
#define INT80_VECTOR 0x80 /* that of i386's system calls */

/*
 * Guest bytes that were read ahead, never across a page, because the next page may have to be
 * protected first. There is room behind them, so that an instruction can be read as if it were
 * whole.
 */
struct fetch_buffer {
	u64 pc;
	u32 len;
	u8 bytes[FETCH_AHEAD + INSN_MAX + 1];
};

static struct fetch_buffer fetched; /* under the lock, as all work of the translator */

static bool plan_has_page(const struct plan *plan, u64 number)
{
	for (u32 i = 0; i < plan->nr_pages; i++)
		if (plan->pages[i] == number)
			return true;
	return false;
}

enum page_use {
	USE_NO,      /* not executable, or no room for another page */
	USE_YES,     /* and changes will be noticed */
	USE_CHECKED, /* changes will not be noticed */
};

/* Whether changes of the page of @pc would be noticed; protects it for that if @may_protect. */
static enum page_use page_use(u64 pc, bool may_protect)
{
	const struct exec_range *r = exec_find(pc);
	struct code_page *page;

	if (!r)
		return USE_NO;
	if (r->flags & DBT_EXEC_CHECKED)
		return USE_CHECKED;
	if (!(r->flags & DBT_EXEC_WRITABLE))
		return USE_YES;
	page = page_get(pc >> PAGE_SHIFT);
	if (page->flags & PAGE_CHECKED)
		return USE_CHECKED;
	if (page->flags & PAGE_PROTECTED)
		return USE_YES;
	if (!may_protect)
		return USE_NO;
	if (cache.ops.protect(ALIGN_DOWN(pc, PAGE_SIZE), PAGE_SIZE, true)) {
		page->flags |= PAGE_CHECKED;
		return USE_CHECKED;
	}
	page->flags |= PAGE_PROTECTED;
	return USE_YES;
}

/* Makes the page of @pc a dependency of the plan, unless the plan would become a checked one. */
static enum page_use plan_use_page(struct plan *plan, u64 pc, bool may_protect)
{
	enum page_use use;

	if (plan_has_page(plan, pc >> PAGE_SHIFT))
		return plan->checked ? USE_CHECKED : USE_YES;
	if (plan->nr_pages == BLOCK_PAGES_MAX)
		return USE_NO;
	use = page_use(pc, may_protect);
	if (use == USE_YES || (use == USE_CHECKED && plan->checked))
		plan->pages[plan->nr_pages++] = pc >> PAGE_SHIFT;
	return use;
}

/* The bytes at @pc. INSN_MAX of them may be read, and *@len of them are the guest's. */
static const u8 *fetch(u64 pc, u32 *len)
{
	u64 page_end = (pc | (PAGE_SIZE - 1)) + 1;
	u32 n = pc + INSN_MAX > page_end ? (u32)(page_end - pc) : INSN_MAX;

	if (pc < fetched.pc || pc + n > fetched.pc + fetched.len) {
		fetched.pc = pc;
		exec_touch(pc);
		fetched.len = (u32)dbt_fetch(fetched.bytes, pc,
					     min_u64(FETCH_AHEAD, page_end - pc));
		if (n > fetched.len)
			n = fetched.len;
	}
	*len = n;
	return fetched.bytes + (pc - fetched.pc);
}

/*
 * The kernel puts int3 where it has a uprobe. That is not the guest's, and the file knows what is.
 * What was fetched is corrected.
 */
static void see_through_uprobe(u64 pc, u32 n)
{
	const struct exec_range *r;
	u8 *at = fetched.bytes + (pc - fetched.pc), byte;

	if (likely(*at != 0xcc) || !n || !cache.ops.file_byte)
		return;
	r = exec_find(pc);
	if (r && exec_is_constant(r) && cache.ops.file_byte(pc, &byte))
		*at = byte;
}

/* @to has room for one byte more than INSN_MAX. */
static void copy_insn(u8 *to, const u8 *from)
{
	__builtin_memcpy(to, from, 8);
	__builtin_memcpy(to + 8, from + 8, 8);
}

/* Decodes what runs into the next page or is no instruction. *@fault as for plan_decode(). */
static int decode_across(struct plan *plan, u64 pc, struct insn *d, u8 *bytes, bool may_protect,
			 u64 *fault)
{
	u8 whole[INSN_MAX + 1] = {0};
	u32 n, more;
	int len;

	copy_insn(whole, fetch(pc, &n));
	len = insn_decode(d, whole, n);
	if (len == -ENODATA && ((pc + n) & (PAGE_SIZE - 1)) == 0) {
		if (plan->nr_insns == 0 && page_use(pc + n, may_protect) == USE_CHECKED)
			plan->checked = true;
		if (plan_use_page(plan, pc + n, may_protect) == USE_YES || plan->checked) {
			const u8 *rest = fetch(pc + n, &more);

			more = more < INSN_MAX - n ? more : INSN_MAX - n;
			memcpy(whole + n, rest, more);
			n += more;
			len = insn_decode(d, whole, n);
		}
	}
	if (len == -ENODATA)
		*fault = pc + n;
	copy_insn(bytes, whole);
	return len;
}

/*
 * Decodes the instruction at @pc, whose page is in the plan. -ENODATA: it runs into a page that
 * cannot be used; *fault is that page's first byte. *@d may be brief (insn_scan).
 */
static int plan_decode(struct plan *plan, u64 pc, struct insn *d, u8 *bytes, bool may_protect,
		       u64 *fault)
{
	const u8 *p;
	u32 n;
	int len;

	p = fetch(pc, &n);
	see_through_uprobe(pc, n);
	if (n == INSN_MAX) {
		copy_insn(bytes, p);
		/* Checked blocks may end at stores, which insn_scan() does not tell. */
		len = plan->checked ? 0 : insn_scan(d, p);
		return len ? len : insn_decode(d, p, n);
	}
	return decode_across(plan, pc, d, bytes, may_protect, fault);
}

/*
 * The same for most instructions: those that insn_scan() knows, in bytes that have been read
 * already, of a page that is in the plan. 0: it is another one.
 */
static inline int plan_decode_near(const struct plan *plan, u64 pc, struct insn *d, u8 *bytes)
{
	u64 at = pc - fetched.pc;

	if (pc < fetched.pc || at + INSN_MAX > fetched.len || plan->checked)
		return 0;
	copy_insn(bytes, fetched.bytes + at);
	return insn_scan(d, bytes);
}

/*
 * What look_ahead() has found, for code that the guest cannot write. It is true until executable
 * memory changes; then it is forgotten (arch_forget_code()). It depends on the page of pc and on at
 * most one other.
 */
struct live_memo {
	u64 pc;
	s32 other; /* that page's number minus that of the page of pc; 0: none */
	u16 epoch;
	u16 live;
};

/* The pages that look_ahead() has looked at. */
struct pages_seen {
	u64 first, other; /* page numbers; other is the same as first while there is no other */
	bool more;
};

static void see_page(struct pages_seen *seen, u64 pc)
{
	u64 number = pc >> PAGE_SHIFT;

	if (number == seen->first || number == seen->other)
		return;
	if (seen->other != seen->first)
		seen->more = true;
	seen->other = number;
}

static u16 look_ahead(struct plan *plan, u64 pc, struct pages_seen *seen)
{
	u16 pending = FL_ARITH, live = 0;
	struct insn d;
	u8 bytes[INSN_MAX + 1];
	u64 fault;

	for (u32 i = 0; i < LOOKAHEAD; i++) {
		if (plan->checked || place_at(pc))
			return live | pending;
		if (!plan_decode_near(plan, pc, &d, bytes) &&
		    (plan_use_page(plan, pc, false) != USE_YES ||
		     plan_decode(plan, pc, &d, bytes, false, &fault) < 0))
			return live | pending;
		see_page(seen, pc);
		see_page(seen, pc + d.len - 1);
		live |= d.fl_read & pending;
		pending &= (u16)~flags_set(&d);
		if (!pending)
			return live;
		switch (d.cf) {
		case CF_NONE:
			if (d.special == SP_PUSHF)
				return live | pending;
			pc += d.len;
			break;
		case CF_JMP:
		case CF_CALL: pc = insn_target(&d, pc); break;
		default: return live | pending;
		}
	}
	return live | pending;
}

/*
 * A table of them, in the bookkeeping of the code cache. It grows with the number of blocks, so
 * that a small program touches little of it. A larger one begins empty, and so does one after a
 * flush.
 */
#define MEMOS_MAX 16384u

static struct {
	struct live_memo *at;
	u32 size;
	u32 flushed; /* the cache.epoch that it belongs to */
	u16 epoch;   /* the current one of struct live_memo; never 0 */
} memos = {.epoch = 1};

void arch_forget_code(void)
{
	if (++memos.epoch)
		return;
	/* The number has wrapped: what was remembered so long ago must not look new. */
	memos.epoch = 1;
	if (memos.size && memos.flushed == cache.epoch)
		memset(memos.at, 0, memos.size * sizeof(*memos.at));
}

static struct live_memo *memo_of(u64 pc)
{
	u32 size = cache.by_pc.size < MEMOS_MAX ? cache.by_pc.size : MEMOS_MAX;

	if (memos.flushed != cache.epoch)
		memos.size = 0;
	if (memos.size < size) {
		struct live_memo *at = meta_try(size * sizeof(*at));

		if (at) {
			memos.at = at;
			memos.size = size;
			memos.flushed = cache.epoch;
		}
	}
	return memos.size ? &memos.at[(pc ^ pc >> 12) & (memos.size - 1)] : NULL;
}

/* The FL_ARITH bits that may be read before they are written when control arrives at @pc. */
static u16 live_at(struct plan *plan, u64 pc)
{
	struct pages_seen seen = {.first = pc >> PAGE_SHIFT, .other = pc >> PAGE_SHIFT};
	struct live_memo *memo = memo_of(pc);
	const struct exec_range *r;
	u16 live;

	if (plan->checked || place_at(pc))
		return FL_ARITH;
	if (memo && memo->pc == pc && memo->epoch == memos.epoch) {
		u64 other = seen.first + (u64)(s64)memo->other;

		if (plan_use_page(plan, pc, false) != USE_YES ||
		    (memo->other && plan_use_page(plan, other << PAGE_SHIFT, false) != USE_YES))
			return FL_ARITH;
		return memo->live;
	}
	r = exec_find(pc);
	if (!r)
		return FL_ARITH;
	live = look_ahead(plan, pc, &seen);
	if (memo && exec_is_constant(r) && !seen.more &&
	    (u64)(s64)(s32)(seen.other - seen.first) == seen.other - seen.first)
		*memo = (struct live_memo){pc, (s32)(seen.other - seen.first), memos.epoch, live};
	return live;
}

static enum insn_class classify(const struct insn *d)
{
	switch (d->cf) {
	case CF_JCC:
	case CF_LOOP: return CLASS_COND;
	case CF_JMP: return CLASS_JUMP;
	case CF_CALL: return CLASS_CALL;
	case CF_CALL_IND: return CLASS_CALL_IND;
	case CF_JMP_IND: return CLASS_JUMP_IND;
	case CF_RET: return CLASS_RET;
	default: return d->attr & INSN_BRANCH ? CLASS_BRANCH : CLASS_PLAIN;
	}
}

bool is_virtual_xstate(const struct insn *d)
{
	if (!cache.ops.arch.xcr0 || !cache.ops.arch.xcr0())
		return false;
	if (d->special == SP_XGETBV)
		return true;
	/* xsave, xrstor, xsaveopt; not fxsave, nor xsavec, which such a CPU has not. */
	return d->special == SP_XSAVE && d->opcode == 0xae && d->modrm & 0x20;
}

/* Instructions that leave the cache, for the runtime or for arch_emulate(). */
static bool stops(const struct insn *d)
{
	switch (d->special) {
	case SP_XGETBV:
	case SP_XSAVE: return is_virtual_xstate(d);
	case SP_CPUID:
	case SP_REQUEST:
	case SP_RDPMC: return true;
	case SP_RDTSC:
	case SP_RDTSCP: return cache.flags & DBT_VIRTUAL_TIME;
	case SP_RDRAND:
	case SP_RDSEED: return cache.flags & DBT_VIRTUAL_RANDOM;
	case SP_MOV_TO_SEG: return (insn_reg_field(d) & 7) == 5;
	case SP_WRGSBASE: return d->opsize == 8; /* that faults if it is not canonical */
	case SP_POP_SEG: return d->opcode == 0xa9;
	case SP_LOAD_FAR: return d->opcode == 0xb5;
	case SP_STRING:
	case SP_GATHER:
	case SP_TILE: return d->mem.seg == SEG_GS && !rewrite_can_gs(d);
	default: return false;
	}
}

bool is_emulated_branch(const struct insn *d)
{
	switch (d->cf) {
	case CF_FAR_JMP:
	case CF_FAR_CALL:
	case CF_FAR_RET:
	case CF_IRET: return true;
	case CF_CALL:
	case CF_RET:
	case CF_JMP_IND:
	case CF_CALL_IND: return d->attr & INSN_NEAR16;
	default: return false;
	}
}

bool stores_x87_pc(const struct insn *d)
{
	return (d->special == SP_XSAVE || d->special == SP_X87_ENV) && d->mem_write;
}

/* rol rdi by 3, 13, 61 and 51, then xchg rbx, rbx: no compiler makes that. */
static bool is_request(u64 pc, const u8 *bytes)
{
	static const u8 preamble[] = {0x48, 0xc1, 0xc7, 3,  0x48, 0xc1, 0xc7, 13,
				      0x48, 0xc1, 0xc7, 61, 0x48, 0xc1, 0xc7, 51};
	u8 before[sizeof(preamble)];

	return bytes[0] == 0x48 && bytes[1] == 0x87 && bytes[2] == 0xdb &&
	       dbt_fetch(before, pc - sizeof(before), sizeof(before)) == sizeof(before) &&
	       !memcmp(before, preamble, sizeof(before));
}

static enum plan_role role_of(const struct insn *d)
{
	if (is_emulated_branch(d))
		return ROLE_END;
	switch (d->cf) {
	case CF_NONE:
		/*
		 * popf may set the trap flag: the CPU traps after the next native instruction then,
		 * which has to be one of the guest's.
		 */
		if (d->special == SP_POPF || (stores_x87_pc(d) && !is_virtual_xstate(d)))
			return ROLE_TRAP;
		/* After serialize (0f 01 e8) code is fetched anew. */
		if (d->enc == ENC_LEGACY && d->map == MAP_0F && d->opcode == 0x01 &&
		    d->modrm == 0xe8)
			return ROLE_TRAP;
		return stops(d) ? ROLE_END : ROLE_COPY;
	case CF_JCC:
	case CF_LOOP: return ROLE_SIDE;
	case CF_CALL:
	case CF_CALL_IND: return ROLE_CALL;
	case CF_INT: return d->imm == INT80_VECTOR ? ROLE_END : ROLE_TRAP;
	case CF_HLT:
	case CF_UD:
	case CF_SYSRET:
	case CF_XABORT:
	case CF_UIRET: return ROLE_TRAP;
	/*
	 * #UD where there have never been transactions. Elsewhere CPUID does not say it: where they
	 * are switched off they may be hidden, and abort all the same.
	 */
	case CF_XBEGIN: return cpu_is_amd() ? ROLE_TRAP : ROLE_END;
	default: return ROLE_END;
	}
}

/* How many stubs had not been bound when they were translated, by address; and at most. */
static u8 unbound[4096];
#define UNBOUND_MOST 4

/* endbr64 or not, push of a constant, jmp: what binds a stub of a PLT that is called first. */
static bool is_binder(u64 pc)
{
	u8 code[12];
	u32 at = 0;

	exec_touch(pc);
	if (dbt_fetch(code, pc, sizeof(code)) != sizeof(code))
		return false;
	if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa)
		at = 4;
	if (code[at] != 0x68)
		return false;
	at += 5;
	return code[at] == 0xe9 || (code[at] == 0xf2 && code[at + 1] == 0xe9);
}

/*
 * A jump through a word at a constant address: a stub of a PLT, mostly, whose word keeps its value
 * once it is bound. Returns where it goes now, or 0 if that is not to be relied on. A stub that is
 * about to be bound is translated again when it is executed next; but not for ever, since there
 * are loaders that never bind.
 */
static u64 guess_target(struct plan *plan, const struct insn *d, u64 pc)
{
	u8 *times = &unbound[pc / 16 % ARRAY_SIZE(unbound)];
	u64 target;

	if (!(d->attr & INSN_RIPREL) || d->mem.seg != SEG_NONE || is_emulated_branch(d) ||
	    plan->checked || plan->exact || cache.form_mask & MASK_INSIDE_PATHS)
		return 0;
	if (dbt_fetch(&target, insn_rip_address(d, pc), sizeof(target)) != sizeof(target) ||
	    !exec_find(target))
		return 0;
	if (!is_binder(target))
		return target;
	if (*times < UNBOUND_MOST) {
		++*times;
		plan->once = true;
	}
	return 0;
}

static void frag_begin(struct plan *plan, u64 pc, u32 flags)
{
	plan->frags[plan->nr_frags++] =
		(struct block_frag){.pc = pc, .first = (u16)plan->nr_insns, .flags = flags};
}

/* Whether the superblock may go on at @pc, which is not the next address. */
static bool may_follow(struct plan *plan, u64 pc)
{
	if (plan->checked || plan->exact || plan->nr_frags >= BLOCK_FRAGS_MAX || place_at(pc) ||
	    block_find(pc, plan->form & BLOCK_PLAIN))
		return false;
	for (u32 i = 0; i < plan->nr_frags; i++)
		if (pc >= plan->frags[i].pc && pc < plan->frags[i].pc + plan->frags[i].len)
			return false;
	return plan_use_page(plan, pc, true) == USE_YES;
}

/*
 * A block whose bytes are compared, and that may write to its own pages, ends after a store, which
 * may have changed what follows. Of a store through another address (a second mapping) the CPU does
 * not promise that the instructions right after it are the new ones.
 */
static bool stores(const struct insn *d)
{
	return d->mem_write || d->stack_write;
}

static u32 max_insns(const struct plan *plan)
{
	if (plan->passes)
		return 1;
	if (plan->exact)
		return EXACT_MAX;
	return cache_has_deadlines() ? DEADLINE_INSNS_MAX : BLOCK_INSNS_MAX;
}

static u32 branches_max(void)
{
	if (likely(!(cache.flags & DBT_LONG_PATHS)) || cache.form_mask & DBT_MASK_MEMORY)
		return BRANCHES_MAX;
	return LONG_MAX;
}

static int plan_collect(struct plan *plan, u64 pc, u64 *fault)
{
	u32 branches = 0, past = branches_max(), most = max_insns(plan), bad;

	frag_begin(plan, pc, 0);
	for (;;) {
		struct plan_insn *i = &plan->insns[plan->nr_insns];
		struct block_frag *frag = &plan->frags[plan->nr_frags - 1];
		int len;

		plan->next_pc = pc;
		if (plan->nr_insns == most)
			return 0;
		/* Another block, or this one, tells of it. */
		if (place_at(pc) && !plan->passes) {
			plan->at_place = !plan->nr_insns;
			return 0;
		}
		len = plan_decode_near(plan, pc, &i->d, i->bytes);
		if (!len) {
			plan_use_page(plan, pc, true);
			if (!plan_has_page(plan, pc >> PAGE_SHIFT))
				return 0;
			len = plan_decode(plan, pc, &i->d, i->bytes, true, fault);
		}
		if (len == -ENODATA)
			return plan->nr_insns || frag->flags ? 0 : -EFAULT;
		if (len < 0) {
			plan->undecodable = true;
			copy_insn(plan->bad, fetch(pc, &bad));
			plan->bad_len = (u8)bad;
			return 0;
		}
		/* Likewise. */
		if (unlikely(cache.form_mask & DBT_MASK_MEMORY) && tells_elements(&i->d) &&
		    !plan->passes) {
			plan->at_place = !plan->nr_insns;
			return 0;
		}
		if (unlikely(cache.flags & DBT_REQUESTS) && is_request(pc, i->bytes))
			i->d.special = SP_REQUEST;
		i->pc = pc;
		plan->nr_insns++;
		frag->len += (u16)len;
		pc += (u64)len;
		if (i->d.attr & INSN_BRIEF && i->d.cf == CF_NONE && i->d.special == SP_NONE) {
			i->class = CLASS_PLAIN;
			i->role = ROLE_COPY;
			continue;
		}
		plan->next_pc = pc;
		i->class = classify(&i->d);
		i->role = role_of(&i->d);
		i->taken_live = FL_ARITH;
		if (i->d.cf == CF_JMP) {
			u64 target = insn_target(&i->d, i->pc);

			if (branches++ < past && may_follow(plan, target)) {
				i->role = ROLE_ELIDE;
				pc = target;
				frag_begin(plan, pc, 0);
				continue;
			}
		}
		if (i->d.cf == CF_JMP_IND) {
			u64 target = guess_target(plan, &i->d, i->pc);

			if (target) {
				i->role = ROLE_GUESS;
				plan->next_pc = target;
				return 0;
			}
		}
		if (i->role == ROLE_END)
			return 0;
		if ((plan->checked && plan->rewrites && stores(&i->d)) ||
		    ((plan->checked || plan->exact) && i->role == ROLE_CALL)) {
			if (i->role == ROLE_CALL)
				frag_begin(plan, pc, FRAG_RESTART);
			return 0;
		}
		if (i->role == ROLE_CALL) {
			frag_begin(plan, pc, FRAG_RESTART);
			i->known = entry_find(TABLE_RET, pc, plan->form);
			if (branches++ >= past || plan->nr_frags >= BLOCK_FRAGS_MAX || i->known ||
			    block_find(pc, plan->form & BLOCK_PLAIN))
				return 0;
		} else if (i->role == ROLE_SIDE) {
			if (branches++ >= past || plan->exact ||
			    block_find(pc, plan->form & BLOCK_PLAIN))
				return 0;
		} else if (i->role == ROLE_TRAP) {
			return 0;
		}
	}
}

/*
 * Where flags are dead, how many exits there are, and where paths are counted that leave on the
 * main line: at the last place
 * before their exit at which flags are dead. After it fewer faults need a correction. The signal of
 * a trap comes before what follows, so such a path is counted after the trap.
 */
static void plan_liveness(struct plan *plan)
{
	struct plan_insn *last = &plan->insns[plan->nr_insns - 1];
	u32 end = plan->nr_insns; /* where the path leaves */
	bool uncounted;
	u16 live;

	plan->next_live = FL_ARITH;
	if (plan->nr_insns == 0)
		return;
	if (last->role != ROLE_END && !plan->undecodable)
		plan->next_live = live_at(plan, plan->next_pc);
	live = plan->next_live;
	uncounted = live;
	for (u32 n = plan->nr_insns; n-- > 0;) {
		struct plan_insn *i = &plan->insns[n];
		const struct insn *d = &i->d;

		switch (i->role) {
		case ROLE_COPY:
			live = (live & (u16)~flags_set(d)) | (d->fl_read & FL_ARITH);
			if (d->special == SP_PUSHF)
				live = FL_ARITH;
			break;
		case ROLE_ELIDE: break;
		case ROLE_SIDE:
			i->taken_live = live_at(plan, insn_target(d, i->pc));
			live |= i->taken_live | (d->fl_read & FL_ARITH);
			uncounted = false;
			plan->nr_exits++;
			break;
		case ROLE_CALL:
			end = n;
			uncounted = true;
			plan->nr_exits++;
			live = d->cf == CF_CALL ? live_at(plan, insn_target(d, i->pc)) : FL_ARITH;
			break;
		case ROLE_END:
			end = n;
			uncounted = true;
			live = FL_ARITH;
			if (d->cf == CF_JMP || d->cf == CF_XBEGIN)
				live = live_at(plan, insn_target(d, i->pc));
			i->taken_live = live;
			break;
		default: uncounted = false; live = FL_ARITH;
		}
		i->live = live;
		i->counts = PLAN_COUNTS_NONE;
		if (uncounted && !live) {
			i->counts = (u8)end;
			uncounted = false;
		}
	}
}

static bool writable(u64 pc)
{
	const struct exec_range *r = exec_find(pc);

	return r && r->flags & DBT_EXEC_WRITABLE;
}

int plan_build(struct plan *plan, u64 pc, u32 form, u64 *fault)
{
	int err;

	plan->nr_insns = plan->nr_frags = plan->nr_pages = plan->nr_exits = 0;
	plan->undecodable = false;
	plan->checked = false;
	plan->form = form;
	plan->exact = form & (BLOCK_EXACT | BLOCK_PASSES);
	plan->passes = form & BLOCK_PASSES;
	plan->at_place = plan->once = false;
	fetched.len = 0;
	*fault = pc;
	plan->checked = page_use(pc, true) == USE_CHECKED;
	plan->rewrites = writable(pc);
	if (plan_use_page(plan, pc, true) == USE_NO)
		return -EFAULT;
	err = plan_collect(plan, pc, fault);
	if (err)
		return err;
	/* One at its end, and one for when its bytes are no longer current. */
	plan->nr_exits = 1 + plan->checked;
	plan_liveness(plan);
	if (plan->nr_insns == 0 || plan->insns[plan->nr_insns - 1].role != ROLE_END) {
		frag_begin(plan, plan->next_pc, 0);
		if (plan->nr_frags > 1 && plan->frags[plan->nr_frags - 2].first == plan->nr_insns) {
			/* The call was last: the last fragment is already what it returns to. */
			plan->nr_frags--;
		}
	}
	return 0;
}
