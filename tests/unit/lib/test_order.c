/*
 * Several buffers in the order of time, by a clock of the test's: what is published late, what has
 * no time, what is broken; and samplers over the same fake kernel.
 */
#include "unit/lib/fake-ring.h"
#include "unit/test.h"

#include <errno.h>

#include "lib/sample/order.h"

#define LANES   3
#define HORIZON 1000

static struct fake fake;
static struct ap_machine *m;
static struct ap_error err;
static struct ap_record rec;
static struct ap_event *events[LANES];
static struct ap_ring *rings[LANES], *from;
static struct ap__order order;
static u64 now; /* the steady clock; times in records are another one */

static const struct pe_attr timed = {.type = PERF_TYPE_SOFTWARE,
				     .config = PERF_COUNT_SW_DUMMY,
				     .size = sizeof(timed),
				     .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_IP,
				     .sample_id_all = 1,
				     .sample_period = 1};

static void begin(struct pe_attr a)
{
	struct ap_ring_opts opts = {.size = sizeof(opts), .pages = 1};

	fake = (struct fake){0};
	m = fake_machine(&fake);
	now = 50000;
	for (int i = 0; i < LANES; i++)
		if (ap_event_open(&events[i], m, (struct perf_event_attr *)&a, NULL, &err) ||
		    ap_ring_map(&rings[i], events[i], &opts, &err))
			TEST_FAIL("%s", err.why);
	if (ap__order_init(&order, rings, LANES, HORIZON))
		abort();
}

static void finish(void)
{
	ap__order_release(&order);
	for (int i = 0; i < LANES; i++) {
		ap_ring_unmap(rings[i]);
		ap_event_close(events[i]);
	}
	ap_machine_free(m);
}

static void put(int lane, u64 time)
{
	struct ap_record sample = {
		.type = PERF_RECORD_SAMPLE, .id = {.time = time}, .sample = {.ip = time}};

	if (!fake_write(&fake, ap_event_fd(events[lane]), &sample))
		TEST_FAIL("no room for %llu", (unsigned long long)time);
}

static int next(bool hold)
{
	return ap__order_next(&order, hold, now, &rec, &from, &err);
}

/* Takes a pass, which must give these times and no more; 0 ends them. */
static void expect_times(int line, bool hold, const u64 *times)
{
	int n;

	for (; *times; times++) {
		n = next(hold);
		if (n != 1 || rec.id.time != *times)
			TEST_FAIL("line %d: got %d and %llu, expected %llu", line, n,
				  (unsigned long long)rec.id.time, (unsigned long long)*times);
	}
	n = next(hold);
	if (n)
		TEST_FAIL("line %d: got %d and %llu, expected nothing", line, n,
			  (unsigned long long)rec.id.time);
}

#define EXPECT_TIMES(hold, ...) expect_times(__LINE__, hold, (const u64[]){__VA_ARGS__, 0})
#define EXPECT_NONE(hold)       expect_times(__LINE__, hold, (const u64[]){0})

TEST(lanes_are_merged)
{
	begin(timed);
	put(0, 10);
	put(1, 20);
	put(2, 15);
	put(0, 30);
	put(1, 21);
	put(2, 40);
	EXPECT_TIMES(false, 10, 15, 20, 21, 30, 40);
	EXPECT(from == rings[2]);
	EXPECT_NONE(false);
	EXPECT_EQ(order.late, 0);
	finish();
}

/* Nothing is given before the horizon has passed, and what comes in meanwhile takes its place. */
TEST(what_is_published_late_comes_in_its_place)
{
	u64 until = 0;

	begin(timed);
	put(0, 10);
	put(0, 30);
	EXPECT_NONE(true);
	EXPECT(ap__order_waits(&order, &until));
	EXPECT_EQ(until, now + HORIZON);
	now += HORIZON / 2;
	put(1, 20); /* stamped before 30, published after it */
	EXPECT_NONE(true);
	now = until;
	put(2, 5);
	put(2, 50);
	EXPECT_TIMES(true, 5, 10, 20, 30);
	/* The rest waits for the next pass to mark it, and then for the horizon. */
	EXPECT(!ap__order_waits(&order, &until));
	EXPECT(ap__order_left(&order));
	now += 10 * HORIZON;
	EXPECT_NONE(true);
	EXPECT(ap__order_waits(&order, &until));
	EXPECT_EQ(until, now + HORIZON);
	now = until;
	EXPECT_TIMES(true, 50);
	EXPECT(!ap__order_waits(&order, &until));
	EXPECT(!ap__order_left(&order));
	put(0, 25); /* too late for its place */
	put(0, 60);
	EXPECT_NONE(true);
	now += HORIZON;
	EXPECT_TIMES(true, 25, 60);
	EXPECT_EQ(order.late, 1);
	finish();
}

/* Nothing is held back where the writer will soon have no room. */
TEST(a_crowded_buffer_is_emptied)
{
	u64 until;

	begin(timed);
	for (u64 i = 0; i < 128; i++) /* 3072 of 4096 bytes */
		put(0, 10 + i);
	EXPECT_NONE(true);
	EXPECT(ap__order_waits(&order, &until));
	put(0, 500);
	put(1, 5);
	EXPECT_EQ(next(true), 1);
	EXPECT_EQ(rec.id.time, 5);
	for (u64 i = 0; i < 129; i++)
		EXPECT_EQ(next(true), 1);
	EXPECT_EQ(rec.id.time, 500);
	EXPECT_NONE(true);
	EXPECT(!ap__order_waits(&order, &until));
	finish();
}

/* Who stops holding back in the middle of a pass gets everything, also what the pass would hold. */
TEST(the_end_holds_nothing_back)
{
	begin(timed);
	put(0, 10);
	put(1, 11);
	EXPECT_NONE(true);
	now += HORIZON;
	put(2, 12);
	EXPECT_EQ(next(true), 1);
	put(0, 13);
	EXPECT_TIMES(false, 11, 12, 13);
	finish();
}

/* An interrupt's record stands before the one that it interrupted. */
TEST(a_lane_is_not_quite_in_order)
{
	u64 expected[200];

	begin(timed);
	for (u64 i = 0; i < 120; i++) {
		put(0, 1000 + (i ^ 7)); /* up to seven places off */
		expected[i] = 1000 + i;
	}
	expected[120] = 0;
	expect_times(__LINE__, false, expected);
	EXPECT_EQ(order.late, 0);
	/* Beyond the depth of a lane it is not sorted, but it is counted. */
	put(0, 2000);
	for (u64 i = 0; i < AP__LANE_DEPTH; i++)
		put(0, 2000 + i);
	put(0, 1999);
	for (u64 i = 0; i <= AP__LANE_DEPTH + 1; i++)
		EXPECT_EQ(next(false), 1);
	EXPECT_EQ(next(false), 0);
	EXPECT_EQ(order.late, 1);
	finish();
}

/* Records without a time stay behind what was in front of them. */
TEST(records_without_a_time)
{
	struct perf_event_header user = {.type = 68, .size = 8};

	begin(timed);
	put(0, 10);
	fake_write_bytes(&fake, ap_event_fd(events[0]), &user, sizeof(user));
	put(0, 30);
	put(1, 20);
	EXPECT_EQ(next(false), 1);
	EXPECT_EQ(rec.id.time, 10);
	EXPECT_EQ(next(false), 1);
	EXPECT_EQ(rec.type, 68);
	EXPECT_TIMES(false, 20, 30);
	finish();
}

/* Room is given back while a pass goes on, but never that of a record that was not taken. */
TEST(room_is_given_back)
{
	begin(timed);
	for (u64 i = 0; i < 100; i++)
		put(0, 10 + i);
	put(1, 15);
	for (u64 i = 0; i < 80; i++)
		EXPECT_EQ(next(false), 1);
	EXPECT(fake_page(&fake, ap_event_fd(events[0]))->data_tail >= 79 * 24 - 512);
	EXPECT(fake_page(&fake, ap_event_fd(events[0]))->data_tail <= 79 * 24);
	while (next(false) > 0)
		;
	EXPECT_EQ(fake_page(&fake, ap_event_fd(events[0]))->data_tail, 2400);
	EXPECT_EQ(fake_page(&fake, ap_event_fd(events[1]))->data_tail, 24);
	finish();
}

TEST(a_broken_lane_does_not_stop_the_others)
{
	u64 zeros[2] = {0};

	begin(timed);
	put(0, 10);
	fake_write_bytes(&fake, ap_event_fd(events[0]), zeros, sizeof(zeros));
	put(0, 40);
	put(1, 20);
	fake_page(&fake, ap_event_fd(events[2]))->data_head = 1 << 20;
	EXPECT_EQ(next(false), -EBADMSG);
	EXPECT(from == rings[0]);
	EXPECT_CONTAINS(err.why, "40 bytes in it are no records");
	EXPECT_EQ(next(false), -EBADMSG);
	EXPECT(from == rings[2]);
	EXPECT_CONTAINS(err.why, "head is not within it");
	EXPECT_TIMES(false, 10, 20);
	put(0, 50);
	EXPECT_TIMES(false, 50);
	finish();
}

/* Backward buffers: each snapshot is a whole, in order. */
TEST(snapshots_are_merged)
{
	struct pe_attr a = timed;

	a.write_backward = 1;
	begin(a);
	for (u64 round = 0; round < 3; round++) {
		for (u64 i = 1; i <= 5; i++)
			for (int lane = 0; lane < LANES; lane++)
				put(lane, 100 * round + 10 * i + (u64)lane);
		for (int lane = 0; lane < LANES; lane++)
			EXPECT_EQ(ap_ring_snapshot(rings[lane], &err), 0);
		ap__order_restart(&order);
		for (u64 i = 1; i <= 5; i++)
			for (u64 lane = 0; lane < LANES; lane++) {
				EXPECT_EQ(next(true), 1);
				EXPECT_EQ(rec.id.time, 100 * round + 10 * i + lane);
			}
		EXPECT_EQ(next(true), 0);
	}
	EXPECT_EQ(order.late, 0);
	finish();
}

/* Many records in many orders: sorted as long as nothing is published later than the horizon. */
TEST(random_publication)
{
	u64 roll = 88172645463325252ull, stamp = 1, last = 0, given = 0, written = 0;
	u64 pending[LANES] = {0};

	begin(timed);
	for (unsigned int i = 0; i < 100000; i++) {
		unsigned int lane;

		roll ^= roll << 13;
		roll ^= roll >> 7;
		roll ^= roll << 17;
		lane = (unsigned int)(roll >> 8) % LANES;
		now += 10;
		/* A record is stamped now and published with the lane's next one, soon. */
		if (pending[lane] && fake_page(&fake, (int)lane)->data_head -
						     fake_page(&fake, (int)lane)->data_tail <
					     4000) {
			put((int)lane, pending[lane]);
			written++;
		}
		pending[lane] = stamp++;
		if (i % 5 == 0)
			while (next(true) > 0) {
				given++;
				EXPECT(rec.id.time > last);
				last = rec.id.time;
			}
	}
	while (next(false) > 0)
		given++;
	EXPECT_EQ(given, written);
	EXPECT(written > 90000);
	EXPECT_EQ(order.late, 0);
	finish();
}

static struct ap_sampler *open_sampler(const char *text, const struct ap_sampler_opts *opts)
{
	static pid_t tids[2] = {100, 200};
	struct ap_target target = {.size = sizeof(target), .tids = tids, .ntids = 2};
	static struct ap_specs *specs;
	struct ap_sampler *s = NULL;

	ap_specs_free(specs);
	specs = NULL;
	if (ap_specs_parse(&specs, m, text, &err) ||
	    ap_sampler_open(&s, m, specs, &target, opts, &err))
		return NULL;
	return s;
}

static int handle_of(const struct ap_sampler *s, unsigned int spec, unsigned int place)
{
	return ap_event_fd(ap_counters_event(ap_sampler_counters(s), spec, place));
}

/* Two events on two threads: a buffer for each thread, and each record knows its event. */
TEST(a_sampler)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts), .period = 3, .pages = 2};
	struct ap_record sample = {.type = PERF_RECORD_SAMPLE};
	const struct pe_attr *a;
	struct ap_sampler *s;
	uint64_t lost = 1;

	fake = (struct fake){0};
	m = fake_machine(&fake);
	s = open_sampler("page-faults,context-switches", &opts);
	ASSERT(s);
	EXPECT_EQ(fake.mapped, 2 * 3 * FAKE_PAGE);
	EXPECT_EQ(ap_sampler_pages(s), 2);
	a = &fake.events[handle_of(s, 1, 1)].attr;
	EXPECT_EQ(a->sample_period, 3);
	EXPECT(!a->freq && a->disabled && a->sample_id_all);
	EXPECT_EQ(a->sample_type,
		  PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER);
	EXPECT_EQ(fake.events[handle_of(s, 1, 1)].output, handle_of(s, 0, 1));
	for (unsigned int i = 0; i < 4; i++) {
		sample.id.time = 100 - i;
		fake_write(&fake, handle_of(s, i % 2, i / 2), &sample);
	}
	/* One that is lost, which only the event knows. */
	fake.events[handle_of(s, 0, 0)].paused = true;
	fake_write(&fake, handle_of(s, 0, 0), &sample);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	for (unsigned int i = 4; i-- > 0;) {
		ASSERT(ap_sampler_next(s, &rec, &err) == 1);
		EXPECT_EQ(rec.id.time, 100 - i);
		EXPECT_EQ(ap_sampler_spec(s, &rec), i % 2);
	}
	EXPECT_EQ(ap_sampler_next(s, &rec, &err), 0);
	EXPECT_EQ(ap_sampler_lost(s, &lost), 0);
	EXPECT_EQ(lost, 1);
	ap_sampler_close(s);
	EXPECT_EQ(fake.mapped, 0);
	ap_machine_free(m);
}

TEST(what_a_sampler_asks_for)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts)};
	const struct pe_attr *a;
	struct ap_sampler *s;

	fake = (struct fake){0};
	m = fake_machine(&fake);
	s = open_sampler("cpu-clock", NULL);
	ASSERT(s);
	a = &fake.events[handle_of(s, 0, 0)].attr;
	EXPECT(a->freq);
	EXPECT_EQ(a->sample_freq, 999);
	EXPECT_EQ(a->sample_type,
		  PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD);
	ap_sampler_close(s);
	opts.freq = 50;
	opts.sample_type = PERF_SAMPLE_CALLCHAIN;
	opts.flags = AP_SAMPLER_TASKS;
	opts.wakeup_events = 1;
	s = open_sampler("cpu-clock", &opts);
	ASSERT(s);
	a = &fake.events[handle_of(s, 0, 0)].attr;
	EXPECT_EQ(a->sample_freq, 50);
	EXPECT(a->sample_type & PERF_SAMPLE_CALLCHAIN);
	EXPECT(a->mmap && a->mmap2 && a->comm && a->comm_exec && a->task);
	EXPECT_EQ(a->wakeup_events, 1);
	ap_sampler_close(s);
	opts.flags |= AP_SAMPLER_OVERWRITE;
	EXPECT(!open_sampler("cpu-clock", &opts));
	EXPECT_CONTAINS(err.why, "would be overwritten");
	opts.flags = AP_SAMPLER_OVERWRITE;
	s = open_sampler("cpu-clock", &opts);
	ASSERT(s);
	EXPECT(fake.events[handle_of(s, 0, 0)].attr.write_backward);
	ap_sampler_close(s);
	opts.period = 7;
	EXPECT(!open_sampler("cpu-clock", &opts));
	EXPECT_CONTAINS(err.why, "exclude each other");
	/* The leader samples and brings the others' counts. */
	opts = (struct ap_sampler_opts){.size = sizeof(opts), .period = 7};
	s = open_sampler("{page-faults,task-clock}:S", &opts);
	ASSERT(s);
	a = &fake.events[handle_of(s, 0, 0)].attr;
	EXPECT(a->sample_type & PERF_SAMPLE_READ);
	EXPECT(a->read_format & PERF_FORMAT_GROUP);
	EXPECT_EQ(a->sample_period, 7);
	EXPECT_EQ(fake.events[handle_of(s, 1, 0)].attr.sample_period, 0);
	ap_sampler_close(s);
	ap_machine_free(m);
}

/* The limit is for all buffers together: what would do is what all of them can have. */
TEST(a_sampler_at_the_limit)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts), .pages = 64};
	struct ap_sampler *s;

	fake = (struct fake){.limit = 40 * FAKE_PAGE};
	m = fake_machine(&fake);
	EXPECT(!open_sampler("page-faults", &opts));
	EXPECT_EQ(err.code, -EPERM);
	EXPECT_CONTAINS(err.why, "64 pages (256 kB) for each of 2 buffers");
	EXPECT_CONTAINS(err.remedy, "take at most 16 pages");
	EXPECT_EQ(fake.mapped, 0);
	opts.flags = AP_SAMPLER_SHRINK;
	s = open_sampler("page-faults", &opts);
	ASSERT(s);
	EXPECT_EQ(ap_sampler_pages(s), 16);
	ap_sampler_close(s);
	opts = (struct ap_sampler_opts){.size = sizeof(opts)};
	s = open_sampler("page-faults", &opts);
	ASSERT(s);
	EXPECT_EQ(ap_sampler_pages(s), 16);
	ap_sampler_close(s);
	fake.limit = 3 * FAKE_PAGE;
	EXPECT(!open_sampler("page-faults", &opts));
	EXPECT_CONTAINS(err.remedy, "unmap other events");
	EXPECT_EQ(fake.mapped, 0);
	ap_machine_free(m);
}

TEST(a_sampler_that_overwrites)
{
	struct ap_sampler_opts opts = {
		.size = sizeof(opts), .pages = 1, .flags = AP_SAMPLER_OVERWRITE};
	struct ap_record sample = {.type = PERF_RECORD_SAMPLE};
	struct ap_sampler *s;
	u64 time = 0, oldest;

	fake = (struct fake){0};
	m = fake_machine(&fake);
	s = open_sampler("page-faults", &opts);
	ASSERT(s);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 1000; i++) {
			sample.id.time = ++time;
			fake_write(&fake, handle_of(s, 0, time % 2), &sample);
		}
		EXPECT_EQ(ap_sampler_snapshot(s, &err), 0);
		/* 40 bytes each: a page holds the last 102. */
		for (oldest = time - 2 * 102 + 1; oldest <= time; oldest++) {
			ASSERT(ap_sampler_next(s, &rec, &err) == 1);
			EXPECT_EQ(rec.id.time, oldest);
		}
		EXPECT_EQ(ap_sampler_next(s, &rec, &err), 0);
	}
	EXPECT(!fake.events[handle_of(s, 0, 0)].paused);
	ap_sampler_close(s);
	s = open_sampler("page-faults", NULL);
	EXPECT_EQ(ap_sampler_snapshot(s, &err), -EINVAL);
	ap_sampler_close(s);
	ap_machine_free(m);
}
