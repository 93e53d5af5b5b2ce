/*
 * The guest state of a thread that stands still in another process and is not asked: what its
 * translator has in memory is read from outside. Blocks stay while a thread is inside the cache, as
 * for dbt_guest_pc(); its other threads may add to the tables meanwhile.
 */
#include "dbt/cache-priv.h"

#include "dbt/arch-priv.h"
#include "dbt/arch/x86_64/branch-priv.h"
#include "sys/string.h"

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

/* @b's lists are its own process's. */
static bool rewind(const struct foreign *f, const struct dbt_block *b, const struct dbt_thread *t,
		   struct dbt_regs *regs)
{
	struct spill_range spill_ranges[SPILL_RANGES_MAX];
	struct block_insn insns[BLOCK_INSNS_MAX];
	struct block_frag frags[BLOCK_FRAGS_MAX + 1];
	u32 off = (u32)(regs->rip - (u64)f->code);
	struct dbt_block here;

	if (b->nr_insns > ARRAY_SIZE(insns) || !b->nr_frags || b->nr_frags > ARRAY_SIZE(frags) ||
	    b->nr_spill_ranges > ARRAY_SIZE(spill_ranges) ||
	    !read(f, b->insns, insns, b->nr_insns * sizeof(*insns)) ||
	    !read(f, b->frags, frags, b->nr_frags * sizeof(*frags)) ||
	    !read(f, b->spill_ranges, spill_ranges, b->nr_spill_ranges * sizeof(*spill_ranges)))
		return false;
	here = *b;
	here.insns = insns;
	here.frags = frags;
	here.spill_ranges = spill_ranges;
	if (off >= b->code) {
		arch_rewind(t, &here, off - b->code, regs);
	} else {
		/* An entry, which has the target in registers of its own. */
		regs->rip = b->pc;
		regs->gpr[REG_TARGET] = t->spill[REG_TARGET];
		regs->gpr[REG_RCX] = t->spill[REG_RCX];
	}
	return true;
}

bool dbt_foreign_regs(const struct dbt_foreign *memory, u64 base, struct dbt_regs *regs, u64 *gs)
{
	struct foreign f = {.memory = memory};
	struct dbt_thread t;
	struct dbt_block b;

	if (!base || !read(&f, (const void *)base, &t, sizeof(t)) || (u64)t.self != base ||
	    !read_cache(&f))
		return false;
	*gs = t.arch.gs_base;
	if (regs->rip - (u64)f.code >= f.code_size) {
		*regs = t.regs;
		return true;
	}
	return find_block(&f, (u32)(regs->rip - (u64)f.code), &b) && rewind(&f, &b, &t, regs);
}
