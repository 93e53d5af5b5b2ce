#include "dbt/fork-hints.h"

#include "dbt/arch-priv.h"

#define HINTS (DBT_HINTS_SIZE / sizeof(u64) - 1)

/* Of a process in all. Whoever has children that do ever new things gains nothing by them. */
#define HINTS_MOST 8192u

struct fork_hints {
	u32 nr; /* atomic; may be more than there is room for */
	u32 reserved;
	u64 pc[HINTS]; /* | HINT_PLAIN */
};

/* No program has code there. */
#define HINT_PLAIN BIT(63)

_Static_assert(sizeof(struct fork_hints) == DBT_HINTS_SIZE, "a page");

static struct fork_hints *of_children, *for_parent;
static u32 taken;

void dbt_fork_hints(void *children, void *parent)
{
	of_children = children;
	for_parent = parent;
}

void fork_hint(u64 pc, u32 form)
{
	u32 n;

	if (likely(!for_parent) || form & ~BLOCK_PLAIN)
		return;
	n = __atomic_load_n(&for_parent->nr, __ATOMIC_RELAXED);
	if (n >= HINTS)
		return;
	n = __atomic_fetch_add(&for_parent->nr, 1, __ATOMIC_RELAXED);
	if (n < HINTS)
		for_parent->pc[n] = pc | (form ? HINT_PLAIN : 0);
}

void fork_hints_take(void)
{
	const struct exec_range *r;
	u32 n;

	if (!of_children || !__atomic_load_n(&of_children->nr, __ATOMIC_RELAXED))
		return;
	n = (u32)min_u64(__atomic_load_n(&of_children->nr, __ATOMIC_RELAXED), HINTS);
	for (u32 i = 0; i < n && taken < HINTS_MOST && code_thaw() && cache_has_room(); i++) {
		u64 hint = of_children->pc[i], pc = hint & ~HINT_PLAIN, fault;
		u32 form = hint & HINT_PLAIN && cache.mask & DBT_MASK_WINDOWS ? BLOCK_PLAIN : 0;

		r = exec_find(pc);
		if (!r || r->flags & DBT_EXEC_WRITABLE || block_find(pc, form))
			continue;
		taken++;
		(void)arch_translate(pc, EXIT_JUMP, form, NULL, &fault);
	}
	__atomic_store_n(&of_children->nr, 0, __ATOMIC_RELAXED);
}
