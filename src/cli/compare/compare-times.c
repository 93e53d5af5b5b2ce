/*
 * The time pass: native runs in rounds, each of the commands once in a round and in random order,
 * so that what the machine does meanwhile meets all of them alike.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "cli/compare/compare-priv.h"

#define ROUNDS_MIN 10
#define ROUNDS_MAX 200 /* by --for: more say little that these have not */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run_natively(struct compare_job *job, struct compare_side *side, struct compare_end *end)
{
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .pmu = AP_PMU_KERNEL);
	struct ap_command *command;

	if (!job->native)
		CHECK(!ap_machine_new(&job->native, &opts));
	if (compare_new(job, side, job->native, &command))
		return -1;
	return compare_run(job, side, command, end);
}

int compare_warm_up(struct compare_job *job)
{
	struct compare_end end;

	for (long n = 0; n < job->opts.warmup; n++) {
		for (u32 i = 0; i < job->nr_sides; i++) {
			if (job->sides[i].stored)
				continue;
			compare_progress(job, "warm-up: %s", job->sides[i].name);
			if (run_natively(job, &job->sides[i], &end))
				return -1;
		}
	}
	return 0;
}

static void take(struct compare_side *side, u32 round, const struct compare_end *end)
{
	double values[TIMED_QUANTITIES] = {
		[TIMED_ELAPSED] = (double)end->elapsed_ns / 1e9,
		[TIMED_CPU] = (double)(end->end.user_ns + end->end.system_ns) / 1e9,
		[TIMED_MEMORY] = (double)end->usage.ru_maxrss * 1024,
		[TIMED_FAULTS] = (double)(end->usage.ru_minflt + end->usage.ru_majflt),
	};

	for (u32 q = 0; q < TIMED_QUANTITIES; q++) {
		side->timed[q] = realloc(side->timed[q], (round + 1) * sizeof(double));
		CHECK(side->timed[q]);
		side->timed[q][round] = values[q];
	}
}

/* Fisher and Yates. */
static void shuffle(u32 *order, u32 n, u64 *state)
{
	for (u32 i = 0; i < n; i++)
		order[i] = i;
	for (u32 i = n; i > 1; i--) {
		u32 j = (u32)(random_next(state) >> 32) % i, swapped = order[i - 1];

		order[i - 1] = order[j];
		order[j] = swapped;
	}
}

static bool is_enough(const struct compare_job *job, double spent)
{
	if (job->opts.runs)
		return job->rounds >= (u32)job->opts.runs;
	return job->rounds >= ROUNDS_MIN && (spent >= job->opts.spend || job->rounds >= ROUNDS_MAX);
}

int compare_time(struct compare_job *job)
{
	u64 state = (u64)job->opts.deterministic.seed * 2 + 1;
	u32 order[COMPARE_SIDES_MAX] = {0};
	double start = now();

	while (!is_enough(job, now() - start)) {
		shuffle(order, job->nr_sides, &state);
		for (u32 i = 0; i < job->nr_sides; i++) {
			struct compare_side *side = &job->sides[order[i]];
			struct compare_end end;

			compare_progress(job, "times: round %u, %.0f s", job->rounds + 1,
					 now() - start);
			if (run_natively(job, side, &end))
				return -1;
			take(side, job->rounds, &end);
		}
		job->rounds++;
	}
	return 0;
}

const char *timed_name(enum timed_quantity q)
{
	static const char *const names[TIMED_QUANTITIES] = {"time", "cpu-time", "peak-memory",
							    "faults"};

	return names[q];
}

bool timed_ratio(const struct compare_job *job, const struct compare_side *side,
		 enum timed_quantity q, struct ratio *r)
{
	return ratio_of_medians(job->sides[0].timed[q], side->timed[q], job->rounds,
				(u64)job->opts.deterministic.seed, r);
}
