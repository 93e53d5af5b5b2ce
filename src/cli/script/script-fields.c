/* Which fields are shown: perf's names, and perf's choice for each kind of event. */
#include <string.h>

#include "base/check.h"
#include "cli/script/script-priv.h"

#define F(name) (1u << FIELD_##name)

static const char *const names[FIELD_NUM] = {
	[FIELD_COMM] = "comm",     [FIELD_PID] = "pid",           [FIELD_TID] = "tid",
	[FIELD_CPU] = "cpu",       [FIELD_TIME] = "time",         [FIELD_PERIOD] = "period",
	[FIELD_EVENT] = "event",   [FIELD_TRACE] = "trace",       [FIELD_ADDR] = "addr",
	[FIELD_IP] = "ip",         [FIELD_SYM] = "sym",           [FIELD_SYMOFF] = "symoff",
	[FIELD_DSO] = "dso",       [FIELD_UREGS] = "uregs",       [FIELD_BRSTACK] = "brstack",
	[FIELD_WEIGHT] = "weight", [FIELD_DATA_SRC] = "data_src", [FIELD_PHYS_ADDR] = "phys_addr",
};

static int find(const char *name, size_t len)
{
	for (int i = 0; i < FIELD_NUM; i++)
		if (strlen(names[i]) == len && !strncmp(names[i], name, len))
			return i;
	return -1;
}

int script_fields_parse(struct script_job *job)
{
	const char *p = job->opts.fields;

	/* "sw:" and the like choose for a kind of event in perf; here it is for all. */
	while (p && *p) {
		char sign = *p == '+' || *p == '-' ? *p++ : 0;
		size_t len = strcspn(p, ",+-");
		int field = find(p, len);

		if (field < 0)
			return command_error(
				&cmd_script,
				"-F: '%.*s' is none of comm, pid, tid, cpu, time, period, event, "
				"trace, addr, ip, sym, symoff, dso, uregs, brstack, weight, "
				"data_src, phys_addr",
				(int)(len < 40 ? len : 40), p);
		if (sign == '+')
			job->added |= 1u << field;
		else if (sign == '-')
			job->removed |= 1u << field;
		else
			job->chosen |= 1u << field;
		p += len + (p[len] == ',');
	}
	if (job->chosen && (job->added || job->removed))
		return command_error(&cmd_script,
				     "-F: fields are either listed, or added and taken away with + "
				     "and -");
	return 0;
}

u32 script_fields_of(const struct script_job *job, const struct data_item *item)
{
	const struct data_event *e = data_reader_event(job->reading.data,
						       item->event < 0 ? 0 : (u32)item->event);
	u64 type = e ? e->attr.sample_type : 0;
	u32 fields = F(COMM) | F(TID) | F(CPU) | F(TIME) | F(EVENT) | F(IP) | F(SYM) | F(SYMOFF) |
		     F(DSO) | F(PERIOD);

	if (job->chosen)
		return job->chosen;
	if (e && e->attr.type == PERF_TYPE_TRACEPOINT)
		fields = F(COMM) | F(TID) | F(CPU) | F(TIME) | F(EVENT) | F(TRACE) |
			 (type & PERF_SAMPLE_CALLCHAIN ? F(IP) | F(SYM) | F(SYMOFF) | F(DSO) : 0u);
	return (fields | job->added) & ~job->removed;
}
