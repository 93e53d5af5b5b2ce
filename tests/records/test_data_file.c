/*
 * What a running kernel has written (kernel.txt), and what it does not write (made.txt), put into
 * perf.data files: each record that comes out of them says what stands beside it, from a file, a
 * stream and compressed records, one by one and in the order of time.
 */
#include "unit/test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/reader.h"
#include "data/rounds.h"
#include "data/writer.h"
#include "records/show.h"

#define MAX_RECORDS 64

/* The records of one layout, and what they say. */
static struct {
	struct data_event event;
	u64 bytes[MAX_RECORDS][2048];
	size_t size[MAX_RECORDS];
	char *says[MAX_RECORDS];
	u32 n;
} block;

static unsigned int compared;

static size_t from_hex(const char *line, u8 *out, size_t room)
{
	size_t n = 0;
	unsigned int byte;

	for (; n < room && sscanf(line, "%2x", &byte) == 1; line += 2)
		out[n++] = (u8)byte;
	return n;
}

static void write_file(int fd, const struct data_writer_opts *opts)
{
	static const struct data_features none;
	struct data_writer *w;
	struct ap_error err;

	ASSERT(!data_writer_open(&w, fd, opts, &err));
	ASSERT(!data_writer_start(w, &block.event, 1, &none, &err));
	for (u32 i = 0; i < block.n; i++)
		ASSERT(!data_writer_append(w, block.bytes[i], block.size[i], &err));
	ASSERT(!data_writer_round(w, &err));
	ASSERT(!data_writer_finish(w, &none, &err));
	data_writer_close(w);
	lseek(fd, 0, SEEK_SET);
}

static void expect_record(const struct data_item *item, u32 i)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ASSERT(i < block.n);
	EXPECT(item->decoded);
	show_record(f, &item->record);
	fclose(f);
	EXPECT_STREQ(text, block.says[i]);
	free(text);
	compared++;
}

static void read_file(int fd, bool in_order)
{
	struct data_rounds rounds;
	struct data_reader *r;
	struct data_item item;
	struct ap_error err;
	u32 i = 0;
	int n;

	ASSERT(!data_reader_open(&r, fd, "records", &err));
	data_rounds_init(&rounds);
	while ((n = in_order ? data_rounds_next(&rounds, r, &item, &err)
			     : data_reader_next(r, &item, &err)) > 0)
		if (item.header->type < 64)
			expect_record(&item, i++);
	EXPECT_EQ(n, 0);
	EXPECT_EQ(i, block.n);
	data_rounds_release(&rounds);
	data_reader_close(r);
}

static void check_block(void)
{
	static const struct data_writer_opts ways[] = {{0}, {.pipe = true}, {.level = 1}};

	for (size_t i = 0; block.n && i < ARRAY_SIZE(ways); i++) {
		int fd = memfd_create("records", 0);
		struct data_writer *w;
		struct ap_error err;

		if (ways[i].level && data_writer_open(&w, fd, &ways[i], &err) == -ENOENT) {
			close(fd);
			continue; /* libzstd is not installed */
		}
		if (ways[i].level)
			data_writer_close(w);
		write_file(fd, &ways[i]);
		read_file(fd, false);
		lseek(fd, 0, SEEK_SET);
		/* One record alone: those of different moments stand in the file as they came. */
		if (block.n == 1)
			read_file(fd, true);
		close(fd);
	}
	for (u32 i = 0; i < block.n; i++)
		free(block.says[i]);
	block.n = 0;
}

static void begin_block(const struct ap_layout *l)
{
	struct pe_attr *a = &block.event.attr;

	check_block();
	*a = (struct pe_attr){.type = PERF_TYPE_SOFTWARE, .size = PE_ATTR_SIZE_VER7};
	a->sample_type = l->sample_type;
	a->read_format = l->read_format;
	a->branch_sample_type = l->branch_sample_type;
	a->sample_regs_user = l->sample_regs_user;
	a->sample_regs_intr = l->sample_regs_intr;
	a->sample_id_all = l->sample_id_all;
}

static void through_files(const char *path)
{
	static char line[65536];
	struct ap_layout layout;
	FILE *f = fopen(path, "r");

	ASSERT(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!read_layout(line, &layout)) {
			begin_block(&layout);
		} else if (line[0] == '=') {
			block.says[block.n] = strdup(line + 2);
			block.n++;
		} else {
			ASSERT(block.n < MAX_RECORDS);
			block.size[block.n] = from_hex(line, (u8 *)block.bytes[block.n],
						       sizeof(block.bytes[0]));
		}
	}
	check_block();
	fclose(f);
}

TEST(a_kernels_records_through_files)
{
	compared = 0;
	through_files(KERNEL_TXT);
	EXPECT(compared > 200);
}

TEST(records_of_no_kernel_through_files)
{
	compared = 0;
	through_files(MADE_TXT);
	EXPECT(compared >= 2 * 25);
}
