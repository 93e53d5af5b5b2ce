/* The PMUs and events of a machine, for showing. */
#include <anyperf/pmu.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <anyperf/command.h>
#include <anyperf/counters.h>

#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-priv.h"
#include "lib/spec/names.h"
#include "lib/spec/spec-priv.h"

/*
 * "name contents" of every file in a PMU's directory @dir; NULL-terminated, never NULL on success.
 */
static int read_dir(struct ap_machine *m, const char *pmu, const char *dir, char ***out)
{
	char **names, text[256];
	int n = ap__names(m, &names, AP__DEVICES "/%s/%s", pmu, dir);

	if (n == -ENOMEM)
		return n;
	if (n < 0)
		return (*out = calloc(1, sizeof(**out))) ? 0 : -ENOMEM;
	for (int i = 0; i < n; i++) {
		char *both = NULL;

		if (ap__slurp(m, text, sizeof(text), AP__DEVICES "/%s/%s/%s", pmu, dir, names[i]) <
		    0)
			text[0] = '\0';
		if (asprintf(&both, "%s %s", names[i], text) < 0) {
			ap__names_free(names);
			return -ENOMEM;
		}
		free(names[i]);
		names[i] = both;
	}
	*out = names;
	return 0;
}

static bool is_core(struct ap_machine *m, const char *name)
{
	const struct ap__corepmu *core;
	unsigned int n = ap__core_pmus(m, &core);

	for (unsigned int i = 0; i < n; i++)
		if (strcmp(core[i].name, name) == 0)
			return true;
	return false;
}

static int show_pmu(struct ap_machine *m, const char *name, ap_pmu_fn *fn, void *data)
{
	char **formats = NULL, **caps = NULL, cpus[1024] = "";
	struct ap_pmu pmu = {.name = name};
	long long type;
	int r;

	if (ap__slurp_number(m, &type, AP__DEVICES "/%s/type", name))
		return 0;
	if (ap__slurp(m, cpus, sizeof(cpus), AP__DEVICES "/%s/cpus", name) < 0 &&
	    ap__slurp(m, cpus, sizeof(cpus), AP__DEVICES "/%s/cpumask", name) < 0)
		cpus[0] = '\0';
	r = read_dir(m, name, "format", &formats);
	if (!r)
		r = read_dir(m, name, "caps", &caps);
	if (!r) {
		pmu.type = (u32)type;
		pmu.cpus = cpus;
		pmu.formats = (const char *const *)formats;
		pmu.caps = (const char *const *)caps;
		pmu.core = is_core(m, name);
		r = fn(&pmu, data);
	}
	ap__names_free(formats);
	ap__names_free(caps);
	return r;
}

int ap_pmus_each(struct ap_machine *m, ap_pmu_fn *fn, void *data, struct ap_error *err)
{
	char **names;
	int n = ap__names(m, &names, AP__DEVICES), r = 0;

	if (n == -ENOMEM)
		return ap__fail_memory(err);
	if (n < 0) {
		ap__fail(err, n, AP_CAUSE_NO_PERF, AP__DEVICES " cannot be read: %s", strerror(-n));
		return ap__remedy(err, n, "sysfs must be mounted, and the kernel have perf events");
	}
	for (int i = 0; i < n && !r; i++)
		r = show_pmu(m, names[i], fn, data);
	ap__names_free(names);
	return r == -ENOMEM ? ap__fail_memory(err) : r;
}

struct walk {
	struct ap_machine *m;
	const struct ap_list_opts *opts;
	ap_listed_fn *fn;
	void *data;
};

static bool wanted(const struct walk *w, const char *name, const char *alias)
{
	const char *glob = w->opts->glob;

	return !glob || fnmatch(glob, name, FNM_CASEFOLD) == 0 ||
	       (*alias && fnmatch(glob, alias, FNM_CASEFOLD) == 0);
}

static int show(const struct walk *w, struct ap_listed *e)
{
	if (!e->alias)
		e->alias = "";
	if (!e->desc)
		e->desc = "";
	if (!e->encoding)
		e->encoding = "";
	if (!e->pmu)
		e->pmu = "";
	if (!e->unit)
		e->unit = "";
	return wanted(w, e->name, e->alias) ? w->fn(e, w->data) : 0;
}

static int walk_generic(const struct walk *w, enum ap_kind kind)
{
	u32 type = kind == AP_KIND_HARDWARE ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
	char encoding[64];
	int r = 0;

	for (unsigned int i = 0; i < ap__ngenerics && !r; i++) {
		const struct ap__generic *g = &ap__generics[i];
		struct ap_listed e = {.name = g->name,
				      .alias = g->alias,
				      .desc = g->desc,
				      .encoding = encoding,
				      .unit = g->type == PERF_TYPE_SOFTWARE && g->config < 2 ? "ns"
											     : "",
				      .kind = kind};

		if (g->type != type)
			continue;
		snprintf(encoding, sizeof(encoding), "type=%u config=%#llx", type,
			 (unsigned long long)g->config);
		r = show(w, &e);
	}
	return r;
}

static int walk_cache(const struct walk *w)
{
	char name[64], desc[128], encoding[64];
	int r = 0;

	for (unsigned int c = 0; c < AP__CACHES; c++)
		for (unsigned int op = 0; op < AP__CACHE_OPS; op++)
			for (unsigned int miss = 0; miss < 2 && !r; miss++) {
				u64 config = AP__CACHE_CONFIG(c, op, miss);
				struct ap_listed e = {.name = name,
						      .desc = desc,
						      .encoding = encoding,
						      .kind = AP_KIND_CACHE};

				if (!ap__cache_name(config, name, sizeof(name)))
					continue;
				ap__cache_desc(config, desc, sizeof(desc));
				snprintf(encoding, sizeof(encoding), "type=%u config=%#llx",
					 PERF_TYPE_HW_CACHE, (unsigned long long)config);
				r = show(w, &e);
			}
	return r;
}

static int walk_pmu_events(const struct walk *w, const char *pmu)
{
	char **names, terms[512], name[512], encoding[768], unit[64], desc[256], *dot;
	int n = ap__names(w->m, &names, AP__DEVICES "/%s/events", pmu), r = 0;

	if (n == -ENOMEM)
		return n;
	for (int i = 0; i < n && !r; i++) {
		struct ap_listed e = {.name = name,
				      .desc = desc,
				      .encoding = encoding,
				      .pmu = pmu,
				      .unit = unit,
				      .kind = AP_KIND_PMU};

		/* event.unit, event.scale and event.snapshot stand beside the event. */
		dot = strrchr(names[i], '.');
		if (dot && (strcmp(dot, ".unit") == 0 || strcmp(dot, ".scale") == 0 ||
			    strcmp(dot, ".snapshot") == 0 || strcmp(dot, ".per-pkg") == 0))
			continue;
		if (ap__slurp(w->m, terms, sizeof(terms), AP__DEVICES "/%s/events/%s", pmu,
			      names[i]) < 0)
			continue;
		if (ap__slurp(w->m, unit, sizeof(unit), AP__DEVICES "/%s/events/%s.unit", pmu,
			      names[i]) < 0)
			unit[0] = '\0';
		snprintf(name, sizeof(name), "%s/%s/", pmu, names[i]);
		snprintf(encoding, sizeof(encoding), "%s/%s/", pmu, terms);
		snprintf(desc, sizeof(desc), "Event %.80s of the PMU %.64s%s%s", names[i], pmu,
			 unit[0] ? ", in " : "", unit);
		r = show(w, &e);
	}
	if (n >= 0)
		ap__names_free(names);
	return r;
}

static int walk_pmus(const struct walk *w)
{
	char **names;
	int n = ap__names(w->m, &names, AP__DEVICES), r = 0;

	if (n < 0)
		return n == -ENOMEM ? n : 0;
	for (int i = 0; i < n && !r; i++)
		r = walk_pmu_events(w, names[i]);
	ap__names_free(names);
	return r;
}

static int walk_system(const struct walk *w, const char *events, const char *sys)
{
	char **names, name[300], encoding[64], desc[400];
	int n = ap__names(w->m, &names, "%s/%s", events, sys), r = 0;
	long long id;

	if (n == -ENOMEM)
		return n;
	for (int i = 0; i < n && !r; i++) {
		struct ap_listed e = {.name = name,
				      .desc = desc,
				      .encoding = encoding,
				      .kind = AP_KIND_TRACEPOINT};

		snprintf(name, sizeof(name), "%.140s:%.140s", sys, names[i]);
		/* The id only of those that will be shown: there are thousands. */
		if (!wanted(w, name, "") ||
		    ap__slurp_number(w->m, &id, "%s/%s/%s/id", events, sys, names[i]))
			continue;
		snprintf(encoding, sizeof(encoding), "type=%u config=%#llx", PERF_TYPE_TRACEPOINT,
			 (unsigned long long)id);
		snprintf(desc, sizeof(desc), "Tracepoint %.140s of the kernel's %.140s", names[i],
			 sys);
		r = show(w, &e);
	}
	if (n >= 0)
		ap__names_free(names);
	return r;
}

static int walk_tracepoints(const struct walk *w)
{
	const char *events = ap__tracefs_events(w->m, NULL);
	char **systems;
	int n, r = 0;

	n = events ? ap__names(w->m, &systems, "%s", events) : -ENOENT;
	if (n < 0)
		return n == -ENOMEM ? n : 0;
	for (int i = 0; i < n && !r; i++)
		r = walk_system(w, events, systems[i]);
	ap__names_free(systems);
	return r;
}

static int show_pfm(const char *name, const char *desc, const char *pmu, void *data)
{
	struct ap_listed e = {
		.name = name, .desc = desc, .encoding = "libpfm4", .pmu = pmu, .kind = AP_KIND_PFM};

	return show(data, &e);
}

static int walk_forms(const struct walk *w)
{
	static const struct {
		const char *name, *desc;
	} forms[] = {
		{"rNNN", "A raw code of the CPU's PMU in hexadecimal, from the CPU's manual"},
		{"cpu/t1=v1[,t2=v2,t3 ...]/modifier",
		 "A PMU's event by the terms of its format directory"},
		{"mem:<addr>[/len][:access]", "A hardware breakpoint; access is r, w, rw or x"},
		{"kprobe:<function|address>[+offset]",
		 "A kernel function's entry, or a place in it"},
		{"kretprobe:<function>", "A kernel function's return"},
		{"uprobe:<file>:<function|offset>[+offset]", "A place in a program or library"},
		{"uretprobe:<file>:<function>", "The return of a program's or library's function"},
		{"<subsystem>:<name>", "Tracepoints, * and ? allowed"},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(forms) && !r; i++) {
		struct ap_listed e = {
			.name = forms[i].name, .desc = forms[i].desc, .kind = AP_KIND_FORM};

		r = show(w, &e);
	}
	return r;
}

int ap_events_each(struct ap_machine *m, const struct ap_list_opts *opts, ap_listed_fn *fn,
		   void *data, struct ap_error *err)
{
	struct ap_list_opts o = {.size = sizeof(o)};
	struct walk w = {.m = m, .opts = &o, .fn = fn, .data = data};
	int r = 0;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	if (!o.kinds)
		o.kinds = AP_KIND_ALL;
	if (o.kinds & AP_KIND_HARDWARE)
		r = walk_generic(&w, AP_KIND_HARDWARE);
	if (!r && o.kinds & AP_KIND_SOFTWARE)
		r = walk_generic(&w, AP_KIND_SOFTWARE);
	if (!r && o.kinds & AP_KIND_CACHE)
		r = walk_cache(&w);
	if (!r && o.kinds & AP_KIND_PMU)
		r = walk_pmus(&w);
	if (!r && o.kinds & AP_KIND_TRACEPOINT)
		r = walk_tracepoints(&w);
	if (!r && o.kinds & AP_KIND_PFM)
		r = ap__pfm_each(m, show_pfm, &w);
	if (!r && o.kinds & AP_KIND_FORM)
		r = walk_forms(&w);
	return r == -ENOMEM ? ap__fail_memory(err) : r;
}

/* What events are opened on to see: the calling thread, which the virtual PMU does not count. */
static int make_target(struct ap_machine *m, struct ap_target *target, struct ap_command **command,
		       struct ap_error *err)
{
	char us[] = "/proc/self/exe", *argv[] = {us, NULL};
	int r;

	*command = NULL;
	if (m->ops != &ap__backend_virtual)
		return 0;
	/* It is never started. */
	r = ap_command_new(command, m, argv, NULL, err);
	target->command = *command;
	return r;
}

static int probe(struct ap_machine *m, struct ap_specs *s, const struct ap_target *target,
		 struct ap_error *err)
{
	struct ap_open_opts opts = {.size = sizeof(opts), .flags = AP_OPEN_USER_FALLBACK};
	struct ap_counters *c;
	bool user_only;
	int r = ap__counters_open(&c, m, s, target, &opts, true, err);

	if (r)
		return r;
	user_only = ap_counters_user_only(c, 0);
	ap_counters_close(c);
	if (!user_only)
		return 0;
	/* Asked again without the fallback for the reason alone. */
	if (!ap__counters_open(&c, m, s, target, NULL, true, err)) {
		ap_counters_close(c);
		return 0;
	}
	return 1;
}

int ap_event_probe(struct ap_machine *m, const char *name, struct ap_error *err)
{
	struct ap_target target = {.size = sizeof(target)};
	struct ap_command *command;
	struct ap_specs *s;
	char cpu[16];
	int r = ap_specs_parse(&s, m, name, err);

	if (r)
		return r;
	if (ap_specs_count(s) && ap_specs_at(s, 0)->uncore) {
		snprintf(cpu, sizeof(cpu), "%d", atoi(ap_specs_at(s, 0)->cpus));
		target.cpus = cpu;
	}
	r = make_target(m, &target, &command, err);
	if (!r)
		r = probe(m, s, &target, err);
	ap_command_free(command);
	ap_specs_free(s);
	return r;
}
