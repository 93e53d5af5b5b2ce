#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/profile/profile.h"
#include "cli/put-name.h"
#include "sym/line-reader.h"

struct report_opts {
	struct reading_filter filter;
	const char *sort;
	bool children;
	double percent_limit;
	const char *dsos, *symbols;
	bool tree;
	enum call_order order; /* CALL_ORDER_NONE: as with perf report */
	double least;          /* percent; below 0: none was said */
	bool stdio;
	bool json;
	bool group;
	const char *group_by; /* NULL: the first event */
};

#define AT(field) .offset = offsetof(struct report_opts, field)

static int set_group(void *into, const char *arg, char *why, size_t size)
{
	struct report_opts *o = into;

	(void)why;
	(void)size;
	o->group = true;
	o->group_by = arg;
	return 0;
}

static int set_limit(void *into, const char *arg, char *why, size_t size)
{
	struct report_opts *o = into;
	char *end;

	o->percent_limit = strtod(arg, &end);
	if (end != arg && !*end && o->percent_limit >= 0 && o->percent_limit <= 100)
		return 0;
	snprintf(why, size, "'%.40s' is no share in percent", arg);
	return -1;
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && !strncmp(text, word, len);
}

/* What perf report takes here, of which shapes and what is added up are always the same. */
static int set_tree(void *into, const char *arg, char *why, size_t size)
{
	static const char *const kept[] = {"graph", "function", "percent"};
	struct report_opts *o = into;

	o->tree = true;
	while (arg && *arg) {
		size_t len = strcspn(arg, ","), i = 0;
		char *end;
		double n = strtod(arg, &end);

		while (i < ARRAY_SIZE(kept) && !is_word(arg, len, kept[i]))
			i++;
		if (is_word(arg, len, "caller"))
			o->order = CALL_ORDER_CALLER;
		else if (is_word(arg, len, "callee"))
			o->order = CALL_ORDER_CALLEE;
		else if (is_word(arg, len, "none"))
			o->tree = false;
		else if (end == arg + len && n >= 0 && n <= 100)
			o->least = n;
		else if (i == ARRAY_SIZE(kept))
			return snprintf(why, size,
					"'%.*s' is neither caller, callee, none, nor a share in "
					"percent",
					(int)(len < 40 ? len : 40), arg),
			       -1;
		arg += len + (arg[len] == ',');
	}
	return 0;
}

static int set_inverted(void *into, const char *arg, char *why, size_t size)
{
	(void)arg;
	return set_tree(into, "caller", why, size);
}

/* clang-format off */
static const struct option table[] = {
	{OPTION_GROUP, .help = "What is shown"},
	{OPTION_STR, 's', "sort", "KEYS", AT(sort),
	 .help = "add up by these keys: pid, tid, cpu, comm, dso, sym, line, data (comm,dso,sym)",
	 .more = "Of an empty list all samples are one row, as with perf report."},
	{OPTION_FLAG, 0, "children", AT(children),
	 .help = "also add to each function what those took that it called; needs call chains"},
	{OPTION_CALL, 0, "percent-limit", "PERCENT", .call = set_limit,
	 .help = "leave out what has less than PERCENT of all, with --group of the event that orders"},
	{OPTION_STR, 'd', "dsos", "OBJECTS", AT(dsos),
	 .help = "show only these objects, separated by commas; shares stay those of all"},
	{OPTION_STR, 'S', "symbols", "SYMBOLS", AT(symbols), .help = "likewise only these functions",
	 .more = "As the table has them: `-S malloc -g` shows who has called malloc."},
	{OPTION_CALL, 'g', "call-graph", .optional = "ORDER,PERCENT", .call = set_tree,
	 .help = "show below each function the ways to it, or with --children on from it",
	 .more = "ORDER is `callee`, from the function to its callers, or `caller`, from who calls to who is "
		 "called, which is the default with --children. What has less than PERCENT of all (0.5, or 0 "
		 "with -S) is left out. With `none` there are no trees. Needs call chains."},
	{OPTION_CALL, 'G', "inverted", .call = set_inverted, .help = "as -g caller"},
	{OPTION_CALL, 0, "group", .optional = "EVENT", .call = set_group,
	 .help = "show all events side by side, in the order of EVENT, or of the first one"},
	{OPTION_FLAG, 0, "stdio", AT(stdio), .help = "print a table; there is no other form yet"},
	{OPTION_FLAG, 'j', "json", AT(json), .help = "write the table as JSON"},

	{OPTION_GROUP, .help = "Of what"},
	READING_FILTER_OPTIONS(struct report_opts, filter),
	{0},
};
/* clang-format on */

static const struct absent_option absent_options[] = {
	{0, "tui", "there is no form but the table"},
	{0, "no-children", "that is how it is without --children"},
	{0},
};

static int parse_keys(const char *text, unsigned int *keys)
{
	static const struct {
		const char *name;
		unsigned int key;
	} names[] = {{"comm", PROFILE_COMM},        {"dso", PROFILE_OBJECT},
		     {"pid", PROFILE_PID},          {"tid", PROFILE_TID},
		     {"cpu", PROFILE_CPU},          {"sym", PROFILE_SYMBOL},
		     {"symbol", PROFILE_SYMBOL},    {"line", PROFILE_LINE},
		     {"srcline", PROFILE_LINE},     {"data", PROFILE_DATA},
		     {"symbol_daddr", PROFILE_DATA}};

	*keys = text ? 0 : PROFILE_COMM | PROFILE_OBJECT | PROFILE_SYMBOL;
	while (text && *text) {
		size_t len = strcspn(text, ","), i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (strlen(names[i].name) != len || strncmp(names[i].name, text, len) != 0))
			i++;
		if (i == ARRAY_SIZE(names))
			return command_error(&cmd_report,
					     "--sort: '%.*s' is none of pid, tid, cpu, comm, dso, "
					     "sym, line, data",
					     (int)(len < 40 ? len : 40), text);
		*keys |= names[i].key;
		text += len + (text[len] == ',');
	}
	return 0;
}

static void json_place(struct json *j, const struct profile *p, const struct profile_row *row)
{
	char text[24];

	if (p->keys & PROFILE_PID)
		json_s64(j, "pid", (s32)row->pid);
	if (p->keys & PROFILE_TID)
		json_s64(j, "tid", (s32)row->tid);
	if (p->keys & PROFILE_CPU)
		json_u64(j, "cpu", row->cpu);
	if (row->comm)
		json_str(j, "comm", row->comm);
	if (row->object)
		json_str(j, "object", row->object);
	if (p->keys & PROFILE_SYMBOL) {
		json_str(j, "mode", row->kernel ? "kernel" : "user");
		snprintf(text, sizeof(text), "%#" PRIx64, row->addr);
		if (row->symbol)
			json_str(j, "symbol", row->symbol);
		else
			json_str(j, "address", text);
	}
	if (row->file) {
		json_str(j, "file", row->file);
		json_u64(j, "line", row->line);
	}
	if (row->data.object) {
		json_str(j, "data_object", row->data.object);
		snprintf(text, sizeof(text), "%#" PRIx64, row->data.addr);
		if (row->data.name)
			json_str(j, "data", row->data.name);
		else
			json_str(j, "data_address", text);
	}
}

static void json_row(struct json *j, const struct profile *p, const struct profile_row *row)
{
	u64 whole = p->period[row->event];

	json_object(j, NULL);
	if (p->children)
		json_double(j, "children_percent", profile_percent(row->children, whole), 2);
	json_double(j, "percent", profile_percent(row->period, whole), 2);
	json_u64(j, "samples", row->samples);
	json_u64(j, "period", row->period);
	json_place(j, p, row);
	if (p->tree)
		call_tree_json(j, "ways", row->tree, p->children ? row->children : row->period,
			       whole, p->tree_least);
	json_end(j);
}

static void json_group_row(struct json *j, const struct profile *p, const struct profile_row *row)
{
	json_object(j, NULL);
	json_u64(j, "samples", row->samples);
	json_array(j, "periods");
	for (u32 e = 0; e < p->group; e++)
		if (e < p->events && p->counts[e])
			json_u64(j, NULL, row->group ? row->group[e] : 0);
	json_end(j);
	json_place(j, p, row);
	json_end(j);
}

static void json_machine(struct json *j, struct reading *r)
{
	if (reading_machine(r))
		json_str(j, "machine", reading_machine(r));
	if (reading_windows(r))
		json_str(j, "windows", reading_windows(r));
}

/* All events in one object; a row has the periods of those in `events`, in their order. */
static void json_group(const struct profile *p, struct reading *r)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-report-1");
	json_array(&j, "events");
	for (u32 e = 0; e < p->events; e++) {
		if (!p->counts[e])
			continue;
		json_object(&j, NULL);
		json_str(&j, "event", reading_event_name(r, (int)e));
		json_u64(&j, "samples", p->counts[e]);
		json_u64(&j, "period", p->period[e]);
		json_end(&j);
	}
	json_end(&j);
	json_u64(&j, "lost", r->lost);
	json_machine(&j, r);
	json_array(&j, "rows");
	for (u32 i = 0; i < p->n; i++)
		if (profile_shows(p, &p->rows[i]))
			json_group_row(&j, p, &p->rows[i]);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}

static void json_event(const struct profile *p, struct reading *r, int event)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-report-1");
	json_str(&j, "event", reading_event_name(r, event));
	json_u64(&j, "samples", p->counts[event]);
	json_u64(&j, "period", p->period[event]);
	json_u64(&j, "lost", r->lost);
	json_machine(&j, r);
	json_array(&j, "rows");
	for (u32 i = 0; i < p->n; i++)
		if (p->rows[i].event == event && profile_shows(p, &p->rows[i]))
			json_row(&j, p, &p->rows[i]);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}

static void print(const struct profile *p, struct reading *r, bool json)
{
	if (!p->samples && !json) {
		printf("# no samples\n");
	} else if (reading_machine(r) && !json) {
		printf("# modeled: ");
		put_name(stdout, 0, reading_machine(r));
		if (reading_windows(r)) {
			printf("; cycles and branch misses at a frequency in windows: ");
			put_name(stdout, 0, reading_windows(r));
		}
		putchar('\n');
	}
	if (p->group && p->samples && json)
		json_group(p, r);
	else if (p->group && p->samples)
		profile_print_group(p, r, stdout);
	for (u32 e = 0; e < p->events; e++) {
		if (!p->counts[e] || p->group)
			continue;
		if (json)
			json_event(p, r, (int)e);
		else
			profile_print(p, r, (int)e, UINT32_MAX, stdout);
	}
}

/* The events are known when the first record is. */
static int choose_group(struct profile *p, const struct reading *r, const struct report_opts *o)
{
	size_t len = o->group_by ? strlen(o->group_by) : 0;
	bool found = !o->group_by;

	for (p->group = 0; data_reader_event(r->data, p->group); p->group++) {
		const char *name = reading_event_name(r, (int)p->group);

		/* As it was asked for, or as it stands in the file. */
		if (!found && !strncmp(name, o->group_by, len) &&
		    (!name[len] || name[len] == ':')) {
			p->group_by = p->group;
			found = true;
		}
	}
	if (found)
		return 0;
	return command_error(&cmd_report, "--group: the recording has no event '%s'", o->group_by);
}

/* Which rows are shown. Names need their keys. */
static int choose_rows(struct profile *p, const struct report_opts *o)
{
	p->least = o->percent_limit;
	p->objects = o->dsos;
	p->symbols = o->symbols;
	if (o->dsos && !(p->keys & PROFILE_OBJECT))
		return command_error(&cmd_report, "--dsos needs the key dso of --sort");
	if (o->symbols && !(p->keys & PROFILE_SYMBOL))
		return command_error(&cmd_report, "--symbols needs the key sym of --sort");
	return 0;
}

static int read_all(struct profile *p, struct reading *r, const struct report_opts *o)
{
	struct data_item item;

	while (reading_next(r, &item)) {
		if (o->group && !p->group && choose_group(p, r, o))
			return -1;
		if (item.record.type == PERF_RECORD_SAMPLE && item.decoded)
			profile_add(p, r, &item);
	}
	return r->refused ? -1 : 0;
}

/* With chains `record --exact` has a sample for each run of instructions, of whatever lines. */
static void note_runs(const struct profile *p, const struct reading *r)
{
	const struct data_event *e = data_reader_event(r->data, 0);

	if (e && p->keys & PROFILE_LINE && e->attr.type == PERF_TYPE_HARDWARE &&
	    e->attr.config == PERF_COUNT_HW_INSTRUCTIONS && !e->attr.freq &&
	    e->attr.sample_period == 1 && e->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		command_error(
			&cmd_report,
			"with -g, `record --exact` tells of runs of instructions, and of each the "
			"line where it begins; without -g or --toggle each line has its own");
}

static int run(int argc, char **argv)
{
	struct report_opts opts = {.least = -1};
	int first = options_parse(&cmd_report, &opts, argc, argv), status = 0;
	struct profile profile = {0};
	struct reading reading;
	char why[100];

	if (first < 0)
		return command_leave_status(&cmd_report, first);
	/* `-g caller` is how perf has it. */
	if (first < argc && opts.tree && !set_tree(&opts, argv[first], why, sizeof(why)))
		first++;
	if (first < argc)
		return command_error(&cmd_report, "takes no argument, not '%s'; -i names the file",
				     argv[first]),
		       cmd_report.failure;
	if (parse_keys(opts.sort, &profile.keys))
		return cmd_report.failure;
	if (profile.keys & PROFILE_LINE && !line_reader_works())
		command_error(&cmd_report,
			      "libdw.so.1 is not installed, which reads lines: there are "
			      "none (Debian: libdw1)");
	if (opts.group && opts.children)
		return command_error(&cmd_report, "--group and --children exclude each other"),
		       cmd_report.failure;
	if (opts.tree && opts.group)
		return command_error(&cmd_report,
				     "-g shows trees of one event, and --group all events"),
		       cmd_report.failure;
	profile.children = opts.children;
	profile.tree_least = opts.least >= 0 ? opts.least : opts.symbols ? 0 : 0.5;
	if (choose_rows(&profile, &opts))
		return cmd_report.failure;
	if (opts.tree)
		profile.tree = opts.order      ? opts.order
			       : opts.children ? CALL_ORDER_CALLER
					       : CALL_ORDER_CALLEE;
	if (reading_open(&reading, &cmd_report, &opts.filter, READING_BY_TIME)) {
		status = cmd_report.failure;
	} else {
		reading.data_maps = profile.keys & PROFILE_DATA;
		if (profile.keys & PROFILE_CPU)
			reading_needs(
				&reading,
				(struct reading_need){
					PERF_SAMPLE_CPU, "--sort=cpu", "CPU",
					"`anyperf record` records it without -i and --exact"});
		if (read_all(&profile, &reading, &opts)) {
			status = cmd_report.failure;
		} else {
			profile_sort(&profile);
			print(&profile, &reading, opts.json);
			note_runs(&profile, &reading);
			if (opts.tree && profile.samples && !profile.ways &&
			    !reading.unwinder_tried)
				command_error(&cmd_report, "no sample has a call chain; `anyperf "
							   "record -g` takes them");
		}
		reading_say_losses(&reading);
	}
	profile_release(&profile);
	reading_close(&reading);
	return status;
}

const struct command cmd_report = {
	.name = "report",
	.summary = "show where the samples of a recording were taken",
	.synopsis = "[options]",
	.description =
		"Adds up the samples of perf.data by thread name, object and symbol, and prints a table "
		"for each event, the largest share first. A share is of the occurrences that the samples "
		"stand for.",
	.options = table,
	.absent = absent_options,
	.sections =
		(const struct section[]){
			{"Columns",
			 "`Overhead` is the share of what happened in the function itself, `Samples` how "
			 "many samples that were. With --children `Children` is the share of the function "
			 "with all that it called, and `Self` its own. `[.]` is user mode, `[k]` the kernel. "
			 "An address stands where nobody knows a symbol. An object stands with its folder where "
			 "another one has the same name."},
			{"Call trees",
			 "With -g a tree stands below each function that has call chains (`record -g`). A branch has "
			 "its share of all, and under it who has called that, and so on; what has no share of its "
			 "own is all of the one above. Of a function that calls itself the longest way is shown. "
			 "-G tells the same ways from their beginning. With --children a tree has what the function "
			 "has called."},
			{"Several events",
			 "A recording of several events has a table for each. With --group there is one table, "
			 "with the counts of all events and their shares beside each other: of an exact profile "
			 "(`anyperf record --exact --machine`) what each function, line or variable costs."},
			{"Lines and data",
			 "`line` is the line of the source, from the file's debug information; of a caller it is "
			 "that of the call, where perf report has what comes behind it. `data` is what "
			 "was accessed, of samples that say an address (`anyperf record -d`, and `--exact -d` "
			 "with every access of a modeled event): a symbol of a file's data, with the file; "
			 "`[heap]`; `[stack:TID]`, the stack of a thread; `[file]`, a file that is mapped; "
			 "`[anon]` with the address of other memory, as that of large blocks of malloc(3). "
			 "The stack of a thread that is not its process's first is known where samples have "
			 "the stack pointer (`record --exact -d`, `--user-regs=sp`); elsewhere it is `[anon]`. "
			 "Thread-local variables have no names: they lie in their thread's stack, those of "
			 "the first thread in `[anon]`. "
			 "-s sym,data says which function accesses what."},
			{"Exit status",
			 "0, or 2 if the recording cannot be read at all. What ends before "
			 "its end is shown up to there, and said."},
			{0},
		},
	.see_also = "anyperf-record(1), anyperf-script(1), perf-report(1)",
	.failure = 2,
	.run = run,
};
