#include "cli/exact-threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
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

static u64 hash_bytes(u64 hash, const void *bytes, size_t len)
{
	for (const u8 *p = bytes, *end = p + len; p < end; p++)
		hash = (hash ^ *p) * 1099511628211ull; /* FNV-1a */
	return hash;
}

/* A file of the same name may be another one meanwhile, and another part of a file other code. */
static u64 hash_of(const struct ap_record_mmap *m)
{
	u64 hash = hash_bytes(14695981039346656037ull, m->filename, strlen(m->filename));

	hash = hash_bytes(hash, &m->pgoff, sizeof(m->pgoff));
	if (m->build_id)
		return hash_bytes(hash, m->build_id, m->build_id_size);
	return hash_bytes(hash, &m->ino, sizeof(m->ino));
}

/* A program that maps code all the time is told of by what is there at last. */
#define MAPS_MOST 16384u

static void add_map(struct exact_threads *x, u64 time, const struct ap_record_mmap *m)
{
	struct exact_map map = {.time = time,
				.start = m->addr,
				.end = m->addr + m->len,
				.file = hash_of(m),
				.pid = m->pid};

	if (x->nr_maps == MAPS_MOST)
		return;
	for (u32 i = 0; i < x->nr_maps && !map.over; i++)
		map.over = x->maps[i].start < map.end && map.start < x->maps[i].end &&
			   x->maps[i].file != map.file;
	if (x->nr_maps == x->map_room) {
		x->map_room = x->map_room ? x->map_room * 2 : 64;
		x->maps = realloc(x->maps, x->map_room * sizeof(*x->maps));
		CHECK(x->maps);
	}
	x->maps[x->nr_maps++] = map;
}

void exact_threads_note(struct exact_threads *x, const struct ap_record *rec)
{
	if (rec->type == PERF_RECORD_EXIT)
		add_end(x, rec->task.pid, rec->task.tid, rec->id.time);
	else if (rec->type == PERF_RECORD_COMM && rec->misc & PERF_RECORD_MISC_COMM_EXEC)
		add_end(x, rec->comm.pid, rec->comm.tid, rec->id.time);
	else if ((rec->type == PERF_RECORD_MMAP || rec->type == PERF_RECORD_MMAP2) &&
		 !(rec->misc & PERF_RECORD_MISC_MMAP_DATA) && rec->mmap.filename[0] == '/')
		add_map(x, rec->id.time, &rec->mmap);
}

void exact_threads_release(struct exact_threads *x)
{
	for (u32 i = 0; i < x->nr_spaces; i++)
		if (x->spaces[i])
			munmap((void *)x->spaces[i], sizeof(*x->spaces[i]));
	free(x->spaces);
	free(x->ends);
	free(x->maps);
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

/* The file that its program had at @pc at @time; NULL: none, or one that it had from its parent. */
static const struct exact_map *map_at(const struct exact_threads *x, u64 pc, u64 time)
{
	for (u32 i = x->nr_maps; i > 0; i--) {
		const struct exact_map *m = &x->maps[i - 1];

		if (m->pid == x->pid && pc >= m->start && pc < m->end && m->time <= time)
			return m;
	}
	return NULL;
}

static bool same_map(const struct exact_map *a, const struct exact_map *b)
{
	return a->pid == b->pid && a->file == b->file && a->start == b->start && a->end == b->end;
}

/* One time for all that was executed of it, however often it came and went. */
static u64 time_of_map(const struct exact_threads *x, const struct exact_map *m, u64 from)
{
	for (u32 i = 0; m && i < x->nr_maps; i++)
		if (same_map(m, &x->maps[i]) && x->maps[i].time > x->begun)
			return x->maps[i].time + 1;
	return from;
}

/* Whatever was there when its thread began was there when the code was translated. */
static u64 when_there(u64 pc, u64 since, void *data)
{
	struct exact_threads *x = data;
	u64 from = since > x->begun ? since : x->begun;
	const struct exact_map *last, *was;

	/* Of the whole page. */
	if (x->asked.pc >> 12 == pc >> 12 && x->asked.since == since)
		return x->asked.time;
	last = map_at(x, pc, x->over);
	was = last && last->time > from ? map_at(x, pc, from) : NULL;
	x->asked.pc = pc;
	x->asked.since = since;
	x->asked.time = !last || last->time <= from || (was && same_map(was, last))
				? 0
				: time_of_map(x, was, from);
	return x->asked.time;
}

static bool maps_over(const struct exact_threads *x)
{
	for (u32 i = 0; i < x->nr_maps; i++)
		if (x->maps[i].over && x->maps[i].pid == x->pid && x->maps[i].time > x->begun &&
		    x->maps[i].time <= x->over)
			return true;
	return false;
}

static int give_thread(struct exact_threads *x, const struct path_thread *t, u64 time,
		       exact_thread_fn *fn, void *data)
{
	struct path_counts c;
	int err;

	x->pid = t->pid;
	x->begun = t->start;
	x->over = time;
	x->asked = (struct exact_asked){0};
	err = path_counts_read(&c, t, space_at, maps_over(x) ? when_there : NULL, x);

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

/* Pages that nobody has written are not made by it, as they would be in a mapping. */
static int read_at(const struct exact_threads *x, u64 at, void *to, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(x->fd, (u8 *)to + have, size - have, (off_t)(at + have));

		if (n <= 0)
			return -1;
		have += (size_t)n;
	}
	return 0;
}

static int read_thread(const struct exact_threads *x, u32 index, struct path_thread *t, size_t size)
{
	return read_at(x, path_thread_offset(index), t, size);
}

/* A thread of ours, in the order in which they ended: a reader holds less then. */
struct exact_thread {
	u64 time;
	u32 index;
	bool modeled; /* its modeled events */
};

static int by_time(const void *a, const void *b)
{
	const struct exact_thread *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->modeled != y->modeled)
		return x->modeled ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* @size bytes of a modeled profile of our run; false: there is none of that index. */
static bool read_profile(const struct exact_threads *x, u32 index, u32 run,
			 struct modeled_profile *p, size_t size)
{
	return !read_at(x, modeled_profile_offset(index), p, size) &&
	       p->magic == MODELED_PROFILE_MAGIC && p->run == run;
}

/* Its places, as far as somebody has written there: one can claim as many as there may be. */
static int read_places(const struct exact_threads *x, u32 index, struct modeled_profile *p)
{
	u64 from = modeled_profile_offset(index) + offsetof(struct modeled_profile, place);
	off_t hole = lseek(x->fd, (off_t)from, SEEK_HOLE);
	u64 there = hole > (off_t)from ? ((u64)hole - from) / sizeof(p->place[0]) : 0;

	if (p->used > there)
		p->used = (u32)there;
	if (p->used > MODELED_PLACES)
		p->used = MODELED_PLACES;
	return p->used ? read_at(x, from, p->place, p->used * sizeof(p->place[0])) : 0;
}

static int give_modeled(struct exact_threads *x, const struct guest_segment *segment,
			const struct exact_thread *which, const struct exact_take *take)
{
	/* Of most places nothing is ever touched. */
	struct modeled_profile *p = malloc(sizeof(*p));
	struct profile_counts c;
	int err = -ENOMEM;

	if (p &&
	    read_profile(x, which->index, segment->number, p,
			 offsetof(struct modeled_profile, index)) &&
	    !read_places(x, which->index, p))
		err = profile_counts_read(&c, p, take->nr_modeled, space_at, x);
	if (!err) {
		err = take->modeled ? take->modeled(p, which->time, &c, take->data) : 0;
		profile_counts_release(&c);
	}
	free(p);
	return err;
}

static u32 find_modeled(const struct exact_threads *x, const struct guest_segment *segment,
			struct exact_thread *threads, u32 nr)
{
	struct modeled_profile *head = nr ? malloc(sizeof(*head)) : NULL;
	u32 n = 0;

	CHECK(head || !nr);
	for (u32 i = 0; i < nr; i++)
		if (read_profile(x, i, segment->number, head,
				 offsetof(struct modeled_profile, unplaced)))
			threads[n++] = (struct exact_thread){
				exact_threads_end(x, head->tid, head->start), i, true};
	free(head);
	return n;
}

static u32 find_threads(const struct exact_threads *x, const struct guest_segment *segment,
			struct path_thread *t, struct exact_thread *threads, u32 nr)
{
	u32 n = 0;

	for (u32 i = 0; i < nr; i++) {
		if (read_thread(x, i, t, offsetof(struct path_thread, extra)) ||
		    t->magic != PATH_MAGIC || t->run != segment->number)
			continue;
		threads[n++] = (struct exact_thread){exact_threads_end(x, t->tid, t->start), i,
						     false};
	}
	return n;
}

/* How many there were of which no more than @most can be. */
static u32 given_away(const u32 *last, u32 most)
{
	u32 n = __atomic_load_n(last, __ATOMIC_ACQUIRE);

	return n < most ? n : most;
}

int exact_threads_read(struct exact_threads *x, const struct guest_segment *segment,
		       const struct exact_take *take)
{
	u32 nr = given_away(&segment->head->path_threads, PATH_THREADS), n;
	u32 modeled = take->modeled ? given_away(&segment->head->modeled_profiles, MODELED_PROFILES)
				    : 0;
	struct path_thread *t = malloc(sizeof(*t));
	struct exact_thread *threads;
	int err = 0;

	threads = calloc((size_t)nr + modeled + 1, sizeof(*threads));
	x->fd = segment->fd;
	x->lost = __atomic_load_n(&segment->head->path_lost, __ATOMIC_RELAXED);
	x->nr_spaces = given_away(&segment->head->path_spaces, PATH_SPACES);
	x->spaces = calloc(x->nr_spaces + 1, sizeof(*x->spaces));
	if (!t || !threads || !x->spaces) {
		x->nr_spaces = x->spaces ? x->nr_spaces : 0;
		free(t);
		free(threads);
		return -ENOMEM;
	}
	n = find_threads(x, segment, t, threads, nr);
	n += find_modeled(x, segment, threads + n, modeled);
	if (n)
		qsort(threads, n, sizeof(*threads), by_time);
	for (u32 i = 0; i < n && !err; i++) {
		if (threads[i].modeled)
			err = give_modeled(x, segment, &threads[i], take);
		else if (!read_thread(x, threads[i].index, t, sizeof(*t)))
			err = give_thread(x, t, threads[i].time, take->thread, take->data);
	}
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
bool exact_threads_agree(const struct exact_threads *x, const struct guest_segment *segment,
			 u64 *meters)
{
	s64 off;

	*meters = counted(segment);
	off = (s64)(x->instructions - *meters);
	return off <= (s64)x->threads * 256 && -off <= (s64)x->threads * 256;
}

void exact_say_lost(const struct command *cmd, u32 lost, u64 bad, u64 unplaced)
{
	if (bad || lost)
		command_error(
			cmd,
			"THE PROFILE IS INCOMPLETE: %u threads or programs found no room, and "
			"%" PRIu64 " counts make no sense",
			lost, bad);
	if (unplaced)
		command_error(cmd,
			      "%" PRIu64 " instructions are counted, but not where they are: there "
			      "was no room for more code",
			      unplaced);
}
