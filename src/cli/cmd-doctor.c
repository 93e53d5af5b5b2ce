#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <anyperf/machine.h>

#include "backend/translations.h"
#include "cli/cmd.h"
#include "cli/help/help.h"
#include "cli/json.h"
#include "cli/terminal.h"

struct doctor_opts {
	bool json;
	bool clear_translations;
};

/* clang-format off */
static const struct option options[] = {
	{OPTION_FLAG, 'j', "json", .offset = offsetof(struct doctor_opts, json),
	 .help = "print a JSON object (doc/json.md)"},
	{OPTION_FLAG, 0, "clear-translations",
	 .offset = offsetof(struct doctor_opts, clear_translations),
	 .help = "remove what --translations=user has kept, and do nothing else",
	 .more = "Programs that run meanwhile go on. Later ones draw their addresses anew."},
	{0},
};
/* clang-format on */

static const struct {
	const char *word, *colour;
} states[] = {
	[AP_FACT_INFO] = {"info", ""},
	[AP_FACT_GOOD] = {"good", "\033[32m"},
	[AP_FACT_LIMITED] = {"limited", "\033[33m"},
	[AP_FACT_BAD] = {"bad", "\033[31m"},
};

struct doctor {
	struct json json;
	struct terminal terminal;
	u32 found[ARRAY_SIZE(states)];
};

static int print_fact(const struct ap_fact *fact, void *data)
{
	const int column = 9;
	struct doctor *d = data;
	bool colour = d->terminal.colour && *states[fact->state].colour;

	d->found[fact->state]++;
	printf("%s%-8s%s %s: %s\n", colour ? states[fact->state].colour : "",
	       states[fact->state].word, colour ? "\033[0m" : "", fact->title, fact->value);
	if (*fact->effect)
		help_wrap(stdout, fact->effect, column, 0, d->terminal.width);
	if (*fact->remedy) {
		int at = printf("%*s-> ", column, "");

		help_wrap(stdout, fact->remedy, column + 3, at, d->terminal.width);
	}
	return 0;
}

static int json_fact(const struct ap_fact *fact, void *data)
{
	struct doctor *d = data;

	d->found[fact->state]++;
	json_object(&d->json, NULL);
	json_str(&d->json, "id", fact->id);
	json_str(&d->json, "title", fact->title);
	json_str(&d->json, "state", states[fact->state].word);
	json_str(&d->json, "value", fact->value);
	json_str(&d->json, "effect", fact->effect);
	json_str(&d->json, "remedy", fact->remedy);
	json_end(&d->json);
	return 0;
}

static int clear_translations(void)
{
	struct translations_kept kept;
	int err = ap__translations_clear(&kept);

	if (err && err != -ENOENT) {
		command_error(&cmd_doctor, "'%s' %s", kept.path,
			      err == -EPERM ? "is not this user's alone" : strerror(-err));
		return 1;
	}
	printf("removed %zu files, %.1f MB\n", kept.files, (double)kept.bytes / (1 << 20));
	return 0;
}

static int run(int argc, char **argv)
{
	struct doctor_opts opts = {0};
	int first = options_parse(&cmd_doctor, &opts, argc, argv);
	struct doctor d = {.terminal = terminal_of(stdout)};
	struct ap_machine *machine;
	int rc;

	if (first < 0)
		return command_leave_status(&cmd_doctor, first);
	if (first < argc) {
		command_error(&cmd_doctor, "takes no argument, not '%s'", argv[first]);
		return cmd_doctor.failure;
	}
	if (opts.clear_translations)
		return clear_translations();
	rc = ap_machine_new(&machine, NULL);
	if (!rc && opts.json) {
		json_begin(&d.json, stdout);
		json_object(&d.json, NULL);
		json_str(&d.json, "schema", "anyperf-doctor-1");
		json_array(&d.json, "facts");
		rc = ap_machine_facts(machine, json_fact, &d);
		json_end(&d.json);
		json_end(&d.json);
		json_finish(&d.json);
	} else if (!rc) {
		rc = ap_machine_facts(machine, print_fact, &d);
		printf("\n%u good, %u limited, %u bad\n", d.found[AP_FACT_GOOD],
		       d.found[AP_FACT_LIMITED], d.found[AP_FACT_BAD]);
	}
	ap_machine_free(rc ? NULL : machine);
	if (rc) {
		command_error(&cmd_doctor, "out of memory");
		return cmd_doctor.failure;
	}
	return d.found[AP_FACT_BAD] ? 1 : 0;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "say what perf can and cannot do on this machine, and why",
	.synopsis = "[--json | --clear-translations]",
	.description =
		"Looks at what decides whether events can be opened: the PMUs, kernel.perf_event_paranoid "
		"and the capabilities, limits on memory, descriptors and sample rate, kptr_restrict, "
		"seccomp, yama, cgroups, tracefs, kept translations, and whether there is a virtual PMU. For each it says what was found, what that means for "
		"you, and behind an arrow what would make it better. A few events are opened on the way, "
		"to see what is really possible.",
	.options = options,
	.sections =
		(const struct section[]){
			{"Exit status",
			 "0 if nothing is bad, 1 if something is, 2 if it was called wrongly."},
			{0},
		},
	.see_also = "anyperf-list(1), perf_event_open(2)",
	.failure = 2,
	.run = run,
};
