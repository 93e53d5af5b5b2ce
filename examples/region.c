#include <anyperf/anyperf.h>
#include <stdio.h>

char memory[64 * 4096];
int main(void)
{
	struct ap_counters *c;
	struct ap_error err;

	if (ap_counters_open_text(&c, "page-faults:u", &err))
		return fprintf(stderr, "%s; %s\n", err.why, err.remedy), 1;
	ap_counters_enable(c);
	for (int i = 0; i < 64; i++)
		memory[i * 4096] = 1;
	ap_counters_disable(c);
	if (ap_counters_read(c) == 0)
		printf("%llu page faults\n", (unsigned long long)ap_counters_value(c, 0, 0)->value);
	ap_counters_close(c);
}
