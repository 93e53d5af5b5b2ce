#include "calls/fetch-cache.h"

#include <stdlib.h>

#include "base/check.h"

void fetch_cache_init(struct fetch_cache *c, u32 sets, u32 ways, u32 line)
{
	CHECK(sets && ways && line && !(line & (line - 1)));
	*c = (struct fetch_cache){
		.sets = sets, .ways = ways, .shift = (u32)__builtin_ctz(line), .nr = 1};
	/* No line is at 0. */
	c->used = calloc((u64)sets * ways + 1, sizeof(*c->used));
	c->holds = calloc((u64)sets * ways + 1, sizeof(*c->holds));
	CHECK(c->used && c->holds);
}

void fetch_cache_release(struct fetch_cache *c)
{
	free(c->place);
	free(c->used);
	free(c->holds);
	free(c->line);
	free(c->next);
}

static void grow(struct fetch_cache *c)
{
	c->room = c->room ? c->room * 2 : 1024;
	c->place = reallocarray(c->place, c->room, sizeof(*c->place));
	c->line = reallocarray(c->line, c->room, sizeof(*c->line));
	c->next = reallocarray(c->next, c->room, sizeof(*c->next));
	CHECK(c->place && c->line && c->next);
}

u32 fetch_cache_number(struct fetch_cache *c, u64 line)
{
	u64 hash = (line >> c->shift) * 0x9e3779b97f4a7c15ull;
	u32 *bucket = &c->bucket[hash >> 52], i;

	_Static_assert(ARRAY_SIZE(c->bucket) == 1u << (64 - 52), "what the hash has left");
	for (i = *bucket; i; i = c->next[i])
		if (c->line[i] == line)
			return i;
	if (c->nr >= c->room)
		grow(c);
	i = c->nr++;
	c->place[i] = 0;
	c->line[i] = line;
	c->next[i] = *bucket;
	*bucket = i;
	return i;
}

void fetch_cache_bring(struct fetch_cache *c, u32 number)
{
	u32 first = (u32)((c->line[number] >> c->shift) % c->sets) * c->ways + 1, at = first;

	for (u32 i = first + 1; i < first + c->ways; i++)
		if (c->used[i] < c->used[at])
			at = i;
	if (c->holds[at])
		c->place[c->holds[at]] = 0;
	c->holds[at] = number;
	c->place[number] = at;
	c->used[at] = ++c->now;
}
