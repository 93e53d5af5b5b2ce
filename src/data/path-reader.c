#include "data/path-reader-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More than one thread executes in a year. */
#define COUNT_MAX (1ull << 57)

/* Counts by a key, in a hash table. */
struct table_slot {
	u64 key, to; /* key 0: free */
	s64 count;
	u8 len, kind;
};

struct path_table {
	struct table_slot *slot;
	u64 room, n;
};

struct path_reading {
	struct path_source source;
	path_when_fn *when;
	struct path_table insns, calls; /* insns: by pc and time */
	struct path_counts *out;
};

static u64 hash_of(u64 key, u64 to)
{
	u64 h = (key ^ to * 31) * 0x9e3779b97f4a7c15ull;

	return h ^ h >> 32;
}

static struct table_slot *find(const struct path_table *t, u64 key, u64 to)
{
	u64 i = hash_of(key, to);

	for (;; i++) {
		struct table_slot *s = &t->slot[i & (t->room - 1)];

		if (!s->key || (s->key == key && s->to == to))
			return s;
	}
}

static int grow(struct path_table *t)
{
	struct path_table more = {.room = t->room ? t->room * 2 : 1024, .n = t->n};

	more.slot = calloc(more.room, sizeof(*more.slot));
	if (!more.slot)
		return -ENOMEM;
	for (u64 i = 0; i < t->room; i++)
		if (t->slot[i].key)
			*find(&more, t->slot[i].key, t->slot[i].to) = t->slot[i];
	free(t->slot);
	*t = more;
	return 0;
}

/* The slot of @key, made if need be; NULL without memory. No instruction is at 0. */
static struct table_slot *slot_of(struct path_table *t, u64 key, u64 to)
{
	struct table_slot *s;

	if (t->n * 2 >= t->room && grow(t))
		return NULL;
	s = find(t, key, to);
	if (!s->key) {
		s->key = key;
		s->to = to;
		t->n++;
	}
	return s;
}

/* Nonsense must not overflow. */
static void add(s64 *sum, s64 n)
{
	*sum = (s64)((u64)*sum + (u64)n);
}

static int add_insn(struct path_reading *r, u64 pc, u64 time, u8 insn, u64 target, s64 count)
{
	struct table_slot *s;

	if (!pc)
		return 0;
	s = slot_of(&r->insns, pc, time);
	if (!s)
		return -ENOMEM;
	add(&s->count, count);
	s->len = insn & 15;
	s->kind = insn >> 4;
	if (s->kind != PATH_CALL)
		return 0;
	s = slot_of(&r->calls, pc, target);
	if (!s)
		return -ENOMEM;
	add(&s->count, count);
	return 0;
}

/* Adds @count executions of instructions [from, upto) of block @at; -EBADMSG: there are none. */
static int add_part(struct path_reading *r, u32 index, u32 at, u32 from, u32 upto, s64 count)
{
	struct seen_block b;
	struct seen_insn i;
	u64 since, time = 0;

	if (!path_block_see(&r->source, index, at, &b) || from >= upto || upto > b.nr_insns)
		return -EBADMSG;
	since = r->when ? path_block_since(&r->source, index, at) : 0;
	while (b.next < upto) {
		if (!path_block_next(&b, &i))
			return -EBADMSG;
		if (b.next <= from)
			continue;
		if (r->when)
			time = r->when(i.pc, since, r->source.data);
		if (add_insn(r, i.pc, time, i.insn, i.target, count))
			return -ENOMEM;
	}
	return 0;
}

static int add_path(struct path_reading *r, u32 index, u32 number, u64 count)
{
	struct path_entry e;
	int err = -EBADMSG;

	if (count > COUNT_MAX) {
		r->out->bad++;
		return 0;
	}
	if (number < PATH_FIRST) {
		add(&r->out->unplaced, (s64)(count * number));
		return 0;
	}
	if (path_entry_see(&r->source, index, number, &e))
		err = add_part(r, index, e.block, e.from, e.upto, (s64)count);
	if (err == -EBADMSG) {
		r->out->bad++;
		return 0;
	}
	return err;
}

/* What is not of a whole path. */
static int add_extra(struct path_reading *r, u32 index, const struct path_extra *x)
{
	struct table_slot *s;
	int err;

	if (!x->key || !x->count)
		return 0;
	if (x->count > (s64)COUNT_MAX || x->count < -(s64)COUNT_MAX) {
		r->out->bad++;
		return 0;
	}
	if (!(x->key & PATH_PART)) {
		s = slot_of(&r->insns, x->key, 0);
		if (!s)
			return -ENOMEM;
		add(&s->count, x->count);
		return 0;
	}
	err = add_part(r, index, x->key >> 16 & (PATH_LOG / 8 - 1), x->key >> 8 & 0xff,
		       x->key & 0xff, x->count);
	if (err == -EBADMSG) {
		r->out->bad++;
		err = 0;
	}
	return err;
}

static int read_all(struct path_reading *r, const struct path_thread *t)
{
	u32 index = t->space, paths;
	const struct path_space *s = r->source.space(index, r->source.data);
	int err = 0;

	r->out->unplaced = t->unplaced;
	if (!s || s->magic != PATH_MAGIC || t->magic != PATH_MAGIC) {
		r->out->bad++;
		return 0;
	}
	paths = __atomic_load_n(&s->paths, __ATOMIC_ACQUIRE);
	for (u32 i = 0; i < paths && i < PATH_WORDS && !err; i++)
		if (t->word[i])
			err = add_path(r, index, i, t->word[i]);
	for (u32 i = 0; i < PATH_EXTRAS && !err; i++)
		err = add_extra(r, index, &t->extra[i]);
	return err;
}

static int by_pc(const void *a, const void *b)
{
	const struct path_count *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

static int by_from(const void *a, const void *b)
{
	const struct path_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* The tables as sorted arrays. */
static int list(struct path_reading *r)
{
	struct path_counts *c = r->out;

	c->insn = calloc(r->insns.n + 1, sizeof(*c->insn));
	c->call = calloc(r->calls.n + 1, sizeof(*c->call));
	if (!c->insn || !c->call)
		return -ENOMEM;
	for (u64 i = 0; i < r->insns.room; i++) {
		const struct table_slot *s = &r->insns.slot[i];

		if (!s->key || !s->count)
			continue;
		/* A thread that was killed in between had not taken everything back. */
		if (s->count < 0) {
			add(&c->unplaced, s->count);
			continue;
		}
		c->insn[c->nr_insns++] = (struct path_count){.pc = s->key,
							     .time = s->to,
							     .count = (u64)s->count,
							     .len = s->len,
							     .kind = s->kind};
		c->total += (u64)s->count;
	}
	c->total += (u64)c->unplaced;
	for (u64 i = 0; i < r->calls.room; i++) {
		const struct table_slot *s = &r->calls.slot[i];

		if (s->key && s->count > 0)
			c->call[c->nr_calls++] = (struct path_edge){s->key, s->to, (u64)s->count};
	}
	if (c->nr_insns)
		qsort(c->insn, c->nr_insns, sizeof(*c->insn), by_pc);
	if (c->nr_calls)
		qsort(c->call, c->nr_calls, sizeof(*c->call), by_from);
	return 0;
}

int path_counts_read(struct path_counts *out, const struct path_thread *t, path_space_fn *space,
		     path_when_fn *when, void *data)
{
	struct path_reading r = {.source = {space, data}, .when = when, .out = out};
	int err;

	*out = (struct path_counts){0};
	err = read_all(&r, t);
	if (!err)
		err = list(&r);
	free(r.insns.slot);
	free(r.calls.slot);
	if (err)
		path_counts_release(out);
	return err;
}

void path_counts_release(struct path_counts *c)
{
	free(c->insn);
	free(c->call);
	*c = (struct path_counts){0};
}
