/* The times, for people: a line for each quantity, boxes, and how far they can be trusted. */
#include <math.h>
#include <string.h>

#include "cli/compare/compare-text.h"

#define NAME_WIDTH  14
#define VALUE_WIDTH 12
#define BOX_NAMES   12 /* columns for a command's name beside its box */
#define BOX_WIDTH   50
#define WIDE        90  /* a terminal from which on boxes are drawn */
#define NOISY       0.1 /* an interval of the time this wide says little */

static const char *const titles[TIMED_QUANTITIES] = {"time", "CPU time", "peak memory",
						     "page faults"};

void compare_quantity_text(enum timed_quantity q, double value, char *buf, size_t size)
{
	static const struct {
		double from, of;
		const char *name;
	} times[] = {{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {0, 1e-6, "us"}},
	  sizes[] = {{1e9, 1e9, "GB"}, {1e6, 1e6, "MB"}, {0, 1e3, "kB"}};
	int i = 0;

	if (q == TIMED_FAULTS) {
		snprintf(buf, size, "%.0f", value);
		return;
	}
	for (; i < 2 && value < (q == TIMED_MEMORY ? sizes : times)[i].from;)
		i++;
	snprintf(buf, size, "%.2f %s", value / (q == TIMED_MEMORY ? sizes : times)[i].of,
		 (q == TIMED_MEMORY ? sizes : times)[i].name);
}

const char *compare_verdict(enum timed_quantity q, const struct ratio *r)
{
	bool is_time = q == TIMED_ELAPSED || q == TIMED_CPU;

	if (!r->has_interval)
		return "too few runs to tell";
	if (r->low > 1)
		return is_time ? "slower" : "more";
	if (r->high < 1)
		return is_time ? "faster" : "less";
	return "no difference shown";
}

static void print_quantity(const struct compare_job *job, FILE *out,
			   const struct compare_side *side, enum timed_quantity q)
{
	char was[32], is[32], interval[48] = "";
	struct spread a, b;
	struct ratio r;

	spread_of(job->sides[0].timed[q], job->rounds, &a);
	spread_of(side->timed[q], job->rounds, &b);
	compare_quantity_text(q, a.median, was, sizeof(was));
	compare_quantity_text(q, b.median, is, sizeof(is));
	fprintf(out, "  %-*s %*s %*s", NAME_WIDTH, titles[q], VALUE_WIDTH, was, VALUE_WIDTH, is);
	if (!timed_ratio(job, side, q, &r)) {
		fputs("   no ratio: there is nothing to divide by\n", out);
		return;
	}
	if (r.has_interval)
		snprintf(interval, sizeof(interval), "[%+.1f, %+.1f]", (r.low - 1) * 100,
			 (r.high - 1) * 100);
	fprintf(out, " %+8.1f %% %-17s %s\n", (r.value - 1) * 100, interval,
		compare_verdict(q, &r));
}

static u32 column(double value, double from, double to)
{
	return to > from ? (u32)((value - from) / (to - from) * (BOX_WIDTH - 1)) : 0;
}

/* From the smallest to the largest, the middle half as a box, the median as a bar in it. */
static void print_box(FILE *out, const struct compare_side *side, const struct spread *s,
		      double from, double to)
{
	char line[BOX_WIDTH + 1];

	memset(line, ' ', sizeof(line));
	line[BOX_WIDTH] = 0;
	for (u32 i = column(s->min, from, to); i <= column(s->max, from, to); i++)
		line[i] = '-';
	for (u32 i = column(s->low, from, to); i <= column(s->high, from, to); i++)
		line[i] = '=';
	line[column(s->median, from, to)] = '|';
	fprintf(out, "  %-*.*s %s\n", BOX_NAMES, BOX_NAMES, side->name, line);
}

static void print_boxes(const struct compare_job *job, FILE *out)
{
	struct spread s[COMPARE_SIDES_MAX];
	char from_text[32], to_text[32];
	double from = INFINITY, to = 0;

	for (u32 i = 0; i < job->nr_sides; i++) {
		spread_of(job->sides[i].timed[TIMED_ELAPSED], job->rounds, &s[i]);
		from = s[i].min < from ? s[i].min : from;
		to = s[i].max > to ? s[i].max : to;
	}
	fputc('\n', out);
	for (u32 i = 0; i < job->nr_sides; i++)
		print_box(out, &job->sides[i], &s[i], from, to);
	compare_quantity_text(TIMED_ELAPSED, from, from_text, sizeof(from_text));
	compare_quantity_text(TIMED_ELAPSED, to, to_text, sizeof(to_text));
	fprintf(out, "  %*s %-*s%s\n", BOX_NAMES, "time", BOX_WIDTH - (int)strlen(to_text),
		from_text, to_text);
}

/* The first note has an empty line above it. */
static const char *above(bool *any)
{
	const char *text = *any ? "  " : "\n  ";

	*any = true;
	return text;
}

static void print_trust(const struct compare_job *job, FILE *out)
{
	bool any = false;

	for (u32 i = 0; i < job->nr_sides; i++) {
		struct spread s;
		struct ratio r;

		spread_of(job->sides[i].timed[TIMED_ELAPSED], job->rounds, &s);
		if (s.outliers)
			fprintf(out,
				"%s%u of %u times of %s are outliers; the longest is %.1f times "
				"the median.\n",
				above(&any), s.outliers, s.n, job->sides[i].name,
				s.median > 0 ? s.max / s.median : 0);
		/* Who takes a multiple is told from the other all the same. */
		if (i && timed_ratio(job, &job->sides[i], TIMED_ELAPSED, &r) &&
		    r.high - r.low > NOISY * r.value && r.low < 2 && r.high > 0.5)
			fprintf(out,
				"%sThe interval of %s's time is wide: the machine is noisy. Trust "
				"counts, or take more --runs.\n",
				above(&any), job->sides[i].name);
	}
}

void compare_times_text(const struct compare_job *job, FILE *out, int width)
{
	for (u32 i = 1; i < job->nr_sides; i++) {
		char heading[32];

		snprintf(heading, sizeof(heading), "Of %u runs", job->rounds);
		fprintf(out, "\n  %-*s %*.*s %*.*s %10s %s\n", NAME_WIDTH, heading, VALUE_WIDTH,
			VALUE_WIDTH, job->sides[0].name, VALUE_WIDTH, VALUE_WIDTH,
			job->sides[i].name, "change", "95 % interval");
		for (u32 q = 0; q < TIMED_QUANTITIES; q++)
			print_quantity(job, out, &job->sides[i], (enum timed_quantity)q);
	}
	if (width >= WIDE)
		print_boxes(job, out);
	print_trust(job, out);
}
