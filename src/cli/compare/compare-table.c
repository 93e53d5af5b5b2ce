/* The same results as a table for other programs: Markdown, CSV, and what GitHub makes of a log. */
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare-symbols.h"
#include "cli/compare/compare-text.h"

/* A row: what one command does, against the first. */
struct compare_row {
	const char *what;
	const char *unit;
	double first, second;
	char first_text[32], second_text[32]; /* for people */
	bool has_change, has_bounds;
	double change, low, high; /* percent */
	const char *verdict;
};

typedef void row_fn(FILE *out, const struct compare_job *job, const struct compare_side *side,
		    const struct compare_row *row);

static bool row_of_count(const struct side_count *a, const struct side_count *b,
			 struct compare_row *row)
{
	double was = (double)side_count_median(a), is = (double)side_count_median(b);

	*row = (struct compare_row){.what = b->name, .unit = "", .first = was, .second = is};
	if (!a->runs || !b->runs)
		return false;
	snprintf(row->first_text, sizeof(row->first_text), "%.0f", was);
	snprintf(row->second_text, sizeof(row->second_text), "%.0f", is);
	row->verdict = side_count_is_exact(a) && side_count_is_exact(b) ? "exact" : "varies";
	if (!side_count_min(a))
		return true;
	row->has_change = row->has_bounds = true;
	row->change = (is / was - 1) * 100;
	row->low = ((double)side_count_min(b) / (double)side_count_max(a) - 1) * 100;
	row->high = ((double)side_count_max(b) / (double)side_count_min(a) - 1) * 100;
	return true;
}

static void row_of_times(const struct compare_job *job, const struct compare_side *side,
			 enum timed_quantity q, struct compare_row *row)
{
	static const char *const units[TIMED_QUANTITIES] = {"s", "s", "bytes", ""};
	struct spread a, b;
	struct ratio r;

	spread_of(job->sides[0].timed[q], job->rounds, &a);
	spread_of(side->timed[q], job->rounds, &b);
	*row = (struct compare_row){.what = timed_name(q),
				    .unit = units[q],
				    .first = a.median,
				    .second = b.median,
				    .verdict = "no ratio"};
	compare_quantity_text(q, a.median, row->first_text, sizeof(row->first_text));
	compare_quantity_text(q, b.median, row->second_text, sizeof(row->second_text));
	if (!timed_ratio(job, side, q, &r))
		return;
	row->verdict = compare_verdict(q, &r);
	row->has_change = true;
	row->has_bounds = r.has_interval;
	row->change = (r.value - 1) * 100;
	row->low = (r.low - 1) * 100;
	row->high = (r.high - 1) * 100;
}

static void each_row(FILE *out, const struct compare_job *job, const struct compare_side *side,
		     row_fn *fn)
{
	const struct compare_side *first = &job->sides[0];
	struct compare_row row;

	for (u32 i = 0; i < first->nr_counts && i < side->nr_counts; i++)
		if (row_of_count(&first->counts[i], &side->counts[i], &row))
			fn(out, job, side, &row);
	for (u32 q = 0; q < TIMED_QUANTITIES && job->rounds; q++) {
		row_of_times(job, side, (enum timed_quantity)q, &row);
		fn(out, job, side, &row);
	}
}

/* In a cell, where a bar would end it. */
static void markdown_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("|\\`*_<[&", *text))
			putc('\\', out);
		putc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
}

static void markdown_row(FILE *out, const struct compare_job *job, const struct compare_side *side,
			 const struct compare_row *row)
{
	(void)job;
	(void)side;
	fputs("| ", out);
	markdown_text(out, row->what);
	fprintf(out, " | %s | %s | ", row->first_text, row->second_text);
	if (row->has_change)
		fprintf(out, "%+.3f %%", row->change);
	if (row->has_bounds && row->low < row->high)
		fprintf(out, " (%+.1f to %+.1f)", row->low, row->high);
	fprintf(out, " | %s |\n", row->verdict);
}

/* One of the functions of --by symbol. */
static void row_of_symbol(const struct compare_job *job, u32 side, const struct symbol_row *symbol,
			  struct compare_row *row)
{
	double period = (double)job->symbols.period, doubt = symbol_doubt(job, symbol, side);
	double was = (double)symbol->count[0], is = (double)symbol->count[side];

	*row = (struct compare_row){
		.what = symbol->name,
		.unit = "",
		.first = was * period,
		.second = is * period,
		.has_change = was > 0,
		.has_bounds = was > 0,
		.verdict = symbols_are_exact(job, side) ? "exact" : "estimated",
	};
	if (was <= 0)
		return;
	row->change = (is / was - 1) * 100;
	row->low = ((is - doubt) / was - 1) * 100;
	row->high = ((is + doubt) / was - 1) * 100;
}

static void markdown_symbols(FILE *out, const struct compare_job *job, u32 side)
{
	const struct symbol_row *rows[SYMBOLS_SHOWN];
	u32 n = symbols_changed(job, side, rows, SYMBOLS_SHOWN);
	struct compare_row row;

	fputs("\n| Where ", out);
	markdown_text(out, job->sides[side].counts[0].name);
	fputs(" changed | change | |\n|---|---:|---|\n", out);
	for (u32 i = 0; i < n; i++) {
		row_of_symbol(job, side, rows[i], &row);
		fputs("| ", out);
		markdown_text(out, row.what);
		fprintf(out, " | %+.0f | %s |\n", row.second - row.first, row.verdict);
	}
	if (!n)
		fputs("| in no function by more than it may be off | | |\n", out);
}

/* One command, whose counts were kept. */
static void markdown_alone(FILE *out, const struct compare_side *side)
{
	fputs("\n| | ", out);
	markdown_text(out, side->name);
	fputs(" | |\n|---|---:|---|\n", out);
	for (u32 i = 0; i < side->nr_counts; i++) {
		const struct side_count *c = &side->counts[i];

		if (!c->runs)
			continue;
		fputs("| ", out);
		markdown_text(out, c->name);
		fprintf(out, " | %llu | %s |\n", (unsigned long long)side_count_median(c),
			side_count_is_exact(c) ? "exact" : "varies");
	}
}

void compare_print_markdown(const struct compare_job *job, FILE *out)
{
	for (u32 i = 0; i < job->nr_sides; i++) {
		fputs("- **", out);
		markdown_text(out, job->sides[i].name);
		fputs("**: ", out);
		markdown_text(out, job->sides[i].title);
		putc('\n', out);
	}
	if (job->nr_sides == 1)
		markdown_alone(out, &job->sides[0]);
	for (u32 i = 1; i < job->nr_sides; i++) {
		fputs("\n| | ", out);
		markdown_text(out, job->sides[0].name);
		fputs(" | ", out);
		markdown_text(out, job->sides[i].name);
		fputs(" | change | |\n|---|---:|---:|---:|---|\n", out);
		each_row(out, job, &job->sides[i], markdown_row);
		if (job->symbols.period)
			markdown_symbols(out, job, i);
	}
	for (u32 i = 0; i < job->nr_judged; i++) {
		char text[700];

		compare_judged_text(&job->judged[i], text, sizeof(text));
		fputs(i ? "- " : "\n- ", out);
		markdown_text(out, text);
		fputs(".\n", out);
	}
	if (job->elsewhere)
		fprintf(out,
			"\nThe baseline was made %s: a program that asks for that may count "
			"differently.\n",
			job->elsewhere);
	for (u32 i = 1; i < job->nr_sides; i++) {
		char text[400];

		if (!compare_lengths_text(job, &job->sides[i], text, sizeof(text)))
			continue;
		putc('\n', out);
		markdown_text(out, text);
		fputs(".\n", out);
	}
	for (u32 i = 0; i < job->nr_sides; i++) {
		char used[200];

		deterministic_names(job->sides[i].nondet, used, sizeof(used));
		if (!*used)
			continue;
		putc('\n', out);
		markdown_text(out, job->sides[i].name);
		fprintf(out, " made use of what varies between runs: %s.\n", used);
	}
	if (compare_is_interrupted(job))
		fputs("\nInterrupted: this is what there is so far.\n", out);
}

/* As RFC 4180 has it. */
static void csv_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void csv_row(FILE *out, const struct compare_job *job, const struct compare_side *side,
		    const struct compare_row *row)
{
	csv_text(out, side->name);
	putc(',', out);
	csv_text(out, job->sides[0].name);
	putc(',', out);
	csv_text(out, row->what);
	if (*row->unit)
		fprintf(out, ",%s,%.9g,%.9g,", row->unit, row->first, row->second);
	else
		fprintf(out, ",,%.0f,%.0f,", row->first, row->second);
	if (row->has_change)
		fprintf(out, "%.6f", row->change);
	putc(',', out);
	if (row->has_bounds)
		fprintf(out, "%.6f,%.6f", row->low, row->high);
	else
		putc(',', out);
	fprintf(out, ",%s\n", row->verdict);
}

static void csv_symbols(const struct compare_job *job, u32 side)
{
	const struct symbol_row *rows[SYMBOLS_SHOWN];
	u32 n = symbols_changed(job, side, rows, SYMBOLS_SHOWN);
	char what[2 * SYMBOL_NAME_MAX];
	struct compare_row row;

	for (u32 i = 0; i < n; i++) {
		row_of_symbol(job, side, rows[i], &row);
		snprintf(what, sizeof(what), "%s in %s", job->sides[side].counts[0].name, row.what);
		row.what = what;
		csv_row(job->out, job, &job->sides[side], &row);
	}
}

void compare_print_csv(const struct compare_job *job)
{
	fputs("of,against,what,unit,first,second,change_percent,low_percent,high_percent,verdict\n",
	      job->out);
	/* One command, whose counts were kept, is against nothing. */
	for (u32 i = 0; job->nr_sides == 1 && i < job->sides[0].nr_counts; i++) {
		const struct side_count *c = &job->sides[0].counts[i];

		if (!c->runs)
			continue;
		csv_text(job->out, job->sides[0].name);
		fputs(",,", job->out);
		csv_text(job->out, c->name);
		fprintf(job->out, ",,,%llu,,,,%s\n", (unsigned long long)side_count_median(c),
			side_count_is_exact(c) ? "exact" : "varies");
	}
	for (u32 i = 1; i < job->nr_sides; i++) {
		each_row(job->out, job, &job->sides[i], csv_row);
		if (job->symbols.period)
			csv_symbols(job, i);
	}
}

/* A workflow command's data: a line, with its own escapes. */
static void print_annotation(FILE *out, const struct compare_judged *j)
{
	char text[700];

	if (j->result == GATE_HELD)
		return;
	compare_judged_text(j, text, sizeof(text));
	fprintf(out,
		"::%s title=anyperf compare::", j->result == GATE_BROKEN ? "error" : "warning");
	for (const char *c = text; *c; c++) {
		if (*c == '%' || *c == '\r' || *c == '\n')
			fprintf(out, "%%%02X", (u8)*c);
		else
			putc(*c, out);
	}
	putc('\n', out);
}

int compare_print_github(const struct compare_job *job)
{
	const char *path = getenv("GITHUB_STEP_SUMMARY");
	FILE *summary;

	compare_print_text(job);
	for (u32 i = 0; i < job->nr_judged; i++)
		print_annotation(job->out, &job->judged[i]);
	if (!path || !*path)
		return 0;
	summary = fopen(path, "ae");
	if (summary) {
		compare_print_markdown(job, summary);
		putc('\n', summary);
	}
	if (!summary || ferror(summary) | (fclose(summary) != 0))
		return command_error(&cmd_compare,
				     "cannot write the summary '%s' of "
				     "GITHUB_STEP_SUMMARY",
				     path);
	return 0;
}
