#include "rt/task/path-stream.h"

#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/task/limits.h"
#include "rt/task/meter-page.h"
#include "rt/task/path-pages.h"
#include "rt/task/traces.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#define PATIENCE 60 /* seconds: a reader that has read nothing for so long is gone */

bool streams_wanted(void)
{
	return counter_segment()->flags & SEGMENT_TRACED;
}

static void give_up(struct thread *t)
{
	__atomic_fetch_add(&counter_segment()->path_lost, 1, __ATOMIC_RELAXED);
	t->stream_lost = true;
}

/* Waits until there is room for @n words; false: nobody reads any more. */
static bool wait_room(struct path_stream *s, u32 n)
{
	const struct __kernel_timespec second = {.tv_sec = 1};
	u32 last = __atomic_load_n(&s->read, __ATOMIC_ACQUIRE), seconds = 0;

	for (;;) {
		u32 read = __atomic_load_n(&s->read, __ATOMIC_ACQUIRE);

		if (s->written - read <= PATH_STREAM_WORDS - n)
			return true;
		seconds = read == last ? seconds : 0;
		last = read;
		__atomic_store_n(&s->waits, 1, __ATOMIC_SEQ_CST);
		/* Mate: the reader looks at `waits` after it has set `read`. */
		if (__atomic_load_n(&s->read, __ATOMIC_SEQ_CST) != read)
			continue;
		if (sys_futex(&s->read, FUTEX_WAIT, read, &second, NULL, 0) == -ETIMEDOUT &&
		    ++seconds == PATIENCE)
			return false;
	}
}

static void put(struct thread *t, const u32 *words, u32 n)
{
	struct path_stream *s = t->stream;
	u32 at, first;

	if (!s || t->stream_lost)
		return;
	if (!wait_room(s, n)) {
		give_up(t);
		return;
	}
	at = s->written % PATH_STREAM_WORDS;
	first = (u32)min_u64(n, PATH_STREAM_WORDS - at);
	memcpy(s->word + at, words, first * sizeof(*words));
	memcpy(s->word, words + first, (n - first) * sizeof(*words));
	__atomic_store_n(&s->written, s->written + n, __ATOMIC_RELEASE);
}

static void take_words(struct thread *t, const u32 *words, u32 n)
{
	/* Who ends the process may be writing for us; then we are about to be killed. */
	if (__atomic_exchange_n(&t->stream_busy, 1, __ATOMIC_ACQUIRE))
		return;
	put(t, words, n);
	__atomic_store_n(&t->stream_busy, 0, __ATOMIC_RELEASE);
}

static const struct trace_user user = {.words = take_words};

void streams_start(void)
{
	if (streams_wanted())
		trace_use(&user);
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
	s->pid = (u32)sys_getpid();
	s->tid = t->tid;
	t->stream = s;
	__atomic_store_n(&s->magic, PATH_STREAM_MAGIC, __ATOMIC_RELEASE);
}

void stream_end(struct thread *t)
{
	if (!t->stream)
		return;
	__atomic_store_n(&t->stream->ended, 1, __ATOMIC_RELEASE);
	region_unmap_file(t->stream, sizeof(*t->stream));
	t->stream = NULL;
}

void stream_rescue(struct thread *other)
{
	u64 at = __atomic_load_n(&other->dbt.trace_at, __ATOMIC_ACQUIRE);
	u64 start = other->dbt.trace_start;

	if (!other->stream || !start || at <= start || at > start + PATH_TRACE_SIZE ||
	    __atomic_exchange_n(&other->stream_busy, 1, __ATOMIC_ACQUIRE))
		return;
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
