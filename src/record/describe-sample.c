/*
 * The SAMPLE record: the parts that sample_type asks for, in the order of the kernel's
 * perf_output_sample(), which is not that of the bits [SAMP-01..24, BR-05].
 */
#include "record/describe.h"

#include "record/coding.h"

size_t ap__record_read_size(u64 read_format, u64 nr)
{
	u64 head = 0, each = 1;

	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		head++;
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		head++;
	if (read_format & PERF_FORMAT_ID)
		each++;
	if (read_format & PE_FORMAT_LOST)
		each++;
	if (read_format & PERF_FORMAT_GROUP)
		head++;
	else
		nr = 1;
	return (head + nr * each) * sizeof(u64);
}

/* The number of a group's events is the block's first word, and is left in it. */
static u64 group_size(struct codec *c)
{
	struct cursor peek = c->in;
	u64 nr = cursor_u64(&peek);

	if (nr == 0 && !peek.torn)
		codec_fail(c, "a group of no events was read");
	/* Also keeps it from being multiplied into something that fits. */
	if (nr > cursor_left(&c->in) / sizeof(u64))
		codec_fail(c, c->part);
	return nr;
}

void ap__describe_read(struct codec *c, struct ap_read_block *read, u64 read_format)
{
	size_t len = read->len;

	CODEC_PART(c, "its read block");
	if (c->op == CODEC_DECODE) {
		u64 nr = read_format & PERF_FORMAT_GROUP ? group_size(c) : 1;

		len = ap__record_read_size(read_format, nr);
		read->len = len;
		read->format = read_format;
	}
	code_bytes(c, &read->bytes, len);
}

void ap__describe_callchain(struct codec *c, struct ap_callchain *chain)
{
	CODEC_PART(c, "its call chain");
	code_u64(c, &chain->nr);
	code_words(c, &chain->ips, chain->nr);
}

/*
 * The size in front of raw data has 32 bits, and includes what pads both to a multiple of 8; the
 * kernel gives 4 zeros where an event has no raw data [SAMP-12].
 */
static void describe_raw(struct codec *c, struct ap_bytes *raw)
{
	size_t len = raw->len, padding = (12 - len % 8) % 8;
	u32 size = (u32)(len + padding);

	CODEC_PART(c, "its raw data");
	code_u32(c, &size);
	if (c->op == CODEC_DECODE) {
		raw->len = len = size;
		padding = 0;
		if (len % 8 != 4)
			codec_fail(c, "its raw data does not end on a multiple of 8");
	}
	code_bytes(c, &raw->bytes, len);
	code_padding(c, padding);
}

/*
 * Without a branch stack at all (`entries` is NULL) there is only the number, 0; an empty one has
 * its hardware index behind the number. When decoding, @absent says which of the two it is.
 */
static void describe_branches(struct codec *c, struct ap_branch_stack *stack, u64 type, bool absent)
{
	u64 nr = stack->entries ? stack->nr : 0;

	CODEC_PART(c, "its branch stack");
	code_u64(c, &nr);
	if (c->op == CODEC_DECODE)
		stack->nr = nr;
	else
		absent = !stack->entries;
	if (absent && !nr)
		return;
	if (type & PERF_SAMPLE_BRANCH_HW_INDEX)
		code_u64(c, &stack->hw_idx);
	code_branches(c, &stack->entries, nr);
	if (type & PE_SAMPLE_BRANCH_COUNTERS)
		code_words(c, &stack->counters, nr);
}

static void describe_regs(struct codec *c, struct ap_regs *regs, u64 mask)
{
	code_u64(c, &regs->abi);
	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	if (c->op == CODEC_DECODE)
		regs->mask = mask;
	code_words(c, &regs->values, count_bits(mask));
}

/* A stack of size 0 has no dyn_size behind it [SAMP-15]. */
static void describe_stack(struct codec *c, struct ap_stack *stack)
{
	u64 len = stack->len;

	CODEC_PART(c, "its copy of the user stack");
	code_u64(c, &len);
	if (!len)
		return;
	if (c->op == CODEC_DECODE) {
		stack->len = len;
		if (len % 8)
			codec_fail(c, "its copy of the user stack is not a multiple of 8 long");
	}
	code_bytes(c, &stack->bytes, len);
	code_u64(c, &stack->dyn_size);
	if (stack->dyn_size > len)
		codec_fail(c, "more of its user stack was copied than there is room for");
}

static void describe_aux_data(struct codec *c, struct ap_bytes *aux)
{
	u64 len = aux->len;

	CODEC_PART(c, "its AUX data");
	code_u64(c, &len);
	if (c->op == CODEC_DECODE) {
		aux->len = len;
		if (len % 8)
			codec_fail(c, "its AUX data is not a multiple of 8 long");
	}
	code_bytes(c, &aux->bytes, len);
}

static void code_if(struct codec *c, bool wanted, u64 *v)
{
	if (wanted)
		code_u64(c, v);
}

/* IDENTIFIER to PERIOD: single words. */
static void describe_words(struct codec *c, struct ap_record *rec, u64 type)
{
	struct ap_sample_id *id = &rec->id;
	u32 reserved = 0;

	CODEC_PART(c, "what its sample_type asks for");
	code_if(c, type & PERF_SAMPLE_IDENTIFIER, &id->id);
	code_if(c, type & PERF_SAMPLE_IP, &rec->sample.ip);
	if (type & PERF_SAMPLE_TID) {
		code_u32(c, &id->pid);
		code_u32(c, &id->tid);
	}
	code_if(c, type & PERF_SAMPLE_TIME, &id->time);
	code_if(c, type & PERF_SAMPLE_ADDR, &rec->sample.addr);
	code_if(c, type & PERF_SAMPLE_ID, &id->id);
	code_if(c, type & PERF_SAMPLE_STREAM_ID, &id->stream_id);
	if (type & PERF_SAMPLE_CPU) {
		code_u32(c, &id->cpu);
		code_u32(c, &reserved);
	}
	code_if(c, type & PERF_SAMPLE_PERIOD, &rec->sample.period);
}

void ap__describe_sample(struct codec *c, struct ap_record *rec, const struct ap_layout *layout,
			 bool no_branches)
{
	struct ap_sample *s = &rec->sample;
	u64 type = layout->sample_type;

	describe_words(c, rec, type);
	if (type & PERF_SAMPLE_READ)
		ap__describe_read(c, &s->read, layout->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		ap__describe_callchain(c, &s->callchain);
	if (type & PERF_SAMPLE_RAW)
		describe_raw(c, &s->raw);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		describe_branches(c, &s->branch_stack, layout->branch_sample_type, no_branches);
	CODEC_PART(c, "its user registers");
	if (type & PERF_SAMPLE_REGS_USER)
		describe_regs(c, &s->regs_user, layout->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		describe_stack(c, &s->stack_user);
	CODEC_PART(c, "what its sample_type asks for");
	code_if(c, type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT), &s->weight);
	code_if(c, type & PERF_SAMPLE_DATA_SRC, &s->data_src);
	code_if(c, type & PERF_SAMPLE_TRANSACTION, &s->transaction);
	CODEC_PART(c, "its registers at the interrupt");
	if (type & PERF_SAMPLE_REGS_INTR)
		describe_regs(c, &s->regs_intr, layout->sample_regs_intr);
	CODEC_PART(c, "what its sample_type asks for");
	code_if(c, type & PERF_SAMPLE_PHYS_ADDR, &s->phys_addr);
	code_if(c, type & PERF_SAMPLE_CGROUP, &s->cgroup);
	code_if(c, type & PERF_SAMPLE_DATA_PAGE_SIZE, &s->data_page_size);
	code_if(c, type & PERF_SAMPLE_CODE_PAGE_SIZE, &s->code_page_size);
	if (type & PERF_SAMPLE_AUX)
		describe_aux_data(c, &s->aux);
}
