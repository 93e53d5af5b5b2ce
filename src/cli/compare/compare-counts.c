/*
 * The counts pass: each command on a machine of its own, in turns, twice; more often if the two
 * runs do not agree.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/meter.h"
#include "base/check.h"
#include "cli/compare/compare-region.h"
#include "cli/report/report.h"
#include "lib/refusal/fail.h"

#define DEFAULT_EVENTS "instructions,branches"

static int fail(struct compare_job *job, const struct ap_error *err)
{
	char text[1100];

	job->status = cmd_compare.failure;
	compare_progress(job, "%s", "");
	return command_error(&cmd_compare, "%s", ap_error_text(err, text, sizeof(text)));
}

static void name_counts(const struct compare_job *job, struct compare_side *side)
{
	side->nr_counts = ap_specs_count(side->specs);
	side->counts = calloc(side->nr_counts, sizeof(*side->counts));
	CHECK(side->counts);
	for (u32 i = 0; i < side->nr_counts; i++) {
		const struct ap_spec *spec = ap_specs_at(side->specs, i);

		/* Between two places nothing but user mode is counted. */
		side->counts[i].name = report_event_name(
			spec, job->opts.from && !(spec->flags & AP_SPEC_PRIV_GIVEN));
	}
}

/* The same events in the groups of the two places. */
static int prepare_region(struct compare_job *job, struct compare_side *side, const char *events)
{
	char *text = compare_region_events(job, side, events);
	struct ap_error err;
	int r;

	job->status = cmd_compare.failure;
	if (!text)
		return -1;
	ap_specs_free(side->specs);
	side->specs = NULL;
	r = ap_specs_parse(&side->specs, side->machine, text, &err);
	free(text);
	if (r)
		return fail(job, &err);
	job->status = 0;
	return 0;
}

struct ap_machine *compare_new_machine(const struct compare_job *job)
{
	const struct deterministic_opts *d = &job->opts.deterministic;
	struct ap_virtual_opts virtual_opts =
		AP_OPTS(ap_virtual_opts, .flags = AP_VIRTUAL_DETERMINISTIC, .seed = (u64)d->seed,
			/* Without being asked only what no machine decides. */
			.machine = job->opts.machine ? job->opts.machine : "none",
			.cpu_features = d->cpu, .cpus = (unsigned int)d->cpus);
	struct ap_machine_opts opts = AP_OPTS(
		ap_machine_opts, .pmu = compare_is_virtual(job) ? AP_PMU_VIRTUAL : AP_PMU_KERNEL,
		.virtual_pmu = &virtual_opts);
	struct ap_machine *m;

	CHECK(!ap_machine_new(&m, &opts));
	return m;
}

/* The machine that counts a command, and the events on it. */
static int prepare(struct compare_job *job, struct compare_side *side)
{
	const char *events = job->opts.events ? job->opts.events : DEFAULT_EVENTS;
	struct ap_error err;

	side->machine = compare_new_machine(job);
	if (ap_machine_choose(side->machine, events, &err) ||
	    ap_specs_parse(&side->specs, side->machine, events, &err))
		return fail(job, &err);
	name_counts(job, side);
	return job->opts.from ? prepare_region(job, side, events) : 0;
}

/* What opening has told: which events there are not, and which are of user mode only. */
static void note_opened(struct compare_side *side, const struct ap_counters *counters)
{
	for (u32 i = 0; i < side->nr_counts; i++) {
		struct side_count *c = &side->counts[i];
		const struct ap_error *err = ap_counters_error(counters, i);

		c->refused = err != NULL;
		if (err)
			c->why = *err;
		if (err || !ap_counters_user_only(counters, i))
			continue;
		free(c->name);
		c->name = report_event_name(ap_specs_at(side->specs, i), true);
	}
}

static void read_counts(struct compare_side *side, struct ap_counters *counters)
{
	(void)ap_counters_read(counters);
	for (u32 i = 0; i < side->nr_counts; i++) {
		struct side_count *c = &side->counts[i];
		struct ap_value sum;
		u64 value;

		if (ap_counters_sum(counters, i, &sum) == AP_STATUS_OK &&
		    ap_value_scale(&sum, &value) != AP_NOT_COUNTED)
			c->run[c->runs++] = value;
	}
	side->count_runs++;
}

/* Runs the command, with its counters or its sampler open. */
static int run_counted(struct compare_job *job, struct compare_side *side,
		       struct ap_command *command)
{
	struct compare_end end;

	if (compare_run(job, side, command, &end))
		return -1;
	if (compare_is_virtual(job))
		side->nondet |= deterministic_sources(side->machine, end.end.status);
	return 0;
}

static int count_all(struct compare_job *job, struct compare_side *side, struct ap_command *command)
{
	struct ap_target target = AP_OPTS(ap_target, .command = command);
	struct ap_open_opts open = AP_OPTS(ap_open_opts,
					   .flags = AP_OPEN_PARTIAL | AP_OPEN_USER_FALLBACK |
						    AP_OPEN_INHERIT | AP_OPEN_ON_EXEC);
	struct ap_counters *counters;
	struct ap_error err;
	int r;

	if (ap_counters_open(&counters, side->machine, side->specs, &target, &open, &err)) {
		ap_command_free(command);
		return fail(job, &err);
	}
	note_opened(side, counters);
	r = run_counted(job, side, command);
	if (!r)
		read_counts(side, counters);
	ap_counters_close(counters);
	return r;
}

static int count_region(struct compare_job *job, struct compare_side *side,
			struct ap_command *command)
{
	u64 *sums = calloc(side->nr_counts, sizeof(*sums));
	struct ap_sampler *sampler;
	struct ap_error err;
	int r;

	CHECK(sums);
	if (compare_region_open(side, command, &sampler, &err)) {
		free(sums);
		ap_command_free(command);
		return fail(job, &err);
	}
	r = run_counted(job, side, command);
	if (!r && compare_region_read(job, side, sampler, sums) < 0) {
		job->status = 2;
		r = -1;
	}
	for (u32 i = 0; i < side->nr_counts && !r; i++)
		side->counts[i].run[side->counts[i].runs++] = sums[i];
	side->count_runs += !r;
	ap_sampler_close(sampler);
	free(sums);
	return r;
}

static int count_once(struct compare_job *job, struct compare_side *side)
{
	struct ap_command *command;

	compare_progress(job, "counts: %s, run %u", side->name, side->count_runs + 1);
	if (compare_new(job, side, side->machine, &command))
		return -1;
	return job->opts.from ? count_region(job, side, command) : count_all(job, side, command);
}

bool side_count_is_exact(const struct side_count *c)
{
	return c->runs >= COUNT_RUNS_MIN && side_count_min(c) == side_count_max(c);
}

u64 side_count_min(const struct side_count *c)
{
	u64 v = c->runs ? c->run[0] : 0;

	for (u32 i = 1; i < c->runs; i++)
		v = min_u64(v, c->run[i]);
	return v;
}

u64 side_count_max(const struct side_count *c)
{
	u64 v = 0;

	for (u32 i = 0; i < c->runs; i++)
		v = max_u64(v, c->run[i]);
	return v;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

u64 side_count_median(const struct side_count *c)
{
	u64 sorted[COUNT_RUNS_MAX];

	memcpy(sorted, c->run, sizeof(sorted));
	qsort(sorted, c->runs, sizeof(*sorted), by_value);
	return c->runs ? sorted[(c->runs - 1) / 2] : 0;
}

static bool is_settled(const struct compare_side *side)
{
	if (side->stored)
		return true;
	if (side->count_runs < COUNT_RUNS_MIN)
		return false;
	for (u32 i = 0; i < side->nr_counts; i++)
		if (side->counts[i].runs && !side_count_is_exact(&side->counts[i]))
			return side->count_runs >= COUNT_RUNS_MAX;
	return true;
}

int compare_prepare_counts(struct compare_job *job)
{
	for (u32 i = 0; i < job->nr_sides; i++)
		if (!job->sides[i].stored && prepare(job, &job->sides[i]))
			return -1;
	return 0;
}

/*
 * What a program makes of the time, a seed for instance, is often the same for a second. Two runs
 * within one would agree by chance, and when in a run it asks is not known: @second is that of the
 * last one's end.
 */
static void part_runs(struct compare_job *job, s64 second)
{
	for (u32 i = 0; i < job->nr_sides; i++) {
		const struct compare_side *side = &job->sides[i];

		if (side->nondet & NONDET_TIME && !is_settled(side)) {
			compare_wait_for_second(job, second);
			return;
		}
	}
}

int compare_count(struct compare_job *job)
{
	struct timespec last = {0};

	for (u32 round = 0; round < COUNT_RUNS_MAX; round++) {
		if (round)
			part_runs(job, last.tv_sec);
		for (u32 i = 0; i < job->nr_sides; i++) {
			if (compare_is_interrupted(job))
				return -1;
			if (is_settled(&job->sides[i]))
				continue;
			if (count_once(job, &job->sides[i]))
				return -1;
			clock_gettime(CLOCK_REALTIME, &last);
		}
	}
	return 0;
}
