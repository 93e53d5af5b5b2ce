#include "rt/task/model-pages.h"

#include "rt/mm/mm.h"
#include "sys/kernel.h"

/* What is worked out of paths is kept one behind the other; of short programs it is little. */
#define AHEAD     (32u << 10)
#define FILL_MIN  (64u << 10)
#define FILL_MOST (1u << 20)

static void fill(const void *at, u64 len)
{
	u64 from = ALIGN_DOWN((u64)at, PAGE_SIZE);

	/* Older kernels do not know it; then it is filled page by page. */
	sys_madvise((void *)from, (u64)at + len - from, MADV_POPULATE_WRITE);
}

void model_pages_begin(const struct model *model)
{
	fill(model, model_usual(model));
}

void model_pages_ahead(u64 *filled, const struct feed *f)
{
	u64 more = min_u64(max_u64(f->used / 2, FILL_MIN), FILL_MOST);

	if (f->used + AHEAD <= *filled)
		return;
	if (*filled + more <= sizeof(f->room))
		fill(f->room + *filled, more);
	*filled += more;
}
