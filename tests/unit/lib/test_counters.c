/*
 * Events, groups and targets on the running kernel, with software events, which every machine has.
 */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "breakpoints-fire.h"
#include "lib/count/target.h"
#include "lib/spec/spec-priv.h"

#define PAGES 64

/* Exactly PAGES minor faults in user mode. */
static void fault(void)
{
	volatile char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)p, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		p[i * 4096] = 1;
	munmap((void *)p, PAGES * 4096);
}

static struct ap_machine *m;
static struct ap_specs *specs;
static struct ap_counters *c;
static struct ap_error err;

static void reset(void)
{
	ap_counters_close(c);
	ap_specs_free(specs);
	ap_machine_free(m);
	c = NULL;
	specs = NULL;
	m = NULL;
}

static int start(const char *text, const struct ap_target *target, unsigned int flags)
{
	struct ap_open_opts opts = {.size = sizeof(opts), .flags = flags};
	int r;

	reset();
	m = machine_of(NULL);
	memset(&err, 0, sizeof(err));
	r = ap_specs_parse(&specs, m, text, &err);
	return r ? r : ap_counters_open(&c, m, specs, target, &opts, &err);
}

static u64 sum(unsigned int i)
{
	struct ap_value v;

	return ap_counters_sum(c, i, &v) == AP_STATUS_OK ? v.value : 0;
}

TEST(a_region_is_counted_exactly)
{
	ASSERT(start("page-faults:u", NULL, 0) == 0);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT_EQ(sum(0), 0);
	fault();
	EXPECT_EQ(ap_counters_enable(c), 0);
	fault();
	EXPECT_EQ(ap_counters_disable(c), 0);
	fault();
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT_EQ(sum(0), PAGES);
	EXPECT_EQ(ap_counters_reset(c), 0);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT_EQ(sum(0), 0);
	reset();
}

TEST(groups_are_read_at_once)
{
	const struct ap_value *v;

	ASSERT(start("{page-faults:u,minor-faults:u,dummy:u},major-faults:u", NULL, AP_OPEN_LOST) ==
	       0);
	EXPECT(ap_event_attr(ap_counters_event(c, 0, 0))->read_format & PERF_FORMAT_GROUP);
	EXPECT(!(ap_event_attr(ap_counters_event(c, 3, 0))->read_format & PERF_FORMAT_GROUP));
	ap_counters_enable(c);
	fault();
	ap_counters_disable(c);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT_EQ(sum(0), PAGES);
	EXPECT_EQ(sum(1), PAGES);
	EXPECT_EQ(sum(2), 0);
	v = ap_counters_value(c, 1, 0);
	EXPECT_EQ(v->running, ap_counters_value(c, 0, 0)->running);
	EXPECT(v->id && v->id != ap_counters_value(c, 0, 0)->id);
	EXPECT(ap_counters_value(c, 4, 0) == NULL);
	EXPECT(ap_counters_value(c, 0, 1) == NULL);
	/* Singly, by option. */
	ASSERT(start("{page-faults:u,minor-faults:u}", NULL, AP_OPEN_NO_GROUP_READ) == 0);
	ap_counters_enable(c);
	fault();
	/* To read may take a fault of its own. */
	ap_counters_disable(c);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT_EQ(sum(1), PAGES);
	reset();
}

TEST(children_are_inherited)
{
	pid_t pid;

	ASSERT(start("page-faults:u", NULL, AP_OPEN_INHERIT) == 0);
	ap_counters_enable(c);
	pid = fork();
	if (pid == 0) {
		fault();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ap_counters_disable(c);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) >= PAGES);
	reset();
}

TEST(a_command_is_counted_from_exec_on)
{
	struct ap_target t = {.size = sizeof(t), .ntids = 1};
	int go[2];
	pid_t pid;
	char b;

	ASSERT(pipe(go) == 0);
	pid = fork();
	if (pid == 0) {
		fault();
		if (read(go[0], &b, 1) == 1)
			execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	t.tids = &pid;
	ASSERT(start("task-clock:u,page-faults:u", &t, AP_OPEN_ON_EXEC | AP_OPEN_INHERIT) == 0);
	EXPECT_EQ(write(go[1], "x", 1), 1);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) > 0);
	EXPECT(sum(1) > 0);
	close(go[0]);
	close(go[1]);
	reset();
}

static void *sleeper(void *arg)
{
	int *fds = arg;
	char b;

	fault();
	if (write(fds[3], "r", 1) == 1 && read(fds[0], &b, 1) == 1)
		fault();
	return NULL;
}

TEST(all_threads_of_a_process)
{
	struct ap_target t = {.size = sizeof(t), .npids = 1};
	pid_t self = getpid();
	pthread_t thread;
	int fds[4];
	char b;

	ASSERT(pipe(fds) == 0 && pipe(fds + 2) == 0);
	ASSERT(pthread_create(&thread, NULL, sleeper, fds) == 0);
	EXPECT_EQ(read(fds[2], &b, 1), 1);
	t.pids = &self;
	ASSERT(start("page-faults:u", &t, AP_OPEN_RUNNING) == 0);
	EXPECT_EQ(ap_counters_places(c), 2);
	EXPECT_EQ(write(fds[1], "g", 1), 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(ap_counters_value(c, 0, 1)->value >= PAGES);
	EXPECT(ap_counters_place(c, 0).tid == self || ap_counters_place(c, 1).tid == self);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	reset();
}

TEST(threads_on_cpus_are_places_of_their_own)
{
	struct ap_target t = {.size = sizeof(t), .cpus = "all", .ntids = 1};
	pid_t self = 0;
	u64 total = 0;

	t.tids = &self;
	ASSERT(start("page-faults:u", &t, AP_OPEN_RUNNING) == 0);
	EXPECT_EQ(ap_counters_places(c), sysconf(_SC_NPROCESSORS_ONLN));
	fault();
	EXPECT_EQ(ap_counters_read(c), 0);
	for (unsigned int p = 0; p < ap_counters_places(c); p++)
		total += ap_counters_value(c, 0, p)->value;
	EXPECT(total >= PAGES);
	EXPECT_EQ(total, sum(0));
	reset();
}

TEST(every_thread_of_the_machine)
{
	struct ap_target t = {.size = sizeof(t), .every_thread = true};
	bool mine = false;

	ASSERT(start("page-faults:u", &t, AP_OPEN_PARTIAL) == 0);
	for (unsigned int p = 0; p < ap_counters_places(c); p++)
		mine |= ap_counters_place(c, p).tid == getpid() && ap_counters_event(c, 0, p);
	EXPECT(mine);
	reset();
}

TEST(bad_targets)
{
	struct ap_target t = {.size = sizeof(t), .cpus = "0-"};
	pid_t none = 0x3fffffff;

	EXPECT_EQ(start("cs:u", &t, 0), -EINVAL);
	EXPECT_CONTAINS(err.why, "not a list of CPUs");
	t.cpus = NULL;
	t.pids = &none;
	t.npids = 1;
	EXPECT_EQ(start("cs:u", &t, 0), -ESRCH);
	EXPECT_CONTAINS(err.why, "there is no process 1073741823");
	t = (struct ap_target){.size = sizeof(t), .cgroup = "no/such/cgroup"};
	EXPECT(start("cs:u", &t, 0) < 0);
	EXPECT_EQ(err.cause, AP_CAUSE_CGROUP);
	reset();
}

/* Whoever names a CPU wants its counts: without it the sum would be another one. */
TEST(cpus_that_are_not_online)
{
	struct ap_target t = {.size = sizeof(t), .cpus = "0,4000", .ntids = 1};
	struct ap_error none;
	pid_t self = 0;

	t.tids = &self;
	EXPECT_EQ(start("cs:u", &t, AP_OPEN_PARTIAL), -EINVAL);
	EXPECT_CONTAINS(err.why, "there is no CPU 4000; online are ");
	EXPECT_EQ(err.cause, AP_CAUSE_CPU);
	reset();
	m = machine_of("amd");
	EXPECT_EQ(ap__cpus_check(m, "0-15", &none), 0);
	EXPECT_EQ(ap__cpus_check(m, "all", &none), 0);
	EXPECT_EQ(ap__cpus_check(m, "15-16", &none), -ENODEV);
	EXPECT_STREQ(none.why, "CPU 16 is offline; online are 0-15");
	EXPECT_CONTAINS(none.remedy, "cpu16/online");
	EXPECT_EQ(ap__cpus_check(m, "3,32", &none), -EINVAL);
	EXPECT_STREQ(none.why, "there is no CPU 32; online are 0-15");
	EXPECT_STREQ(none.remedy, "");
	EXPECT_EQ(ap__cpus_check(m, "3,", &none), -EINVAL);
	EXPECT_CONTAINS(none.why, "not a list of CPUs");
	reset();
	/* Where nobody tells which there are it is the kernel that refuses. */
	m = machine_of("no-such-machine");
	EXPECT_EQ(ap__cpus_check(m, "4000", &none), 0);
	reset();
}

TEST(a_part_is_no_whole)
{
	const pid_t tids[] = {0, 0x3fffffff};
	struct ap_target t = {.size = sizeof(t), .tids = tids, .ntids = 2};
	struct ap_value v;

	EXPECT_EQ(start("page-faults:u", &t, 0), -ESRCH);
	ASSERT(start("page-faults:u,{cs:u,minor-faults:u}", &t, AP_OPEN_PARTIAL) == 0);
	ap_counters_enable(c);
	fault();
	EXPECT_EQ(ap_counters_read(c), 0);
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_EQ(ap_counters_sum(c, i, &v), AP_STATUS_PARTIAL);
		EXPECT(ap_counters_error(c, i) != NULL);
		EXPECT(!ap_counters_refused(c, i, 0) && ap_counters_refused(c, i, 1));
		EXPECT(!ap_counters_refused(c, i, 2));
	}
	EXPECT(!ap_counters_refused(c, 3, 1));
	EXPECT(ap_counters_sum(c, 2, &v) == AP_STATUS_PARTIAL && v.value >= PAGES);
	reset();
}

TEST(what_opens_is_kept_and_the_rest_says_why)
{
	/* No kernel has a software event of this number. */
	ASSERT(start("page-faults:u,1:999:u,cs:u", NULL, AP_OPEN_PARTIAL) == 0);
	EXPECT(ap_counters_error(c, 0) == NULL);
	ASSERT(ap_counters_error(c, 1) != NULL);
	EXPECT_CONTAINS(ap_counters_error(c, 1)->why, "software event number 999");
	struct ap_value v;
	EXPECT_EQ(ap_counters_sum(c, 1, &v), AP_STATUS_NOT_SUPPORTED);
	ap_counters_enable(c);
	fault();
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) >= PAGES);
	EXPECT_EQ(start("page-faults:u,1:999:u", NULL, 0), -ENOENT);
	/* A leader that fails takes its members with it. */
	EXPECT_EQ(start("{1:999:u,page-faults:u},cs:u", NULL, AP_OPEN_PARTIAL), 0);
	EXPECT_CONTAINS(ap_counters_error(c, 1)->why, "leader of its group");
	EXPECT(ap_counters_error(c, 2) == NULL);
	/* A member that fails is missing from the group's read. */
	EXPECT_EQ(start("{page-faults:u,1:999:u,minor-faults:u}", NULL, AP_OPEN_PARTIAL), 0);
	ap_counters_enable(c);
	fault();
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) >= PAGES && sum(2) >= PAGES);
	EXPECT(ap_counters_value(c, 1, 0) == NULL);
	reset();
}

TEST(self_reads_fall_back_to_the_system_call)
{
	struct ap_value v;
	struct ap_event *e;

	/* Software events have no counter: index is 0 [PAGE-03]. */
	ASSERT(start("{page-faults:u,minor-faults:u},cs:u", NULL, AP_OPEN_SELF_READ) == 0);
	ap_counters_enable(c);
	fault();
	e = ap_counters_event(c, 1, 0);
	EXPECT(!ap_event_self_direct(e));
	EXPECT_EQ(ap_event_read_self(e, &v), 0);
	EXPECT(v.value >= PAGES);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) >= PAGES);
	EXPECT(sum(1) >= PAGES);
	reset();
}

static bool file_says(const char *path, char value)
{
	int fd = open(path, O_RDONLY);
	char seen = 0;
	bool is = fd >= 0 && read(fd, &seen, 1) == 1 && seen == value;

	if (fd >= 0)
		close(fd);
	return is;
}

/* Where there is a PMU, and its counters may be read in user mode [ARM-13]. */
TEST(self_reads_need_no_system_call)
{
	struct ap_value before, after, called;
	struct ap_event *e;

	if (!file_says("/proc/sys/kernel/perf_user_access", '1') &&
	    !file_says("/sys/bus/event_source/devices/cpu/rdpmc", '1'))
		return;
	if (start("instructions:u", NULL, AP_OPEN_SELF_READ))
		return;
	ap_counters_enable(c);
	e = ap_counters_event(c, 0, 0);
	EXPECT(ap_event_self_direct(e));
	EXPECT_EQ(ap_event_read_self(e, &before), 0);
	for (volatile int i = 0; i < 100000; i++)
		;
	EXPECT_EQ(ap_event_read_self(e, &after), 0);
	EXPECT_EQ(ap_event_read(e, &called, 1), 1);
	EXPECT(after.value - before.value > 100000 && after.value - before.value < 10000000);
	EXPECT(called.value > after.value && called.value - after.value < 100000);
	EXPECT(after.enabled > before.enabled && called.enabled >= after.enabled);
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) > called.value);
	reset();
}

static struct ap_event *open_one(const struct pe_attr *attr)
{
	struct ap_event *e = NULL;

	reset();
	m = machine_of(NULL);
	if (ap_event_open(&e, m, (const struct perf_event_attr *)attr, NULL, &err))
		TEST_FAIL("open: %s", err.why);
	return e;
}

TEST(one_event_and_its_calls)
{
	struct pe_attr attr = {.type = PERF_TYPE_SOFTWARE,
			       .size = sizeof(attr),
			       .config = PERF_COUNT_SW_PAGE_FAULTS,
			       .sample_period = 1000,
			       .read_format = PERF_FORMAT_ID | PE_FORMAT_LOST,
			       .exclude_kernel = 1,
			       .exclude_hv = 1,
			       .disabled = 1};
	struct ap_event *e = open_one(&attr), *other;
	struct ap_value v;
	uint64_t id, again;

	ASSERT(e);
	EXPECT(fcntl(ap_event_fd(e), F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(ap_event_id(e, &id), 0);
	EXPECT_EQ(ap_event_enable(e, AP_EVENT), 0);
	fault();
	EXPECT_EQ(ap_event_disable(e, AP_GROUP), 0);
	EXPECT_EQ(ap_event_read(e, &v, 1), 1);
	EXPECT_EQ(v.value, PAGES);
	EXPECT_EQ(v.id, id);
	EXPECT_EQ(ap_event_reset(e, AP_EVENT), 0);
	EXPECT_EQ(ap_event_set_period(e, 2000, &err), 0);
	EXPECT_EQ(ap_event_set_period(e, 0, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "a period of 0 is not possible");
	EXPECT_EQ(ap_event_refresh(e, 1, &err), 0);
	EXPECT_EQ(ap_event_refresh(e, 0, &err), -EINVAL);
	EXPECT_EQ(ap_event_set_filter(e, "x == 1", &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "only tracepoints");
	EXPECT_EQ(ap_event_set_bpf(e, -1, &err), -EBADF);
	EXPECT_CONTAINS(err.why, "no descriptor of a BPF program");
	EXPECT_EQ(ap_event_pause_output(e, true, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "no buffer");
	EXPECT_EQ(ap_event_modify(e, ap_event_attr(e), &err), -EOPNOTSUPP);
	EXPECT_CONTAINS(err.why, "only breakpoints");
	EXPECT(ap_event_open(&other, m, (struct perf_event_attr *)&attr, NULL, &err) == 0);
	EXPECT_EQ(ap_event_id(other, &again), 0);
	EXPECT(again != id);
	EXPECT_EQ(ap_event_set_output(other, e, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "mapped buffer");
	EXPECT_EQ(ap_event_set_output(other, NULL, &err), 0);
	ap_event_close(other);
	ap_event_close(e);
	reset();
}

TEST(a_counting_event_cannot_be_refreshed)
{
	struct pe_attr attr = {.type = PERF_TYPE_SOFTWARE,
			       .config = PERF_COUNT_SW_DUMMY,
			       .exclude_kernel = 1,
			       .exclude_hv = 1};
	struct ap_event *e = open_one(&attr);

	ASSERT(e);
	EXPECT_EQ(ap_event_refresh(e, 1, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "REFRESH is about samples, but this event only counts");
	EXPECT_EQ(err.cause, AP_CAUSE_BAD_VALUE);
	EXPECT_EQ(ap_event_set_period(e, 5, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "PERIOD is about samples, but this event only counts");
	EXPECT_EQ(err.cause, AP_CAUSE_BAD_VALUE);
	ap_event_close(e);
	reset();
}

TEST(output_goes_to_another_events_buffer)
{
	struct pe_attr attr = {.type = PERF_TYPE_SOFTWARE,
			       .config = PERF_COUNT_SW_PAGE_FAULTS,
			       .sample_period = 1,
			       .sample_type = PERF_SAMPLE_IP,
			       .exclude_kernel = 1,
			       .exclude_hv = 1,
			       .disabled = 1};
	struct ap_event_opts opts = {.size = sizeof(opts)};
	struct ap_event *a = open_one(&attr), *b = NULL;
	long page = sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *buf;

	ASSERT(a);
	buf = mmap(NULL, (size_t)page * 5, PROT_READ | PROT_WRITE, MAP_SHARED, ap_event_fd(a), 0);
	ASSERT(buf != MAP_FAILED);
	opts.output = a;
	ASSERT(ap_event_open(&b, m, (struct perf_event_attr *)&attr, &opts, &err) == 0);
	EXPECT_EQ(ap_event_enable(b, AP_EVENT), 0);
	fault();
	EXPECT(buf->data_head > 0);
	EXPECT_EQ(ap_event_pause_output(a, true, &err), 0);
	EXPECT_EQ(ap_event_pause_output(a, false, &err), 0);
	ap_event_close(b);
	munmap(buf, (size_t)page * 5);
	ap_event_close(a);
	reset();
}

TEST(breakpoints_can_be_moved)
{
	static volatile u64 here[2];
	struct pe_attr attr = {.type = PERF_TYPE_BREAKPOINT,
			       .size = PE_ATTR_SIZE_VER5,
			       .bp_type = HW_BREAKPOINT_W,
			       .bp_addr = (u64)(uintptr_t)&here[0],
			       .bp_len = 8,
			       .exclude_kernel = 1,
			       .exclude_hv = 1};
	struct ap_event *e = NULL;
	struct ap_value v;

	reset();
	m = machine_of(NULL);
	if (ap_event_open(&e, m, (struct perf_event_attr *)&attr, NULL, &err)) {
		/* Some virtual machines have no breakpoint registers to give. */
		EXPECT(err.code == -ENOSPC || err.code == -ENOENT || err.code == -EOPNOTSUPP);
		reset();
		return;
	}
	if (!breakpoints_fire(HW_BREAKPOINT_W)) {
		printf("     " BREAKPOINTS_NEVER_FIRE "\n");
		ap_event_close(e);
		reset();
		return;
	}
	here[0] = 1;
	EXPECT_EQ(ap_event_read(e, &v, 1), 1);
	EXPECT_EQ(v.value, 1);
	attr.bp_addr = (u64)(uintptr_t)&here[1];
	EXPECT_EQ(ap_event_modify(e, (struct perf_event_attr *)&attr, &err), 0);
	here[0] = 2;
	here[1] = 1;
	EXPECT_EQ(ap_event_read(e, &v, 1), 1);
	EXPECT_EQ(v.value, 2);
	ap_event_close(e);
	reset();
}

__attribute__((noinline)) static void victim(void)
{
	__asm__ volatile("");
}

/* The symbol's place in the file is right if the kernel's probe there fires when it is called. */
TEST(uprobes_fire_where_the_symbol_is)
{
	char self[512], text[1200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int r;

	ASSERT(n > 0);
	self[n] = '\0';
	snprintf(text, sizeof(text), "uprobe:%s:victim,uretprobe:%s:victim", self, self);
	r = start(text, NULL, 0);
	if (r) {
		/* No uprobes in the kernel, or no right to them: then it says so. */
		EXPECT(err.cause == AP_CAUSE_CAPABILITY || err.cause == AP_CAUSE_UNSUPPORTED ||
		       err.cause == AP_CAUSE_PARANOID);
		reset();
		return;
	}
	ap_counters_enable(c);
	for (int i = 0; i < 3; i++)
		victim();
	ap_counters_disable(c);
	victim();
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT_EQ(sum(0), 3);
	EXPECT_EQ(sum(1), 3);
	reset();
}

TEST(who_is_named_twice_is_counted_once)
{
	pid_t self = getpid(), tids[] = {self, self};
	struct ap_target t = {
		.size = sizeof(t), .tids = tids, .ntids = 2, .pids = tids, .npids = 2};

	ASSERT(start("page-faults:u", &t, AP_OPEN_RUNNING) == 0);
	EXPECT_EQ(ap_counters_places(c), 1);
	reset();
}

/* As the header says. */
TEST(targets_that_go_with_no_other)
{
	pid_t self = getpid();
	struct ap_target threads = {
		.size = sizeof(threads), .every_thread = true, .pids = &self, .npids = 1};
	struct ap_target cpus = {.size = sizeof(cpus), .every_thread = true, .cpus = "0"};

	EXPECT_EQ(start("page-faults:u", &threads, 0), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_BAD_VALUE);
	reset();
	EXPECT_EQ(start("page-faults:u", &cpus, 0), -EINVAL);
	reset();
}

TEST(whole_cpus)
{
	struct ap_target t = {.size = sizeof(t), .cpus = "all"};
	int r = start("page-faults:u", &t, AP_OPEN_RUNNING);

	if (r == -EACCES) {
		EXPECT_EQ(err.cause, AP_CAUSE_PARANOID);
		reset();
		return;
	}
	ASSERT(r == 0);
	fault();
	EXPECT_EQ(ap_counters_read(c), 0);
	EXPECT(sum(0) >= PAGES);
	EXPECT_EQ(ap_counters_place(c, 0).tid, -1);
	EXPECT_EQ(ap_counters_place(c, 0).cpu, 0);
	/* Beyond the last one there is none. */
	EXPECT_EQ(ap_counters_place(c, ap_counters_places(c)).cpu, -1);
	EXPECT_EQ(ap_counters_place(c, 1000000).tid, -1);
	reset();
}

/* Where a cgroup can be made: only what its threads do is counted. */
TEST(cgroups)
{
	struct ap_target t = {.size = sizeof(t)};
	char name[64], path[600], pid[32], mount[512] = "", line[2048], type[64];
	FILE *mounts = fopen("/proc/self/mounts", "re");
	int fd, status = 0, go[2], ready[2];
	pid_t child;
	char b;

	while (mounts && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %511s %63s", path, type) == 2 && strcmp(type, "cgroup2") == 0)
			snprintf(mount, sizeof(mount), "%.500s", path);
	if (mounts)
		fclose(mounts);
	snprintf(name, sizeof(name), "anyperf-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "%.500s/%s", mount, name);
	if (!mount[0] || mkdir(path, 0755)) {
		printf("     no cgroup can be made here\n");
		return;
	}
	ASSERT(pipe(go) == 0 && pipe(ready) == 0);
	child = fork();
	/* It has copied the pages that it needs to wait before anybody counts. */
	if (child == 0)
		_exit(write(ready[1], "r", 1) == 1 && read(go[0], &b, 1) == 1 ? (fault(), 0) : 1);
	EXPECT_EQ(read(ready[0], &b, 1), 1);
	snprintf(line, sizeof(line), "%.550s/cgroup.procs", path);
	snprintf(pid, sizeof(pid), "%d", (int)child);
	fd = open(line, O_WRONLY | O_CLOEXEC);
	EXPECT_EQ(write(fd, pid, strlen(pid)), (ssize_t)strlen(pid));
	close(fd);
	t.cgroup = name;
	if (start("page-faults:u", &t, AP_OPEN_RUNNING) == 0) {
		fault();
		EXPECT_EQ(ap_counters_read(c), 0);
		EXPECT_EQ(sum(0), 0);
		EXPECT_EQ(write(go[1], "g", 1), 1);
		waitpid(child, &status, 0);
		EXPECT_EQ(ap_counters_read(c), 0);
		EXPECT(sum(0) >= PAGES && sum(0) < 4 * PAGES);
		/* The whole path names it too. */
		t.cgroup = path;
		EXPECT_EQ(start("page-faults:u", &t, 0), 0);
	} else {
		EXPECT(err.cause == AP_CAUSE_CGROUP || err.cause == AP_CAUSE_PARANOID);
		EXPECT_EQ(write(go[1], "g", 1), 1);
		waitpid(child, &status, 0);
	}
	close(go[0]);
	close(go[1]);
	close(ready[0]);
	close(ready[1]);
	reset();
	rmdir(path);
}

/* More events than the soft limit allows: it is raised, and the log says so. */
static int raised;

static void note(enum ap_log_level level, const char *text, void *data)
{
	(void)data;
	if (level == AP_LOG_INFO && strstr(text, "raised the soft limit"))
		raised++;
}

TEST(the_fd_limit_is_raised)
{
	struct ap_machine_opts opts = {.size = sizeof(opts), .log = note, .log_level = AP_LOG_INFO};
	struct ap_machine *loud = NULL;
	struct ap_specs *s = NULL;
	struct ap_counters *many = NULL;
	struct rlimit was, low;
	char text[64 * 8] = "cs:u";

	for (int i = 0; i < 60; i++)
		strcat(text, ",cs:u");
	ASSERT(getrlimit(RLIMIT_NOFILE, &was) == 0);
	low = was;
	low.rlim_cur = 32;
	ASSERT(setrlimit(RLIMIT_NOFILE, &low) == 0);
	raised = 0;
	EXPECT_EQ(ap_machine_new(&loud, &opts), 0);
	EXPECT_EQ(ap_specs_parse(&s, loud, text, &err), 0);
	EXPECT_EQ(ap_counters_open(&many, loud, s, NULL, NULL, &err), 0);
	EXPECT_EQ(raised, 1);
	ap_counters_close(many);
	ap_specs_free(s);
	ap_machine_free(loud);
	setrlimit(RLIMIT_NOFILE, &was);
}

/* It opens nothing, which nobody may take for a success. */
TEST(a_list_without_events)
{
	struct ap_open_opts partial = {.size = sizeof(partial), .flags = AP_OPEN_PARTIAL};
	struct ap_specs none = {0};

	reset();
	m = machine_of(NULL);
	EXPECT_EQ(ap_counters_open(&c, m, &none, NULL, NULL, &err), -EINVAL);
	EXPECT_STREQ(err.why, "there is no event in the list");
	EXPECT_EQ(ap_counters_open(&c, m, &none, NULL, &partial, &err), -EINVAL);
	EXPECT(c == NULL);
	reset();
}
