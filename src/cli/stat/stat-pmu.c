/*
 * Who counts: the kernel where it can count what is asked, else the virtual PMU, which can count
 * what is started under it and nothing else. The library decides; here is what the user is told of
 * it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/virtual.h"
#include "cli/modeled-events.h"
#include "cli/translations-option.h"
#include "cli/stat/stat-priv.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-pmu.h"

bool stat_is_virtual(const struct stat_job *st)
{
	return ap_machine_pmu(st->machine) == AP_PMU_VIRTUAL;
}

/* What takes itself for the kernel is the `anyperf run` around us; but not of who is no guest. */
static bool counted_around(const struct stat_job *st)
{
	return !st->opts.pids && !st->opts.tids && ap__machine_is_guest();
}

const char *stat_pmu_name(const struct stat_job *st)
{
	return stat_is_virtual(st) || counted_around(st) ? "virtual" : "kernel";
}

const char *stat_pmu_why(const struct stat_job *st)
{
	return !stat_is_virtual(st) && counted_around(st)
		       ? "it is that of the `anyperf run` around this"
		       : ap_machine_pmu_why(st->machine);
}

const char *stat_machine(struct stat_job *st, const struct report *r)
{
	bool there = modeled_any(r) &&
		     ap__pmu_modeled(st->machine, st->machine_name, sizeof(st->machine_name));

	return there ? st->machine_name : NULL;
}

const char *stat_windows(struct stat_job *st, const struct report *r)
{
	bool there = st->style.machine &&
		     ap__pmu_windows(st->machine, st->windows_text, sizeof(st->windows_text));
	u32 lacks = st->style.machine ? ap__pmu_model_lacks(st->machine) : 0;

	/* Of the first interval's heading the others make use, which are about longer runs. */
	st->style.estimated = there && (r->part == PART_INTERVAL || lacks & MODEL_ESTIMATED);
	st->style.unmodeled = lacks & MODEL_NO_MEMORY;
	return there ? st->windows_text : NULL;
}

/* The virtual PMU of the options, whether it will be used or not. */
static int make_machine(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	struct ap_machine_opts opts = st->machine_opts;
	struct ap_virtual_opts virtual_opts = AP_OPTS(
		ap_virtual_opts, .counters = (unsigned int)o->counters, .cpu_model = o->cpu_model,
		.session = o->session, .machine = o->machine, .seed = (u64)o->deterministic.seed,
		.cpu_features = o->deterministic.cpu, .cpus = (unsigned int)o->deterministic.cpus);

	if (o->deterministic.on)
		virtual_opts.flags |= AP_VIRTUAL_DETERMINISTIC;
	virtual_opts.flags |= translations_flags(o->translations);
	virtual_opts.flags |= model_beside_flags(o->model_beside);
	virtual_opts.model_windows = o->model_windows;
	/* What is between two words of a control descriptor may be less than a window. */
	if (!o->control)
		virtual_opts.flags |= AP_VIRTUAL_MODEL_WINDOWS_AUTO;
	opts.virtual_pmu = &virtual_opts;
	return ap_machine_new(&st->machine, &opts) ? command_error(&cmd_stat, "out of memory") : 0;
}

static void shape(void *st, struct perf_event_attr *attr)
{
	stat_shape_attr(st, attr);
}

static struct ap__needs look_at_events(struct stat_job *st)
{
	/* What is wrong with the text is said when it is taken for good. */
	char *text = st->opts.null_run ? NULL : stat_counted_text(st);
	struct ap__needs needs = ap__pmu_needs(st->machine, text, shape, st);

	free(text);
	return needs;
}

/*
 * 0, or -1 after saying why not. Unless it was @asked for: 0 too, and the kernel counts what it
 * can.
 */
static int use_virtual(struct stat_job *st, const char *why, bool asked)
{
	struct ap_error err;

	if (!ap__pmu_turn(st->machine, why, &err))
		return 0;
	if (asked)
		return command_error(&cmd_stat, "%s", err.why);
	ap__pmu_because(st->machine, "%s", err.why);
	return 0;
}

static int use_session(struct stat_job *st)
{
	char why[100];

	snprintf(why, sizeof(why), "guests of the session %.60s", st->opts.session);
	return use_virtual(st, why, true);
}

/* Does the first of the tasks run under the translator? From outside its program is the runtime. */
static bool is_guest(const char *tasks)
{
	static const char runtime[] = "/anyperf-rt";
	char path[48], exe[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", atoi(tasks));
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = 0;
	return strlen(exe) >= strlen(runtime) &&
	       !strcmp(exe + strlen(exe) - strlen(runtime), runtime);
}

/*
 * What to do where the virtual PMU would be needed and the target is not what is started under it.
 */
static void advise_target(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	const char *tasks = o->pids ? o->pids : o->tids;

	st->advice_option[0] = o->pids ? 'p' : 't';
	st->advice.name[0] = o->pids ? "PID" : "TID";
	st->advice.name[1] = st->advice_option;
	st->advice.remedy = tasks ? REMEDY_START_VIRTUAL : REMEDY_COUNT_STARTED;
	if (tasks && is_guest(tasks)) {
		st->advice.remedy = REMEDY_NAME_SESSION;
		st->advice.name[0] = tasks;
	}
}

static int asked_for_virtual(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	struct ap_error err;

	if (!o->command || stat_opts_has_target(o)) {
		char text[1100];

		advise_target(st);
		ap__refuse(&err, -EINVAL, "--pmu=virtual", VIRTUAL_TARGET,
			   .remedy = {st->advice.remedy},
			   .name = {st->advice.name[0], st->advice.name[1]});
		return command_error(&cmd_stat, "%s", ap_error_text(&err, text, sizeof(text)));
	}
	return ap__pmu_want(st->machine, "asked for by --pmu", &err)
		       ? command_error(&cmd_stat, "%s", err.why)
		       : 0;
}

bool stat_virtual_would(struct stat_job *st, const struct ap_error *err)
{
	const struct stat_opts *o = &st->opts;
	const char *lacks;

	if (!o->command || stat_opts_has_target(o) || o->all_kernel || stat_is_virtual(st) ||
	    st->turned || st->turned_back)
		return false;
	lacks = ap__pmu_lacks(st->machine, err);
	if (lacks && (!o->pmu || strcmp(o->pmu, "kernel") != 0))
		st->turned = lacks;
	st->refused = *err;
	return lacks != NULL;
}

bool stat_kernel_would(struct stat_job *st, const struct ap_error *err)
{
	const struct stat_opts *o = &st->opts;
	bool wished = o->deterministic.on || o->counters || o->cpu_model || o->machine ||
		      o->session || (o->pmu && !strcmp(o->pmu, "virtual"));

	if (err->cause != AP_CAUSE_UNSUPPORTED || !stat_is_virtual(st) || wished)
		return false;
	st->turned_back = stat_joined(stat_joined(NULL, "the virtual one "), err->why);
	return true;
}

static int turn_to_kernel(struct stat_job *st)
{
	struct ap_error err;

	/* For no event it is the kernel's. */
	if (ap_machine_choose(st->machine, NULL, &err))
		return command_error(&cmd_stat, "%s", err.why);
	ap__pmu_because(st->machine, "%s", st->turned_back);
	/* That the virtual one could count it is no advice here. */
	st->advice = (struct ap__advice){0};
	ap__machine_set_advice(st->machine, &st->advice);
	if (!stat_events_prepare(st))
		return 0;
	return command_error(&cmd_stat, "%s", st->turned_back);
}

static int turn_to_virtual(struct stat_job *st)
{
	struct ap_error err;
	char text[1100];

	if (!ap__pmu_turn(st->machine, st->turned, &err))
		return stat_events_prepare(st);
	/* What nobody asked for is not all that there is to say. */
	command_error(&cmd_stat, "%s", ap_error_text(&st->refused, text, sizeof(text)));
	return command_error(&cmd_stat, "nor can the virtual PMU count it: %s", err.why);
}

int stat_turn(struct stat_job *st)
{
	bool to_kernel = st->turned_back && stat_is_virtual(st);

	if (!to_kernel && (!st->turned || st->turned_back || stat_is_virtual(st)))
		return 0;
	stat_close(st);
	stat_events_release(st);
	if (to_kernel)
		return turn_to_kernel(st) ? -1 : 1;
	return turn_to_virtual(st) ? -1 : 1;
}

/* Why the machine's PMU is the kernel's, for events that need @needs. */
static void explain_kernel(struct stat_job *st, const struct ap__needs *needs)
{
	const struct stat_opts *o = &st->opts;

	ap__pmu_because(st->machine, "%s",
			o->pmu && !strcmp(o->pmu, "kernel") ? "asked for by --pmu"
			: !needs->any   ? "nothing that needs a counter is asked for"
			: !needs->lacks ? "it can count what is asked for"
			: stat_opts_has_target(o)
				? "the virtual one counts only what is started under it"
				: "the virtual one does not see kernel mode");
}

int stat_choose_pmu(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	const char *pmu = o->pmu ? o->pmu : "auto", *needed;
	struct ap__needs needs;

	/* Even if the kernel will count: else the option is right or wrong by the machine. */
	if (deterministic_check_model(&cmd_stat, &o->deterministic, o->cpu_model) ||
	    modeled_check(&cmd_stat, o->machine) ||
	    model_windows_check(&cmd_stat, o->model_windows) || make_machine(st))
		return -1;
	if (o->session)
		return use_session(st);
	if (!strcmp(pmu, "virtual"))
		return asked_for_virtual(st);
	needed = o->deterministic.on ? "needed for --deterministic"
		 : o->counters       ? "needed for --counters"
		 : o->cpu_model      ? "needed for --cpu-model"
		 : o->machine        ? "needed for --machine"
				     : NULL;
	if (needed)
		return use_virtual(st, needed, true);
	needs = look_at_events(st);
	if (needs.lacks && stat_opts_has_target(o)) {
		advise_target(st);
		ap__machine_set_advice(st->machine, &st->advice);
	}
	if (needs.lacks && !stat_opts_has_target(o) && !needs.kernel_mode &&
	    strcmp(pmu, "kernel") != 0)
		/* Who wants to keep translations is told if that cannot be. */
		return use_virtual(st, needs.lacks,
				   o->translations && !strcmp(o->translations, "user"));
	explain_kernel(st, &needs);
	return 0;
}
