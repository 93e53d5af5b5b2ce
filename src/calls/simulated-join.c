/* Code that is executed one after the other, as one. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "calls/simulation-priv.h"

static void add_sizes(struct simulated_code *sum, const struct simulated_code *c)
{
	sum->nr_places += c->nr_places;
	sum->nr_fetches += c->nr_fetches;
	sum->nr_conds += c->nr_conds;
	sum->nr_targets += c->indirect;
}

static bool has_strings(const struct simulated_code *c)
{
	for (u32 i = 0; i < c->nr_accesses; i++)
		if (c->access[i].string)
			return true;
	return false;
}

/* Behind it, what is looked at most first. */
static size_t lay_out(struct simulated_code *c)
{
	u8 *at = (u8 *)(c + 1);

	c->unique = (u32 *)at;
	at += ALIGN_UP(c->nr_fetches * sizeof(*c->unique), 8ul);
	c->part = (struct joined_part *)at;
	at += c->nr_parts * sizeof(*c->part);
	c->cond = (struct cond_branch *)at;
	at += c->nr_conds * sizeof(*c->cond);
	c->target = (struct known_target *)at;
	at += c->nr_targets * sizeof(*c->target);
	c->fetch = (struct line_fetch *)at;
	at += c->nr_fetches * sizeof(*c->fetch);
	c->place = (struct event_place *)at;
	at += c->nr_places * sizeof(*c->place);
	return (size_t)(at - (u8 *)c);
}

/* Adds part @number to @c, which has room for it. */
static void add_part(struct simulated_code *c, const struct simulated_part *p, u32 number)
{
	const struct simulated_code *from = p->code;
	u32 place = c->nr_places;

	c->part[number] = (struct joined_part){from->access, from->first_access, from->nr_accesses,
					       place, p->word};
	for (u32 i = 0; i < from->nr_places; i++) {
		c->place[c->nr_places] = from->place[i];
		c->place[c->nr_places].part = (u8)number;
		c->place[c->nr_places++].own = (u16)i;
	}
	for (u32 i = 0; i < from->nr_fetches; i++) {
		c->fetch[c->nr_fetches] = from->fetch[i];
		c->fetch[c->nr_fetches++].place += (u16)place;
	}
	for (u32 i = 0; i < from->nr_conds; i++) {
		c->cond[c->nr_conds] = from->cond[i];
		c->cond[c->nr_conds++].place += place;
	}
	if (from->indirect)
		c->target[c->nr_targets++] = (struct known_target){p->last, p->after,
								   c->nr_places - 1};
}

/* Lines that come again are used again, which only the last time of each is of interest for. */
static void find_unique(struct simulated_code *c)
{
	u32 n = 0;

	for (u32 i = c->nr_fetches; i-- > 0;) {
		u32 line = c->fetch[i].line, k = 0;

		while (k < n && c->unique[k] != line)
			k++;
		if (k == n)
			c->unique[n++] = line;
	}
	for (u32 i = 0; i < n / 2; i++) {
		u32 line = c->unique[i];

		c->unique[i] = c->unique[n - 1 - i];
		c->unique[n - 1 - i] = line;
	}
	c->nr_unique = n;
}

struct simulated_code *simulated_join(const struct simulated_part *part, u32 n,
				      struct calls_memory *m)
{
	struct simulated_code sum = {0}, *c;

	if (!n || n > SIMULATED_PARTS)
		return NULL;
	sum.nr_parts = n;
	sum.nr_words = part[n - 1].word + 1;
	for (u32 i = 0; i < n; i++) {
		add_sizes(&sum, part[i].code);
		if (has_strings(part[i].code))
			return NULL;
	}
	if (sum.nr_places > JOINED_PLACES || sum.nr_fetches > SIMULATED_INSNS)
		return NULL;
	c = calls_memory_take(m, simulated_size(&sum));
	*c = sum;
	(void)lay_out(c);
	c->nr_places = c->nr_fetches = c->nr_conds = 0;
	c->nr_targets = 0;
	for (u32 i = 0; i < n; i++)
		add_part(c, &part[i], i);
	/* Nobody knows yet where the last one goes. */
	c->indirect = part[n - 1].code->indirect;
	c->nr_targets -= c->indirect;
	find_unique(c);
	return c;
}

size_t simulated_size(const struct simulated_code *c)
{
	struct simulated_code copy = *c;

	return lay_out(&copy);
}

bool simulated_is_open(const struct simulated_code *c)
{
	return c->indirect;
}

const u64 *simulated_met(const struct simulated_code *c)
{
	return c->met;
}
