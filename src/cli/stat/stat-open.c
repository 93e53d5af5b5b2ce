/* On what it is counted, by whom, and what was read of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/stat/stat-priv.h"
#include "cli/stat/topology.h"
#include "lib/command.h"
#include "lib/count/target.h"
#include "lib/machine/machine-pmu.h"

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

	if (!stat_opts_has_target(o)) {
		st->target = report_command(o->command);
		return;
	}
	if (o->pids || o->tids)
		text = stat_joined(stat_joined(NULL, o->pids ? "process id '" : "thread id '"),
				   o->pids ? o->pids : o->tids);
	else if (o->cpus)
		text = stat_joined(stat_joined(NULL, "'CPU(s) "), o->cpus);
	else
		text = stat_joined(NULL, o->all_cpus ? "'system wide" : "'");
	text = stat_joined(text, "'");
	if (o->cgroup)
		text = stat_joined(stat_joined(stat_joined(text, " in cgroup '"), o->cgroup), "'");
	st->target = text;
}

static void log_line(enum ap_log_level level, const char *text, void *data)
{
	(void)level;
	(void)data;
	fprintf(stderr, "anyperf stat: %s\n", text);
}

int stat_prepare(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	struct ap_error err;
	char text[1100];

	st->machine_opts = AP_OPTS(ap_machine_opts, .log = log_line,
				   .log_level = (enum ap_log_level)o->verbose);
	if (o->verbose > AP_LOG_DEBUG)
		st->machine_opts.log_level = AP_LOG_DEBUG;
	if (stat_choose_pmu(st))
		return -1;
	/* Before --pre, --sync and an output that is emptied; --null opens nothing at all. */
	if (o->cpus && ap__cpus_check(st->machine, o->cpus, &err))
		return command_error(&cmd_stat, "-C: %s", ap_error_text(&err, text, sizeof(text)));
	if (stat_events_prepare(st))
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
	case AP_CAUSE_GROUP:
	case AP_CAUSE_NOT_GUEST: return true;
	default: return false;
	}
}

static struct ap_spec *spec_of(struct stat_job *st, const struct report_event *ev)
{
	return ap_specs_at(st->specs, (u32)ev->spec);
}

static void refuse(struct report_event *ev, const struct ap_error *err)
{
	ev->refused = true;
	ev->error = *err;
}

/* Why @ev could not be opened, when the first of all was refused with @err. */
static void refuse_like(struct stat_job *st, struct report_event *ev, const struct ap_error *err)
{
	struct ap_error own;
	bool known = false;

	/* Asked singly, but as it stands in the text: not with the modes of the options. */
	if (!st->opts.all_kernel)
		known = ap_event_probe(st->machine, spec_of(st, ev)->name, &own) < 0;
	/* That the kernel's part may not be counted was no hindrance. */
	if (!known || !event_only((int)own.cause)) {
		own = *err;
		snprintf(own.why, sizeof(own.why), "%s: %s", ev->name, err->why + err->about);
		own.about = (int)min_u64(strlen(ev->name) + 2, strlen(own.why));
	}
	refuse(ev, &own);
}

/*
 * None of the events could be opened: say why of each, or of all if the reason is not the events'.
 * What ends by itself is measured nevertheless, as there is its time.
 */
static int none_opened(struct stat_job *st, const struct ap_error *err)
{
	const struct report_event *first = NULL;
	bool tools = false;
	const char *also;
	char text[1100];

	for (u32 i = 0; i < st->nr_events; i++) {
		struct report_event *ev = &st->events[i];

		tools |= ev->spec < 0;
		if (ev->spec < 0)
			continue;
		first = first ? first : ev;
		if (event_only(err->cause))
			refuse_like(st, ev, err);
	}
	CHECK(first); /* it was opened for something */
	if (event_only(err->cause) && (st->opts.command || tools))
		return 0;
	if (event_only(err->cause))
		err = &first->error;
	also = stat_virtual_would(st, err) ? "; or count user mode with --pmu=virtual" : "";
	if (st->turned && !st->turned_back && !stat_is_virtual(st))
		return -1;
	ap_error_text(err, text, sizeof(text));
	if (st->nr_events == 1)
		return command_error(&cmd_stat, "%s: %s%s", first->name, text + err->about, also);
	return command_error(&cmd_stat, "%s%s", text, also);
}

static void describe_places(struct stat_job *st)
{
	u32 n = ap_counters_places(st->counters);

	st->places = must_alloc(n, sizeof(*st->places));
	for (u32 p = 0; p < n; p++) {
		struct ap_place place = ap_counters_place(st->counters, p);
		struct report_unit *unit = &st->places[p];

		*unit = (struct report_unit){-1, -1, -1, -1, .cpu = place.cpu, .tid = place.tid};
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
		struct report_event *ev = &st->events[i];
		u32 number = (u32)ev->spec;
		const struct ap_error *err;

		if (ev->spec < 0)
			continue;
		err = ap_counters_error(st->counters, number);
		ev->refused = false;
		if (err)
			refuse(ev, err);
		if (!err && ap_counters_user_only(st->counters, number)) {
			const struct ap_spec *spec = spec_of(st, ev);

			free((char *)ev->name);
			ev->name = report_event_name(spec, true);
			ev->asked = spec->name;
			ev->modes = stat_modes_of(spec->attr);
		}
	}
}

/* Whoever names a thread wants its counts, as perf and -p take it. 0, or -1 after saying which. */
static int check_threads(struct stat_job *st)
{
	char text[1100];

	for (u32 i = 0; st->opts.tids && i < st->nr_events; i++) {
		const struct report_event *ev = &st->events[i];

		if (ev->refused && ev->error.cause == AP_CAUSE_NO_TASK)
			return command_error(&cmd_stat, "%s",
					     ap_error_text(&ev->error, text, sizeof(text)));
	}
	return 0;
}

/* Gives tracepoints their filters, in every place. 0, or -1 after saying why not. */
static int set_filters(struct stat_job *st)
{
	struct ap_error err;

	for (u32 i = 0; i < st->nr_events; i++) {
		const struct report_event *ev = &st->events[i];

		for (u32 p = 0; ev->filter && p < ap_counters_places(st->counters); p++) {
			struct ap_event *event = ap_counters_event(st->counters, (u32)ev->spec, p);

			if (event && ap_event_set_filter(event, ev->filter, &err)) {
				stat_say(&err);
				return -1;
			}
		}
	}
	return 0;
}

int stat_open(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	struct ap_open_opts open = AP_OPTS(ap_open_opts,
					   .flags = AP_OPEN_PARTIAL | AP_OPEN_USER_FALLBACK);
	struct ap_target target = AP_OPTS(ap_target,
					  .cpus = o->cpus       ? o->cpus
						  : o->all_cpus ? "all"
								: NULL,
					  .cgroup = stat_cgroups(st));
	struct ap_error err;
	int spare = -1, rc;

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
		target.command = st->child.command;
		if (!o->delay_ms) {
			open.flags |= AP_OPEN_ON_EXEC;
			st->enabled = true;
		}
	}
	/*
	 * Events may take all descriptors that there are. One is held back for what is looked up
	 * and waited for when they are open: signals, names of threads, where CPUs belong. A
	 * command by itself leaves that of its start.
	 */
	if (stat_opts_has_target(o))
		spare = eventfd(0, EFD_CLOEXEC);
	rc = ap_counters_open(&st->counters, st->machine, st->specs, &target, &open, &err);
	if (spare >= 0)
		close(spare);
	if (rc)
		return none_opened(st, &err);
	describe_places(st);
	note_refusals(st);
	if (check_threads(st))
		return -1;
	stat_print_partial(st);
	st->last = must_alloc((size_t)ap_specs_count(st->specs) * ap_counters_places(st->counters),
			      sizeof(*st->last));
	return set_filters(st);
}

/*
 * Makes the units of the report and counts their CPUs. Gives back each place's; the caller's to
 * free.
 */
static u32 *add_units(struct stat_job *st, struct report *r)
{
	u32 places = st->counters ? ap_counters_places(st->counters) : 0;
	u32 *unit_of = must_alloc(places, sizeof(*unit_of));
	static const struct report_unit whole;

	if (!places)
		report_find_unit(r, &whole);
	for (u32 p = 0; p < places; p++)
		unit_of[p] = report_find_unit(r, &st->places[p]);
	for (u32 u = 0; u < r->nr_units; u++)
		r->units[u].cpus = 0;
	for (u32 p = 0; p < places; p++)
		r->units[unit_of[p]].cpus++;
	return unit_of;
}

/* What the places of one unit have counted. */
struct unit_sum {
	u32 opened, refused; /* in how many of them the event is open, and could not be opened */
	struct ap_value value;
};

/* Sums what is counted as @number over the places of each unit into @sums, by unit. */
static void sum_places(struct stat_job *st, u32 number, const u32 *unit_of, bool since_last,
		       struct unit_sum *sums)
{
	u32 places = st->counters ? ap_counters_places(st->counters) : 0;

	for (u32 p = 0; p < places; p++) {
		const struct ap_value *now = ap_counters_value(st->counters, number, p);
		struct ap_value *last = &st->last[(size_t)number * places + p];
		struct ap_value value;

		if (!now) {
			sums[unit_of[p]].refused += ap_counters_refused(st->counters, number, p);
			continue;
		}
		value = *now;
		if (since_last) {
			ap_value_sub(&value, last);
			*last = *now;
		}
		sums[unit_of[p]].opened++;
		ap_value_add(&sums[unit_of[p]].value, &value);
	}
}

/* A tool event has no place: it stands with the first unit, as in perf. */
static void read_tool(struct stat_job *st, struct report *r, u32 event, bool since_last)
{
	struct report_event *ev = &st->events[event];
	const struct stat_times *now = &st->times, *last = &st->last_times;
	struct ap_value value = {.value = now->duration};

	if (ev->kind == KIND_USER_TIME)
		value.value = now->user - (since_last ? last->user : 0);
	else if (ev->kind == KIND_SYSTEM_TIME)
		value.value = now->system - (since_last ? last->system : 0);
	else if (since_last)
		value.value -= last->duration;
	value.enabled = value.running = now->duration - (since_last ? last->duration : 0);
	report_add(r, event, 0, ev->refused ? AP_STATUS_NOT_SUPPORTED : AP_STATUS_OK, &value,
		   false);
}

static bool is_faults(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
						    attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
						    attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

const char *stat_places_name(const struct stat_job *st, const char **apart)
{
	const struct ap_place place = ap_counters_place(st->counters, 0);

	*apart = place.cpu < 0 ? "--per-thread" : place.tid < 0 ? "-A" : NULL;
	return place.cpu < 0 ? "threads" : place.tid < 0 ? "CPUs" : "threads on CPUs";
}

/* A count of some of the unit's places is not that of the unit. */
static void add_sum(struct stat_job *st, struct report *r, u32 event, u32 unit,
		    const struct unit_sum *sum)
{
	enum ap_status status = AP_STATUS_OK;
	struct report_cell *cell;

	if (!sum->opened)
		status = AP_STATUS_NOT_SUPPORTED;
	else if (sum->refused)
		status = AP_STATUS_PARTIAL;
	else if (!sum->value.running)
		status = AP_STATUS_NOT_COUNTED;
	report_add(r, event, unit, status, &sum->value, st->opts.scale);
	cell = report_at(r, event, unit);
	cell->opened = sum->opened;
	cell->places = sum->opened + sum->refused;
}

/* What of the counts is not as it would be natively. */
static void note_translator(struct stat_job *st, struct report *r)
{
	const struct guest_segment *segment = ap__machine_segment(st->machine);

	r->translated = stat_is_virtual(st) || ap__machine_is_guest();
	for (u32 e = 0; e < st->nr_events; e++) {
		struct report_event *ev = &st->events[e];
		const struct perf_event_attr *attr;

		if (ev->spec < 0 || !segment)
			continue;
		attr = spec_of(st, ev)->attr;
		ev->with_translator = is_faults(attr) &&
				      ap__segment_faults_of_proc(segment, attr->exclude_kernel);
	}
}

void stat_read(struct stat_job *st, struct report *r, bool since_last)
{
	u32 *unit_of = add_units(st, r);
	struct unit_sum *sums = must_alloc(r->nr_units, sizeof(*sums));

	note_translator(st, r);
	if (st->counters)
		r->places = stat_places_name(st, &r->apart);
	if (st->counters && ap_counters_read(st->counters) == -ENODEV &&
	    ap__machine_virtual(st->machine) && !st->session_lost) {
		st->session_lost = true;
		command_error(&cmd_stat, "the session of the virtual PMU was killed: what it has "
					 "counted is lost");
	}
	for (u32 e = 0; e < st->nr_events; e++) {
		if (st->events[e].spec < 0) {
			read_tool(st, r, e, since_last);
			continue;
		}
		memset(sums, 0, r->nr_units * sizeof(*sums));
		sum_places(st, (u32)st->events[e].spec, unit_of, since_last, sums);
		for (u32 u = 0; u < r->nr_units; u++) {
			/* An event of some CPUs only has no line for the others. */
			if (sums[u].opened || st->events[e].refused)
				add_sum(st, r, e, u, &sums[u]);
		}
	}
	if (since_last)
		st->last_times = st->times;
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

void stat_events_release(struct stat_job *st)
{
	for (u32 i = 0; i < st->nr_events; i++) {
		free((char *)st->events[i].name);
		free((char *)st->events[i].cgroup);
	}
	free(st->events);
	st->events = NULL;
	st->nr_events = 0;
	ap_specs_free(st->specs);
	st->specs = NULL;
}

void stat_release(struct stat_job *st)
{
	stat_close(st);
	stat_events_release(st);
	free(st->pids);
	free(st->target);
	free(st->turned_back);
	free(st->each_events);
	free(st->each_cgroups);
	ap_command_free(st->child.command);
	ap_machine_free(st->machine);
	stat_opts_release(&st->opts);
}
