/* On what it is sampled, and with which buffers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/perf.h"
#include "base/check.h"
#include "cli/record/record-calls.h"
#include "cli/record/record-priv.h"
#include "lib/count/target.h"

int record_say(const struct ap_error *err, const char *what)
{
	char text[1100];

	ap_error_text(err, text, sizeof(text));
	return command_error(&cmd_record, "%s%s%s", what ? what : "", what ? ": " : "", text);
}

static int parse_pids(struct record_job *job, const char *text, const char *option)
{
	const char *p = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (end == p || errno || pid <= 0 || pid > 1 << 30 || (*end && *end != ','))
			return command_error(&cmd_record,
					     "%s: '%s' is not a list of numbers like 12,34", option,
					     text);
		job->pids = realloc(job->pids, (job->nr_pids + 1) * sizeof(*job->pids));
		CHECK(job->pids);
		job->pids[job->nr_pids++] = (pid_t)pid;
		if (!*end)
			return 0;
		p = end + 1;
	}
}

/* kernel.perf_event_max_sample_rate, or 0. */
static u64 max_rate(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned long long rate = 0;

	if (f) {
		if (fscanf(f, "%llu", &rate) != 1)
			rate = 0;
		fclose(f);
	}
	return rate;
}

/* As perf does: what is over the kernel's limit becomes the limit, and is said. */
static u64 frequency(const struct record_opts *o)
{
	u64 wanted = o->freq ? (u64)o->freq : 999, limit;

	if (o->period)
		return 0;
	if (!o->freq_max && wanted < 1000)
		return wanted; /* who lowers the limit below that is told by the kernel's refusal */
	limit = max_rate();
	if (o->freq_max || (limit && wanted > limit)) {
		if (!o->freq_max || o->verbose)
			fprintf(stderr,
				"anyperf record: %llu samples a second, as "
				"kernel.perf_event_max_sample_rate allows\n",
				(unsigned long long)limit);
		return limit ? limit : wanted;
	}
	return wanted;
}

/*
 * A buffer holds what comes while something else has the CPU. The default is for some 4,000 samples
 * a second with call chains; who asks for more gets more.
 */
static u32 pages_for(const struct record_opts *o, u64 freq)
{
	u32 pages = 128;

	if (o->pages || freq <= 4000)
		return (u32)o->pages; /* 0: the default */
	while (freq > 4000 && pages < 4096) {
		pages *= 2;
		freq /= 2;
	}
	return pages;
}

static struct ap_target target_of(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	struct ap_target t = AP_OPTS(ap_target, .cpus = o->all_cpus ? "all" : o->cpus,
				     .cgroup = o->cgroup);

	if (o->pids) {
		t.pids = job->pids;
		t.npids = job->nr_pids;
	} else if (o->tids) {
		t.tids = job->pids;
		t.ntids = job->nr_pids;
	} else if (!record_opts_has_target(o)) {
		t.command = job->child.command;
	}
	return t;
}

static bool has_tasks(const struct record_opts *o)
{
	return o->overwrite || o->delay_ms || o->control || o->all_cpus || o->cpus || o->cgroup;
}

static int open_sampler(struct record_job *job, struct ap_sampler **out, struct ap_specs *specs,
			bool on_exec, unsigned int flags)
{
	const struct record_opts *o = &job->opts;
	struct ap_target target = target_of(job);
	u64 freq = frequency(o);
	struct ap_sampler_opts opts =
		AP_OPTS(ap_sampler_opts, .freq = freq, .period = (u64)o->period,
			.flags = flags | AP_SAMPLER_SHRINK | AP_SAMPLER_LOSSLESS,
			.pages = pages_for(o, freq), .open_flags = AP_OPEN_USER_FALLBACK);
	struct ap_error err;

	if (has_tasks(o))
		opts.sample_type = PERF_SAMPLE_IDENTIFIER;
	/* What runs on a CPU is sampled there, whoever its parent is. */
	if (!o->no_inherit && !target.cpus && !target.cgroup)
		opts.open_flags |= AP_OPEN_INHERIT;
	if (on_exec)
		opts.open_flags |= AP_OPEN_ON_EXEC;
	if (ap_sampler_open(out, job->machine, specs, &target, &opts, &err))
		return record_say(&err, NULL);
	return 0;
}

/* Gives the tracepoints their filters, in every place. */
static int set_filter(struct record_job *job, const struct record_filter *f)
{
	struct ap_counters *c = ap_sampler_counters(job->sampler);
	struct ap_specs *before = NULL, *with = NULL;
	char *text = strndup(job->opts.events, f->to);
	struct ap_error err;
	u32 from = 0, to;
	int r = 0;

	CHECK(text);
	/* Which events they are is told by how many stand in front of them. */
	if (ap_specs_parse(&with, job->machine, text, &err)) {
		free(text);
		return record_say(&err, "--filter");
	}
	text[f->from] = 0;
	if (f->from && !ap_specs_parse(&before, job->machine, text, NULL))
		from = ap_specs_count(before);
	to = ap_specs_count(with);
	for (u32 i = from; i < to && !r; i++) {
		if (ap_specs_at(with, i)->attr->type != PERF_TYPE_TRACEPOINT)
			r = command_error(&cmd_record, "--filter: %s is no tracepoint",
					  ap_specs_at(with, i)->name);
		for (u32 p = 0; p < ap_counters_places(c) && !r; p++) {
			struct ap_event *e = ap_counters_event(c, i, p);

			if (e && ap_event_set_filter(e, f->text, &err))
				r = record_say(&err, "--filter");
		}
	}
	ap_specs_free(before);
	ap_specs_free(with);
	free(text);
	return r;
}

/* The events of a sampler as the file names them: their attrs as the kernel has them, their ids. */
static int describe(struct record_job *job, struct ap_sampler *s, struct ap_specs *specs)
{
	struct ap_counters *c = ap_sampler_counters(s);
	u32 places = ap_counters_places(c), n = ap_specs_count(specs);

	job->events = realloc(job->events, (job->nr_events + n) * sizeof(*job->events));
	CHECK(job->events);
	for (u32 i = 0; i < n; i++) {
		const struct ap_spec *spec = ap_specs_at(specs, i);
		struct data_event *d = &job->events[job->nr_events++];
		const struct perf_event_attr *attr = spec->attr;
		char name[300];

		*d = (struct data_event){.ids = calloc(places, sizeof(u64)),
					 .members = spec->members};
		CHECK(d->ids);
		for (u32 p = 0; p < places; p++) {
			struct ap_event *e = ap_counters_event(c, i, p);
			uint64_t id;

			if (!e)
				continue;
			attr = ap_event_attr(e);
			if (!ap_event_id(e, &id))
				d->ids[d->nr_ids++] = id;
		}
		memcpy(&d->attr, attr, attr->size < sizeof(d->attr) ? attr->size : sizeof(d->attr));
		snprintf(name, sizeof(name), "%s%s", spec->name,
			 ap_counters_user_only(c, i) ? ":u" : "");
		d->name = strdup(name);
		CHECK(d->name);
	}
	return 0;
}

int record_open(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	bool command = !record_opts_has_target(o);
	struct ap_error err;

	if ((o->pids && !job->pids && parse_pids(job, o->pids, "-p")) ||
	    (o->tids && !job->pids && parse_pids(job, o->tids, "-t")))
		return -1;
	/* Opening refuses them as well, but without the option's name. */
	if (o->cpus && ap__cpus_check(job->machine, o->cpus, &err))
		return record_say(&err, "-C");
	job->enabled = command && !o->delay_ms;
	if (open_sampler(job, &job->sampler, job->specs, job->enabled,
			 o->overwrite   ? AP_SAMPLER_OVERWRITE
			 : has_tasks(o) ? 0
					: AP_SAMPLER_TASKS | AP_SAMPLER_BUILD_IDS))
		return -1;
	if (has_tasks(o)) {
		if (ap_specs_parse(&job->task_specs, job->machine, "dummy:u", &err))
			return record_say(&err, NULL);
		((struct pe_attr *)ap_specs_at(job->task_specs, 0)->attr)->mmap_data =
			record_opts_data_maps(o);
		job->tasks_on_exec = command;
		if (open_sampler(job, &job->tasks, job->task_specs, command,
				 AP_SAMPLER_TASKS | AP_SAMPLER_BUILD_IDS))
			return -1;
	}
	for (u32 i = 0; i < o->nr_filters; i++)
		if (set_filter(job, &o->filters[i]))
			return -1;
	describe(job, job->sampler, job->specs);
	if (job->exact) {
		record_exact_describe(&job->events[0]);
		if (record_modeled_open(job))
			return -1;
	}
	if (job->tasks)
		describe(job, job->tasks, job->task_specs);
	ap_layout_init(&job->layout, (const struct perf_event_attr *)&job->events[0].attr);
	return 0;
}

void record_close(struct record_job *job)
{
	record_exact_release(job);
	ap_sampler_close(job->sampler);
	ap_sampler_close(job->tasks);
	ap_specs_free(job->specs);
	ap_specs_free(job->task_specs);
	for (u32 i = 0; i < job->nr_events; i++) {
		free((char *)job->events[i].name);
		free(job->events[i].ids);
	}
	free(job->events);
	free(job->pids);
	data_task_log_release(&job->task_log);
	free(job->held);
	free(job->announced);
}
