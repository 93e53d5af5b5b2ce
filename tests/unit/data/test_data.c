/*
 * perf.data files: what is written is read again, as a file, a stream and compressed; what is cut
 * off anywhere is read up to there; a full disk keeps what fits; rounds bring the order of time.
 */
#include "unit/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data/reader.h"
#include "data/rounds.h"
#include "data/tally.h"
#include "data/writer.h"
#include "record/coding.h"

#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

static u64 ids[2][2] = {{11, 12}, {21, 22}};
static struct data_event events[2] = {
	{.attr = {.type = PERF_TYPE_SOFTWARE,
		  .size = PE_ATTR_SIZE_VER7,
		  .config = 1,
		  .sample_type = SAMPLE_TYPE,
		  .sample_id_all = 1},
	 .name = "first",
	 .ids = ids[0],
	 .nr_ids = 2,
	 .members = 2},
	{.attr = {.type = PERF_TYPE_SOFTWARE,
		  .size = PE_ATTR_SIZE_VER7,
		  .config = 2,
		  .sample_type = SAMPLE_TYPE | PERF_SAMPLE_PERIOD,
		  .sample_id_all = 1},
	 .name = "second",
	 .ids = ids[1],
	 .nr_ids = 2},
};

static int scratch_file(void)
{
	int fd = memfd_create("test_data", 0);

	if (fd < 0)
		abort();
	return fd;
}

static void must(int r)
{
	if (r) {
		fprintf(stderr, "error %d\n", r);
		abort();
	}
}

/* A sample of event @e at @time into @to; returns its size. */
static size_t make_sample(void *to, u32 e, u64 time)
{
	struct ap_record rec = {.type = PERF_RECORD_SAMPLE,
				.misc = PERF_RECORD_MISC_USER,
				.id = {.pid = 1, .tid = 2, .time = time, .id = ids[e][time % 2]},
				.sample = {.ip = time * 3, .period = time + 7}};
	struct ap_layout layout;
	int n;

	ap_layout_init(&layout, (const struct perf_event_attr *)&events[e].attr);
	n = ap__record_encode(&rec, &layout, to, 4096);
	if (n < 0)
		abort();
	return (size_t)n;
}

static struct data_features features;

/* Writes @n samples, from a new round every 10; returns what data_writer_finish() says. */
static int write_samples(int fd, struct data_writer_opts opts, u64 n)
{
	struct data_writer *w;
	struct ap_error err;
	u64 sample[64];
	int r;

	must(data_writer_open(&w, fd, &opts, &err));
	must(data_writer_start(w, events, 2, &features, &err));
	r = 0;
	for (u64 i = 1; i <= n && !r; i++) {
		r = data_writer_append(w, sample, make_sample(sample, i % 2, i), &err);
		if (!r && i % 10 == 0)
			r = data_writer_round(w, &err);
	}
	if (data_writer_finish(w, &features, &err) && !r)
		r = -1;
	data_writer_close(w);
	return r;
}

static void gather(void)
{
	static char program[] = "anyperf", command[] = "record";
	char *argv[] = {program, command};

	data_features_release(&features);
	data_features_gather(&features, events, 2, 2, argv);
	EXPECT(data_features_add_machine(&features, "toy", "auto"));
	EXPECT_EQ(features.of[DATA_CPU_PMU_CAPS].len, 4 + 4 * (4 + DATA_NAME_ALIGN));
	for (size_t len = 0; len <= features.of[DATA_CPU_PMU_CAPS].len; len++) {
		const u8 *bytes = features.of[DATA_CPU_PMU_CAPS].bytes;
		char *name = data_feature_value(bytes, len, "machine");
		char *windows = data_feature_value(bytes, len, "machine_windows");

		EXPECT(len < 4 + 2 * (4 + DATA_NAME_ALIGN) ? !name : !strcmp(name, "toy"));
		EXPECT(len < 4 + 4 * (4 + DATA_NAME_ALIGN) ? !windows : !strcmp(windows, "auto"));
		free(name);
		free(windows);
	}
	EXPECT(data_features_add_build_id(&features, "/bin/true", PERF_RECORD_MISC_USER,
					  (const u8 *)"0123456789abcdefghij", 20));
}

/*
 * Reads @fd and checks that samples 1 .. come as they were written, and with an empty @why their
 * events' names too. Returns how many.
 */
static u64 read_samples(int fd, int *end, char *why)
{
	struct data_reader *r;
	struct data_item item;
	struct ap_error err;
	u64 seen = 0;

	lseek(fd, 0, SEEK_SET);
	*end = data_reader_open(&r, fd, "test.data", &err);
	if (*end) {
		snprintf(why, sizeof(err.why), "%s", err.why);
		return 0;
	}
	while ((*end = data_reader_next(r, &item, &err)) > 0) {
		if (item.header->type != PERF_RECORD_SAMPLE)
			continue;
		seen++;
		EXPECT(item.decoded);
		EXPECT_EQ(item.event, seen % 2);
		EXPECT_EQ(item.record.id.time, seen);
		EXPECT_EQ(item.record.sample.ip, seen * 3);
		EXPECT_EQ(item.record.sample.period, seen % 2 ? seen + 7 : 0);
	}
	if (*end < 0) {
		snprintf(why, sizeof(err.why), "%s", err.why);
		data_reader_close(r);
		return seen;
	}
	EXPECT_EQ(data_reader_events(r), 2);
	for (u32 i = 0; !*why && i < 2; i++) {
		const struct data_event *e = data_reader_event(r, i);

		EXPECT_STREQ(e->name, events[i].name);
		EXPECT_EQ(e->attr.config, i + 1);
		EXPECT_EQ(e->nr_ids, 2);
	}
	if (!*why)
		EXPECT_EQ(data_reader_event(r, 0)->members, 2);
	data_reader_close(r);
	return seen;
}

static const struct data_writer_opts plain = {0}, pipe_opts = {.pipe = true}, packed = {.level = 3},
				     packed_pipe = {.pipe = true, .level = 3};

static void round_trip(const struct data_writer_opts *opts, u64 n)
{
	int fd = scratch_file(), end;
	char why[512] = "";

	must(write_samples(fd, *opts, n));
	EXPECT_EQ(read_samples(fd, &end, why), n);
	EXPECT_EQ(end, 0);
	EXPECT_STREQ(why, "");
	close(fd);
}

TEST(what_is_written_is_read)
{
	gather();
	for (u64 n = 0; n < 40000; n = n * 7 + 1) {
		round_trip(&plain, n);
		round_trip(&pipe_opts, n);
	}
}

TEST(what_is_compressed_is_read)
{
	struct data_writer *w;
	struct ap_error err;
	int fd = scratch_file(), r;

	gather();
	r = data_writer_open(&w, fd, &packed, &err);
	close(fd);
	if (r == -ENOENT) { /* libzstd is not installed, and it says so */
		EXPECT_CONTAINS(err.why, "libzstd");
		return;
	}
	must(r);
	data_writer_close(w);
	for (u64 n = 0; n < 40000; n = n * 7 + 1) {
		round_trip(&packed, n);
		round_trip(&packed_pipe, n);
	}
}

TEST(features_come_back)
{
	struct data_reader *r;
	struct data_item item;
	const void *bytes;
	char *text;
	size_t len;

	gather();
	for (int pipe = 0; pipe < 2; pipe++) {
		int fd = scratch_file();

		must(write_samples(fd, pipe ? pipe_opts : plain, 3));
		lseek(fd, 0, SEEK_SET);
		must(data_reader_open(&r, fd, "test.data", NULL));
		while (data_reader_next(r, &item, NULL) > 0)
			;
		EXPECT_EQ(data_reader_is_pipe(r), pipe);
		for (u32 i = 0; i < DATA_FEATURES; i++) {
			bytes = data_reader_feature(r, i, &len);
			EXPECT(!bytes == !features.of[i].bytes);
			if (bytes && i != DATA_BUILD_ID) /* a record has another type there */
				EXPECT(len >= features.of[i].len &&
				       !memcmp(bytes, features.of[i].bytes, features.of[i].len));
		}
		bytes = data_reader_feature(r, DATA_VERSION, &len);
		text = data_feature_text(bytes, len);
		EXPECT_CONTAINS(text, "anyperf ");
		free(text);
		data_reader_close(r);
		close(fd);
	}
}

/* Cut off anywhere, it is read up to the last whole record, and where it broke is said. */
static void cut_off(const struct data_writer_opts *opts)
{
	int fd = scratch_file(), end;
	u64 before = 0;
	off_t size;
	char why[512] = "no names";

	must(write_samples(fd, *opts, 25));
	size = lseek(fd, 0, SEEK_END);
	for (off_t len = 0; len < size; len++) {
		int part = scratch_file();
		char *bytes = malloc((size_t)len + 1);
		u64 seen;

		EXPECT_EQ(pread(fd, bytes, (size_t)len, 0), len);
		EXPECT_EQ(write(part, bytes, (size_t)len), len);
		seen = read_samples(part, &end, why);
		EXPECT(seen >= before && seen <= 25);
		before = seen;
		if (end == -ENODATA)
			EXPECT_CONTAINS(why, "in the middle of a record at offset");
		else
			EXPECT(end == 0 || end == -EBADMSG);
		/* Its header names more records than there are. */
		EXPECT(seen == 25 || end || opts->pipe);
		free(bytes);
		close(part);
	}
	EXPECT_EQ(before, 25);
	close(fd);
}

TEST(what_is_cut_off_is_read_up_to_there)
{
	gather();
	for (u32 i = 0; i < DATA_FEATURES; i++) /* few bytes, many cuts */
		if (i != DATA_EVENT_DESC && i != DATA_GROUP_DESC) {
			free(features.of[i].bytes);
			features.of[i] = (struct data_piece){0};
		}
	cut_off(&plain);
}

TEST(a_recorder_that_was_killed_leaves_what_it_wrote)
{
	int fd = scratch_file(), end;
	struct data_writer *w;
	struct ap_error err;
	u64 sample[64];

	gather();
	must(data_writer_open(&w, fd, &plain, &err));
	must(data_writer_start(w, events, 2, &features, &err));
	for (u64 i = 1; i <= 30; i++) {
		must(data_writer_append(w, sample, make_sample(sample, i % 2, i), &err));
		if (i == 20)
			must(data_writer_round(w, &err));
	}
	data_writer_close(w);
	lseek(fd, 0, SEEK_SET);
	/* Names are features, which come at the end; the rest is there. */
	{
		struct data_reader *r;
		struct data_item item;
		u64 seen = 0;

		must(data_reader_open(&r, fd, "killed", &err));
		while ((end = data_reader_next(r, &item, &err)) > 0)
			seen += item.header->type == PERF_RECORD_SAMPLE;
		EXPECT_EQ(end, 0);
		EXPECT_EQ(seen, 20);
		data_reader_close(r);
	}
	close(fd);
}

TEST(a_full_disk_keeps_what_fits)
{
	struct rlimit before, limit;
	char path[] = "/tmp/test_data.XXXXXX";
	int fd = mkstemp(path), end, r;
	struct data_reader *reader;
	struct data_item item;
	struct ap_error err;
	u64 seen = 0;

	gather();
	if (fd < 0)
		abort();
	unlink(path);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){10001, before.rlim_max};
	setrlimit(RLIMIT_FSIZE, &limit);
	r = write_samples(fd, plain, 40000);
	setrlimit(RLIMIT_FSIZE, &before);
	EXPECT_EQ(r, -EFBIG);
	lseek(fd, 0, SEEK_SET);
	must(data_reader_open(&reader, fd, "full", &err));
	while ((end = data_reader_next(reader, &item, &err)) > 0)
		if (item.header->type == PERF_RECORD_SAMPLE)
			EXPECT_EQ(item.record.id.time, ++seen);
	if (end)
		fprintf(stderr, "%s\n", err.why);
	EXPECT_EQ(end, 0);
	EXPECT(seen > 150 && seen < 250);
	data_reader_close(reader);
	close(fd);
}

/* Opens a recording of two buffers, whose samples have these times; 0xff ends a round. */
static struct data_reader *read_rounds(int fd, const u8 *times, size_t nr)
{
	struct data_reader *r;
	struct data_writer *w;
	struct ap_error err;
	u64 sample[64];

	gather();
	must(data_writer_open(&w, fd, &plain, &err));
	must(data_writer_start(w, events, 2, &features, &err));
	for (size_t i = 0; i < nr; i++) {
		if (times[i] == 0xff)
			must(data_writer_round(w, &err));
		else if (times[i])
			must(data_writer_append(w, sample, make_sample(sample, i % 2, times[i]),
						&err));
	}
	must(data_writer_finish(w, &features, &err));
	data_writer_close(w);
	lseek(fd, 0, SEEK_SET);
	must(data_reader_open(&r, fd, "rounds", &err));
	return r;
}

/* Two buffers, each in order: the second's come behind the first's in the file. */
TEST(rounds_bring_the_order_of_time)
{
	static const u8 times[] = {1, 4, 5, 0, 2, 3, 6, 0xff, 7, 9, 0, 5, 8, 0xff, 10, 0xff};
	int fd = scratch_file(), n;
	struct data_reader *r = read_rounds(fd, times, ARRAY_SIZE(times));
	struct data_rounds rounds;
	struct data_item item;
	struct ap_error err;
	u64 last = 0, seen = 0;

	data_rounds_init(&rounds);
	while ((n = data_rounds_next(&rounds, r, &item, &err)) > 0) {
		EXPECT(item.record.id.time >= last);
		last = item.record.id.time;
		seen++;
	}
	EXPECT_EQ(n, 0);
	EXPECT_EQ(seen, 11);
	EXPECT_EQ(data_rounds_next(&rounds, r, &item, &err), 0);
	data_rounds_release(&rounds);
	data_reader_close(r);
	close(fd);
}

/* Nothing waits for the next round, so what comes late is late. */
TEST(live_rounds_are_given_at_their_end)
{
	static const u8 times[] = {1, 4, 5, 0, 2, 3, 6, 0xff, 7, 9, 0, 5, 8, 0xff, 10};
	static const u8 given[] = {1, 2, 3, 4, 5, 6, 0xff, 5, 7, 8, 9, 0xff, 10, 0xff};
	int fd = scratch_file(), n;
	struct data_reader *r = read_rounds(fd, times, ARRAY_SIZE(times));
	struct data_rounds rounds;
	struct data_item item;
	struct ap_error err;
	size_t i = 0;

	data_rounds_init(&rounds);
	rounds.live = true;
	while ((n = data_rounds_next(&rounds, r, &item, &err)) > 0 && i < ARRAY_SIZE(given)) {
		if (item.record.type == DATA_FINISHED_ROUND)
			EXPECT_EQ(0xff, given[i]);
		else
			EXPECT_EQ(item.record.id.time, given[i]);
		i++;
	}
	EXPECT_EQ(n, 0);
	EXPECT(i == ARRAY_SIZE(given) || i == ARRAY_SIZE(given) - 1);
	data_rounds_release(&rounds);
	data_reader_close(r);
	close(fd);
}

TEST(a_tally_counts)
{
	struct ap_record map = {.type = PERF_RECORD_MMAP2,
				.mmap = {.filename = "/usr/bin/x", .prot = PROT_EXEC}};
	struct data_tally t;
	struct ap_layout layout;
	u64 bytes[256];
	size_t n = 0;
	u32 files = 0;
	int len;

	ap_layout_init(&layout, (const struct perf_event_attr *)&events[0].attr);
	data_tally_init(&t, &layout);
	n += make_sample((u8 *)bytes + n, 0, 50);
	n += make_sample((u8 *)bytes + n, 0, 40);
	for (int i = 0; i < 3; i++) {
		len = ap__record_encode(&map, &layout, (u8 *)bytes + n, sizeof(bytes) - n);
		EXPECT(len > 0);
		n += (size_t)len;
		map.mmap.filename = i ? "//anon" : "/usr/bin/y";
	}
	data_tally_add(&t, bytes, n);
	data_tally_add(&t, bytes, n);
	EXPECT_EQ(t.samples, 4);
	EXPECT_EQ(t.first, 40);
	EXPECT_EQ(t.last, 50);
	for (u32 i = 0; i < t.room; i++)
		files += t.files[i].name != NULL;
	EXPECT_EQ(files, 2);
	data_tally_release(&t);
}

TEST(what_is_no_recording)
{
	static const char *const no[] = {"", "PERF", "PERFILE2", "2ELIFREP12345678",
					 "hello, world 1234"};
	struct data_reader *r;
	struct ap_error err;

	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		int fd = scratch_file(), n;

		EXPECT_EQ(write(fd, no[i], strlen(no[i])), (long)strlen(no[i]));
		lseek(fd, 0, SEEK_SET);
		n = data_reader_open(&r, fd, "x", &err);
		EXPECT_EQ(n, i == 3 ? -EOPNOTSUPP : -EBADMSG);
		EXPECT_CONTAINS(err.why, "x ");
		close(fd);
	}
	data_features_release(&features);
}
