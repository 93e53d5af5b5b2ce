#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/script/record-text.h"
#include "cli/script/script-priv.h"

#define AT(field) .offset = offsetof(struct script_opts, field)

/* clang-format off */
static const struct option table[] = {
	{OPTION_GROUP, .help = "What is shown"},
	{OPTION_STR, 'F', "fields", "FIELDS", AT(fields),
	 .help = "show these fields of each sample, separated by commas, as in comm,tid,time,ip,sym",
	 .more = "They are comm, pid, tid, cpu, time, period, event, trace, addr, ip, sym, symoff, dso, uregs, "
		 "brstack, brstacksym, weight, data_src and phys_addr. With + or - in front they are added to the usual "
		 "ones, or taken away. What the samples of an event do not have is refused."},
	{OPTION_FLAG, 0, "ns", AT(ns), .help = "show times in nanoseconds"},
	{OPTION_FLAG, 'j', "json", AT(json), .help = "write a line of JSON for each sample"},
	{OPTION_FLAG, 'D', "dump-raw-trace", AT(dump),
	 .help = "show every record with all its fields, as the file has them"},

	{OPTION_GROUP, .help = "Of what"},
	READING_FILTER_OPTIONS(struct script_opts, filter),
	{0},
};
/* clang-format on */

static const struct absent_option absent_options[] = {
	{'s', "script", "there are no scripts inside; --json is for programs"},
	{'g', "gen-script", "there are no scripts inside; --json is for programs"},
	{'l', "list", "there are no scripts inside; --json is for programs"},
	{'G', "hide-call-graph", "-F -ip,-sym leaves the chain away"},
	{0},
};

static const char *file_type(u32 type)
{
	static const struct {
		u32 type;
		const char *name;
	} names[] = {
		{DATA_HEADER_ATTR, "HEADER_ATTR"},
		{DATA_HEADER_TRACING_DATA, "TRACING_DATA"},
		{DATA_HEADER_BUILD_ID, "BUILD_ID"},
		{DATA_FINISHED_ROUND, "FINISHED_ROUND"},
		{69, "ID_INDEX"},
		{70, "AUXTRACE_INFO"},
		{DATA_AUXTRACE, "AUXTRACE"},
		{73, "THREAD_MAP"},
		{74, "CPU_MAP"},
		{79, "TIME_CONV"},
		{DATA_EVENT_UPDATE, "EVENT_UPDATE"},
		{DATA_HEADER_FEATURE, "HEADER_FEATURE"},
		{DATA_FINISHED_INIT, "FINISHED_INIT"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].type == type)
			return names[i].name;
	return NULL;
}

/* A line for each record, at its offset; of compressed ones that of what holds them. */
static void dump(const struct data_item *item)
{
	const char *name = ap_record_name(item->record.type);

	printf("%#" PRIx64 "%s ", item->offset, item->unpacked ? "z" : "");
	if (item->decoded) {
		show_record(stdout, &item->record);
		return;
	}
	if (!name)
		name = file_type(item->record.type);
	if (name)
		printf("%s", name);
	else
		printf("unknown(%u)", item->record.type);
	printf(" misc=%#x size=%u%s%s\n", item->record.misc, item->record.size,
	       item->why ? " undecoded: it " : "", item->why ? item->why : "");
}

static void show(struct script_job *job, const struct data_item *item)
{
	if (job->opts.dump) {
		dump(item);
		return;
	}
	if (item->record.type != PERF_RECORD_SAMPLE || !item->decoded)
		return;
	if (job->opts.json)
		script_print_json(job, item);
	else
		script_print_text(job, item);
}

static int run(int argc, char **argv)
{
	static char buffer[65536];
	struct script_job job = {0};
	int first = options_parse(&cmd_script, &job.opts, argc, argv), status = 0;
	struct data_item item;

	if (first < 0)
		return command_leave_status(&cmd_script, first);
	if (first < argc)
		return command_error(&cmd_script, "takes no argument, not '%s'; -i names the file",
				     argv[first]),
		       cmd_script.failure;
	if (script_fields_parse(&job))
		return cmd_script.failure;
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (reading_open(&job.reading, &cmd_script, &job.opts.filter,
			 job.opts.dump ? READING_AS_IT_STANDS : READING_BY_TIME))
		status = cmd_script.failure;
	else if (!job.opts.dump && !job.opts.json)
		script_fields_need(&job);
	while (!status && !ferror(stdout) && reading_next(&job.reading, &item))
		show(&job, &item);
	if (job.reading.refused)
		status = cmd_script.failure;
	if (!status)
		reading_say_losses(&job.reading);
	reading_close(&job.reading);
	return status;
}

const struct command cmd_script = {
	.name = "script",
	.summary = "show the samples of a recording one by one",
	.synopsis = "[options]",
	.description =
		"Prints each sample of perf.data in the order of time: thread, time, event, and where it "
		"was, with its call chain if it has one. The text is perf script's, so what reads that "
		"(flamegraph.pl, speedscope, the Firefox Profiler) reads this.",
	.options = table,
	.absent = absent_options,
	.sections =
		(const struct section[]){
			{"Names",
			 "Symbols come from the files that were recorded, if they are still the same by "
			 "their build ids, from their debug files (by build id below /usr/lib/debug/.build-id, or "
			 "by .gnu_debuglink beside the file, in .debug there, and in its folder below "
			 "/usr/lib/debug), and from /proc/kallsyms for the kernel that runs. Copied stacks (`record -g=dwarf`) are "
			 "followed with libdw, where that is installed. Functions that the compiler has "
			 "put into others are not named apart, as with perf script --no-inline."},
			{"Tracepoints",
			 "Their fields are shown as NAME=VALUE, not in the words that the kernel has for "
			 "each of them."},
			{"Exit status",
			 "0, or 2 if the recording cannot be read at all. What ends before "
			 "its end is shown up to there, and said."},
			{0},
		},
	.see_also = "anyperf-record(1), perf-script(1)",
	.failure = 2,
	.run = run,
};
