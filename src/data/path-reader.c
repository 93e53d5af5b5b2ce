#include "data/path-reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More than one thread executes in a year. */
#define COUNT_MAX (1ull << 57)
#define INSNS_MAX 255u

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
	path_space_fn *space;
	void *data;
	struct path_table insns, calls;
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

/* The space that @number of @index is described in, going up to parents; NULL: none. */
static const struct path_space *space_of(const struct path_reading *r, u32 index, u32 number,
					 bool log)
{
	for (;;) {
		const struct path_space *s = r->space(index, r->data);
		u32 from, end, parent;

		if (!s || s->magic != PATH_MAGIC)
			return NULL;
		from = log ? s->from_log : s->from_path;
		end = __atomic_load_n(log ? &s->logged : &s->paths, __ATOMIC_ACQUIRE);
		if (number >= from)
			return number < end && end <= (log ? PATH_LOG : PATH_WORDS) ? s : NULL;
		parent = s->parent;
		/* A parent was there before. */
		if (!parent || parent - 1 >= index)
			return NULL;
		index = parent - 1;
	}
}

/* A block's description, checked. */
struct seen_block {
	const u8 *frags, *targets, *insns;
	u32 nr_frags, nr_insns, nr_targets;
};

static bool see_block(const struct path_reading *r, u32 index, u32 at, struct seen_block *b)
{
	const struct path_space *s;
	struct path_block head;
	u64 place = (u64)at * 8, end;

	if (!at || place > PATH_LOG - sizeof(head))
		return false;
	s = space_of(r, index, (u32)place, true);
	if (!s)
		return false;
	memcpy(&head, s->log + place, sizeof(head));
	if (!head.nr_frags || head.nr_frags > INSNS_MAX || !head.nr_insns ||
	    head.nr_insns > INSNS_MAX || head.nr_targets > INSNS_MAX)
		return false;
	end = place + sizeof(head) + head.nr_frags * sizeof(struct path_frag) +
	      head.nr_targets * sizeof(u64) + head.nr_insns;
	if (end > PATH_LOG)
		return false;
	b->nr_frags = head.nr_frags;
	b->nr_insns = head.nr_insns;
	b->nr_targets = head.nr_targets;
	b->frags = s->log + place + sizeof(head);
	b->targets = b->frags + head.nr_frags * sizeof(struct path_frag);
	b->insns = b->targets + head.nr_targets * sizeof(u64);
	return true;
}

static int add_insn(struct path_reading *r, u64 pc, u8 insn, u64 target, s64 count)
{
	struct table_slot *s;

	if (!pc)
		return 0;
	s = slot_of(&r->insns, pc, 0);
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
	u32 frag = 0, targets = 0;
	struct seen_block b;
	struct path_frag f;
	u64 pc;

	if (!see_block(r, index, at, &b) || from >= upto || upto > b.nr_insns)
		return -EBADMSG;
	memcpy(&f, b.frags, sizeof(f));
	pc = f.pc;
	for (u32 i = 0; i < upto; i++) {
		u8 insn = b.insns[i];
		u64 target = 0;

		/* Several may begin with the same instruction, all but the last being empty. */
		while (frag + 1 < b.nr_frags) {
			memcpy(&f, b.frags + (frag + 1) * sizeof(f), sizeof(f));
			if (f.first != i)
				break;
			pc = f.pc;
			frag++;
		}
		if (path_insn_is_direct(insn >> 4)) {
			if (targets == b.nr_targets)
				return -EBADMSG;
			memcpy(&target, b.targets + targets++ * sizeof(target), sizeof(target));
		}
		if (i >= from && add_insn(r, pc, insn, target, count))
			return -ENOMEM;
		pc += insn & 15;
	}
	return 0;
}

static int add_path(struct path_reading *r, u32 index, u32 number, u64 count)
{
	const struct path_space *s;
	struct path_entry e;
	int err;

	if (count > COUNT_MAX) {
		r->out->bad++;
		return 0;
	}
	if (number < PATH_FIRST) {
		add(&r->out->unplaced, (s64)(count * number));
		return 0;
	}
	s = space_of(r, index, number, false);
	err = -EBADMSG;
	if (s) {
		e = s->path[number];
		if (e.known)
			err = add_part(r, index, e.block, e.from, e.upto, (s64)count);
	}
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
	const struct path_space *s = r->space(index, r->data);
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

	return x->pc < y->pc ? -1 : x->pc > y->pc;
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
		c->insn[c->nr_insns++] = (struct path_count){
			.pc = s->key, .count = (u64)s->count, .len = s->len, .kind = s->kind};
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
		     void *data)
{
	struct path_reading r = {.space = space, .data = data, .out = out};
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
