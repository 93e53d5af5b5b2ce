/*
 * Commands that the kernel counts: how they are started, what they count, how they end or do not
 * start.
 */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ap_error err;

static char **words(const char *a, const char *b, const char *c)
{
	static char *argv[4];

	argv[0] = (char *)a;
	argv[1] = (char *)b;
	argv[2] = (char *)c;
	return argv;
}

/* Waits as a program does that has something else to do. */
static int wait_for(struct ap_command *c, struct ap_command_end *end)
{
	int r;

	while (!(r = ap_command_wait(c, AP_COMMAND_NOHANG, end, &err)))
		usleep(1000);
	return r;
}

TEST(nothing_is_missed)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_open_opts how = AP_OPTS(ap_open_opts, .flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT);
	struct ap_target target = {.size = sizeof(target)};
	struct ap_command_end end = {.status = -1};
	struct ap_counters *c = NULL;
	struct ap_specs *specs = NULL;
	struct ap_value v = {0};

	ASSERT(!ap_specs_parse(&specs, m, "page-faults:u", &err));
	ASSERT(!ap_command_new((struct ap_command **)&target.command, m,
			       words("sh", "-c", "/bin/true; exit 3"), NULL, &err));
	EXPECT(ap_command_pid(target.command) > 0);
	ASSERT(!ap_counters_open(&c, m, specs, &target, &how, &err));
	/* It waits for us. */
	EXPECT_EQ(waitpid(ap_command_pid(target.command), NULL, WNOHANG), 0);
	ap_command_start((struct ap_command *)target.command);
	EXPECT_EQ(wait_for((struct ap_command *)target.command, &end), 1);
	EXPECT(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 3);
	EXPECT(end.user_ns + end.system_ns > 0);
	EXPECT_EQ(ap_command_pid(target.command), 0);
	EXPECT_EQ(ap_command_wait((struct ap_command *)target.command, 0, NULL, &err), -ECHILD);
	EXPECT(!ap_counters_read(c));
	EXPECT_EQ(ap_counters_sum(c, 0, &v), AP_STATUS_OK);
	EXPECT(v.value > 50);
	ap_counters_close(c);
	/* Nothing can be opened on one that has gone. */
	EXPECT_EQ(ap_counters_open(&c, m, specs, &target, &how, &err), -ESRCH);
	ap_command_free((struct ap_command *)target.command);
	ap_specs_free(specs);
	ap_machine_free(m);
}

TEST(waiting_starts_it)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_command_end end;
	struct ap_command *c;

	ASSERT(!ap_command_new(&c, m, words("sh", "-c", "kill -9 $$"), NULL, &err));
	EXPECT_EQ(ap_command_wait(c, 0, &end, &err), 1);
	EXPECT(WIFSIGNALED(end.status) && WTERMSIG(end.status) == 9);
	ap_command_free(c);
	ap_machine_free(m);
}

TEST(one_that_is_not_wanted_goes_away)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_command *c;
	pid_t pid;

	ASSERT(!ap_command_new(&c, m, words("sh", "-c", "exit 0"), NULL, &err));
	pid = ap_command_pid(c);
	ap_command_free(c);
	EXPECT(kill(pid, 0) && errno == ESRCH);
	ap_command_free(NULL);
	ap_machine_free(m);
}

TEST(what_cannot_be_executed)
{
	static const struct {
		const char *program, *why;
		int err;
	} wrong[] = {
		{"no-such-program-anywhere", "no directory of PATH has it", -ENOENT},
		{"/no/such/program", "No such file", -ENOENT},
		{"/", "it is a directory", -EACCES},
		{"/etc/passwd", "it is not executable", -EACCES},
		{"", "the name is empty", -ENOENT},
	};
	struct ap_machine *m = machine_of(NULL);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ap_command *c;

		ASSERT(!ap_command_new(&c, m, words(wrong[i].program, NULL, NULL), NULL, &err));
		EXPECT_EQ(ap_command_wait(c, 0, NULL, &err), wrong[i].err);
		EXPECT_EQ(err.cause, AP_CAUSE_FILE);
		EXPECT_CONTAINS(err.why, wrong[i].why);
		ap_command_free(c);
	}
	ap_machine_free(m);
}

static void leave_a_mark(void *fd)
{
	(void)!write(*(int *)fd, "here", 4);
}

TEST(the_child_is_prepared)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_command *c;
	char text[8] = "";
	int fds[2];

	ASSERT(!pipe(fds));
	ASSERT(!ap_command_new(&c, m, words("true", NULL, NULL),
			       &AP_OPTS(ap_command_opts, .in_child = leave_a_mark, .data = &fds[1]),
			       &err));
	EXPECT_EQ(read(fds[0], text, sizeof(text) - 1), 4);
	EXPECT_STREQ(text, "here");
	EXPECT_EQ(ap_command_wait(c, 0, NULL, &err), 1);
	ap_command_free(c);
	close(fds[0]);
	close(fds[1]);
	ap_machine_free(m);
}

TEST(the_kernel_is_chosen)
{
	struct ap_machine_opts opts = AP_OPTS(ap_machine_opts, .pmu = AP_PMU_KERNEL);
	struct ap_virtual_opts wrong = AP_OPTS(ap_virtual_opts, .counters = 65);
	struct ap_machine *m;
	unsigned int n = 9;

	ASSERT(!ap_machine_new(&m, &opts));
	EXPECT(!ap_machine_choose(m, "instructions", &err));
	EXPECT_EQ(ap_machine_pmu(m), AP_PMU_KERNEL);
	EXPECT_STREQ(ap_machine_pmu_why(m), "asked for");
	EXPECT(!ap_machine_uncounted(m, NULL, NULL, &n));
	EXPECT_EQ(n, 0);
	ap_machine_free(m);

	/* What every kernel counts needs no other PMU. */
	ASSERT(!ap_machine_new(&m, NULL));
	EXPECT(!ap_machine_choose(m, "page-faults:u", &err));
	EXPECT_EQ(ap_machine_pmu(m), AP_PMU_KERNEL);
	EXPECT_STREQ(ap_machine_pmu_why(m), "it can count what is asked for");
	/* Kernel mode is what the virtual PMU does not see. */
	EXPECT(!ap_machine_choose(m, "instructions:k", &err));
	EXPECT_EQ(ap_machine_pmu(m), AP_PMU_KERNEL);
	ap_machine_free(m);

	opts.pmu = AP_PMU_AUTO;
	opts.virtual_pmu = &wrong;
	EXPECT_EQ(ap_machine_new(&m, &opts), -EINVAL);
	wrong.counters = 1;
	wrong.cpus = 65;
	EXPECT_EQ(ap_machine_new(&m, &opts), -EINVAL);
	wrong.cpus = 64;
	wrong.cpu_features = "x86-64-v9";
	EXPECT_EQ(ap_machine_new(&m, &opts), -EINVAL);
}
