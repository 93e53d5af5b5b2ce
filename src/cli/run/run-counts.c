#include "cli/run/run-counts.h"

#include <string.h>
#include <time.h>

#include "abi/perf.h"

/* In the order of enum meter_quantity, which is that of the PMU's attr.config. */
static const struct {
	const char *name;  /* in JSON */
	const char *event; /* what `anyperf stat -e` calls it */
	enum report_kind kind;
} quantities[RUN_EVENTS] = {
	[METER_INSTRUCTIONS] = {"instructions", "instructions:u", KIND_INSTRUCTIONS},
	[METER_BRANCHES] = {"branches", "branches:u", KIND_BRANCHES},
	[METER_CONDITIONAL] = {"conditional", "anyperf/conditional/u", KIND_OTHER},
	[METER_TAKEN] = {"taken", "anyperf/taken/u", KIND_OTHER},
	[METER_CALLS] = {"calls", "anyperf/calls/u", KIND_OTHER},
	[METER_RETURNS] = {"returns", "anyperf/returns/u", KIND_OTHER},
	[METER_INDIRECT] = {"indirect", "anyperf/indirect/u", KIND_OTHER},
};

const char *run_count_name(enum meter_quantity q)
{
	return quantities[q].name;
}

/* One group, by numbers: names of a PMU would have to be looked up in files of the session. */
static void describe(char *text, size_t size)
{
	size_t len = (size_t)snprintf(text, size, "{");

	for (u32 q = 0; q < RUN_EVENTS; q++)
		len += (size_t)snprintf(text + len, size - len, "%s%u:%u", q ? "," : "",
					(u32)PE_TYPE_ANYPERF, q);
	snprintf(text + len, size - len, "}:u");
}

int run_counts_open(struct run_counts *c, struct ap_machine *m, struct ap_command *command,
		    struct ap_error *err)
{
	struct ap_target target = AP_OPTS(ap_target, .command = command);
	struct ap_open_opts opts = AP_OPTS(ap_open_opts,
					   .flags = AP_OPEN_INHERIT | AP_OPEN_ON_EXEC);
	char text[128];
	int r;

	describe(text, sizeof(text));
	r = ap_specs_parse(&c->specs, m, text, err);
	if (!r)
		r = ap_counters_open(&c->counters, m, c->specs, &target, &opts, err);
	return r;
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

void run_counts_start(struct run_counts *c)
{
	c->start_ns = now_ns();
}

int run_counts_report(struct run_counts *c, struct report *r)
{
	static const struct report_unit whole;
	u32 unit;
	int err;

	for (u32 q = 0; q < RUN_EVENTS; q++)
		c->events[q] = (struct report_event){
			.spec = (s32)q,
			.name = quantities[q].event,
			.unit = "",
			.scale = 1,
			.kind = quantities[q].kind,
			.exact = true,
		};
	report_init(r, AGGR_GLOBAL, c->events, RUN_EVENTS);
	r->runs = 1;
	series_add(&r->elapsed, (double)(now_ns() - c->start_ns) / 1e9);
	unit = report_find_unit(r, &whole);
	err = ap_counters_read(c->counters);
	for (u32 q = 0; q < RUN_EVENTS; q++) {
		struct ap_value sum;
		enum ap_status status = ap_counters_sum(c->counters, q, &sum);

		report_add(r, q, unit, status, &sum, true);
	}
	return err;
}

void run_counts_close(struct run_counts *c)
{
	ap_counters_close(c->counters);
	ap_specs_free(c->specs);
	memset(c, 0, sizeof(*c));
}
