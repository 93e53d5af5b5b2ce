/* Which fields are shown: perf's names, and perf's choice for each kind of event. */
#include <string.h>

#include "base/check.h"
#include "cli/script/script-priv.h"

#define F(name) (1u << FIELD_##name)

static const char *const names[FIELD_NUM] = {
	[FIELD_COMM] = "comm",
	[FIELD_PID] = "pid",
	[FIELD_TID] = "tid",
	[FIELD_CPU] = "cpu",
	[FIELD_TIME] = "time",
	[FIELD_PERIOD] = "period",
	[FIELD_EVENT] = "event",
	[FIELD_TRACE] = "trace",
	[FIELD_ADDR] = "addr",
	[FIELD_IP] = "ip",
	[FIELD_SYM] = "sym",
	[FIELD_SYMOFF] = "symoff",
	[FIELD_DSO] = "dso",
	[FIELD_UREGS] = "uregs",
	[FIELD_BRSTACK] = "brstack",
	[FIELD_BRSTACKSYM] = "brstacksym",
	[FIELD_WEIGHT] = "weight",
	[FIELD_DATA_SRC] = "data_src",
	[FIELD_PHYS_ADDR] = "phys_addr",
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
				"trace, addr, ip, sym, symoff, dso, uregs, brstack, "
				"brstacksym, weight, data_src, phys_addr",
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

/* Of fields that show nothing, or a 0, where samples lack them. */
void script_fields_need(struct script_job *job)
{
	static const struct {
		enum script_field field;
		u64 any_of;
		const char *option, *part, *instead;
	} needs[] = {
		{FIELD_PID, PERF_SAMPLE_TID, "-F pid", "process", NULL},
		{FIELD_TID, PERF_SAMPLE_TID, "-F tid", "thread", NULL},
		{FIELD_CPU, PERF_SAMPLE_CPU, "-F cpu", "CPU",
		 "`anyperf record` records it without -i and --exact"},
		{FIELD_TIME, PERF_SAMPLE_TIME, "-F time", "time", NULL},
		{FIELD_ADDR, PERF_SAMPLE_ADDR, "-F addr", "address",
		 "`anyperf record -d` records it"},
		{FIELD_IP, PERF_SAMPLE_IP, "-F ip", "instruction's address", NULL},
		{FIELD_UREGS, PERF_SAMPLE_REGS_USER, "-F uregs", "registers",
		 "`anyperf record --user-regs=all` records them"},
		{FIELD_WEIGHT, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, "-F weight",
		 "weight", "`perf record -W` records it"},
		{FIELD_DATA_SRC, PERF_SAMPLE_DATA_SRC, "-F data_src", "source of data",
		 "`anyperf record -d` records it"},
		{FIELD_PHYS_ADDR, PERF_SAMPLE_PHYS_ADDR, "-F phys_addr", "physical address",
		 "`perf record --phys-data` records it"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if ((job->chosen | job->added) & BIT(needs[i].field))
			reading_needs(&job->reading,
				      (struct reading_need){needs[i].any_of, needs[i].option,
							    needs[i].part, needs[i].instead});
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
