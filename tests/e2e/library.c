/*
 * The virtual PMU as a program finds it that links the library: exact counts, what is refused, and
 * that nothing of the program's own process is touched.  library FIXED
 */
#include <anyperf/anyperf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *fixed[] = {NULL, NULL,
			NULL}; /* 200,000 instructions and 100,000 branches per word; 5 and 1 */
static struct ap_error err;
static volatile sig_atomic_t children;

#define NEED(cond)                                                                         \
	do {                                                                               \
		if (!(cond)) {                                                             \
			fprintf(stderr, "%s:%d: %s (%s; %s)\n", __FILE__, __LINE__, #cond, \
				err.why, err.remedy);                                      \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

static struct ap_machine *virtual_machine(const struct ap_virtual_opts *v)
{
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .pmu = AP_PMU_VIRTUAL,
					      .virtual_pmu = v);
	struct ap_machine *m;

	NEED(!ap_machine_new(&m, &opts));
	return m;
}

/* What the events of @text count of @argv; its wait(2) status. */
static int count(struct ap_machine *m, const char *text, char **argv, unsigned long long *values)
{
	struct ap_open_opts how = AP_OPTS(ap_open_opts, .flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT);
	struct ap_target target = {.size = sizeof(target)};
	struct ap_command_end end;
	struct ap_command *cmd;
	struct ap_counters *c;
	struct ap_specs *specs;
	struct ap_value v;

	NEED(!ap_specs_parse(&specs, m, text, &err));
	NEED(!ap_command_new(&cmd, m, argv, NULL, &err));
	target.command = cmd;
	NEED(!ap_counters_open(&c, m, specs, &target, &how, &err));
	ap_command_start(cmd);
	NEED(ap_command_wait(cmd, 0, &end, &err) == 1);
	NEED(!ap_counters_read(c));
	for (unsigned int i = 0; i < ap_specs_count(specs); i++) {
		NEED(ap_counters_sum(c, i, &v) == AP_STATUS_OK);
		values[i] = v.value;
	}
	ap_counters_close(c);
	ap_command_free(cmd);
	ap_specs_free(specs);
	return end.status;
}

static void test_counts_are_exact(void)
{
	struct ap_machine *m = virtual_machine(NULL);
	char *shell[] = {(char *)"sh", (char *)"-c", NULL, NULL};
	unsigned long long v[3];
	char script[300];
	unsigned int n = 9;

	NEED(count(m, "instructions:u,branches:u", fixed, v) == 0);
	NEED(v[0] == 200005 && v[1] == 100001);
	/* Again on the same machine, in a group, with something that the kernel knows. */
	fixed[1] = (char *)"x";
	NEED(count(m, "{instructions,branches}:u,page-faults:u", fixed, v) == 0);
	NEED(v[0] == 400005 && v[1] == 200001 && v[2] > 0);
	fixed[1] = NULL;
	snprintf(script, sizeof(script), "%s & %s; wait; exit 3", fixed[0], fixed[0]);
	shell[2] = script;
	NEED(WEXITSTATUS(count(m, "instructions:u", shell, v)) == 3 && v[0] > 400010);
	NEED(!ap_machine_uncounted(m, NULL, NULL, &n) && n == 0);
	ap_machine_free(m);
}

static void test_what_is_refused(void)
{
	struct ap_virtual_opts opts = AP_OPTS(ap_virtual_opts, .session = "no-such-session");
	struct ap_target everywhere = {
		.size = sizeof(everywhere), .pids = (pid_t[]){1}, .npids = 1};
	char *nothing[] = {(char *)"no-such-program-anywhere", NULL};
	struct ap_machine *m = virtual_machine(NULL);
	struct ap_command *cmd;
	struct ap_counters *c;
	struct ap_specs *specs;

	NEED(ap_command_new(&cmd, m, nothing, NULL, &err) == -ENOENT);
	NEED(strstr(err.why, "no directory of PATH has it"));
	NEED(!ap_specs_parse(&specs, m, "instructions:u", &err));
	NEED(ap_counters_open(&c, m, specs, NULL, NULL, &err) == -ENOENT);
	NEED(strstr(err.why, "this program was not") && strstr(err.remedy, "ap_command_new"));
	NEED(ap_counters_open(&c, m, specs, &everywhere, NULL, &err) < 0);
	NEED(strstr(err.why, "no guest of this session"));
	ap_specs_free(specs);
	NEED(ap_specs_parse(&specs, m, "cpu/no-such-event/", &err) < 0);
	ap_machine_free(m);

	m = virtual_machine(&opts);
	NEED(!ap_specs_parse(&specs, m, "instructions:u", &err));
	NEED(ap_counters_open(&c, m, specs, &everywhere, NULL, &err) < 0);
	NEED(strstr(err.why, "no session named \"no-such-session\""));
	ap_specs_free(specs);
	ap_machine_free(m);
}

static void test_it_is_chosen(void)
{
	struct ap_machine *m;
	unsigned long long v[1];

	NEED(!ap_machine_new(&m, NULL));
	NEED(ap_machine_pmu(m) == AP_PMU_KERNEL);
	NEED(!ap_machine_choose(m, "instructions:u", &err));
	if (ap_machine_pmu(m) == AP_PMU_VIRTUAL) {
		NEED(strstr(ap_machine_pmu_why(m), "the kernel"));
		NEED(count(m, "instructions:u", fixed, v) == 0 && v[0] == 200005);
	}
	/* A choice can be made anew. */
	NEED(!ap_machine_choose(m, "page-faults:u", &err));
	NEED(ap_machine_pmu(m) == AP_PMU_KERNEL);
	ap_machine_free(m);
	m = virtual_machine(NULL);
	NEED(!ap_machine_choose(m, "instructions", &err) && ap_machine_pmu(m) == AP_PMU_VIRTUAL);
	ap_machine_free(m);
}

static void test_what_can_be_counted(void)
{
	struct ap_machine *m = virtual_machine(NULL);

	NEED(ap_event_probe(m, "instructions:u", &err) == 0);
	NEED(ap_event_probe(m, "anyperf/calls/u", &err) == 0);
	NEED(ap_event_probe(m, "instructions", &err) == 1 && strstr(err.why, "kernel"));
	NEED(ap_event_probe(m, "cycles:u", &err) == 0);
	NEED(ap_event_probe(m, "L1-icache-stores:u", &err) < 0);
	ap_machine_free(m);
	m = virtual_machine(&AP_OPTS(ap_virtual_opts, .machine = "none"));
	NEED(ap_event_probe(m, "cycles:u", &err) == -ENOENT && strstr(err.why, "virtual PMU"));
	ap_machine_free(m);
	NEED(ap_machine_new(&m, &AP_OPTS(ap_machine_opts, .pmu = AP_PMU_VIRTUAL,
					 .virtual_pmu = &AP_OPTS(ap_virtual_opts,
								 .machine = "no such"))) ==
	     -EINVAL);
}

static void test_options(void)
{
	struct ap_virtual_opts opts = AP_OPTS(ap_virtual_opts, .flags = AP_VIRTUAL_DETERMINISTIC,
					      .seed = 7);
	char *program[] = {(char *)"/bin/true", NULL};
	struct ap_machine *m = virtual_machine(&opts);
	unsigned long long a[1], b[1];

	NEED(count(m, "instructions:u", program, a) == 0 &&
	     count(m, "instructions:u", program, b) == 0);
	NEED(a[0] == b[0] && a[0] > 10000);
	ap_machine_free(m);
	opts = AP_OPTS(ap_virtual_opts, .counters = 1, .flags = AP_VIRTUAL_IGNORE_KERNEL);
	m = virtual_machine(&opts);
	NEED(count(m, "instructions", fixed, a) == 0 && a[0] == 200005);
	ap_machine_free(m);
}

static void *count_in_thread(void *m)
{
	unsigned long long v[2];

	for (int i = 0; i < 5; i++) {
		NEED(count(m, "instructions:u,branches:u", fixed, v) == 0);
		NEED(v[0] == 200005 && v[1] == 100001);
	}
	return NULL;
}

static void test_two_threads(void)
{
	struct ap_machine *m = virtual_machine(NULL);
	pthread_t other;

	NEED(!pthread_create(&other, NULL, count_in_thread, m));
	count_in_thread(m);
	pthread_join(other, NULL);
	ap_machine_free(m);
}

static void child_ended(int sig)
{
	(void)sig;
	children++;
}

/* Limits, signals, children: only those that the program has asked for. */
static void test_our_process_is_ours(void)
{
	struct rlimit files = {64, 4096}, sizes = {1 << 20, RLIM_INFINITY}, now;
	struct sigaction act = {.sa_handler = child_ended};
	unsigned long long v[1];
	struct ap_machine *m;

	NEED(!getrlimit(RLIMIT_NOFILE, &now));
	files.rlim_max = now.rlim_max;
	NEED(!setrlimit(RLIMIT_NOFILE, &files) && !setrlimit(RLIMIT_FSIZE, &sizes));
	sigaction(SIGCHLD, &act, NULL);
	m = virtual_machine(NULL);
	NEED(count(m, "instructions:u", fixed, v) == 0 && v[0] == 200005);
	ap_machine_free(m);
	NEED(children == 1);
	NEED(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	NEED(!getrlimit(RLIMIT_NOFILE, &now) && now.rlim_cur == 64);
	NEED(!getrlimit(RLIMIT_FSIZE, &now) && now.rlim_cur == 1 << 20);
	sigaction(SIGXFSZ, NULL, &act);
	NEED(act.sa_handler == SIG_DFL);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 1;
	fixed[0] = argv[1];
	test_counts_are_exact();
	test_what_is_refused();
	test_it_is_chosen();
	test_what_can_be_counted();
	test_options();
	test_two_threads();
	test_our_process_is_ours();
	return 0;
}
