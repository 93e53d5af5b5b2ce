/* Groups: who counts when, opening, closing [GRP-*]. */
#include "conform/conform.h"

#include <sys/resource.h>

static int ev(u64 config, bool disabled, int group)
{
	struct pe_attr attr = sw_attr(config);
	long fd;

	attr.disabled = disabled;
	fd = ev_open(&attr, 0, -1, group, 0);
	NEED(fd >= 0);
	return (int)fd;
}

static int faults(bool disabled, int group)
{
	return ev(PERF_COUNT_SW_PAGE_FAULTS, disabled, group);
}

static void enable(int fd)
{
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
}

static void disable(int fd)
{
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
}

/* Faults that fd counts while 10 pages are touched. */
static long long counts(int fd)
{
	u64 before = ev_count(fd);

	touch_pages(10);
	return (long long)(ev_count(fd) - before);
}

CONFORM(leader_rules)
{
	int lead = faults(true, -1), member = faults(false, lead);

	touch_pages(8);
	counts(lead);
	check_val("GRP-02", "leader off: a member that is on does not count", counts(member), 0);
	enable(lead);
	check_faults("GRP-02", "leader on: itself", counts(lead), 10);
	check_faults("GRP-02", "leader on: the member too", counts(member), 10);
	disable(lead);
	check_val("GRP-02", "leader off again: itself", counts(lead), 0);
	check_val("GRP-02", "leader off again: the member", counts(member), 0);
	enable(lead);
	disable(member);
	check_val("GRP-03", "member off: it stops", counts(member), 0);
	check_faults("GRP-03", "member off: the leader goes on", counts(lead), 10);
	disable(lead);
	enable(lead);
	check_val("GRP-03", "member off: remains off when the leader is cycled", counts(member), 0);
	enable(member);
	check_faults("GRP-03", "member on again", counts(member), 10);
	disable(lead);
	enable(member);
	check_val("GRP-02", "enabling a member does not enable its leader", counts(lead), 0);
	check_val("GRP-02", "enabling a member below a leader that is off", counts(member), 0);
}

CONFORM(member_disabled)
{
	int lead = faults(true, -1), member = faults(true, lead);

	touch_pages(8);
	counts(lead);
	enable(lead);
	check_val("ATTR-07", "a member opened disabled stays off under its leader", counts(member),
		  0);
	enable(member);
	check_faults("ATTR-07", "until it is enabled itself", counts(member), 10);
}

CONFORM(group_flag)
{
	int lead = faults(true, -1), member = faults(true, lead), third = faults(true, lead);

	touch_pages(8);
	counts(lead);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) == 0);
	/* [DES-06] */
	check_faults("IOC-13", "ENABLE with FLAG_GROUP: the leader", counts(lead), 10);
	check_faults("IOC-13", "ENABLE with FLAG_GROUP: a member", counts(member), 10);
	NEED(ev_ioctl(third, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP) == 0);
	check_val("IOC-13", "DISABLE with FLAG_GROUP through a member: the leader", counts(lead),
		  0);
	enable(lead);
	check_val("IOC-13", "and the other member was switched off itself", counts(member), 0);
	NEED(ev_ioctl(member, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) == 0);
	check_faults("IOC-13", "ENABLE with FLAG_GROUP through a member: another member",
		     counts(third), 10);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl(member, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP) == 0);
	check_val("IOC-13", "RESET with FLAG_GROUP through a member: the leader",
		  (long long)ev_count(lead), 0);
	check_val("IOC-13", "RESET with FLAG_GROUP through a member: another member",
		  (long long)ev_count(third), 0);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch_pages(10);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl(lead, PERF_EVENT_IOC_RESET, 0) == 0);
	check_val("IOC-04", "RESET without the flag: the leader", (long long)ev_count(lead), 0);
	check_faults("IOC-04", "RESET without the flag: members keep theirs",
		     (long long)ev_count(third), 10);
	check_err("IOC-13", "other bits of the argument",
		  ev_ioctl(lead, PERF_EVENT_IOC_ENABLE, ~1UL), 0);
	check_faults("IOC-13", "other bits of the argument are ignored", counts(lead), 10);
}

CONFORM(one_time)
{
	u64 format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
		     PERF_FORMAT_TOTAL_TIME_RUNNING,
	    v[16] = {0}, single[3];
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long lead, member;

	attr.read_format = format;
	lead = ev_self(attr);
	attr.read_format = format & ~(u64)PERF_FORMAT_GROUP;
	member = ev_open(&attr, 0, -1, (int)lead, 0);
	NEED(lead >= 0 && member >= 0);
	enable((int)lead);
	spin_ms(2);
	enable((int)member);
	spin_ms(2);
	disable((int)lead);
	NEED(ev_read((int)lead, v, sizeof(v)) > 0 && ev_read((int)member, single, 24) == 24);
	CHECK_ROW("READ-10", v[1] > single[1] && single[1] > 0,
		  "a group read gives the leader's times, a member read its own", "%lu and %lu",
		  v[1], single[1]);
	CHECK_ROW("GRP-02", single[1] < 3900000, "a member's time stops with its leader", "%lu ns",
		  single[1]);
}

/* A member's time begins when it is opened. */
CONFORM(late_member)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	u64 before[3], after[3], v[3];
	long lead, member;

	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	lead = ev_self(attr);
	NEED(lead >= 0);
	spin_ms(5);
	NEED(ev_read((int)lead, before, 24) == 24);
	member = ev_open(&attr, 0, -1, (int)lead, 0);
	NEED(member >= 0);
	spin_ms(1);
	NEED(ev_read((int)member, v, 24) == 24 && ev_read((int)lead, after, 24) == 24);
	CHECK_ROW("READ-10", v[1] > 0 && v[1] == v[2] && v[1] <= after[1] - before[1],
		  "a member that comes later has its own time", "%lu and %lu of %lu", v[1], v[2],
		  after[1] - before[1]);
}

/* Nor does it go by while the leader is off. */
CONFORM(held_member)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	u64 led[3], v[3];
	long lead, member;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	lead = ev_self(attr);
	attr.disabled = 0;
	member = ev_open(&attr, 0, -1, (int)lead, 0);
	NEED(lead >= 0 && member >= 0);
	spin_ms(5);
	enable((int)lead);
	spin_ms(1);
	NEED(ev_read((int)member, v, 24) == 24 && ev_read((int)lead, led, 24) == 24);
	CHECK_ROW("GRP-02", v[1] > 0 && v[1] == v[2] && v[1] <= led[1],
		  "a member's time begins when its leader goes on", "%lu and %lu of %lu", v[1],
		  v[2], led[1]);
}

CONFORM(close_leader)
{
	int lead = faults(true, -1), on = faults(false, lead), off = faults(true, lead);
	u64 v[16], value;

	touch_pages(8);
	counts(lead);
	enable(lead);
	touch_pages(10);
	value = ev_count(on);
	close(lead);
	check_faults("GRP-04", "leader closed: a member that counted keeps its value",
		     (long long)(ev_count(on) - value), 0);
	check_faults("GRP-04", "leader closed: a member that counted goes on", counts(on), 10);
	check_val("GRP-04", "leader closed: a member that was off stays off", counts(off), 0);
	enable(off);
	check_faults("GRP-04", "leader closed: it can be enabled by itself", counts(off), 10);
	disable(on);
	check_faults("GRP-04", "leader closed: members are single: one stops, the other goes on",
		     counts(off), 10);
	check_val("GRP-04", "a member that became single reads single", ev_read(on, v, sizeof(v)),
		  8);
	check_err(
		"GRP-04", "a member that became single may lead",
		ev_open(&(struct pe_attr){.type = 1, .size = 128, .config = 9, .exclude_kernel = 1},
			0, -1, on, 0),
		0);
}

/* Nobody touches the member: it starts when it is scheduled, so at the latest after a sleep. */
CONFORM(close_leader_that_holds)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	int lead = faults(true, -1);
	u64 before, v[3];
	long held;

	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	held = ev_open(&attr, 0, -1, lead, 0);
	NEED(held >= 0);
	touch_pages(8);
	NEED(ev_read((int)held, v, sizeof(v)) == sizeof(v));
	check_val("GRP-04", "a member is held back by a leader that is off",
		  (long long)(v[0] + v[1] + v[2]), 0);
	close(lead);
	/* A session finds out when it gets to run, which on a busy machine may take a while. */
	for (int tries = 0; !v[1] && tries < 100; tries++) {
		sleep_ms(2);
		NEED(ev_read((int)held, v, sizeof(v)) == sizeof(v));
	}
	before = v[0];
	touch_pages(10);
	NEED(ev_read((int)held, v, sizeof(v)) == sizeof(v));
	check_faults("GRP-04", "leader closed: a member that it held back starts",
		     (long long)(v[0] - before), 10);
	CHECK_ROW("GRP-04", v[1] && v[2] && v[2] <= v[1],
		  "leader closed: so do the times of a member that it held back", "%lu of %lu",
		  v[2], v[1]);
	touch_pages(10);
	check_faults("GRP-04", "and goes on", counts((int)held), 10);
}

CONFORM(close_leader_formats)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long lead, a, b, n;
	u64 v[16] = {0};

	attr.read_format = PERF_FORMAT_GROUP;
	lead = ev_self(attr);
	a = ev_open(&attr, 0, -1, (int)lead, 0);
	b = ev_open(&attr, 0, -1, (int)lead, 0);
	NEED(lead >= 0 && a >= 0 && b >= 0);
	NEED(ev_read((int)b, v, sizeof(v)) == 32);
	close((int)a);
	check_val("GRP-04", "member closed: the group is one smaller",
		  ev_read((int)lead, v, sizeof(v)), 24);
	check_val("GRP-04", "member closed: nr", (long long)v[0], 2);
	close((int)lead);
	n = ev_read((int)b, v, sizeof(v));
	/* Linux 6.1 still gives the size of the group that was. */
	CHECK_ROW("GRP-04", n == 16 || (n == 24 && !virtual_world()),
		  "leader closed: a group of one", "%ld bytes", n);
	check_val("GRP-04", "leader closed: nr", (long long)v[0], 1);
}

/* The leader is closed while another descriptor of it lives: nothing happens. */
CONFORM(close_dup)
{
	int lead = faults(true, -1), member = faults(false, lead), copy = dup(lead);

	NEED(copy >= 0);
	touch_pages(8);
	counts(lead);
	close(lead);
	check_val("GRP-04", "a dup of the leader lives: the member waits for it", counts(member),
		  0);
	enable(copy);
	check_faults("GRP-04", "a dup of the leader lives: it still leads", counts(member), 10);
}

CONFORM(join_running)
{
	int lead = faults(false, -1), member;

	touch_pages(8);
	counts(lead);
	member = faults(false, lead);
	counts(member);
	check_faults("GRP-01", "a member that joins a running leader counts at once",
		     counts(member), 10);
	CHECK_ROW("GRP-01", ev_count(lead) > ev_count(member), "and starts at 0", "%lu and %lu",
		  ev_count(lead), ev_count(member));
}

CONFORM(clock_and_faults)
{
	int lead = ev(PERF_COUNT_SW_TASK_CLOCK, true, -1), member = faults(false, lead);

	touch_pages(8);
	counts(member);
	enable(lead);
	counts(member);
	check_faults("GRP-05", "different software events in one group", counts(member), 10);
	spin_ms(3);
	CHECK_ROW("GRP-05", ev_count(lead) >= 2900000, "the clock beside it", "%lu ns",
		  ev_count(lead));
}

/* A group read may have at most 16 KiB: with GROUP and ID 1023 events of two words and nr. */
CONFORM(too_large)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	struct rlimit limit;
	static u64 v[2048];
	int lead, opened = 1;
	long err = 0;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_max < 1200) {
		skip_row("GRP-16", "a group of 1024", "needs 1,200 descriptors");
		return;
	}
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	lead = (int)ev_self(attr);
	NEED(lead >= 0);
	while (opened < 1100) {
		err = ev_open(&attr, 0, -1, lead, 0);
		if (err < 0)
			break;
		opened++;
	}
	check_err("GRP-16", "a member too many", err, E2BIG);
	check_val("GRP-16", "events in a group with ids", opened, 1023);
	check_val("GRP-16", "a read of all of them", ev_read(lead, v, sizeof(v)), 8 + 1023 * 16);
}
