/*
 * --by symbol: in which functions the first event's count has changed. Rows are names of functions,
 * with what each command has executed in them; compare-symbols-run.c finds it out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/compare/compare-symbols.h"

static u64 hash_of(const char *text)
{
	u64 hash = 0xcbf29ce484222325; /* Fowler, Noll and Vo, 1a */

	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 0x100000001b3;
	return hash;
}

/* Where @name is, or belongs. */
static u32 *find_slot(struct symbol_table *t, const char *name)
{
	u32 at = (u32)hash_of(name) & (t->nr_slots - 1);

	while (t->slots[at] && strcmp(t->rows[t->slots[at] - 1].name, name) != 0)
		at = (at + 1) & (t->nr_slots - 1);
	return &t->slots[at];
}

/* At most half of the slots are taken. */
static void grow(struct symbol_table *t)
{
	t->nr_slots = t->nr_slots ? t->nr_slots * 2 : 1024;
	free(t->slots);
	t->slots = calloc(t->nr_slots, sizeof(*t->slots));
	t->rows = realloc(t->rows, t->nr_slots / 2 * sizeof(*t->rows));
	CHECK(t->slots && t->rows);
	for (u32 i = 0; i < t->nr; i++)
		*find_slot(t, t->rows[i].name) = i + 1;
}

struct symbol_row *symbol_find(struct symbol_table *t, const char *name)
{
	u32 *slot;

	if (t->nr == t->nr_slots / 2)
		grow(t);
	slot = find_slot(t, name);
	if (*slot)
		return &t->rows[*slot - 1];
	t->rows[t->nr] = (struct symbol_row){.name = strdup(name)};
	CHECK(t->rows[t->nr].name);
	*slot = ++t->nr;
	return &t->rows[t->nr - 1];
}

static double change_of(const struct symbol_row *row, u32 side)
{
	return (double)row->count[side] - (double)row->count[0];
}

/* How far apart two runs of a command were. */
static double spread(const struct compare_job *job, const struct symbol_row *row, u32 side)
{
	if (!job->sides[side].profiled_twice)
		return 0;
	return fabs((double)row->again[side] - (double)row->count[side]);
}

/*
 * Of samples two standard deviations, since they fall by chance; the two at the ends at least. Of
 * counts how far apart those of the same command are.
 */
double symbol_doubt(const struct compare_job *job, const struct symbol_row *row, u32 side)
{
	const struct symbol_table *t = &job->symbols;
	double doubt;

	if (!t->exact)
		return 2 + 2 * sqrt((double)(row->count[side] + row->count[0]));
	doubt = spread(job, row, side) + spread(job, row, 0);
	/* Of a baseline there is no second run; and it has not all functions. */
	if (job->sides[0].stored)
		doubt += spread(job, row, side);
	if (job->sides[0].stored && !row->count[0])
		doubt += (double)t->left_out;
	return doubt;
}

u32 symbols_changed(const struct compare_job *job, u32 side, const struct symbol_row **rows,
		    u32 most)
{
	u32 n = 0;

	for (u32 i = 0; i < job->symbols.nr; i++) {
		const struct symbol_row *row = &job->symbols.rows[i];
		u32 at = n;

		if (fabs(change_of(row, side)) <= symbol_doubt(job, row, side))
			continue;
		for (; at && fabs(change_of(rows[at - 1], side)) < fabs(change_of(row, side)); at--)
			if (at < most)
				rows[at] = rows[at - 1];
		if (at < most)
			rows[at] = row;
		n += n < most;
	}
	return n;
}

static int by_count(const void *a, const void *b, void *data)
{
	const struct symbol_row *x = *(const struct symbol_row *const *)a;
	const struct symbol_row *y = *(const struct symbol_row *const *)b;
	u32 side = *(const u32 *)data;

	if (x->count[side] != y->count[side])
		return x->count[side] < y->count[side] ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	const struct symbol_row *x = *(const struct symbol_row *const *)a;
	const struct symbol_row *y = *(const struct symbol_row *const *)b;

	return strcmp(x->name, y->name);
}

u32 symbols_to_keep(const struct compare_job *job, u32 side, const struct symbol_row **rows,
		    u64 *left_out)
{
	const struct symbol_table *t = &job->symbols;
	const struct symbol_row **all = calloc(t->nr + 1, sizeof(*all));
	u32 n = 0, kept;

	CHECK(all);
	for (u32 i = 0; i < t->nr; i++)
		if (t->rows[i].count[side])
			all[n++] = &t->rows[i];
	qsort_r(all, n, sizeof(*all), by_count, &side);
	kept = n < SYMBOLS_KEPT ? n : SYMBOLS_KEPT;
	*left_out = kept < n ? all[kept]->count[side] : 0;
	memcpy(rows, all, kept * sizeof(*rows));
	free(all);
	qsort(rows, kept, sizeof(*rows), by_name);
	return kept;
}

bool symbols_are_exact(const struct compare_job *job, u32 side)
{
	const struct compare_side *first = &job->sides[0], *of = &job->sides[side];

	return job->symbols.exact && !of->profiled_twice && !first->profiled_twice &&
	       (!first->stored || (first->nr_counts && side_count_is_exact(&first->counts[0])));
}

void compare_symbols_text(const struct compare_job *job, FILE *out)
{
	const struct symbol_row *rows[SYMBOLS_SHOWN];
	double period = (double)job->symbols.period;

	for (u32 side = 1; side < job->nr_sides; side++) {
		u32 n = symbols_changed(job, side, rows, SYMBOLS_SHOWN);

		fprintf(out, "\n  Where %s of %s changed, ", job->sides[side].counts[0].name,
			job->sides[side].name);
		if (job->symbols.exact)
			fputs("by counts of all functions:\n", out);
		else
			fprintf(out, "estimated from a sample in %llu:\n",
				(unsigned long long)job->symbols.period);
		for (u32 i = 0; i < n; i++) {
			double doubt = symbol_doubt(job, rows[i], side) * period;
			char name[SYMBOL_NAME_MAX];

			snprintf(name, sizeof(name), "%s", rows[i]->name);
			fprintf(out, "  %-40.60s %+15.0f", compare_line(name),
				change_of(rows[i], side) * period);
			if (!symbols_are_exact(job, side))
				fprintf(out, "  +-%.0f\n", doubt);
			else
				fputs("  exact\n", out);
		}
		if (!n)
			fputs("  in no function by more than it may be off\n", out);
	}
}

void compare_symbols_json(const struct compare_job *job, u32 side, struct json *j)
{
	const struct symbol_row *rows[SYMBOLS_SHOWN];
	u32 n = symbols_changed(job, side, rows, SYMBOLS_SHOWN);
	double period = (double)job->symbols.period;

	json_array(j, "symbols");
	for (u32 i = 0; i < n; i++) {
		json_object(j, NULL);
		json_str(j, "symbol", rows[i]->name);
		json_double(j, "change", change_of(rows[i], side) * period, 0);
		json_bool(j, "exact", symbols_are_exact(job, side));
		json_double(j, "may_be_off", symbol_doubt(job, rows[i], side) * period, 0);
		json_end(j);
	}
	json_end(j);
}

void compare_symbols_free(struct compare_job *job)
{
	for (u32 i = 0; i < job->symbols.nr; i++)
		free(job->symbols.rows[i].name);
	free(job->symbols.rows);
	free(job->symbols.slots);
}
