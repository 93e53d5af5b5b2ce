/* What sampling asks of the attrs. */
#include "lib/sample/sampler-priv.h"

#include <errno.h>

#include "lib/refusal/fail.h"

#define DEFAULT_FREQ 999 /* not in step with what happens every millisecond */

/* A member of a group that is read in its leader's samples does not sample itself. */
static bool only_counts(const struct ap_spec *s)
{
	return (s->flags & AP_SPEC_SAMPLE_READ) && !(s->flags & AP_SPEC_LEADER);
}

static void prepare(struct ap_spec *s, struct pe_attr *a, const struct ap_sampler_opts *o)
{
	a->sample_id_all = 1;
	a->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | o->sample_type;
	a->write_backward = !!(o->flags & AP_SAMPLER_OVERWRITE);
	if (o->wakeup_events) {
		a->watermark = 0;
		a->wakeup_events = o->wakeup_events;
	}
	if (only_counts(s)) {
		a->sample_period = 0;
		a->freq = 0;
		return;
	}
	if (s->flags & AP_SPEC_SAMPLE_READ)
		a->sample_type |= PERF_SAMPLE_READ;
	if (!a->sample_period) {
		a->freq = !o->period;
		a->sample_period = o->period ? o->period : o->freq ? o->freq : DEFAULT_FREQ;
	}
	/* With a fixed period it is known, and would make each occurrence a sample [SAMP-09]. */
	if (a->freq)
		a->sample_type |= PERF_SAMPLE_PERIOD;
}

int ap__sampler_prepare(struct ap_specs *specs, const struct ap_sampler_opts *o, bool cpus,
			struct ap_error *err)
{
	unsigned int n = ap_specs_count(specs);

	if (o->period && o->freq)
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"a period and a frequency exclude each other");
	if ((o->flags & AP_SAMPLER_OVERWRITE) && (o->flags & AP_SAMPLER_TASKS)) {
		ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
			 "records of tasks would be overwritten with the samples that need them");
		return ap__remedy(err, -EINVAL,
				  "sample them with an event of its own that does not "
				  "overwrite, such as dummy");
	}
	for (unsigned int i = 0; i < n; i++) {
		struct ap_spec *s = ap_specs_at(specs, i);
		struct pe_attr *a = (struct pe_attr *)s->attr;

		prepare(s, a, o);
		if (cpus)
			a->sample_type |= PERF_SAMPLE_CPU;
		if (n > 1)
			a->sample_type |= PERF_SAMPLE_IDENTIFIER;
		if (!i && (o->flags & AP_SAMPLER_TASKS))
			a->mmap = a->mmap2 = a->comm = a->comm_exec = a->task = 1;
		if (!i && (o->flags & AP_SAMPLER_TASKS) && (o->flags & AP_SAMPLER_BUILD_IDS))
			a->build_id = 1;
	}
	return 0;
}
