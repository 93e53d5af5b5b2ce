#include "calls/lru-cache.h"

#include <stdlib.h>

#include "base/check.h"

void lru_cache_init(struct lru_cache *c, u32 sets, u32 ways, u32 line)
{
	CHECK(sets && ways && line && !(line & (line - 1)));
	*c = (struct lru_cache){.mask = sets - 1,
				.sets = sets,
				.others = ways - 1,
				.shift = (u32)__builtin_ctz(line),
				.divides = sets & (sets - 1)};
	/* Of a large one most is never touched. */
	c->last = calloc(sets, sizeof(u64));
	c->before = calloc((u64)sets * c->others + 1, sizeof(u64));
	CHECK(c->last && c->before);
}

void lru_cache_release(struct lru_cache *c)
{
	free(c->last);
	free(c->before);
}
