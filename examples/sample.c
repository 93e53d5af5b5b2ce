#include <anyperf/anyperf.h>
#include <stdio.h>

int main(void)
{
	struct ap_sampler_opts opts = AP_OPTS(ap_sampler_opts, .freq = 1000,
					      .sample_type = PERF_SAMPLE_CALLCHAIN);
	struct ap_sampler *s;
	struct ap_record rec;
	struct ap_error err;
	uint64_t lost;

	if (ap_sampler_open_text(&s, "cpu-clock:u", &opts, &err))
		return fprintf(stderr, "%s; %s\n", err.why, err.remedy), 1;
	ap_sampler_enable(s);
	for (volatile int i = 0; i < 100000000; i++)
		;
	ap_sampler_disable(s);
	while (ap_sampler_next(s, &rec, &err) > 0)
		if (rec.type == PERF_RECORD_SAMPLE)
			printf("%llu thread %u at %#llx, %u entries in its call chain\n",
			       (unsigned long long)rec.id.time, rec.id.tid,
			       (unsigned long long)rec.sample.ip,
			       (unsigned int)rec.sample.callchain.nr);
	if (ap_sampler_lost(s, &lost) == 0)
		printf("%llu lost\n", (unsigned long long)lost);
	ap_sampler_close(s);
}
