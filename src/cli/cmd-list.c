#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <anyperf/machine.h>
#include <anyperf/pmu.h>
#include <anyperf/spec.h>

#include "base/check.h"
#include "cli/cmd.h"
#include "cli/help/help.h"
#include "cli/json.h"
#include "cli/modeled-events.h"
#include "cli/stat/stat-tool.h"
#include "cli/terminal.h"
#include "lib/machine/machine-pmu.h"
#include "lib/spec/nearest.h"

struct list_opts {
	bool json, check, names;
};

/* clang-format off */
static const struct option options[] = {
	{OPTION_FLAG, 'c', "check", .offset = offsetof(struct list_opts, check),
	 .help = "open each event and say why it fails",
	 .more = "The events are opened for the calling thread and closed again. An event whose kernel part is forbidden is tried for user mode alone, "
		 "as `anyperf stat` does. Exits with 1 if one fails."},
	{OPTION_FLAG, 'j', "json", .offset = offsetof(struct list_opts, json),
	 .help = "print a JSON object (doc/json.md)"},
	{OPTION_FLAG, 'n', "names", .offset = offsetof(struct list_opts, names),
	 .help = "print the bare names, one a line"},
	{0},
};
/* clang-format on */

/* What `anyperf stat` measures itself; the library does not know it. */
#define KIND_TOOL ((enum ap_kind)(AP_KIND_ALL + 1))

/* Kinds in the order that they are listed in, and the words that select them, which are perf's. */
static const struct {
	enum ap_kind kind;
	const char *id; /* in JSON */
	const char *words[3];
	const char *heading;
} kinds[] = {
	{AP_KIND_HARDWARE, "hardware", {"hw", "hardware"}, "Hardware events"},
	{AP_KIND_SOFTWARE, "software", {"sw", "software"}, "Software events"},
	{AP_KIND_CACHE, "cache", {"cache", "hwcache"}, "Cache events"},
	{AP_KIND_PMU, "pmu", {"pmu"}, "Events of PMUs"},
	{AP_KIND_TRACEPOINT, "tracepoint", {"tracepoint"}, "Tracepoints"},
	{AP_KIND_PFM, "pfm", {"pfm"}, "Events that libpfm4 knows"},
	{KIND_TOOL, "tool", {"tool"}, "Tool events of `anyperf stat`"},
	{AP_KIND_FORM, "form", {"form"}, "Forms to fill in"},
};

/* One event, copied out of the library's callback. */
struct entry {
	char *name, *alias, *desc, *encoding, *pmu, *unit;
	enum ap_kind kind;
	bool is_virtual; /* the virtual PMU counts it, or it is an event of its own */
	bool modeled;    /* likewise, by the model of a machine */
	bool checked;
	int rc;                 /* of the check: ap_event_probe()'s */
	struct ap_error *error; /* why it failed, or why it opens for user mode only; else NULL */
};

struct listing {
	struct list_opts opts;
	struct ap_machine *machine;     /* of the kernel's PMU */
	struct ap_machine *virtual_pmu; /* NULL: not needed so far, or there is none */
	bool no_virtual;                /* there is none */
	const char *lacks;     /* why the kernel's does not do; NULL: it does, or not asked */
	struct entry *entries; /* owned */
	size_t nr, room;
	const char *glob;
	unsigned int kinds;
	u32 failed;
	char machine_name[64]; /* whose model counts; "": no event is modeled */
};

static char *copy(const char *text)
{
	char *s = strdup(text ? text : "");

	CHECK(s);
	return s;
}

static int collect(const struct ap_listed *event, void *data)
{
	struct listing *l = data;

	if (l->nr == l->room) {
		l->room = l->room ? 2 * l->room : 256;
		l->entries = realloc(l->entries, l->room * sizeof(*l->entries));
		CHECK(l->entries);
	}
	l->entries[l->nr++] = (struct entry){
		.name = copy(event->name),
		.alias = copy(event->alias),
		.desc = copy(event->desc),
		.encoding = copy(event->encoding),
		.pmu = copy(event->pmu),
		.unit = copy(event->unit),
		.kind = event->kind,
	};
	return 0;
}

static void release_entry(struct entry *e)
{
	free(e->name);
	free(e->alias);
	free(e->desc);
	free(e->encoding);
	free(e->pmu);
	free(e->unit);
	free(e->error);
}

static void release(struct listing *l)
{
	for (size_t i = 0; i < l->nr; i++)
		release_entry(&l->entries[i]);
	free(l->entries);
	ap_machine_free(l->machine);
	ap_machine_free(l->virtual_pmu);
}

/* NULL: there is none here. */
static struct ap_machine *virtual_pmu(struct listing *l)
{
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .pmu = AP_PMU_VIRTUAL);
	struct ap_machine *m;
	struct ap_error err;

	if (l->virtual_pmu || l->no_virtual)
		return l->virtual_pmu;
	l->no_virtual = true;
	if (ap_machine_new(&m, &opts))
		return NULL;
	if (ap_machine_choose(m, NULL, &err) || ap_machine_pmu(m) != AP_PMU_VIRTUAL) {
		ap_machine_free(m);
		return NULL;
	}
	l->virtual_pmu = m;
	l->no_virtual = false;
	return m;
}

/*
 * Why the virtual PMU takes the kernel's place for @name, which the kernel refuses with @err, as
 * `anyperf stat` has it; NULL: it does not.
 */
static const char *kernel_lacks(struct listing *l, const struct entry *e,
				const struct ap_error *err)
{
	if (e->kind != AP_KIND_HARDWARE && e->kind != AP_KIND_CACHE)
		return NULL;
	if (!l->lacks)
		l->lacks = ap__pmu_lacks(l->machine, err);
	return l->lacks;
}

/* Is what the virtual PMU, or the `anyperf run` around this, counts by a model? */
static bool is_modeled(struct listing *l, const struct entry *e)
{
	struct ap_machine *m = e->is_virtual ? l->virtual_pmu : l->machine;
	struct ap_specs *specs;
	bool modeled;

	if (!e->is_virtual && !ap__machine_is_guest())
		return false;
	if (ap_specs_parse(&specs, m, e->name, NULL))
		return false;
	modeled = modeled_event(ap_specs_at(specs, 0)->attr) &&
		  ap__pmu_modeled(m, l->machine_name, sizeof(l->machine_name));
	ap_specs_free(specs);
	return modeled;
}

/* Opens the event where `anyperf stat` would. */
static void check_one(struct listing *l, struct entry *e)
{
	struct ap_error err;

	e->checked = true;
	if (e->is_virtual) {
		e->rc = ap_event_probe(l->virtual_pmu, e->name, &err);
	} else {
		e->rc = ap_event_probe(l->machine, e->name, &err);
		if (e->rc < 0 && kernel_lacks(l, e, &err) && virtual_pmu(l)) {
			e->rc = ap_event_probe(l->virtual_pmu, e->name, &err);
			e->is_virtual = true;
		}
	}
	e->modeled = e->rc >= 0 && is_modeled(l, e);
	if (!e->rc)
		return;
	e->error = malloc(sizeof(*e->error));
	CHECK(e->error);
	*e->error = err;
}

/* There may be thousands of the others, which only --check opens. */
static bool is_marked(const struct entry *e)
{
	return e->kind == AP_KIND_HARDWARE || e->kind == AP_KIND_SOFTWARE ||
	       e->kind == AP_KIND_CACHE || e->kind == AP_KIND_PMU;
}

static void check(struct listing *l)
{
	for (size_t i = 0; i < l->nr; i++) {
		struct entry *e = &l->entries[i];

		if (e->kind == AP_KIND_FORM || e->kind == KIND_TOOL)
			continue;
		if (l->opts.check || is_marked(e))
			check_one(l, e);
		l->failed += e->checked && e->rc < 0;
	}
}

static const char *counted_by(const struct entry *e)
{
	return e->rc < 0 ? NULL : e->is_virtual ? "virtual" : "kernel";
}

static char mark_of(const struct entry *e)
{
	return !e->checked ? ' ' : e->rc < 0 ? '-' : e->modeled ? 'm' : counted_by(e)[0];
}

static void print_one(const struct listing *l, const struct entry *e, const struct terminal *t)
{
	const int column = 34;
	int n = printf("%c %s", mark_of(e), e->name);

	if (*e->alias)
		n += printf(" OR %s", e->alias);
	if (n >= column - 1) {
		putchar('\n');
		n = 0;
	}
	if (*e->desc)
		help_wrap(stdout, e->desc, column, n, t->width);
	else
		putchar('\n');
	if (!l->opts.check || !e->checked)
		return;
	if (e->rc > 0) {
		printf("%*sopens for user mode only: ", column, "");
		help_wrap(stdout, e->error->why, column, column + 26, t->width);
	} else if (e->error) {
		char text[1100];

		printf("%*s%sfails:%s ", column, "", t->colour ? "\033[31m" : "",
		       t->colour ? "\033[0m" : "");
		help_wrap(stdout, ap_error_text(e->error, text, sizeof(text)), column, column + 7,
			  t->width);
	} else {
		printf("%*sopens\n", column, "");
	}
}

static void print_text(const struct listing *l)
{
	struct terminal t = terminal_of(stdout);
	bool some = false, marked = false, modeled = false;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		bool heading = false;

		for (size_t i = 0; i < l->nr; i++) {
			if (l->entries[i].kind != kinds[k].kind)
				continue;
			if (!heading)
				printf("%s%s:\n", some ? "\n" : "", kinds[k].heading);
			heading = some = true;
			marked |= l->entries[i].checked;
			modeled |= l->entries[i].modeled;
			print_one(l, &l->entries[i], &t);
		}
	}
	if (marked)
		printf("\nk the kernel counts it, v the virtual PMU does, in user mode, - nobody%s\n",
		       l->opts.check ? "" : " (--check says why)");
	if (modeled)
		printf("m the virtual PMU does by a model of the machine %s\n", l->machine_name);
	if (l->opts.check)
		printf("%zu event%s, %u fail%s\n", l->nr, l->nr == 1 ? "" : "s", l->failed,
		       l->failed == 1 ? "s" : "");
}

static void print_names(const struct listing *l)
{
	for (size_t i = 0; i < l->nr; i++) {
		const struct entry *e = &l->entries[i];

		if (e->kind == AP_KIND_FORM || (e->checked && e->rc < 0))
			continue;
		puts(e->name);
		if (*e->alias)
			puts(e->alias);
	}
}

static const char *kind_id(enum ap_kind kind)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		if (kinds[k].kind == kind)
			return kinds[k].id;
	return "other";
}

static void print_json(const struct listing *l)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-list-1");
	json_array(&j, "events");
	for (size_t i = 0; i < l->nr; i++) {
		const struct entry *e = &l->entries[i];

		json_object(&j, NULL);
		json_str(&j, "name", e->name);
		if (*e->alias)
			json_str(&j, "alias", e->alias);
		json_str(&j, "kind", kind_id(e->kind));
		json_str(&j, "description", e->desc);
		if (*e->encoding)
			json_str(&j, "encoding", e->encoding);
		if (*e->pmu)
			json_str(&j, "pmu", e->pmu);
		if (*e->unit)
			json_str(&j, "unit", e->unit);
		if (e->checked)
			json_str(&j, "counted_by", counted_by(e));
		if (e->modeled)
			json_str(&j, "modeled", l->machine_name);
		if (l->opts.check && e->checked)
			json_bool(&j, "opens", e->rc >= 0);
		if (l->opts.check && e->rc > 0)
			json_bool(&j, "user_only", true);
		if (l->opts.check && e->error) {
			json_object(&j, "reason");
			json_str(&j, "cause", ap_cause_name(e->error->cause));
			json_s64(&j, "errno", -e->error->code);
			json_str(&j, "why", e->error->why);
			json_str(&j, "remedy", e->error->remedy);
			json_end(&j);
		}
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}

static bool kind_word(const char *word, unsigned int *kind)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t w = 0; w < ARRAY_SIZE(kinds[k].words) && kinds[k].words[w]; w++)
			if (!strcmp(word, kinds[k].words[w])) {
				*kind |= kinds[k].kind;
				return true;
			}
	return false;
}

/* Nothing matched: the library says what was close. */
static int none_matched(struct listing *l)
{
	struct listing all = {.machine = l->machine};
	struct ap__nearest near;
	struct ap_error err;
	char hint[400];

	ap__nearest_init(&near, l->glob);
	if (!ap_events_each(l->machine, NULL, collect, &all, &err))
		for (size_t i = 0; i < all.nr; i++) {
			ap__nearest_offer(&near, all.entries[i].name);
			if (*all.entries[i].alias)
				ap__nearest_offer(&near, all.entries[i].alias);
		}
	for (const struct stat_tool *t = stat_tools; t->name; t++)
		ap__nearest_offer(&near, t->name);
	ap__nearest_text(&near, hint, sizeof(hint));
	all.machine = NULL;
	release(&all);
	command_error(&cmd_list, "no event of this machine matches '%s'%s%s", l->glob,
		      *hint ? "; " : "", hint);
	return 1;
}

static bool has(const struct listing *l, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(l->entries[i].name, name))
			return true;
	return false;
}

/*
 * Takes events from @from on for the virtual PMU's, but those that are the kernel's too and are
 * there already: it shows its guests the machine's other PMUs.
 */
static void keep_new(struct listing *l, size_t from)
{
	size_t kept = from;

	for (size_t i = from; i < l->nr; i++) {
		if (has(l, kept, l->entries[i].name)) {
			release_entry(&l->entries[i]);
			continue;
		}
		l->entries[kept] = l->entries[i];
		l->entries[kept++].is_virtual = true;
	}
	l->nr = kept;
}

/* Adds the PMUs that the virtual one brings with it where the kernel has no PMU of the CPU. */
static int add_virtual(struct listing *l, const char *glob, struct ap_error *err)
{
	struct ap_list_opts opts = AP_OPTS(ap_list_opts, .kinds = AP_KIND_PMU, .glob = glob);
	size_t before = l->nr;
	int rc;

	if (l->kinds && !(l->kinds & AP_KIND_PMU))
		return 0;
	if (!l->lacks && (ap_event_probe(l->machine, "instructions:u", err) >= 0 ||
			  !(l->lacks = ap__pmu_lacks(l->machine, err))))
		return 0;
	if (!virtual_pmu(l))
		return 0;
	rc = ap_events_each(l->virtual_pmu, &opts, collect, l, err);
	keep_new(l, before);
	return rc;
}

static int add_matching(struct listing *l, const char *glob, struct ap_error *err)
{
	struct ap_list_opts opts = AP_OPTS(ap_list_opts, .kinds = l->kinds & AP_KIND_ALL,
					   .glob = glob);
	int rc;

	if (!l->kinds || l->kinds & KIND_TOOL)
		for (const struct stat_tool *t = stat_tools; t->name; t++)
			if (!glob || !fnmatch(glob, t->name, FNM_CASEFOLD))
				collect(&(struct ap_listed){.name = t->name,
							    .desc = t->desc,
							    .unit = "ns",
							    .kind = KIND_TOOL},
					l);
	if (l->kinds && !opts.kinds)
		return 0;
	rc = ap_events_each(l->machine, &opts, collect, l, err);
	return rc ? rc : add_virtual(l, glob, err);
}

static int run(int argc, char **argv)
{
	struct listing l = {0};
	int first = options_parse(&cmd_list, &l.opts, argc, argv);
	struct ap_error err;
	char text[1100];
	int rc = 0, status = 0;

	if (first < 0)
		return command_leave_status(&cmd_list, first);
	rc = ap_machine_new(&l.machine, NULL);
	if (rc) {
		command_error(&cmd_list, "out of memory");
		return cmd_list.failure;
	}
	for (int i = first; i < argc; i++)
		if (!kind_word(argv[i], &l.kinds))
			l.glob = argv[i];
	for (int i = first; i < argc && !rc && l.glob; i++) {
		unsigned int unused = 0;

		if (!kind_word(argv[i], &unused))
			rc = add_matching(&l, argv[i], &err);
	}
	if (!l.glob)
		rc = add_matching(&l, NULL, &err);
	if (rc) {
		command_error(&cmd_list, "%s", ap_error_text(&err, text, sizeof(text)));
		status = cmd_list.failure;
	} else if (!l.nr && l.glob) {
		status = none_matched(&l);
	} else {
		/* Names are for scripts and the shell, which would wait for what is not shown. */
		if (l.opts.check || !l.opts.names)
			check(&l);
		if (l.opts.json)
			print_json(&l);
		else if (l.opts.names)
			print_names(&l);
		else
			print_text(&l);
		status = l.opts.check && l.failed ? 1 : 0;
	}
	release(&l);
	return status;
}

const struct command cmd_list = {
	.name = "list",
	.summary = "list the events that can be counted on this machine",
	.synopsis = "[options] [hw | sw | cache | pmu | tracepoint | pfm | tool | GLOB]...",
	.description =
		"Lists events with what they count: the kernel's generic names, those of the PMUs in sysfs, "
		"tracepoints, what libpfm4 knows if it is installed, the times that `anyperf stat` measures "
		"itself, and the forms in which others can be written. A word selects a kind, anything else is matched with the names (letter case "
		"ignored), where * ? [ ] stand for what they do in a shell.\n\n"
		"A letter before a hardware, software, cache or PMU event says who counts it for `anyperf stat`: `k` the "
		"kernel, `v` the virtual PMU, in user mode, where the kernel has no PMU of the CPU; `-` stands for nobody. "
		"With --check others have one too. The virtual PMU's own events are listed where it is used.",
	.options = options,
	.sections =
		(const struct section[]){
			{"Exit status",
			 "0; 1 if nothing matched or, with --check, an event fails; 2 if it was called wrongly."},
			{0},
		},
	.see_also = "anyperf-stat(1), perf-list(1)",
	.failure = 2,
	.run = run,
};
