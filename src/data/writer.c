#include "data/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "data/zstd.h"
#include "lib/refusal/fail.h"
#include "record/codec.h"

#define BUFFER (256 * 1024)
#define PIECE  (RECORD_MAX - 64) /* of compressed bytes in a record */
/* What a reader must have room for to decompress one such record. */
#define UNPACKED (2 * BUFFER)

struct data_writer {
	int fd;
	struct data_writer_opts opts;
	struct data_header header;
	struct data_zstd *zstd; /* owned; NULL: records are not compressed */
	u8 *buf;                /* whole records that are not written yet; owned */
	size_t used;
	u8 *piece;       /* a record of compressed ones; owned, NULL without zstd */
	u64 at;          /* where the file ends; of a pipe, what has gone */
	u64 raw, packed; /* bytes of records, and what became of them */
	int failed;      /* the first error, and all that comes later */
};

static int fail_write(struct data_writer *w, int code, struct ap_error *err)
{
	w->failed = code;
	return ap__fail(err, code, AP_CAUSE_FILE, "writing the recording: %s", strerror(-code));
}

static int failed_before(const struct data_writer *w, struct ap_error *err)
{
	return ap__fail(err, w->failed, AP_CAUSE_FILE, "writing the recording: %s",
			strerror(-w->failed));
}

/* Writes as much as there is room for; *@done is how much that was. */
static int write_some(int fd, const u8 *bytes, size_t len, size_t *done)
{
	*done = 0;
	while (*done < len) {
		ssize_t n = write(fd, bytes + *done, len - *done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		*done += (size_t)n;
	}
	return 0;
}

/* Where the last record that is complete within @len bytes ends. */
static size_t whole_records(const u8 *bytes, size_t len)
{
	struct perf_event_header h;
	size_t at = 0;

	while (len - at >= sizeof(h)) {
		memcpy(&h, bytes + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > len - at)
			break;
		at += h.size;
	}
	return at;
}

/* Writes records; a full disk keeps those that fit whole. */
static int write_records(struct data_writer *w, const u8 *bytes, size_t len, struct ap_error *err)
{
	size_t done, whole;
	int r = write_some(w->fd, bytes, len, &done);

	if (!r) {
		w->at += len;
		return 0;
	}
	whole = whole_records(bytes, done);
	w->at += whole;
	/* A piece of a record would be in the way of the features. */
	if (!w->opts.pipe && done > whole && !ftruncate(w->fd, (off_t)w->at))
		(void)lseek(w->fd, (off_t)w->at, SEEK_SET);
	return fail_write(w, r, err);
}

static int write_all(struct data_writer *w, const void *bytes, size_t len, struct ap_error *err)
{
	size_t done;
	int r = write_some(w->fd, bytes, len, &done);

	w->at += done;
	return r ? fail_write(w, r, err) : 0;
}

/* Compresses what is in the buffer, into records of their own. */
static int write_compressed(struct data_writer *w, struct ap_error *err)
{
	struct data_zstd_input in = {w->buf, w->used};
	struct perf_event_header *h = (struct perf_event_header *)w->piece;
	long n;

	do {
		int r;

		n = data_zstd_step(w->zstd, &in, w->piece + sizeof(*h), PIECE);
		if (n < 0)
			return fail_write(w, -EIO, err);
		if (!n)
			break;
		*h = (struct perf_event_header){.type = DATA_COMPRESSED_RECORDS,
						.size = (u16)(sizeof(*h) + (size_t)n)};
		w->packed += (u64)n;
		r = write_records(w, w->piece, h->size, err);
		if (r)
			return r;
	} while (in.len || n == PIECE);
	return 0;
}

static int flush(struct data_writer *w, struct ap_error *err)
{
	int r;

	if (w->failed || !w->used)
		return w->failed;
	r = w->zstd ? write_compressed(w, err) : write_records(w, w->buf, w->used, err);
	w->used = 0;
	return r;
}

int data_writer_open(struct data_writer **out, int fd, const struct data_writer_opts *opts,
		     struct ap_error *err)
{
	struct data_writer *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return ap__fail_memory(err);
	w->fd = fd;
	w->opts = *opts;
	w->buf = malloc(BUFFER);
	if (opts->level)
		w->piece = malloc(RECORD_MAX);
	if (!w->buf || (opts->level && !w->piece))
		r = ap__fail_memory(err);
	if (!r && opts->level)
		r = data_zstd_open(&w->zstd, opts->level, err);
	if (r)
		data_writer_close(w);
	else
		*out = w;
	return r;
}

void data_writer_close(struct data_writer *w)
{
	if (!w)
		return;
	data_zstd_close(w->zstd);
	free(w->buf);
	free(w->piece);
	free(w);
}

u64 data_writer_bytes(const struct data_writer *w)
{
	return w->at;
}

u64 data_writer_raw_bytes(const struct data_writer *w)
{
	return w->raw;
}

/* The attrs of all events are as long as the longest. */
static u32 attr_size_of(const struct data_event *events, u32 nr)
{
	u32 size = PE_ATTR_SIZE_VER7;

	for (u32 i = 0; i < nr; i++) {
		static const u8 zeros[sizeof(struct pe_attr) - PE_ATTR_SIZE_VER7];
		const u8 *rest = (const u8 *)&events[i].attr + PE_ATTR_SIZE_VER7;

		if (memcmp(rest, zeros, sizeof(zeros)) != 0)
			size = sizeof(struct pe_attr);
	}
	return size;
}

/* A record of @type with @head and @tail, padded. False: it is too long, or there is no memory. */
static bool add_record(struct data_piece *p, u32 type, const void *head, size_t head_len,
		       const void *tail, size_t tail_len)
{
	static const u8 zeros[8];
	size_t size = ALIGN_UP(sizeof(struct perf_event_header) + head_len + tail_len, 8);
	struct perf_event_header h = {.type = type, .size = (u16)size};

	if (size > RECORD_MAX)
		return false;
	return data_piece_add(p, &h, sizeof(h)) && data_piece_add(p, head, head_len) &&
	       data_piece_add(p, tail, tail_len) &&
	       data_piece_add(p, zeros, size - sizeof(h) - head_len - tail_len);
}

/* How readers must prepare for decompressing. */
static void compressed_feature(const struct data_writer *w, u32 out[5])
{
	out[0] = 1; /* version */
	out[1] = 1; /* zstd */
	out[2] = (u32)w->opts.level;
	out[3] = w->packed ? (u32)(w->raw / w->packed) : 0;
	out[4] = UNPACKED;
}

/*
 * The features of a file stand behind its records, and are missing where the recorder was killed.
 * Without this one perf decompresses nothing; so it is a record too, as in a pipe.
 */
static bool add_compressed(struct data_writer *w, struct data_piece *p)
{
	const u64 id = DATA_COMPRESSED;
	u32 compressed[5];

	if (!w->zstd)
		return true;
	compressed_feature(w, compressed);
	return add_record(p, DATA_HEADER_FEATURE, &id, sizeof(id), compressed, sizeof(compressed));
}

static int start_file(struct data_writer *w, const struct data_event *events, u32 nr,
		      struct ap_error *err)
{
	u32 attr_size = attr_size_of(events, nr), entry = attr_size + sizeof(struct data_section);
	struct data_header *h = &w->header;
	struct data_piece p = {0};
	u64 ids_at = sizeof(*h);
	bool ok = true;
	int r;

	*h = (struct data_header){.magic = DATA_MAGIC, .size = sizeof(*h), .attr_size = entry};
	/* As perf has it: the ids, then the attrs, then the records. */
	h->attrs.offset = sizeof(*h);
	h->attrs.size = (u64)nr * entry;
	for (u32 i = 0; i < nr; i++)
		h->attrs.offset += events[i].nr_ids * sizeof(u64);
	h->data.offset = h->attrs.offset + h->attrs.size;
	ok = data_piece_add(&p, h, sizeof(*h));
	for (u32 i = 0; i < nr; i++)
		ok = ok && data_piece_add(&p, events[i].ids, events[i].nr_ids * sizeof(u64));
	for (u32 i = 0; i < nr; i++) {
		struct data_section ids = {ids_at, events[i].nr_ids * sizeof(u64)};
		struct pe_attr attr = events[i].attr;

		attr.size = attr_size;
		ok = ok && data_piece_add(&p, &attr, attr_size) &&
		     data_piece_add(&p, &ids, sizeof(ids));
		ids_at += ids.size;
	}
	ok = ok && add_compressed(w, &p);
	r = ok ? write_all(w, p.bytes, p.len, err) : ap__fail_memory(err);
	free(p.bytes);
	return r;
}

static bool add_event(struct data_piece *p, const struct data_event *e, u32 attr_size)
{
	struct pe_attr attr = e->attr;
	u64 update[2] = {DATA_UPDATE_NAME, e->nr_ids ? e->ids[0] : 0};
	const char *name = e->name ? e->name : "unknown";

	attr.size = attr_size;
	return add_record(p, DATA_HEADER_ATTR, &attr, attr_size, e->ids, e->nr_ids * sizeof(u64)) &&
	       add_record(p, DATA_EVENT_UPDATE, update, sizeof(update), name, strlen(name) + 1);
}

static bool add_tracing(struct data_piece *p, const struct data_piece *tracing)
{
	static const u8 zeros[8];
	u32 size = (u32)ALIGN_UP(tracing->len, 8);

	return add_record(p, DATA_HEADER_TRACING_DATA, &size, sizeof(size), NULL, 0) &&
	       data_piece_add(p, tracing->bytes, tracing->len) &&
	       data_piece_add(p, zeros, size - tracing->len);
}

static int start_pipe(struct data_writer *w, const struct data_event *events, u32 nr,
		      const struct data_features *features, struct ap_error *err)
{
	const struct data_pipe_header h = {DATA_MAGIC, sizeof(h)};
	struct data_piece p = {0};
	u32 attr_size = attr_size_of(events, nr), compressed[5];
	struct data_piece own = {.bytes = (u8 *)compressed, .len = sizeof(compressed)};
	bool ok = data_piece_add(&p, &h, sizeof(h));
	int r;

	compressed_feature(w, compressed);
	for (u32 i = 0; i < nr; i++)
		ok = ok && add_event(&p, &events[i], attr_size);
	for (u64 i = 0; i < DATA_FEATURES; i++) {
		const struct data_piece *f = &features->of[i];

		if (i == DATA_COMPRESSED && w->zstd)
			f = &own;
		if (!f->bytes || i == DATA_BUILD_ID)
			continue;
		if (i == DATA_TRACING_DATA)
			ok = ok && add_tracing(&p, f);
		else if (f->len < RECORD_MAX - 64) /* a longer one has no place in a pipe */
			ok = ok &&
			     add_record(&p, DATA_HEADER_FEATURE, &i, sizeof(i), f->bytes, f->len);
	}
	r = ok ? write_all(w, p.bytes, p.len, err) : ap__fail_memory(err);
	free(p.bytes);
	return r;
}

int data_writer_start(struct data_writer *w, const struct data_event *events, u32 nr,
		      const struct data_features *features, struct ap_error *err)
{
	return w->opts.pipe ? start_pipe(w, events, nr, features, err)
			    : start_file(w, events, nr, err);
}

int data_writer_append(struct data_writer *w, const void *records, size_t len, struct ap_error *err)
{
	const u8 *bytes = records;

	while (len) {
		size_t room = BUFFER - w->used;
		size_t n = len <= room ? len : whole_records(bytes, room);
		int r;

		if (w->failed)
			return failed_before(w, err);
		/* Larger than the buffer there is none, so an empty one has room for one. */
		CHECK(n || w->used);
		memcpy(w->buf + w->used, bytes, n);
		w->used += n;
		w->raw += n;
		bytes += n;
		len -= n;
		r = len ? flush(w, err) : 0;
		if (r)
			return r;
	}
	return 0;
}

/* How far the records go, for whoever reads what a killed recorder has left. */
static int update_header(struct data_writer *w, struct ap_error *err)
{
	ssize_t n;

	if (w->opts.pipe)
		return 0;
	n = pwrite(w->fd, &w->header, sizeof(w->header), 0);
	if (n == (ssize_t)sizeof(w->header))
		return 0;
	return fail_write(w, n < 0 ? -errno : -EIO, err);
}

int data_writer_round(struct data_writer *w, struct ap_error *err)
{
	const struct perf_event_header h = {.type = DATA_FINISHED_ROUND, .size = sizeof(h)};
	int r = data_writer_append(w, &h, sizeof(h), err);

	if (!r)
		r = flush(w, err);
	if (!w->opts.pipe)
		w->header.data.size = w->at - w->header.data.offset;
	/* Also when the disk is full: the header has its room. */
	return update_header(w, r ? NULL : err) && !r ? w->failed : r;
}

static int write_features(struct data_writer *w, const struct data_features *features,
			  struct ap_error *err)
{
	struct data_section sections[DATA_FEATURES];
	u64 bits = 0, at = w->at;
	u32 compressed[5], n = 0;
	struct data_piece own = {.bytes = (u8 *)compressed, .len = sizeof(compressed)};
	int r;

	compressed_feature(w, compressed);
	for (u32 i = 0; i < DATA_FEATURES; i++)
		n += features->of[i].bytes || (i == DATA_COMPRESSED && w->zstd);
	at += n * sizeof(sections[0]);
	n = 0;
	for (u32 i = 0; i < DATA_FEATURES; i++) {
		const struct data_piece *f = &features->of[i];

		if (i == DATA_COMPRESSED && w->zstd)
			f = &own;
		if (!f->bytes)
			continue;
		sections[n++] = (struct data_section){at, f->len};
		at += f->len;
		bits |= BIT(i);
	}
	r = write_all(w, sections, n * sizeof(sections[0]), err);
	for (u32 i = 0; i < DATA_FEATURES && !r; i++) {
		const struct data_piece *f = &features->of[i];

		if (i == DATA_COMPRESSED && w->zstd)
			f = &own;
		if (f->bytes)
			r = write_all(w, f->bytes, f->len, err);
	}
	if (!r)
		w->header.features[0] = bits;
	return r;
}

/* Of a pipe: the build ids are known at the end only, as records. */
static int write_build_ids(struct data_writer *w, const struct data_piece *ids,
			   struct ap_error *err)
{
	for (size_t at = 0; at < ids->len;) {
		struct data_build_id *id = (struct data_build_id *)(ids->bytes + at);

		id->header.type = DATA_HEADER_BUILD_ID;
		at += id->header.size;
	}
	return ids->len ? write_all(w, ids->bytes, ids->len, err) : 0;
}

int data_writer_finish(struct data_writer *w, const struct data_features *features,
		       struct ap_error *err)
{
	u64 end;
	int r = w->failed ? failed_before(w, err) : flush(w, err);

	if (w->opts.pipe)
		return r ? r : write_build_ids(w, &features->of[DATA_BUILD_ID], err);
	end = w->at;
	w->header.data.size = end - w->header.data.offset;
	/* A disk that is full for records may have room for this; if not the records remain. */
	if (write_features(w, features, r ? NULL : err)) {
		w->header.features[0] = 0;
		if (!ftruncate(w->fd, (off_t)end))
			w->at = end;
		r = r ? r : w->failed;
	}
	return update_header(w, r ? NULL : err) && !r ? w->failed : r;
}
