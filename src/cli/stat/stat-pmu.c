/*
 * Who counts: the kernel where it can count what is asked, else the virtual PMU, which can count what is
 * started under it and nothing else. Why it is that one is a sentence for the user.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/stat/stat-priv.h"
#include "lib/fail.h"
#include "session/host/cpuid-profile.h"
#include "session/session.h"

static void __attribute__((format(printf, 2, 3))) because(struct stat_job *st, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(st->pmu_why, sizeof(st->pmu_why), fmt, ap);
	va_end(ap);
}

/* Is @type one that only a CPU's PMU has? */
static bool wants_cpu_pmu(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	       attr->type == PERF_TYPE_RAW;
}

/* Why the kernel cannot count what the virtual PMU may; NULL: a refusal that would be the same there. */
static const char *kernel_lacks(struct stat_job *st, const struct ap_error *refusal)
{
	struct ap_error err;

	switch (refusal->cause) {
	case AP_CAUSE_NO_PMU: return "the kernel has no PMU of the CPU here";
	case AP_CAUSE_NO_PERF: return "this kernel has no perf events";
	case AP_CAUSE_SECCOMP: return "a seccomp filter refuses the kernel's perf events";
	case AP_CAUSE_LSM: return "a sandbox or security module refuses the kernel's perf events";
	case AP_CAUSE_PARANOID:
		/* Mostly it is the kernel's part that is refused, which modifiers may ask for. */
		if (ap_event_probe(st->machine, "dummy:u", &err) >= 0 ||
		    err.cause != AP_CAUSE_PARANOID)
			return NULL;
		return "kernel.perf_event_paranoid refuses even user mode to this user";
	default: return NULL;
	}
}

/* As kernel_lacks(), of an event by its name. One tells for all of its kind. */
static const char *asked_kernel(struct stat_job *st, const char *name)
{
	struct ap_error err;

	if (ap_event_probe(st->machine, name, &err) >= 0)
		return NULL;
	return kernel_lacks(st, &err);
}

struct asked {
	bool any;         /* something needs a counter */
	bool kernel_mode; /* and of what needs the CPU's PMU nothing is of user mode */
	const char
		*lacks; /* why the kernel cannot count it; NULL: it can, or says itself why not */
};

static struct asked look_at_events(struct stat_job *st)
{
	/* What is wrong with the text is said when it is taken for good. */
	char *text = st->opts.null_run ? NULL : stat_counted_text(st);
	struct asked asked = {.any = text && *text};
	struct ap_spec *cpu = NULL, *user = NULL;
	struct ap_specs *specs = NULL;
	struct ap_error err;

	if (asked.any && ap_specs_parse(&specs, st->machine, text, &err)) {
		/* A name that needs the PMU's files, which are not there either. */
		if (err.cause == AP_CAUSE_UNKNOWN_EVENT || err.cause == AP_CAUSE_NO_PMU)
			asked.lacks = asked_kernel(st, "instructions:u");
		free(text);
		return asked;
	}
	free(text);
	if (!asked.any)
		return asked;
	for (u32 i = 0; i < ap_specs_count(specs) && !user; i++) {
		struct ap_spec *spec = ap_specs_at(specs, i);

		stat_shape_attr(st, spec->attr);
		if (!wants_cpu_pmu(spec->attr))
			continue;
		cpu = spec;
		user = spec->attr->exclude_user ? NULL : spec;
	}
	asked.kernel_mode = cpu && !user;
	cpu = user ? user : cpu;
	/* What every kernel counts is opened but once: stat_turn_to_virtual(). */
	asked.lacks = cpu ? asked_kernel(st, cpu->name) : NULL;
	ap_specs_free(specs);
	return asked;
}

/* 0, or -1 after saying why not. Unless it was @asked for: 0 too, and the kernel counts what it can. */
static int use_virtual(struct stat_job *st, bool asked)
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
		because(st, "there is no virtual PMU: %s", why);
		return 0;
	}
	ap_machine_free(st->machine);
	if (virtual_machine(&st->virtual, &st->machine_opts, &st->machine))
		return command_error(&cmd_stat, "out of memory");
	return 0;
}

static int use_session(struct stat_job *st)
{
	char why[300];

	because(st, "guests of the session %s", st->opts.session);
	if (virtual_join(&st->virtual, st->opts.session, why, sizeof(why)))
		return command_error(&cmd_stat, "%s", why);
	return virtual_machine(&st->virtual, &st->machine_opts, &st->machine)
		       ? command_error(&cmd_stat, "out of memory")
		       : 0;
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

/* What to do where the virtual PMU would be needed and the target is not what is started under it. */
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
	because(st, "asked for by --pmu");
	if (ap_machine_new(&st->machine, &st->machine_opts))
		return command_error(&cmd_stat, "out of memory");
	/* One translator does not run inside another, but what is around us counts for us. */
	if (ap_event_probe(st->machine, "instructions:u", &err) >= 0 && guest_are_we_one()) {
		because(st, "asked for by --pmu; it is that of the `anyperf run` around this");
		st->virtual.around = true;
		return 0;
	}
	return use_virtual(st, true);
}

bool stat_virtual_would(struct stat_job *st, const struct ap_error *err)
{
	const struct stat_opts *o = &st->opts;
	const char *lacks;

	if (!o->command || stat_opts_has_target(o) || o->all_kernel ||
	    virtual_counts(&st->virtual) || *st->turned)
		return false;
	lacks = kernel_lacks(st, err);
	if (lacks && (!o->pmu || strcmp(o->pmu, "kernel") != 0))
		snprintf(st->turned, sizeof(st->turned), "%s", lacks);
	return lacks != NULL;
}

int stat_turn_to_virtual(struct stat_job *st)
{
	stat_close(st);
	stat_events_release(st);
	because(st, "%s", st->turned);
	return use_virtual(st, true) || stat_events_prepare(st) ? -1 : 0;
}

int stat_choose_pmu(struct stat_job *st)
{
	const struct stat_opts *o = &st->opts;
	const char *pmu = o->pmu ? o->pmu : "auto";
	struct cpuid_profile profile;
	struct asked asked;
	char why[300];

	/* Even if the kernel will count: else the option is right or wrong by the machine. */
	if (o->cpu_model && cpuid_profile_find(o->cpu_model, &profile, why, sizeof(why)))
		return command_error(&cmd_stat, "--cpu-model: %s", why);
	if (o->session)
		return use_session(st);
	if (!strcmp(pmu, "virtual"))
		return asked_for_virtual(st);
	if (o->deterministic.on || o->counters || o->cpu_model) {
		because(st, "needed for --%s",
			o->deterministic.on ? "deterministic"
			: o->counters       ? "counters"
					    : "cpu-model");
		return use_virtual(st, true);
	}
	if (ap_machine_new(&st->machine, &st->machine_opts))
		return command_error(&cmd_stat, "out of memory");
	asked = look_at_events(st);
	if (asked.lacks && stat_opts_has_target(o)) {
		advise_target(st);
		ap__machine_set_advice(st->machine, &st->advice);
	}
	if (!strcmp(pmu, "kernel"))
		because(st, "asked for by --pmu");
	else if (!asked.any)
		because(st, "nothing that needs a counter is asked for");
	else if (!asked.lacks)
		because(st, "it can count what is asked for");
	else if (stat_opts_has_target(o))
		because(st, "the virtual one counts only what is started under it");
	else if (asked.kernel_mode)
		because(st, "the virtual one does not see kernel mode");
	else {
		because(st, "%s", asked.lacks);
		return use_virtual(st, false);
	}
	return 0;
}
