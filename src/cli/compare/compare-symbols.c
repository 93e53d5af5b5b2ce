/*
 * --by symbol: in which functions the first event's count has changed, from one more deterministic
 * run of each command. A sample stands for as many occurrences as lie between two of them, so what
 * a function has done is known but for the chance of where they fall.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/compare/compare-symbols.h"
#include "sym/symbol-view.h"

#define SAMPLES 50000 /* of the first command; the others have its period */
#define PAGES   1024  /* of a buffer: room for twice as many */

static struct symbol_row *find_row(struct compare_job *job, const char *name)
{
	struct symbol_row *row;

	for (u32 i = 0; i < job->nr_symbols; i++)
		if (!strcmp(job->symbols[i].name, name))
			return &job->symbols[i];
	job->symbols = realloc(job->symbols, (job->nr_symbols + 1) * sizeof(*job->symbols));
	CHECK(job->symbols);
	row = &job->symbols[job->nr_symbols++];
	*row = (struct symbol_row){.name = strdup(name)};
	CHECK(row->name);
	return row;
}

static void take_sample(struct compare_job *job, u32 side, struct sym_view *view,
			const struct ap_record *rec)
{
	struct sym_place place;
	char unknown[200];
	const char *base;

	sym_view_find(view, rec->id.pid, rec->sample.ip, false, &place);
	base = strrchr(place.object, '/');
	snprintf(unknown, sizeof(unknown), "[%s]", base ? base + 1 : place.object);
	find_row(job, place.symbol ? place.symbol : unknown)->samples[side]++;
}

static void take_record(struct compare_job *job, u32 side, struct sym_view *view,
			const struct ap_record *rec)
{
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		sym_view_map(view, rec->mmap.pid, rec->mmap.addr, rec->mmap.len, rec->mmap.pgoff,
			     rec->mmap.filename);
		break;
	case PERF_RECORD_FORK:
		sym_view_fork(view, rec->task.pid, rec->task.tid, rec->task.ppid, rec->task.ptid);
		break;
	case PERF_RECORD_SAMPLE: take_sample(job, side, view, rec); break;
	default: break;
	}
}

/* What was sampled of @side; -1 after saying that something was lost. */
static int take_all(struct compare_job *job, u32 side, struct ap_sampler *s)
{
	struct sym_view *view = sym_view_new();
	struct ap_record rec;
	struct ap_error err;
	u64 lost = 0;
	int r;

	CHECK(view);
	(void)ap_sampler_disable(s);
	while ((r = ap_sampler_next(s, &rec, &err)) != 0)
		if (r > 0)
			take_record(job, side, view, &rec);
	sym_view_free(view);
	(void)ap_sampler_lost(s, &lost);
	return lost ? command_error(&cmd_compare,
				    "--by symbol: %llu samples of %s were lost for want of room",
				    (unsigned long long)lost, job->sides[side].name)
		    : 0;
}

static int fail(struct compare_job *job, const struct ap_error *err)
{
	char text[1100];

	job->status = cmd_compare.failure;
	compare_progress(job, "%s", "");
	return command_error(&cmd_compare, "--by symbol: %s",
			     ap_error_text(err, text, sizeof(text)));
}

static int sample(struct compare_job *job, u32 side)
{
	struct compare_side *of = &job->sides[side];
	struct ap_sampler_opts opts = AP_OPTS(ap_sampler_opts, .period = job->symbol_period,
					      .pages = PAGES,
					      .flags = AP_SAMPLER_TASKS | AP_SAMPLER_SHRINK,
					      .open_flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT);
	struct ap_target target = AP_OPTS(ap_target);
	struct ap_specs *specs = NULL;
	struct ap_sampler *s = NULL;
	struct ap_command *command;
	struct compare_end end;
	struct ap_error err;
	int r = -1;

	compare_progress(job, "symbols: %s", of->name);
	if (compare_new(job, of, of->machine, &command))
		return -1;
	target.command = command;
	if (ap_specs_parse(&specs, of->machine, of->counts[0].name, &err) ||
	    ap_sampler_open(&s, of->machine, specs, &target, &opts, &err)) {
		ap_command_free(command);
		fail(job, &err);
	} else if (!compare_run(job, of, command, &end)) {
		r = take_all(job, side, s);
		job->status = r ? 2 : 0;
	}
	ap_sampler_close(s);
	ap_specs_free(specs);
	return r;
}

int compare_symbols(struct compare_job *job)
{
	if (!job->sides[0].counts[0].runs)
		return 0;
	/* Odd, so that it does not keep step with loops of an even length. */
	job->symbol_period = (side_count_median(&job->sides[0].counts[0]) / SAMPLES) | 1;
	for (u32 i = 0; i < job->nr_sides; i++)
		if (sample(job, i))
			return -1;
	return 0;
}

static double change_of(const struct symbol_row *row, u32 side)
{
	return (double)row->samples[side] - (double)row->samples[0];
}

/* Two standard deviations, of samples that fall by chance; the two at the ends at least. */
double symbol_doubt(const struct symbol_row *row, u32 side)
{
	return 2 + 2 * sqrt((double)(row->samples[side] + row->samples[0]));
}

u32 symbols_changed(const struct compare_job *job, u32 side, const struct symbol_row **rows,
		    u32 most)
{
	u32 n = 0;

	for (u32 i = 0; i < job->nr_symbols; i++) {
		const struct symbol_row *row = &job->symbols[i];
		u32 at = n;

		if (fabs(change_of(row, side)) <= symbol_doubt(row, side))
			continue;
		for (; at && fabs(change_of(rows[at - 1], side)) < fabs(change_of(row, side)); at--)
			if (at < most)
				rows[at] = rows[at - 1];
		if (at < most)
			rows[at] = row;
		n += n < most;
	}
	return n;
}

void compare_symbols_text(const struct compare_job *job, FILE *out)
{
	const struct symbol_row *rows[SYMBOLS_SHOWN];
	double period = (double)job->symbol_period;

	for (u32 side = 1; side < job->nr_sides; side++) {
		u32 n = symbols_changed(job, side, rows, SYMBOLS_SHOWN);

		fprintf(out, "\n  Where %s of %s changed, estimated from a sample in %llu:\n",
			job->sides[0].counts[0].name, job->sides[side].name,
			(unsigned long long)job->symbol_period);
		for (u32 i = 0; i < n; i++)
			fprintf(out, "  %-40.60s %+15.0f  +-%.0f\n", rows[i]->name,
				change_of(rows[i], side) * period,
				symbol_doubt(rows[i], side) * period);
		if (!n)
			fputs("  in no function by more than it may be off\n", out);
	}
}

void compare_symbols_json(const struct compare_job *job, u32 side, struct json *j)
{
	const struct symbol_row *rows[SYMBOLS_SHOWN];
	u32 n = symbols_changed(job, side, rows, SYMBOLS_SHOWN);
	double period = (double)job->symbol_period;

	json_array(j, "symbols");
	for (u32 i = 0; i < n; i++) {
		json_object(j, NULL);
		json_str(j, "symbol", rows[i]->name);
		json_double(j, "change", change_of(rows[i], side) * period, 0);
		json_double(j, "may_be_off", symbol_doubt(rows[i], side) * period, 0);
		json_end(j);
	}
	json_end(j);
}

void compare_symbols_free(struct compare_job *job)
{
	for (u32 i = 0; i < job->nr_symbols; i++)
		free(job->symbols[i].name);
	free(job->symbols);
}
