/* What is sampled, how often, and what each sample holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "abi/perf.h"
#include "cli/modeled-events.h"
#include "cli/record/record-exact.h"
#include "cli/record/record-priv.h"
#include "data/reg-names.h"
#include "lib/machine/machine-pmu.h"

/* The virtual PMU samples what is started under it. */
static bool is_for_virtual(const struct record_opts *o)
{
	return o->command && !record_opts_has_target(o);
}

/*
 * Turns to the virtual PMU if it can sample what the kernel cannot. NULL, or why the kernel's
 * events are to do.
 */
static const char *turn(struct record_job *job, const struct ap__needs *needs, struct ap_error *err)
{
	if (!is_for_virtual(&job->opts) || needs->kernel_mode ||
	    record_opts_pmu(&job->opts, "kernel"))
		return needs->lacks;
	return ap__pmu_turn(job->machine, needs->lacks, err) ? err->why : NULL;
}

/* With --pmu=virtual. */
static int want_virtual(struct record_job *job)
{
	struct ap_error err;

	if (!is_for_virtual(&job->opts))
		return command_error(&cmd_record, "%s samples a COMMAND that is started here",
				     job->opts.machine ? "--machine" : "--pmu=virtual");
	return ap__pmu_want(job->machine,
			    job->opts.machine ? "asked for by --machine" : "asked for by --pmu",
			    &err)
		       ? record_say(&err, NULL)
		       : 0;
}

/* Who samples is said once the events are open: a refusal would contradict it. */
static void announce(struct record_job *job, const char *text, const char *who, const char *why)
{
	if (asprintf(&job->announced, "samples %s, %s: %s", text, who, why) < 0)
		job->announced = NULL;
}

static int parse(struct record_job *job)
{
	const char *text = job->opts.events, *who = NULL, *why = NULL;
	struct ap__needs needs = {.lacks = NULL};
	struct ap_error turned, err;
	bool guest;

	if (job->opts.exact) {
		if (record_exact_begin(job))
			return -1;
		text = "dummy:u";
	} else if (record_opts_pmu(&job->opts, "virtual") || job->opts.machine) {
		if (want_virtual(job))
			return -1;
		who = "by the virtual PMU";
		why = ap_machine_pmu_why(job->machine);
	} else {
		needs = ap__pmu_needs(job->machine, text ? text : "cycles", NULL, NULL);
	}
	guest = !needs.lacks && ap__machine_is_guest();
	if (needs.lacks)
		why = turn(job, &needs, &turned);
	if (needs.lacks && !why) {
		who = "by the virtual PMU";
		why = needs.lacks;
	} else if (needs.lacks && !text) {
		text = "cpu-clock";
		who = "the kernel's clock";
	}
	if (!text)
		text = who || guest ? "instructions:u" : "cycles";
	if (ap_specs_parse(&job->specs, job->machine, text, &err))
		return record_say(&err, NULL);
	if (who)
		announce(job, text, who, why);
	return 0;
}

static u64 parse_regs(struct record_job *job, const char *arch)
{
	const char *p = job->opts.user_regs;
	u64 mask = 0;

	if (!strcmp(p, "all"))
		return data_regs_all(arch);
	while (*p) {
		char name[16];
		size_t len = strcspn(p, ",");
		int bit;

		snprintf(name, sizeof(name), "%.*s", (int)(len < 15 ? len : 15), p);
		bit = data_reg_find(arch, name);
		if (bit < 0) {
			command_error(&cmd_record, "--user-regs: '%s' is no register of %s", name,
				      arch);
			return 0;
		}
		mask |= BIT(bit);
		p += len + (p[len] == ',');
	}
	return mask;
}

/* Each occurrence is worth a sample, as perf sees it, if nothing else is said. */
static bool is_seldom(const struct ap_spec *s)
{
	u32 type = ((const struct pe_attr *)s->attr)->type;

	return type == PERF_TYPE_TRACEPOINT || type == PERF_TYPE_BREAKPOINT ||
	       (s->pmu && (!strcmp(s->pmu, "uprobe") || !strcmp(s->pmu, "kprobe")));
}

/* The parts of samples that options ask for, in all attrs. */
static int shape(struct record_job *job)
{
	const struct record_opts *o = &job->opts;
	struct utsname machine = {.machine = ""};
	u64 regs = 0;

	uname(&machine);
	if (o->user_regs) {
		regs = parse_regs(job, machine.machine);
		if (!regs)
			return -1;
	}
	if (o->graph == GRAPH_DWARF)
		regs |= data_regs_all(machine.machine);
	/* So that a reader knows whose stack something is on. */
	if (o->exact && o->addresses)
		regs |= BIT(data_reg_find(machine.machine, "sp"));
	for (u32 i = 0; i < ap_specs_count(job->specs); i++) {
		struct pe_attr *a = (struct pe_attr *)ap_specs_at(job->specs, i)->attr;

		if (o->exact)
			a->sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER;
		if (o->graph)
			a->sample_type |= PERF_SAMPLE_CALLCHAIN;
		if (regs) {
			a->sample_type |= PERF_SAMPLE_REGS_USER;
			a->sample_regs_user = regs;
		}
		/* Tables for unwinding are in mappings that are not executable. */
		a->mmap_data = record_opts_data_maps(o);
		if (o->graph == GRAPH_DWARF) {
			a->sample_type |= PERF_SAMPLE_STACK_USER;
			a->sample_stack_user = o->dump_size;
			a->exclude_callchain_user = 1;
		}
		if (o->graph == GRAPH_LBR) {
			a->sample_type |= PERF_SAMPLE_BRANCH_STACK;
			a->branch_sample_type = PERF_SAMPLE_BRANCH_USER |
						PERF_SAMPLE_BRANCH_CALL_STACK |
						PERF_SAMPLE_BRANCH_NO_CYCLES |
						PERF_SAMPLE_BRANCH_NO_FLAGS;
		}
		if (o->branch_type) {
			a->sample_type |= PERF_SAMPLE_BRANCH_STACK;
			a->branch_sample_type = o->branch_type;
		}
		if (o->addresses)
			a->sample_type |= PERF_SAMPLE_ADDR;
		if (o->addresses && !o->exact)
			a->sample_type |= PERF_SAMPLE_DATA_SRC;
		/* A model knows how long it took. */
		if (o->addresses && modeled_event((const struct perf_event_attr *)a) &&
		    ap_machine_pmu(job->machine) == AP_PMU_VIRTUAL)
			a->sample_type |= PERF_SAMPLE_WEIGHT;
		/* Without its fields a tracepoint says nothing. */
		if (a->type == PERF_TYPE_TRACEPOINT)
			a->sample_type |= PERF_SAMPLE_RAW;
		if (is_seldom(ap_specs_at(job->specs, i)) && !a->sample_period && !o->period &&
		    !o->freq && !o->freq_max)
			a->sample_period = 1;
	}
	return 0;
}

int record_events_prepare(struct record_job *job)
{
	return parse(job) || shape(job) ? -1 : 0;
}
