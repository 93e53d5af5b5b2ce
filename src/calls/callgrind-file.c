#include "calls/callgrind-file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Names have numbers, by which they are called once they were told. */
struct name_table {
	const char **name; /* borrowed; open addressing */
	u32 *number;
	u32 room, n;
};

struct callgrind_writer {
	FILE *f;
	const struct callgrind_style *s;
	struct name_table objects, files;
	u8 *told; /* a bit for each function at each level; owned */
	u32 told_room;
	const char *object, *file; /* where the reader is; NULL: nowhere */
	const char *own_file;      /* of the function */
	u64 address;               /* of the last position; 0: none */
	u32 line;
	struct callgrind_totals total;
};

/* A column, and what stands in it. */
struct event_column {
	const char *name;
	u8 group, level;
};

static const struct event_column callgrind_caches[] = {
	{"Dr", SIMULATED_READ, 0},   {"Dw", SIMULATED_WRITE, 0},   {"I1mr", SIMULATED_FETCH, 1},
	{"D1mr", SIMULATED_READ, 1}, {"D1mw", SIMULATED_WRITE, 1}, {"ILmr", SIMULATED_FETCH, 2},
	{"DLmr", SIMULATED_READ, 2}, {"DLmw", SIMULATED_WRITE, 2},
};

static const struct event_column cachegrind_caches[] = {
	{"I1mr", SIMULATED_FETCH, 1}, {"ILmr", SIMULATED_FETCH, 2}, {"Dr", SIMULATED_READ, 0},
	{"D1mr", SIMULATED_READ, 1},  {"DLmr", SIMULATED_READ, 2},  {"Dw", SIMULATED_WRITE, 0},
	{"D1mw", SIMULATED_WRITE, 1}, {"DLmw", SIMULATED_WRITE, 2},
};

static const struct event_column branch_columns[] = {
	{"Bc", SIMULATED_COND, 0},
	{"Bcm", SIMULATED_COND, 1},
	{"Bi", SIMULATED_INDIRECT, 0},
	{"Bim", SIMULATED_INDIRECT, 1},
};

/* The columns of @c: their values, or if there are none their names. */
static void put_columns(FILE *f, const struct event_column *c, size_t n,
			const struct event_counts *e)
{
	for (; n; n--, c++) {
		if (e)
			fprintf(f, " %" PRIu64, e->n[c->group][c->level]);
		else
			fprintf(f, " %s", c->name);
	}
}

void callgrind_columns(FILE *f, const struct event_counts *e, bool caches, bool branches)
{
	if (caches)
		put_columns(f, callgrind_caches, ARRAY_SIZE(callgrind_caches), e);
	if (branches)
		put_columns(f, branch_columns, ARRAY_SIZE(branch_columns), e);
}

static void put_cachegrind_columns(FILE *f, const struct event_counts *e,
				   const struct callgrind_style *s)
{
	if (s->caches)
		put_columns(f, cachegrind_caches, ARRAY_SIZE(cachegrind_caches), e);
	if (s->branches)
		put_columns(f, branch_columns, ARRAY_SIZE(branch_columns), e);
}

char *callgrind_cache_text(const struct machine *m, enum machine_cache_id id, char *text,
			   size_t size)
{
	const struct machine_cache *c = &m->cache[id];

	if (c->ways == 1)
		snprintf(text, size, "%" PRIu64 " B, %u B, direct-mapped", (u64)c->size,
			 m->memory.line);
	else
		snprintf(text, size, "%" PRIu64 " B, %u B, %u-way associative", (u64)c->size,
			 m->memory.line, c->ways);
	return text;
}

/* Three lines, which are empty if nothing was simulated. */
static void put_caches(FILE *f, const struct callgrind_style *s, const char *gap)
{
	static const struct {
		const char *name;
		enum machine_cache_id id;
	} caches[] = {{"I1", MACHINE_L1I}, {"D1", MACHINE_L1D}, {"LL", MACHINE_LL}};
	char text[100] = "";

	for (u32 i = 0; i < ARRAY_SIZE(caches); i++)
		fprintf(f, "desc: %s cache: %s%s\n", caches[i].name, gap,
			s->machine
				? callgrind_cache_text(s->machine, caches[i].id, text, sizeof(text))
				: "");
}

/* What index @i of the profile's events is; zeros if it is 0. */
static const struct event_counts *events_at(const struct calls_profile *p, u32 i)
{
	static const struct event_counts none;

	return i ? &p->events[i - 1] : &none;
}

static u32 hash_text(const char *text)
{
	u32 hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 16777619u;
	return hash;
}

static void grow(struct name_table *t)
{
	struct name_table more = {.room = t->room ? t->room * 2 : 256, .n = t->n};

	more.name = calloc(more.room, sizeof(*more.name));
	more.number = calloc(more.room, sizeof(*more.number));
	CHECK(more.name && more.number);
	for (u32 i = 0; i < t->room; i++) {
		u32 at;

		if (!t->name[i])
			continue;
		at = hash_text(t->name[i]);
		while (more.name[at & (more.room - 1)])
			at++;
		more.name[at & (more.room - 1)] = t->name[i];
		more.number[at & (more.room - 1)] = t->number[i];
	}
	free(t->name);
	free(t->number);
	*t = more;
}

/* The number of @name, which lives as long as the table; *@is_new says whether it was made. */
static u32 number_of(struct name_table *t, const char *name, bool *is_new)
{
	u32 at;

	if (t->n * 2 >= t->room)
		grow(t);
	for (at = hash_text(name);; at++) {
		const char *there = t->name[at & (t->room - 1)];

		if (there && strcmp(there, name) != 0)
			continue;
		*is_new = !there;
		if (!there) {
			t->name[at & (t->room - 1)] = name;
			t->number[at & (t->room - 1)] = ++t->n;
		}
		return t->number[at & (t->room - 1)];
	}
}

static void free_table(struct name_table *t)
{
	free(t->name);
	free(t->number);
}

static void put_name(struct callgrind_writer *w, const char *key, struct name_table *t,
		     const char *name)
{
	bool is_new;
	u32 number;

	if (!w->s->compress_strings) {
		fprintf(w->f, "%s=%s\n", key, name);
		return;
	}
	number = number_of(t, name, &is_new);
	if (is_new)
		fprintf(w->f, "%s=(%u) %s\n", key, number, name);
	else
		fprintf(w->f, "%s=(%u)\n", key, number);
}

#define LEVELS 64u /* of recursion, at most */

/* Functions of one name are told apart by their numbers, as long as there are numbers. */
static void put_function(struct callgrind_writer *w, const char *key, const struct calls_fn *fn,
			 u32 level)
{
	char text[40];
	bool is_new;
	u32 number;

	text[0] = 0;
	if (level)
		snprintf(text, sizeof(text), "'%u", level + 1);
	if (!w->s->compress_strings) {
		fprintf(w->f, "%s=%s%s\n", key, fn->name, text);
		return;
	}
	number = fn->number * LEVELS + level + 1;
	if (number / 8 >= w->told_room) {
		u32 room = w->told_room;

		w->told_room = number / 8 * 2 + 64;
		w->told = realloc(w->told, w->told_room);
		CHECK(w->told);
		memset(w->told + room, 0, w->told_room - room);
	}
	is_new = !(w->told[number / 8] & 1u << number % 8);
	w->told[number / 8] |= (u8)(1u << number % 8);
	if (is_new)
		fprintf(w->f, "%s=(%u) %s%s\n", key, number, fn->name, text);
	else
		fprintf(w->f, "%s=(%u)\n", key, number);
}

static void put_number(struct callgrind_writer *w, u64 value, u64 last, bool hex)
{
	s64 diff = (s64)(value - last);

	if (!w->s->compress_pos || !last || diff <= -100 || diff >= 100)
		fprintf(w->f, hex ? "0x%" PRIx64 " " : "%" PRIu64 " ", value);
	else if (diff)
		fprintf(w->f, "%+" PRId64 " ", diff);
	else
		fputs("* ", w->f);
}

/* A position; with @goes_on further ones are relative to it. */
static void put_position(struct callgrind_writer *w, const struct calls_line *at, bool goes_on)
{
	if (w->s->instr)
		put_number(w, at->address, goes_on ? w->address : 0, true);
	if (w->s->line)
		put_number(w, at->line, goes_on ? w->line : 0, false);
	w->address = goes_on ? at->address : 0;
	w->line = goes_on ? at->line : 0;
}

static const char *file_of(const struct callgrind_writer *w, const struct calls_line *at)
{
	return at->file ? at->file : w->own_file;
}

/* From here on it is about @file, for one function is made of the lines of several. */
static void put_file(struct callgrind_writer *w, const char *file)
{
	CHECK(w->file && w->own_file); /* a function has begun */
	if (!strcmp(w->file, file))
		return;
	put_name(w, strcmp(file, w->own_file) ? "fi" : "fe", &w->files, file);
	w->file = file;
}

/* The end of a line. */
static void put_counts(struct callgrind_writer *w, u64 count, const struct event_counts *e)
{
	fprintf(w->f, "%" PRIu64, count);
	callgrind_columns(w->f, e, w->s->caches, w->s->branches);
	fputc('\n', w->f);
}

static void put_cost(struct callgrind_writer *w, const struct calls_line *at, u64 count,
		     const struct event_counts *e)
{
	put_file(w, file_of(w, at));
	put_position(w, at, true);
	put_counts(w, count, e);
	w->total.instructions += count;
	event_counts_add(&w->total.events, e);
}

static void put_call(struct callgrind_writer *w, const struct calls_profile *p,
		     const struct calls_call *c)
{
	struct calls_line site, target;

	w->s->find(w->s->data, c->site, &site);
	w->s->find(w->s->data, c->target, &target);
	put_file(w, file_of(w, &site));
	if (strcmp(c->to->object, w->object) != 0)
		put_name(w, "cob", &w->objects, c->to->object);
	if (strcmp(c->to->file, w->file) != 0)
		put_name(w, "cfi", &w->files, c->to->file);
	put_function(w, "cfn", c->to, c->to_level);
	fprintf(w->f, "calls=%" PRIu64 " ", c->count);
	/* Readers differ in what a position after this is relative to. */
	put_position(w, &target, false);
	fputc('\n', w->f);
	put_position(w, &site, false);
	put_counts(w, c->cost, events_at(p, c->events));
}

static void begin_function(struct callgrind_writer *w, const struct calls_fn *fn, u32 level)
{
	fputc('\n', w->f);
	if (!w->object || strcmp(w->object, fn->object) != 0)
		put_name(w, "ob", &w->objects, fn->object);
	w->object = fn->object;
	if (!w->file || strcmp(w->file, fn->file) != 0)
		put_name(w, "fl", &w->files, fn->file);
	w->file = w->own_file = fn->file;
	put_function(w, "fn", fn, level);
	w->address = 0;
	w->line = 0;
}

static bool same_line(const struct callgrind_writer *w, const struct calls_line *a,
		      const struct calls_line *b)
{
	return !w->s->instr && a->line == b->line && !strcmp(file_of(w, a), file_of(w, b));
}

/* Whether call @c is to be told of before cost @k, of the same or another function. */
static bool call_comes_first(const struct calls_call *c, const struct calls_cost *k)
{
	CHECK(c->from && k->fn);
	if (c->from != k->fn)
		return c->from->number < k->fn->number;
	if (c->from_level != k->level)
		return c->from_level < k->level;
	return c->site < k->pc;
}

struct pending_cost {
	struct calls_line at;
	u64 count;
	struct event_counts events;
	bool any; /* something is pending */
};

static void flush(struct callgrind_writer *w, struct pending_cost *pending)
{
	if (pending->any)
		put_cost(w, &pending->at, pending->count, &pending->events);
	*pending = (struct pending_cost){.any = false};
}

static void put_body(struct callgrind_writer *w, const struct calls_profile *p)
{
	const struct calls_fn *fn = NULL;
	struct pending_cost pending = {.any = false};
	u32 level = 0, i = 0, k = 0;

	while (i < p->nr_costs || k < p->nr_calls) {
		bool call = k < p->nr_calls &&
			    (i == p->nr_costs || call_comes_first(&p->call[k], &p->cost[i]));
		const struct calls_fn *own = call ? p->call[k].from : p->cost[i].fn;
		u32 own_level = call ? p->call[k].from_level : p->cost[i].level;
		struct calls_line at;

		CHECK(own);
		if (own != fn || own_level != level) {
			flush(w, &pending);
			begin_function(w, own, own_level);
			fn = own;
			level = own_level;
		}
		if (call) {
			flush(w, &pending);
			put_call(w, p, &p->call[k++]);
			continue;
		}
		w->s->find(w->s->data, p->cost[i].pc, &at);
		if (pending.any && !same_line(w, &pending.at, &at))
			flush(w, &pending);
		if (!pending.any)
			pending.at = at;
		pending.any = true;
		pending.count += p->cost[i].count;
		if (p->cost[i].events)
			event_counts_add(&pending.events, events_at(p, p->cost[i].events));
		i++;
	}
	flush(w, &pending);
}

static void put_totals(FILE *f, const struct callgrind_style *s, const char *key,
		       const struct callgrind_totals *t)
{
	fprintf(f, "%s: %" PRIu64, key, t->instructions);
	callgrind_columns(f, &t->events, s->caches, s->branches);
	fputc('\n', f);
}

void callgrind_write(FILE *f, const struct calls_profile *p, const struct callgrind_style *s,
		     struct callgrind_totals *totals)
{
	const struct callgrind_totals summary = {p->summary, p->summary_events};
	struct callgrind_writer w = {.f = f, .s = s};

	if (!s->appending)
		fprintf(f, "# callgrind format\nversion: 1\ncreator: %s\npid: %u\ncmd: %s\n",
			s->creator, s->pid, s->command);
	fprintf(f, "\npart: %u\n", s->part);
	if (s->thread)
		fprintf(f, "thread: %u\n", s->thread);
	if (!s->appending) {
		fputc('\n', f);
		put_caches(f, s, "");
	}
	fprintf(f, "\ndesc: Timerange: Basic block 0 - 0\ndesc: Trigger: %s\n",
		s->trigger ? s->trigger : "Program termination");
	fprintf(f, "\npositions:%s%s\nevents: Ir", s->instr ? " instr" : "",
		s->line ? " line" : "");
	callgrind_columns(f, NULL, s->caches, s->branches);
	fputc('\n', f);
	put_totals(f, s, "summary", &summary);
	fputc('\n', f);
	put_body(&w, p);
	fputc('\n', f);
	put_totals(f, s, "totals", &w.total);
	free_table(&w.objects);
	free_table(&w.files);
	free(w.told);
	callgrind_totals_add(totals, &w.total);
}

/* Cachegrind knows files, functions and lines. */
struct line_cost {
	const char *file, *function;
	u32 line;
	u32 events; /* of the profile */
	u64 count;
};

static int by_file(const void *a, const void *b)
{
	const struct line_cost *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	if (!order)
		order = strcmp(x->function, y->function);
	if (order)
		return order;
	return x->line < y->line ? -1 : x->line > y->line;
}

static void put_lines(FILE *f, const struct calls_profile *p, const struct line_cost *lines,
		      const struct callgrind_style *s, struct callgrind_totals *total)
{
	const struct line_cost *last = NULL;

	for (u32 i = 0; i < p->nr_costs; i++) {
		u64 count = lines[i].count;
		struct event_counts events = *events_at(p, lines[i].events);
		bool new_file = !last || strcmp(last->file, lines[i].file) != 0;

		if (new_file)
			fprintf(f, "fl=%s\n", lines[i].file);
		if (new_file || strcmp(last->function, lines[i].function) != 0)
			fprintf(f, "fn=%s\n", lines[i].function);
		last = &lines[i];
		while (i + 1 < p->nr_costs && !by_file(last, &lines[i + 1])) {
			count += lines[++i].count;
			event_counts_add(&events, events_at(p, lines[i].events));
		}
		fprintf(f, "%u %" PRIu64, last->line, count);
		put_cachegrind_columns(f, &events, s);
		fputc('\n', f);
		total->instructions += count;
		event_counts_add(&total->events, &events);
	}
}

void cachegrind_write(FILE *f, const struct calls_profile *p, const struct callgrind_style *s,
		      struct callgrind_totals *totals)
{
	struct line_cost *lines = calloc(p->nr_costs + 1, sizeof(*lines));
	struct callgrind_totals total = {0};

	CHECK(lines);
	for (u32 i = 0; i < p->nr_costs; i++) {
		struct calls_line at;

		s->find(s->data, p->cost[i].pc, &at);
		lines[i] = (struct line_cost){.file = at.file ? at.file : "???",
					      .function = at.function ? at.function : "???",
					      .line = at.line,
					      .events = p->cost[i].events,
					      .count = p->cost[i].count};
	}
	if (p->nr_costs)
		qsort(lines, p->nr_costs, sizeof(*lines), by_file);
	put_caches(f, s, "        ");
	fprintf(f, "cmd: %s\nevents: Ir", s->command);
	put_cachegrind_columns(f, NULL, s);
	fputc('\n', f);
	put_lines(f, p, lines, s, &total);
	fprintf(f, "summary: %" PRIu64, total.instructions);
	put_cachegrind_columns(f, &total.events, s);
	fputc('\n', f);
	free(lines);
	callgrind_totals_add(totals, &total);
}

char *callgrind_command(char *const *argv)
{
	size_t size = 1, n = 0;
	char *text;

	for (u32 i = 0; argv[i]; i++)
		size += 2 * strlen(argv[i]) + 1;
	text = malloc(size);
	CHECK(text);
	for (u32 i = 0; argv[i]; i++) {
		if (i)
			text[n++] = ' ';
		/* A line must stay one. */
		for (const char *p = argv[i]; *p; p++) {
			if (*p == '\n' || *p == '\\')
				text[n++] = '\\';
			text[n++] = *p == '\n' ? 'n' : *p;
		}
	}
	text[n] = 0;
	return text;
}
