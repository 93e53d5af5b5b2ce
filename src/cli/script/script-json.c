/* A sample as a line of JSON; doc/json.md describes it. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/json.h"
#include "cli/script/script-priv.h"

static void put_hex(struct json *j, const char *key, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%#" PRIx64, value);
	json_str(j, key, text);
}

static void put_place(struct script_job *job, struct json *j, const struct data_item *item, u64 ip,
		      bool kernel)
{
	struct sym_place at;

	reading_find(&job->reading, item, ip, kernel, &at);
	put_hex(j, "ip", ip);
	json_str(j, "mode", kernel ? "kernel" : "user");
	if (at.symbol) {
		json_str(j, "symbol", at.symbol);
		json_u64(j, "offset", at.offset);
	}
	if (at.mapped) {
		json_str(j, "object", at.object);
		put_hex(j, "address", at.addr);
	}
}

static void put_chain(struct script_job *job, struct json *j, const struct data_item *item)
{
	struct reading_walk walk = {0};
	u64 ip;

	json_array(j, "callchain");
	while (reading_walk_next(&job->reading, item, &walk, &ip)) {
		json_object(j, NULL);
		put_place(job, j, item, ip, walk.kernel);
		json_end(j);
	}
	json_end(j);
}

static void put_branches(struct json *j, const struct ap_branch_stack *b)
{
	json_array(j, "branches");
	for (u64 i = 0; i < b->nr; i++) {
		json_object(j, NULL);
		put_hex(j, "from", b->entries[i].from);
		put_hex(j, "to", b->entries[i].to);
		json_bool(j, "mispredicted", b->entries[i].mispred);
		json_u64(j, "cycles", b->entries[i].cycles);
		json_end(j);
	}
	json_end(j);
}

void script_print_json(struct script_job *job, const struct data_item *item)
{
	const struct ap_sample *s = &item->record.sample;
	const struct ap_sample_id *id = &item->record.id;
	const struct data_event *e = data_reader_event(job->reading.data,
						       item->event < 0 ? 0 : (u32)item->event);
	u64 type = e ? e->attr.sample_type : 0;
	char room[16];
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-script-1");
	json_str(&j, "event", reading_event_name(&job->reading, item->event));
	if (id->has & PERF_SAMPLE_TIME)
		json_u64(&j, "time_ns", id->time);
	if (id->has & PERF_SAMPLE_TID) {
		json_str(&j, "comm", reading_comm(&job->reading, item, room));
		json_u64(&j, "pid", id->pid);
		json_u64(&j, "tid", id->tid);
	}
	if (id->has & PERF_SAMPLE_CPU)
		json_u64(&j, "cpu", id->cpu);
	json_u64(&j, "period", reading_period(&job->reading, item));
	if (type & PERF_SAMPLE_IP)
		put_place(job, &j, item, s->ip, reading_in_kernel(item));
	if (type & PERF_SAMPLE_ADDR)
		put_hex(&j, "addr", s->addr);
	if (type & PERF_SAMPLE_CALLCHAIN)
		put_chain(job, &j, item);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		put_branches(&j, &s->branch_stack);
	json_end(&j);
	json_finish(&j);
}
