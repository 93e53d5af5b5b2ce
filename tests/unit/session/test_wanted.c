/* What a session tells runtimes of the model of a machine: the parts that open events need. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/modeled.h"
#include "model/machines.h"
#include "session/session-priv.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

static struct session *start(void)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	struct machine_mistake mistake;
	struct machine machine;
	struct session *s = NULL;
	char why[300];

	EXPECT_EQ(machine_parse(&machine, machines_shipped[0].text,
				strlen(machines_shipped[0].text), &mistake),
		  0);
	memcpy(config.run.machine, &machine, sizeof(machine));
	EXPECT_EQ(session_new(&config, &s, why, sizeof(why)), 0);
	return s;
}

static u32 wanted(const struct mock *g)
{
	return __atomic_load_n(segment_model_parts(g->segment), __ATOMIC_ACQUIRE);
}

static int open_misses(struct mock *g, pid_t pid, u64 period)
{
	struct pe_attr attr = mock_attr();
	u64 handle;

	attr.config = PERF_COUNT_HW_BRANCH_MISSES;
	attr.sample_period = period;
	return mock_open(g, &attr, pid, -1, WIRE_NO_EVENT, 0, &handle);
}

/* That of a descriptor that is closed shows with the next call. */
static void close_and_call(struct mock *g, int fd)
{
	struct pe_attr attr = mock_attr();
	u64 handle;

	close(fd);
	close(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &handle));
}

static void want_and_leave(struct mock *g)
{
	pid_t child;
	int self, other, samples;

	NEED(mock_hello(g, -1, 0) == 0);
	close_and_call(g, -1);
	NEED(wanted(g) == 0);
	self = open_misses(g, 0, 0);
	NEED(self >= 0);
	NEED(wanted(g) == (MODEL_BRANCHES | MODEL_WHOLE));
	close_and_call(g, self);
	NEED(wanted(g) == 0);
	samples = open_misses(g, 0, 1000000);
	NEED(wanted(g) == (MODEL_BRANCHES | MODEL_EACH | MODEL_WHOLE));
	close_and_call(g, samples);
	NEED(wanted(g) == 0);
	/* Of another process it is enough to see parts. */
	child = fork();
	if (!child) {
		struct mock its = *g;

		mock_set_meter(&its, mock_take_meter(&its));
		NEED(mock_hello(&its, -1, 0) == 0);
		pause();
		_exit(0);
	}
	for (int i = 0; i < 1000; i++) {
		other = open_misses(g, child, 0);
		if (other != -ENOENT && other != -ESRCH)
			break;
		usleep(5000);
	}
	NEED(other >= 0);
	NEED(wanted(g) == MODEL_BRANCHES);
	self = open_misses(g, 0, 0);
	NEED(wanted(g) == (MODEL_BRANCHES | MODEL_WHOLE));
	close_and_call(g, self);
	NEED(wanted(g) == MODEL_BRANCHES);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close_and_call(g, other);
	NEED(wanted(g) == 0);
}

TEST(as_long_as_events_are_open)
{
	struct session *s = start();
	pid_t child = mock_fork(s, want_and_leave);
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0)
		session_run(s, 10);
	EXPECT_EQ(status, 0);
	session_free(s);
}
