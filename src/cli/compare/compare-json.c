/* JSON for programs: anyperf-compare-1 of doc/json.md. */
#include "cli/compare/compare-symbols.h"
#include "cli/compare/compare-text.h"
#include "cli/json.h"

static void print_reason(struct json *j, const struct ap_error *err)
{
	json_object(j, "reason");
	json_str(j, "cause", ap_cause_name(err->cause));
	json_s64(j, "errno", -err->code);
	json_str(j, "why", err->why);
	json_str(j, "remedy", err->remedy);
	json_end(j);
}

static void print_count(struct json *j, const struct side_count *c)
{
	json_object(j, NULL);
	json_str(j, "event", c->name);
	json_str(j, "status", c->runs ? "ok" : c->refused ? "not-supported" : "not-counted");
	if (c->runs) {
		json_u64(j, "value", side_count_median(c));
		json_bool(j, "exact", side_count_is_exact(c));
		json_array(j, "per_run");
		for (u32 i = 0; i < c->runs; i++)
			json_u64(j, NULL, c->run[i]);
		json_end(j);
	}
	if (c->refused)
		print_reason(j, &c->why);
	json_end(j);
}

static void print_times(struct json *j, const struct compare_job *job,
			const struct compare_side *side)
{
	static const char *const units[TIMED_QUANTITIES] = {"s", "s", "bytes", ""};

	json_array(j, "times");
	for (u32 q = 0; q < TIMED_QUANTITIES; q++) {
		struct spread s;

		spread_of(side->timed[q], job->rounds, &s);
		json_object(j, NULL);
		json_str(j, "quantity", timed_name((enum timed_quantity)q));
		json_str(j, "unit", units[q]);
		json_double(j, "median", s.median, 9);
		json_double(j, "min", s.min, 9);
		json_double(j, "low_quartile", s.low, 9);
		json_double(j, "high_quartile", s.high, 9);
		json_double(j, "max", s.max, 9);
		json_u64(j, "outliers", s.outliers);
		json_array(j, "per_run");
		for (u32 i = 0; i < job->rounds; i++)
			json_double(j, NULL, side->timed[q][i], 9);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void print_side(struct json *j, const struct compare_job *job,
		       const struct compare_side *side)
{
	json_object(j, NULL);
	json_str(j, "name", side->name);
	if (side->stored)
		json_str(j, "baseline", job->opts.baseline);
	json_array(j, "command");
	for (u32 i = 0; side->argv[i]; i++)
		json_str(j, NULL, side->argv[i]);
	json_end(j);
	if (side->count_runs) {
		if (compare_is_virtual(job) && !side->stored)
			deterministic_not_fixed_json(j, side->nondet);
		json_array(j, "counts");
		for (u32 i = 0; i < side->nr_counts; i++)
			print_count(j, &side->counts[i]);
		json_end(j);
	}
	if (job->rounds)
		print_times(j, job, side);
	json_end(j);
}

static void print_difference(struct json *j, const struct side_count *a, const struct side_count *b)
{
	double was = (double)side_count_median(a), is = (double)side_count_median(b);

	json_object(j, NULL);
	json_str(j, "event", b->name);
	json_bool(j, "exact", side_count_is_exact(a) && side_count_is_exact(b));
	json_s64(j, "change", (s64)(side_count_median(b) - side_count_median(a)));
	json_s64(j, "change_min", (s64)(side_count_min(b) - side_count_max(a)));
	json_s64(j, "change_max", (s64)(side_count_max(b) - side_count_min(a)));
	if (was > 0)
		json_double(j, "change_percent", (is / was - 1) * 100, 6);
	json_end(j);
}

static void print_ratio(struct json *j, enum timed_quantity q, const struct ratio *r)
{
	json_object(j, NULL);
	json_str(j, "quantity", timed_name(q));
	json_double(j, "ratio", r->value, 6);
	if (r->has_interval) {
		json_double(j, "ratio_low", r->low, 6);
		json_double(j, "ratio_high", r->high, 6);
	}
	json_str(j, "shown",
		 !r->has_interval ? "too-few-runs"
		 : r->low > 1     ? "more"
		 : r->high < 1    ? "less"
				  : "no-difference");
	json_end(j);
}

static void print_comparison(struct json *j, const struct compare_job *job,
			     const struct compare_side *side)
{
	const struct compare_side *first = &job->sides[0];
	struct ratio r;

	json_object(j, NULL);
	json_str(j, "of", side->name);
	json_str(j, "against", first->name);
	json_array(j, "counts");
	for (u32 i = 0; i < first->nr_counts && i < side->nr_counts; i++)
		if (first->counts[i].runs && side->counts[i].runs)
			print_difference(j, &first->counts[i], &side->counts[i]);
	json_end(j);
	if (job->symbols.period)
		compare_symbols_json(job, (u32)(side - job->sides), j);
	if (job->rounds) {
		json_array(j, "times");
		for (u32 q = 0; q < TIMED_QUANTITIES; q++)
			if (timed_ratio(job, side, (enum timed_quantity)q, &r))
				print_ratio(j, (enum timed_quantity)q, &r);
		json_end(j);
	}
	json_end(j);
}

static void print_judged(struct json *j, const struct compare_judged *judged)
{
	char text[700];

	compare_judged_text(judged, text, sizeof(text));
	json_object(j, NULL);
	json_str(j, "gate", judged->gate->text);
	json_str(j, "of", judged->side->name);
	json_str(j, "result", compare_result_name(judged->result));
	json_str(j, "text", text);
	json_end(j);
}

void compare_print_json(const struct compare_job *job)
{
	struct json j;

	json_begin(&j, job->out);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-compare-1");
	json_str(&j, "pmu", compare_is_virtual(job) ? "virtual" : "kernel");
	json_bool(&j, "interrupted", compare_is_interrupted(job));
	if (job->opts.from) {
		json_str(&j, "from", job->opts.from);
		json_str(&j, "to", job->opts.to);
	}
	if (job->elsewhere)
		json_str(&j, "baseline_made", job->elsewhere);
	json_array(&j, "commands");
	for (u32 i = 0; i < job->nr_sides; i++)
		print_side(&j, job, &job->sides[i]);
	json_end(&j);
	json_array(&j, "comparisons");
	for (u32 i = 1; i < job->nr_sides; i++)
		print_comparison(&j, job, &job->sides[i]);
	json_end(&j);
	json_array(&j, "gates");
	for (u32 i = 0; i < job->nr_judged; i++)
		print_judged(&j, &job->judged[i]);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}
