/*
 * perf.data files: any bytes are read to an end or a reason, in the order of the file and in the
 * order of time, and whatever was decoded can be looked at.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "data/reader.h"
#include "data/rounds.h"
#include "records/touch.h"

/* Files are full of zeros, which strings cannot have: they come from data.hex. */
const char *const fuzz_samples[] = {NULL};
const char *const fuzz_words[] = {"PERFILE2", "\x10", "\x68", "\xff\xff\xff\xff\xff\xff\xff\xff",
				  "\x44",     "\x51", "\x50", "\x40",
				  NULL};

static void count_text(const char *text, void *data)
{
	*(size_t *)data += strlen(text);
}

static void look_at_features(struct data_reader *r)
{
	for (u32 i = 0; i < DATA_FEATURES; i++) {
		size_t len, sum = 0;
		const void *bytes = data_reader_feature(r, i, &len);

		if (!bytes)
			continue;
		free(data_feature_text(bytes, len));
		data_feature_texts(bytes, len, count_text, &sum);
		CHECK(sum <= len);
	}
	for (u32 i = 0; i < data_reader_events(r); i++)
		CHECK(data_reader_event(r, i)->attr.size >= PE_ATTR_SIZE_VER0);
}

static void read_all(int fd, bool in_order)
{
	struct data_rounds rounds;
	struct data_reader *r;
	struct data_item item;
	struct ap_error err;
	int n;

	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	n = data_reader_open(&r, fd, "fuzz", &err);
	if (n) {
		CHECK(n < 0 && *err.why);
		return;
	}
	data_rounds_init(&rounds);
	while ((n = in_order ? data_rounds_next(&rounds, r, &item, &err)
			     : data_reader_next(r, &item, &err)) > 0) {
		CHECK(item.header->size >= sizeof(*item.header));
		CHECK(item.event < (int)data_reader_events(r));
		if (item.decoded)
			touch_record(&item.record);
	}
	CHECK(!n || *err.why);
	look_at_features(r);
	CHECK(!data_reader_next(r, &item, &err));
	data_rounds_release(&rounds);
	data_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int fd = memfd_create("fuzz_data", 0);

	CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	read_all(fd, false);
	read_all(fd, true);
	close(fd);
	return 0;
}
