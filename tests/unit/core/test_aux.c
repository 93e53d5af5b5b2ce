/*
 * The AUX area, on a driver that traces: its hardware is the test, which writes bytes between the
 * driver's start() and stop() [AUX-01..07].
 */
#include "unit/test.h"

#include <poll.h>
#include <string.h>

#include "core/core-priv.h"
#include "unit/core/fake.h"

#define PAGE 4096ul
/* User page and one data page, then the area. */
#define AREA_AT (2 * PAGE)

static struct fake *f;

/* One event at a time traces; what it has written since start() is told at stop(). */
static struct tracer {
	struct pmu pmu;
	struct aux_output out;
	u64 written, size;
	u64 cut; /* flags of what follows */
	u32 sets, frees, refused;
	bool no_aux; /* setup_aux() fails */
	bool on;
	bool overwrite;
} tracer;

static int tracer_init(struct event *event)
{
	return event->attr.type == (u32)event->pmu->type ? 0 : -ENOENT;
}

static void tracer_start(struct event *event, u32 flags)
{
	(void)flags;
	event->hw.state = 0;
	tracer.written = 0;
	tracer.on = aux_output_begin(&tracer.out, event) == &tracer;
	tracer.refused += !tracer.on;
}

static void tracer_stop(struct event *event, u32 flags)
{
	(void)flags;
	if (event->hw.state & HW_STOPPED)
		return;
	event->hw.state = HW_STOPPED | HW_UPTODATE;
	if (!tracer.on)
		return;
	tracer.on = false;
	tracer.out.flags = tracer.cut;
	if (tracer.overwrite)
		tracer.out.head += tracer.written;
	aux_output_end(&tracer.out, tracer.written);
}

static int tracer_add(struct event *event, u32 flags)
{
	event->hw.state = HW_STOPPED;
	if (flags & PMU_EF_START)
		tracer_start(event, 0);
	return 0;
}

static void tracer_del(struct event *event, u32 flags)
{
	tracer_stop(event, flags);
}

static void tracer_read(struct event *event)
{
	(void)event;
}

static void *tracer_setup(struct event *event, void *memory, u64 size, bool overwrite)
{
	(void)event;
	tracer.sets++;
	tracer.size = size;
	tracer.overwrite = overwrite;
	memset(memory, 0, size);
	return tracer.no_aux ? NULL : &tracer;
}

static void tracer_free(void *aux)
{
	EXPECT(aux == &tracer);
	tracer.frees++;
}

/* All that is there of what it is asked for, the newest. */
static u64 tracer_snapshot(struct event *event, void *to, u64 size)
{
	u64 end = tracer.out.head + tracer.written;
	u8 *bytes = to;

	EXPECT(tracer.on && event == tracer.out.event);
	size = min_u64(size, end);
	for (u64 i = 0; i < size; i++)
		bytes[i] = tracer.out.area[(end - size + i) % tracer.size];
	return size;
}

static void set_up(void)
{
	f = fake_new(4);
	tracer = (struct tracer){
		.pmu =
			{
				.name = "tracer",
				.type = -1,
				.class = PMU_HARDWARE,
				.caps = PMU_CAP_ITRACE,
				.event_init = tracer_init,
				.add = tracer_add,
				.del = tracer_del,
				.start = tracer_start,
				.stop = tracer_stop,
				.read = tracer_read,
				.setup_aux = tracer_setup,
				.free_aux = tracer_free,
				.snapshot_aux = tracer_snapshot,
			},
	};
	EXPECT_EQ(pmu_register(f->core, &tracer.pmu), 0);
}

static struct pe_attr tracing(void)
{
	struct pe_attr attr = fake_attr();

	attr.type = (u32)tracer.pmu.type;
	attr.config = 0;
	attr.disabled = 1;
	return attr;
}

static int map_area_at(int fd, u64 offset, u64 pages, bool writable)
{
	const struct map_call call = {.caller = fake_task(f, 100)->task,
				      .len = pages * PAGE,
				      .offset = offset,
				      .shared = true,
				      .writable = writable};

	return event_map(fake_event(f, fd), &call);
}

static int map_area(int fd, u64 pages, bool writable)
{
	fake_page(f, fd)->aux_offset = AREA_AT;
	fake_page(f, fd)->aux_size = pages * PAGE;
	return map_area_at(fd, AREA_AT, pages, writable);
}

/* An event with data and an area of so many pages. */
static int open_tracing(const struct pe_attr *attr, u64 pages, bool writable)
{
	int fd = fake_open(f, attr, 0, -1, -1);

	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	EXPECT_EQ(map_area(fd, pages, writable), 0);
	return fd;
}

/* The hardware traces @n bytes, all of them @value; as many as there is room for. */
static u64 trace(u64 n, u8 value)
{
	u64 room = tracer.overwrite ? n : tracer.out.room - tracer.written;

	EXPECT(tracer.on);
	n = min_u64(n, room);
	for (u64 i = 0; i < n; i++)
		tracer.out.area[(tracer.out.head + tracer.written + i) % tracer.size] = value;
	tracer.written += n;
	return n;
}

static void turn(int fd, u64 n, u8 value)
{
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(trace(n, value), n);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
}

static void expect_aux(int fd, u64 offset, u64 size, u64 flags)
{
	const struct ap_record *rec = fake_take_type(f, fd, PERF_RECORD_AUX);

	EXPECT(rec);
	EXPECT_EQ(rec->aux.aux_offset, offset);
	EXPECT_EQ(rec->aux.aux_size, size);
	EXPECT_EQ(rec->aux.flags, flags);
}

/* All ITRACE_START there are; the driver has not said that its trace began. */
static void skip_starts(int fd)
{
	EXPECT(fake_take_type(f, fd, PERF_RECORD_ITRACE_START));
}

/* [AUX-01, AUX-02, AUX-07, PAGE-20] */
TEST(where_the_area_lies)
{
	struct pe_attr attr, none;
	int fd, other;

	set_up();
	attr = tracing();
	none = fake_attr();
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_REFUSED(f, map_area_at(fd, AREA_AT, 4, true), -EINVAL, MAP_AUX_FIRST);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	EXPECT_REFUSED(f, map_area_at(fd, AREA_AT, 4, true), -EINVAL, MAP_AUX_WORDS);
	EXPECT_REFUSED(f, map_area(fd, 3, true), -EINVAL, MAP_AUX_WORDS);
	fake_page(f, fd)->aux_offset = PAGE;
	fake_page(f, fd)->aux_size = PAGE;
	EXPECT_REFUSED(f, map_area_at(fd, PAGE, 1, true), -EINVAL, MAP_AUX_WORDS);
	tracer.no_aux = true;
	EXPECT_REFUSED(f, map_area(fd, 4, true), -ENOMEM, NO_MEMORY);
	EXPECT_EQ(f->memory, 2 * PAGE);
	tracer.no_aux = false;
	EXPECT_EQ(map_area(fd, 4, true), 0);
	EXPECT_EQ(f->memory, 6 * PAGE);
	EXPECT_EQ(tracer.sets, 2);
	EXPECT(event_aux_memory(fake_event(f, fd)));

	/* Once more, but nowhere else. */
	EXPECT_EQ(map_area_at(fd, AREA_AT, 4, true), 0);
	EXPECT_EQ(tracer.sets, 2);
	EXPECT_REFUSED(f, map_area(fd, 2, true), -EINVAL, MAP_AUX_OTHER);
	fake_page(f, fd)->aux_offset = 4 * PAGE;
	fake_page(f, fd)->aux_size = 4 * PAGE;
	EXPECT_REFUSED(f, map_area_at(fd, 4 * PAGE, 4, true), -EINVAL, MAP_AUX_OTHER);

	other = fake_open(f, &none, 0, -1, -1);
	EXPECT_EQ(fake_map(f, other, 2, true), 0);
	EXPECT_REFUSED(f, map_area(other, 4, true), -EOPNOTSUPP, MAP_NO_AUX);

	event_unmap_aux(fake_event(f, fd));
	EXPECT_EQ(tracer.frees, 0);
	event_unmap_aux(fake_event(f, fd));
	EXPECT_EQ(tracer.frees, 1);
	event_unmap(fake_event(f, fd));
	event_unmap(fake_event(f, other));
	EXPECT_EQ(f->memory, 0);
	fake_free(f);
}

/* The data's pages and the area's are one account. [AUX-03] */
TEST(locked_memory)
{
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	/* 2 CPUs of 16 KB: eight pages. */
	EXPECT_EQ(core_set_mlock_kb(f->core, 16), 0);
	f->mlock_limit = 0;
	f->ipc_lock = false;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	EXPECT_REFUSED(f, map_area(fd, 8, true), -EPERM, BUFFER_LIMIT);
	EXPECT_EQ(map_area(fd, 4, true), 0);
	event_unmap_aux(fake_event(f, fd));
	/* What it took is there again. */
	EXPECT_EQ(map_area(fd, 4, true), 0);
	event_unmap(fake_event(f, fd));
	/* The last one, without a word about the area. */
	event_unmap(fake_event(f, fd));
	EXPECT_EQ(tracer.frees, 2);
	EXPECT_EQ(f->memory, 0);
	fake_free(f);
}

/* [REC-10, REC-11, REC-20, AUX-06, ATTR-51] */
TEST(what_is_told)
{
	struct perf_event_mmap_page *page;
	const struct ap_record *rec;
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	attr.aux_watermark = 1000;
	fd = open_tracing(&attr, 4, true);
	page = fake_page(f, fd);
	EXPECT_EQ(page->aux_head, 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	rec = fake_take_type(f, fd, PERF_RECORD_ITRACE_START);
	EXPECT(rec && rec->itrace_start.pid == 100 && rec->itrace_start.tid == 100);
	event_itrace_started(fake_event(f, fd));
	aux_output_hw_id(fake_event(f, fd), 0x1234567890);
	rec = fake_take_type(f, fd, PERF_RECORD_AUX_OUTPUT_HW_ID);
	EXPECT(rec && rec->aux_output_hw_id.hw_id == 0x1234567890);
	EXPECT_EQ(tracer.out.wakeup, 1000);
	f->wakes = 0;
	EXPECT_EQ(trace(999, 1), 999);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	expect_aux(fd, 0, 999, 0);
	EXPECT_EQ(page->aux_head, 999);
	EXPECT_EQ(f->wakes, 0);
	/* Nothing new is told of nothing. */
	turn(fd, 0, 2);
	EXPECT(!fake_take(f, fd));
	turn(fd, 2500, 2);
	expect_aux(fd, 999, 2500, 0);
	EXPECT_EQ(page->aux_head, 3499);
	EXPECT_EQ(f->wakes, 1);
	EXPECT_EQ(event_poll(fake_event(f, fd)), POLLIN | POLLRDNORM);
	/* The next wakeup is at a multiple of the watermark. */
	turn(fd, 500, 3);
	EXPECT_EQ(f->wakes, 1);
	turn(fd, 1, 3);
	EXPECT_EQ(f->wakes, 2);
	event_unmap_aux(fake_event(f, fd));
	event_unmap(fake_event(f, fd));
	fake_free(f);
}

/* [ATTR-51, AUX-06] */
TEST(half_of_it_wakes)
{
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	fd = open_tracing(&attr, 4, true);
	f->wakes = 0;
	turn(fd, 2 * PAGE - 1, 1);
	EXPECT_EQ(f->wakes, 0);
	turn(fd, 1, 1);
	EXPECT_EQ(f->wakes, 1);
	fake_free(f);
}

/* [AUX-04] */
TEST(full)
{
	struct perf_event_mmap_page *page;
	struct event *event;
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	fd = open_tracing(&attr, 1, true);
	event = fake_event(f, fd);
	page = fake_page(f, fd);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	skip_starts(fd);
	event_itrace_started(event);
	/* A byte is never used, so that full is not empty. */
	EXPECT_EQ(trace(2 * PAGE, 7), PAGE - 1);
	tracer.cut = PERF_AUX_FLAG_TRUNCATED;
	f->wakes = 0;
	tracer_stop(event, PMU_EF_UPDATE);
	core_settle(f->core);
	EXPECT_EQ(event->state, EVENT_OFF);
	expect_aux(fd, 0, PAGE - 1, PERF_AUX_FLAG_TRUNCATED);
	EXPECT_EQ(f->wakes, 1);
	tracer.cut = 0;

	/* Without room it does not begin, and goes off again. */
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(tracer.refused, 1);
	EXPECT_EQ(event->state, EVENT_OFF);
	EXPECT_EQ(f->wakes, 2);
	EXPECT(!fake_take(f, fd));

	/* The reader has taken some, and it goes on there, around the end. */
	page->aux_tail = 100;
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(event->state, EVENT_ACTIVE);
	EXPECT_EQ(tracer.out.room, 100);
	EXPECT_EQ(trace(50, 8), 50);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	expect_aux(fd, PAGE - 1, 50, 0);
	EXPECT_EQ(tracer.out.area[PAGE - 1], 8);
	EXPECT_EQ(tracer.out.area[48], 8);
	EXPECT_EQ(tracer.out.area[49], 7);
	fake_free(f);
}

/* The reader hears of it, whatever it wants to be woken for. [AUX-04, AUX-06] */
TEST(cut_off_early)
{
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	attr.aux_watermark = 1 << 30;
	fd = open_tracing(&attr, 1, true);
	f->wakes = 0;
	tracer.cut = PERF_AUX_FLAG_TRUNCATED;
	turn(fd, 10, 1);
	EXPECT_EQ(f->wakes, 1);
	fake_free(f);
}

/* Whatever the reader writes there, nothing is written outside of the area. [AUX-04] */
TEST(lies)
{
	static const u64 tails[] = {0,    1,          5,     4095,         4096,
				    4097, 1ull << 63, ~0ull, ~0ull - 4095, ~0ull - 4000};
	struct pe_attr attr;
	u64 head;
	int fd;

	set_up();
	attr = tracing();
	fd = open_tracing(&attr, 1, true);
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		fake_page(f, fd)->aux_tail = tails[i];
		fake_page(f, fd)->aux_head = 12345;
		fake_page(f, fd)->aux_size = ~0ull;
		fake_page(f, fd)->aux_offset = 3;
		EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
		/* What is in front of our head was never written. */
		head = fake_event(f, fd)->buffer->aux.head;
		EXPECT_EQ(tracer.on, head - tails[i] < PAGE - 1);
		if (tracer.on) {
			EXPECT_EQ(tracer.out.room, PAGE - 1 - (head - tails[i]));
			(void)trace(10, 1);
		}
		EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		core_check(f->core);
	}
	fake_free(f);
}

TEST(skipping)
{
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	attr.aux_watermark = 100;
	fd = open_tracing(&attr, 1, true);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	skip_starts(fd);
	f->wakes = 0;
	EXPECT_EQ(aux_output_skip(&tracer.out, PAGE), -ENOSPC);
	EXPECT_EQ(aux_output_skip(&tracer.out, 150), 0);
	EXPECT_EQ(f->wakes, 1);
	EXPECT_EQ(fake_page(f, fd)->aux_head, 150);
	EXPECT_EQ(tracer.out.head, 150);
	EXPECT_EQ(tracer.out.room, PAGE - 1 - 150);
	EXPECT_EQ(tracer.out.wakeup, 200);
	EXPECT_EQ(trace(8, 1), 8);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	expect_aux(fd, 150, 8, 0);
	fake_free(f);
}

/* [AUX-05, AUX-06] */
TEST(overwriting)
{
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	attr.aux_watermark = 10;
	fd = open_tracing(&attr, 1, false);
	EXPECT(tracer.overwrite);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	skip_starts(fd);
	event_itrace_started(fake_event(f, fd));
	f->wakes = 0;
	EXPECT_EQ(trace(3 * PAGE + 5, 9), 3 * PAGE + 5);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_page(f, fd)->aux_head, 3 * PAGE + 5);
	EXPECT_EQ(f->wakes, 0);
	expect_aux(fd, 3 * PAGE + 5, 3 * PAGE + 5, PERF_AUX_FLAG_OVERWRITE);
	/* That alone is no news. */
	turn(fd, 0, 1);
	EXPECT(!fake_take(f, fd));
	fake_free(f);
}

/* [AUX-01] */
TEST(unmapped_while_it_traces)
{
	struct event *event;
	struct pe_attr attr;
	int fd;

	set_up();
	attr = tracing();
	fd = open_tracing(&attr, 1, true);
	event = fake_event(f, fd);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	skip_starts(fd);
	EXPECT_EQ(trace(10, 1), 10);
	event_unmap_aux(event);
	EXPECT_EQ(tracer.frees, 1);
	EXPECT(!tracer.on && event->hw.state & HW_STOPPED);
	expect_aux(fd, 0, 10, 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(tracer.refused, 2);
	EXPECT_EQ(event->state, EVENT_ACTIVE);
	event_unmap(event);
	fake_free(f);
}

/* The next sample's piece of a trace. */
static struct ap_bytes sampled(int fd)
{
	const struct ap_record *rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);

	EXPECT(rec);
	return rec ? rec->sample.aux : (struct ap_bytes){0};
}

/* [SAMP-22, ATTR-53] */
TEST(a_piece_of_it_in_samples)
{
	struct pe_attr attr, member = fake_attr();
	struct ap_bytes aux;
	int fd, sampling;

	set_up();
	/* So that others may join its group. */
	tracer.pmu.class = PMU_SOFTWARE;
	attr = tracing();
	fd = open_tracing(&attr, 1, true);
	member.sample_period = 100;
	member.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_AUX;
	member.aux_sample_size = 30;
	member.disabled = 0;
	EXPECT_REFUSED(f, fake_open(f, &member, 0, -1, -1), -EINVAL, AUX_SAMPLE_GROUP);
	tracer.pmu.snapshot_aux = NULL;
	EXPECT_REFUSED(f, fake_open(f, &member, 0, -1, fd), -EINVAL, AUX_SAMPLE_GROUP);
	tracer.pmu.snapshot_aux = tracer_snapshot;
	sampling = fake_open(f, &member, 0, -1, fd);
	EXPECT(sampling >= 0);
	EXPECT_EQ(fake_map(f, sampling, 17, true), 0);

	/* Whole words, the last of which may be zeros; what was there last. */
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(trace(13, 7), 13);
	fake_advance(f, 100);
	aux = sampled(sampling);
	EXPECT_EQ(aux.len, 16);
	EXPECT(aux.bytes[0] == 7 && aux.bytes[12] == 7 && !aux.bytes[13] && !aux.bytes[15]);
	EXPECT_EQ(trace(20, 8), 20);
	fake_advance(f, 100);
	aux = sampled(sampling);
	EXPECT_EQ(aux.len, 24);
	EXPECT(aux.bytes[3] == 7 && aux.bytes[4] == 8 && aux.bytes[23] == 8);

	/* Without a tracer there is none. */
	event_unmap_aux(fake_event(f, fd));
	fake_advance(f, 100);
	EXPECT_EQ(sampled(sampling).len, 0);
	fake_close(f, fd);
	fake_advance(f, 100);
	event_unmap(fake_event(f, sampling));
	fake_close(f, sampling);
	fake_free(f);
}

/* [IOC-06] */
TEST(areas_of_two_pmus)
{
	struct pe_attr attr, other;
	int fd, to;

	set_up();
	attr = tracing();
	other = fake_attr();
	fd = fake_open(f, &attr, 0, -1, -1);
	to = fake_open(f, &other, 0, -1, -1);
	EXPECT_EQ(fake_map(f, to, 2, true), 0);
	f->hw.pmu.setup_aux = tracer_setup;
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_OUTPUT, (u64)to), -EINVAL,
		       OUTPUT_AUX);
	f->hw.pmu.setup_aux = NULL;
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_SET_OUTPUT, (u64)to), 0);
	fake_free(f);
}
