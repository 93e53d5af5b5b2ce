/* Text for people: a table for each command that is held against the first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/meter.h"
#include "cli/compare/compare-symbols.h"
#include "cli/compare/compare-text.h"
#include "cli/help/help.h"
#include "cli/terminal.h"

#define NAME_WIDTH   22
#define COUNT_WIDTH  18
#define CHANGE_WIDTH 14

/* What can be tried where something varies. */
static const struct {
	u32 sources;
	const char *what;
} remedies[] = {
	{NONDET_CPUS, "--cpus=N fixes the number of CPUs"},
	{NONDET_THREADS, "one thread, if the program has an option for that"},
	{NONDET_IO, "input from a file instead of a pipe or a socket"},
	{NONDET_ADDRESSES, "a sandbox that allows personality(2)"},
};

struct compare_text {
	FILE *out;
	int width;
	struct number_style numbers;
};

static void print_number(const struct compare_text *t, double value, int width)
{
	char buf[64];

	fputs(number_text(&t->numbers, value, 0, width, buf, sizeof(buf)), t->out);
}

/* With its sign, in front of the first digit. */
static void print_change(const struct compare_text *t, double value, int width)
{
	char digits[64], buf[80];

	number_text(&t->numbers, fabs(value), 0, 0, digits, sizeof(digits));
	snprintf(buf, sizeof(buf), "%s%s", value < 0 ? "-" : value > 0 ? "+" : "", digits);
	fprintf(t->out, "%*s", width, buf);
}

static void print_median(const struct compare_text *t, const struct side_count *c)
{
	fputc(' ', t->out);
	if (c->runs)
		print_number(t, (double)side_count_median(c), COUNT_WIDTH);
	else
		fprintf(t->out, "%*s", COUNT_WIDTH, "<not counted>");
}

/* @b is @a where there is no other. What the PMU says comes before what a baseline lacks. */
static void print_refused(const struct compare_text *t, const struct side_count *a,
			  const struct side_count *b)
{
	const struct side_count *c = b->refused ? b : a;

	fprintf(t->out, "  %-*s", NAME_WIDTH, c->name);
	print_median(t, a);
	if (b->runs)
		print_median(t, b);
	fputc('\n', t->out);
	if (c->refused)
		fprintf(t->out, "      %s%s%s\n", c->why.why + c->why.about,
			c->why.remedy[0] ? "; " : "", c->why.remedy);
}

static void print_range(const struct compare_text *t, const struct compare_side *side,
			const struct side_count *c)
{
	if (side_count_is_exact(c))
		return;
	fprintf(t->out, "      %s: ", side->name);
	print_number(t, (double)side_count_min(c), 0);
	fputs(" to ", t->out);
	print_number(t, (double)side_count_max(c), 0);
	fprintf(t->out, " in %u runs\n", c->runs);
}

static void print_count(const struct compare_text *t, const struct compare_side *first,
			const struct compare_side *side, u32 event)
{
	const struct side_count *a = &first->counts[event], *b = &side->counts[event];
	double was = (double)side_count_median(a), is = (double)side_count_median(b);

	if (!a->runs || !b->runs) {
		print_refused(t, a, b);
		return;
	}
	fprintf(t->out, "  %-*s ", NAME_WIDTH, b->name);
	print_number(t, was, COUNT_WIDTH);
	fputc(' ', t->out);
	print_number(t, is, COUNT_WIDTH);
	fputc(' ', t->out);
	print_change(t, is - was, CHANGE_WIDTH);
	if (was > 0)
		fprintf(t->out, " %+9.3f %%", (is / was - 1) * 100);
	else
		fprintf(t->out, " %11s", "");
	if (side_count_is_exact(a) && side_count_is_exact(b)) {
		fputs("  exact\n", t->out);
		return;
	}
	fputs("  varies\n", t->out);
	print_range(t, first, a);
	print_range(t, side, b);
}

static void print_sources(const struct compare_text *t, const struct compare_side *side)
{
	const char *joint = "Try ";
	char used[200];

	if (!side->nondet)
		return;
	deterministic_names(side->nondet, used, sizeof(used));
	fprintf(t->out, "\n  %s made use of what varies between runs: %s.", side->name, used);
	for (u32 i = 0; i < ARRAY_SIZE(remedies); i++) {
		if (!(side->nondet & remedies[i].sources))
			continue;
		fprintf(t->out, "%s%s", *joint == 'T' ? "\n  Try " : joint, remedies[i].what);
		joint = "; ";
	}
	fputs(*joint == 'T' ? "\n" : ".\n", t->out);
}

static size_t argv_size(char *const *argv)
{
	size_t size = 0;

	for (; *argv; argv++)
		size += strlen(*argv) + 1;
	return size;
}

bool compare_lengths_text(const struct compare_job *job, const struct compare_side *side, char *buf,
			  size_t size)
{
	const struct compare_side *first = &job->sides[0];
	size_t was = argv_size(first->argv), is = argv_size(side->argv);
	bool differ = false;

	if (job->stored || was == is || !first->count_runs || !side->count_runs)
		return false;
	for (u32 i = 0; i < first->nr_counts && i < side->nr_counts; i++)
		differ |= first->counts[i].runs && side->counts[i].runs &&
			  side_count_median(&first->counts[i]) !=
				  side_count_median(&side->counts[i]);
	if (!differ)
		return false;
	snprintf(
		buf, size,
		"%s's command line is %zu bytes %s than %s's: that may change counts. Use paths of "
		"one length",
		side->name, is > was ? is - was : was - is, is > was ? "longer" : "shorter",
		first->name);
	return true;
}

static void print_counts(const struct compare_job *job, const struct compare_text *t,
			 const struct compare_side *side)
{
	const struct compare_side *first = &job->sides[0];

	if (!first->count_runs || !side->count_runs)
		return;
	fprintf(t->out, "\n  %-*s %*.*s %*.*s %*s\n", NAME_WIDTH,
		compare_is_virtual(job) ? "Counts" : "Counts of the kernel", COUNT_WIDTH,
		COUNT_WIDTH, first->name, COUNT_WIDTH, COUNT_WIDTH, side->name, CHANGE_WIDTH,
		"change");
	for (u32 i = 0; i < first->nr_counts && i < side->nr_counts; i++)
		print_count(t, first, side, i);
}

/* One command, whose counts were kept. */
static void print_alone(const struct compare_text *t, const struct compare_side *side)
{
	fprintf(t->out, "\n  %-*s %*.*s\n", NAME_WIDTH, "Counts", COUNT_WIDTH, COUNT_WIDTH,
		side->name);
	for (u32 i = 0; i < side->nr_counts; i++) {
		const struct side_count *c = &side->counts[i];

		if (!c->runs) {
			print_refused(t, c, c);
			continue;
		}
		fprintf(t->out, "  %-*s ", NAME_WIDTH, c->name);
		print_number(t, (double)side_count_median(c), COUNT_WIDTH);
		fputs(side_count_is_exact(c) ? "  exact\n" : "  varies\n", t->out);
		print_range(t, side, c);
	}
}

void compare_print_text(const struct compare_job *job)
{
	struct compare_text t = {.out = job->out, .width = terminal_of(job->out).width};

	number_style_init(&t.numbers);
	/* Shares and times have a point, which is not to stand between groups of digits as well. */
	if (strcmp(t.numbers.point, ".") != 0)
		t.numbers = number_plain;
	for (u32 i = 0; i < job->nr_sides; i++)
		fprintf(t.out, "%s: %s\n", job->sides[i].name, job->sides[i].title);
	if (job->nr_sides == 1)
		print_alone(&t, &job->sides[0]);
	for (u32 i = 1; i < job->nr_sides; i++)
		print_counts(job, &t, &job->sides[i]);
	if (job->symbols.period)
		compare_symbols_text(job, t.out);
	if (job->rounds)
		compare_times_text(job, t.out, isatty(fileno(t.out)) ? t.width : 0);
	for (u32 i = 0; i < job->nr_sides; i++) {
		char text[400];

		print_sources(&t, &job->sides[i]);
		if (i && compare_lengths_text(job, &job->sides[i], text, sizeof(text)))
			fprintf(t.out, "\n  %s.\n", text);
	}
	if (job->elsewhere)
		fprintf(t.out,
			"\n  The baseline was made %s: a program that asks for that may count "
			"differently.\n",
			job->elsewhere);
	for (u32 i = 0; i < job->nr_judged; i++) {
		char text[700];

		compare_judged_text(&job->judged[i], text, sizeof(text));
		fprintf(t.out, "%s  %s.\n", i ? "" : "\n", text);
	}
	if (compare_is_interrupted(job))
		fputs("\n  Interrupted: this is what there is so far.\n", t.out);
}
