/* Counts a command where there is no PMU, exactly:  command PROGRAM [ARGUMENTS] */
#include <anyperf/anyperf.h>
#include <stdio.h>

static int count(struct ap_machine *m, char **argv, struct ap_error *err)
{
	struct ap_open_opts how = AP_OPTS(ap_open_opts, .flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT);
	struct ap_target target = {.size = sizeof(target)};
	struct ap_counters *c = NULL;
	struct ap_command *cmd = NULL;
	struct ap_specs *specs = NULL;
	struct ap_value v;
	int r;

	if ((r = ap_specs_parse(&specs, m, "instructions:u,branches:u", err)) == 0 &&
	    (r = ap_command_new(&cmd, m, argv, NULL, err)) == 0) {
		target.command = cmd;
		r = ap_counters_open(&c, m, specs, &target, &how, err);
		if (r == 0 && (r = ap_command_wait(cmd, 0, NULL, err)) == 1)
			r = ap_counters_read(c);
		for (unsigned int i = 0; r == 0 && i < ap_specs_count(specs); i++)
			if (ap_counters_sum(c, i, &v) == AP_STATUS_OK)
				printf("%llu %s\n", (unsigned long long)v.value,
				       ap_specs_at(specs, i)->name);
	}
	ap_counters_close(c);
	ap_command_free(cmd);
	ap_specs_free(specs);
	return r;
}

int main(int argc, char **argv)
{
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .pmu = AP_PMU_VIRTUAL);
	struct ap_error err = {.why = "call it with a program"};
	struct ap_machine *m;
	int r = -1;

	if (ap_machine_new(&m, &opts))
		return 1;
	if (argc > 1)
		r = count(m, argv + 1, &err);
	if (r)
		fprintf(stderr, "%s\n", err.why);
	ap_machine_free(m);
	return r != 0;
}
