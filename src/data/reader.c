/*
 * Records one after the other, out of a buffer that is filled by read(2). Compressed records are
 * unpacked piece by piece into a second buffer, and taken from there until it is empty, so that
 * what little expands to much does not become memory.
 */
#include "data/reader-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/zstd.h"
#include "lib/refusal/fail.h"
#include "record/coding.h"

#define READ_BUFFER   (256 * 1024)
#define UNPACK_BUFFER (256 * 1024)
#define NO_END        UINT64_MAX

/* Bytes that were read or unpacked, and are not taken yet. */
struct data_window {
	u8 *bytes; /* owned */
	size_t at, end, room;
};

struct data_reader {
	int fd;
	char *name; /* owned */
	bool pipe;
	bool over; /* the end, or an error that was told */
	struct data_meta meta;
	struct data_window file;
	u64 offset; /* in the file, of file.at */
	u64 end;    /* of the records in the file; NO_END: where it ends */
	struct data_window unpacked;
	struct data_zstd *zstd;        /* owned; NULL until it is needed */
	struct data_zstd_input packed; /* in `record` of a compressed record, what is left */
	u64 packed_at;                 /* its offset */
	bool unpacks;                  /* `packed` may have more to give */
	void (*wait)(void *data);      /* NULL: nothing to do before reading */
	void *wait_data;
	u64 *record, *packed_record; /* RECORD_MAX bytes each, on a multiple of 8; owned */
};

static bool window_init(struct data_window *w, size_t room)
{
	w->bytes = malloc(room);
	w->room = room;
	return w->bytes;
}

/* Reads until @need bytes are there. 1, 0 if the file ends before, or -errno. */
static int fill(struct data_reader *r, size_t need)
{
	struct data_window *w = &r->file;

	if (w->end - w->at >= need)
		return 1;
	memmove(w->bytes, w->bytes + w->at, w->end - w->at);
	w->end -= w->at;
	w->at = 0;
	while (w->end < need) {
		ssize_t n;

		if (r->wait)
			r->wait(r->wait_data);
		n = read(r->fd, w->bytes + w->end, w->room - w->end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		w->end += (size_t)n;
	}
	return 1;
}

void data_reader_on_wait(struct data_reader *r, void (*wait)(void *data), void *data)
{
	r->wait = wait;
	r->wait_data = data;
}

static void taken(struct data_reader *r, size_t len)
{
	r->file.at += len;
	r->offset += len;
}

static int fail_read(struct data_reader *r, int code, struct ap_error *err)
{
	r->over = true;
	return ap__fail(err, code, AP_CAUSE_FILE, "%s: %s", r->name, strerror(-code));
}

static int fail_end(struct data_reader *r, u64 offset, struct ap_error *err)
{
	r->over = true;
	return ap__fail(err, -ENODATA, AP_CAUSE_FILE,
			"%s ends in the middle of a record at offset %llu: read up to there",
			r->name, (unsigned long long)offset);
}

static int fail_record(struct data_reader *r, u64 offset, const char *what, struct ap_error *err)
{
	r->over = true;
	return ap__fail(err, -EBADMSG, AP_CAUSE_FILE, "%s: at offset %llu %s: read up to there",
			r->name, (unsigned long long)offset, what);
}

static int open_pipe(struct data_reader *r)
{
	r->pipe = true;
	r->end = NO_END;
	taken(r, sizeof(struct data_pipe_header));
	return 0;
}

static int open_file(struct data_reader *r, struct ap_error *err)
{
	struct data_header h;
	struct stat st;
	int n;

	if (fstat(r->fd, &st) || lseek(r->fd, 0, SEEK_CUR) < 0)
		return ap__fail(err, -EBADMSG, AP_CAUSE_FILE,
				"%s has a file's header and comes through a pipe; write it with "
				"`-o -`, or read the file itself",
				r->name);
	n = data_meta_read_header(&r->meta, &h, r->fd, (u64)st.st_size, r->name, err);
	if (n)
		return n;
	r->offset = h.data.offset;
	/* A recorder that was killed before the first round has not said how long they are. */
	r->end = h.data.size || h.features[0] ? h.data.offset + h.data.size : NO_END;
	r->file.at = r->file.end = 0;
	if (lseek(r->fd, (off_t)h.data.offset, SEEK_SET) < 0)
		return fail_read(r, -errno, err);
	return 0;
}

static int begin(struct data_reader *r, struct ap_error *err)
{
	struct data_pipe_header h;
	int n = fill(r, sizeof(h));

	if (n < 0)
		return fail_read(r, n, err);
	if (n)
		memcpy(&h, r->file.bytes, sizeof(h));
	if (n && h.magic == DATA_MAGIC_SWAP)
		return ap__fail(err, -EOPNOTSUPP, AP_CAUSE_FILE,
				"%s was recorded on a machine with the other byte order", r->name);
	if (!n || h.magic != DATA_MAGIC)
		return ap__fail(err, -EBADMSG, AP_CAUSE_FILE, "%s is not a perf.data file%s",
				r->name, r->file.end ? "" : ": it is empty");
	return h.size == sizeof(h) ? open_pipe(r) : open_file(r, err);
}

int data_reader_open(struct data_reader **out, int fd, const char *name, struct ap_error *err)
{
	struct data_reader *r = calloc(1, sizeof(*r));
	int n;

	if (!r)
		return ap__fail_memory(err);
	r->fd = fd;
	r->meta.alike = true;
	r->name = strdup(name);
	r->record = malloc(RECORD_MAX + 8);
	if (!r->name || !r->record || !window_init(&r->file, READ_BUFFER)) {
		data_reader_close(r);
		return ap__fail_memory(err);
	}
	n = begin(r, err);
	if (n)
		data_reader_close(r);
	else
		*out = r;
	return n;
}

void data_reader_close(struct data_reader *r)
{
	if (!r)
		return;
	data_meta_release(&r->meta);
	data_zstd_close(r->zstd);
	free(r->file.bytes);
	free(r->unpacked.bytes);
	free(r->record);
	free(r->packed_record);
	free(r->name);
	free(r);
}

u32 data_reader_events(const struct data_reader *r)
{
	return r->meta.nr_events;
}

const struct data_event *data_reader_event(const struct data_reader *r, u32 i)
{
	return i < r->meta.nr_events ? &r->meta.events[i] : NULL;
}

int data_reader_event_of(struct data_reader *r, u64 id)
{
	return data_meta_event_of(&r->meta, id);
}

const void *data_reader_feature(struct data_reader *r, enum data_feature feature, size_t *len)
{
	*len = r->meta.features.of[feature].len;
	return r->meta.features.of[feature].bytes;
}

bool data_reader_is_pipe(const struct data_reader *r)
{
	return r->pipe;
}

/* The next record of the file itself, in @to. As data_reader_next(). */
static int next_of_file(struct data_reader *r, u64 *to, u64 *offset, struct ap_error *err)
{
	struct perf_event_header h;
	int n;

	*offset = r->offset;
	if (r->offset >= r->end)
		return 0;
	n = fill(r, sizeof(h));
	if (n < 0)
		return fail_read(r, n, err);
	if (!n)
		return r->file.end == r->file.at && r->end == NO_END ? 0
								     : fail_end(r, *offset, err);
	memcpy(&h, r->file.bytes + r->file.at, sizeof(h));
	if (h.size < sizeof(h))
		return fail_record(r, *offset, "stands no record", err);
	n = fill(r, h.size);
	if (n < 0)
		return fail_read(r, n, err);
	if (!n || h.size > r->end - r->offset)
		return fail_end(r, *offset, err);
	memcpy(to, r->file.bytes + r->file.at, h.size);
	taken(r, h.size);
	return 1;
}

/*
 * Passes over what follows a record that announces more than itself; into @keep (NULL: nowhere).
 */
static int skip(struct data_reader *r, u64 len, struct data_piece *keep, u64 offset,
		struct ap_error *err)
{
	while (len) {
		size_t have = r->file.end - r->file.at, n;
		int got;

		if (!have) {
			got = fill(r, 1);
			if (got < 0)
				return fail_read(r, got, err);
			if (!got)
				return fail_end(r, offset, err);
			continue;
		}
		n = have < len ? have : (size_t)len;
		if (keep && !data_piece_add(keep, r->file.bytes + r->file.at, n))
			return fail_read(r, -ENOMEM, err);
		taken(r, n);
		len -= n;
	}
	return 0;
}

static int skip_behind(struct data_reader *r, const struct perf_event_header *h, u64 offset,
		       struct ap_error *err)
{
	struct data_piece *formats = &r->meta.features.of[DATA_TRACING_DATA];
	u64 aux = 0;
	u32 tracing = 0;

	if (h->type == DATA_HEADER_TRACING_DATA && h->size >= sizeof(*h) + sizeof(tracing)) {
		memcpy(&tracing, h + 1, sizeof(tracing));
		return skip(r, ALIGN_UP((u64)tracing, 8), formats->bytes ? NULL : formats, offset,
			    err);
	}
	if (h->type == DATA_AUXTRACE && h->size >= sizeof(*h) + sizeof(aux)) {
		memcpy(&aux, h + 1, sizeof(aux));
		return skip(r, aux, NULL, offset, err);
	}
	return 0;
}

/* What is in a compressed record is the next input. */
static int begin_packed(struct data_reader *r, u64 offset, struct ap_error *err)
{
	const struct perf_event_header *h = (const void *)r->packed_record;
	size_t head = sizeof(*h), len = h->size;
	u64 said;
	int n;

	if (!r->zstd) {
		n = data_zstd_open(&r->zstd, 0, err);
		if (n) {
			r->over = true;
			return n;
		}
	}
	if (!r->unpacked.bytes && !window_init(&r->unpacked, UNPACK_BUFFER))
		return fail_read(r, -ENOMEM, err);
	if (h->type == DATA_COMPRESSED_RECORDS2) {
		head += sizeof(said);
		if (len < head)
			return fail_record(r, offset, "stands no compressed record", err);
		memcpy(&said, h + 1, sizeof(said));
		len = said < len - head ? head + (size_t)said : len;
	}
	r->packed = (struct data_zstd_input){(const u8 *)r->packed_record + head, len - head};
	r->packed_at = offset;
	r->unpacks = true;
	return 0;
}

/* Unpacks more, behind what is there. 1; 0: all of the compressed record has been. */
static int unpack(struct data_reader *r, struct ap_error *err)
{
	struct data_window *w = &r->unpacked;
	size_t room;
	long n;

	if (!r->unpacks)
		return 0;
	memmove(w->bytes, w->bytes + w->at, w->end - w->at);
	w->end -= w->at;
	w->at = 0;
	room = w->room - w->end;
	n = data_zstd_step(r->zstd, &r->packed, w->bytes + w->end, room);
	if (n < 0)
		return fail_record(r, r->packed_at, "stands what is not zstd's", err);
	w->end += (size_t)n;
	/* A full buffer may have left something inside of the decompressor. */
	r->unpacks = r->packed.len || (size_t)n == room;
	if (!n && r->packed.len)
		return fail_record(r, r->packed_at, "stands what zstd cannot go on with", err);
	return 1;
}

/* The next record that was compressed. 1, 0: there is none (yet), or -errno. */
static int next_unpacked(struct data_reader *r, struct ap_error *err)
{
	struct data_window *w = &r->unpacked;
	struct perf_event_header h = {.size = sizeof(h)};
	int n;

	for (;;) {
		size_t have = w->end - w->at;

		if (have >= sizeof(h)) {
			memcpy(&h, w->bytes + w->at, sizeof(h));
			if (h.size < sizeof(h))
				return fail_record(r, r->packed_at,
						   "is compressed what is no record", err);
			if (have >= h.size)
				break;
		}
		n = unpack(r, err);
		if (n <= 0)
			return n;
	}
	memcpy(r->record, w->bytes + w->at, h.size);
	w->at += h.size;
	return 1;
}

static bool is_packed(u32 type)
{
	return type == DATA_COMPRESSED_RECORDS || type == DATA_COMPRESSED_RECORDS2;
}

/* The next record from wherever it comes, in r->record. */
static int next_record(struct data_reader *r, struct data_item *item, struct ap_error *err)
{
	const struct perf_event_header *h = (const void *)r->record;
	int n;

	for (;;) {
		n = r->unpacked.bytes ? next_unpacked(r, err) : 0;
		if (n) {
			item->unpacked = true;
			item->offset = r->packed_at;
			return n;
		}
		n = next_of_file(r, r->record, &item->offset, err);
		if (n <= 0)
			return n;
		item->unpacked = false;
		if (!is_packed(h->type))
			return skip_behind(r, h, item->offset, err) ? -ENODATA : 1;
		if (!r->packed_record) {
			r->packed_record = malloc(RECORD_MAX + 8);
			if (!r->packed_record)
				return fail_read(r, -ENOMEM, err);
		}
		memcpy(r->packed_record, r->record, h->size);
		n = begin_packed(r, item->offset, err);
		if (n)
			return n;
	}
}

/* Whose record it is, and what it says. */
void data_reader_decode(struct data_reader *r, struct data_item *item,
			const struct perf_event_header *h)
{
	struct data_meta *m = &r->meta;
	uint64_t id = 0;
	int n = 0;

	item->header = h;
	item->event = m->nr_events == 1 ? 0 : -1;
	if (h->type < RECORD_USER_TYPE_START && m->nr_events) {
		/* What is told before recording begins has no id, and the first event's layout. */
		if (!m->alike && !ap_record_event_id(h, h->size, &id))
			item->event = data_meta_event_of(m, id);
		n = ap__record_decode(&item->record, h, h->size,
				      &m->layouts[item->event >= 0 ? item->event : 0], &item->why);
		if (n > 0 && m->alike && m->nr_events > 1)
			item->event = data_meta_event_of(m, item->record.id.id);
	}
	item->decoded = n > 0;
	if (n <= 0)
		item->record = (struct ap_record){
			.type = h->type, .misc = h->misc, .size = h->size, .bytes = h};
}

int data_reader_next(struct data_reader *r, struct data_item *item, struct ap_error *err)
{
	const struct perf_event_header *h = (const void *)r->record;
	int n;

	if (r->over)
		return 0;
	*item = (struct data_item){.event = -1};
	n = next_record(r, item, err);
	if (n <= 0) {
		r->over = true;
		return n;
	}
	if (h->type >= RECORD_USER_TYPE_START)
		data_meta_take_record(&r->meta, h);
	data_reader_decode(r, item, h);
	return 1;
}
