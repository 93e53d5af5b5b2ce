/*
 * `--exact`: at the end, what the translator has counted of each instruction becomes samples, one
 * for each instruction of each thread, whose period is how often it was executed. So a recording is
 * as others are, and whatever adds up periods shows it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/record/record-exact.h"
#include "data/path-reader.h"
#include "data/synthesize.h"
#include "lib/command.h"
#include "lib/machine/machine-pmu.h"

/* When a thread ended, or became another program. */
struct record_end {
	u32 pid, tid;
	u64 time;
};

struct record_exact {
	struct record_end *ends; /* in the order in which they were told; owned */
	u32 nr, room;
	int fd;                           /* of the counter segment; borrowed */
	const struct path_space **spaces; /* by index, mapped when they are asked for; owned */
	u32 nr_spaces;
	u64 threads, instructions, insns, unplaced, bad; /* of all threads */
};

int record_exact_begin(struct record_job *job)
{
	struct ap_error err;

	job->exact = calloc(1, sizeof(*job->exact));
	CHECK(job->exact);
	ap__pmu_exact(job->machine);
	if (ap__pmu_want(job->machine, "asked for by --exact", &err))
		return record_say(&err, NULL);
	if (!ap__machine_virtual(job->machine))
		return command_error(&cmd_record,
				     "--exact does not work in a program that runs under `anyperf "
				     "run` itself");
	return 0;
}

void record_exact_release(struct record_job *job)
{
	struct record_exact *x = job->exact;

	if (!x)
		return;
	for (u32 i = 0; i < x->nr_spaces; i++)
		if (x->spaces[i])
			munmap((void *)x->spaces[i], sizeof(*x->spaces[i]));
	free(x->spaces);
	free(x->ends);
	free(x);
	job->exact = NULL;
}

void record_exact_describe(struct data_event *d)
{
	d->attr.type = PERF_TYPE_HARDWARE;
	d->attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	d->attr.freq = 0;
	d->attr.sample_period = 1;
	free((char *)d->name);
	d->name = strdup("instructions:u");
	CHECK(d->name);
}

static void add_end(struct record_exact *x, u32 pid, u32 tid, u64 time)
{
	if (x->nr == x->room) {
		x->room = x->room ? x->room * 2 : 64;
		x->ends = realloc(x->ends, x->room * sizeof(*x->ends));
		CHECK(x->ends);
	}
	x->ends[x->nr++] = (struct record_end){pid, tid, time};
}

void record_exact_note(struct record_job *job, const void *records, size_t len)
{
	const u8 *p = records, *end = p + len;
	struct perf_event_header h;
	struct ap_record rec;
	struct ap_error err;

	for (; (size_t)(end - p) >= sizeof(h); p += h.size) {
		memcpy(&h, p, sizeof(h));
		if (h.size < sizeof(h) || h.size > (size_t)(end - p))
			return;
		if ((h.type != PERF_RECORD_EXIT &&
		     (h.type != PERF_RECORD_COMM || !(h.misc & PERF_RECORD_MISC_COMM_EXEC))) ||
		    ap_record_decode(&rec, p, h.size, &job->layout, &err) < 0)
			continue;
		if (rec.type == PERF_RECORD_EXIT)
			add_end(job->exact, rec.task.pid, rec.task.tid, rec.id.time);
		else
			add_end(job->exact, rec.comm.pid, rec.comm.tid, rec.id.time);
	}
}

/*
 * The last moment of the program that @t has executed since its start: what was mapped then is what
 * it has executed, but for what was unmapped before.
 */
static u64 end_of(const struct record_exact *x, const struct path_thread *t)
{
	u64 end = record_now();

	for (u32 i = 0; i < x->nr; i++)
		if (x->ends[i].tid == t->tid && x->ends[i].time > t->start &&
		    x->ends[i].time <= end)
			end = x->ends[i].time - 1;
	return end;
}

static const struct path_space *space_at(u32 index, void *data)
{
	struct record_exact *x = data;
	void *map;

	if (index >= x->nr_spaces)
		return NULL;
	if (!x->spaces[index]) {
		map = mmap(NULL, sizeof(*x->spaces[index]), PROT_READ, MAP_SHARED | MAP_NORESERVE,
			   x->fd, (off_t)path_space_offset(index));
		x->spaces[index] = map == MAP_FAILED ? NULL : map;
	}
	return x->spaces[index];
}

static int put_thread(struct record_job *job, const struct path_thread *t, u64 time)
{
	const struct data_synthesis s = {.layout = &job->layout, .put = job->take, .data = job};
	struct ap_sample_id id = {.pid = t->pid, .tid = t->tid, .time = time};
	struct record_exact *x = job->exact;
	struct path_counts c;
	int err = path_counts_read(&c, t, space_at, x);

	if (err)
		return err;
	if (job->events[0].nr_ids)
		id.id = id.stream_id = job->events[0].ids[0];
	for (u32 i = 0; i < c.nr_insns && !err; i++)
		err = data_synthesize_sample(&s, &id, c.insn[i].pc, c.insn[i].count);
	/* So that the sum is right. */
	if (c.unplaced > 0 && !err)
		err = data_synthesize_sample(&s, &id, 0, (u64)c.unplaced);
	x->unplaced += c.unplaced > 0 ? (u64)c.unplaced : 0;
	x->threads++;
	x->instructions += c.total;
	x->insns += c.nr_insns;
	x->bad += c.bad;
	path_counts_release(&c);
	return err;
}

static int read_thread(const struct record_exact *x, u32 index, struct path_thread *t, size_t size)
{
	u8 *to = (u8 *)t;
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(x->fd, to + have, size - have,
				  (off_t)(path_thread_offset(index) + have));

		if (n <= 0)
			return -1;
		have += (size_t)n;
	}
	return 0;
}

/* A thread of ours, in the order in which they ended: a reader holds less then. */
struct record_thread {
	u64 time;
	u32 index;
};

static int by_time(const void *a, const void *b)
{
	const struct record_thread *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static u32 find_threads(const struct record_exact *x, const struct guest_segment *segment,
			struct path_thread *t, struct record_thread *threads, u32 nr)
{
	u32 n = 0;

	for (u32 i = 0; i < nr; i++) {
		if (read_thread(x, i, t, offsetof(struct path_thread, extra)) ||
		    t->magic != PATH_MAGIC || t->run != segment->number)
			continue;
		threads[n++] = (struct record_thread){end_of(x, t), i};
	}
	if (n)
		qsort(threads, n, sizeof(*threads), by_time);
	return n;
}

static int put_all(struct record_job *job, const struct guest_segment *segment)
{
	struct record_exact *x = job->exact;
	u32 nr = __atomic_load_n(&segment->head->path_threads, __ATOMIC_ACQUIRE), n;
	struct path_thread *t = malloc(sizeof(*t));
	struct record_thread *threads;
	int err = 0;

	nr = nr < PATH_THREADS ? nr : PATH_THREADS;
	threads = calloc(nr + 1, sizeof(*threads));
	x->fd = segment->fd;
	x->nr_spaces = __atomic_load_n(&segment->head->path_spaces, __ATOMIC_ACQUIRE);
	x->nr_spaces = x->nr_spaces < PATH_SPACES ? x->nr_spaces : PATH_SPACES;
	x->spaces = calloc(x->nr_spaces + 1, sizeof(*x->spaces));
	if (!t || !threads || !x->spaces) {
		free(t);
		free(threads);
		return -ENOMEM;
	}
	n = find_threads(x, segment, t, threads, nr);
	for (u32 i = 0; i < n && !err; i++)
		if (!read_thread(x, threads[i].index, t, sizeof(*t)))
			err = put_thread(job, t, threads[i].time);
	free(threads);
	free(t);
	return err;
}

/* What the meters of the threads say. Counted by something else, it must be the same. */
static u64 counted(const struct guest_segment *segment)
{
	u32 used = ap__segment_used(segment);
	u64 sum = 0;

	for (u32 i = 0; i < used; i++) {
		const struct meter *m = ap__segment_meter(segment, i);

		if (m && __atomic_load_n(&m->tid, __ATOMIC_RELAXED))
			sum += meter_sum(m, METER_INSTRUCTIONS) - m->base[METER_INSTRUCTIONS];
	}
	return sum;
}

/*
 * Whoever was killed may have counted a path in one and not in the other. While somebody runs on
 * nothing can be said.
 */
static void check_sum(const struct record_exact *x, const struct guest_segment *segment)
{
	u64 meters = counted(segment);
	s64 off = (s64)(x->instructions - meters);

	if (off > (s64)x->threads * 256 || -off > (s64)x->threads * 256)
		command_error(&cmd_record,
			      "the profile has %" PRIu64 " instructions and the counters %" PRIu64
			      "; they agree unless programs still run",
			      x->instructions, meters);
}

void record_exact_write(struct record_job *job)
{
	const struct guest_segment *segment = ap__machine_segment(job->machine);
	struct record_exact *x = job->exact;
	u32 lost;

	if (!segment || !(segment->head->flags & SEGMENT_EXACT))
		return;
	if (put_all(job, segment)) {
		job->broken = true;
		command_error(&cmd_record, "there is not enough memory for the counts of all "
					   "instructions; the recording lacks some");
	}
	check_sum(x, segment);
	lost = __atomic_load_n(&segment->head->path_lost, __ATOMIC_RELAXED);
	if (x->bad || lost)
		command_error(
			&cmd_record,
			"THE PROFILE IS INCOMPLETE: %u threads or programs found no room, and "
			"%" PRIu64 " counts make no sense",
			lost, x->bad);
	if (x->unplaced)
		command_error(&cmd_record,
			      "%" PRIu64 " instructions are counted, but not where they are: there "
			      "was no room for more code",
			      x->unplaced);
}

void record_exact_summary(const struct record_job *job, const char *where)
{
	const struct record_exact *x = job->exact;

	fprintf(stderr,
		"anyperf record: %" PRIu64 " instructions were executed, at %" PRIu64
		" places; %.3f MB in %s\n",
		x->instructions, x->insns, (double)job->bytes / 1e6, where);
}
