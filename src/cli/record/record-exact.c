/*
 * `--exact`: at the end, what the translator has counted of each instruction becomes samples, one
 * for each instruction of each thread, whose period is how often it was executed. So a recording is
 * as others are, and whatever adds up periods shows it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/record/record-calls.h"
#include "data/synthesize.h"
#include "lib/command.h"
#include "lib/machine/machine-pmu.h"

int record_exact_begin(struct record_job *job)
{
	struct ap_error err;

	job->exact = calloc(1, sizeof(*job->exact));
	CHECK(job->exact);
	if (record_modeled_choose(job))
		return -1;
	if (record_has_calls(job))
		record_calls_begin(job);
	else
		ap__pmu_exact(job->machine);
	if (ap__pmu_want(job->machine, "asked for by --exact", &err))
		return record_say(&err, NULL);
	if (!ap__machine_virtual(job->machine))
		return command_error(&cmd_record,
				     "--exact does not work in a program that runs under `anyperf "
				     "run` itself");
	return 0;
}

void record_exact_release(struct record_job *job)
{
	struct record_exact *x = job->exact;

	if (!x)
		return;
	record_calls_release(job);
	record_modeled_release(&x->modeled);
	exact_threads_release(&x->threads);
	free(x);
	job->exact = NULL;
}

void record_exact_describe(struct data_event *d)
{
	d->attr.type = PERF_TYPE_HARDWARE;
	d->attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	d->attr.freq = 0;
	d->attr.sample_period = 1;
	free((char *)d->name);
	d->name = strdup("instructions:u");
	CHECK(d->name);
}

void record_exact_note(struct record_job *job, const void *records, size_t len)
{
	const u8 *p = records, *end = p + len;
	struct perf_event_header h;
	struct ap_record rec;
	struct ap_error err;

	for (; (size_t)(end - p) >= sizeof(h); p += h.size) {
		memcpy(&h, p, sizeof(h));
		if (h.size < sizeof(h) || h.size > (size_t)(end - p))
			return;
		if (h.type == PERF_RECORD_SAMPLE ||
		    ap_record_decode(&rec, p, h.size, &job->layout, &err) < 0)
			continue;
		exact_threads_note(&job->exact->threads, &rec);
		if (record_has_calls(job))
			record_calls_note(job, &rec);
	}
}

static int put_thread(const struct path_thread *t, u64 time, const struct path_counts *c,
		      void *data)
{
	struct record_job *job = data;
	const struct data_synthesis s = {.layout = &job->layout, .put = job->take, .data = job};
	struct ap_sample_id id = {.pid = t->pid, .tid = t->tid, .time = time};
	int err = 0;

	if (job->events[0].nr_ids)
		id.id = id.stream_id = job->events[0].ids[0];
	for (u32 i = 0; i < c->nr_insns && !err; i++) {
		id.time = c->insn[i].time ?: time;
		err = data_synthesize_sample(
			&s, &id,
			&(struct data_sample){.ip = c->insn[i].pc, .period = c->insn[i].count});
	}
	id.time = time;
	/* So that the sum is right. */
	if (c->unplaced > 0 && !err)
		err = data_synthesize_sample(&s, &id,
					     &(struct data_sample){.period = (u64)c->unplaced});
	job->exact->insns += c->nr_insns;
	return err;
}

/* Its blocks are in no row of their own then, which would look as if it had none. */
static void check_allocators(const struct record_job *job, const struct guest_segment *segment)
{
	char name[16], others[40] = "";
	u32 nr = job->opts.alloc_sites ? ap__segment_no_allocator(segment, name) : 0;

	if (nr > 1)
		snprintf(others, sizeof(others), ", nor in %u other program%s", nr - 1,
			 nr > 2 ? "s" : "");
	if (nr)
		command_error(
			&cmd_record,
			"no allocator was found in '%s'%s, so what was allocated is one heap: "
			"--alloc-sites knows malloc and others by their names, which a "
			"static program has in its symbol table alone; do not strip it, or "
			"link it dynamically",
			name, others);
}

void record_exact_write(struct record_job *job)
{
	const struct guest_segment *segment = ap__machine_segment(job->machine);
	struct record_exact *x = job->exact;
	const struct exact_take take = {.thread = put_thread,
					.modeled = x->modeled.nr ? record_modeled_put : NULL,
					.nr_modeled = x->modeled.nr,
					.data = job};
	u64 meters;

	if (!segment)
		return;
	if (record_has_calls(job))
		record_calls_write(job);
	else if (!(segment->config.flags & SEGMENT_EXACT))
		return;
	else if (exact_threads_read(&x->threads, segment, &take)) {
		job->broken = true;
		command_error(&cmd_record, "there is not enough memory for the counts of all "
					   "instructions; the recording lacks some");
	}
	record_modeled_check(job);
	check_allocators(job, segment);
	if (!job->opts.toggle && !exact_threads_agree(&x->threads, segment, &meters))
		command_error(&cmd_record,
			      "the profile has %" PRIu64 " instructions and the counters %" PRIu64
			      "; they agree unless programs still run",
			      x->threads.instructions, meters);
	exact_say_lost(&cmd_record, x->threads.lost, x->threads.bad, x->threads.unplaced);
}

void record_exact_summary(const struct record_job *job, const char *where)
{
	const struct record_exact *x = job->exact;

	fprintf(stderr,
		"anyperf record: %" PRIu64 " instructions were executed, at %" PRIu64
		" places; %.3f MB in %s\n",
		x->threads.instructions, x->insns, (double)job->bytes / 1e6, where);
}
