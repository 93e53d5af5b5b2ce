#include "cli/record/record-calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/valgrind/valgrind-options.h"
#include "data/synthesize.h"
#include "lib/machine/machine-pmu.h"
#include "sym/demangle.h"

static void take_records(void *data)
{
	record_output_pass(data);
}

/* As `report` names functions of C++, without parameters, or as callgrind does, with them. */
static bool fits(const char *pattern, const char *name)
{
	bool fits = valgrind_fits(pattern, name);
	char *bare;

	if (fits || !strchr(name, '('))
		return fits;
	bare = strdup(name);
	CHECK(bare);
	fits = valgrind_fits(pattern, sym_strip_types(bare));
	free(bare);
	return fits;
}

static void describe(void *data, struct calls_fn *fn, bool plt)
{
	const struct record_job *job = data;

	fn->skip = plt;
	fn->toggle = job->opts.toggle && fits(job->opts.toggle, fn->name);
}

void record_calls_begin(struct record_job *job)
{
	ap__pmu_traced(job->machine, false, NULL);
	job->exact->trace = (struct call_trace){.machine = job->machine,
						.code = code_view_new(),
						.instrument = true,
						.collect = !job->opts.toggle,
						.recursions = 1,
						.tree = true,
						.modeled = job->exact->modeled.nr,
						.take_records = take_records,
						.describe = describe,
						.data = job};
}

void record_calls_release(struct record_job *job)
{
	struct call_trace *trace = &job->exact->trace;

	call_trace_release(trace);
	code_view_free(trace->code);
}

void record_calls_note(struct record_job *job, const struct ap_record *rec)
{
	struct code_view *code = job->exact->trace.code;

	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		code_view_map(code, rec->mmap.pid, rec->mmap.addr, rec->mmap.len, rec->mmap.pgoff,
			      rec->mmap.filename);
		break;
	case PERF_RECORD_FORK: code_view_fork(code, rec->task.pid, rec->task.ppid); break;
	case PERF_RECORD_COMM:
		if (rec->misc & PERF_RECORD_MISC_COMM_EXEC)
			code_view_exec(code, rec->comm.pid);
		break;
	default: break;
	}
}

bool record_exact_reads(const struct record_job *job)
{
	return record_has_calls(job);
}

u64 record_exact_read(struct record_job *job)
{
	return call_trace_read(&job->exact->trace);
}

/* What the samples of a program have in common. */
struct calls_writing {
	struct record_job *job;
	const struct traced_program *program;
	struct data_synthesis to;
	struct ap_sample_id id;
	u64 stack;
	u32 tid; /* that `id` and `stack` are of; 0: none */
};

static void say_whose(struct calls_writing *w, u32 tid)
{
	const struct traced_program *p = w->program;
	u64 start = 0;

	if (w->tid == tid)
		return;
	w->tid = w->id.tid = tid;
	/*
	 * The first thread of a program that was executed has two streams: one from before the
	 * execve was told, which is empty. Which of them was found first is chance.
	 */
	for (u32 i = 0; i < p->nr_threads; i++)
		if (p->thread[i].tid == tid && p->thread[i].start > start) {
			start = p->thread[i].start;
			w->stack = p->thread[i].stack;
		}
	if (start)
		w->id.time = exact_threads_end(&w->job->exact->threads, tid, start);
}

static int put(const struct calls_writing *w, const struct calls_piece *piece, u32 at, u64 period)
{
	const struct data_sample what = {.ip = piece->pc[at],
					 .period = period,
					 .callers = piece->callers,
					 .nr_callers = piece->nr_callers,
					 .addr = piece->addr,
					 .stack = w->stack};

	return data_synthesize_sample(&w->to, &w->id, &what);
}

/* Where the straight run of a piece's instructions ends that begins with instruction @from. */
static u32 run_end(const struct calls_piece *piece, u32 from)
{
	u32 i = from + 1;

	while (i < piece->n && piece->pc[i] - piece->pc[i - 1] < 16)
		i++;
	return i;
}

/* A sample for each straight run of instructions, which are of one function and one chain. */
static int put_piece(const struct calls_piece *piece, void *data)
{
	struct calls_writing *w = data;
	struct record_exact *x = w->job->exact;
	int err = 0;

	say_whose(w, piece->tid);
	for (u32 from = 0, end; from < piece->n && !err; from = end) {
		end = run_end(piece, from);
		err = put(w, piece, from, piece->count * (end - from));
		x->threads.instructions += piece->count * (end - from);
		x->insns++;
	}
	return err;
}

/* Likewise. What all of them have caused together is that of each run by its instructions. */
static int put_modeled(const struct calls_piece *piece, void *data)
{
	struct calls_writing *w = data;
	struct record_modeled *m = &w->job->exact->modeled;
	int err = 0;

	if (piece->event >= m->nr || (!piece->pc[0] && w->job->opts.toggle))
		return 0;
	say_whose(w, piece->tid ? piece->tid : w->program->pid);
	record_modeled_event(w->job, &w->id, piece->event);
	for (u32 from = 0, end; from < piece->n && !err; from = end) {
		u64 before = piece->count * from / piece->n, n;

		end = run_end(piece, from);
		n = piece->count * end / piece->n - before;
		err = n ? put(w, piece, from, n) : 0;
		m->total[piece->event] += n;
		m->unplaced[piece->event] += piece->pc[from] ? 0 : n;
		m->places++;
	}
	return err;
}

void record_calls_write(struct record_job *job)
{
	struct record_exact *x = job->exact;
	struct call_trace *trace = &x->trace;
	struct calls_writing w = {.job = job,
				  .to = {.layout = &job->layout, .put = job->take, .data = job}};
	u64 id;

	call_trace_end(trace);
	record_output_pass(job);
	id = job->events[0].nr_ids ? job->events[0].ids[0] : 0;
	for (struct traced_program *p = trace->programs; p; p = p->next) {
		w.program = p;
		w.tid = 0;
		w.id.pid = p->pid;
		x->threads.threads += p->nr_threads;
		calls_finish(p->graph);
		w.id.id = w.id.stream_id = id;
		if (calls_tree(p->graph, put_piece, &w) ||
		    (x->modeled.nr && calls_tree_modeled(p->graph, put_modeled, &w)))
			break;
	}
	/* So that the sum is right. */
	w.id.tid = w.id.pid;
	w.id.id = w.id.stream_id = id;
	if (trace->unknown && !job->opts.toggle)
		(void)!data_synthesize_sample(&w.to, &w.id,
					      &(struct data_sample){.period = trace->unknown});
	x->threads.unplaced = trace->unknown;
	x->threads.instructions += trace->unknown;
	x->threads.bad = trace->bad;
	x->threads.lost = trace->lost;
}
