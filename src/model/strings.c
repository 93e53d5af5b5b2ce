/*
 * String instructions that repeat. What an element does that lies in the lines of the two before it
 * is known when those have hit: it does the same once more, which changes nothing. So of a line of
 * 64 bytes two elements are looked up and not 64.
 */
#include "model/hierarchy-priv.h"

/* How many elements from this one on begin and end in its line; 0: it ends in another one. */
static u64 in_line(const struct model_core *core, const struct model_string *s, bool down)
{
	u64 size = s->size, within = s->at & ~core->line_mask, line = ~core->line_mask + 1;

	if (within + size > line)
		return 0;
	return down ? within / size + 1 : (line - within) / size;
}

/* The next element of each string. Whether all have been there. */
static bool one(struct model_core *core, u64 ip, struct model_string *s, u32 nr, bool down)
{
	bool there = true;

	for (u32 i = 0; i < nr; i++) {
		struct model_access a = s[i].stores ? model_store(core, ip, s[i].at, s[i].size)
						    : model_load(core, ip, s[i].at, s[i].size);

		there &= !a.misses && !a.tlb && !a.snoop && a.latency <= core->l1_latency;
		s[i].at += down ? -(u64)s[i].size : s[i].size;
	}
	return there;
}

void model_strings(struct model_core *core, u64 ip, struct model_string *s, u32 nr, u64 n,
		   bool down)
{
	u64 stores = 0;

	for (u32 i = 0; i < nr; i++)
		stores += s[i].stores;
	while (n) {
		u64 same = n, told = 0;
		bool there = false;

		for (u32 i = 0; i < nr; i++)
			same = min_u64(same, in_line(core, &s[i], down));
		do {
			there = one(core, ip, s, nr, down);
			told++;
		} while (told < same && (told < 2 || !there));
		if (told < same) {
			u64 more = same - told;

			model_hits(core, more * (nr - stores), more * stores);
			for (u32 i = 0; i < nr; i++)
				s[i].at += (down ? -more : more) * s[i].size;
			told = same;
		}
		n -= told;
	}
}
