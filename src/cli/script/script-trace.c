/* The raw data of tracepoints, field by field. */
#include <inttypes.h>
#include <string.h>

#include "cli/put-name.h"
#include "cli/script/script-priv.h"
#include "data/tracing-format.h"

static u64 number_at(const u8 *bytes, u32 size, bool is_signed)
{
	u64 v = 0;

	memcpy(&v, bytes, size);
	if (is_signed && size < 8 && (v >> (size * 8 - 1) & 1))
		v |= ~0ull << (size * 8);
	return v;
}

static void print_text(const u8 *bytes, size_t len, FILE *out)
{
	for (size_t i = 0; i < len && bytes[i]; i++)
		fputc(bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.', out);
}

static void print_field(const struct data_field *f, const struct ap_bytes *raw, FILE *out)
{
	size_t at = f->offset, len = f->size;
	u64 v;

	put_name(out, 0, f->name);
	fputc('=', out);
	if (at > raw->len || len > raw->len - at)
		return;
	if (f->dynamic) {
		if (len != 4)
			return;
		v = number_at(raw->bytes + at, 4, false);
		at = v & 0xffff;
		len = v >> 16;
		if (at > raw->len || len > raw->len - at)
			return;
	}
	if (f->text) {
		print_text(raw->bytes + at, len, out);
		return;
	}
	if (!f->dynamic && (len == 1 || len == 2 || len == 4 || len == 8)) {
		v = number_at(raw->bytes + at, (u32)len, f->is_signed);
		if (f->is_signed)
			fprintf(out, "%" PRId64, (s64)v);
		else
			fprintf(out, v > 0xffff ? "0x%" PRIx64 : "%" PRIu64, v);
		return;
	}
	for (size_t i = 0; i < len; i++)
		fprintf(out, "%02x", raw->bytes[at + i]);
}

void script_print_trace(struct script_job *job, const struct data_item *item, FILE *out)
{
	const struct data_event *e = data_reader_event(job->reading.data,
						       item->event < 0 ? 0 : (u32)item->event);
	size_t len, size, at = 0;
	const void *tracing = data_reader_feature(job->reading.data, DATA_TRACING_DATA, &len);
	const char *format = NULL;
	struct data_field f;
	bool first = true;

	if (tracing && e && e->attr.type == PERF_TYPE_TRACEPOINT)
		format = data_tracing_find(tracing, len, e->attr.config, &size);
	while (format && data_tracing_field(format, size, &at, &f)) {
		if (!first)
			fputc(' ', out);
		first = false;
		print_field(&f, &item->record.sample.raw, out);
	}
}
