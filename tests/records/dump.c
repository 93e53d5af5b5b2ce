/*
 * The records of a perf.data file, one line each:  dump FILE
 *
 *	0xOFFSET TEXT
 *
 * Encodes each of them again on the way, which must give the same bytes. Reads as much of the
 * file's structure as it takes to find the attrs, their ids and the records, and no more. Types
 * that exist in files only are passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "abi/perf.h"
#include "record/coding.h"
#include "records/show.h"

struct section {
	u64 offset, size;
};

struct file_header {
	u64 magic, size, attr_size;
	struct section attrs, data;
};

struct event {
	struct ap_layout layout;
	const u64 *ids;
	size_t nids;
};

static u8 *file;
static size_t file_size;
static struct event *events;
static size_t nevents;

static void *within(struct section s)
{
	if (s.offset % 8 || s.offset > file_size || s.size > file_size - s.offset) {
		fprintf(stderr, "a section of the file is beyond its end\n");
		exit(1);
	}
	return file + s.offset;
}

static void read_file(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f || fseek(f, 0, SEEK_END)) {
		perror(path);
		exit(1);
	}
	file_size = (size_t)ftell(f);
	file = malloc(file_size + 1);
	rewind(f);
	if (!file || fread(file, 1, file_size, f) != file_size) {
		perror(path);
		exit(1);
	}
	fclose(f);
}

static void read_attrs(const struct file_header *h)
{
	const u8 *attrs = within(h->attrs);

	nevents = h->attrs.size / h->attr_size;
	events = calloc(nevents, sizeof(*events));
	if (!events)
		exit(1);
	for (size_t i = 0; i < nevents; i++) {
		const u8 *at = attrs + i * h->attr_size;
		struct section ids;

		ap_layout_init(&events[i].layout, (const struct perf_event_attr *)at);
		memcpy(&ids, at + h->attr_size - sizeof(ids), sizeof(ids));
		events[i].ids = within(ids);
		events[i].nids = ids.size / sizeof(u64);
	}
}

/* What perf synthesizes itself may have an id of 0: it has the first event's layout. */
static const struct ap_layout *layout_of(const void *record, size_t len)
{
	uint64_t id;

	if (nevents == 1 || ap_record_event_id(record, len, &id))
		return &events[0].layout;
	for (size_t i = 0; i < nevents; i++)
		for (size_t j = 0; j < events[i].nids; j++)
			if (events[i].ids[j] == id)
				return &events[i].layout;
	return &events[0].layout;
}

/* The decoder's inverse gives the bytes that were decoded. */
static void encode_again(const struct ap_record *rec, const struct ap_layout *layout)
{
	static u64 again[RECORD_MAX / 8];
	int n = ap__record_encode(rec, layout, again, sizeof(again));

	if (n == rec->size && memcmp(again, rec->bytes, rec->size) == 0)
		return;
	fprintf(stderr, "a %s record is encoded to other bytes\n", ap_record_name(rec->type));
	exit(1);
}

int main(int argc, char **argv)
{
	const struct file_header *h;
	struct section all;
	const u8 *data;
	int n;

	if (argc != 2)
		return 2;
	read_file(argv[1]);
	all = (struct section){0, sizeof(*h)};
	h = within(all);
	if (memcmp(&h->magic, "PERFILE2", 8) != 0)
		return fprintf(stderr, "not a perf.data file\n"), 1;
	read_attrs(h);
	data = within(h->data);
	for (size_t at = 0; at < h->data.size; at += (size_t)n) {
		size_t left = h->data.size - at;
		const struct ap_layout *layout = layout_of(data + at, left);
		struct ap_record rec;
		struct ap_error err;

		n = ap_record_decode(&rec, data + at, left, layout, &err);
		if (n < 0)
			return fprintf(stderr, "at %#zx: %s\n", (size_t)h->data.offset + at,
				       err.why),
			       1;
		if (rec.type >= 64)
			continue;
		encode_again(&rec, layout);
		printf("%#zx ", (size_t)h->data.offset + at);
		show_record(stdout, &rec);
	}
	return 0;
}
