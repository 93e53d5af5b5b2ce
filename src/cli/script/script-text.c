/* A sample as perf script writes it, blank by blank: what reads perf's text reads ours. */
#include <inttypes.h>
#include <string.h>

#include "cli/put-name.h"
#include "cli/script/script-priv.h"
#include "data/reg-names.h"

static void print_symbol(const struct sym_place *at, u32 fields, FILE *out)
{
	if (fields & BIT(FIELD_SYM)) {
		fputc(' ', out);
		put_name(out, 0, at->symbol ? at->symbol : "[unknown]");
		if (at->symbol && (fields & BIT(FIELD_SYMOFF)))
			fprintf(out, "+0x%" PRIx64, at->offset);
	}
	if (fields & BIT(FIELD_DSO)) {
		fputs(" (", out);
		put_name(out, 0, at->object);
		fputc(')', out);
	}
}

static void print_chain(struct script_job *job, const struct data_item *item, u32 fields, FILE *out)
{
	struct reading_walk walk = {0};
	u64 ip;

	fputc('\n', out);
	while (reading_walk_next(&job->reading, item, &walk, &ip)) {
		struct sym_place at;

		reading_find(&job->reading, item, ip, walk.kernel, &at);
		fprintf(out, "\t%16" PRIx64, at.addr);
		print_symbol(&at, fields, out);
		fputc('\n', out);
	}
}

static void print_ip(struct script_job *job, const struct data_item *item, u32 fields, FILE *out)
{
	const struct ap_sample *s = &item->record.sample;
	struct sym_place at;

	if (reading_has_chain(&job->reading, item)) {
		print_chain(job, item, fields, out);
		return;
	}
	reading_find(&job->reading, item, s->ip, reading_in_kernel(item), &at);
	fprintf(out, " %16" PRIx64, s->ip);
	print_symbol(&at, fields, out);
}

static void print_registers(struct script_job *job, const struct ap_regs *regs, FILE *out)
{
	u32 n = 0;

	if (!regs->mask)
		return;
	fprintf(out, " ABI:%" PRIu64 " ", regs->abi);
	for (u32 bit = 0; bit < 64; bit++) {
		const char *name = data_reg_name(reading_arch(&job->reading), bit);
		char upper[16];

		if (!(regs->mask & BIT(bit)))
			continue;
		snprintf(upper, sizeof(upper), "%s", name ? name : "unknown");
		for (char *p = upper; *p; p++)
			if (*p >= 'a' && *p <= 'z')
				*p = (char)(*p - 'a' + 'A');
		fprintf(out, "%5s:0x%" PRIx64 " ", upper, (u64)regs->values[n++]);
	}
}

/* As perf names PERF_BR_*. */
static const char *branch_type(u32 type)
{
	static const char *const names[] = {
		"",       "COND",      "UNCOND",   "IND",  "CALL", "IND_CALL", "RET",   "SYSCALL",
		"SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ",  "SERROR",   "NO_TX",
	};

	return type < ARRAY_SIZE(names) ? names[type] : "";
}

/* A branch may lead from one mode into the other; the kernel has the upper half on all CPUs. */
static void print_end_of_branch(struct script_job *job, const struct data_item *item, u64 addr,
				u32 fields, FILE *out)
{
	struct sym_place at = {0};

	if (fields & (BIT(FIELD_BRSTACKSYM) | BIT(FIELD_DSO)))
		reading_find(&job->reading, item, addr, addr >> 63, &at);
	if (!(fields & BIT(FIELD_BRSTACKSYM))) {
		fprintf(out, "0x%" PRIx64, addr);
	} else {
		put_name(out, 0, at.symbol ? at.symbol : "[unknown]");
		if (at.symbol)
			fprintf(out, "+0x%" PRIx64, at.offset);
	}
	if (fields & BIT(FIELD_DSO)) {
		fputc('(', out);
		put_name(out, 0, at.object);
		fputc(')', out);
	}
}

static void print_branches(struct script_job *job, const struct data_item *item, u32 fields,
			   FILE *out)
{
	const struct ap_branch_stack *b = &item->record.sample.branch_stack;

	for (u64 i = 0; i < b->nr; i++) {
		const struct perf_branch_entry *e = &b->entries[i];

		fputc(' ', out);
		print_end_of_branch(job, item, e->from, fields, out);
		fputc('/', out);
		print_end_of_branch(job, item, e->to, fields, out);
		fprintf(out, "/%c/%c/%c/%d/%s ",
			e->mispred     ? 'M'
			: e->predicted ? 'P'
				       : '-',
			e->in_tx ? 'X' : '-', e->abort ? 'A' : '-', (int)e->cycles,
			branch_type(e->type));
	}
}

static void print_start(struct script_job *job, const struct data_item *item, u32 fields, FILE *out)
{
	const struct ap_sample_id *id = &item->record.id;
	bool chain = (fields & BIT(FIELD_IP)) && reading_has_chain(&job->reading, item);
	char room[16], time[40];

	if (fields & BIT(FIELD_COMM)) {
		put_name(out, chain ? 0 : 16, reading_comm(&job->reading, item, room));
		fputc(' ', out);
	}
	if ((fields & BIT(FIELD_PID)) && (fields & BIT(FIELD_TID)))
		fprintf(out, "%5d/%-5d ", (int)id->pid, (int)id->tid);
	else if (fields & (BIT(FIELD_PID) | BIT(FIELD_TID)))
		fprintf(out, "%5d ", (int)(fields & BIT(FIELD_PID) ? id->pid : id->tid));
	if ((fields & BIT(FIELD_CPU)) && (id->has & PERF_SAMPLE_CPU))
		fprintf(out, "[%03d] ", (int)id->cpu);
	if (!(fields & BIT(FIELD_TIME)) || !(id->has & PERF_SAMPLE_TIME))
		return;
	if (job->opts.ns)
		snprintf(time, sizeof(time), "%5" PRIu64 ".%09" PRIu64, id->time / 1000000000,
			 id->time % 1000000000);
	else
		snprintf(time, sizeof(time), "%" PRIu64 ".%06" PRIu64, id->time / 1000000000,
			 id->time % 1000000000 / 1000);
	fprintf(out, "%12s: ", time);
}

static int width_of_names(struct script_job *job)
{
	for (u32 i = 0; i < data_reader_events(job->reading.data); i++) {
		int len = (int)strlen(reading_event_name(&job->reading, (int)i));

		job->name_width = len > job->name_width ? len : job->name_width;
	}
	return job->name_width;
}

void script_print_text(struct script_job *job, const struct data_item *item)
{
	const struct ap_sample *s = &item->record.sample;
	u32 fields = script_fields_of(job, item);
	FILE *out = stdout;

	print_start(job, item, fields, out);
	if (fields & BIT(FIELD_PERIOD))
		fprintf(out, "%10" PRIu64 " ", reading_period(&job->reading, item));
	if (fields & BIT(FIELD_EVENT)) {
		put_name(out, width_of_names(job), reading_event_name(&job->reading, item->event));
		fputs(": ", out);
	}
	if (fields & BIT(FIELD_TRACE))
		script_print_trace(job, item, out);
	if (fields & BIT(FIELD_ADDR))
		fprintf(out, "%16" PRIx64, s->addr);
	if (fields & BIT(FIELD_DATA_SRC))
		fprintf(out, " %16" PRIx64, s->data_src);
	if (fields & BIT(FIELD_WEIGHT))
		fprintf(out, " %16" PRIu64, s->weight);
	if (fields & BIT(FIELD_IP))
		print_ip(job, item, fields, out);
	if (fields & BIT(FIELD_UREGS))
		print_registers(job, &s->regs_user, out);
	if (fields & BIT(FIELD_BRSTACK))
		print_branches(job, item, fields & ~BIT(FIELD_BRSTACKSYM), out);
	if (fields & BIT(FIELD_BRSTACKSYM))
		print_branches(job, item, fields, out);
	if (fields & BIT(FIELD_PHYS_ADDR))
		fprintf(out, " %16" PRIx64, s->phys_addr);
	fputc('\n', out);
}
