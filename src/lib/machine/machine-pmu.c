#include "lib/machine/machine-pmu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <anyperf/pmu.h>
#include <anyperf/spec.h>

#include "base/check.h"
#include "lib/machine/machine-file.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-priv.h"
#include "lib/machine/model-windows.h"
#include "model/model.h"

#define VIRTUAL_FLAGS                                                                        \
	(AP_VIRTUAL_DETERMINISTIC | AP_VIRTUAL_STRICT | AP_VIRTUAL_VERIFY |                  \
	 AP_VIRTUAL_IGNORE_KERNEL | AP_VIRTUAL_TRANSLATIONS | AP_VIRTUAL_TRANSLATIONS_TREE | \
	 AP_VIRTUAL_MODEL_BESIDE | AP_VIRTUAL_MODEL_BESIDE_AUTO | AP_VIRTUAL_MODEL_WINDOWS_AUTO)

/* Copies @from (NULL: "") into the @len bytes at @to; -EINVAL if it does not fit. */
static int put(char *to, size_t len, const char *from)
{
	return (size_t)snprintf(to, len, "%s", from ? from : "") < len ? 0 : -EINVAL;
}

static int cpu_of(const char *features, u32 *cpu)
{
	static const char *const names[] = {
		[METER_CPU_HOST] = "host",
		[METER_CPU_V2] = "x86-64-v2",
		[METER_CPU_V3] = "x86-64-v3",
	};

	*cpu = METER_CPU_HOST;
	for (u32 i = 0; features && i < ARRAY_SIZE(names); i++) {
		if (strcmp(features, names[i]) != 0)
			continue;
		*cpu = i;
		return 0;
	}
	return features ? -EINVAL : 0;
}

static bool is_model(const char *name)
{
	char why[300];

	return !name || !ap__virtual_check_model(name, why, sizeof(why));
}

static int set_virtual_opts(struct virtual_opts *v, const struct ap_virtual_opts *opts)
{
	struct ap_virtual_opts o = {.size = sizeof(o)};
	const char *what, *windows;
	struct ap_error why;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	if (o.flags & ~VIRTUAL_FLAGS)
		return -EINVAL;
	v->session.paranoid = SESSION_PARANOID_HOST;
	v->session.counters = o.counters;
	v->cache_mb = o.cache_mb;
	v->seed = o.seed;
	v->cpus = o.cpus;
	if (o.flags & AP_VIRTUAL_IGNORE_KERNEL)
		v->session.flags |= SESSION_START_IGNORE_KERNEL;
	if (o.flags & AP_VIRTUAL_DETERMINISTIC)
		v->segment_flags |= SEGMENT_DETERMINISTIC;
	if (o.flags & AP_VIRTUAL_STRICT)
		v->segment_flags |= SEGMENT_STRICT;
	if (o.flags & AP_VIRTUAL_TRANSLATIONS)
		v->translations = TRANSLATIONS_USER;
	else if (o.flags & AP_VIRTUAL_TRANSLATIONS_TREE)
		v->translations = TRANSLATIONS_TREE;
	if (o.flags & AP_VIRTUAL_MODEL_BESIDE)
		v->beside = MODEL_BESIDE_YES;
	else if (o.flags & AP_VIRTUAL_MODEL_BESIDE_AUTO)
		v->beside = MODEL_BESIDE_AUTO;
	if (o.flags & AP_VIRTUAL_VERIFY)
		v->segment_flags |= SEGMENT_VERIFY;
	windows = !o.model_windows && o.flags & AP_VIRTUAL_MODEL_WINDOWS_AUTO ? "auto"
									      : o.model_windows;
	if (o.counters > 64 || o.cpus > 64 || cpu_of(o.cpu_features, &v->cpu) ||
	    (v->cpu != METER_CPU_HOST && o.cpu_model) || !is_model(o.cpu_model) ||
	    put(v->session.cpuid_profile, sizeof(v->session.cpuid_profile), o.cpu_model) ||
	    put(v->session.name, sizeof(v->session.name), o.session) ||
	    ap__model_windows(windows, &v->window, &v->window_every, &what))
		return -EINVAL;
	v->windows_given = o.model_windows;
	v->machine_given = o.machine;
	return o.machine && ap__model_chosen(&v->machine, o.machine, &why) ? -EINVAL : 0;
}

static int make_virtual(struct ap_machine *m)
{
	struct ap_error none;
	int r;

	/* This machine is looked at when somebody needs to know it. */
	if (!m->virtual_opts.machine_given &&
	    ap__model_machine(&m->virtual_opts.machine, MACHINE_HOST, &none))
		m->virtual_opts.machine.version = 0;
	r = m->virtual_pmu ? 0 : ap__virtual_new(&m->virtual_pmu, &m->virtual_opts);

	if (r)
		return r;
	ap_machine_refresh(m);
	m->ops = &ap__backend_virtual;
	m->be = m->virtual_pmu;
	return 0;
}

static void use_kernel(struct ap_machine *m)
{
	ap_machine_refresh(m);
	m->ops = &ap__backend_kernel;
	m->be = NULL;
}

int ap__pmu_init(struct ap_machine *m, const struct ap_machine_opts *opts)
{
	int r = opts->pmu > AP_PMU_VIRTUAL ? -EINVAL
					   : set_virtual_opts(&m->virtual_opts, opts->virtual_pmu);

	m->asked = opts->pmu;
	if (!r && m->asked == AP_PMU_VIRTUAL)
		r = make_virtual(m);
	if (m->asked != AP_PMU_AUTO)
		ap__pmu_because(m, "asked for");
	return r;
}

void ap__pmu_because(struct ap_machine *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->pmu_why, sizeof(m->pmu_why), fmt, ap);
	va_end(ap);
}

bool ap__pmu_modeled(struct ap_machine *m, char *name, size_t size)
{
	if (m->ops == &ap__backend_virtual)
		snprintf(name, size, "%s", ap__virtual_machine(m->virtual_pmu));
	else if (ap__slurp(m, name, size, AP__DEVICES "/cpu/caps/machine") < 0)
		name[0] = 0;
	return name[0];
}

bool ap__pmu_windows(struct ap_machine *m, char *text, size_t size)
{
	const struct run_config *config;

	if (m->ops == &ap__backend_virtual) {
		config = ap__virtual_config(m->virtual_pmu);
		ap__model_windows_text(config->window, config->window_every, text, size);
	} else if (ap__slurp(m, text, size, AP__DEVICES "/cpu/caps/machine_windows") < 0) {
		text[0] = 0;
	}
	return text[0];
}

u32 ap__pmu_model_lacks(struct ap_machine *m)
{
	const struct guest_segment *segment;

	/* Of what is around us nobody tells. */
	if (m->ops != &ap__backend_virtual)
		return MODEL_ESTIMATED;
	segment = ap__virtual_segment(m->virtual_pmu);
	if (!segment)
		return 0;
	return __atomic_load_n(segment_model_lacks(segment->head), __ATOMIC_RELAXED);
}

enum ap_machine_pmu ap_machine_pmu(const struct ap_machine *m)
{
	return m->around || m->ops == &ap__backend_virtual ? AP_PMU_VIRTUAL : AP_PMU_KERNEL;
}

const char *ap_machine_pmu_why(const struct ap_machine *m)
{
	return m->pmu_why;
}

int ap__pmu_refuse_self(struct ap_machine *m, pid_t tid, struct ap_error *err)
{
	if (m->ops != &ap__backend_virtual || (tid && tid != getpid() && tid != gettid()))
		return 0;
	return ap__refuse(err, -ENOENT, NULL, VIRTUAL_SELF);
}

/* Is @attr of a type that only a CPU's PMU has? */
static bool wants_cpu_pmu(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	       attr->type == PERF_TYPE_RAW;
}

const char *ap__pmu_lacks(struct ap_machine *m, const struct ap_error *refusal)
{
	struct ap_error err;

	switch (refusal->cause) {
	case AP_CAUSE_NO_PMU: return "the kernel has no PMU of the CPU here";
	case AP_CAUSE_NO_PERF: return "this kernel has no perf events";
	case AP_CAUSE_SECCOMP: return "a seccomp filter refuses the kernel's perf events";
	case AP_CAUSE_LSM: return "a sandbox or security module refuses the kernel's perf events";
	case AP_CAUSE_PARANOID:
		/* Mostly it is the kernel's part that is refused, which modifiers may ask for. */
		if (ap_event_probe(m, "dummy:u", &err) >= 0 || err.cause != AP_CAUSE_PARANOID)
			return NULL;
		return "kernel.perf_event_paranoid refuses even user mode to this user";
	default: return NULL;
	}
}

/* As ap__pmu_lacks(), of an event by its name. One tells for all of its kind. */
static const char *asked_kernel(struct ap_machine *m, const char *name)
{
	struct ap_error err;

	return ap_event_probe(m, name, &err) >= 0 ? NULL : ap__pmu_lacks(m, &err);
}

struct ap__needs ap__pmu_needs(struct ap_machine *m, const char *text,
			       void (*shape)(void *data, struct perf_event_attr *attr), void *data)
{
	struct ap__needs needs = {.any = text && *text};
	struct ap_spec *cpu = NULL, *user = NULL;
	struct ap_specs *specs;
	struct ap_error err;

	if (!needs.any)
		return needs;
	if (ap_specs_parse(&specs, m, text, &err)) {
		/* A name that needs the PMU's files, which are not there either. */
		if (err.cause == AP_CAUSE_UNKNOWN_EVENT || err.cause == AP_CAUSE_NO_PMU)
			needs.lacks = asked_kernel(m, "instructions:u");
		return needs;
	}
	for (unsigned int i = 0; i < ap_specs_count(specs) && !user; i++) {
		struct ap_spec *spec = ap_specs_at(specs, i);

		if (shape)
			shape(data, spec->attr);
		if (!wants_cpu_pmu(spec->attr))
			continue;
		cpu = spec;
		user = spec->attr->exclude_user ? NULL : spec;
	}
	needs.kernel_mode = cpu && !user;
	cpu = user ? user : cpu;
	/* What every kernel counts is not opened for a look: its refusal tells. */
	needs.lacks = cpu ? asked_kernel(m, cpu->name) : NULL;
	ap_specs_free(specs);
	return needs;
}

int ap__pmu_fail(struct ap_error *err, int r, const char *why)
{
	/* A wrong value; a session that is another's, or is not there. */
	if (r == -EINVAL || r == -EEXIST || r == -ECONNREFUSED)
		return ap__fail(err, r, AP_CAUSE_BAD_VALUE, "%s", why);
	return ap__fail(err, r, AP_CAUSE_SESSION, "there is no virtual PMU: %s", why);
}

int ap__pmu_turn(struct ap_machine *m, const char *why, struct ap_error *err)
{
	char text[300];
	int r = make_virtual(m);

	if (r)
		return ap__fail_memory(err);
	r = ap__virtual_make_session(m->virtual_pmu, text, sizeof(text));
	if (r) {
		use_kernel(m);
		return ap__pmu_fail(err, r, text);
	}
	ap__pmu_because(m, "%s", why);
	return 0;
}

int ap__pmu_want(struct ap_machine *m, const char *why, struct ap_error *err)
{
	struct ap_error ignored;

	/* One translator does not run inside another, but what is around us counts for us. */
	use_kernel(m);
	if (ap_event_probe(m, "instructions:u", &ignored) >= 0 && ap__guest_are_we_one()) {
		m->around = true;
		ap__pmu_because(m, "%s; it is that of the `anyperf run` around this", why);
		return 0;
	}
	return ap__pmu_turn(m, why, err);
}

/*
 * What is told by address is of the file that is mapped there at last. So each file has its own
 * place, where no other comes when it is gone; that is so for who shares translations, which these
 * do not.
 */
static void place_by_file(struct virtual_opts *v)
{
	v->translations = TRANSLATIONS_TREE;
}

static void exact(struct virtual_opts *v)
{
	v->segment_flags |= SEGMENT_EXACT;
	v->keep = true;
	place_by_file(v);
}

void ap__pmu_exact(struct ap_machine *m)
{
	exact(&m->virtual_opts);
	/* Asked for the virtual PMU it has one already, which has not started anything. */
	if (m->virtual_pmu)
		exact(ap__virtual_opts(m->virtual_pmu));
}

static void profile(struct virtual_opts *v, const u8 *counters, u32 n, u32 flags)
{
	memcpy(v->profiled, counters, n);
	v->nr_profiled = n;
	v->segment_flags |= flags;
}

void ap__pmu_profiled(struct ap_machine *m, const u8 *counters, u32 n, u32 flags)
{
	CHECK(n <= PROFILED_EVENTS);
	profile(&m->virtual_opts, counters, n, flags);
	if (m->virtual_pmu)
		profile(ap__virtual_opts(m->virtual_pmu), counters, n, flags);
}

/* As many that each is of whole sets of the cache: what is last of all of them is so in its own. */
static u16 filter_sets(const struct machine *caches)
{
	u32 sets = machine_sets(caches, MACHINE_L1D) | MODEL_FILTER_SETS;

	return (u16)(sets & -sets);
}

void ap__pmu_traced(struct ap_machine *m, bool requests, const struct machine *caches)
{
	m->virtual_opts.segment_flags |= SEGMENT_TRACED | (requests ? SEGMENT_REQUESTS : 0) |
					 (caches ? SEGMENT_ACCESSES : 0);
	place_by_file(&m->virtual_opts);
	if (caches) {
		m->virtual_opts.filter_sets = filter_sets(caches);
		m->virtual_opts.filter_shift = (u8)__builtin_ctz(caches->memory.line);
		/* Two of each set, if it has as many and all sets are told apart. */
		m->virtual_opts.filter_lines =
			caches->cache[MACHINE_L1D].ways > 1 &&
					filter_sets(caches) == machine_sets(caches, MACHINE_L1D)
				? 2
				: 1;
	}
	m->virtual_opts.keep = true;
}

int ap_machine_choose(struct ap_machine *m, const char *events, struct ap_error *err)
{
	struct ap_error none;
	struct ap__needs needs;

	if (m->asked == AP_PMU_KERNEL)
		return 0;
	if (m->asked == AP_PMU_VIRTUAL)
		return ap__pmu_want(m, "asked for", err);
	use_kernel(m);
	needs = ap__pmu_needs(m, events, NULL, NULL);
	if (!needs.any)
		ap__pmu_because(m, "nothing that needs a counter is asked for");
	else if (!needs.lacks)
		ap__pmu_because(m, "it can count what is asked for");
	else if (needs.kernel_mode)
		ap__pmu_because(m, "the virtual one does not see kernel mode");
	else if (ap__pmu_turn(m, needs.lacks, &none))
		ap__pmu_because(m, "%s", none.why);
	return 0;
}

bool ap__machine_is_guest(void)
{
	static int guest = -1; /* as long as the process lives; -1: not looked at */

	if (guest < 0)
		guest = access("/sys/bus/event_source/devices/anyperf", F_OK) == 0;
	return guest;
}
