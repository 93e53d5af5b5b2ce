/* Header and trailer, and the choice between the layouts of what is between them. */
#include "record/coding.h"

#include <linux/errno.h>

#include "record/describe.h"

static const char *const names[] = {
	[PERF_RECORD_MMAP] = "MMAP",
	[PERF_RECORD_LOST] = "LOST",
	[PERF_RECORD_COMM] = "COMM",
	[PERF_RECORD_EXIT] = "EXIT",
	[PERF_RECORD_THROTTLE] = "THROTTLE",
	[PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
	[PERF_RECORD_FORK] = "FORK",
	[PERF_RECORD_READ] = "READ",
	[PERF_RECORD_SAMPLE] = "SAMPLE",
	[PERF_RECORD_MMAP2] = "MMAP2",
	[PERF_RECORD_AUX] = "AUX",
	[PERF_RECORD_ITRACE_START] = "ITRACE_START",
	[PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
	[PERF_RECORD_SWITCH] = "SWITCH",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
	[PERF_RECORD_NAMESPACES] = "NAMESPACES",
	[PERF_RECORD_KSYMBOL] = "KSYMBOL",
	[PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
	[PERF_RECORD_CGROUP] = "CGROUP",
	[PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
	[AP_RECORD_CALLCHAIN_DEFERRED] = "CALLCHAIN_DEFERRED",
};

const char *ap__record_name(u32 type)
{
	return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

#define KNOWN_SAMPLE_BITS (BIT(25) - 1) /* to WEIGHT_STRUCT */
#define KNOWN_BRANCH_BITS (2 * (u64)PE_SAMPLE_BRANCH_COUNTERS - 1)
#define KNOWN_READ_BITS   (2 * (u64)PE_FORMAT_LOST - 1)

/* Whether the layout of a @type's body is known as far as @layout's bits decide about it. */
static bool layout_is_known(u32 type, const struct ap_layout *layout)
{
	u64 bits = layout->sample_type;

	if (type == PERF_RECORD_READ)
		return !(layout->read_format & ~KNOWN_READ_BITS);
	if (type != PERF_RECORD_SAMPLE)
		return true;
	return !(bits & ~KNOWN_SAMPLE_BITS) &&
	       !((bits & PERF_SAMPLE_READ) && (layout->read_format & ~KNOWN_READ_BITS)) &&
	       !((bits & PERF_SAMPLE_BRANCH_STACK) &&
		 (layout->branch_sample_type & ~KNOWN_BRANCH_BITS));
}

/* The trailer, in the order of the kernel's __perf_event__output_id_sample() [SAMP-30]. */
static void describe_trailer(struct codec *c, struct ap_sample_id *id, u64 sample_type)
{
	u32 reserved = 0;

	if (sample_type & PERF_SAMPLE_TID) {
		code_u32(c, &id->pid);
		code_u32(c, &id->tid);
	}
	if (sample_type & PERF_SAMPLE_TIME)
		code_u64(c, &id->time);
	if (sample_type & PERF_SAMPLE_ID)
		code_u64(c, &id->id);
	if (sample_type & PERF_SAMPLE_STREAM_ID)
		code_u64(c, &id->stream_id);
	if (sample_type & PERF_SAMPLE_CPU) {
		code_u32(c, &id->cpu);
		code_u32(c, &reserved);
	}
	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		code_u64(c, &id->id);
}

static bool has_trailer(u32 type, const struct ap_layout *layout)
{
	return layout->sample_id_all && type != PERF_RECORD_SAMPLE && type < RECORD_USER_TYPE_START;
}

/* Each bit is 8 bytes. */
bool ap__layout_same(const struct ap_layout *a, const struct ap_layout *b)
{
	return a->sample_type == b->sample_type && a->read_format == b->read_format &&
	       a->branch_sample_type == b->branch_sample_type &&
	       a->sample_regs_user == b->sample_regs_user &&
	       a->sample_regs_intr == b->sample_regs_intr && a->sample_id_all == b->sample_id_all;
}

size_t ap__record_trailer_size(const struct ap_layout *layout)
{
	if (!layout->sample_id_all)
		return 0;
	return (size_t)count_bits(layout->sample_type & RECORD_ID_BITS) * 8;
}

size_t ap__record_time_at(u32 type, size_t size, const struct ap_layout *layout)
{
	u64 bits = layout->sample_type, before = PERF_SAMPLE_TID;
	size_t at;

	if (!(bits & PERF_SAMPLE_TIME))
		return 0;
	if (type == PERF_RECORD_SAMPLE) {
		before |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP;
		at = sizeof(struct perf_event_header);
	} else if (has_trailer(type, layout) &&
		   size >= sizeof(struct perf_event_header) + ap__record_trailer_size(layout)) {
		at = size - ap__record_trailer_size(layout);
	} else {
		return 0;
	}
	at += (size_t)count_bits(bits & before) * 8;
	return at + 8 <= size ? at : 0;
}

size_t ap__record_id_at(u32 type, size_t size)
{
	if (type >= RECORD_USER_TYPE_START || size < sizeof(struct perf_event_header) + 8)
		return 0;
	return type == PERF_RECORD_SAMPLE ? sizeof(struct perf_event_header) : size - 8;
}

static int decode_sample(struct codec *c, struct ap_record *rec, const struct ap_layout *layout,
			 bool no_branches)
{
	ap__describe_sample(c, rec, layout, no_branches);
	rec->id.has = layout->sample_type & RECORD_ID_BITS;
	if (!c->why && cursor_left(&c->in))
		codec_fail(c, "it is longer than its sample_type says");
	return c->why ? -EBADMSG : 0;
}

static int decode_other(struct codec *c, struct ap_record *rec, const struct ap_layout *layout)
{
	size_t trailer = has_trailer(rec->type, layout) ? ap__record_trailer_size(layout) : 0;
	struct codec end = *c;

	if (trailer > cursor_left(&c->in)) {
		/* A type that is not known may be the first that has no trailer. */
		if (!rec->known)
			return 0;
		codec_fail(c, "it has no room for what sample_id_all adds");
		return -EBADMSG;
	}
	c->in.end -= trailer;
	ap__describe_other(c, rec, layout);
	if (c->why)
		return -EBADMSG;
	if (trailer) {
		end.in.pos = c->in.end;
		describe_trailer(&end, &rec->id, layout->sample_type);
		rec->id.has = layout->sample_type & RECORD_ID_BITS;
	}
	return 0;
}

static void begin(struct ap_record *rec, const struct perf_event_header *h, const void *bytes)
{
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->type = h->type;
	rec->misc = h->misc;
	rec->size = h->size;
	rec->bytes = bytes;
	rec->known = ap__record_name(h->type);
}

int ap__record_decode(struct ap_record *rec, const void *bytes, size_t len,
		      const struct ap_layout *layout, const char **why)
{
	struct codec c = {.op = CODEC_DECODE, .in = cursor_over(bytes, len)}, again;
	struct perf_event_header h;
	int r;

	*why = NULL;
	if ((uintptr_t)bytes % 8) {
		*why = "it does not begin on a multiple of 8";
		return -EINVAL;
	}
	CODEC_PART(&c, "its header");
	code_u32(&c, &h.type);
	code_u16(&c, &h.misc);
	code_u16(&c, &h.size);
	if (c.why) {
		*why = "its header is cut off";
		return -ENODATA;
	}
	if (h.size < sizeof(h) || (h.size % 8 && h.type < RECORD_USER_TYPE_START)) {
		*why = "its size is none that a record can have";
		return -EBADMSG;
	}
	if (h.size > len) {
		*why = "its end is cut off";
		return -ENODATA;
	}
	if (!layout_is_known(h.type, layout)) {
		*why = "its layout has bits that this library does not know";
		return -EOPNOTSUPP;
	}
	c.in.end = (const u8 *)bytes + h.size;
	again = c;
	begin(rec, &h, bytes);
	if (h.type == PERF_RECORD_SAMPLE)
		r = decode_sample(&c, rec, layout, false);
	else
		r = decode_other(&c, rec, layout);
	/* Only one of the two readings fills the record exactly. */
	if (r && h.type == PERF_RECORD_SAMPLE &&
	    (layout->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)) {
		begin(rec, &h, bytes);
		r = decode_sample(&again, rec, layout, true);
	}
	if (r) {
		*why = c.why;
		return r;
	}
	return h.size;
}

/* Runs the descriptions over the whole record. */
static void describe(struct codec *c, struct ap_record *rec, const struct ap_layout *layout,
		     u16 size)
{
	code_u32(c, &rec->type);
	code_u16(c, &rec->misc);
	code_u16(c, &size);
	if (rec->type == PERF_RECORD_SAMPLE)
		ap__describe_sample(c, rec, layout, false);
	else
		ap__describe_other(c, rec, layout);
	if (has_trailer(rec->type, layout))
		describe_trailer(c, &rec->id, layout->sample_type);
}

int ap__record_size(const struct ap_record *rec, const struct ap_layout *layout)
{
	struct codec c = {.op = CODEC_SIZE};

	if (!ap__record_name(rec->type) || !layout_is_known(rec->type, layout))
		return -EOPNOTSUPP;
	/* The descriptions write to a record only when they decode. */
	describe(&c, (struct ap_record *)rec, layout, 0);
	return c.size > RECORD_MAX ? -E2BIG : (int)c.size;
}

int ap__record_encode(const struct ap_record *rec, const struct ap_layout *layout, void *buf,
		      size_t len)
{
	struct codec c = {.op = CODEC_ENCODE, .out = buf};
	int size = ap__record_size(rec, layout);

	if (size < 0)
		return size;
	if ((size_t)size > len)
		return -ENOSPC;
	describe(&c, (struct ap_record *)rec, layout, (u16)size);
	return size;
}
