/* The ring buffer: room, loss, overwriting, who is woken, whose memory it is [PAGE-17..19]. */
#include "unit/test.h"

#include <poll.h>

#include "core/core-priv.h"
#include "unit/core/fake.h"

#define DATA 4096

static struct fake *f;

/* Its samples have 16 bytes: a header and the event's id. */
static struct pe_attr sampling(void)
{
	struct pe_attr attr = fake_attr();

	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	attr.disabled = 1;
	return attr;
}

static int open_mapped(const struct pe_attr *attr, bool writable)
{
	int fd = fake_open(f, attr, 0, -1, -1);

	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 2, writable), 0);
	return fd;
}

static void sample(int fd)
{
	struct ap_record rec = {.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER};

	output_record(fake_event(f, fd), &rec, fake_task(f, 100)->task, 0);
}

static void samples(int fd, int n)
{
	while (n--)
		sample(fd);
}

static const u8 *data(int fd)
{
	return (const u8 *)fake_page(f, fd) + DATA;
}

static const struct perf_event_header *header(int fd, u64 at)
{
	return (const void *)(data(fd) + at % DATA);
}

static u64 word(int fd, u64 at)
{
	u64 v;

	memcpy(&v, data(fd) + at % DATA, sizeof(v));
	return v;
}

/* [PAGE-17, PAGE-19, RING-01, RING-03, RING-05, RING-06] */
TEST(full)
{
	struct pe_attr attr = sampling();
	struct perf_event_mmap_page *page;
	int fd;

	f = fake_new(4);
	attr.read_format = PE_FORMAT_LOST;
	fd = open_mapped(&attr, true);
	page = fake_page(f, fd);
	EXPECT_EQ(page->data_offset, 4096);
	EXPECT_EQ(page->data_size, DATA);
	EXPECT_EQ(page->data_head, 0);
	/* One byte stays free, so a record less than would fit. */
	samples(fd, 260);
	EXPECT_EQ(page->data_head, 4080);
	EXPECT_EQ(header(fd, 0)->type, PERF_RECORD_SAMPLE);
	EXPECT_EQ(header(fd, 0)->misc, PERF_RECORD_MISC_USER);
	EXPECT_EQ(header(fd, 0)->size, 16);
	EXPECT_EQ(word(fd, 8), event_id(fake_event(f, fd)));
	fake_read(f, fd);
	EXPECT_EQ(f->words[1], 5);
	/* Room for a sample, but not for what has to go in front of it. */
	page->data_tail = 16;
	sample(fd);
	EXPECT_EQ(page->data_head, 4080);
	page->data_tail = 48;
	sample(fd);
	EXPECT_EQ(page->data_head, 4120);
	EXPECT_EQ(header(fd, 4080)->type, PERF_RECORD_LOST);
	EXPECT_EQ(header(fd, 4080)->size, 24);
	EXPECT_EQ(word(fd, 4088), event_id(fake_event(f, fd)));
	/* Around the end [RING-04]. */
	EXPECT_EQ(word(fd, 4096), 6);
	EXPECT_EQ(header(fd, 4104)->type, PERF_RECORD_SAMPLE);
	/* A whole one is not ended by LOST: the next goes as it is. */
	page->data_tail = 4120;
	sample(fd);
	EXPECT_EQ(page->data_head, 4136);
	fake_free(f);
}

/* LOST has a trailer where others have one, and it counts for room. */
TEST(lost_with_trailer)
{
	struct pe_attr attr = sampling();
	struct perf_event_mmap_page *page;
	int fd;

	f = fake_new(4);
	attr.sample_id_all = 1;
	attr.sample_type |= PERF_SAMPLE_TID;
	fd = open_mapped(&attr, true);
	page = fake_page(f, fd);
	samples(fd, 171);
	EXPECT_EQ(page->data_head, 170 * 24);
	page->data_tail = 170 * 24;
	sample(fd);
	EXPECT_EQ(page->data_head, 170 * 24 + 40 + 24);
	EXPECT_EQ(header(fd, 170 * 24)->size, 40);
	EXPECT_EQ(word(fd, 170 * 24 + 24), 100ull << 32 | 100);
	fake_free(f);
}

/* A reader who takes everything loses nothing, in order, and hears of the end behind it. */
TEST(lossless)
{
	struct pe_attr attr = sampling();
	struct perf_event_mmap_page *page;
	struct event *event;
	int fd;

	f = fake_new(4);
	attr.read_format = PE_FORMAT_LOST;
	fake_fork(f, 100, 101, false);
	fd = fake_open(f, &attr, 101, -1, -1);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	event = fake_event(f, fd);
	page = fake_page(f, fd);
	event_lossless(event);
	for (int i = 0; i < 1000; i++) {
		struct ap_record rec = {.type = PERF_RECORD_SAMPLE, .misc = (u16)i};

		output_record(event, &rec, fake_task(f, 100)->task, 0);
		core_check(f->core);
	}
	EXPECT_EQ(page->data_head, 255 * 16);
	EXPECT(event_has_backlog(event) && core_has_backlog(f->core));
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	core_backlogs_write(f->core);
	EXPECT_EQ(f->timer, f->now + 1000000);
	task_exit(fake_task(f, 101)->task);
	EXPECT(event_target_gone(event) && !event_hangs_up(event));
	EXPECT_EQ(event_poll(event), POLLIN | POLLRDNORM);
	for (u64 i = 0; i < 1000; i++) {
		if (page->data_tail == page->data_head) {
			fake_advance(f, 1000000);
			core_check(f->core);
		}
		EXPECT_EQ(header(fd, i * 16)->misc, i);
		page->data_tail += 16;
	}
	EXPECT_EQ(page->data_head, 16000);
	EXPECT(!event_has_backlog(event) && event_hangs_up(event));
	EXPECT_EQ(f->timer, CORE_NO_TIMER);
	EXPECT_EQ(event_poll(event), POLLHUP);
	EXPECT_EQ(fake_read(f, fd), 16);
	EXPECT_EQ(f->words[1], 0);
	fake_free(f);
}

/* Who unmaps it reads no more, and nobody waits for him. */
TEST(backlog_goes_with_the_mapping)
{
	struct pe_attr attr = sampling();
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, true);
	event_lossless(fake_event(f, fd));
	samples(fd, 300);
	EXPECT(event_has_backlog(fake_event(f, fd)));
	EXPECT_EQ(event_backlog_write(fake_event(f, fd)), 0);
	fake_page(f, fd)->data_tail = 32;
	EXPECT_EQ(event_backlog_write(fake_event(f, fd)), 32);
	event_unmap(fake_event(f, fd));
	core_check(f->core);
	EXPECT(!event_has_backlog(fake_event(f, fd)) && !core_has_backlog(f->core));
	/* Where the newest records are wanted nothing waits. */
	EXPECT_EQ(fake_map(f, fd, 2, false), 0);
	event_lossless(fake_event(f, fd));
	samples(fd, 300);
	EXPECT(!event_has_backlog(fake_event(f, fd)));
	fake_free(f);
}

/* A reader may write whatever it likes to its tail [PAGE-18]. */
TEST(untrusted_tail)
{
	struct pe_attr attr = sampling();
	struct perf_event_mmap_page *page;
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, true);
	page = fake_page(f, fd);
	for (u64 i = 0; i < 3000; i++) {
		page->data_tail = i * 0x9e3779b97f4a7c15ull;
		page->data_head = ~i;
		page->data_size = page->data_offset = i << 40;
		sample(fd);
	}
	core_check(f->core);
	fake_free(f);
}

/* [RING-07] */
TEST(overwrite)
{
	struct pe_attr attr = sampling();
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, false);
	samples(fd, 1000);
	EXPECT_EQ(fake_page(f, fd)->data_head, 16000);
	EXPECT_EQ(fake_event(f, fd)->lost_samples, 0);
	fake_free(f);
}

/* [RING-08, ATTR-33] */
TEST(backward)
{
	struct pe_attr attr = sampling();
	int fd;

	f = fake_new(4);
	attr.write_backward = 1;
	fd = open_mapped(&attr, false);
	samples(fd, 3);
	EXPECT_EQ(fake_page(f, fd)->data_head, -48);
	EXPECT_EQ(header(fd, DATA - 48)->type, PERF_RECORD_SAMPLE);
	EXPECT_EQ(header(fd, DATA - 64)->type, 0);
	/* Woken when more than half was written, as in the other direction. */
	samples(fd, 125);
	EXPECT_EQ(event_poll(fake_event(f, fd)), 0);
	sample(fd);
	EXPECT_EQ(event_poll(fake_event(f, fd)), POLLIN | POLLRDNORM);
	fake_free(f);
	/* Not overwritten it is full like any other. */
	f = fake_new(4);
	fd = open_mapped(&attr, true);
	samples(fd, 300);
	EXPECT_EQ(fake_page(f, fd)->data_head, -4080);
	EXPECT_EQ(fake_event(f, fd)->lost_samples, 45);
	fake_free(f);
}

/* Where old records go, the largest one fills the buffer [RING-07]. */
TEST(as_large_as_the_buffer)
{
	static const u8 bytes[DATA];
	struct pe_attr attr = sampling();
	struct ap_record rec = {.type = PERF_RECORD_SAMPLE};
	int fd;

	f = fake_new(4);
	attr.sample_type |= PERF_SAMPLE_RAW;
	fd = open_mapped(&attr, false);
	/* Header, id, and the length of what follows. */
	rec.sample.raw = (struct ap_bytes){DATA - 20, bytes};
	output_record(fake_event(f, fd), &rec, fake_task(f, 100)->task, 0);
	EXPECT_EQ(fake_page(f, fd)->data_head, DATA);
	EXPECT_EQ(header(fd, 0)->size, DATA);
	rec.sample.raw.len += 8;
	output_record(fake_event(f, fd), &rec, fake_task(f, 100)->task, 0);
	EXPECT_EQ(fake_page(f, fd)->data_head, DATA);
	EXPECT_EQ(fake_event(f, fd)->lost_samples, 1);
	fake_free(f);
}

/* At which lengths somebody is woken, while the reader keeps up. */
static void woken_at(int fd, const u64 *at, int n)
{
	struct perf_event_mmap_page *page = fake_page(f, fd);

	for (int i = 0; i < n;) {
		u32 events;

		sample(fd);
		page->data_tail = page->data_head;
		events = event_poll(fake_event(f, fd));
		if (page->data_head < at[i]) {
			EXPECT_EQ(events, 0);
			continue;
		}
		EXPECT_EQ(page->data_head, at[i]);
		EXPECT_EQ(events, POLLIN | POLLRDNORM);
		/* Once [OVF-02]. */
		EXPECT_EQ(event_poll(fake_event(f, fd)), 0);
		i++;
	}
}

TEST(wakeups)
{
	struct pe_attr attr = sampling();

	f = fake_new(8);
	/* By number, and at each half of the buffer as well [RING-09]. */
	attr.wakeup_events = 3;
	woken_at(open_mapped(&attr, true), (u64[]){48, 96, 144, 192}, 4);
	attr.wakeup_events = 1000;
	woken_at(open_mapped(&attr, true), (u64[]){2064, 4112, 6160}, 3);
	/* Half of it where nothing is said [RING-10]. */
	attr.wakeup_events = 0;
	woken_at(open_mapped(&attr, true), (u64[]){2064, 4112, 6160}, 3);
	/* Strictly more than the watermark, and no more than the buffer [RING-11, ATTR-21]. */
	attr.watermark = 1;
	attr.wakeup_watermark = 32;
	woken_at(open_mapped(&attr, true), (u64[]){48, 80, 112}, 3);
	attr.wakeup_watermark = 1;
	woken_at(open_mapped(&attr, true), (u64[]){16, 32, 48}, 3);
	attr.wakeup_watermark = 0;
	woken_at(open_mapped(&attr, true), (u64[]){2064, 4112}, 2);
	attr.wakeup_watermark = 1 << 20;
	woken_at(open_mapped(&attr, true), (u64[]){4112, 8208}, 2);
	fake_free(f);
}

/* Records that are no samples do not count [RING-09], and are woken for by length [RING-17]. */
TEST(other_records)
{
	struct ap_record rec = {.type = PERF_RECORD_LOST_SAMPLES};
	struct pe_attr attr = fake_attr();
	int fd;

	f = fake_new(4);
	attr.wakeup_events = 1;
	fd = open_mapped(&attr, true);
	output_record(fake_event(f, fd), &rec, NULL, 0);
	EXPECT_EQ(fake_page(f, fd)->data_head, 16);
	EXPECT_EQ(event_poll(fake_event(f, fd)), 0);
	for (int i = 0; i < 128; i++)
		output_record(fake_event(f, fd), &rec, NULL, 0);
	EXPECT_EQ(event_poll(fake_event(f, fd)), POLLIN | POLLRDNORM);
	fake_free(f);
}

/* [IOC-10] */
TEST(pause)
{
	struct pe_attr attr = sampling();
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, true);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
	samples(fd, 10);
	EXPECT_EQ(fake_page(f, fd)->data_head, 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0), 0);
	sample(fd);
	EXPECT_EQ(header(fd, 0)->type, PERF_RECORD_LOST);
	EXPECT_EQ(word(fd, 16), 10);
	EXPECT_EQ(fake_event(f, fd)->lost_samples, 10);
	fake_free(f);
}

/* Several events in one buffer [IOC-06, RING-15]: each has its own id, and all are woken. */
TEST(redirected)
{
	struct pe_attr attr = sampling();
	int fd, other;

	f = fake_new(4);
	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	fd = open_mapped(&attr, true);
	other = fake_open(f, &attr, 0, -1, -1);
	/* Nowhere to write to is no loss. */
	sample(other);
	EXPECT_EQ(fake_event(f, other)->lost_samples, 0);
	EXPECT_EQ(fake_ioctl(f, other, PERF_EVENT_IOC_SET_OUTPUT, (u64)fd), 0);
	sample(fd);
	f->wakes = 0;
	sample(other);
	EXPECT_EQ(f->wakes, 2);
	EXPECT_EQ(word(fd, 8), event_id(fake_event(f, fd)));
	EXPECT_EQ(word(fd, 24), event_id(fake_event(f, other)));
	/* Losses are the buffer's, and told by whoever writes next; each event knows its own. */
	samples(fd, 254);
	EXPECT_EQ(fake_event(f, fd)->lost_samples, 1);
	sample(other);
	EXPECT_EQ(fake_event(f, other)->lost_samples, 1);
	fake_page(f, fd)->data_tail = 4080;
	sample(other);
	EXPECT_EQ(word(fd, 4088), event_id(fake_event(f, other)));
	EXPECT_EQ(word(fd, 4096), 2);
	event_unmap(fake_event(f, fd));
	EXPECT_EQ(event_poll(fake_event(f, other)), POLLHUP);
	sample(other);
	sample(fd);
	core_check(f->core);
	fake_free(f);
}

/* What is mapped anew begins anew, with memory of its own. */
TEST(mapped_again)
{
	struct pe_attr attr = sampling();
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, true);
	EXPECT_EQ(f->memory, 8192);
	samples(fd, 300);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	EXPECT_EQ(f->memory, 8192);
	event_unmap(fake_event(f, fd));
	EXPECT_EQ(fake_page(f, fd)->data_head, 4080);
	event_unmap(fake_event(f, fd));
	EXPECT_EQ(f->memory, 0);
	EXPECT_EQ(fake_map(f, fd, 5, true), 0);
	EXPECT_EQ(f->memory, 5 * 4096);
	sample(fd);
	EXPECT_EQ(header(fd, 0)->type, PERF_RECORD_SAMPLE);
	event_unmap(fake_event(f, fd));
	f->memory_err = -ENOMEM;
	EXPECT_REFUSED(f, fake_map(f, fd, 2, true), -ENOMEM, NO_MEMORY);
	core_check(f->core);
	fake_free(f);
}

/* An AUX area begins at the end of the data, or later [AUX-01]. */
TEST(behind_the_data)
{
	struct pe_attr attr = sampling();
	struct map_call call = {.len = DATA, .shared = true, .writable = true};
	struct perf_event_mmap_page *page;
	int fd;

	f = fake_new(4);
	call.caller = fake_task(f, 100)->task;
	fd = open_mapped(&attr, true);
	page = fake_page(f, fd);
	page->aux_size = DATA;
	page->aux_offset = call.offset = DATA;
	EXPECT_REFUSED(f, event_map(fake_event(f, fd), &call), -EINVAL, MAP_AUX_WORDS);
	page->aux_offset = call.offset = 2 * DATA;
	EXPECT_REFUSED(f, event_map(fake_event(f, fd), &call), -EOPNOTSUPP, MAP_NO_AUX);
	core_check(f->core);
	fake_free(f);
}

/* [RING-13] */
TEST(locked_memory)
{
	struct pe_attr attr = sampling();
	int fd[4];

	f = fake_new(4);
	f->ipc_lock = false;
	/* 4 pages for each of two CPUs; 3 pages of the process's. */
	EXPECT_EQ(core_set_mlock_kb(f->core, 16), 0);
	f->mlock_limit = 3 * 4096 + 100;
	for (int i = 0; i < 4; i++)
		fd[i] = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_map(f, fd[0], 5, true), 0);
	EXPECT_EQ(fake_map(f, fd[1], 5, true), 0);
	EXPECT_REFUSED(f, fake_map(f, fd[2], 2, true), -EPERM, BUFFER_LIMIT);
	EXPECT_EQ(fake_map(f, fd[2], 1, true), 0);
	EXPECT_REFUSED(f, fake_map(f, fd[3], 1, true), -EPERM, BUFFER_LIMIT);
	/* A second mapping of a buffer locks no more. */
	EXPECT_EQ(fake_map(f, fd[2], 1, true), 0);
	f->ipc_lock = true;
	EXPECT_EQ(fake_map(f, fd[3], 1, true), 0);
	event_unmap(fake_event(f, fd[3]));
	f->ipc_lock = false;
	event_unmap(fake_event(f, fd[0]));
	EXPECT_EQ(fake_map(f, fd[3], 5, true), 0);
	EXPECT_EQ(fake_map(f, fd[0], 1, true), -EPERM);
	/* Another user has his own. */
	fake_task(f, 100)->uid = 7;
	EXPECT_EQ(fake_map(f, fd[0], 9, true), -EPERM);
	EXPECT_EQ(fake_map(f, fd[0], 5, true), 0);
	event_unmap(fake_event(f, fd[0]));
	fake_task(f, 100)->uid = 0;
	EXPECT_EQ(core_set_paranoid(f->core, -1), 0);
	EXPECT_EQ(fake_map(f, fd[0], 1025, true), 0);
	core_check(f->core);
	fake_free(f);
}
