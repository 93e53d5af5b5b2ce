#include "cli/run/run-threads.h"

#include <stdlib.h>

#include "base/check.h"
#include "cli/report/refused.h"
#include "cli/run/run-counts.h"

/* What one thread has added to its page, which was others' before. */
static void thread_counts(const struct meter *m, u64 *v)
{
	for (u32 q = 0; q < METER_QUANTITIES; q++)
		v[q] = meter_sum(m, q) - m->base[q];
}

static void print_json_thread(struct json *j, const struct meter *m)
{
	u64 v[METER_QUANTITIES];
	char comm[16];

	guest_comm(m->comm, comm);
	thread_counts(m, v);
	json_object(j, NULL);
	json_u64(j, "tid", meter_ids(m).tid);
	json_str(j, "comm", comm);
	for (u32 q = 0; q < RUN_EVENTS; q++)
		json_u64(j, run_count_name(q), v[q]);
	json_end(j);
}

/* A page's number, its process as it was when they were sorted, and that process's first page. */
struct page {
	u32 index, pid, first;
	const struct meter *m;
};

/* A process with its @n pages, of which the first one speaks for it. */
static void print_json_process(struct json *j, const struct page *pages, u32 n)
{
	const struct meter *m = pages[0].m;
	struct meter_ids ids = meter_ids(m);
	char comm[16];

	guest_comm(m->comm, comm);
	json_object(j, NULL);
	json_u64(j, "pid", ids.pid);
	json_u64(j, "ppid", ids.ppid);
	json_str(j, "comm", comm);
	if (m->exited)
		json_u64(j, "exit", m->exit_code >> 8 & 0xff);
	json_array(j, "threads");
	for (u32 i = 0; i < n; i++)
		print_json_thread(j, pages[i].m);
	json_end(j);
	json_end(j);
}

static int by_pid(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_first(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Processes in the order in which their first threads came. */
void run_threads_json(struct json *j, const struct guest_segment *segment)
{
	u32 used = ap__segment_used(segment), n = 0;
	struct page *pages = calloc(used + 1, sizeof(*pages));

	CHECK(pages);
	for (u32 i = 0; i < used; i++) {
		const struct meter *m = ap__segment_meter(segment, i);

		if (m && m->tid)
			pages[n++] = (struct page){.index = i, .pid = meter_ids(m).pid, .m = m};
	}
	qsort(pages, n, sizeof(*pages), by_pid);
	for (u32 i = 0; i < n; i++)
		pages[i].first = i && pages[i - 1].pid == pages[i].pid ? pages[i - 1].first
								       : pages[i].index;
	qsort(pages, n, sizeof(*pages), by_first);
	json_array(j, "processes");
	for (u32 from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && pages[to].first == pages[from].first; to++)
			;
		print_json_process(j, pages + from, to - from);
	}
	json_end(j);
	free(pages);
}

void run_threads_text(const struct guest_segment *segment, const struct number_style *style,
		      FILE *out)
{
	u32 used = ap__segment_used(segment);

	fprintf(out, " %8s %8s  %-15s %18s %18s\n", "pid", "tid", "comm", "instructions",
		"branches");
	for (u32 i = 0; i < used; i++) {
		const struct meter *m = ap__segment_meter(segment, i);
		char comm[16], instructions[64], branches[64];
		u64 v[METER_QUANTITIES];

		if (!m || !m->tid)
			continue;
		guest_comm(m->comm, comm);
		thread_counts(m, v);
		fprintf(out, " %8u %8u  %-15s %s %s\n", meter_ids(m).pid, meter_ids(m).tid, comm,
			number_text(style, (double)v[METER_INSTRUCTIONS], 0, 18, instructions,
				    sizeof(instructions)),
			number_text(style, (double)v[METER_BRANCHES], 0, 18, branches,
				    sizeof(branches)));
	}
	putc('\n', out);
}
