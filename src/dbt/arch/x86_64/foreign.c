/*
 * The guest state of a thread that stands still in another process and is not asked: what its
 * translator has in memory is read from outside. Blocks stay while a thread is inside the cache, as
 * for dbt_guest_pc(); its other threads may add to the tables meanwhile.
 */
#include "dbt/run-priv.h"

#include "dbt/arch-priv.h"
#include "dbt/arch/x86_64/branch-priv.h"
#include "sys/string.h"

#include <asm/processor-flags.h>

struct foreign {
	const struct dbt_foreign *memory;
	u8 *code, *meta;
	u32 code_size, nr_blocks;
	struct dbt_ops ops;
	meta_ref *by_code;
};

static bool read(const struct foreign *f, const void *addr, void *to, u64 len)
{
	return f->memory->read(f->memory->ctx, addr, to, len);
}

/*
 * Another program's functions, as another version's, would be elsewhere. The number of blocks comes
 * first; see struct dbt_cache.
 */
static bool read_cache(struct foreign *f)
{
	return read(f, &cache.ops, &f->ops, sizeof(f->ops)) &&
	       !memcmp(&f->ops, &cache.ops, sizeof(f->ops)) &&
	       read(f, &cache.code, &f->code, sizeof(f->code)) &&
	       read(f, &cache.code_size, &f->code_size, sizeof(f->code_size)) &&
	       read(f, &cache.meta, &f->meta, sizeof(f->meta)) &&
	       read(f, &cache.nr_blocks, &f->nr_blocks, sizeof(f->nr_blocks)) &&
	       read(f, &cache.by_code, &f->by_code, sizeof(f->by_code));
}

/* As block_by_code(). */
static bool find_block(const struct foreign *f, u32 off, struct dbt_block *b)
{
	u32 lo = 0, hi = f->nr_blocks;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		meta_ref ref;

		if (!read(f, f->by_code + mid, &ref, sizeof(ref)) ||
		    !read(f, f->meta + (u64)ref * 16, b, sizeof(*b)))
			return false;
		if (off < b->start)
			hi = mid;
		else if (off >= b->code_end)
			lo = mid + 1;
		else
			return true;
	}
	return false;
}

/* A block with what is needed of its lists, which are its own process's. */
struct foreign_block {
	struct dbt_block b;
	u8 lists[(BLOCK_FRAGS_MAX + 1) * sizeof(struct block_frag) +
		 (BLOCK_INSNS_MAX + 1) * sizeof(struct block_insn) +
		 SPILL_RANGES_MAX * sizeof(struct spill_range)] __attribute__((aligned(16)));
};

static bool read_block(const struct foreign *f, u32 off, struct foreign_block *to)
{
	struct dbt_block *b = &to->b;
	const u8 *theirs;

	if (!find_block(f, off, b) || b->nr_insns > BLOCK_INSNS_MAX || !b->nr_frags ||
	    b->nr_frags > BLOCK_FRAGS_MAX + 1 || b->nr_spill_ranges > SPILL_RANGES_MAX)
		return false;
	theirs = b->lists;
	b->lists = to->lists;
	return read(f, theirs, to->lists, (u64)block_counts(b) - (u64)to->lists);
}

/*
 * A thread at @off is in code that counts for an exit, in front of @front or, if that is NULL, at a
 * place of its own. The branch has been taken: it is where that goes. What such code still loads
 * from where it keeps registers is in them then.
 */
static bool rewind_exit(const struct foreign *f, const struct dbt_thread *t, u32 off,
			const struct dbt_block *front, struct dbt_regs *regs)
{
	struct dbt_regs at = *regs;
	u8 code[COUNT_BYTES_MAX + WHOLE_LINE + 5 + INSN_MAX];
	struct dbt_block b;
	u32 n = 0, stored = 0;

	if (off > f->code_size - sizeof(code) || !read(f, f->code + off, code, sizeof(code)))
		return false;
	while (n <= sizeof(code) - INSN_MAX) {
		const u8 *p = code + n;
		struct insn insn;
		u32 to, disp, reg;

		if (front && off + n == front->code)
			break;
		if (*p == 0xe9) {
			memcpy(&disp, p + 1, sizeof(disp));
			to = off + n + 5 + disp;
			if (!find_block(f, to, &b) || to != b.code)
				return false;
			front = &b;
			break;
		}
		if (insn_decode(&insn, p, INSN_MAX) <= 0)
			return false;
		/* A guess was wrong: the target is to be looked up. */
		if (insn.cf == CF_JMP_IND) {
			at.rip = at.gpr[REG_TARGET];
			at.gpr[REG_TARGET] = t->spill[REG_TARGET];
			at.gpr[REG_RCX] = t->spill[REG_RCX];
			*regs = at;
			return true;
		}
		n += insn.len;
		if (p[0] != PREFIX_GS || (p[2] != 0x89 && p[2] != 0x8b))
			continue;
		memcpy(&disp, p + 5, sizeof(disp));
		reg = (p[3] >> 3 & 7) | (p[1] & 4 ? 8 : 0);
		if (disp != GS_SPILL(reg) || stored & BIT(reg))
			continue;
		if (p[2] == 0x89)
			stored |= BIT(reg);
		else
			at.gpr[reg] = t->spill[reg];
	}
	if (n > sizeof(code) - INSN_MAX)
		return false;
	at.rip = front->pc;
	*regs = at;
	return true;
}

static bool rewind(const struct foreign *f, const struct dbt_thread *t, struct dbt_regs *regs)
{
	u32 off = (u32)(regs->rip - (u64)f->code);
	struct foreign_block block;

	if (!read_block(f, off, &block))
		return rewind_exit(f, t, off, NULL, regs);
	if (off < block.b.code && block.b.flags & BLOCK_FRONT)
		return rewind_exit(f, t, off, &block.b, regs);
	if (off >= block.b.code) {
		arch_rewind(t, &block.b, off - block.b.code, regs);
	} else {
		/* An entry, which has the target in registers of its own. */
		regs->rip = block.b.pc;
		regs->gpr[REG_TARGET] = t->spill[REG_TARGET];
		regs->gpr[REG_RCX] = t->spill[REG_RCX];
	}
	return true;
}

static bool read_thread(struct foreign *f, u64 base, struct dbt_thread *t)
{
	return base && read(f, (const void *)base, t, sizeof(*t)) && (u64)t->self == base &&
	       read_cache(f);
}

bool dbt_foreign_regs(const struct dbt_foreign *memory, u64 base, struct dbt_regs *regs, u64 *gs)
{
	struct foreign f = {.memory = memory};
	struct dbt_thread t;

	if (!read_thread(&f, base, &t))
		return false;
	*gs = t.arch.gs_base;
	if (regs->rip - (u64)f.code >= f.code_size) {
		*regs = t.regs;
		if (t.pass_pc && t.pass_pc == regs->rip)
			regs->rflags |= X86_EFLAGS_RF;
		return true;
	}
	return rewind(&f, &t, regs);
}

bool dbt_foreign_trace_full(const struct dbt_foreign *memory, u64 base, u64 addr)
{
	struct foreign f = {.memory = memory};
	struct dbt_thread t;

	if (!read_thread(&f, base, &t))
		return false;
	return (t.trace_start && addr == t.trace_start + PATH_TRACE_SIZE) ||
	       (t.slots_start && addr == t.slots_start + PATH_RECORDS_SIZE);
}

bool dbt_foreign_is_stepped(const struct dbt_foreign *memory, u64 base)
{
	struct foreign f = {.memory = memory};
	struct dbt_thread t;

	return read_thread(&f, base, &t) && t.stepping && !t.traced;
}

bool dbt_foreign_at_boundary(const struct dbt_foreign *memory, u64 base, u64 pc)
{
	struct foreign f = {.memory = memory};
	struct foreign_block block;
	struct dbt_thread t;
	u32 off;

	if (!read_thread(&f, base, &t) || pc - (u64)f.code >= f.code_size)
		return true;
	off = (u32)(pc - (u64)f.code);
	return read_block(&f, off, &block) && off >= block.b.code &&
	       arch_at_boundary(&block.b, off - block.b.code);
}
