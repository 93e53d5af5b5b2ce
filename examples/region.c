/* Counts what a region of a program does. Build: cc region.c $(pkg-config --cflags --libs anyperf) */
#include <anyperf/anyperf.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	struct ap_machine *machine;
	struct ap_specs *events;
	struct ap_counters *counters;
	struct ap_value faults;
	struct ap_error err;

	if (ap_machine_new(&machine, NULL) ||
	    ap_specs_parse(&events, machine, "page-faults:u", &err) ||
	    ap_counters_open(&counters, machine, events, NULL, NULL, &err))
		return fprintf(stderr, "%s; %s\n", err.why, err.remedy), 1;

	ap_counters_enable(counters);
	for (volatile char *p = calloc(64, 4096), *end = p + 64 * 4096; p < end; p += 4096)
		*p = 1; /* the region */
	ap_counters_disable(counters);

	if (ap_counters_read(counters) || ap_counters_sum(counters, 0, &faults) != AP_STATUS_OK)
		return 1;
	printf("%llu page faults\n", (unsigned long long)faults.value);
	ap_counters_close(counters);
	ap_specs_free(events);
	ap_machine_free(machine);
	return 0;
}
