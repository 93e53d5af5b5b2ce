/*
 * Ring buffers, written by a fake kernel: wrap, loss, several events in one, snapshots of backward
 * ones, the limit for locked memory; and memory in which nothing is as it should be.
 */
#include "unit/lib/fake-ring.h"
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "lib/sample/ring-priv.h"

static struct fake fake;
static struct ap_machine *m;
static struct ap_error err;
static struct ap_record rec;

static void begin(void)
{
	fake = (struct fake){0};
	m = fake_machine(&fake);
}

static struct ap_event *open_event(struct pe_attr a, int cpu)
{
	struct ap_place place = {.tid = 0, .cpu = cpu};
	struct ap_event_opts opts = {.size = sizeof(opts), .place = &place};
	struct ap_event *e = NULL;

	a.type = PERF_TYPE_SOFTWARE;
	a.config = PERF_COUNT_SW_DUMMY;
	a.size = sizeof(a);
	if (ap_event_open(&e, m, (struct perf_event_attr *)&a, &opts, &err))
		TEST_FAIL("%s", err.why);
	return e;
}

static struct ap_ring *map_ring(struct ap_event *e, unsigned int pages)
{
	struct ap_ring_opts opts = {.size = sizeof(opts), .pages = pages};
	struct ap_ring *r = NULL;

	if (ap_ring_map(&r, e, &opts, &err))
		TEST_FAIL("%s", err.why);
	return r;
}

/* Samples of 16 bytes that count. */
static const struct pe_attr ips = {.sample_type = PERF_SAMPLE_IP, .sample_period = 1};

static bool write_ip(const struct ap_event *e, u64 ip)
{
	struct ap_record sample = {.type = PERF_RECORD_SAMPLE, .sample = {.ip = ip}};

	return fake_write(&fake, ap_event_fd(e), &sample);
}

/* 4096 bytes hold 255 of them; they are read while others come, round and round [RING-04]. */
TEST(round_and_round)
{
	u64 written = 0, taken = 0;
	struct ap_event *e;
	struct ap_ring *r;
	int n;

	begin();
	e = open_event(ips, -1);
	r = map_ring(e, 1);
	EXPECT_EQ(ap_ring_pages(r), 1);
	for (unsigned int round = 0; round < 50; round++) {
		for (unsigned int i = 0; i < round * 7 % 256; i++)
			written += write_ip(e, written);
		EXPECT_EQ(ap_ring_ready(r), written != taken);
		while ((n = ap_ring_next(r, &rec, &err)) > 0) {
			EXPECT_EQ(rec.type, PERF_RECORD_SAMPLE);
			EXPECT_EQ(rec.sample.ip, taken++);
		}
		EXPECT_EQ(n, 0);
		EXPECT_EQ(taken, written);
	}
	EXPECT(written > 5000);
	EXPECT_EQ(ap_ring_lost(r), 0);
	EXPECT(ap_ring_event(r, &rec) == e);
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* [RING-04] A record that goes round the end comes in one piece, wherever its header is. */
TEST(records_wrap)
{
	struct pe_attr a = {.sample_type = PERF_SAMPLE_CALLCHAIN, .sample_period = 1};
	struct ap_record chain = {.type = PERF_RECORD_SAMPLE};
	u64 ips_[40];
	struct ap_event *e;
	struct ap_ring *r;

	begin();
	e = open_event(a, -1);
	r = map_ring(e, 1);
	for (unsigned int i = 0; i < 40; i++)
		ips_[i] = 1000 + i;
	for (unsigned int i = 0; i < 4096; i++) {
		chain.sample.callchain.nr = i % 40;
		chain.sample.callchain.ips = ips_;
		ASSERT(fake_write(&fake, ap_event_fd(e), &chain));
		ASSERT(ap_ring_next(r, &rec, &err) == 1);
		EXPECT_EQ(rec.sample.callchain.nr, i % 40);
		EXPECT(memcmp(rec.sample.callchain.ips, ips_, i % 40 * 8) == 0);
		ASSERT(ap_ring_next(r, &rec, &err) == 0);
	}
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* [RING-05, RING-06, PAGE-18] */
TEST(what_finds_no_room_is_counted)
{
	struct ap_event *e;
	struct ap_ring *r;
	unsigned int i = 0;

	begin();
	e = open_event(ips, -1);
	r = map_ring(e, 1);
	while (write_ip(e, i))
		i++;
	EXPECT_EQ(i, 255);
	EXPECT(!write_ip(e, 0));
	/* One record is taken, but room is given back in larger pieces. */
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT(!write_ip(e, 0));
	for (i = 1; i < 255; i++)
		EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	EXPECT_EQ(ap_ring_lost(r), 0);
	EXPECT(write_ip(e, 77));
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT_EQ(rec.type, PERF_RECORD_LOST);
	EXPECT_EQ(rec.lost.lost, 3);
	EXPECT_EQ(ap_ring_lost(r), 3);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT_EQ(rec.sample.ip, 77);
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* What is written while somebody reads belongs to the next round, or reading would never end. */
TEST(a_round_ends)
{
	struct ap_event *e;
	struct ap_ring *r;

	begin();
	e = open_event(ips, -1);
	r = map_ring(e, 1);
	write_ip(e, 1);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	write_ip(e, 2);
	EXPECT(ap_ring_ready(r));
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	EXPECT(ap_ring_ready(r));
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT_EQ(rec.sample.ip, 2);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	EXPECT(!ap_ring_ready(r));
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* [IOC-06] */
TEST(several_events_in_one_buffer)
{
	struct pe_attr plain = ips, addr = ips, elsewhere = ips;
	struct ap_record sample = {.type = PERF_RECORD_SAMPLE, .sample = {.ip = 5, .addr = 6}};
	struct ap_event *a, *b, *c;
	struct ap_ring *r;

	begin();
	a = open_event(plain, -1);
	addr.sample_type |= PERF_SAMPLE_ADDR;
	b = open_event(addr, -1);
	c = open_event(elsewhere, 1);
	r = map_ring(a, 1);
	EXPECT_EQ(ap_ring_add(r, b, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "laid out differently from those of dummy");
	EXPECT_CONTAINS(err.remedy, "PERF_SAMPLE_IDENTIFIER");
	EXPECT_EQ(ap_ring_add(r, c, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "same CPU");
	ap_ring_unmap(r);
	ap_event_close(a);
	ap_event_close(b);
	ap_event_close(c);

	plain.sample_type |= PERF_SAMPLE_IDENTIFIER;
	addr.sample_type |= PERF_SAMPLE_IDENTIFIER;
	plain.sample_id_all = addr.sample_id_all = 1;
	a = open_event(plain, -1);
	b = open_event(addr, -1);
	c = open_event(addr, -1);
	r = map_ring(a, 1);
	EXPECT_EQ(ap_ring_add(r, b, &err), 0);
	EXPECT_EQ(ap_ring_add(r, c, &err), 0);
	fake_write(&fake, ap_event_fd(b), &sample);
	fake_write(&fake, ap_event_fd(a), &sample);
	fake_write(&fake, ap_event_fd(c), &sample);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT(ap_ring_event(r, &rec) == b);
	EXPECT_EQ(rec.sample.addr, 6);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT(ap_ring_event(r, &rec) == a);
	EXPECT_EQ(rec.sample.ip, 5);
	EXPECT_EQ(rec.sample.addr, 0);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT(ap_ring_event(r, &rec) == c);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	fake.events[ap_event_fd(c)].id = 4;
	fake_write(&fake, ap_event_fd(c), &sample);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), -EBADMSG);
	EXPECT_CONTAINS(err.why, "event 4, which does not write into it");
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	ap_ring_unmap(r);
	ap_event_close(a);
	ap_event_close(b);
	ap_event_close(c);
	ap_machine_free(m);
}

/* [RING-08] Each record once, the oldest first, as long as it was not overwritten. */
TEST(snapshots)
{
	struct pe_attr a = ips;
	struct ap_event *e;
	struct ap_ring *r;
	u64 next = 0;

	begin();
	a.write_backward = 1;
	e = open_event(a, -1);
	r = map_ring(e, 1);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	for (unsigned int batch = 0; batch < 700; batch += 37) {
		u64 oldest;

		for (unsigned int i = 0; i < batch; i++)
			EXPECT(write_ip(e, next++));
		oldest = next - (batch < 256 ? batch : 256);
		EXPECT_EQ(ap_ring_snapshot(r, &err), 0);
		EXPECT_EQ(ap_ring_ready(r), batch > 0);
		write_ip(e, next++); /* is not in it */
		for (; oldest < next - 1; oldest++) {
			ASSERT(ap_ring_next(r, &rec, &err) == 1);
			EXPECT_EQ(rec.sample.ip, oldest);
		}
		EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
		EXPECT_EQ(ap_ring_snapshot(r, &err), 0);
		EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
		EXPECT_EQ(rec.sample.ip, next - 1);
		EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	}
	EXPECT(!fake.events[ap_event_fd(e)].paused);
	ap_ring_unmap(r);
	ap_event_close(e);
	e = open_event(ips, -1);
	r = map_ring(e, 1);
	EXPECT_EQ(ap_ring_snapshot(r, &err), -EINVAL);
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* Records of different sizes: the oldest of them is overwritten in part and must not be given. */
TEST(half_of_a_record_is_none)
{
	struct pe_attr a = {
		.sample_type = PERF_SAMPLE_CALLCHAIN, .sample_period = 1, .write_backward = 1};
	struct ap_record chain = {.type = PERF_RECORD_SAMPLE};
	u64 number = 0, expected = 0;
	struct ap_event *e;
	struct ap_ring *r;

	begin();
	e = open_event(a, -1);
	r = map_ring(e, 1);
	for (unsigned int round = 0; round < 200; round++) {
		size_t bytes = 0;

		for (unsigned int i = 0; i < 300; i++) {
			u64 words[8] = {number, number, number, number, number, number, number};

			chain.sample.callchain.nr = 1 + number % 7;
			chain.sample.callchain.ips = words;
			number++;
			ASSERT(fake_write(&fake, ap_event_fd(e), &chain));
		}
		/* The newest that fit, each of 24 to 72 bytes. */
		for (expected = number; bytes + 16 + (1 + (expected - 1) % 7) * 8 <= 4096;
		     expected--)
			bytes += 16 + (1 + (expected - 1) % 7) * 8;
		ASSERT(ap_ring_snapshot(r, &err) == 0);
		for (; expected < number; expected++) {
			ASSERT(ap_ring_next(r, &rec, &err) == 1);
			EXPECT_EQ(rec.sample.callchain.nr, 1 + expected % 7);
			EXPECT_EQ(rec.sample.callchain.ips[0], expected);
		}
		EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	}
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* A head that is no multiple of 8 is none of the kernel's, and puts headers round the end. */
TEST(snapshots_of_broken_memory)
{
	struct pe_attr a = ips;
	struct ap_event *e;
	struct ap_ring *r;

	begin();
	a.write_backward = 1;
	e = open_event(a, -1);
	r = map_ring(e, 1);
	for (u64 head = 1; head < 4097 * 4097; head += 4097) {
		int n;

		fake_page(&fake, ap_event_fd(e))->data_head = -head;
		memset((u8 *)fake_page(&fake, ap_event_fd(e)) + FAKE_PAGE, (int)head, FAKE_PAGE);
		EXPECT_EQ(ap_ring_snapshot(r, &err), 0);
		while ((n = ap_ring_next(r, &rec, &err)))
			EXPECT(n == 1 || n == -EBADMSG);
	}
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

/* [RING-01, RING-13] */
TEST(the_limit_for_locked_memory)
{
	struct ap_ring_opts opts = {.size = sizeof(opts), .pages = 64};
	struct ap_event *e, *other;
	struct ap_ring *r = NULL;

	begin();
	fake.limit = 20 * FAKE_PAGE;
	e = open_event(ips, -1);
	other = open_event(ips, -1);
	EXPECT_EQ(ap_ring_map(&r, e, &opts, &err), -EPERM);
	EXPECT_EQ(err.cause, AP_CAUSE_MLOCK);
	EXPECT_CONTAINS(err.why, "64 pages (256 kB) for a buffer");
	EXPECT_CONTAINS(err.why, "kernel.perf_event_mlock_kb");
	EXPECT_CONTAINS(err.remedy, "take at most 16 pages (64 kB)");
	EXPECT_EQ(fake.mapped, 0);
	opts.flags = AP_RING_SHRINK;
	ASSERT(ap_ring_map(&r, e, &opts, &err) == 0);
	EXPECT_EQ(ap_ring_pages(r), 16);
	/* What the kernel's default would be is nobody's wish. */
	ap_ring_unmap(r);
	ASSERT(ap_ring_map(&r, e, NULL, &err) == 0);
	EXPECT_EQ(ap_ring_pages(r), 16);
	fake.limit = 18 * FAKE_PAGE;
	EXPECT_EQ(ap_ring_map(&r, other, NULL, &err), -EPERM);
	EXPECT_CONTAINS(err.remedy, "unmap other events");
	ap_ring_unmap(r);
	fake.limit = 0;
	ASSERT(ap_ring_map(&r, e, NULL, &err) == 0);
	EXPECT_EQ(ap_ring_pages(r), 128);
	EXPECT_EQ(ap_ring_map(&r, e, NULL, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "has a buffer already");
	opts.pages = 3;
	EXPECT_EQ(ap_ring_map(&r, other, &opts, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "power of two");
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_event_close(other);
	EXPECT_EQ(fake.mapped, 0);
	ap_machine_free(m);
}

TEST(who_cannot_have_a_buffer)
{
	struct pe_attr a = ips;
	struct ap_event *e;
	struct ap_ring *r;

	begin();
	a.inherit = 1;
	e = open_event(a, -1);
	EXPECT_EQ(ap_ring_map(&r, e, NULL, &err), -EINVAL);
	EXPECT_CONTAINS(err.remedy, "open it for each CPU");
	ap_event_close(e);
	/* A user page alone makes way, and comes again as part of the buffer. */
	e = open_event(ips, -1);
	EXPECT_EQ(ap_event_map_self(e, &err), 0);
	ASSERT(ap_ring_map(&r, e, NULL, &err) == 0);
	EXPECT_EQ(ap_event_map_self(e, &err), 0);
	ap_ring_unmap(r);
	EXPECT_EQ(ap_event_map_self(e, &err), 0);
	ap_event_close(e);
	EXPECT_EQ(fake.mapped, 0);
	ap_machine_free(m);
}

/* Heads that cannot be, sizes that cannot be: a reason, and then it goes on. */
TEST(broken_memory)
{
	static const u64 zeros[2], long_one[2] = {PERF_RECORD_SAMPLE | 4096ull << 48};
	struct perf_event_mmap_page *page;
	struct ap_event *e;
	struct ap_ring *r;

	begin();
	e = open_event(ips, 3);
	r = map_ring(e, 1);
	page = fake_page(&fake, ap_event_fd(e));
	write_ip(e, 1);
	fake_write_bytes(&fake, ap_event_fd(e), zeros, sizeof(zeros));
	write_ip(e, 2);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), -EBADMSG);
	EXPECT_STREQ(err.why,
		     "the buffer of dummy on CPU 3: 32 bytes in it are no records and were "
		     "passed over");
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	fake_write_bytes(&fake, ap_event_fd(e), long_one, sizeof(long_one));
	EXPECT_EQ(ap_ring_next(r, &rec, &err), -EBADMSG);
	fake_write_bytes(&fake, ap_event_fd(e), zeros, 4); /* not even a header */
	EXPECT_EQ(ap_ring_next(r, &rec, &err), -EBADMSG);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	page->data_head += 4097;
	EXPECT(ap_ring_ready(r));
	EXPECT_EQ(ap_ring_next(r, &rec, &err), -EBADMSG);
	EXPECT_CONTAINS(err.why, "head is not within it");
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	page->data_head -= 8;
	EXPECT_EQ(ap_ring_next(r, &rec, &err), -EBADMSG);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 0);
	fake.events[ap_event_fd(e)].head = page->data_head = page->data_tail;
	write_ip(e, 3);
	EXPECT_EQ(ap_ring_next(r, &rec, &err), 1);
	EXPECT_EQ(rec.sample.ip, 3);
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

struct scribbler {
	u8 *map;
	bool stop;
};

/* Changes head and records all the time, as fast as it can. */
static void *scribble(void *data)
{
	struct scribbler *s = data;
	u64 roll = 88172645463325252ull, head = 0;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		roll ^= roll << 13;
		roll ^= roll >> 7;
		roll ^= roll << 17;
		__atomic_store_n(&((volatile u64 *)s->map)[(FAKE_PAGE + roll % FAKE_PAGE) / 8],
				 roll & 1 ? (u64)(roll >> 60) << 51 | 9 : roll, __ATOMIC_RELAXED);
		head += roll >> 50 & 0xff8;
		__atomic_store_n(&((struct perf_event_mmap_page *)s->map)->data_head, head,
				 __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Whatever others write meanwhile, what was checked stays as it was checked. */
static int add_up(const void *records, size_t len, void *data)
{
	(void)records;
	*(size_t *)data += len;
	return 0;
}

/* The head is 64 bits wide, and a writer that lies may bring it to where they end. */
TEST(a_head_that_begins_anew)
{
	struct perf_event_mmap_page *page;
	struct ap_event *e;
	struct ap_ring *r;
	size_t len = 0;

	begin();
	e = open_event(ips, -1);
	r = map_ring(e, 1);
	page = fake_page(&fake, ap_event_fd(e));
	fake.events[ap_event_fd(e)].head = page->data_head = -16ull;
	EXPECT_EQ(ap__ring_drain(r, add_up, &len), -EBADMSG);
	EXPECT(write_ip(e, 1) && write_ip(e, 2) && write_ip(e, 3));
	EXPECT_EQ(page->data_head, 32);
	EXPECT_EQ(ap__ring_drain(r, add_up, &len), 0);
	EXPECT_EQ(len, 48);
	EXPECT(!ap_ring_ready(r));
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}

TEST(memory_that_changes_under_the_reader)
{
	struct pe_attr a = {.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
			    .sample_id_all = 1,
			    .sample_period = 1};
	unsigned int refused = 0;
	struct scribbler s = {0};
	struct ap_event *e;
	struct ap_ring *r;
	pthread_t thread;

	begin();
	e = open_event(a, -1);
	r = map_ring(e, 1);
	s.map = (u8 *)fake_page(&fake, ap_event_fd(e));
	ASSERT(pthread_create(&thread, NULL, scribble, &s) == 0);
	while (!ap_ring_ready(r)) /* the thread has not begun */
		sched_yield();
	for (unsigned int i = 0; i < 200000; i++) {
		int n = ap_ring_next(r, &rec, &err);
		volatile u64 sum = 0;

		(void)sum; /* what counts is that the bytes are read */
		EXPECT(n == 1 || n == 0 || n == -EBADMSG);
		refused += n < 0;
		if (n < 1 || !rec.known)
			continue;
		if (rec.type == PERF_RECORD_SAMPLE)
			for (u64 j = 0; j < rec.sample.callchain.nr; j++)
				sum += rec.sample.callchain.ips[j];
		if (rec.type == PERF_RECORD_COMM)
			sum += strlen(rec.comm.comm);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT(refused > 0);
	ap_ring_unmap(r);
	ap_event_close(e);
	ap_machine_free(m);
}
