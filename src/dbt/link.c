/*
 * Linking: an exit that has been taken once jumps straight to its target's code from then on, or to
 * code that counts and then goes there.
 */
#include "dbt/arch-priv.h"

/*
 * While others execute the exit too it is linked only when it has been taken so often: until then
 * to leave the cache is cheaper than a copy of the code. The first copy takes a file and mappings
 * besides, and waits until all such exits together have been taken often.
 */
#define LINK_SHARED 16
#define THAW_SHARED 256

static bool is_worth_it(const struct dbt_exit *x)
{
	u64 times = sought_again(cache.taken_exits, x);

	if (cache.frozen && ++cache.left < THAW_SHARED)
		return false;
	return times >= LINK_SHARED;
}

/*
 * The exit of a block that has died is linked as well. That does no harm, and a thread inside may
 * be in a loop that only this exit leaves.
 */
void exit_link(struct dbt_exit *x, struct dbt_block *to)
{
	u32 code;

	if (x->to || to->flags & BLOCK_DEAD)
		return;
	if (unlikely(code_is_shared(x->patch)) && !is_worth_it(x))
		return;
	if (arch_exit_code(x, to, &code))
		exit_link_by(x, to, code);
}

void exit_link_by(struct dbt_exit *x, struct dbt_block *to, u32 code)
{
	meta_own(&x->to);
	meta_own(&x->next);
	meta_own(&to->in);
	x->to = meta_ref_of(to);
	x->next = to->in;
	to->in = meta_ref_of(x);
	arch_patch(x->patch, code);
	cache.stats.links++;
}
