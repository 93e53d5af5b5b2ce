/* Scheduling, multiplexing, rotation [GRP], to the nanosecond on a fake clock. */
#include "unit/test.h"

#include "unit/core/fake.h"

#define TICK  4000000ull
#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

static struct fake *f;

/* Who is on, as a word of letters: the i-th descriptor is letter 'A' + i. */
static const char *on(const int *fds, int n)
{
	static char word[64];
	int len = 0;

	for (int i = 0; i < n; i++)
		if (fake_event(f, fds[i])->state == EVENT_ACTIVE)
			word[len++] = (char)('A' + i);
	word[len] = '\0';
	return word;
}

static int open_one(u64 extra_flags, int pid, int cpu, int group)
{
	struct pe_attr attr = fake_attr();
	int fd;

	attr.read_format = TIMES;
	attr.flags |= extra_flags;
	fd = fake_open(f, &attr, pid, cpu, group);
	EXPECT(fd >= 0);
	return fd;
}

static int open_group(int n, int *fds)
{
	fds[0] = open_one(0, 0, -1, -1);
	for (int i = 1; i < n; i++)
		fds[i] = open_one(0, 0, -1, fds[0]);
	return fds[0];
}

static u64 pinned(void)
{
	return (struct pe_attr){.pinned = 1}.flags;
}

static u64 exclusive(void)
{
	return (struct pe_attr){.exclusive = 1}.flags;
}

/* An event that comes or goes leaves the others where they are, as long as nobody waits. */
TEST(an_event_that_finds_room_moves_nobody)
{
	int fds[40];

	f = fake_new(40);
	for (int i = 0; i < 40; i++) {
		fds[i] = open_one(i % 8 ? 0 : pinned(), 0, -1, -1);
		EXPECT_EQ(f->hw.adds, (u32)i + 1);
	}
	EXPECT_EQ(f->hw.dels, 0u);
	EXPECT_EQ(fake_ioctl(f, fds[7], PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_ioctl(f, fds[7], PERF_EVENT_IOC_ENABLE, 0), 0);
	fake_close(f, fds[8]);
	fds[8] = open_one(0, 0, -1, -1);
	EXPECT_EQ(f->hw.adds, 42u);
	EXPECT_EQ(f->hw.dels, 2u);
	core_check(f->core);
	/* One more has to wait, and from now on they take turns. */
	open_one(0, 0, -1, -1);
	EXPECT(f->hw.dels > 30);
	EXPECT_EQ(fake_event(f, fds[39])->state, EVENT_ACTIVE);
	fake_advance(f, TICK);
	EXPECT_EQ(fake_event(f, fds[1])->state, EVENT_INACTIVE);
	core_check(f->core);
	fake_free(f);
}

/* 004's case: each of 7 events is left out one tick in seven [GRP-12]. */
TEST(seven_events_on_six_counters)
{
	static const char *const order[] = {"ABCDEF", "BCDEFG", "ACDEFG", "ABDEFG",
					    "ABCEFG", "ABCDFG", "ABCDEG", "ABCDEF"};
	int fds[7];

	f = fake_new(6);
	for (int i = 0; i < 7; i++)
		fds[i] = open_one(0, 0, -1, -1);
	for (int k = 0; k < 8; k++) {
		EXPECT_STREQ(on(fds, 7), order[k]);
		core_check(f->core);
		fake_advance(f, TICK);
	}
	fake_advance(f, 700 * TICK - 8 * TICK);
	for (int i = 0; i < 7; i++) {
		EXPECT_EQ(fake_read(f, fds[i]), 24);
		EXPECT_EQ(f->words[1], 700 * TICK);
		EXPECT_EQ(f->words[2], 600 * TICK);
		EXPECT_EQ(f->words[0], 600 * TICK);
		/* 85.71 %, as perf stat prints it. */
		EXPECT_EQ(f->words[2] * 10000 / f->words[1], 8571);
	}
	fake_free(f);
}

TEST(six_events_on_six_counters_do_not_rotate)
{
	int fds[6];

	f = fake_new(6);
	for (int i = 0; i < 6; i++)
		fds[i] = open_one(0, 0, -1, -1);
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	fake_advance(f, 123456789);
	for (int i = 0; i < 6; i++) {
		fake_read(f, fds[i]);
		EXPECT_EQ(f->words[1], 123456789);
		EXPECT_EQ(f->words[2], 123456789);
	}
	fake_free(f);
}

/* The same on a CPU instead of a task: 004 itself measured cpu-wide. */
TEST(seven_cpu_wide_events_on_six_counters)
{
	int fds[7];

	f = fake_new(6);
	for (int i = 0; i < 7; i++)
		fds[i] = open_one(0, -1, 1, -1);
	EXPECT_STREQ(on(fds, 7), "ABCDEF");
	fake_advance(f, 7 * TICK);
	for (int i = 0; i < 7; i++) {
		fake_read(f, fds[i]);
		EXPECT_EQ(f->words[1], 7 * TICK);
		EXPECT_EQ(f->words[2], 6 * TICK);
	}
	fake_free(f);
}

/* A(3) B(2) C(1) on 4 counters: C would fit beside A, and is not tried [GRP-10]. */
TEST(no_back_filling)
{
	static const char *const order[] = {"ABC", "DEF", "ABCF", "ABC", "DEF", "ABCF"};
	int fds[6];

	f = fake_new(4);
	open_group(3, fds);
	open_group(2, fds + 3);
	open_group(1, fds + 5);
	for (int k = 0; k < 6; k++) {
		EXPECT_STREQ(on(fds, 6), order[k]);
		core_check(f->core);
		fake_advance(f, TICK);
	}
	fake_free(f);
}

TEST(group_is_on_as_a_whole_or_not_at_all)
{
	int a[3], b[2];
	u32 dels;

	f = fake_new(4);
	open_group(3, a);
	dels = f->hw.dels;
	open_group(2, b);
	EXPECT_STREQ(on(b, 2), "");
	/* Its first event alone fitted until the second came. */
	EXPECT(f->hw.dels > dels);
	EXPECT(f->hw.cancels > 0);
	fake_free(f);
}

/* One pinned group that fails drags the later pinned ones of its pass into ERROR. */
TEST(pinned_cascade)
{
	int fds[3], flexible;

	f = fake_new(4);
	/* Opened off, then switched on at once. */
	for (int i = 0; i < 3; i++)
		fds[i] = open_one(pinned() | (struct pe_attr){.disabled = 1}.flags, 0, -1, -1);
	for (int i = 0; i < 3; i++)
		open_one(0, 0, -1, fds[1]);
	open_one(0, 0, -1, fds[1]);
	flexible = open_one(0, 0, -1, -1);
	task_sched_out(fake_task(f, 100)->task);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(fake_ioctl(f, fds[i], PERF_EVENT_IOC_ENABLE, 0), 0);
	task_sched_in(fake_task(f, 100)->task, 0);
	EXPECT_EQ(fake_event(f, fds[0])->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, fds[1])->state, EVENT_ERROR);
	EXPECT_EQ(fake_event(f, fds[2])->state, EVENT_ERROR);
	EXPECT_EQ(fake_event(f, flexible)->state, EVENT_ACTIVE);
	core_check(f->core);
	fake_free(f);
}

TEST(pinned_error_reads_nothing_and_only_enable_leaves_it)
{
	int a, b;

	f = fake_new(1);
	a = open_one(pinned(), 0, -1, -1);
	b = open_one(pinned(), 0, -1, -1);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ERROR);
	EXPECT_EQ(fake_read(f, b), 0);
	/* Even a buffer that is too small [READ-07]. */
	EXPECT_EQ(event_read(fake_event(f, b), f->words, 0), 0);
	EXPECT_EQ(event_poll(fake_event(f, b)), 0x8);
	EXPECT(f->wakes > 0);
	EXPECT_EQ(fake_ioctl(f, b, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ERROR);
	EXPECT_EQ(fake_ioctl(f, b, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ERROR);
	fake_close(f, a);
	EXPECT_EQ(fake_ioctl(f, b, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_read(f, b), 24);
	fake_free(f);
}

TEST(pinned_event_puts_flexible_ones_off)
{
	int a, b;

	f = fake_new(1);
	a = open_one(0, 0, -1, -1);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_ACTIVE);
	fake_advance(f, 1000);
	b = open_one(pinned(), 0, -1, -1);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	fake_advance(f, 10 * TICK);
	fake_read(f, a);
	EXPECT_EQ(f->words[0], 1000);
	EXPECT_EQ(f->words[1], 1000 + 10 * TICK);
	EXPECT_EQ(f->words[2], 1000);
	fake_free(f);
}

/* CPU pinned, task pinned, CPU flexible, task flexible. */
TEST(order_of_the_four_classes)
{
	int fds[4];

	f = fake_new(1);
	fds[3] = open_one(0, 0, -1, -1); /* task flexible */
	EXPECT_STREQ(on(fds + 3, 1), "A");
	fds[2] = open_one(0, -1, 0, -1); /* CPU flexible */
	EXPECT_EQ(fake_event(f, fds[3])->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, fds[2])->state, EVENT_ACTIVE);
	fds[1] = open_one(pinned(), 0, -1, -1);
	EXPECT_EQ(fake_event(f, fds[2])->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, fds[1])->state, EVENT_ACTIVE);
	fds[0] = open_one(pinned(), -1, 0, -1);
	EXPECT_STREQ(on(fds, 4), "A");
	EXPECT_EQ(fake_event(f, fds[1])->state, EVENT_ERROR);
	core_check(f->core);
	fake_free(f);
}

/*
 * A task with pinned groups that comes to a CPU finds its flexible groups in the way, and off they
 * go.
 */
TEST(pinned_task_comes_to_a_busy_cpu)
{
	struct task *task;
	int cpu, own;

	f = fake_new(1);
	task = fake_task(f, 100)->task;
	own = open_one(pinned(), 0, -1, -1);
	task_sched_out(task);
	cpu = open_one(0, -1, 0, -1);
	EXPECT_EQ(fake_event(f, cpu)->state, EVENT_ACTIVE);
	task_sched_in(task, 0);
	EXPECT_EQ(fake_event(f, own)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, cpu)->state, EVENT_INACTIVE);
	core_check(f->core);
	fake_free(f);
}

/* One that is off takes no turn, though it stands first. */
TEST(rotation_passes_over_who_is_off)
{
	int off, a, b;

	f = fake_new(1);
	off = open_one((struct pe_attr){.disabled = 1}.flags, 0, -1, -1);
	a = open_one(0, 0, -1, -1);
	b = open_one(0, 0, -1, -1);
	fake_advance(f, 10 * TICK);
	fake_read(f, a);
	EXPECT_EQ(f->words[2], 5 * TICK);
	fake_read(f, b);
	EXPECT_EQ(f->words[2], 5 * TICK);
	fake_read(f, off);
	EXPECT_EQ(f->words[1], 0);
	fake_free(f);
}

/* Switching on a member of a group that waits for its turn does not jump the queue. */
TEST(member_of_a_waiting_group)
{
	int a, leader, member;

	f = fake_new(2);
	a = open_one(0, 0, -1, -1);
	leader = open_one(exclusive(), 0, -1, -1);
	member = open_one((struct pe_attr){.disabled = 1}.flags, 0, -1, leader);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_INACTIVE);
	fake_close(f, a);
	fake_ioctl(f, member, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_INACTIVE);
	fake_advance(f, TICK);
	EXPECT_EQ(fake_event(f, leader)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, member)->state, EVENT_ACTIVE);
	fake_free(f);
}

TEST(exclusive_goes_alone)
{
	int a, b, c;

	f = fake_new(4);
	a = open_one(exclusive(), 0, -1, -1);
	b = open_one(0, 0, -1, -1);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_INACTIVE);
	fake_advance(f, TICK);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	fake_advance(f, TICK);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_INACTIVE);
	/* Software events run beside it [GRP-09]. */
	{
		struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_DUMMY);

		c = fake_open(f, &attr, 0, -1, -1);
	}
	EXPECT_EQ(fake_event(f, c)->state, EVENT_ACTIVE);
	core_check(f->core);
	fake_free(f);
}

TEST(exclusive_on_the_cpu_bars_tasks)
{
	int a, b;

	f = fake_new(4);
	a = open_one(exclusive() | pinned(), -1, 0, -1);
	b = open_one(0, 0, -1, -1);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_INACTIVE);
	fake_close(f, a);
	fake_advance(f, TICK);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	fake_free(f);
}

/* The timer's expiries are on one grid and it stops when nobody waits [GRP-11]. */
TEST(mux_timer)
{
	int a, b;

	f = fake_new(1);
	fake_advance(f, 1234567);
	a = open_one(0, 0, -1, -1);
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	b = open_one(0, 0, -1, -1);
	EXPECT_EQ(f->timer, TICK);
	fake_advance(f, TICK);
	EXPECT_EQ(f->timer, 2 * TICK);
	fake_close(f, a);
	/* The one that is left is on after the next turn, and the turn after that finds nobody. */
	fake_advance(f, 2 * TICK);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	fake_free(f);
}

/*
 * A new event that is off touches nobody: who waits does so until the next turn, as in the kernel.
 */
TEST(opening_what_is_off_reschedules_nobody)
{
	const u64 off = (struct pe_attr){.disabled = 1}.flags;
	int a, b, leader;
	u32 adds;

	f = fake_new(1);
	a = open_one(0, 0, -1, -1);
	b = open_one(0, 0, -1, -1);
	EXPECT_EQ(fake_ioctl(f, a, PERF_EVENT_IOC_DISABLE, 0), 0);
	adds = f->hw.adds;
	leader = open_one(off, 0, -1, -1);
	open_one(0, 0, -1, leader);
	EXPECT_EQ(f->hw.adds, adds);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_INACTIVE);
	fake_advance(f, TICK);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	fake_free(f);
}

TEST(mux_interval_is_settable)
{
	f = fake_new(1);
	EXPECT_EQ(f->hw.pmu.mux_interval_ms, 4);
	EXPECT_REFUSED(f, pmu_set_mux_interval(&f->hw.pmu, 0), -EINVAL, SETTING_LEAST);
	EXPECT_EQ(pmu_set_mux_interval(&f->hw.pmu, 1), 0);
	open_one(0, 0, -1, -1);
	open_one(0, 0, -1, -1);
	EXPECT_EQ(f->timer, 1000000);
	fake_free(f);
}

/* A sleeping task's groups keep their places: turns are for those who run. */
TEST(no_rotation_while_the_task_sleeps)
{
	int a, b;

	f = fake_new(1);
	a = open_one(0, 0, -1, -1);
	b = open_one(0, 0, -1, -1);
	fake_advance(f, 1000);
	fake_task(f, 100)->asleep = true;
	fake_advance(f, 1000 * TICK);
	/* One turn for the 1000 ns that it ran. */
	EXPECT_EQ(fake_event(f, a)->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	fake_read(f, b);
	EXPECT_EQ(f->words[1], 1000);
	fake_free(f);
}

/* Constraints: an event that can be elsewhere makes room for one that cannot. */
TEST(counters_are_matched_not_just_taken)
{
	struct pe_attr attr = fake_attr();
	int a, b, c;

	f = fake_new(2);
	a = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_event(f, a)->hw.idx, 0);
	attr.config = 1;
	b = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_event(f, b)->hw.idx, 0);
	EXPECT_EQ(fake_event(f, a)->hw.idx, 1);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_ACTIVE);
	c = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_event(f, c)->state, EVENT_INACTIVE);
	fake_free(f);
}

/* The NMI watchdog's way: a group that passed at open may never run [GRP-06]. */
TEST(reserved_counters)
{
	int fds[2];

	f = fake_new(2);
	f->hw.taken = 1;
	open_group(2, fds);
	fake_advance(f, 100 * TICK);
	fake_read(f, fds[0]);
	EXPECT_EQ(f->words[1], 100 * TICK);
	EXPECT_EQ(f->words[2], 0);
	fake_free(f);
}

/* Several tasks on one CPU: each has the counters that the CPU's own events leave. */
TEST(tasks_on_one_cpu_do_not_compete)
{
	int a, b, c;

	f = fake_new(1);
	fake_add_task(f, 200, 200);
	a = open_one(0, 100, -1, -1);
	b = open_one(0, 200, -1, -1);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	c = open_one(pinned(), -1, 0, -1);
	EXPECT_EQ(fake_event(f, c)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, a)->state, EVENT_INACTIVE);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_INACTIVE);
	task_sched_in(fake_task(f, 200)->task, 1);
	EXPECT_EQ(fake_event(f, b)->state, EVENT_ACTIVE);
	core_check(f->core);
	fake_free(f);
}

/* CPU and task groups rotate together, the CPU's coming first. */
TEST(cpu_and_task_groups_rotate)
{
	int cpu[2], task[2];
	u64 sum = 0;

	f = fake_new(1);
	for (int i = 0; i < 2; i++)
		cpu[i] = open_one(0, -1, 0, -1);
	for (int i = 0; i < 2; i++)
		task[i] = open_one(0, 0, -1, -1);
	fake_advance(f, 40 * TICK);
	for (int i = 0; i < 2; i++) {
		fake_read(f, cpu[i]);
		EXPECT_EQ(f->words[2], 20 * TICK);
		sum += f->words[2];
		fake_read(f, task[i]);
		EXPECT_EQ(f->words[1], 40 * TICK);
		EXPECT_EQ(f->words[2], 0);
	}
	EXPECT_EQ(sum, 40 * TICK);
	core_check(f->core);
	fake_free(f);
}

/*
 * A task's event that has room whoever of the CPU's is on: it makes room while they take turns, and
 * is on again at once.
 */
TEST(a_task_beside_a_cpu_that_rotates)
{
	struct pe_attr attr = fake_attr();
	int cpu[2], task;

	f = fake_new(2);
	attr.read_format = TIMES;
	attr.config = 1;
	for (int i = 0; i < 2; i++)
		cpu[i] = fake_open(f, &attr, -1, 0, -1);
	attr.config = 2;
	task = fake_open(f, &attr, 0, -1, -1);
	EXPECT(cpu[0] >= 0 && cpu[1] >= 0 && task >= 0);
	fake_advance(f, 40 * TICK);
	for (int i = 0; i < 2; i++) {
		fake_read(f, cpu[i]);
		EXPECT_EQ(f->words[2], 20 * TICK);
	}
	fake_read(f, task);
	EXPECT_EQ(f->words[1], 40 * TICK);
	EXPECT_EQ(f->words[2], 40 * TICK);
	core_check(f->core);
	fake_free(f);
}

/* A group that its hardware member takes along is on again, and says so, wherever its task is. */
TEST(a_group_that_is_moved_has_changed)
{
	struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_DUMMY);
	int lead, member;

	f = fake_new(2);
	fake_add_task(f, 200, 200);
	task_sched_out(fake_task(f, 200)->task);
	lead = fake_open(f, &attr, 200, -1, -1);
	fake_ioctl(f, lead, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(fake_event(f, lead)->state, EVENT_OFF);
	f->changed = NULL;
	attr = fake_attr();
	attr.disabled = 1;
	member = fake_open(f, &attr, 200, -1, lead);
	EXPECT(member >= 0);
	EXPECT_EQ(fake_event(f, lead)->state, EVENT_INACTIVE);
	EXPECT(f->changed == fake_event(f, lead));
	core_check(f->core);
	fake_free(f);
}
