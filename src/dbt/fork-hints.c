#include "dbt/fork-hints.h"

#include "base/image-sum.h"
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

/*
 * The file of a mapping that nobody may write by it can be written all the same. Whoever executes
 * code himself has seen it as it was then; what is made for children is what they are to see. So
 * the pages that it was made of are compared before each fork.
 */
#define PAGES_MOST 255u

static struct {
	u64 page[PAGE_SIZE / sizeof(u64)]; /* a copy of the one that is looked at */
	struct {
		u64 number, sum;
	} seen[PAGES_MOST];
	u32 nr_seen;
	bool taking;
} hinted used_late;

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

/* Never 0, but where it cannot be read. */
static u64 sum_of(u64 number)
{
	u64 lane[4] = {1, 2, 3, 4};

	if (dbt_fetch(hinted.page, number << PAGE_SHIFT, PAGE_SIZE) != PAGE_SIZE)
		return 0;
	for (u32 i = 0; i < ARRAY_SIZE(hinted.page); i++)
		lane[i % 4] = image_sum_mix(lane[i % 4], hinted.page[i]);
	return image_sum_mix(image_sum_mix(lane[0], lane[1]), image_sum_mix(lane[2], lane[3])) | 1;
}

void fork_hint_pages(const u64 *numbers, u32 n)
{
	if (likely(!taken) || !hinted.taking)
		return;
	for (u32 i = 0; i < n; i++) {
		u32 k = 0;

		while (k < hinted.nr_seen && hinted.seen[k].number != numbers[i])
			k++;
		if (k == hinted.nr_seen) {
			hinted.seen[k].number = numbers[i];
			hinted.seen[k].sum = sum_of(numbers[i]);
			hinted.nr_seen++;
		}
	}
}

/* What was made of pages that have changed is no hint any more. */
static void look_at_pages(void)
{
	for (u32 i = 0; i < hinted.nr_seen;) {
		u64 number = hinted.seen[i].number;

		if (sum_of(number) == hinted.seen[i].sum) {
			i++;
			continue;
		}
		page_changed_below(number);
		hinted.seen[i] = hinted.seen[--hinted.nr_seen];
	}
}

void fork_hints_take(void)
{
	const struct exec_range *r;
	u32 n;

	if (taken)
		look_at_pages();
	if (!of_children || !__atomic_load_n(&of_children->nr, __ATOMIC_RELAXED))
		return;
	n = (u32)min_u64(__atomic_load_n(&of_children->nr, __ATOMIC_RELAXED), HINTS);
	if (!taken)
		populate_own(&hinted, sizeof(hinted));
	for (u32 i = 0; i < n && taken < HINTS_MOST && code_thaw() && cache_has_room() &&
			hinted.nr_seen + BLOCK_PAGES_MAX <= PAGES_MOST;
	     i++) {
		u64 hint = of_children->pc[i], pc = hint & ~HINT_PLAIN, fault;
		u32 form = hint & HINT_PLAIN && cache.mask & DBT_MASK_WINDOWS ? BLOCK_PLAIN : 0;

		r = exec_find(pc);
		if (!r || r->flags & DBT_EXEC_WRITABLE || block_find(pc, form))
			continue;
		taken++;
		hinted.taking = true;
		(void)arch_translate(pc, EXIT_JUMP, form, NULL, &fault);
		hinted.taking = false;
	}
	__atomic_store_n(&of_children->nr, 0, __ATOMIC_RELAXED);
}
