#include "cli/record/record-modeled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/meter.h"
#include "abi/perf.h"
#include "base/check.h"
#include "cli/exact-threads.h"
#include "cli/modeled-events.h"
#include "cli/record/record-calls.h"
#include "data/profile-reader.h"
#include "data/synthesize.h"
#include "lib/machine/machine-pmu.h"
#include "model/model.h"

/* With --machine, and no -e. */
#define USUAL \
	"cycles:u,branch-misses:u,L1-dcache-load-misses:u,LLC-load-misses:u,dTLB-load-misses:u"

static bool is_instructions(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE &&
	       (attr->config & UINT32_MAX) == PERF_COUNT_HW_INSTRUCTIONS;
}

/* The counter of the model that an event is; MODEL_COUNTERS: none. */
static u32 counter_of(const struct perf_event_attr *attr)
{
	u64 config = attr->config & UINT32_MAX;
	u32 counter = MODEL_COUNTERS, id = config & 0xff, op = config >> 8 & 0xff,
	    result = config >> 16 & 0xff;

	if (!modeled_event(attr))
		return MODEL_COUNTERS;
	if (attr->type == PERF_TYPE_HARDWARE && config < PERF_COUNT_HW_MAX)
		counter = MODEL_CPU_CYCLES + (u32)config;
	if (attr->type == PERF_TYPE_HW_CACHE && id < MODEL_CACHE_IDS && op < MODEL_OPS &&
	    result <= PERF_COUNT_HW_CACHE_RESULT_MISS)
		counter = model_cache_counter(id, op, result == PERF_COUNT_HW_CACHE_RESULT_MISS);
	return counter < MODEL_COUNTERS && model_parts_of(counter) ? counter : MODEL_COUNTERS;
}

static int choose(struct record_modeled *m, struct ap_specs *specs)
{
	for (u32 i = 0; i < ap_specs_count(specs); i++) {
		const struct ap_spec *s = ap_specs_at(specs, i);
		u32 counter = counter_of(s->attr);

		if (is_instructions(s->attr))
			continue;
		if (counter == MODEL_COUNTERS)
			return command_error(&cmd_record,
					     "--exact counts instructions, and what a model of a "
					     "machine counts by its name, as cycles or "
					     "LLC-load-misses: not %s",
					     s->name);
		if (m->nr == PROFILED_EVENTS)
			return command_error(&cmd_record,
					     "--exact attributes at most %u events at once",
					     PROFILED_EVENTS);
		m->counter[m->nr++] = (u8)counter;
	}
	return 0;
}

int record_modeled_choose(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	struct record_modeled *m = &job->exact->modeled;
	const char *text = o->events ? o->events : o->machine ? USUAL : NULL;
	struct ap_specs *specs;
	struct ap_error err;
	int r;

	if (!text)
		return o->addresses ? command_error(&cmd_record,
						    "--exact with -d attributes modeled events to "
						    "data: it needs --machine or -e")
				    : 0;
	if (ap_specs_parse(&specs, job->machine, text, &err))
		return record_say(&err, NULL);
	r = choose(m, specs);
	ap_specs_free(specs);
	if (!r && m->nr)
		ap__pmu_profiled(job->machine, m->counter, m->nr,
				 o->alloc_sites ? SEGMENT_DATA | SEGMENT_SITES
				 : o->addresses ? SEGMENT_DATA
						: 0);
	return r;
}

/* As events[0], whose samples have the same fields. */
static void describe(struct record_job *job, u32 spec)
{
	struct record_modeled *m = &job->exact->modeled;
	struct ap_event *e = ap_counters_event(m->counters, spec, 0);
	struct data_event *d;
	char name[300];
	uint64_t id = 0;

	job->events = realloc(job->events, (job->nr_events + 1) * sizeof(*job->events));
	CHECK(job->events);
	d = &job->events[job->nr_events++];
	*d = (struct data_event){.attr = job->events[0].attr, .ids = calloc(1, sizeof(u64))};
	CHECK(d->ids);
	d->attr.type = ap_specs_at(m->specs, spec)->attr->type;
	d->attr.config = ap_specs_at(m->specs, spec)->attr->config;
	/* Of tasks the first one tells. */
	d->attr.mmap = d->attr.mmap2 = d->attr.mmap_data = d->attr.comm = d->attr.comm_exec =
		d->attr.task = 0;
	if (!ap_event_id(e, &id))
		d->ids[d->nr_ids++] = id;
	snprintf(name, sizeof(name), "%s%s", ap_specs_at(m->specs, spec)->name,
		 ap_counters_user_only(m->counters, spec) ? ":u" : "");
	d->name = strdup(name);
	CHECK(d->name);
}

/* Groups make no difference to what is counted. */
int record_modeled_open(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	struct record_modeled *m = &job->exact->modeled;
	struct ap_target target = AP_OPTS(ap_target, .command = job->child.command);
	struct ap_open_opts opts = AP_OPTS(ap_open_opts,
					   .flags = AP_OPEN_INHERIT | AP_OPEN_ON_EXEC |
						    AP_OPEN_USER_FALLBACK | AP_OPEN_NO_GROUP_READ);
	struct ap_error err;

	if (!m->nr)
		return 0;
	if (ap_specs_parse(&m->specs, job->machine, o->events ? o->events : USUAL, &err) ||
	    ap_counters_open(&m->counters, job->machine, m->specs, &target, &opts, &err))
		return record_say(&err, NULL);
	for (u32 i = 0; i < ap_specs_count(m->specs); i++)
		if (!is_instructions(ap_specs_at(m->specs, i)->attr))
			describe(job, i);
	return 0;
}

void record_modeled_release(struct record_modeled *m)
{
	ap_counters_close(m->counters);
	ap_specs_free(m->specs);
	*m = (struct record_modeled){0};
}

void record_modeled_event(const struct record_job *job, struct ap_sample_id *id, u32 i)
{
	const struct data_event *e = &job->events[1 + i];

	id->id = id->stream_id = e->nr_ids ? e->ids[0] : 0;
}

int record_modeled_put(const struct modeled_profile *p, u64 time, const struct profile_counts *c,
		       void *data)
{
	struct record_job *job = data;
	struct record_modeled *m = &job->exact->modeled;
	const struct data_synthesis to = {.layout = &job->layout, .put = job->take, .data = job};
	struct ap_sample_id id = {.pid = p->pid, .tid = p->tid, .time = time};
	int err = 0;

	for (u64 i = 0; i < c->nr && !err; i++) {
		const struct profile_count *n = &c->at[i];

		record_modeled_event(job, &id, n->event);
		err = data_synthesize_sample(&to, &id,
					     &(struct data_sample){.ip = n->pc,
								   .period = n->count,
								   .addr = n->addr,
								   .stack = p->stack});
	}
	for (u32 i = 0; i < m->nr && !err; i++) {
		m->total[i] += c->total[i];
		m->unplaced[i] += c->unplaced[i];
		record_modeled_event(job, &id, i);
		/* So that the sum is right. */
		if (c->unplaced[i])
			err = data_synthesize_sample(
				&to, &id,
				&(struct data_sample){.period = c->unplaced[i], .stack = p->stack});
	}
	m->places += c->nr;
	m->bad += c->bad;
	return err;
}

void record_modeled_check(struct record_job *job)
{
	struct record_modeled *m = &job->exact->modeled;

	if (!m->nr)
		return;
	/* What was counted beside. */
	(void)ap_counters_read(m->counters);
	for (u32 i = 0, event = 0; i < ap_specs_count(m->specs); i++) {
		struct ap_value v;

		if (is_instructions(ap_specs_at(m->specs, i)->attr))
			continue;
		(void)ap_counters_sum(m->counters, i, &v);
		if (v.value != m->total[event] && !job->opts.toggle)
			command_error(&cmd_record,
				      "the profile has %" PRIu64 " of %s and the counters %" PRIu64
				      "; they agree unless programs still run or "
				      "were killed",
				      m->total[event], job->events[1 + event].name, v.value);
		if (m->unplaced[event] > m->total[event] / 1000)
			command_error(&cmd_record,
				      "%" PRIu64 " of %s are counted, but not where they are",
				      m->unplaced[event], job->events[1 + event].name);
		event++;
	}
	if (m->bad)
		command_error(&cmd_record,
			      "THE PROFILE IS INCOMPLETE: %" PRIu64
			      " counts of modeled events make "
			      "no sense",
			      m->bad);
}
