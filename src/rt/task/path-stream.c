#include "rt/task/path-stream.h"

#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/syscall/fd.h"
#include "rt/task/limits.h"
#include "rt/task/meter-page.h"
#include "rt/task/modeled-tally.h"
#include "rt/task/path-pages.h"
#include "rt/task/traces.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#define SECOND          1000000000ull
#define PATIENCE        (60 * SECOND) /* a reader that has read nothing for so long is gone */
#define READS_AT_MOST   4u            /* in one wait; a reader takes all that there is in two */
#define RECORDS_AT_ONCE 4096u
#define EVENTS_AT_ONCE  4096u

bool streams_wanted(void)
{
	return run_config()->flags & SEGMENT_TRACED;
}

static void give_up(struct thread *t)
{
	__atomic_fetch_add(&counter_segment()->path_lost, 1, __ATOMIC_RELAXED);
	t->stream_lost = true;
}

/*
 * Waits until there is room for @n words; false: nobody reads any more. Others can write here
 * who are no reader (doc/security.md). A reader goes neither back nor ahead of us. Meanwhile we
 * write nothing, and a reader takes all that it finds: first what was there when it last looked,
 * and then the rest, each in two steps at most. Who goes on more often and leaves no room is
 * none, however often it wakes us. One that was killed says nothing, but its lock is gone.
 */
static bool wait_room(struct path_stream *s, u32 n)
{
	const struct __kernel_timespec second = {.tv_sec = 1};
	u32 written = __atomic_load_n(&s->written, __ATOMIC_RELAXED);
	u32 last = __atomic_load_n(&s->read, __ATOMIC_ACQUIRE);
	u32 reads = 0;
	u64 since = 0, now;

	for (;;) {
		u32 read = __atomic_load_n(&s->read, __ATOMIC_ACQUIRE);

		if (written - read > min_u64(written - last, PATH_STREAM_WORDS))
			return false;
		if (written - read <= PATH_STREAM_WORDS - n)
			return true;
		now = sys_clock(CLOCK_MONOTONIC);
		reads += read != last;
		if (read != last || !since)
			since = now;
		last = read;
		if (now - since > PATIENCE || reads > READS_AT_MOST || !meter_run_watched())
			return false;
		__atomic_store_n(&s->waits, 1, __ATOMIC_SEQ_CST);
		/* Mate: the reader looks at `waits` after it has set `read`. */
		if (__atomic_load_n(&s->read, __ATOMIC_SEQ_CST) == read)
			sys_futex(&s->read, FUTEX_WAIT, read, &second, NULL, 0);
	}
}

/* Room for it is there. */
static void copy(struct path_stream *s, u32 at, const u32 *words, u32 n)
{
	u32 first;

	at %= PATH_STREAM_WORDS;
	first = (u32)min_u64(n, PATH_STREAM_WORDS - at);
	memcpy(s->word + at, words, first * sizeof(*words));
	memcpy(s->word, words + first, (n - first) * sizeof(*words));
}

/* One entry of two pieces, or entries. */
static void put_two(struct thread *t, const u32 *head, u32 nr_head, const u32 *words, u32 n)
{
	struct path_stream *s = t->stream;

	if (!s || t->stream_lost)
		return;
	if (!wait_room(s, nr_head + n)) {
		give_up(t);
		return;
	}
	copy(s, s->written, head, nr_head);
	copy(s, s->written + nr_head, words, n);
	__atomic_store_n(&s->written, s->written + nr_head + n, __ATOMIC_RELEASE);
}

static void put(struct thread *t, const u32 *words, u32 n)
{
	put_two(t, NULL, 0, words, n);
}

/*
 * What @t has said of its accesses, of @n words that are handed over. Records of a path that goes
 * on come with its word.
 */
static void put_records(struct thread *t, u32 n)
{
	const struct path_record *r = (const struct path_record *)t->dbt.slots_start, *end;
	u64 size = __atomic_load_n(&t->dbt.slots_at, __ATOMIC_ACQUIRE) - (u64)r;
	u32 head[PATH_RECORDS_HEAD] = {0, t->stream_words, (u32)t->dbt.trace_begin};

	t->stream_words += n;
	if (size > PATH_RECORDS_SIZE)
		return;
	end = r + size / sizeof(*r);
	while (end > r && path_record_word(end - 1, t->dbt.trace_begin) >= (s32)n)
		end--;
	while (r < end) {
		u32 piece = (u32)min_u64((u64)(end - r), RECORDS_AT_ONCE);

		head[0] = PATH_TRACE_RECORDS | piece;
		put_two(t, head, PATH_RECORDS_HEAD, (const u32 *)r, piece * PATH_RECORD_WORDS);
		r += piece;
	}
}

static void put_events(struct thread *t, const struct path_event *list, u32 n, u32 settled)
{
	do {
		u32 piece = (u32)min_u64(n, EVENTS_AT_ONCE), head = PATH_TRACE_EVENTS | piece;

		if (piece == n)
			head |= settled;
		put_two(t, &head, 1, (const u32 *)list, piece * PATH_EVENT_WORDS);
		list += piece;
		n -= piece;
	} while (n);
}

/* Who ends the process may be writing for us; then we are about to be killed. */
static bool begin_writing(struct thread *t)
{
	return !__atomic_exchange_n(&t->stream_busy, 1, __ATOMIC_ACQUIRE);
}

static void end_writing(struct thread *t)
{
	__atomic_store_n(&t->stream_busy, 0, __ATOMIC_RELEASE);
}

void stream_events(struct thread *t, const struct path_event *list, u32 n)
{
	if (!begin_writing(t))
		return;
	put_events(t, list, n, 0);
	end_writing(t);
}

void stream_say_stack(struct thread *t)
{
	if (t->stream)
		t->stream->stack = regs_sp(&t->dbt.regs);
}

static void take_words(struct thread *t, const u32 *words, u32 n)
{
	const struct path_event *list = NULL;
	u32 nr = modeled_tally_take(t, &list);

	if (!begin_writing(t))
		return;
	if (nr)
		put_events(t, list, nr, 0);
	if (run_config()->flags & SEGMENT_ACCESSES)
		put_records(t, n);
	put(t, words, n);
	end_writing(t);
}

/* The model has been told of the last path, which nothing is taken back of any more. */
static void settle(struct thread *t)
{
	const struct path_event *list = NULL;
	u32 nr;

	if (!modeled_tally_wanted() || !begin_writing(t))
		return;
	nr = modeled_tally_take(t, &list);
	put_events(t, list, nr, PATH_EVENTS_SETTLED);
	end_writing(t);
}

static const struct trace_user user = {.words = take_words, .settle = settle};

void streams_start(void)
{
	if (!streams_wanted())
		return;
	trace_use(&user);
	if (run_config()->flags & SEGMENT_ACCESSES) {
		trace_use_memory();
		trace_use_filter(run_config()->filter_shift, run_config()->filter_sets,
				 run_config()->filter_lines);
	}
}

static u64 arguments, arguments_end;

void stream_arguments(u64 from, u64 upto)
{
	arguments = from;
	arguments_end = upto;
}

/* As they are now: the program may have written there, or nothing may be left. */
static void put_command(struct path_stream *s)
{
	u32 n = (u32)min_u64(arguments_end - arguments, sizeof(s->command));

	s->command_size = n && !guest_read(s->command, arguments, n) ? n : 0;
}

void stream_begin(struct thread *t)
{
	struct path_stream *s;
	u32 index;

	if (!streams_wanted())
		return;
	if (t->stream)
		region_unmap_file(t->stream, sizeof(*t->stream));
	t->stream = NULL;
	t->stream_busy = 0;
	t->stream_words = 0;
	index = paths_take_thread();
	if (index == PATH_THREADS)
		return;
	s = region_map_file(sizeof(*s), fd_get(FD_SEGMENT), path_stream_offset(index));
	if (!s) {
		give_up(t);
		return;
	}
	s->space = paths_space_index();
	s->run = meter_run();
	perf_ids(t, &s->pid, &s->tid);
	s->number = s->tid == s->pid ? 1 : t->windows.nth + 1;
	s->start = sys_clock(CLOCK_MONOTONIC);
	put_command(s);
	t->stream = s;
	__atomic_store_n(&s->magic, PATH_STREAM_MAGIC, __ATOMIC_RELEASE);
}

void stream_end(struct thread *t)
{
	struct path_stream *s = t->stream;

	if (!s)
		return;
	__atomic_store_n(&s->ended, 1, __ATOMIC_RELEASE);
	t->stream = NULL; /* before it is gone, as in traces_unmap() */
	region_unmap_file(s, sizeof(*s));
}

void stream_rescue(struct thread *other)
{
	u64 at = __atomic_load_n(&other->dbt.trace_at, __ATOMIC_ACQUIRE);
	u64 start = other->dbt.trace_begin;

	if (!other->stream || !start || at <= start ||
	    at > other->dbt.trace_start + PATH_TRACE_SIZE ||
	    __atomic_exchange_n(&other->stream_busy, 1, __ATOMIC_ACQUIRE))
		return;
	if (run_config()->flags & SEGMENT_ACCESSES)
		put_records(other, (u32)((at - start) / sizeof(u32)));
	put(other, (const u32 *)start, (u32)((at - start) / sizeof(u32)));
}

void stream_note(struct thread *t, enum path_note kind, const u32 *words, u32 n)
{
	u32 head[2] = {PATH_TRACE_NOTE | (u32)kind, n}, all[66];

	if (!t->stream)
		return;
	traces_flush(t);
	n = (u32)min_u64(n, ARRAY_SIZE(all) - ARRAY_SIZE(head));
	head[1] = n;
	memcpy(all, head, sizeof(head));
	if (n)
		memcpy(all + ARRAY_SIZE(head), words, n * sizeof(*words));
	put(t, all, n + (u32)ARRAY_SIZE(head));
}

void stream_wait_read(struct thread *t)
{
	if (t->stream && !t->stream_lost && !wait_room(t->stream, PATH_STREAM_WORDS))
		give_up(t);
}
