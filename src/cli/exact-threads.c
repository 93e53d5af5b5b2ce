#include "cli/exact-threads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

static void add_end(struct exact_threads *x, u32 pid, u32 tid, u64 time)
{
	if (x->nr == x->room) {
		x->room = x->room ? x->room * 2 : 64;
		x->ends = realloc(x->ends, x->room * sizeof(*x->ends));
		CHECK(x->ends);
	}
	x->ends[x->nr++] = (struct exact_end){pid, tid, time};
}

void exact_threads_note(struct exact_threads *x, const struct ap_record *rec)
{
	if (rec->type == PERF_RECORD_EXIT)
		add_end(x, rec->task.pid, rec->task.tid, rec->id.time);
	else if (rec->type == PERF_RECORD_COMM && rec->misc & PERF_RECORD_MISC_COMM_EXEC)
		add_end(x, rec->comm.pid, rec->comm.tid, rec->id.time);
}

void exact_threads_release(struct exact_threads *x)
{
	for (u32 i = 0; i < x->nr_spaces; i++)
		if (x->spaces[i])
			munmap((void *)x->spaces[i], sizeof(*x->spaces[i]));
	free(x->spaces);
	free(x->ends);
	*x = (struct exact_threads){0};
}

/* What was mapped then is what it has executed, but for what was unmapped before. */
u64 exact_threads_end(const struct exact_threads *x, u32 tid, u64 start)
{
	u64 end = now_ns();

	for (u32 i = 0; i < x->nr; i++)
		if (x->ends[i].tid == tid && x->ends[i].time > start && x->ends[i].time <= end)
			end = x->ends[i].time - 1;
	return end;
}

static const struct path_space *space_at(u32 index, void *data)
{
	struct exact_threads *x = data;
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

static int give_thread(struct exact_threads *x, const struct path_thread *t, u64 time,
		       exact_thread_fn *fn, void *data)
{
	struct path_counts c;
	int err = path_counts_read(&c, t, space_at, x);

	if (err)
		return err;
	err = fn(t, time, &c, data);
	x->unplaced += c.unplaced > 0 ? (u64)c.unplaced : 0;
	x->threads++;
	x->instructions += c.total;
	x->bad += c.bad;
	path_counts_release(&c);
	return err;
}

static int read_thread(const struct exact_threads *x, u32 index, struct path_thread *t, size_t size)
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
struct exact_thread {
	u64 time;
	u32 index;
};

static int by_time(const void *a, const void *b)
{
	const struct exact_thread *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* A modeled profile of our run; NULL: there is none of that index. */
static struct modeled_profile *map_profile(const struct exact_threads *x, u32 index, u32 run)
{
	struct modeled_profile *p = mmap(NULL, sizeof(*p), PROT_READ, MAP_SHARED | MAP_NORESERVE,
					 x->fd, (off_t)modeled_profile_offset(index));

	if (p == MAP_FAILED)
		return NULL;
	if (__atomic_load_n(&p->magic, __ATOMIC_ACQUIRE) == MODELED_PROFILE_MAGIC && p->run == run)
		return p;
	munmap(p, sizeof(*p));
	return NULL;
}

static int give_profile(struct exact_threads *x, const struct modeled_profile *p, u64 time, u32 nr,
			modeled_thread_fn *fn, void *data)
{
	struct profile_counts c;
	int err = profile_counts_read(&c, p, nr, space_at, x);

	if (err)
		return err;
	err = fn(p, time, &c, data);
	profile_counts_release(&c);
	return err;
}

static u32 find_threads(const struct exact_threads *x, const struct guest_segment *segment,
			struct path_thread *t, struct exact_thread *threads, u32 nr)
{
	u32 n = 0;

	for (u32 i = 0; i < nr; i++) {
		if (read_thread(x, i, t, offsetof(struct path_thread, extra)) ||
		    t->magic != PATH_MAGIC || t->run != segment->number)
			continue;
		threads[n++] = (struct exact_thread){exact_threads_end(x, t->tid, t->start), i};
	}
	if (n)
		qsort(threads, n, sizeof(*threads), by_time);
	return n;
}

int exact_threads_read(struct exact_threads *x, const struct guest_segment *segment,
		       exact_thread_fn *fn, void *data)
{
	u32 nr = __atomic_load_n(&segment->head->path_threads, __ATOMIC_ACQUIRE), n;
	struct path_thread *t = malloc(sizeof(*t));
	struct exact_thread *threads;
	int err = 0;

	nr = nr < PATH_THREADS ? nr : PATH_THREADS;
	threads = calloc(nr + 1, sizeof(*threads));
	x->fd = segment->fd;
	x->lost = __atomic_load_n(&segment->head->path_lost, __ATOMIC_RELAXED);
	x->nr_spaces = __atomic_load_n(&segment->head->path_spaces, __ATOMIC_ACQUIRE);
	x->nr_spaces = x->nr_spaces < PATH_SPACES ? x->nr_spaces : PATH_SPACES;
	x->spaces = calloc(x->nr_spaces + 1, sizeof(*x->spaces));
	if (!t || !threads || !x->spaces) {
		x->nr_spaces = x->spaces ? x->nr_spaces : 0;
		free(t);
		free(threads);
		return -ENOMEM;
	}
	n = find_threads(x, segment, t, threads, nr);
	for (u32 i = 0; i < n && !err; i++)
		if (!read_thread(x, threads[i].index, t, sizeof(*t)))
			err = give_thread(x, t, threads[i].time, fn, data);
	free(threads);
	free(t);
	return err;
}

int exact_threads_modeled(struct exact_threads *x, const struct guest_segment *segment, u32 nr,
			  modeled_thread_fn *fn, void *data)
{
	u32 profiles = __atomic_load_n(&segment->head->modeled_profiles, __ATOMIC_ACQUIRE), n = 0;
	struct modeled_profile *p;
	struct exact_thread *threads;
	int err = 0;

	profiles = profiles < MODELED_PROFILES ? profiles : MODELED_PROFILES;
	threads = calloc(profiles + 1, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	for (u32 i = 0; i < profiles; i++) {
		p = map_profile(x, i, segment->number);
		if (!p)
			continue;
		threads[n++] = (struct exact_thread){exact_threads_end(x, p->tid, p->start), i};
		munmap(p, sizeof(*p));
	}
	if (n)
		qsort(threads, n, sizeof(*threads), by_time);
	for (u32 i = 0; i < n && !err; i++) {
		p = map_profile(x, threads[i].index, segment->number);
		err = p ? give_profile(x, p, threads[i].time, nr, fn, data) : -ENOMEM;
		if (p)
			munmap(p, sizeof(*p));
	}
	free(threads);
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
bool exact_threads_agree(const struct exact_threads *x, const struct guest_segment *segment,
			 u64 *meters)
{
	s64 off;

	*meters = counted(segment);
	off = (s64)(x->instructions - *meters);
	return off <= (s64)x->threads * 256 && -off <= (s64)x->threads * 256;
}
