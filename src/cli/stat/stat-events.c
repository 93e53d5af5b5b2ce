/*
 * What is counted: from -e, -d, -G and the modes to the events of the report. Most are the
 * library's, which opens them; duration_time, user_time and system_time, perf's tool events, are
 * what stat knows anyhow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/modeled-events.h"
#include "cli/stat/stat-priv.h"
#include "cli/stat/stat-tool.h"
#include "lib/machine/machine-pmu.h"
#include "lib/machine/model-windows.h"
#include "lib/refusal/fail.h"

/* perf's default set and what each -d adds. */
static const char *const default_events[] = {
	"task-clock,context-switches,cpu-migrations,page-faults,"
	"cycles,instructions,branches,branch-misses",
	"L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
	"L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,"
	"iTLB-loads,iTLB-load-misses",
	"L1-dcache-prefetches,L1-dcache-prefetch-misses",
};

/* What the virtual PMU has without a model. */
static const char virtual_events[] =
	"task-clock,context-switches,cpu-migrations,page-faults,instructions,branches";

const struct stat_tool stat_tools[] = {
	{"duration_time", "Wall-clock time of the measurement, ns", KIND_DURATION},
	{"user_time", "CPU time of the command in user mode, ns", KIND_USER_TIME},
	{"system_time", "CPU time of the command in the kernel, ns", KIND_SYSTEM_TIME},
	{0},
};

/* A tool event in the text of the events. */
struct found_tool {
	const char *name;
	enum report_kind kind;
	size_t at; /* where in the text */
};

void *must_alloc(size_t n, size_t size)
{
	void *p = calloc(n + !n, size);

	CHECK(p);
	return p;
}

void stat_say(const struct ap_error *err)
{
	char text[1100];

	command_error(&cmd_stat, "%s", ap_error_text(err, text, sizeof(text)));
}

char *stat_joined(char *text, const char *more)
{
	size_t old = text ? strlen(text) : 0, len = strlen(more);

	text = realloc(text, old + len + 1);
	CHECK(text);
	memcpy(text + old, more, len + 1);
	return text;
}

const char *stat_cgroups(const struct stat_job *st)
{
	return st->each_cgroups ? st->each_cgroups : st->opts.cgroup;
}

static bool has_model(const struct stat_job *st)
{
	char name[64];

	return ap__pmu_modeled(st->machine, name, sizeof(name));
}

/*
 * In windows the model costs little. If it sees all it counts what it is asked for, and who asks
 * for caches, or says that it is to see all, pays for it anyhow.
 */
static bool is_modeled_unasked(const struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	char windows[MODEL_WINDOWS_TEXT];

	return has_model(st) && (o->detailed || o->model_windows ||
				 ap__pmu_windows(st->machine, windows, sizeof(windows)));
}

static const char *usual_events(const struct stat_job *st)
{
	return stat_is_virtual(st) && !is_modeled_unasked(st) ? virtual_events : default_events[0];
}

const char *stat_hint(const struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	bool usual = !o->events && !o->null_run && !st->each_events && stat_is_virtual(st);

	if (usual && usual_events(st) == virtual_events && has_model(st))
		return "A model counts cycles, branch-misses and caches if -e or -d asks for them, "
		       "which takes 10 to 120 times as long, and with --model-windows=auto, which "
		       "estimates them, 2 to 10 times.";
	if (st->style.unmodeled)
		return "Of some process modeled events count nothing, since there was no memory for the "
		       "model of the machine: raise the limit of addresses (ulimit -v) or of data "
		       "(ulimit -d), or use --machine=none.";
	if (!st->style.estimated || o->model_windows)
		return NULL;
	if (ap__machine_is_guest())
		return "Nothing is estimated under `anyperf run --model-windows=no`, which takes "
		       "10 to 120 times as long.";
	return usual ? "Nothing is estimated with --model-windows=no, which takes 10 to 120 times "
		       "as long; --machine=none leaves the model out, which takes 1.1 to 3 times."
		     : "Nothing is estimated with --model-windows=no, which takes 10 to 120 times "
		       "as long.";
}

static char *event_text(const struct stat_job *st)
{
	const struct stat_opts *opts = &st->opts;
	const char *usual = usual_events(st);
	char *text;

	if (st->each_events)
		return stat_joined(NULL, st->each_events);
	/* Of whole CPUs it is their clock, as with perf. */
	if (!opts->events && (opts->all_cpus || opts->cpus))
		text = stat_joined(stat_joined(NULL, "cpu-clock"), strchr(usual, ','));
	else
		text = stat_joined(NULL, opts->events ? opts->events : usual);

	for (size_t d = 1; d < ARRAY_SIZE(default_events) && (int)d <= opts->detailed; d++)
		text = stat_joined(stat_joined(text, ","), default_events[d]);
	return text;
}

/*
 * The tool event that the item of @len bytes at @item is or, with a modifier, begins with; NULL:
 * none.
 */
static const char *tool_name(const char *item, size_t len, enum report_kind *kind)
{
	for (const struct stat_tool *t = stat_tools; t->name; t++) {
		size_t n = strlen(t->name);

		if (len < n || memcmp(item, t->name, n) != 0 || (len > n && item[n] != ':'))
			continue;
		*kind = t->kind;
		return t->name;
	}
	return NULL;
}

/*
 * Takes the tool events out of the first @len bytes of @text. Returns what is left, to be freed;
 * NULL with the reason in *@why if one stands where it cannot. *@nr of them come into *@found, to
 * be freed as well. Items end at commas, also those within slashes: no PMU has a term of such a
 * name.
 */
static char *without_tools(const char *text, size_t len, struct found_tool **found, u32 *nr,
			   const char **why)
{
	char *left = must_alloc(len + 1, 1);
	size_t used = 0, at = 0;
	bool some = false;
	int depth = 0;

	*found = NULL;
	*nr = 0;
	while (at <= len) {
		size_t begin = at + strspn(text + at, " \t{"), end;
		size_t stop = begin + strcspn(text + begin, ",");
		enum report_kind kind;
		const char *name;

		stop = stop < len ? stop : len;
		end = begin + strcspn(text + begin, " \t,}");
		end = end < stop ? end : stop;
		for (size_t i = at; i < begin && i < stop; i++)
			depth += text[i] == '{';
		name = begin < end ? tool_name(text + begin, end - begin, &kind) : NULL;
		if (name && (depth || end - begin > strlen(name))) {
			*why = depth ? "stands in a group, which only counters can: write it outside "
				       "the braces"
				     : "takes no modifiers: it is measured by stat itself";
			free(left);
			free(*found);
			return NULL;
		}
		if (name) {
			*found = realloc(*found, (*nr + 1) * sizeof(**found));
			CHECK(*found);
			(*found)[(*nr)++] = (struct found_tool){name, kind, at};
		} else {
			used += (size_t)snprintf(left + used, len + 1 - used, "%s%.*s",
						 some ? "," : "", (int)(stop - at), text + at);
			some = true;
		}
		for (size_t i = begin; i < stop; i++)
			depth -= text[i] == '}';
		at = stop + 1;
	}
	return left;
}

char *stat_counted_text(const struct stat_job *st)
{
	char *all = event_text(st), *left;
	struct found_tool *found;
	const char *why;
	u32 nr;

	left = without_tools(all, strlen(all), &found, &nr, &why);
	free(found);
	free(all);
	return left;
}

/* How many counted events the first @len bytes of @text name; @len is where an item ends. */
static u32 events_before(struct stat_job *st, const char *text, size_t len)
{
	struct ap_specs *specs = NULL;
	struct found_tool *found;
	u32 n = 0, nr;
	const char *why;
	char *left = without_tools(text, len, &found, &nr, &why);

	CHECK(left);
	if (*left && !ap_specs_parse(&specs, st->machine, left, NULL))
		n = ap_specs_count(specs);
	ap_specs_free(specs);
	free(found);
	free(left);
	return n;
}

/* How many there are in all; 0: none is counted, or something is wrong with one. */
static u32 events_of(struct stat_job *st, const char *text)
{
	struct found_tool *found;
	const char *why;
	u32 nr;
	char *left = without_tools(text, strlen(text), &found, &nr, &why);

	if (!left)
		return 0;
	free(found);
	free(left);
	return events_before(st, text, strlen(text));
}

void stat_shape_attr(const struct stat_job *st, struct perf_event_attr *attr)
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

u64 stat_modes_of(const struct perf_event_attr *attr)
{
	return attr->exclude_user | attr->exclude_kernel << 1 | attr->exclude_hv << 2 |
	       attr->exclude_idle << 3;
}

static void add_counted(struct stat_job *st, u32 number)
{
	struct ap_spec *spec = ap_specs_at(st->specs, number);
	struct report_event *ev = &st->events[st->nr_events++];

	stat_shape_attr(st, spec->attr);
	ev->spec = (s32)number;
	ev->kind = report_kind_of(spec->attr);
	ev->modes = stat_modes_of(spec->attr);
	ev->exact = stat_is_virtual(st) && !st->opts.session &&
		    spec->attr->type != PERF_TYPE_SOFTWARE;
	ev->modeled = modeled_event(spec->attr) && (stat_is_virtual(st) || ap__machine_is_guest());
	ev->exact &= !ev->modeled;
	ev->name = report_event_name(spec, false);
	ev->unit = spec->unit;
	ev->scale = spec->scale;
	if (ev->kind == KIND_CPU_TIME && !*spec->unit) {
		ev->unit = "msec";
		ev->scale = 1e-6;
	}
}

/*
 * The kernel tells a command's CPU time, and of other targets nothing that both starts and ends
 * with us.
 */
static void add_tool(struct stat_job *st, const struct found_tool *tool)
{
	struct report_event *ev = &st->events[st->nr_events++];

	*ev = (struct report_event){
		.spec = -1,
		.kind = tool->kind,
		.name = stat_joined(NULL, tool->name),
		.unit = "ns",
		.scale = 1,
	};
	if (tool->kind == KIND_DURATION || !stat_opts_has_target(&st->opts))
		return;
	ev->refused = true;
	ap__refuse(&ev->error, -EOPNOTSUPP, NULL, TOOL_TARGET);
}

static void note_filters(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;

	for (u32 i = 0; i < o->nr_filters; i++) {
		const struct stat_filter *f = &o->filters[i];
		u32 from = events_before(st, o->events, f->from);
		u32 to = events_before(st, o->events, f->to);

		for (u32 e = 0; e < st->nr_events; e++)
			if (st->events[e].spec >= (s32)from && st->events[e].spec < (s32)to)
				st->events[e].filter = f->text;
	}
}

/* -G gives counted events their cgroups in order; a single one is for all. */
static int prepare_cgroups(struct stat_job *st)
{
	const char *list = stat_cgroups(st);
	u32 counted = st->specs ? ap_specs_count(st->specs) : 0, n = 0;
	bool one = list && !strchr(list, ',');

	for (u32 i = 0; i < st->nr_events && list; i++) {
		struct report_event *ev = &st->events[i];
		size_t len = strcspn(list, ",");

		ev->cgroup = ev->spec < 0 ? strdup("") : strndup(list, len);
		CHECK(ev->cgroup);
		if (ev->spec < 0 || one)
			continue;
		list += len + (list[len] != 0);
	}
	if (!list || one)
		return 0;
	for (const char *p = stat_cgroups(st); p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		n++;
	if (n <= counted)
		return 0;
	return command_error(&cmd_stat,
			     "-G names %u cgroups for %u events; give each event its own, or "
			     "one for all",
			     n, counted);
}

/* Makes the events in the order in which @text names them. */
static void make_events(struct stat_job *st, const char *text, const struct found_tool *found,
			u32 nr)
{
	u32 counted = st->specs ? ap_specs_count(st->specs) : 0, next = 0;

	st->events = must_alloc(counted + nr, sizeof(*st->events));
	for (u32 t = 0; t < nr; t++) {
		size_t at = found[t].at;
		u32 before = events_before(st, text, at - (at != 0));

		while (next < before)
			add_counted(st, next++);
		add_tool(st, &found[t]);
	}
	while (next < counted)
		add_counted(st, next++);
}

/* --for-each-cgroup, in the words of -e and -G. A mistake in the events is left to be found. */
static void write_out_cgroups(struct stat_job *st)
{
	const char *list = st->opts.each_cgroup;
	char *text = event_text(st), *names = NULL, *events = NULL;
	u32 n = events_of(st, text);

	while (n && list) {
		char *name = strndup(list, strcspn(list, ","));

		CHECK(name);
		events = stat_joined(events ? stat_joined(events, ",") : NULL, text);
		for (u32 i = 0; i < n; i++)
			names = stat_joined(names ? stat_joined(names, ",") : NULL, name);
		free(name);
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	free(text);
	st->each_events = events;
	st->each_cgroups = names;
}

int stat_events_prepare(struct stat_job *st)
{
	struct found_tool *found = NULL;
	struct ap_error err;
	char *text, *counted;
	const char *why;
	u32 nr;
	int rc = 0;

	if (st->opts.null_run)
		return 0;
	if (st->opts.each_cgroup && !st->each_events)
		write_out_cgroups(st);
	text = event_text(st);
	counted = without_tools(text, strlen(text), &found, &nr, &why);
	if (!counted) {
		free(text);
		return command_error(&cmd_stat,
				     "-e: a tool event (duration_time, user_time, system_time) %s",
				     why);
	}
	if (*counted || !nr)
		rc = ap_specs_parse(&st->specs, st->machine, counted, &err);
	if (rc)
		stat_say(&err);
	else
		make_events(st, text, found, nr);
	free(found);
	free(counted);
	free(text);
	if (rc)
		return -1;
	if (!st->specs && st->opts.aggr)
		return command_error(&cmd_stat,
				     "counts by CPU, thread or core need an event that is counted "
				     "there; tool events are measured once");
	note_filters(st);
	return prepare_cgroups(st);
}
