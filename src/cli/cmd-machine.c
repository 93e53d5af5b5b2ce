/* The machines of the model: lists them, and shows one as the text that it can be read from. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/json.h"
#include "lib/machine/machine-file.h"

struct machine_opts {
	bool json;
	const char *geometry[MACHINE_CACHES];
};

#define GEOMETRY(text, id, of)                                                           \
	{                                                                                \
		OPTION_STR, 0, text, "SIZE,WAYS,LINE",                                   \
			.offset = offsetof(struct machine_opts, geometry[MACHINE_##id]), \
			.help = "show it with this " of ", sizes in bytes",              \
			.more = "As cachegrind's option."                                \
	}

static const struct option options[] = {
	{OPTION_FLAG, 'j', "json", .offset = offsetof(struct machine_opts, json),
	 .help = "print a JSON object (doc/json.md)"},
	GEOMETRY("I1", L1I, "instruction cache"),
	GEOMETRY("D1", L1D, "data cache"),
	GEOMETRY("LL", LL, "last-level cache"),
	{0},
};

static void list_one(const struct machine *m, void *data)
{
	struct json *j = data;

	if (!j) {
		printf("%-17s %s\n", m->name, m->about);
		return;
	}
	json_object(j, NULL);
	json_str(j, "name", m->name);
	json_str(j, "about", m->about);
	json_end(j);
}

static void list(bool as_json)
{
	struct json j;

	if (!as_json) {
		ap__model_machines(list_one, NULL);
		return;
	}
	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-machine-1");
	json_array(&j, "machines");
	ap__model_machines(list_one, &j);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}

static void show_text(const struct machine *m)
{
	struct machine_field f;
	bool begins = true;

	printf("anyperf-machine %u\n", m->version);
	for (u32 at = 0; machine_next_field(m, &at, &f); begins = f.ends) {
		if (begins)
			printf("%s%s%s", f.subject, *f.of ? " " : "", f.of);
		printf("%s%s %s%s", *f.name ? " " : "", f.name, f.value, f.ends ? "\n" : "");
	}
}

static void show_json(const struct machine *m)
{
	struct machine_field f;
	bool begins = true, in_classes = false;
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-machine-1");
	for (u32 at = 0; machine_next_field(m, &at, &f); begins = f.ends) {
		if (!*f.name) {
			json_str(&j, f.subject, f.value);
			continue;
		}
		if (*f.of && !in_classes) {
			in_classes = true;
			json_object(&j, "class");
		}
		if (begins)
			json_object(&j, *f.of ? f.of : f.subject);
		if (f.scale > 1)
			json_double(&j, f.name, (double)f.number / f.scale, 2);
		else if (f.scale)
			json_u64(&j, f.name, f.number);
		else
			json_str(&j, f.name, f.value);
		if (f.ends)
			json_end(&j);
	}
	if (in_classes)
		json_end(&j);
	json_end(&j);
	json_finish(&j);
}

static int run(int argc, char **argv)
{
	struct machine_opts opts = {0};
	int first = options_parse(&cmd_machine, &opts, argc, argv);
	struct ap_error err;
	struct machine m;
	char text[1100];
	int rc;

	if (first < 0)
		return command_leave_status(&cmd_machine, first);
	if (argc - first > 1) {
		command_error(&cmd_machine, "shows one machine, not '%s' besides", argv[first + 1]);
		return cmd_machine.failure;
	}
	if (first == argc) {
		for (u32 id = 0; id < MACHINE_CACHES; id++)
			if (opts.geometry[id]) {
				command_error(&cmd_machine, "which machine is to have this cache?");
				return cmd_machine.failure;
			}
		list(opts.json);
		return 0;
	}
	rc = ap__model_machine(&m, argv[first], &err);
	for (u32 id = 0; !rc && id < MACHINE_CACHES; id++)
		if (opts.geometry[id])
			rc = ap__model_geometry(&m, id, opts.geometry[id], &err);
	if (rc) {
		command_error(&cmd_machine, "%s", ap_error_text(&err, text, sizeof(text)));
		return cmd_machine.failure;
	}
	if (opts.json)
		show_json(&m);
	else
		show_text(&m);
	return 0;
}

const struct command cmd_machine = {
	.name = "machine",
	.summary = "list the machines that can be modeled, and show one",
	.synopsis = "[options] [NAME | FILE]",
	.description =
		"Events that no hardware counts, as cycles, cache misses and branch misses, can come from a model of a "
		"machine: the geometry of its caches and TLBs, its predictors, its widths, and what it loses to each "
		"event. Lists the machines that are known, each with what it is; `host` is the one that anyperf runs "
		"on, as far as it tells: the sizes of its caches, and else the nearest of the others.\n\n"
		"With a name shows that machine as a text. A text can be changed and given as a FILE; one that is wrong is "
		"refused, by line and field. FILE has a `/` in it if a machine has that name, too.",
	.options = options,
	.sections =
		(const struct section[]){
			{"Exit status",
			 "0; 2 if there is no such machine, its text is wrong, or the command was called wrongly."},
			{"Examples", "  anyperf machine\n"
				     "  anyperf machine host > mine.machine\n"
				     "  anyperf machine cachegrind --LL 1048576,16,64"},
			{0},
		},
	.see_also = "anyperf-list(1), anyperf-doctor(1)",
	.failure = 2,
	.run = run,
};
