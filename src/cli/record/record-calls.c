#include "cli/record/record-calls.h"

#include <stdlib.h>

#include "base/check.h"
#include "cli/valgrind/valgrind-options.h"
#include "data/synthesize.h"
#include "lib/machine/machine-pmu.h"

static void take_records(void *data)
{
	record_output_pass(data);
}

static void describe(void *data, struct calls_fn *fn, bool plt)
{
	const struct record_job *job = data;

	fn->skip = plt;
	fn->toggle = job->opts.toggle && valgrind_fits(job->opts.toggle, fn->name);
}

void record_calls_begin(struct record_job *job)
{
	ap__pmu_traced(job->machine, false, false);
	job->exact->trace = (struct call_trace){.machine = job->machine,
						.code = code_view_new(),
						.instrument = true,
						.collect = !job->opts.toggle,
						.recursions = 1,
						.tree = true,
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

bool record_exact_read(struct record_job *job)
{
	return call_trace_read(&job->exact->trace);
}

/* What the samples of a program have in common. */
struct calls_writing {
	struct record_job *job;
	const struct traced_program *program;
	struct data_synthesis to;
	struct ap_sample_id id;
	u32 tid; /* that `id` is of; 0: none */
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
		if (p->thread[i].tid == tid && p->thread[i].start > start)
			start = p->thread[i].start;
	if (start)
		w->id.time = exact_threads_end(&w->job->exact->threads, tid, start);
}

/* A sample for each straight run of instructions, which are of one function and one chain. */
static int put_piece(const struct calls_piece *piece, void *data)
{
	struct calls_writing *w = data;
	struct record_exact *x = w->job->exact;
	u32 from = 0;
	int err = 0;

	say_whose(w, piece->tid);
	for (u32 i = 1; i <= piece->n && !err; i++) {
		if (i < piece->n && piece->pc[i] - piece->pc[i - 1] < 16)
			continue;
		err = data_synthesize_sample(&w->to, &w->id, piece->pc[from],
					     piece->count * (i - from), piece->callers,
					     piece->nr_callers);
		x->threads.instructions += piece->count * (i - from);
		x->insns++;
		from = i;
	}
	return err;
}

void record_calls_write(struct record_job *job, const struct guest_segment *segment)
{
	struct record_exact *x = job->exact;
	struct call_trace *trace = &x->trace;
	struct calls_writing w = {.job = job,
				  .to = {.layout = &job->layout, .put = job->take, .data = job}};

	call_trace_end(trace);
	record_output_pass(job);
	if (job->events[0].nr_ids)
		w.id.id = w.id.stream_id = job->events[0].ids[0];
	for (struct traced_program *p = trace->programs; p; p = p->next) {
		w.program = p;
		w.tid = 0;
		w.id.pid = p->pid;
		x->threads.threads += p->nr_threads;
		calls_finish(p->graph);
		if (calls_tree(p->graph, put_piece, &w))
			break;
	}
	/* So that the sum is right. */
	w.id.tid = w.id.pid;
	if (trace->unknown && !job->opts.toggle)
		(void)!data_synthesize_sample(&w.to, &w.id, 0, trace->unknown, NULL, 0);
	x->threads.unplaced = trace->unknown;
	x->threads.instructions += trace->unknown;
	x->threads.bad = trace->bad;
	x->threads.lost = __atomic_load_n(&segment->head->path_lost, __ATOMIC_RELAXED);
}
