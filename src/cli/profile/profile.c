#include "cli/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static u64 hash_text(u64 hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (u8)*text) * 1099511628211ull;
	return hash;
}

static u64 hash_of(const struct profile_row *row)
{
	u64 hash = hash_text(14695981039346656037ull, row->comm);

	hash = hash_text(hash * 31, row->object);
	hash = hash_text(hash * 31, row->symbol);
	hash = hash_text(hash * 31, row->file);
	hash = hash_text(hash * 31, row->data.object);
	hash = hash_text(hash * 31, row->data.name);
	hash ^= (row->addr + (row->data.addr << 1) + row->line) * 0x9e3779b97f4a7c15ull;
	hash ^= (u64)row->event << 40 ^ (u64)row->kernel << 39;
	hash ^= ((u64)row->tid << 32 ^ (u64)row->pid << 16 ^ row->cpu) * 0xff51afd7ed558ccdull;
	return hash ^ hash >> 29;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same(const struct profile_row *a, const struct profile_row *b)
{
	return a->event == b->event && a->addr == b->addr && a->kernel == b->kernel &&
	       a->pid == b->pid && a->tid == b->tid && a->cpu == b->cpu &&
	       same_text(a->symbol, b->symbol) && same_text(a->object, b->object) &&
	       same_text(a->comm, b->comm) && a->line == b->line && same_text(a->file, b->file) &&
	       a->data.addr == b->data.addr && same_text(a->data.object, b->data.object) &&
	       same_text(a->data.name, b->data.name);
}

static void put(struct profile *p, u32 number)
{
	u64 i = hash_of(&p->rows[number]);

	while (p->index[i & (p->index_room - 1)])
		i++;
	p->index[i & (p->index_room - 1)] = number + 1;
}

static void grow(struct profile *p)
{
	if (p->n == p->room) {
		p->room = p->room ? p->room * 2 : 256;
		p->rows = realloc(p->rows, p->room * sizeof(*p->rows));
		CHECK(p->rows);
	}
	if (p->n * 2 < p->index_room)
		return;
	free(p->index);
	p->index_room = p->index_room ? p->index_room * 2 : 512;
	p->index = calloc(p->index_room, sizeof(*p->index));
	CHECK(p->index);
	for (u32 i = 0; i < p->n; i++)
		put(p, i);
}

/* The row that is like @key, whose comm is borrowed. */
static struct profile_row *row_of(struct profile *p, const struct profile_row *key)
{
	grow(p);
	for (u64 i = hash_of(key);; i++) {
		u32 number = p->index[i & (p->index_room - 1)];

		if (!number)
			break;
		if (same(&p->rows[number - 1], key))
			return &p->rows[number - 1];
	}
	p->rows[p->n] = *key;
	if (key->comm) {
		p->rows[p->n].comm = strdup(key->comm);
		CHECK(p->rows[p->n].comm);
	}
	put(p, p->n);
	return &p->rows[p->n++];
}

/* The row of a sample at @addr, which is at *@at. */
static struct profile_row *row_of_place(struct profile *p, struct reading *r,
					const struct data_item *item, u64 addr,
					const struct sym_place *at)
{
	struct profile_row key = {.event = item->event < 0 || p->group ? 0 : item->event};
	char room[16];

	if (p->keys & PROFILE_PID)
		key.pid = item->record.id.pid;
	if (p->keys & PROFILE_TID)
		key.tid = item->record.id.tid;
	if (p->keys & PROFILE_CPU)
		key.cpu = item->record.id.cpu;
	if (p->keys & PROFILE_COMM)
		key.comm = (char *)reading_comm(r, item, room);
	if (p->keys & PROFILE_OBJECT)
		key.object = at->object;
	if (p->keys & PROFILE_SYMBOL) {
		key.symbol = at->symbol;
		/* Functions that are static or overloaded may share a name. */
		key.addr = at->symbol ? at->addr - at->offset : at->addr;
		key.kernel = at->kernel;
	}
	if (p->keys & PROFILE_LINE && !at->kernel)
		line_view_find(&p->lines, r, item->record.id.pid, addr, &key.file, &key.line);
	if (p->keys & PROFILE_DATA)
		data_view_find(&p->data_view, r, item, &key.data);
	return row_of(p, &key);
}

/*
 * Where @addr of a chain is: a call that returns there is in front of it. Without a symbol it has
 * the address that the chain has.
 */
static void find_in_chain(struct reading *r, const struct data_item *item, u64 addr,
			  const struct reading_walk *walk, struct sym_place *at)
{
	reading_find(r, item, addr - walk->returns, walk->kernel, at);
	if (!at->symbol)
		at->addr += walk->returns;
}

static struct profile_row *row_in_chain(struct profile *p, struct reading *r,
					const struct data_item *item, u64 addr,
					const struct reading_walk *walk)
{
	struct sym_place at;

	find_in_chain(r, item, addr, walk, &at);
	return row_of_place(p, r, item, addr - walk->returns, &at);
}

static void count_event(struct profile *p, u32 event, u64 period)
{
	while (event >= p->events) {
		p->period = realloc(p->period, (p->events + 1) * sizeof(u64));
		p->counts = realloc(p->counts, (p->events + 1) * sizeof(u64));
		CHECK(p->period && p->counts);
		p->period[p->events] = p->counts[p->events] = 0;
		p->events++;
	}
	p->period[event] += period;
	p->counts[event]++;
}

static void add_child(struct profile *p, struct profile_row *row, u64 period)
{
	/* What calls itself is in a chain more than once, and has the sample once. */
	if (row->seen != p->samples)
		row->children += period;
	row->seen = p->samples;
}

/* `period` of such a row is that of the event by which it is sorted. */
static void add_to_group(const struct profile *p, struct profile_row *row, u32 event, u64 period)
{
	if (!row->group) {
		row->group = calloc(p->group, sizeof(*row->group));
		CHECK(row->group);
		row->nr_group = p->group;
	}
	row->group[event] += period;
	if (event != p->group_by)
		row->period -= period;
}

/* By what it is sorted by, then by the other events in their order. */
static int by_group(const void *a, const void *b)
{
	const struct profile_row *x = a, *y = b;

	if (x->period != y->period)
		return x->period > y->period ? -1 : 1;
	for (u32 i = 0; x->group && y->group && i < x->nr_group; i++)
		if (x->group[i] != y->group[i])
			return x->group[i] > y->group[i] ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The tree of the row of function @i of a way gets the way to it, or on from it. */
static void add_to_tree(struct profile *p, struct profile_row *row, const struct sym_place *way,
			u32 n, u32 i, u64 period)
{
	if (row->tree_seen == p->samples)
		return;
	row->tree_seen = p->samples;
	if (p->tree == CALL_ORDER_CALLEE)
		call_tree_add(&row->tree, way + i + 1, n - i - 1, 1, period);
	else if (p->children && i)
		call_tree_add(&row->tree, way + i - 1, i, -1, period);
	else if (!p->children)
		call_tree_add(&row->tree, way + n - 1, n - 1, -1, period);
}

/* The functions of a sample's chain, the innermost first: their rows, and their trees. */
static void add_way(struct profile *p, struct reading *r, const struct data_item *item,
		    struct profile_row *own, u64 period)
{
	struct sym_place way[CALL_WAY_MAX];
	u32 at[CALL_WAY_MAX], n = 0;
	struct reading_walk walk = {0};
	u64 addr;

	for (; n < CALL_WAY_MAX && reading_walk_next(r, item, &walk, &addr); n++) {
		find_in_chain(r, item, addr, &walk, &way[n]);
		if (!p->children)
			continue;
		own = row_of_place(p, r, item, addr - walk.returns, &way[n]);
		add_child(p, own, period);
		at[n] = (u32)(own - p->rows);
	}
	p->ways += n > 0;
	if (!p->children && n)
		add_to_tree(p, own, way, n, 0, period);
	/* Of a function that calls itself there is the longest way. */
	for (u32 k = 0; p->children && k < n; k++) {
		u32 i = p->tree == CALL_ORDER_CALLEE ? k : n - 1 - k;

		add_to_tree(p, &p->rows[at[i]], way, n, i, period);
	}
}

void profile_add(struct profile *p, struct reading *r, const struct data_item *item)
{
	u64 period = reading_period(r, item), addr;
	struct reading_walk walk = {0};
	struct profile_row *row;
	struct sym_place at;

	p->samples++;
	count_event(p, item->event < 0 ? 0 : (u32)item->event, period);
	addr = item->record.sample.ip;
	reading_find(r, item, addr, reading_in_kernel(item), &at);
	row = row_of_place(p, r, item, addr, &at);
	row->period += period;
	row->samples++;
	if (p->group && item->event < (int)p->group)
		add_to_group(p, row, item->event < 0 ? 0 : (u32)item->event, period);
	add_child(p, row, period);
	if (p->tree) {
		add_way(p, r, item, row, period);
		return;
	}
	while (p->children && reading_walk_next(r, item, &walk, &addr))
		add_child(p, row_in_chain(p, r, item, addr, &walk), period);
}

static int by_period(const void *a, const void *b)
{
	const struct profile_row *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->period != y->period)
		return x->period > y->period ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_children(const void *a, const void *b)
{
	const struct profile_row *x = a, *y = b;

	if (x->event != y->event || x->children == y->children)
		return by_period(a, b);
	return x->children > y->children ? -1 : 1;
}

struct profile_object {
	const char *path;
	bool *in_full;
};

static int by_base_name(const void *a, const void *b)
{
	const struct profile_object *x = a, *y = b;
	int order = strcmp(profile_base_name(x->path), profile_base_name(y->path));

	return order ? order : strcmp(x->path, y->path);
}

/* Of one base name, the first and the last differ if any do. */
static void find_namesakes(struct profile *p)
{
	struct profile_object *o = calloc(p->n * 2 + 1, sizeof(*o));
	u32 n = 0;

	CHECK(o);
	for (u32 i = 0; i < p->n; i++) {
		struct profile_row *row = &p->rows[i];

		if (row->object)
			o[n++] = (struct profile_object){row->object, &row->in_full};
		if (row->data.object)
			o[n++] = (struct profile_object){row->data.object, &row->data_in_full};
	}
	qsort(o, n, sizeof(*o), by_base_name);
	for (u32 i = 0, end; i < n; i = end) {
		const char *base = profile_base_name(o[i].path);

		for (end = i + 1; end < n && !strcmp(profile_base_name(o[end].path), base); end++)
			;
		for (u32 k = i; k < end; k++)
			*o[k].in_full = strcmp(o[i].path, o[end - 1].path) != 0;
	}
	free(o);
}

void profile_sort(struct profile *p)
{
	find_namesakes(p);
	/* The index is of no use any more. */
	free(p->index);
	p->index = NULL;
	p->index_room = 0;
	if (p->n)
		qsort(p->rows, p->n, sizeof(*p->rows),
		      p->group      ? by_group
		      : p->children ? by_children
				    : by_period);
	for (u32 i = 0; i < p->n; i++)
		call_tree_sort(&p->rows[i].tree);
}

static void free_row(struct profile_row *row)
{
	free(row->comm);
	free(row->group);
	call_tree_release(row->tree);
}

void profile_release(struct profile *p)
{
	for (u32 i = 0; i < p->n; i++)
		free_row(&p->rows[i]);
	free(p->rows);
	free(p->index);
	free(p->period);
	free(p->counts);
	data_view_release(&p->data_view);
	line_view_release(&p->lines);
	*p = (struct profile){0};
}
