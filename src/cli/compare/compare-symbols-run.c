/*
 * What --by symbol wants to know, from more deterministic runs of each command. Instructions are
 * counted one by one, as `record --exact` does. Of other events some 50,000 samples are taken at
 * exact distances; one stands for as many occurrences as lie between two of them, so what a
 * function has done is known but for the chance of where they fall.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/compare/compare-symbols.h"
#include "cli/exact-threads.h"
#include "lib/command.h"
#include "lib/machine/machine-pmu.h"
#include "sym/symbol-view.h"

#define SAMPLES 50000 /* of the first command; the others have its period */
#define PAGES   1024  /* of a buffer: room for twice as many */

/* A mapping or a fork, until it is known what ran then. */
struct task_note {
	u64 time;
	struct ap_record rec;
	char *filename; /* of a mapping; owned */
};

/* What was executed of a file that something else was mapped over later. */
struct old_count {
	u64 time, pc, count;
	u32 pid;
};

/* An exact profile that is being added up. */
struct exact_run {
	struct compare_job *job;
	u32 side;
	bool again; /* it is the command's second one */
	struct sym_view *view;
	struct task_note *notes; /* by time; owned */
	u32 nr, room, done;
	struct old_count *old; /* owned */
	u32 nr_old;
};

static void name_place(struct sym_view *view, u32 pid, u64 addr, char *name, size_t size)
{
	struct sym_place place;
	const char *base;

	sym_view_find(view, pid, addr, false, &place);
	base = strrchr(place.object, '/');
	if (place.symbol)
		snprintf(name, size, "%s", place.symbol);
	else
		snprintf(name, size, "[%s]", base ? base + 1 : place.object);
}

static void look_at_task(struct sym_view *view, const struct ap_record *rec)
{
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		sym_view_map(view, rec->mmap.pid, rec->mmap.addr, rec->mmap.len, rec->mmap.pgoff,
			     rec->mmap.filename, NULL);
		break;
	case PERF_RECORD_FORK:
		sym_view_fork(view, rec->task.pid, rec->task.tid, rec->task.ppid, rec->task.ptid);
		break;
	default: break;
	}
}

static int say_lost(const struct compare_job *job, u32 side, struct ap_sampler *s)
{
	u64 lost = 0;

	(void)ap_sampler_lost(s, &lost);
	return lost ? command_error(&cmd_compare,
				    "--by symbol: %llu records of %s were lost for want of room",
				    (unsigned long long)lost, job->sides[side].name)
		    : 0;
}

/* What was sampled of @side; -1 after saying that something was lost. */
static int take_samples(struct compare_job *job, u32 side, struct ap_sampler *s)
{
	struct sym_view *view = sym_view_new();
	char name[SYMBOL_NAME_MAX];
	struct ap_record rec;
	struct ap_error err;
	int r;

	CHECK(view);
	while ((r = ap_sampler_next(s, &rec, &err)) != 0) {
		if (r > 0 && rec.type == PERF_RECORD_SAMPLE) {
			name_place(view, rec.id.pid, rec.sample.ip, name, sizeof(name));
			symbol_find(&job->symbols, name)->count[side]++;
		} else if (r > 0) {
			look_at_task(view, &rec);
		}
	}
	sym_view_free(view);
	return say_lost(job, side, s);
}

static void keep_note(struct exact_run *x, const struct ap_record *rec)
{
	struct task_note *note;
	bool mapping = rec->type == PERF_RECORD_MMAP || rec->type == PERF_RECORD_MMAP2;

	if (!mapping && rec->type != PERF_RECORD_FORK)
		return;
	if (x->nr == x->room) {
		x->room = x->room ? x->room * 2 : 64;
		x->notes = realloc(x->notes, x->room * sizeof(*x->notes));
		CHECK(x->notes);
	}
	note = &x->notes[x->nr++];
	*note = (struct task_note){.time = rec->id.time, .rec = *rec};
	if (!mapping)
		return;
	note->filename = strdup(rec->mmap.filename);
	CHECK(note->filename);
	note->rec.mmap.filename = note->filename;
}

/* What was mapped until @time. */
static void catch_up(struct exact_run *x, u64 time)
{
	for (; x->done < x->nr && x->notes[x->done].time <= time; x->done++)
		look_at_task(x->view, &x->notes[x->done].rec);
}

static void add_count(struct exact_run *x, const char *name, u64 count)
{
	struct symbol_row *row = symbol_find(&x->job->symbols, name);

	if (x->again)
		row->again[x->side] += count;
	else
		row->count[x->side] += count;
}

static void keep_old(struct exact_run *x, u32 pid, const struct path_count *c)
{
	if (!(x->nr_old & (x->nr_old - 1))) {
		x->old = realloc(x->old, (x->nr_old * 2ul + 1) * sizeof(*x->old));
		CHECK(x->old);
	}
	x->old[x->nr_old++] = (struct old_count){c->time, c->pc, c->count, pid};
}

static int by_time(const void *a, const void *b)
{
	const struct old_count *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

/* Once more from the beginning: threads come by their ends, and all of these are before some. */
static void take_old(struct exact_run *x)
{
	char name[SYMBOL_NAME_MAX];

	if (!x->nr_old)
		return;
	sym_view_free(x->view);
	x->view = sym_view_new();
	CHECK(x->view);
	x->done = 0;
	qsort(x->old, x->nr_old, sizeof(*x->old), by_time);
	for (u32 i = 0; i < x->nr_old; i++) {
		catch_up(x, x->old[i].time);
		name_place(x->view, x->old[i].pid, x->old[i].pc, name, sizeof(name));
		add_count(x, name, x->old[i].count);
	}
}

/* Instructions come by address, so most are of the function of the one before. */
static int take_thread(const struct path_thread *t, u64 time, const struct path_counts *c,
		       void *data)
{
	char name[SYMBOL_NAME_MAX], last[SYMBOL_NAME_MAX] = "";
	struct exact_run *x = data;
	u64 sum = 0;

	catch_up(x, time);
	for (u32 i = 0; i < c->nr_insns; i++) {
		if (c->insn[i].time) {
			keep_old(x, t->pid, &c->insn[i]);
			continue;
		}
		name_place(x->view, t->pid, c->insn[i].pc, name, sizeof(name));
		if (strcmp(name, last) != 0) {
			if (sum)
				add_count(x, last, sum);
			memcpy(last, name, sizeof(last));
			sum = 0;
		}
		sum += c->insn[i].count;
	}
	if (sum)
		add_count(x, last, sum);
	if (c->unplaced > 0)
		add_count(x, "[unknown]", (u64)c->unplaced);
	return 0;
}

static void exact_release(struct exact_run *x)
{
	for (u32 i = 0; i < x->nr; i++)
		free(x->notes[i].filename);
	free(x->notes);
	free(x->old);
	sym_view_free(x->view);
}

/* What was counted of @side; -1 after saying that it is not all of it. */
static int take_counts(struct compare_job *job, u32 side, struct ap_machine *m,
		       struct ap_sampler *s, bool again)
{
	struct exact_run x = {.job = job, .side = side, .again = again, .view = sym_view_new()};
	const struct guest_segment *segment = ap__machine_segment(m);
	const struct exact_take take = {.thread = take_thread, .data = &x};
	struct exact_threads threads = {0};
	struct ap_record rec;
	struct ap_error err;
	int r;

	CHECK(x.view);
	while ((r = ap_sampler_next(s, &rec, &err)) != 0) {
		if (r <= 0)
			continue;
		exact_threads_note(&threads, &rec);
		keep_note(&x, &rec);
	}
	r = say_lost(job, side, s);
	if (!r && (!segment || exact_threads_read(&threads, segment, &take)))
		r = command_error(&cmd_compare, "--by symbol: there is not enough memory");
	else if (!r && (threads.lost || threads.bad))
		r = command_error(&cmd_compare,
				  "--by symbol: of %s not all was counted: %u threads or programs "
				  "found no room",
				  job->sides[side].name, threads.lost);
	take_old(&x);
	exact_threads_release(&threads);
	exact_release(&x);
	return r;
}

static int fail(struct compare_job *job, const struct ap_error *err)
{
	char text[1100];

	job->status = cmd_compare.failure;
	compare_progress(job, "%s", "");
	return command_error(&cmd_compare, "--by symbol: %s",
			     ap_error_text(err, text, sizeof(text)));
}

/* Runs @side's command on @m, and hands @event's records to one of the above. */
static int run_once(struct compare_job *job, u32 side, struct ap_machine *m, const char *event,
		    bool again)
{
	struct compare_side *of = &job->sides[side];
	struct ap_sampler_opts opts = AP_OPTS(ap_sampler_opts, .period = job->symbols.period,
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
	if (compare_new(job, of, m, &command))
		return -1;
	target.command = command;
	if (ap_specs_parse(&specs, m, event, &err) ||
	    ap_sampler_open(&s, m, specs, &target, &opts, &err)) {
		ap_command_free(command);
		fail(job, &err);
	} else if (!compare_run(job, of, command, &end)) {
		(void)ap_sampler_disable(s);
		r = job->symbols.exact ? take_counts(job, side, m, s, again)
				       : take_samples(job, side, s);
		job->status = r ? 2 : 0;
	}
	ap_sampler_close(s);
	ap_specs_free(specs);
	return r;
}

static int count_functions(struct compare_job *job, u32 side, bool again)
{
	struct ap_machine *m = compare_new_machine(job);
	struct ap_error err;
	int r;

	ap__pmu_exact(m);
	r = ap__pmu_want(m, "asked for by --by symbol", &err)
		    ? fail(job, &err)
		    : run_once(job, side, m, "dummy:u", again);
	ap_machine_free(m);
	return r;
}

/* Once, or twice if the command's runs are not the same, which shows how far apart they are. */
static int run_side(struct compare_job *job, u32 side)
{
	struct compare_side *of = &job->sides[side];
	int r;

	if (of->stored)
		return 0;
	if (!job->symbols.exact)
		return run_once(job, side, of->machine, of->counts[0].name, false);
	r = count_functions(job, side, false);
	if (r || side_count_is_exact(&of->counts[0]))
		return r;
	of->profiled_twice = true;
	return count_functions(job, side, true);
}

int compare_symbols(struct compare_job *job)
{
	const struct side_count *first = &job->sides[job->nr_sides - 1].counts[0];
	bool keeps = job->opts.save || job->opts.baseline;

	if (!first->runs)
		return 0;
	job->symbols.exact = !strcmp(first->name, "instructions:u");
	if (keeps && !job->symbols.exact) {
		job->status = cmd_compare.failure;
		return command_error(&cmd_compare,
				     "--by symbol is for instructions where a baseline keeps it; "
				     "name that event first");
	}
	/* Odd, so that it does not keep step with loops of an even length. */
	job->symbols.period = job->symbols.exact ? 1 : (side_count_median(first) / SAMPLES) | 1;
	if (job->sides[0].stored && compare_baseline_symbols(job))
		return -1;
	for (u32 i = 0; i < job->nr_sides; i++)
		if (run_side(job, i))
			return -1;
	return 0;
}
