/* read(2) in every format, times, poll, groups and their leaders [READ, GRP, OVF]. */
#include "unit/test.h"

#include <poll.h>

#include "core/core-priv.h"
#include "unit/core/fake.h"

#define ENABLED PERF_FORMAT_TOTAL_TIME_ENABLED
#define RUNNING PERF_FORMAT_TOTAL_TIME_RUNNING
#define ID      PERF_FORMAT_ID
#define GROUP   PERF_FORMAT_GROUP
#define LOST    PE_FORMAT_LOST

static struct fake *f;

static int open_as(u64 read_format, bool disabled, int group)
{
	struct pe_attr attr = fake_attr();
	int fd;

	attr.read_format = read_format;
	attr.disabled = disabled;
	fd = fake_open(f, &attr, 0, -1, group);
	EXPECT(fd >= 0);
	return fd;
}

/* [READ-01, READ-02] */
TEST(single_formats)
{
	for (u64 format = 0; format < 32; format++) {
		u32 n = 0;
		int fd;

		if (format & GROUP)
			continue;
		f = fake_new(4);
		fd = open_as(format, false, -1);
		fake_advance(f, 1000);
		fake_event(f, fd)->lost_samples = 7;
		EXPECT_EQ(fake_read(f, fd), 8 * (1 + __builtin_popcountll(format)));
		EXPECT_EQ(f->words[n++], 1000);
		if (format & ENABLED)
			EXPECT_EQ(f->words[n++], 1000);
		if (format & RUNNING)
			EXPECT_EQ(f->words[n++], 1000);
		if (format & ID)
			EXPECT_EQ(f->words[n++], 1);
		if (format & LOST)
			EXPECT_EQ(f->words[n++], 7);
		EXPECT_EQ(f->words[n], 0xeeeeeeeeeeeeeeeeull);
		fake_free(f);
	}
}

/* [READ-01, READ-03] */
TEST(group_formats)
{
	for (u64 format = 0; format < 32; format++) {
		u32 n = 0;
		int fds[3];

		if (!(format & GROUP))
			continue;
		f = fake_new(4);
		fds[0] = open_as(format, false, -1);
		fake_advance(f, 100);
		fds[1] = open_as(0, false, fds[0]);
		fds[2] = open_as(format, false, fds[0]);
		fake_advance(f, 1000);
		/* Through a member too, leader first [READ-08]. */
		EXPECT_EQ(fake_read(f, fds[2]),
			  8 * (1 + !!(format & ENABLED) + !!(format & RUNNING) +
			       3 * (1 + !!(format & ID) + !!(format & LOST))));
		EXPECT_EQ(f->words[n++], 3);
		if (format & ENABLED)
			EXPECT_EQ(f->words[n++], 1100);
		if (format & RUNNING)
			EXPECT_EQ(f->words[n++], 1100);
		for (u64 i = 0; i < 3; i++) {
			EXPECT_EQ(f->words[n++], i ? 1000 : 1100);
			if (format & ID)
				EXPECT_EQ(f->words[n++], i + 1);
			if (format & LOST)
				EXPECT_EQ(f->words[n++], 0);
		}
		/* The fd's own format decides: this member has none. */
		EXPECT_EQ(fake_read(f, fds[1]), 8);
		EXPECT_EQ(f->words[0], 1000);
		fake_free(f);
	}
}

TEST(short_buffers)
{
	int fd, leader;

	f = fake_new(4);
	fd = open_as(ENABLED | RUNNING, false, -1);
	for (u64 len = 0; len < 24; len++)
		EXPECT_REFUSED(f, event_read(fake_event(f, fd), f->words, len), -ENOSPC,
			       READ_SPACE);
	EXPECT_EQ(event_read(fake_event(f, fd), f->words, 24), 24);
	EXPECT_EQ(event_read(fake_event(f, fd), f->words, 1ull << 40), 24);
	leader = open_as(GROUP, false, -1);
	EXPECT_EQ(event_read(fake_event(f, leader), f->words, 16), 16);
	open_as(0, false, leader);
	EXPECT_REFUSED(f, event_read(fake_event(f, leader), f->words, 16), -ENOSPC, READ_SPACE);
	EXPECT_CONTAINS(fake_why(f), "24");
	fake_free(f);
}

/* A task's clocks stand still while it is off its CPU [READ-10]. */
TEST(time_stands_still_while_the_task_does)
{
	struct task *task;
	int fd;

	f = fake_new(4);
	task = fake_task(f, 100)->task;
	fd = open_as(ENABLED | RUNNING, false, -1);
	fake_advance(f, 37000);
	task_sched_out(task);
	fake_advance(f, 50000000);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 37000);
	task_sched_in(task, 1);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 37000);
	fake_advance(f, 1);
	/* The same for a host that leaves a sleeping task where it is. */
	fake_task(f, 100)->asleep = true;
	fake_advance(f, 50000000);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 37001);
	EXPECT_EQ(f->words[1], 37001);
	EXPECT_EQ(f->words[2], 37001);
	fake_free(f);
}

TEST(a_clock_that_goes_back_adds_nothing)
{
	struct fake_task *t;
	int fd;

	f = fake_new(4);
	t = fake_task(f, 100);
	fd = open_as(ENABLED | RUNNING, false, -1);
	fake_advance(f, 1000);
	t->cpu_time -= 500;
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 500);
	t->cpu_time += 500;
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 1000);
	t->cpu_time -= 500;
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 1000);
	t->cpu_time += 500;
	fake_advance(f, 10);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 1010);
	fake_free(f);
}

/* Nor when it went back while the task was off its CPU. */
TEST(a_clock_that_goes_back_between_two_runs)
{
	struct fake_task *t;
	int fd;

	f = fake_new(4);
	t = fake_task(f, 100);
	fd = open_as(ENABLED | RUNNING, false, -1);
	fake_advance(f, 1000);
	task_sched_out(t->task);
	t->cpu_time -= 500;
	task_sched_in(t->task, 0);
	fake_advance(f, 300);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 1000);
	fake_advance(f, 300);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 1100);
	fake_free(f);
}

/* Bound to one CPU: enabled everywhere, running there [CALL-03]. */
TEST(task_event_on_one_cpu)
{
	struct pe_attr attr = fake_attr();
	struct task *task;
	int fd;

	f = fake_new(4);
	task = fake_task(f, 100)->task;
	attr.read_format = ENABLED | RUNNING;
	fd = fake_open(f, &attr, 0, 1, -1);
	fake_advance(f, 1000);
	task_sched_in(task, 1);
	fake_advance(f, 300);
	task_sched_in(task, 0);
	fake_advance(f, 7);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 300);
	EXPECT_EQ(f->words[1], 1307);
	EXPECT_EQ(f->words[2], 300);
	fake_free(f);
}

/* [IOC-02, DES-04] */
TEST(disabled_times_are_frozen)
{
	int fd;

	f = fake_new(4);
	fd = open_as(ENABLED | RUNNING, true, -1);
	fake_advance(f, 1000);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0] + f->words[1] + f->words[2], 0);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	fake_advance(f, 10);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 1000);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 10);
	EXPECT_EQ(f->words[1], 10);
	EXPECT_EQ(f->words[2], 10);
	fake_free(f);
}

/* No member counts while the leader is off; its own state is remembered [GRP-02, GRP-03]. */
TEST(leader_and_members)
{
	int leader, on, off;

	f = fake_new(4);
	leader = open_as(ENABLED | RUNNING, true, -1);
	on = open_as(ENABLED | RUNNING, false, leader);
	off = open_as(ENABLED | RUNNING, true, leader);
	fake_advance(f, 1000);
	fake_read(f, on);
	EXPECT_EQ(f->words[1], 0);
	fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0);
	fake_advance(f, 100);
	fake_ioctl(f, leader, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 1000);
	fake_read(f, on);
	EXPECT_EQ(f->words[0], 100);
	EXPECT_EQ(f->words[1], 100);
	fake_read(f, off);
	EXPECT_EQ(f->words[0], 0);
	EXPECT_EQ(f->words[1], 0);
	/* A member that is switched off alone stays off when the leader is cycled. */
	fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0);
	fake_ioctl(f, on, PERF_EVENT_IOC_DISABLE, 0);
	fake_ioctl(f, off, PERF_EVENT_IOC_ENABLE, 0);
	fake_advance(f, 7);
	fake_ioctl(f, leader, PERF_EVENT_IOC_DISABLE, 0);
	fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(fake_count(f, on), 100);
	EXPECT_EQ(fake_count(f, off), 7);
	EXPECT_EQ(fake_count(f, leader), 107);
	fake_free(f);
}

TEST(members_go_on_when_the_leader_is_closed)
{
	int leader, on, held;

	f = fake_new(4);
	leader = open_as(0, false, -1);
	on = open_as(0, false, leader);
	fake_advance(f, 9);
	fake_close(f, leader);
	EXPECT_EQ(fake_event(f, on)->state, EVENT_ACTIVE);
	fake_advance(f, 53);
	EXPECT_EQ(fake_count(f, on), 62);
	core_check(f->core);
	/* It schedules by itself now. */
	fake_ioctl(f, on, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 5);
	fake_ioctl(f, on, PERF_EVENT_IOC_ENABLE, 0);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, on), 67);
	/* One that a disabled leader held back starts then, here and elsewhere [GRP-04]. */
	leader = open_as(0, true, -1);
	held = open_as(0, false, leader);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, held), 0);
	fake_close(f, leader);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, held), 5);
	task_sched_in(fake_task(f, 100)->task, 1);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, held), 10);
	fake_free(f);
}

TEST(close_in_any_order)
{
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		int fds[3];

		f = fake_new(2);
		fds[0] = open_as(GROUP, false, -1);
		fds[1] = open_as(GROUP, false, fds[0]);
		fds[2] = open_as(0, false, fds[0]);
		for (int k = 0; k < 3; k++) {
			fake_advance(f, 1000);
			fake_close(f, fds[orders[i][k]]);
			core_check(f->core);
		}
		EXPECT_EQ(f->frees, 3);
		EXPECT_EQ(f->hw.adds, f->hw.dels);
		fake_free(f);
	}
}

/* Software joins a hardware group; hardware joining a software group takes it along [GRP-05]. */
TEST(mixed_groups)
{
	struct pe_attr sw = fake_sw_attr(PERF_COUNT_SW_TASK_CLOCK), hw = fake_attr();
	int leader, member, other, blocker;

	f = fake_new(1);
	leader = fake_open(f, &hw, 0, -1, -1);
	member = fake_open(f, &sw, 0, -1, leader);
	EXPECT(member >= 0);
	EXPECT(fake_event(f, member)->epc->pmu == &f->hw.pmu);
	fake_close(f, leader);
	fake_close(f, member);

	leader = fake_open(f, &sw, 0, -1, -1);
	other = fake_open(f, &sw, 0, -1, leader);
	EXPECT(fake_event(f, leader)->epc->pmu == f->software);
	member = fake_open(f, &hw, 0, -1, leader);
	EXPECT(member >= 0);
	EXPECT(fake_event(f, leader)->epc->pmu == &f->hw.pmu);
	EXPECT(fake_event(f, other)->epc->pmu == &f->hw.pmu);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_ACTIVE);
	core_check(f->core);
	fake_advance(f, 100);
	EXPECT_EQ(fake_count(f, leader), 100);
	EXPECT_EQ(fake_count(f, other), 100);
	EXPECT_EQ(fake_count(f, member), 100);
	/* Now all of it waits for counters. */
	hw.pinned = 1;
	blocker = fake_open(f, &hw, 0, -1, -1);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, other)->state, EVENT_INACTIVE);
	fake_close(f, blocker);
	fake_advance(f, 4000000);
	EXPECT_EQ(fake_event(f, other)->state, EVENT_ACTIVE);
	fake_close(f, member);
	fake_close(f, other);
	fake_close(f, leader);

	/* One that is off moves the group all the same, and who counted goes on. */
	leader = fake_open(f, &sw, 0, -1, -1);
	hw.pinned = 0;
	hw.disabled = 1;
	member = fake_open(f, &hw, 0, -1, leader);
	EXPECT_EQ(fake_event(f, member)->state, EVENT_OFF);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_ACTIVE);
	EXPECT(fake_event(f, leader)->epc->pmu == &f->hw.pmu);
	core_check(f->core);
	fake_free(f);
}

TEST(poll_without_a_buffer)
{
	struct pe_attr attr = fake_attr();
	int fd;

	f = fake_new(4);
	fake_add_task(f, 200, 200);
	fd = fake_open(f, &attr, 200, -1, -1);
	EXPECT_EQ(event_poll(fake_event(f, fd)), POLLHUP);
	EXPECT(!event_target_gone(fake_event(f, fd)));
	fake_advance(f, 10);
	fake_exit(f, 200);
	EXPECT(event_target_gone(fake_event(f, fd)));
	EXPECT_EQ(event_poll(fake_event(f, fd)), POLLHUP);
	/* Still readable; ENABLE answers 0 and does nothing [READ-15, IOC-01]. */
	EXPECT_EQ(fake_count(f, fd), 10);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(fake_event(f, fd)->state, EVENT_EXIT);
	fake_free(f);
}

/* A group whose task is gone reads as a group, and closes as one. */
TEST(group_of_a_dead_task)
{
	struct pe_attr attr = fake_attr();
	int leader, member;

	f = fake_new(4);
	fake_add_task(f, 200, 200);
	attr.read_format = GROUP;
	leader = fake_open(f, &attr, 200, -1, -1);
	member = fake_open(f, &attr, 200, -1, leader);
	fake_advance(f, 10);
	fake_exit(f, 200);
	EXPECT_EQ(fake_read(f, member), 24);
	EXPECT_EQ(f->words[0], 2);
	EXPECT_EQ(f->words[1], 10);
	EXPECT_EQ(f->words[2], 10);
	core_check(f->core);
	fake_close(f, leader);
	EXPECT_EQ(fake_read(f, member), 16);
	EXPECT_EQ(f->words[0], 1);
	fake_free(f);
}

/* cpu-wide events see every task that is there, and wall time. */
TEST(cpu_wide_times)
{
	struct pe_attr attr = fake_attr();
	int fd;

	f = fake_new(4);
	attr.read_format = ENABLED | RUNNING;
	fd = fake_open(f, &attr, -1, 1, -1);
	fake_advance(f, 5000);
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 5000);
	EXPECT_EQ(f->words[2], 5000);
	fake_free(f);
}

/* A member's enabled time is its leader's: none while the leader is off [READ-10, GRP-01]. */
TEST(member_times_follow_the_leader)
{
	int leader, member;

	f = fake_new(4);
	leader = open_as(0, true, -1);
	member = open_as(ENABLED | RUNNING, false, leader);
	fake_advance(f, 100);
	/* Not looked at meanwhile: a read would bring the times up to date. */
	EXPECT_EQ(fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0), 0);
	fake_advance(f, 50);
	fake_read(f, member);
	EXPECT_EQ(f->words[0], 50);
	EXPECT_EQ(f->words[1], 50);
	EXPECT_EQ(f->words[2], 50);
	EXPECT_EQ(fake_ioctl(f, leader, PERF_EVENT_IOC_DISABLE, 0), 0);
	fake_advance(f, 1000);
	EXPECT_EQ(fake_ioctl(f, leader, PERF_EVENT_IOC_ENABLE, 0), 0);
	fake_advance(f, 7);
	fake_read(f, member);
	EXPECT_EQ(f->words[0], 57);
	EXPECT_EQ(f->words[1], 57);
	EXPECT_EQ(f->words[2], 57);
	fake_free(f);
}

/* What the page adds to the counter is modulo 2^64: a count may be anything (UBSan). */
TEST(user_page_of_a_count_that_wraps)
{
	struct perf_event_mmap_page *page;
	struct event *event;
	int fd;

	f = fake_new(1);
	fd = open_as(0, false, -1);
	event = fake_event(f, fd);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	fake_advance(f, 50);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	event->count = (s64)(1ull << 63);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	page = fake_page(f, fd);
	EXPECT(page->index && event->hw.prev);
	EXPECT_EQ((u64)page->offset + event->hw.prev, 1ull << 63);
	fake_free(f);
}

TEST(user_page)
{
	struct perf_event_mmap_page *page;
	struct map_call call = {.len = 4096, .shared = true, .writable = true};
	struct event *event;
	int fd, other;

	f = fake_new(1);
	call.caller = fake_task(f, 100)->task;
	fd = open_as(0, false, -1);
	event = fake_event(f, fd);
	fake_advance(f, 50);
	EXPECT(!event_page(event));
	call.shared = false;
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_PRIVATE);
	call.shared = true;
	call.len = 0;
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_LENGTH);
	call.len = 4097;
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_LENGTH);
	EXPECT_REFUSED(f, fake_map(f, fd, 4, true), -EINVAL, MAP_PAGES);
	call.len = call.offset = 4096;
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_AUX_FIRST);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	page = fake_page(f, fd);
	ASSERT(page);
	EXPECT(event_memory(event) == f);
	EXPECT_EQ(page->lock, 2);
	EXPECT_EQ(page->index, (u32)event->hw.idx + 1);
	EXPECT_EQ(page->offset + (s64)event->hw.prev, 50);
	EXPECT_EQ(page->time_enabled, 50);
	EXPECT_EQ(page->time_running, 50);
	EXPECT_EQ(page->pmc_width, 64);
	EXPECT_EQ(page->cap_bit0, 0);
	EXPECT_EQ(page->cap_bit0_is_deprecated, 1);
	EXPECT_EQ(page->cap_user_rdpmc, 1);
	EXPECT_EQ(page->cap_user_time, 0);
	EXPECT_EQ(page->size, 96);
	EXPECT_EQ(page->data_offset, 4096);
	EXPECT_EQ(page->data_size, 0);
	/* The two words first [AUX-01], then whether there is such an area at all [AUX-02]. */
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_AUX_WORDS);
	page->aux_offset = call.offset = 8192;
	page->aux_size = 8192;
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_AUX_WORDS);
	page->aux_size = 4096;
	EXPECT_REFUSED(f, event_map(event, &call), -EOPNOTSUPP, MAP_NO_AUX);
	page->aux_offset = call.offset = 0x100000000ull;
	EXPECT_REFUSED(f, event_map(event, &call), -EOPNOTSUPP, MAP_NO_AUX);
	page->aux_size = call.len = 3 * 4096;
	EXPECT_REFUSED(f, event_map(event, &call), -EINVAL, MAP_AUX_WORDS);
	page->aux_size = page->aux_offset = 0;
	call.len = call.offset = 4096;
	/* Off its counter the page holds the count itself [PAGE-04]. */
	fake_advance(f, 50);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(page->index, 0);
	EXPECT_EQ(page->offset, 100);
	EXPECT_EQ(page->lock % 2, 0);
	fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0);
	EXPECT_EQ(page->offset, 0);
	/* Mapped without data: poll has nothing to say, and no hang-up [OVF-03]. */
	EXPECT_EQ(event_poll(event), 0);
	/* What it was woken for is told once [OVF-02]. */
	event->buffer->poll = POLLIN;
	EXPECT_EQ(event_poll(event), POLLIN);
	EXPECT_EQ(event_poll(event), 0);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	EXPECT_REFUSED(f, fake_map(f, fd, 2, true), -EINVAL, MAP_OTHER_SIZE);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_OUTPUT, ~0ull), -EINVAL,
		       OUTPUT_MAPPED);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), -EINVAL,
		       PAUSE_NO_BUFFER);

	other = open_as(0, false, -1);
	EXPECT_EQ(fake_ioctl(f, other, PERF_EVENT_IOC_SET_OUTPUT, (u64)fd), 0);
	EXPECT_EQ(event_poll(fake_event(f, other)), 0);
	/* [ERR-04] */
	EXPECT_REFUSED(f, fake_map(f, other, 1, true), -EBUSY, MAP_REDIRECTED);
	EXPECT_REFUSED(f, fake_map(f, other, 2, true), -EINVAL, MAP_OTHER_SIZE);
	EXPECT(!event_page(fake_event(f, other)));
	core_check(f->core);
	/* The mapping keeps the event when its descriptor is closed. */
	fake_close(f, fd);
	EXPECT_EQ(f->frees, 0);
	event_unmap(event);
	EXPECT_EQ(event_poll(fake_event(f, other)), 0);
	event_unmap(event);
	EXPECT_EQ(f->frees, 1);
	EXPECT_EQ(event_poll(fake_event(f, other)), POLLHUP);
	fake_free(f);
}

TEST(inherited_events_on_all_cpus_cannot_be_mapped)
{
	struct pe_attr attr = fake_attr();
	int fd;

	f = fake_new(1);
	attr.inherit = 1;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_REFUSED(f, fake_map(f, fd, 1, true), -EINVAL, MAP_INHERITED);
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	fake_free(f);
}

TEST(reference_counts)
{
	struct event *event;
	int fd;

	f = fake_new(1);
	fd = open_as(0, false, -1);
	event = fake_event(f, fd);
	event_get(event);
	fake_close(f, fd);
	EXPECT_EQ(f->frees, 0);
	EXPECT_EQ(event_read(event, f->words, 8), 8);
	event_put(event);
	EXPECT_EQ(f->frees, 1);
	fake_free(f);
}
