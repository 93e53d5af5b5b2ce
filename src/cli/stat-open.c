/* What is counted, on what, and what was read of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/stat-priv.h"
#include "cli/topology.h"

/* perf's default set and what each -d adds. */
static const char *const default_events[] = {
	"task-clock,context-switches,cpu-migrations,page-faults,"
	"cycles,instructions,branches,branch-misses",
	"L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
	"L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,"
	"iTLB-loads,iTLB-load-misses",
	"L1-dcache-prefetches,L1-dcache-prefetch-misses",
};

/* What the virtual PMU has. */
static const char virtual_events[] =
	"task-clock,context-switches,cpu-migrations,page-faults,instructions,branches";

static void *must_alloc(size_t n, size_t size)
{
	void *p = calloc(n + !n, size);

	CHECK(p);
	return p;
}

static void say(const struct ap_error *err)
{
	char text[1100];

	command_error(&cmd_stat, "%s", ap_error_text(err, text, sizeof(text)));
}

/* A string that grows: @text (NULL: none yet) with @more behind it. Takes @text. */
static char *joined(char *text, const char *more)
{
	size_t old = text ? strlen(text) : 0, len = strlen(more);

	text = realloc(text, old + len + 1);
	CHECK(text);
	memcpy(text + old, more, len + 1);
	return text;
}

static char *event_text(const struct stat_job *st)
{
	const struct stat_opts *opts = &st->opts;
	const char *usual = st->virtual.session || st->virtual.observer ? virtual_events
									: default_events[0];
	char *text = joined(NULL, opts->events ? opts->events : usual);

	for (size_t d = 1; d < ARRAY_SIZE(default_events) && (int)d <= opts->detailed; d++)
		text = joined(joined(text, ","), default_events[d]);
	return text;
}

static void shape_attr(const struct stat_job *st, struct perf_event_attr *attr)
{
	/* As perf does, though nothing samples [STAT-02]. */
	attr->sample_type = PERF_SAMPLE_IDENTIFIER;
	if (st->opts.all_user) {
		attr->exclude_user = 0;
		attr->exclude_kernel = attr->exclude_hv = 1;
	}
	if (st->opts.all_kernel) {
		attr->exclude_user = 1;
		attr->exclude_kernel = 0;
		attr->exclude_hv = 1;
	}
}

static u64 modes_of(const struct perf_event_attr *attr)
{
	return attr->exclude_user | attr->exclude_kernel << 1 | attr->exclude_hv << 2 |
	       attr->exclude_idle << 3;
}

/* "MODIFIED:u" for an event that --all-user or the fallback to user mode changed. */
static char *name_of(const struct ap_spec *spec, bool user_only)
{
	const char *colon = strrchr(spec->name, ':');
	bool has_modifier = colon && !strpbrk(colon, "/}");
	char *name = joined(NULL, spec->name);

	if (user_only)
		name = joined(name, has_modifier ? "u" : ":u");
	return name;
}

static int prepare_events(struct stat_job *st)
{
	struct ap_error err;
	char *text;
	int rc;

	if (st->opts.null_run)
		return 0;
	text = event_text(st);
	rc = ap_specs_parse(&st->specs, st->machine, text, &err);
	free(text);
	if (rc) {
		say(&err);
		return -1;
	}
	st->nr_events = ap_specs_count(st->specs);
	st->events = must_alloc(st->nr_events, sizeof(*st->events));
	for (u32 i = 0; i < st->nr_events; i++) {
		struct ap_spec *spec = ap_specs_at(st->specs, i);
		struct stat_event *ev = &st->events[i];

		shape_attr(st, spec->attr);
		ev->kind = stat_kind_of(spec->attr);
		ev->modes = modes_of(spec->attr);
		ev->exact = st->virtual.session && spec->attr->type != PERF_TYPE_SOFTWARE;
		ev->name = name_of(spec, false);
		ev->unit = spec->unit;
		ev->scale = spec->scale;
		if (ev->kind == KIND_CPU_TIME && !*spec->unit) {
			ev->unit = "msec";
			ev->scale = 1e-6;
		}
	}
	return 0;
}

/* -G gives events their cgroups in order; a single one is for all. */
static int prepare_cgroups(struct stat_job *st)
{
	const char *list = st->opts.cgroup;
	char *text, *rest, *name;
	u32 n = 0;

	if (!list || st->opts.null_run)
		return 0;
	text = rest = joined(NULL, list);
	while ((name = strsep(&rest, ","))) {
		if (n < st->nr_events)
			st->events[n].cgroup = joined(NULL, name);
		n++;
	}
	free(text);
	if (n > st->nr_events)
		return command_error(
			&cmd_stat,
			"-G names %u cgroups for %u events; give each event its own, or "
			"one for all",
			n, st->nr_events);
	for (u32 i = n; i < st->nr_events; i++)
		st->events[i].cgroup = joined(NULL, n == 1 ? list : "");
	return 0;
}

static int add_pid(struct stat_job *st, long pid)
{
	st->pids = realloc(st->pids, (st->nr_pids + 1) * sizeof(*st->pids));
	CHECK(st->pids);
	st->pids[st->nr_pids++] = (pid_t)pid;
	return 0;
}

static int parse_pids(struct stat_job *st, const char *text, const char *option)
{
	const char *p = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (end == p || errno || pid <= 0 || pid > 1 << 30 || (*end && *end != ','))
			return command_error(&cmd_stat,
					     "%s: '%s' is not a list of numbers like 12,34", option,
					     text);
		add_pid(st, pid);
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static void prepare_target_name(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	char *text;

	if (o->pids || o->tids)
		text = joined(joined(NULL, o->pids ? "process id '" : "thread id '"),
			      o->pids ? o->pids : o->tids);
	else if (o->cpus)
		text = joined(joined(NULL, "'CPU(s) "), o->cpus);
	else
		text = joined(NULL, o->all_cpus ? "'system wide" : "'");
	if (!stat_opts_has_target(o))
		for (char *const *arg = o->command; *arg; arg++)
			text = joined(joined(text, arg == o->command ? "" : " "), *arg);
	text = joined(text, "'");
	if (o->cgroup)
		text = joined(joined(joined(text, " in cgroup '"), o->cgroup), "'");
	st->target = text;
}

static void log_line(enum ap_log_level level, const char *text, void *data)
{
	(void)level;
	(void)data;
	fprintf(stderr, "anyperf stat: %s\n", text);
}

/* Is @type one that only a CPU's PMU has? */
static bool wants_cpu_pmu(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	       attr->type == PERF_TYPE_RAW;
}

/* Can the kernel not count what is asked, for want of a PMU? Then @err says why. */
static bool kernel_lacks_pmu(struct stat_job *st, struct ap_error *err)
{
	struct ap_specs *specs = NULL;
	char *text = event_text(st);
	bool lacks = false;

	if (ap_specs_parse(&specs, st->machine, text, err)) {
		/* A name that needs the PMU's files, which are not there either. */
		free(text);
		return err->cause == AP_CAUSE_UNKNOWN_EVENT &&
		       ap_event_probe(st->machine, "instructions:u", err) &&
		       err->cause == AP_CAUSE_NO_PMU;
	}
	free(text);
	for (u32 i = 0; i < ap_specs_count(specs) && !lacks; i++) {
		struct ap_spec *spec = ap_specs_at(specs, i);

		if (!wants_cpu_pmu(spec->attr))
			continue;
		/* One tells for all: there is a PMU or there is none. */
		lacks = ap_event_probe(st->machine, spec->name, err) &&
			err->cause == AP_CAUSE_NO_PMU;
		break;
	}
	ap_specs_free(specs);
	return lacks;
}

static int use_virtual(struct stat_job *st, struct ap_machine_opts *machine, bool asked)
{
	struct virtual_opts opts = {
		.counters = (u32)st->opts.counters,
		.cpu_model = st->opts.cpu_model,
		.deterministic = &st->opts.deterministic,
	};
	char why[300];

	if (virtual_open(&st->virtual, &opts, why, sizeof(why))) {
		if (asked)
			return command_error(&cmd_stat, "there is no virtual PMU: %s", why);
		snprintf(st->pmu_why, sizeof(st->pmu_why), "there is no virtual PMU: %s", why);
		return 0;
	}
	if (st->machine)
		ap_machine_free(st->machine);
	if (virtual_machine(&st->virtual, machine, &st->machine))
		return command_error(&cmd_stat, "out of memory");
	return 0;
}

/*
 * The kernel where it can count what is asked, else the virtual PMU, which can count what is started under
 * it and nothing else.
 */
static int choose_pmu(struct stat_job *st, struct ap_machine_opts *machine)
{
	const struct stat_opts *o = &st->opts;
	const char *asked = o->pmu ? o->pmu : "auto";
	struct ap_error err;
	char why[300];

	if (o->session) {
		snprintf(st->pmu_why, sizeof(st->pmu_why), "guests of the session %s", o->session);
		if (virtual_join(&st->virtual, o->session, why, sizeof(why)))
			return command_error(&cmd_stat, "%s", why);
		return virtual_machine(&st->virtual, machine, &st->machine)
			       ? command_error(&cmd_stat, "out of memory")
			       : 0;
	}
	if (!strcmp(asked, "virtual")) {
		if (!o->command || stat_opts_has_target(o))
			return command_error(
				&cmd_stat,
				"the virtual PMU counts only what is started under it: give a command, and "
				"none of -p, -t, -a, -C, -G");
		snprintf(st->pmu_why, sizeof(st->pmu_why), "asked for by --pmu");
		return use_virtual(st, machine, true);
	}
	if (o->deterministic.on) {
		snprintf(st->pmu_why, sizeof(st->pmu_why), "needed for --deterministic");
		return use_virtual(st, machine, true);
	}
	if (ap_machine_new(&st->machine, machine))
		return command_error(&cmd_stat, "out of memory");
	if (!strcmp(asked, "kernel")) {
		snprintf(st->pmu_why, sizeof(st->pmu_why), "asked for by --pmu");
		return 0;
	}
	if (o->null_run || !o->command || stat_opts_has_target(o) || !kernel_lacks_pmu(st, &err))
		return 0;
	snprintf(st->pmu_why, sizeof(st->pmu_why), "the kernel has no PMU of the CPU here");
	return use_virtual(st, machine, false);
}

int stat_prepare(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	struct ap_machine_opts machine = AP_OPTS(ap_machine_opts, .log = log_line,
						 .log_level = (enum ap_log_level)o->verbose);

	if (o->verbose > AP_LOG_DEBUG)
		machine.log_level = AP_LOG_DEBUG;
	if (choose_pmu(st, &machine))
		return -1;
	if (prepare_events(st) || prepare_cgroups(st))
		return -1;
	if ((o->pids && parse_pids(st, o->pids, "-p")) ||
	    (o->tids && parse_pids(st, o->tids, "-t")))
		return -1;
	prepare_target_name(st);
	return 0;
}

/* Refusals that are about the event alone: the command runs, and the table says it of the event. */
static bool event_only(int cause)
{
	switch (cause) {
	case AP_CAUSE_NO_PMU:
	case AP_CAUSE_UNSUPPORTED:
	case AP_CAUSE_KERNEL_OLD:
	case AP_CAUSE_BUSY:
	case AP_CAUSE_BAD_VALUE:
	case AP_CAUSE_GROUP: return true;
	default: return false;
	}
}

/* None of the events could be opened: say why of each, or of all if the reason is not the events'. */
static int none_opened(struct stat_job *st, const struct ap_error *err)
{
	if (!event_only(err->cause)) {
		say(err);
		return -1;
	}
	for (u32 i = 0; i < st->nr_events; i++) {
		struct stat_event *ev = &st->events[i];

		ev->refused = true;
		if (!ap_event_probe(st->machine, ap_specs_at(st->specs, i)->name, &ev->error))
			ev->error = *err;
	}
	return 0;
}

static void describe_places(struct stat_job *st)
{
	u32 n = ap_counters_places(st->counters);

	st->places = must_alloc(n, sizeof(*st->places));
	for (u32 p = 0; p < n; p++) {
		struct ap_place place = ap_counters_place(st->counters, p);
		struct stat_unit *unit = &st->places[p];

		*unit = (struct stat_unit){-1, -1, -1, -1, .cpu = place.cpu, .tid = place.tid};
		if (st->opts.aggr == AGGR_THREAD) {
			char path[48];
			FILE *f;

			snprintf(path, sizeof(path), "/proc/%d/comm", (int)place.tid);
			f = fopen(path, "re");
			if (f && fgets(unit->comm, sizeof(unit->comm), f))
				unit->comm[strcspn(unit->comm, "\n")] = 0;
			if (f)
				fclose(f);
		} else if (st->opts.aggr != AGGR_GLOBAL && place.cpu >= 0) {
			struct cpu_place at = topology_of(place.cpu);

			unit->socket = at.socket;
			unit->die = at.die;
			unit->core = at.core;
			unit->node = at.node;
		}
	}
}

/* What opening told about each event. */
static void note_refusals(struct stat_job *st)
{
	for (u32 i = 0; i < st->nr_events; i++) {
		const struct ap_error *err = ap_counters_error(st->counters, i);
		struct stat_event *ev = &st->events[i];

		ev->refused = err != NULL;
		if (err)
			ev->error = *err;
		if (!err && ap_counters_user_only(st->counters, i)) {
			const struct ap_spec *spec = ap_specs_at(st->specs, i);

			free((char *)ev->name);
			ev->name = name_of(spec, true);
			ev->modes = modes_of(spec->attr);
		}
	}
}

int stat_open(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	struct ap_open_opts open = AP_OPTS(ap_open_opts,
					   .flags = AP_OPEN_PARTIAL | AP_OPEN_USER_FALLBACK);
	struct ap_target target = AP_OPTS(ap_target, .cpus = o->all_cpus ? "all" : o->cpus,
					  .cgroup = o->cgroup);
	struct ap_error err;
	int rc;

	if (!st->specs)
		return 0;
	if (!o->no_inherit)
		open.flags |= AP_OPEN_INHERIT;
	if (o->all_cpus && o->aggr == AGGR_THREAD) {
		target.every_thread = true;
		target.cpus = NULL;
	} else if (st->nr_pids && !o->tids) {
		target.pids = st->pids;
		target.npids = st->nr_pids;
	} else if (st->nr_pids) {
		target.tids = st->pids;
		target.ntids = st->nr_pids;
	} else if (!target.cpus) {
		target.tids = &st->child.pid;
		target.ntids = 1;
		if (!o->delay_ms) {
			open.flags |= AP_OPEN_ON_EXEC;
			st->enabled = true;
		}
	}
	rc = ap_counters_open(&st->counters, st->machine, st->specs, &target, &open, &err);
	if (rc)
		return none_opened(st, &err);
	describe_places(st);
	note_refusals(st);
	st->last = must_alloc((size_t)st->nr_events * ap_counters_places(st->counters),
			      sizeof(*st->last));
	return 0;
}

/* Makes the units of the report and counts their CPUs. Gives back each place's; the caller's to free. */
static u32 *add_units(struct stat_job *st, struct stat_report *r)
{
	u32 places = st->counters ? ap_counters_places(st->counters) : 0;
	u32 *unit_of = must_alloc(places, sizeof(*unit_of));
	static const struct stat_unit whole;

	if (!places)
		report_unit(r, &whole);
	for (u32 p = 0; p < places; p++)
		unit_of[p] = report_unit(r, &st->places[p]);
	for (u32 u = 0; u < r->nr_units; u++)
		r->units[u].cpus = 0;
	for (u32 p = 0; p < places; p++)
		r->units[unit_of[p]].cpus++;
	return unit_of;
}

/* What the places of one unit have counted. */
struct unit_sum {
	bool any; /* the event is open in one of them */
	struct ap_value value;
};

/* Sums @event over the places of each unit into @sums, by unit. */
static void sum_places(struct stat_job *st, u32 event, const u32 *unit_of, bool since_last,
		       struct unit_sum *sums)
{
	u32 places = st->counters ? ap_counters_places(st->counters) : 0;

	for (u32 p = 0; p < places; p++) {
		const struct ap_value *now = ap_counters_value(st->counters, event, p);
		struct ap_value *last = &st->last[(size_t)event * places + p];
		struct ap_value value;

		if (!now)
			continue;
		value = *now;
		if (since_last) {
			ap_value_sub(&value, last);
			*last = *now;
		}
		sums[unit_of[p]].any = true;
		ap_value_add(&sums[unit_of[p]].value, &value);
	}
}

void stat_read(struct stat_job *st, struct stat_report *r, bool since_last)
{
	u32 *unit_of = add_units(st, r);
	struct unit_sum *sums = must_alloc(r->nr_units, sizeof(*sums));

	if (st->counters)
		(void)ap_counters_read(st->counters);
	for (u32 e = 0; e < st->nr_events; e++) {
		memset(sums, 0, r->nr_units * sizeof(*sums));
		sum_places(st, e, unit_of, since_last, sums);
		for (u32 u = 0; u < r->nr_units; u++) {
			enum ap_status status = AP_STATUS_OK;

			/* An event of some CPUs only has no line for the others. */
			if (!sums[u].any && !st->events[e].refused)
				continue;
			if (!sums[u].any)
				status = AP_STATUS_NOT_SUPPORTED;
			else if (!sums[u].value.running)
				status = AP_STATUS_NOT_COUNTED;
			report_add(r, e, u, status, &sums[u].value, st->opts.scale);
		}
	}
	free(sums);
	free(unit_of);
}

void stat_close(struct stat_job *st)
{
	ap_counters_close(st->counters);
	st->counters = NULL;
	free(st->places);
	st->places = NULL;
	free(st->last);
	st->last = NULL;
	st->enabled = false;
}

void stat_release(struct stat_job *st)
{
	stat_close(st);
	for (u32 i = 0; i < st->nr_events; i++) {
		free((char *)st->events[i].name);
		free((char *)st->events[i].cgroup);
	}
	free(st->events);
	free(st->pids);
	free(st->target);
	ap_specs_free(st->specs);
	ap_machine_free(st->machine);
	virtual_close(&st->virtual);
	stat_opts_release(&st->opts);
}
