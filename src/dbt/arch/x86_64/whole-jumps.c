/*
 * Intel's CPUs from Skylake to Cascade Lake and Comet Lake, with the microcode for erratum SKX102,
 * do not keep a line of 32 bytes decoded if a jump, a call or a return crosses its end or lies
 * right in front of it, or a comparison that fuses with a branch. Where the CPU is one of those,
 * code has none of that on ways that are taken often: emit_whole() pads. Here it is verified.
 */
#include "dbt/arch/x86_64/branch-priv.h"

bool fuses(const struct insn *d)
{
	return d->enc == ENC_LEGACY && d->map == MAP_1 && d->cf == CF_NONE && d->fl_written;
}

static bool is_whole(u32 at, u32 len)
{
	return at % WHOLE_LINE + len < WHOLE_LINE;
}

/* Of a block that counts and does nothing else besides. */
void arch_check_jumps(const struct dbt_block *b)
{
	u32 at = b->start, before = 0; /* the length of what fuses with the next one, or 0 */

	if (!cache.whole_jumps || cache.mask & MASK_INSIDE_PATHS ||
	    b->flags & (BLOCK_CHECKED | BLOCK_FORMS))
		return;
	while (at < b->code_end) {
		struct insn d;
		int len = insn_decode(&d, (const u8 *)code_addr(at), INSN_MAX);

		/* What the guest has no instruction for was copied as ud2. */
		CHECK(len > 0);
		if (d.cf == CF_JCC && before)
			CHECK(is_whole(at - before, before + (u32)len));
		switch (d.cf) {
		case CF_JCC:
		case CF_LOOP:
		case CF_JMP:
		case CF_CALL:
		case CF_JMP_IND:
		case CF_RET: CHECK(is_whole(at, (u32)len)); break;
		default: break;
		}
		before = fuses(&d) ? (u32)len : 0;
		at += (u32)len;
	}
}
