/*
 * Tracepoints of the running kernel. As root the test mounts tracefs for itself; as a user it sees
 * that the refusal names tracefs.
 */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/machine/machine-priv.h"

static struct ap_machine *m;
static struct ap_error err;

static bool tracefs_is_there(void)
{
	struct ap_machine *look = machine_of(NULL);
	bool there = ap__exists(look, "/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id");

	ap_machine_free(look);
	if (there || geteuid() != 0)
		return there;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL))
		return false;
	return access("/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id", R_OK) == 0;
}

static int open_text(const char *text, struct ap_specs **s, struct ap_counters **c)
{
	int r = ap_specs_parse(s, m, text, &err);

	return r ? r : ap_counters_open(c, m, *s, NULL, NULL, &err);
}

static u64 count(struct ap_counters *c, unsigned int i)
{
	struct ap_value v;

	EXPECT_EQ(ap_counters_read(c), 0);
	ap_counters_sum(c, i, &v);
	return v.value;
}

static void live(void)
{
	struct ap_counters *c;
	struct ap_specs *s;

	ASSERT(open_text("syscalls:sys_enter_getppid,syscalls:sys_e*_getppid,sched:sched_switch",
			 &s, &c) == 0);
	EXPECT_EQ(ap_specs_count(s), 4);
	ap_counters_enable(c);
	for (int i = 0; i < 5; i++)
		syscall(SYS_getppid);
	ap_counters_disable(c);
	EXPECT_EQ(count(c, 0), 5);
	EXPECT_EQ(count(c, 1), 5);
	EXPECT_EQ(count(c, 2), 5);
	ap_counters_close(c);
	ap_specs_free(s);
}

static void filters(void)
{
	struct ap_counters *c;
	struct ap_specs *s;
	struct ap_event *e;
	unsigned int n = 9;
	uint32_t ids[2];
	int r;

	ASSERT(open_text("syscalls:sys_enter_dup", &s, &c) == 0);
	e = ap_counters_event(c, 0, 0);
	EXPECT_EQ(ap_event_set_filter(e, "nonsense ==", &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "does not understand the filter \"nonsense ==\"");
	EXPECT_CONTAINS(err.remedy, "format file");
	EXPECT_EQ(ap_event_set_filter(e, "fildes == 1", &err), 0);
	r = ap_event_query_bpf(e, ids, 2, &n, &err);
	if (r == 0)
		EXPECT_EQ(n, 0);
	ap_counters_enable(c);
	close(dup(1));
	close(dup(2));
	ap_counters_disable(c);
	EXPECT_EQ(count(c, 0), 1);
	ap_counters_close(c);
	ap_specs_free(s);
}

/* What raw data needs, and being root is not required just to count one's own [TYPE-03, ERR-15]. */
static void as_a_user(void)
{
	struct pe_attr attr;
	struct ap_event *e = NULL;
	struct ap_specs *s;
	long long paranoid = 2;

	ASSERT(ap_specs_parse(&s, m, "sched:sched_switch", &err) == 0);
	memcpy(&attr, ap_specs_at(s, 0)->attr, sizeof(attr));
	attr.exclude_kernel = attr.exclude_hv = 1;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	ap__slurp_number(m, &paranoid, "/proc/sys/kernel/perf_event_paranoid");
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return;
	if (paranoid == -1 || paranoid > 2)
		return;
	EXPECT_EQ(ap_event_open(&e, m, (struct perf_event_attr *)&attr, NULL, &err), -EPERM);
	EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
	EXPECT_CONTAINS(err.why, "raw data of a tracepoint");
	/* And tracefs is closed to it: the name can no longer be looked up. */
	if (access("/sys/kernel/tracing/events", F_OK)) {
		EXPECT_EQ(ap_specs_parse(&s, m, "sched:sched_switch", &err), -EACCES);
		EXPECT_EQ(err.cause, AP_CAUSE_TRACEFS);
		EXPECT_CONTAINS(err.why, "not readable for this user");
	}
}

static void in_child(void (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		test_failures = 0;
		if (tracefs_is_there()) {
			m = machine_of(NULL);
			fn();
		} else {
			printf("     tracefs cannot be had here\n");
			fflush(stdout);
		}
		_exit(test_failures != 0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		TEST_FAIL("the child failed (status %#x)", status);
}

/* [FILE-18] */
TEST(tracepoints_count)
{
	in_child(live);
}

TEST(tracepoints_filter)
{
	in_child(filters);
}

TEST(tracepoints_of_a_user)
{
	in_child(as_a_user);
}

TEST(tracefs_that_is_missing)
{
	struct ap_specs *s;

	m = machine_of("amd");
	EXPECT_EQ(ap_specs_parse(&s, m, "sched:sched_switch", &err), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_TRACEFS);
	EXPECT_CONTAINS(err.remedy, "mount -t tracefs");
	ap_machine_free(m);
}
