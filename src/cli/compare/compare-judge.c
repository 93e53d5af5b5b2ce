/* The gates of --fail-if on what was measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/compare/compare-text.h"

/* "instructions:u" and "instructions" are the same to who writes a gate. */
static size_t plain_length(const char *name)
{
	size_t len = strlen(name);

	if (len > 2 && !strcmp(name + len - 2, ":u"))
		return len - 2;
	return len > 2 && !strcmp(name + len - 2, "/u") ? len - 1 : len;
}

static bool is_event(const struct side_count *c, const char *name)
{
	size_t len = plain_length(name);

	return plain_length(c->name) == len && !strncmp(c->name, name, len);
}

static const struct side_count *find_count(const struct compare_side *side, const char *name)
{
	for (u32 i = 0; i < side->nr_counts; i++)
		if (is_event(&side->counts[i], name))
			return &side->counts[i];
	return NULL;
}

static int find_quantity(const char *name)
{
	for (int q = 0; q < TIMED_QUANTITIES; q++)
		if (!strcmp(name, timed_name((enum timed_quantity)q)))
			return q;
	return -1;
}

static int check_timed(const struct compare_job *job, const struct gate *g, int q)
{
	bool seconds = q == TIMED_ELAPSED || q == TIMED_CPU;

	if (job->opts.counts_only)
		return command_error(&cmd_compare,
				     "--fail-if: '%s' is about native runs, and with %s there "
				     "are none",
				     g->text,
				     job->opts.baseline ? "--baseline"
				     : job->opts.save   ? "--save"
				     : job->opts.from   ? "--from"
							: "--counts-only");
	if (!g->percent && (seconds != (g->unit == 's') || (q == TIMED_FAULTS && g->unit)))
		return command_error(&cmd_compare,
				     "--fail-if: the limit of '%s' wants a unit that fits: %s",
				     g->text,
				     seconds             ? "%, s, ms, us or ns"
				     : q == TIMED_MEMORY ? "%, kB, MB, GB or none for bytes"
							 : "% or none");
	return 0;
}

int compare_check_gates(const struct compare_job *job)
{
	for (u32 i = 0; i < job->opts.nr_gates; i++) {
		const struct gate *g = &job->opts.gates[i];
		int q = find_quantity(g->name);

		if (q >= 0) {
			if (check_timed(job, g, q))
				return -1;
			continue;
		}
		if (job->opts.time_only)
			return command_error(&cmd_compare,
					     "--fail-if: '%s' is about a count, and with "
					     "--time-only there are none",
					     g->text);
		if (!find_count(&job->sides[job->nr_sides - 1], g->name))
			return command_error(&cmd_compare,
					     "--fail-if: %s is not counted; -e %s counts it",
					     g->name, g->name);
		if (g->unit)
			return command_error(&cmd_compare,
					     "--fail-if: the limit of '%s' has a unit, and a count "
					     "has none",
					     g->text);
	}
	return 0;
}

static double percent(double now, double was)
{
	if (was > 0)
		return (now / was - 1) * 100;
	return now > 0 ? INFINITY : 0;
}

static bool change_of_count(const struct side_count *a, const struct side_count *b, bool relative,
			    struct gate_change *c)
{
	double was = (double)side_count_median(a), is = (double)side_count_median(b);
	double was_min = (double)side_count_min(a), was_max = (double)side_count_max(a);
	double is_min = (double)side_count_min(b), is_max = (double)side_count_max(b);

	if (!a->runs || !b->runs)
		return false;
	if (relative)
		*c = (struct gate_change){percent(is, was), percent(is_min, was_max),
					  percent(is_max, was_min)};
	else
		*c = (struct gate_change){is - was, is_min - was_max, is_max - was_min};
	return true;
}

static void judge_count(struct compare_judged *j, const struct compare_job *job)
{
	const struct side_count *a = find_count(&job->sides[0], j->gate->name);
	const struct side_count *b = find_count(j->side, j->gate->name);

	if (a && b && change_of_count(a, b, j->gate->percent, &j->change)) {
		j->known = true;
		j->result = gate_judge(j->gate, &j->change);
		return;
	}
	a = a && a->refused ? a : b;
	snprintf(j->why, sizeof(j->why), "%.250s",
		 a && a->refused ? a->why.why : "it was not counted");
}

static void judge_time(struct compare_judged *j, const struct compare_job *job,
		       enum timed_quantity q)
{
	struct ratio r;

	if (!timed_ratio(job, j->side, q, &r)) {
		snprintf(j->why, sizeof(j->why), "there is nothing to divide by");
		return;
	}
	j->known = true;
	/* Where one of few runs was held up the ratio may be anything, but not the difference. */
	if (j->gate->percent)
		j->change = (struct gate_change){(r.value - 1) * 100, (r.low - 1) * 100,
						 (r.high - 1) * 100};
	else
		j->change = (struct gate_change){r.more, r.more_low, r.more_high};
	j->result = gate_judge(j->gate, &j->change);
	if (r.has_interval)
		return;
	j->result = GATE_INCONCLUSIVE;
	snprintf(j->why, sizeof(j->why), "fewer than %d runs", ROUNDS_FOR_INTERVAL);
}

int compare_judge(struct compare_job *job)
{
	u32 n = 0;
	int status = 0;

	job->judged = calloc(job->opts.nr_gates * job->nr_sides + 1, sizeof(*job->judged));
	CHECK(job->judged);
	for (u32 i = 0; i < job->opts.nr_gates; i++) {
		for (u32 s = 1; s < job->nr_sides; s++) {
			struct compare_judged *j = &job->judged[n++];
			int q;

			j->gate = &job->opts.gates[i];
			j->side = &job->sides[s];
			j->result = GATE_INCONCLUSIVE;
			q = find_quantity(j->gate->name);
			if (q >= 0)
				judge_time(j, job, (enum timed_quantity)q);
			else
				judge_count(j, job);
			if (j->result == GATE_BROKEN)
				status = 1;
			else if (j->result == GATE_INCONCLUSIVE && !status)
				status = 2;
		}
	}
	job->nr_judged = n;
	return status;
}

const char *compare_result_name(enum gate_result result)
{
	static const char *const names[] = {
		[GATE_HELD] = "held",
		[GATE_BROKEN] = "broken",
		[GATE_INCONCLUSIVE] = "inconclusive",
	};

	return names[result];
}

static void change_text(const struct compare_judged *j, double v, char *buf, size_t size)
{
	char value[32];

	if (j->gate->percent) {
		snprintf(buf, size, "%+.*f %%", j->gate->unit ? 1 : 3, v);
		return;
	}
	if (!j->gate->unit) {
		snprintf(buf, size, "%+.0f", v);
		return;
	}
	compare_quantity_text(j->gate->unit == 's' ? TIMED_ELAPSED : TIMED_MEMORY, fabs(v), value,
			      sizeof(value));
	snprintf(buf, size, "%s%s", v < 0 ? "-" : "+", value);
}

void compare_judged_text(const struct compare_judged *j, char *buf, size_t size)
{
	char value[48], low[48], high[48];

	if (!j->known) {
		snprintf(buf, size, "%s: not to be told of %s: %s", j->gate->text, j->side->name,
			 j->why);
		return;
	}
	change_text(j, j->change.value, value, sizeof(value));
	change_text(j, j->change.low, low, sizeof(low));
	change_text(j, j->change.high, high, sizeof(high));
	if (*j->why)
		snprintf(buf, size, "%s: %s: %s is %s, of %s", j->gate->text,
			 compare_result_name(j->result), j->side->name, value, j->why);
	else if (j->change.low < j->change.high)
		snprintf(buf, size, "%s: %s: %s is %s, between %s and %s", j->gate->text,
			 compare_result_name(j->result), j->side->name, value, low, high);
	else
		snprintf(buf, size, "%s: %s: %s is %s", j->gate->text,
			 compare_result_name(j->result), j->side->name, value);
}
