/*
 * More events than counters: rotation, scaling, pinned and exclusive events [GRP-06..GRP-13,
 * SCAL-01]. Needs to know the number of counters: `anyperf run --counters N` with
 * CONFORM_COUNTERS=N, N >= 2; or CONFORM_COUNTERS alone, where it is that of the machine. Under
 * `anyperf run` without CONFORM_COUNTERS there is no limit, and nobody ever waits.
 */
#include "conform/region.h"

#include <poll.h>
#include <sched.h>

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
#define MOST  32

static int counters(void)
{
	const char *n = getenv("CONFORM_COUNTERS");

	/* Who compares says it to both worlds; then it is true of the virtual one. */
	return n && (virtual_world() || !getenv("CONFORM_WORLD")) ? atoi(n) : 0;
}

static bool unknown(const char *row, const char *text)
{
	if (counters() >= 2)
		return false;
	skip_row(row, text, "the number of counters is not known here");
	return true;
}

static int open_one(u64 config, bool pinned, bool exclusive, int group)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, config);
	long fd;

	attr.pinned = pinned;
	attr.exclusive = exclusive;
	attr.disabled = 0;
	attr.read_format = TIMES;
	fd = ev_open(&attr, 0, -1, group, 0);
	NEED(fd >= 0);
	return (int)fd;
}

static int single(void)
{
	return open_one(PERF_COUNT_HW_INSTRUCTIONS, false, false, -1);
}

/*
 * Works until each of the events, whose counts and times were @before, has had a turn: how soon
 * that is depends on when whoever rotates gets to run, so only "never" is a failure.
 */
static bool all_had_turn(const int *fds, int n, u64 before[][3], u64 after[][3])
{
	bool each = false;

	for (int tries = 0; !each && tries < 100; tries++) {
		spin_ms(50);
		each = true;
		for (int i = 0; i < n; i++) {
			NEED(ev_read(fds[i], after[i], 24) == 24);
			each &= after[i][2] > before[i][2] && after[i][0] > before[i][0];
		}
	}
	return each;
}

/*
 * The same @turns times. How long one takes is up to who rotates as well, who has to get a CPU; so
 * shares and estimates are asked for after many, of which no single one decides.
 */
static bool all_had_turns(const int *fds, int n, int turns, u64 after[][3])
{
	u64 before[MOST][3];

	memset(after, 0, (size_t)n * sizeof(after[0]));
	for (int i = 0; i < turns; i++) {
		memcpy(before, after, (size_t)n * sizeof(after[0]));
		if (!all_had_turn(fds, n, before, after))
			return false;
	}
	return true;
}

/*
 * N single events while the thread works: the sum of the running times over the enabled time, in %.
 */
static int share(int n, bool *each)
{
	u64 before[MOST][3], after[MOST][3], enabled = 0, running = 0;
	int fds[MOST] = {0};

	for (int i = 0; i < n; i++)
		fds[i] = single();
	spin_ms(20);
	for (int i = 0; i < n; i++)
		NEED(ev_read(fds[i], before[i], 24) == 24);
	*each = all_had_turn(fds, n, before, after);
	for (int i = 0; i < n; i++) {
		enabled += after[i][1] - before[i][1];
		running += after[i][2] - before[i][2];
		close(fds[i]);
	}
	return (int)(running * 100 * (u64)n / enabled);
}

CONFORM(rotation)
{
	int n = counters(), sum;
	bool each;

	if (unknown("GRP-10", "rotation"))
		return;
	sum = share(n, &each);
	check_val("GRP-13", "as many events as counters: all run always", sum, n * 100);
	sum = share(n + 1, &each);
	CHECK_ROW("GRP-10", each, "one event more: each gets its turn", "sum %d %%", sum);
	CHECK_ROW("GRP-12", sum > n * 100 - 15 && sum <= n * 100,
		  "one event more: the counters are in use", "%d %%", sum);
	sum = share(2 * n + 1, &each);
	CHECK_ROW("GRP-10", each, "twice as many and one: each gets its turn", "sum %d %%", sum);
	CHECK_ROW("GRP-12", sum > n * 100 - 15 && sum <= n * 100,
		  "twice as many and one: the counters are in use", "%d %%", sum);
}

/* A child that has to take turns leaves how long its events were on, and no longer. */
CONFORM(inherited)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	u64 v[3], enabled = 0, running = 0;
	int n = counters() + 1, fds[MOST], status;
	pid_t pid;

	if (unknown("INH-03", "the times of a child that takes turns"))
		return;
	attr.inherit = 1;
	attr.disabled = 0;
	attr.read_format = TIMES;
	for (int i = 0; i < n; i++) {
		fds[i] = (int)ev_self(attr);
		NEED(fds[i] >= 0);
	}
	pid = fork();
	if (pid == 0) {
		spin_ms(200);
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	for (int i = 0; i < n; i++) {
		NEED(ev_ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0) == 0);
		NEED(ev_read(fds[i], v, 24) == 24);
		enabled = v[1] > enabled ? v[1] : enabled;
		running += v[2];
	}
	/* Those who are switched off last were on a moment longer. */
	CHECK_ROW("INH-03", running > 0 && running * 20 <= enabled * (u64)(n - 1) * 21,
		  "a dead child that took turns was on no longer than there are counters",
		  "%lu of %lu", running, enabled * (u64)(n - 1));
}

/* What is not on does not count; what it says is the part that was seen. */
CONFORM(scaled)
{
	u64 v[MOST][3], low = ~0ULL, high = 0, estimate;
	int n = counters() + 1, fds[MOST] = {0};

	if (unknown("SCAL-01", "scaling"))
		return;
	for (int i = 0; i < n; i++)
		fds[i] = single();
	NEED(all_had_turns(fds, n, 4, v));
	for (int i = 0; i < n; i++)
		NEED(ev_ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (int i = 0; i < n; i++) {
		NEED(ev_read(fds[i], v[i], 24) == 24 && v[i][2] > 0);
		estimate = (u64)((double)v[i][0] * (double)v[i][1] / (double)v[i][2]);
		low = estimate < low ? estimate : low;
		high = estimate > high ? estimate : high;
	}
	CHECK_ROW("SCAL-01", v[0][2] < v[0][1], "multiplexed: running is less than enabled",
		  "enabled %lu running %lu", v[0][1], v[0][2]);
	CHECK_ROW("SCAL-01", high < 2 * low,
		  "estimates of events that were on at different times agree", "%lu to %lu", low,
		  high);
}

CONFORM(too_large)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int lead, n = counters();

	if (unknown("GRP-06", "a group larger than the PMU"))
		return;
	lead = single();
	attr.disabled = 0;
	for (int i = 1; i < n; i++)
		NEED(ev_open(&attr, 0, -1, lead, 0) >= 0);
	check_err("GRP-06", "a member more than there are counters",
		  try_open(&attr, 0, -1, lead, 0), EINVAL);
#ifdef __x86_64__ /* arm64 looks at those alone that are on */
	attr.disabled = 1;
	check_err("GRP-06", "such a member that is off", try_open(&attr, 0, -1, lead, 0), EINVAL);
#endif
	attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	check_err("GRP-06", "a software member more", ev_open(&attr, 0, -1, lead, 0), 0);
	spin_ms(5);
	CHECK_ROW("GRP-01", ev_count(lead) > 0, "a group as large as the PMU counts", "%lu",
		  ev_count(lead));
}

/* A group is on as a whole or off as a whole: its members' counts are of the same code. */
CONFORM(unit)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	u64 v[5];
	int other;
	long lead;

	if (unknown("GRP-01", "a group is a unit"))
		return;
	attr.read_format = PERF_FORMAT_GROUP | TIMES;
	lead = ev_self(attr);
	attr.disabled = 0;
	NEED(lead >= 0 && ev_open(&attr, 0, -1, (int)lead, 0) >= 0);
	for (int i = 1; i < counters(); i++)
		single();
	other = single();
	NEED(ev_ioctl((int)lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int tries = 0; tries < 100; tries++) {
		spin_ms(50);
		NEED(ev_read((int)lead, v, sizeof(v)) == sizeof(v));
		if (v[2] && v[2] < v[1] && ev_count(other))
			break;
	}
	NEED(ev_ioctl((int)lead, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read((int)lead, v, sizeof(v)) == sizeof(v));
	CHECK_ROW("GRP-01", v[2] > 0 && v[2] < v[1], "a group takes turns with single events",
		  "enabled %lu running %lu", v[1], v[2]);
	CHECK_ROW("GRP-01", v[3] == v[4], "its members count the same code", "%lu and %lu", v[3],
		  v[4]);
	CHECK_ROW("GRP-10", ev_count(other) > 0, "and a single event gets its turn", "%lu",
		  ev_count(other));
}

CONFORM(pinned)
{
	struct pollfd p;
	u64 v[3];
	int fds[MOST], n = counters(), flexible;

	if (unknown("GRP-07", "pinned events"))
		return;
	flexible = single();
	for (int i = 0; i < n + 1; i++)
		fds[i] = open_one(PERF_COUNT_HW_INSTRUCTIONS, true, false, -1);
	spin_ms(20);
	for (int i = 0; i < n; i++) {
		NEED(ev_read(fds[i], v, 24) == 24);
		CHECK_ROW("GRP-07", v[0] > 0 && v[1] == v[2],
			  "a pinned event with a counter is always on", "%lu %lu", v[1], v[2]);
	}
	NEED(ev_read(flexible, v, 24) == 24);
	CHECK_ROW("GRP-07", v[2] < v[1], "a flexible event has to stand back", "%lu of %lu", v[2],
		  v[1]);
	/* [DES-03] */
	check_val("READ-07", "a pinned event without a counter is in error: read gives 0",
		  ev_read(fds[n], v, 24), 0);
	check_val("READ-07", "in error: before the size is looked at", ev_read(fds[n], v, 0), 0);
	p = (struct pollfd){fds[n], POLLIN, 0};
	poll(&p, 1, 0);
	check_val("GRP-08", "in error: poll says POLLERR, POLLHUP before Linux 6.15", p.revents,
		  virtual_world() || kernel_at_least(6, 15) ? POLLERR : POLLHUP);
	check_err("GRP-08", "in error: DISABLE", ev_ioctl(fds[n], PERF_EVENT_IOC_DISABLE, 0), 0);
	check_val("GRP-08", "DISABLE does not leave the error", ev_read(fds[n], v, 24), 0);
	close(fds[0]);
	check_val("GRP-08", "nor does a counter that comes free", ev_read(fds[n], v, 24), 0);
	check_err("GRP-08", "in error: ENABLE", ev_ioctl(fds[n], PERF_EVENT_IOC_ENABLE, 0), 0);
	check_val("GRP-08", "ENABLE leaves the error", ev_read(fds[n], v, 24), 24);
	spin_ms(2);
	CHECK_ROW("GRP-08", ev_count(fds[n]) > 0, "and it counts", "%lu", ev_count(fds[n]));
}

static void go_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	NEED(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
}

/* An event of @cpu, whoever runs there, that is a member of @group if that is not -1. */
static int open_wide(int cpu, bool exclusive, int group)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	long fd;

	attr.exclusive = exclusive;
	attr.disabled = 0;
	attr.read_format = TIMES;
	fd = ev_open(&attr, -1, cpu, group, 0);
	NEED(fd >= 0 || fd == -EACCES);
	return (int)fd;
}

/* Without counters, or with a paranoid kernel, nothing of a CPU beside a task can be seen. */
static bool no_wide(const char *row, const char *text, int fd)
{
	if (fd >= 0)
		return false;
	skip_row(row, text, "perf_event_paranoid lets nobody count a CPU");
	return true;
}

CONFORM(exclusive)
{
	u64 alone[3], other[3], none[2][3] = {{0}}, seen[2][3];
	int lead, second;

	if (unknown("GRP-09", "an exclusive event"))
		return;
	lead = open_one(PERF_COUNT_HW_INSTRUCTIONS, false, true, -1);
	second = single();
	(void)all_had_turn((const int[]){lead, second}, 2, none, seen);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl(second, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_read(lead, alone, 24) == 24 && ev_read(second, other, 24) == 24);
	CHECK_ROW("GRP-09", alone[2] + other[2] <= alone[1] + 5000000,
		  "an exclusive event is never on beside another, though there are counters",
		  "enabled %lu, on %lu and %lu", alone[1], alone[2], other[2]);
	CHECK_ROW("GRP-09", alone[2] > 0 && other[2] > 0, "they take turns", "%lu and %lu",
		  alone[2], other[2]);
	NEED(ev_ioctl(second, PERF_EVENT_IOC_ENABLE, 0) == 0);
	spin_ms(20);
	NEED(ev_read(second, alone, 24) == 24);
	CHECK_ROW("GRP-09", alone[0] > other[0] && alone[1] - other[1] == alone[2] - other[2],
		  "once it is off it bars nobody", "%lu of %lu", alone[2] - other[2],
		  alone[1] - other[1]);
}

/* Whoever is exclusive on a CPU is so towards its tasks as well. */
CONFORM(exclusive_on_a_cpu)
{
	static const char text[] = "an exclusive event of a CPU keeps its tasks' off";
	int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1, wide, own;
	u64 before[3], v[3];

	if (unknown("GRP-09", text))
		return;
	go_to(cpu);
	wide = open_wide(cpu, true, -1);
	if (no_wide("GRP-09", text, wide))
		return;
	own = single();
	spin_ms(30);
	NEED(ev_read(own, before, 24) == 24);
	check_val("GRP-09", text, (long long)before[2], 0);
	NEED(ev_ioctl(wide, PERF_EVENT_IOC_DISABLE, 0) == 0);
	spin_ms(20);
	NEED(ev_read(own, v, 24) == 24);
	CHECK_ROW("GRP-09", v[2] > 0 && v[0] > 0, "until it is off", "%lu of %lu", v[2], v[1]);
}

CONFORM(software)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	u64 v[3];
	long fd;

	if (unknown("GRP-09", "software events beside a full PMU"))
		return;
	for (int i = 0; i < 2 * counters(); i++)
		single();
	attr.read_format = TIMES;
	attr.disabled = 0;
	fd = ev_self(attr);
	NEED(fd >= 0);
	spin_ms(50);
	NEED(ev_read((int)fd, v, 24) == 24);
	CHECK_ROW("GRP-09", v[0] > 0 && v[1] == v[2],
		  "a software event beside a full PMU is always on", "enabled %lu running %lu",
		  v[1], v[2]);
}

/* How often what @fd says is less than in @last, which it becomes. */
static int went_back(int fd, u64 last[3])
{
	u64 now[3];
	int n = 0;

	NEED(ev_read(fd, now, 24) == 24);
	for (int i = 0; i < 3; i++) {
		n += now[i] < last[i];
		last[i] = now[i];
	}
	return n;
}

/*
 * An event of the task and one of a CPU, to which the task comes and from which it goes. With a
 * single counter the two take turns while it is there. Whoever is read, and in whatever order, no
 * value and no time goes back.
 */
CONFORM(beside_a_cpu)
{
	static const char text[] =
		"an own event and a CPU's, to which the task comes: nothing goes back";
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	u64 own[3] = {0}, its[3] = {0};
	int fd, wide, back = 0, cpu;

	if (no_pmu("READ-11", text))
		return;
	cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	fd = single();
	attr.disabled = 0;
	attr.read_format = TIMES;
	wide = (int)ev_open(&attr, -1, cpu, -1, 0);
	if (wide == -EACCES) {
		skip_row("READ-11", text, "perf_event_paranoid lets nobody count a CPU");
		return;
	}
	NEED(wide >= 0);
	for (int round = 0; round < 100; round++) {
		go_to(round % 2 ? cpu : 0);
		for (int i = 0; i < 4; i++)
			back += went_back(fd, own);
		back += went_back(wide, its);
		for (int i = 0; i < 4; i++)
			back += went_back(fd, own);
		/* Longer than what a session knows of where tasks are stays fresh. */
		spin_ms(3);
	}
	CHECK_ROW("READ-11", !back, text, "%d times", back);
}

/*
 * A CPU's group as large as the PMU and a single event of its take turns. Own events have room
 * beside the latter, but not all of them, so these take turns as well. Of these there is an odd
 * number, since all move on by one whenever the CPU's do, and may be on every other time.
 */
CONFORM(beside_a_cpu_that_rotates)
{
	static const char text[] = "own events beside those of a CPU, all taking turns: all count";
	int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1, n = counters(), fds[MOST];
	u64 none[MOST][3] = {{0}}, seen[MOST][3];

	if (unknown("GRP-10", text))
		return;
	go_to(cpu);
	fds[0] = open_wide(cpu, false, -1);
	if (no_wide("GRP-10", text, fds[0]))
		return;
	for (int i = 1; i < n; i++)
		NEED(open_wide(cpu, false, fds[0]) >= 0);
	fds[1] = open_wide(cpu, false, -1);
	n = 2 + (n | 1);
	for (int i = 2; i < n; i++)
		fds[i] = single();
	CHECK_ROW("GRP-10", all_had_turn(fds, n, none, seen), text, "%lu, %lu and %lu", seen[0][2],
		  seen[1][2], seen[n - 1][2]);
	CHECK_ROW("GRP-10", all_had_turn(fds, n, seen, none), "and go on counting",
		  "%lu, %lu and %lu", none[0][2], none[1][2], none[n - 1][2]);
}

/* A CPU's events have every counter, when a task comes that brings a pinned one. */
CONFORM(pinned_beside_a_cpu)
{
	static const char text[] =
		"a pinned event comes before those of the CPU that its task comes to";
	int cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1, n = counters(), own, last = -1;
	u64 before[3], v[3];

	if (unknown("GRP-07", text))
		return;
	go_to(0);
	own = open_one(PERF_COUNT_HW_INSTRUCTIONS, true, false, -1);
	for (int i = 0; i < n; i++) {
		last = open_wide(cpu, false, -1);
		if (no_wide("GRP-07", text, last))
			return;
	}
	/* Its task's other events come behind it as well. */
	for (int i = 0; i < n; i++)
		single();
	for (int i = 0; i < 20; i++) {
		go_to(i % 2 ? 0 : cpu);
		spin_ms(2);
	}
	go_to(cpu);
	NEED(ev_read(own, before, 24) == 24);
	spin_ms(20);
	CHECK_ROW("GRP-07", ev_read(own, v, 24) == 24 && v[0] > before[0] && v[1] == v[2], text,
		  "enabled %lu running %lu", v[1], v[2]);
	NEED(ev_read(last, v, 24) == 24);
	CHECK_ROW("GRP-07", cpu == 0 || (v[2] > 0 && v[2] < v[1]),
		  "and one of the CPU's stands back while it is there", "enabled %lu running %lu",
		  v[1], v[2]);
}

/* Who finds no room bars those behind him, though they would fit: so each has its turn. */
CONFORM(in_order)
{
	u64 v[3][3];
	int fds[3], n = counters();

	if (unknown("GRP-10", "the order of waiting"))
		return;
	fds[0] = single();
	fds[1] = single();
	for (int i = 1; i < n; i++)
		(void)open_one(PERF_COUNT_HW_INSTRUCTIONS, false, false, fds[1]);
	fds[2] = single();
	NEED(all_had_turns(fds, 3, 10, v));
	for (int i = 0; i < 3; i++)
		NEED(ev_ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (int i = 0; i < 3; i++)
		NEED(ev_read(fds[i], v[i], 24) == 24);
	CHECK_ROW("GRP-10", v[1][2] > v[1][1] / 10,
		  "a group that needs the whole PMU gets its turn", "%lu of %lu", v[1][2], v[1][1]);
	CHECK_ROW("GRP-10", v[0][2] + v[1][2] + v[2][2] < v[0][1] + v[0][1] / 2,
		  "nobody goes on past a group that waits", "%lu, %lu and %lu of %lu", v[0][2],
		  v[1][2], v[2][2], v[0][1]);
}

/* A virtual PMU that nobody limited has a counter for every event: none ever waits. */
CONFORM(unlimited)
{
	static const char text[] = "no limit on counters: 32 events are always on";
	u64 v[MOST][3];
	int fds[MOST], always = 0;

	if (!virtual_world() || getenv("CONFORM_COUNTERS")) {
		skip_row("GRP-13", text, "the number of counters is limited or unknown");
		return;
	}
	for (int i = 0; i < MOST; i++)
		fds[i] = single();
	spin_ms(20);
	for (int i = 0; i < MOST; i++) {
		NEED(ev_read(fds[i], v[i], 24) == 24);
		always += v[i][0] > 0 && v[i][1] == v[i][2];
	}
	check_val("GRP-13", text, always, MOST);
}

CONFORM(interval)
{
	char buf[32] = "";
	int fd;

	if (unknown("GRP-11", "the rotation interval"))
		return;
	if (access("/sys/bus/event_source/devices/cpu", F_OK)) {
		skip_row("GRP-11", "the rotation interval", "the device has another name here");
		return;
	}
	fd = open("/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms", O_RDONLY);
	check_val("GRP-11", "perf_event_mux_interval_ms is 1 or more",
		  fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0 && atoi(buf) >= 1, 1);
}
