#include "data/profile-reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/path-reader-priv.h"

#define COUNT_MAX (1ull << 57) /* more than one thread counts in a year */
#define MOST      (1u << 23)   /* different places of a thread, all of its paths spread */

static int by_place(const void *a, const void *b)
{
	const struct profile_count *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Sorts, so that each place is there once. */
static void merge(struct profile_counts *c)
{
	u64 n = 0;

	if (c->nr)
		qsort(c->at, c->nr, sizeof(*c->at), by_place);
	for (u64 i = 0; i < c->nr; i++) {
		if (n && !by_place(&c->at[n - 1], &c->at[i]))
			c->at[n - 1].count += c->at[i].count;
		else
			c->at[n++] = c->at[i];
	}
	c->nr = n;
}

/* Paths have many instructions in common: before there is more memory they are merged. */
static int make_room(struct profile_counts *c)
{
	u64 room = c->room ? c->room * 2 : 256;
	struct profile_count *more;

	if (c->nr < c->room)
		return 0;
	if (c->full)
		return -EBADMSG;
	merge(c);
	if (c->nr && c->nr < c->room / 2)
		return 0;
	if (c->room >= MOST) {
		c->full = c->nr > c->room - c->room / 8;
		return c->nr < c->room ? 0 : -EBADMSG;
	}
	more = realloc(c->at, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->at = more;
	c->room = room;
	return 0;
}

static int add(struct profile_counts *c, const struct profile_count *n)
{
	int err = make_room(c);

	if (!err)
		c->at[c->nr++] = *n;
	return err;
}

/* Whether what a place says of a path is so; @b is its block. */
static bool see_path(const struct path_source *source, u32 index, u64 at, struct seen_block *b)
{
	u32 from = at >> 8 & 0xff, upto = at & 0xff;
	struct seen_block walked;
	struct seen_insn i;

	if (!path_block_see(source, index, at >> 16 & (PATH_LOG / 8 - 1), b) || from >= upto ||
	    upto > b->nr_insns)
		return false;
	walked = *b;
	while (walked.next < upto)
		if (!path_block_next(&walked, &i))
			return false;
	return true;
}

/* What a path cost, to its instructions. -EBADMSG: there is no such path, or no room. */
static int spread(struct profile_counts *c, const struct path_source *source, u32 index,
		  const struct modeled_place *p)
{
	struct profile_count n = {.addr = p->addr, .event = p->event};
	u32 from = p->at >> 8 & 0xff, upto = p->at & 0xff;
	struct seen_block b;
	struct seen_insn i;
	u64 insns = upto - from, left = p->count;
	int err = see_path(source, index, p->at, &b) ? 0 : -EBADMSG;

	while (!err && b.next < upto) {
		if (!path_block_next(&b, &i)) {
			err = -EBADMSG;
			break;
		}
		if (b.next <= from)
			continue;
		n.pc = i.pc;
		n.count = p->count / insns + (b.next - from <= p->count % insns);
		err = n.count ? add(c, &n) : 0;
		left -= err ? 0 : n.count;
	}
	if (err != -EBADMSG)
		return err;
	c->bad++;
	c->unplaced[p->event] += left;
	return 0;
}

static int add_place(struct profile_counts *c, const struct path_source *source, u32 index,
		     const struct modeled_place *p)
{
	int err;

	if (p->at & PATH_PART)
		return spread(c, source, index, p);
	err = add(c, &(struct profile_count){p->at, p->addr, p->count, p->event});
	if (err != -EBADMSG)
		return err;
	c->bad++;
	c->unplaced[p->event] += p->count;
	return 0;
}

int profile_counts_read(struct profile_counts *out, const struct modeled_profile *p, u32 nr,
			path_space_fn *space, void *data)
{
	const struct path_source source = {space, data};
	u32 used = __atomic_load_n(&p->used, __ATOMIC_ACQUIRE), index = p->space;
	int err = 0;

	*out = (struct profile_counts){0};
	for (u32 i = 0; i < nr && i < PROFILED_EVENTS; i++) {
		u64 unplaced = p->unplaced[i];

		if (unplaced <= COUNT_MAX)
			out->unplaced[i] = unplaced;
		else
			out->bad++;
	}
	for (u32 i = 0; i < used && i < MODELED_PLACES && !err; i++) {
		struct modeled_place place = p->place[i];

		if (place.event >= nr || place.event >= PROFILED_EVENTS || place.count > COUNT_MAX)
			out->bad++;
		else if (place.count)
			err = add_place(out, &source, index, &place);
	}
	if (err) {
		profile_counts_release(out);
		return err;
	}
	merge(out);
	for (u64 i = 0; i < out->nr; i++)
		out->total[out->at[i].event] += out->at[i].count;
	for (u32 i = 0; i < PROFILED_EVENTS; i++)
		out->total[i] += out->unplaced[i];
	return 0;
}

void profile_counts_release(struct profile_counts *c)
{
	free(c->at);
	*c = (struct profile_counts){0};
}
