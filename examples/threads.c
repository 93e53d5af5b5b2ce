/*
 * Counts every thread of a running process for a second:  threads PID [EVENTS]
 * Shows targets, events that may fail one by one with their reasons, and scaled values.
 */
#include <anyperf/anyperf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void show(const struct ap_counters *c, unsigned int i)
{
	const char *name = ap_specs_at(ap_counters_specs(c), i)->name;
	uint64_t count;

	if (ap_counters_error(c, i))
		printf("%s\n", ap_counters_error(c, i)->why);
	for (unsigned int p = 0; p < ap_counters_places(c); p++) {
		const struct ap_value *v = ap_counters_value(c, i, p);

		if (v && ap_value_scale(v, &count) != AP_NOT_COUNTED)
			printf("thread %d: %llu %s\n", (int)ap_counters_place(c, p).tid,
			       (unsigned long long)count, name);
	}
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : getpid();
	struct ap_target target = {.size = sizeof(target), .pids = &pid, .npids = 1};
	struct ap_open_opts opts = AP_OPTS(
		ap_open_opts, .flags = AP_OPEN_PARTIAL | AP_OPEN_RUNNING | AP_OPEN_USER_FALLBACK);
	struct ap_machine *machine = NULL;
	struct ap_specs *specs = NULL;
	struct ap_counters *c = NULL;
	struct ap_error err;
	int r;

	if (ap_machine_new(&machine, NULL))
		return 1;
	r = ap_specs_parse(&specs, machine, argc > 2 ? argv[2] : "task-clock,page-faults", &err);
	if (!r)
		r = ap_counters_open(&c, machine, specs, &target, &opts, &err);
	if (r) {
		fprintf(stderr, "%s\n%s\n", err.why, err.remedy);
	} else {
		sleep(1);
		ap_counters_read(c);
		for (unsigned int i = 0; i < ap_specs_count(specs); i++)
			show(c, i);
	}
	ap_counters_close(c);
	ap_specs_free(specs);
	ap_machine_free(machine);
	return r ? 1 : 0;
}
