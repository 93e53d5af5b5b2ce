/* Periods and frequencies, limits, throttling, signals [OVF, IOC-03, IOC-05]. */
#include "unit/test.h"

#include <poll.h>

#include "unit/core/fake.h"

static struct fake *f;

static struct pe_attr sampling(u64 period)
{
	struct pe_attr attr = fake_attr();

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_TIME;
	return attr;
}

static int open_mapped(const struct pe_attr *attr)
{
	int fd = fake_open(f, attr, 0, -1, -1);

	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 1 + 16, true), 0);
	return fd;
}

static int count_samples(int fd)
{
	int n = 0;

	while (fake_take_type(f, fd, PERF_RECORD_SAMPLE))
		n++;
	return n;
}

/* Exactly count / period of them, each where the count was reached. */
TEST(a_fixed_period)
{
	struct pe_attr attr = sampling(1000);
	int fd;

	f = fake_new(4);
	f->throttle = false;
	fd = open_mapped(&attr);
	fake_advance(f, 999);
	EXPECT(!fake_take(f, fd));
	fake_advance(f, 4101);
	for (u64 i = 1; i <= 5; i++) {
		const struct ap_record *rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);

		ASSERT(rec);
		EXPECT_EQ(rec->sample.ip, i * 1000);
		EXPECT_EQ(rec->sample.period, 1000);
		EXPECT_EQ(rec->id.time, i * 1000);
		EXPECT_EQ(rec->misc, PERF_RECORD_MISC_USER);
	}
	EXPECT(!fake_take(f, fd));
	EXPECT_EQ(f->overflows, 5);
	/* What is left of a period is kept while the event is off. */
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 5000);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	fake_advance(f, 899);
	EXPECT(!fake_take(f, fd));
	fake_advance(f, 1);
	EXPECT_EQ(count_samples(fd), 1);
	EXPECT_EQ(fake_count(f, fd), 6000);
	core_check(f->core);
	fake_free(f);
}

/* An exact ip is told as such [MISC-05]. */
TEST(exact_ip)
{
	struct pe_attr attr = sampling(1000);
	const struct ap_record *rec;
	int fd;

	f = fake_new(4);
	f->facts.exact_ip = true;
	fd = open_mapped(&attr);
	fake_advance(f, 1000);
	rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);
	ASSERT(rec);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
	fake_free(f);
}

/* On a counter for a part of the time only: each gets as many samples as its count has periods. */
TEST(rotation)
{
	struct pe_attr attr = sampling(10000);
	int fds[3];

	f = fake_new(2);
	f->throttle = false;
	for (int i = 0; i < 3; i++)
		fds[i] = open_mapped(&attr);
	fake_advance(f, 100000000);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(count_samples(fds[i]) + fake_event(f, fds[i])->lost_samples,
			  fake_count(f, fds[i]) / 10000);
		EXPECT(fake_count(f, fds[i]) > 50000000);
	}
	core_check(f->core);
	fake_free(f);
}

/* The new period begins at once [IOC-05]. */
TEST(another_period)
{
	struct pe_attr attr = sampling(1000);
	u64 period = 300;
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr);
	fake_advance(f, 500);
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &period, 8), 0);
	fake_advance(f, 299);
	EXPECT_EQ(count_samples(fd), 0);
	fake_advance(f, 301);
	EXPECT_EQ(count_samples(fd), 2);
	fake_free(f);
}

/* [OVF-10] */
TEST(frequency)
{
	struct pe_attr attr = sampling(0);
	const struct ap_record *rec;
	int fd, n = 0;

	f = fake_new(4);
	attr.freq = 1;
	attr.sample_freq = 1000;
	fd = open_mapped(&attr);
	/* It begins with 1, and goes an eighth of the way each time. */
	fake_advance(f, 1);
	rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);
	ASSERT(rec);
	EXPECT_EQ(rec->sample.period, 1);
	EXPECT_EQ(fake_event(f, fd)->hw.sample_period, 1 + (999999 + 7) / 8);
	fake_advance(f, 100000000);
	while ((rec = fake_take(f, fd)))
		n++;
	EXPECT(n > 80 && n < 130);
	EXPECT(fake_event(f, fd)->hw.sample_period > 990000);
	EXPECT(fake_event(f, fd)->hw.sample_period < 1010000);
	/* Another frequency takes effect by and by. */
	attr.sample_freq = 10000;
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &attr.sample_freq, 8), 0);
	fake_advance(f, 100000000);
	EXPECT(fake_event(f, fd)->hw.sample_period < 102000);
	/* With nobody who wants it there is no tick. */
	event_unmap(fake_event(f, fd));
	fake_close(f, fd);
	fake_advance(f, 10000000);
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	fake_free(f);
}

/* What hardly ever happens is found by the tick: the period shrinks without an overflow. */
TEST(frequency_of_something_rare)
{
	struct pe_attr attr = sampling(0);
	int fd;

	f = fake_new(4);
	attr.freq = 1;
	attr.sample_freq = 1000;
	fd = open_mapped(&attr);
	fake_advance(f, 50000000);
	EXPECT(fake_event(f, fd)->hw.sample_period > 900000);
	fake_task(f, 100)->asleep = true;
	fake_advance(f, 50000000);
	/* A task that does not run is not one in which nothing happens. */
	EXPECT(fake_event(f, fd)->hw.sample_period > 900000);
	fake_free(f);
}

/* [OVF-08] */
TEST(refresh)
{
	struct pe_attr attr = sampling(1000);
	int fd;

	f = fake_new(4);
	attr.disabled = 1;
	attr.wakeup_events = 1;
	fd = open_mapped(&attr);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 3), 0);
	fake_advance(f, 10000);
	EXPECT_EQ(count_samples(fd), 3);
	EXPECT_EQ(f->overflows, 3);
	EXPECT_EQ(f->lasts, 1);
	EXPECT_EQ(fake_event(f, fd)->state, EVENT_OFF);
	/* It does not count on behind the last one. */
	EXPECT_EQ(fake_count(f, fd), 3000);
	EXPECT_EQ(event_poll(fake_event(f, fd)), POLLIN | POLLRDNORM);
	/* The target's end is another matter, which poll tells. */
	EXPECT_EQ(event_poll(fake_event(f, fd)), 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_REFRESH, 1), 0);
	fake_advance(f, 10000);
	EXPECT_EQ(count_samples(fd), 1);
	core_check(f->core);
	fake_free(f);
}

/* Signals do not need a buffer, and do not care for wakeup_events [OVF-06]. */
TEST(signals)
{
	struct pe_attr attr = sampling(1000);

	f = fake_new(4);
	attr.wakeup_events = 100;
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	fake_advance(f, 10000);
	EXPECT_EQ(f->overflows, 10);
	EXPECT_EQ(f->lasts, 0);
	fake_free(f);
}

/* [OVF-09, MISC-09]: 1753 a second are 7.01 a tick, so 8. */
TEST(throttled)
{
	struct pe_attr attr = sampling(1000);
	const struct ap_record *rec;
	int fd;

	f = fake_new(4);
	EXPECT_EQ(core_set_max_sample_rate(f->core, 1753), 0);
	fd = open_mapped(&attr);
	fake_advance(f, 1000000);
	EXPECT_EQ(f->overflows, 8);
	for (int i = 0; i < 7; i++)
		EXPECT(fake_take_type(f, fd, PERF_RECORD_SAMPLE));
	/* The record comes before the sample that was one too many [REC-05]. */
	rec = fake_take_type(f, fd, PERF_RECORD_THROTTLE);
	ASSERT(rec);
	EXPECT_EQ(rec->size, 32);
	EXPECT_EQ(rec->misc, 0);
	EXPECT_EQ(rec->throttle.time, 8000);
	EXPECT_EQ(rec->throttle.id, event_id(fake_event(f, fd)));
	EXPECT_EQ(rec->throttle.stream_id, event_id(fake_event(f, fd)));
	EXPECT(fake_take_type(f, fd, PERF_RECORD_SAMPLE));
	EXPECT(!fake_take(f, fd));
	EXPECT_EQ(fake_count(f, fd), 8000);
	fake_advance(f, 2999999);
	EXPECT(!fake_take(f, fd));
	fake_advance(f, 1);
	rec = fake_take_type(f, fd, PERF_RECORD_UNTHROTTLE);
	ASSERT(rec);
	EXPECT_EQ(rec->throttle.time, 4000000);
	fake_advance(f, 1000);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_SAMPLE));
	core_check(f->core);
	fake_free(f);
}

/* Which copy it is its stream's id tells, whose it is the original's [REC-05]. */
TEST(throttled_copy)
{
	struct pe_attr attr = sampling(1000);
	const struct ap_record *rec;
	struct event *copy;
	int fd;

	f = fake_new(4);
	EXPECT_EQ(core_set_max_sample_rate(f->core, 2000), 0);
	attr.inherit = 1;
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT(fd >= 0 && fake_map(f, fd, 17, true) == 0);
	fake_fork(f, 100, 101, false);
	copy = list_first(&fake_event(f, fd)->children, struct event, child_link);
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(event_overflow(copy, &f->facts, true), i == 7);
	while ((rec = fake_take(f, fd)) && rec->type != PERF_RECORD_THROTTLE)
		;
	ASSERT(rec);
	EXPECT_EQ(rec->throttle.id, event_id(fake_event(f, fd)));
	EXPECT_EQ(rec->throttle.stream_id, copy->id);
	EXPECT(copy->id != event_id(fake_event(f, fd)));
	fake_free(f);
}

/* A group is throttled as one, and its leader says so (6.16). */
TEST(throttled_group)
{
	struct pe_attr attr = sampling(1000);
	int leader, member, n = 0;

	f = fake_new(4);
	EXPECT_EQ(core_set_max_sample_rate(f->core, 2000), 0);
	attr.sample_period = 100000000;
	leader = open_mapped(&attr);
	attr.sample_period = 1000;
	member = fake_open(f, &attr, 0, -1, leader);
	EXPECT_EQ(fake_map(f, member, 17, true), 0);
	fake_advance(f, 1000000);
	EXPECT_EQ(fake_count(f, leader), 8000);
	EXPECT_EQ(fake_count(f, member), 8000);
	EXPECT(fake_take_type(f, leader, PERF_RECORD_THROTTLE));
	EXPECT(!fake_take(f, leader));
	while (fake_take_type(f, member, PERF_RECORD_SAMPLE))
		n++;
	EXPECT_EQ(n, 8);
	fake_advance(f, 3000001);
	EXPECT(fake_take_type(f, leader, PERF_RECORD_UNTHROTTLE));
	EXPECT_EQ(fake_count(f, leader), 8001);
	EXPECT_EQ(fake_count(f, member), 8001);
	fake_free(f);
}

/* Being put on again ends it, and so does a new period. */
TEST(unthrottled_early)
{
	struct pe_attr attr = sampling(1000);
	u64 period = 500;
	int fd;

	f = fake_new(4);
	EXPECT_EQ(core_set_max_sample_rate(f->core, 2000), 0);
	fd = open_mapped(&attr);
	fake_advance(f, 100000);
	EXPECT_EQ(f->overflows, 8);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 9; i++)
		EXPECT(fake_take(f, fd));
	EXPECT(fake_take_type(f, fd, PERF_RECORD_UNTHROTTLE));
	fake_advance(f, 100000);
	EXPECT_EQ(f->overflows, 16);
	while (fake_take(f, fd))
		;
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &period, 8), 0);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_UNTHROTTLE));
	fake_advance(f, 500);
	EXPECT_EQ(f->overflows, 17);
	fake_free(f);
}

/* [OVF-11] */
TEST(sigtrap)
{
	struct pe_attr attr = sampling(1000);
	int fd;

	f = fake_new(4);
	attr.sigtrap = attr.remove_on_exec = 1;
	attr.sig_data = 42;
	fd = open_mapped(&attr);
	f->facts.sample.addr = 0xabcd;
	fake_advance(f, 1000);
	EXPECT_EQ(f->traps, 1);
	EXPECT_EQ(f->trap_tid, 100);
	EXPECT_EQ(f->trap_addr, 0);
	f->facts.has = PERF_SAMPLE_ADDR;
	fake_advance(f, 1000);
	EXPECT_EQ(f->traps, 2);
	EXPECT_EQ(f->trap_addr, 0xabcd);
	EXPECT_EQ(count_samples(fd), 2);
	fake_free(f);
}

/* A PMU whose events are told of each occurrence. */
static int occurs_init(struct event *event)
{
	return event->attr.type == (u32)event->pmu->type ? 0 : -ENOENT;
}

static int occurs_add(struct event *event, u32 flags)
{
	(void)flags;
	event_occurrences_start(event);
	return 0;
}

static void occurs_change(struct event *event, u32 flags)
{
	(void)event, (void)flags;
}

static void occurs_read(struct event *event)
{
	(void)event;
}

static struct pmu occurs = {
	.name = "occurs",
	.class = PMU_SOFTWARE,
	.event_init = occurs_init,
	.add = occurs_add,
	.del = occurs_change,
	.start = occurs_change,
	.stop = occurs_change,
	.read = occurs_read,
};

static int open_occurs(struct pe_attr attr)
{
	occurs.type = -1;
	if (!pmu_by_name(f->core, "occurs"))
		EXPECT_EQ(pmu_register(f->core, &occurs), 0);
	attr.type = (u32)pmu_by_name(f->core, "occurs")->type;
	return open_mapped(&attr);
}

static void occur(int fd, u64 nr)
{
	f->facts.task = fake_task(f, 100)->task;
	event_occurred(fake_event(f, fd), nr, &f->facts);
	core_settle(f->core);
}

static int occur_each(int fd, int n)
{
	while (n--)
		occur(fd, 1);
	return count_samples(fd);
}

TEST(occurrences)
{
	struct pe_attr attr = sampling(10);
	int fd;

	f = fake_new(4);
	attr.sample_type = PERF_SAMPLE_IP;
	fd = open_occurs(attr);
	EXPECT_EQ(occur_each(fd, 9), 0);
	EXPECT_EQ(occur_each(fd, 1), 1);
	EXPECT_EQ(occur_each(fd, 100), 10);
	/* Many at a time are as many samples. */
	occur(fd, 35);
	EXPECT_EQ(count_samples(fd), 3);
	EXPECT_EQ(occur_each(fd, 5), 1);
	fake_free(f);
}

/* Once at once, once with the old period, then with the new [IOC-05]. */
TEST(another_period_of_occurrences)
{
	struct pe_attr attr = sampling(1000);
	u64 period = 5;
	int fd;

	f = fake_new(4);
	attr.sample_type = PERF_SAMPLE_IP;
	fd = open_occurs(attr);
	EXPECT_EQ(occur_each(fd, 10), 0);
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_PERIOD, &period, 8), 0);
	EXPECT_EQ(occur_each(fd, 1), 1);
	EXPECT_EQ(occur_each(fd, 998), 0);
	EXPECT_EQ(occur_each(fd, 1), 1);
	EXPECT_EQ(occur_each(fd, 50), 10);
	fake_free(f);
}

/* Who samples the period gets each occurrence, whatever the period is [SAMP-09]. */
TEST(the_period_of_occurrences)
{
	struct pe_attr attr = sampling(1000);
	const struct ap_record *rec;
	int fd;

	f = fake_new(4);
	fd = open_occurs(attr);
	occur(fd, 1);
	occur(fd, 7);
	rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);
	ASSERT(rec);
	EXPECT_EQ(rec->sample.period, 1);
	rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);
	ASSERT(rec);
	EXPECT_EQ(rec->sample.period, 7);
	EXPECT(!fake_take(f, fd));
	fake_free(f);
}

/* A burst is cut short, its first sample never. */
TEST(throttled_occurrences)
{
	struct pe_attr attr = sampling(1);
	int fd;

	f = fake_new(4);
	EXPECT_EQ(core_set_max_sample_rate(f->core, 2000), 0);
	attr.sample_type = PERF_SAMPLE_IP;
	fd = open_occurs(attr);
	EXPECT_EQ(occur_each(fd, 100), 100);
	occur(fd, 100);
	EXPECT_EQ(f->overflows, 102);
	occur(fd, 100);
	EXPECT_EQ(f->overflows, 102);
	fake_advance(f, 4000000);
	occur(fd, 100);
	EXPECT_EQ(f->overflows, 110);
	fake_free(f);
}

TEST(frequency_of_occurrences)
{
	struct pe_attr attr = sampling(0);
	const struct ap_record *rec;
	u64 periods[8], n = 0;
	int fd;

	f = fake_new(4);
	attr.freq = 1;
	attr.sample_freq = 1000;
	fd = open_occurs(attr);
	for (int i = 0; i < 8; i++) {
		fake_advance(f, 100000);
		occur(fd, 1);
	}
	while (n < 8 && (rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE)))
		periods[n++] = rec->sample.period;
	/* One each 0.1 ms: the period becomes 10 by and by. */
	ASSERT(n >= 3);
	EXPECT_EQ(periods[0], 1);
	EXPECT(periods[2] > 1);
	fake_free(f);
}
