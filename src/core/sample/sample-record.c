/*
 * A SAMPLE record [SAMP-01..24]: what the driver found, what the event asked for, and what the core
 * knows itself. The layout is the encoder's.
 */
#include "core/core-priv.h"

#include <stdlib.h>
#include <string.h>

/* What the kernel says of a data source that nobody knows [SAMP-17]. */
#define DATA_SRC_NA 0x1e05080021ull

/* A record of that many addresses is as long as one can be. */
#define CHAIN_MAX (RECORD_MAX / 8)

/* Where the parts of a record are put together that are not in one piece. */
struct sample_scratch {
	u64 read[EVENT_READ_MAX / 8];
	u64 chain[CHAIN_MAX];
	u64 regs_user[64], regs_intr[64];
	struct perf_branch_entry branches[BRANCHES_MAX];
	u8 stack[65536], aux[65536];
};

struct sample_scratch *sample_scratch_new(void)
{
	return calloc(1, sizeof(struct sample_scratch));
}

static void read_now(struct event *event)
{
	if (event->state == EVENT_ACTIVE)
		event->pmu->read(event);
}

/* Of an inherited event that samples its count, each copy tells its own [SAMP-10]. */
static u64 count_of(struct event *event)
{
	if (event->standin)
		return standin_told(event);
	return (u64)event->count + (event->attr.inherit ? 0 : (u64)event->child_count);
}

/* A stand-in tells of its original. */
static const struct event *told_of(const struct event *event)
{
	return event->standin ? event->parent : event;
}

static u32 put_id_and_lost(const struct event *event, u64 format, u64 *words, u32 n)
{
	if (format & PERF_FORMAT_ID)
		words[n++] = event_primary_id(event);
	if (format & PE_FORMAT_LOST)
		words[n++] = told_of(event)->lost_samples;
	return n;
}

static u32 read_one(struct event *event, u64 *words)
{
	u64 format = event->attr.read_format;
	const struct event *who = told_of(event);
	u32 n = 0;

	words[n++] = count_of(event);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = who->time_enabled + who->child_time_enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = who->time_running + who->child_time_running;
	return put_id_and_lost(event, format, words, n);
}

/* The times are those of who samples; the format too, whatever the members' own. */
static u32 read_whole_group(struct event *event, u64 *words)
{
	struct event *leader = event->leader, *sibling;
	u64 format = event->attr.read_format;
	const struct event *who = told_of(event);
	u32 n = 0;

	words[n++] = 1 + leader->nr_siblings;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = who->time_enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = who->time_running;
	if (leader != event)
		read_now(leader);
	words[n++] = count_of(leader);
	n = put_id_and_lost(leader, format, words, n);
	list_for_each_entry (sibling, &leader->siblings, sibling_link) {
		if (sibling != event)
			read_now(sibling);
		words[n++] = count_of(sibling);
		n = put_id_and_lost(sibling, format, words, n);
	}
	return n;
}

struct ap_read_block sample_read_block(struct event *event)
{
	u64 format = event->attr.read_format, *words = event->core->scratch->read;
	struct event *who = event->standin ? event->parent : event;
	u32 n;

	if (who->in_ctx) {
		ctx_time_update(who->ctx);
		event_update_time(who);
	}
	n = format & PERF_FORMAT_GROUP ? read_whole_group(event, words) : read_one(event, words);
	return (struct ap_read_block){
		.format = format, .len = n * sizeof(*words), .bytes = (const u8 *)words};
}

static struct ap_callchain chain_of(const struct event *event, const struct sample_facts *facts,
				    u64 *words)
{
	const struct ap_callchain *given = &facts->sample.callchain;
	struct ap_callchain chain = {.ips = words};
	u64 max = min_u64(event->attr.sample_max_stack, CHAIN_MAX - 1);

	if (facts->kernel_chain.nr && !event->attr.exclude_callchain_kernel) {
		words[chain.nr++] = PERF_CONTEXT_KERNEL;
		for (u64 i = 0; i < facts->kernel_chain.nr && i < max; i++)
			words[chain.nr++] = facts->kernel_chain.ips[i];
		max -= chain.nr - 1;
	}
	if (!(facts->has & PERF_SAMPLE_CALLCHAIN) || event->attr.exclude_callchain_user)
		return chain;
	words[chain.nr++] = PERF_CONTEXT_USER;
	for (u64 i = 0; i < given->nr && i < max; i++)
		words[chain.nr++] = given->ips[i];
	return chain;
}

/* Of what is given that which is wanted, the lowest bit first. */
static struct ap_regs regs_of(const struct ap_regs *given, bool has, u64 wanted, u64 *words)
{
	struct ap_regs regs = {.abi = PERF_SAMPLE_REGS_ABI_NONE};
	u32 from = 0, n = 0;

	if (!has || given->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return regs;
	for (u32 bit = 0; bit < 64; bit++) {
		bool there = given->mask & BIT(bit);

		if (wanted & BIT(bit))
			words[n++] = there ? given->values[from] : 0;
		from += there;
	}
	return (struct ap_regs){.abi = given->abi, .mask = wanted, .values = words};
}

/*
 * As much as was asked for, of which the rest is zeros; cut so that the record is not longer than
 * one can be [SAMP-15]. @others is what the record has without it.
 */
static struct ap_stack stack_of(const struct event *event, const struct sample_facts *facts,
				size_t others, u8 *bytes)
{
	const struct ap_stack *given = &facts->sample.stack_user;
	struct ap_stack stack = {.len = event->attr.sample_stack_user, .bytes = bytes};
	size_t room;

	if (!(facts->has & PERF_SAMPLE_STACK_USER) || others + 16 > RECORD_MAX)
		return (struct ap_stack){0};
	/* dyn_size stands behind the copy. */
	room = RECORD_MAX - others - 8;
	if (stack.len > room)
		stack.len = ALIGN_DOWN(room, 8);
	stack.dyn_size = min_u64(given->len, stack.len);
	if (stack.dyn_size)
		memcpy(bytes, given->bytes, stack.dyn_size);
	memset(bytes + stack.dyn_size, 0, stack.len - stack.dyn_size);
	return stack;
}

/* A program's code is in pages of the usual size, unless somebody knows better [SAMP-22]. */
static u64 code_page_size(const struct event *event, const struct sample_facts *facts)
{
	if (facts->has & PERF_SAMPLE_CODE_PAGE_SIZE)
		return facts->sample.code_page_size;
	return facts->cpumode == PERF_RECORD_MISC_USER && facts->sample.ip ? event->core->page_size
									   : 0;
}

/* ADDR of a breakpoint on code is where it stands. */
static u64 data_page_size(const struct event *event, const struct sample_facts *facts)
{
	const struct ap_sample *given = &facts->sample;

	if (facts->has & PERF_SAMPLE_DATA_PAGE_SIZE)
		return given->data_page_size;
	return facts->has & PERF_SAMPLE_ADDR && given->addr == given->ip
		       ? code_page_size(event, facts)
		       : 0;
}

/*
 * The newest of what the group's leader traces, in words; as much as fits a record. @others is what
 * the record has without it.
 */
static struct ap_bytes trace_of(const struct event *event, size_t others, u8 *bytes)
{
	struct event *leader = event->leader;
	const struct event *output = leader->parent ? leader->parent : leader;
	u64 size = event->attr.aux_sample_size, got;

	if (others > RECORD_MAX || leader == event || leader->state != EVENT_ACTIVE ||
	    !leader->pmu->snapshot_aux || !output->buffer || !output->buffer->aux.maps)
		return (struct ap_bytes){0};
	size = ALIGN_DOWN(min_u64(size, RECORD_MAX - others), 8);
	size = min_u64(size, output->buffer->aux.nr_pages * event->core->page_size);
	got = leader->pmu->snapshot_aux(leader, bytes, size);
	CHECK(got <= size);
	memset(bytes + got, 0, ALIGN_UP(got, 8) - got);
	return (struct ap_bytes){.len = (u32)ALIGN_UP(got, 8), .bytes = bytes};
}

static void fill(struct event *event, const struct sample_facts *facts, struct ap_sample *sample)
{
	const struct ap_sample *given = &facts->sample;
	struct sample_scratch *scratch = event->core->scratch;
	u64 type = event->attr.sample_type, has = facts->has;

	sample->ip = given->ip;
	sample->addr = has & PERF_SAMPLE_ADDR ? given->addr : 0;
	sample->period = has & PERF_SAMPLE_PERIOD ? given->period : event->hw.last_period;
	if (type & PERF_SAMPLE_READ)
		sample->read = sample_read_block(event);
	if (type & PERF_SAMPLE_CALLCHAIN)
		sample->callchain = chain_of(event, facts, scratch->chain);
	if (has & PERF_SAMPLE_RAW)
		sample->raw = given->raw;
	if (type & has & PERF_SAMPLE_BRANCH_STACK)
		sample->branch_stack = branches_of(event, &given->branch_stack, scratch->branches);
	sample->regs_user = regs_of(&given->regs_user, has & PERF_SAMPLE_REGS_USER,
				    event->attr.sample_regs_user, scratch->regs_user);
	sample->regs_intr = regs_of(&given->regs_intr, has & PERF_SAMPLE_REGS_INTR,
				    event->attr.sample_regs_intr, scratch->regs_intr);
	if (has & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		sample->weight = given->weight;
	sample->data_src = has & PERF_SAMPLE_DATA_SRC ? given->data_src : DATA_SRC_NA;
	sample->transaction = has & PERF_SAMPLE_TRANSACTION ? given->transaction : 0;
	sample->phys_addr = has & PERF_SAMPLE_PHYS_ADDR ? given->phys_addr : 0;
	sample->data_page_size = data_page_size(event, facts);
	sample->code_page_size = code_page_size(event, facts);
	if (facts->task && facts->task->cgroup)
		sample->cgroup = facts->task->cgroup->id;
}

void sample_write(struct event *event, const struct sample_facts *facts)
{
	struct ap_layout layout = event_layout(event);
	struct ap_record rec = {.type = PERF_RECORD_SAMPLE, .misc = facts->cpumode};
	int others;

	if (!output_wanted(event))
		return;
	if (facts->exact_ip)
		rec.misc |= PERF_RECORD_MISC_EXACT_IP;
	fill(event, facts, &rec.sample);
	if (event->attr.sample_type & PERF_SAMPLE_STACK_USER) {
		others = ap__record_size(&rec, &layout);
		if (others > 0)
			rec.sample.stack_user = stack_of(event, facts, (size_t)others,
							 event->core->scratch->stack);
	}
	if (event->attr.sample_type & PERF_SAMPLE_AUX) {
		others = ap__record_size(&rec, &layout);
		if (others > 0)
			rec.sample.aux = trace_of(event, (size_t)others, event->core->scratch->aux);
	}
	output_record(event, &rec, facts->task, facts->time);
}
