/*
 * PURPOSE: between a record of perf_event as a value (struct ap_record) and as bytes, in both
 * directions. One description of the layout serves whoever reads records (the library) and whoever
 * writes them (tests, perf.data, the subsystem in user space), so that the two cannot drift apart.
 *
 * Pure code, like base: no system call, no allocation, no libc. Nothing is kept between calls.
 *
 * Numbers have the byte order of this machine. The field order of a SAMPLE is that of the kernel's
 * perf_output_sample(), of a trailer that of perf_event__output_id_sample() [SAMP-01..33,
 * REC-01..20].
 */
#ifndef RECORD_CODING_H
#define RECORD_CODING_H

#include <anyperf/record.h>

#include "record/codec.h"

/* The sample_type bits of a trailer. */
#define RECORD_ID_BITS                                                                 \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* Types from here on are the perf tool's: they exist in files only and have no trailer. */
#define RECORD_USER_TYPE_START 64

/*
 * Decodes the record at @bytes; the rules and errors are ap_record_decode()'s. On failure *@why is
 * what does not fit, a sentence without its subject ("has no room for ..."), and @rec is undefined.
 */
int ap__record_decode(struct ap_record *rec, const void *bytes, size_t len,
		      const struct ap_layout *layout, const char **why) must_check;

/*
 * Writes @rec with @layout to @buf, of which @len bytes may be written. `size`, `bytes`, `known`
 * and id.has are not looked at: the layout says what is written. Strings and raw data are padded
 * with zeros to a multiple of 8. Returns the bytes written, or
 *   -ENOSPC      @len is too short
 *   -E2BIG       it would be longer than RECORD_MAX
 *   -EOPNOTSUPP  the type, or a bit of the layout, is not known
 */
int ap__record_encode(const struct ap_record *rec, const struct ap_layout *layout, void *buf,
		      size_t len) must_check;

/* The bytes that ap__record_encode() would write, or its error. */
int ap__record_size(const struct ap_record *rec, const struct ap_layout *layout) must_check;

/* Whether records of both are laid out alike. */
bool ap__layout_same(const struct ap_layout *a, const struct ap_layout *b);

/* How long a trailer of @layout is; 0 without sample_id_all. */
size_t ap__record_trailer_size(const struct ap_layout *layout);

/* Where in a record of @type and @size its time stands, or 0 if it has none. */
size_t ap__record_time_at(u32 type, size_t size, const struct ap_layout *layout);

/*
 * Where in a record of @type and @size its event's id stands if all events of the stream have
 * PERF_SAMPLE_IDENTIFIER and sample_id_all, or 0 if it has none.
 */
size_t ap__record_id_at(u32 type, size_t size);

/* "MMAP2" for PERF_RECORD_MMAP2; NULL for a type that is not known. */
const char *ap__record_name(u32 type);

/* How many bytes a read block of @nr events takes; @nr is 1 without PERF_FORMAT_GROUP. */
size_t ap__record_read_size(u64 read_format, u64 nr);

#endif
