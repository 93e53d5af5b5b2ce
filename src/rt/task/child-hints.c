#include "rt/task/child-hints.h"

#include "dbt/dbt.h"
#include "rt/mm/region.h"

static void *children, *parent;

void child_hints_offer(void)
{
	void *page, *other = NULL;

	if (__atomic_load_n(&children, __ATOMIC_RELAXED))
		return;
	page = region_map_shared(DBT_HINTS_SIZE);
	if (!page)
		return;
	/* Two threads may fork at once. */
	if (!__atomic_compare_exchange_n(&children, &other, page, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED)) {
		region_unmap_file(page, DBT_HINTS_SIZE);
		return;
	}
	dbt_fork_hints(page, parent);
}

void child_hints_forked(void)
{
	if (parent)
		region_unmap_file(parent, DBT_HINTS_SIZE);
	parent = children;
	children = NULL;
	/* To write there for the first time is to be no page fault of the program's. */
	region_populate_shared(parent, DBT_HINTS_SIZE);
	dbt_fork_hints(NULL, parent);
}
