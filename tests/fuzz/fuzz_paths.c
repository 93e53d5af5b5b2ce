/*
 * Words and descriptions of paths that a guest may have written: any numbers give counts that add
 * up, of instructions in order, and nothing outside of the memory is touched.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/check.h"
#include "data/path-walk.h"
#include "data/profile-reader.h"
#include "fuzz/at-the-end.h"

const char *const fuzz_samples[] = {
	/* paths and logged of both spaces, then entries, extras and words as below */
	"\x20\x01\x01\x01\x40\x01\x01\x01\x30\x01\x01\x01\x50\x01\x01\x01"
	"\x01\x01\x01\x01\x01\x02\x01\x01\x03\x01\x01\x01\x01\x05\x01\x01",
	NULL};
const char *const fuzz_words[] = {"\x01\x01", "\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x80",
				  "\x08",     "\x21\x32\x43\x54", "\x01\x02\x03\x04", NULL};

static struct path_space *spaces[2];
static struct path_thread *thread;

static const struct path_space *space_at(u32 index, void *data)
{
	(void)data;
	return index < 2 ? spaces[index] : NULL;
}

static u32 number(const uint8_t *data, size_t len, size_t at)
{
	u32 n = 0;

	if (at + 4 <= len)
		memcpy(&n, data + at, 4);
	return n;
}

static void check(const struct path_counts *c)
{
	u64 sum = (u64)c->unplaced;

	for (u32 i = 0; i < c->nr_insns; i++) {
		const struct path_count *at = &c->insn[i];

		CHECK(at->count && (!i || at[-1].pc < at->pc ||
				    (at[-1].pc == at->pc && at[-1].time < at->time)));
		sum += c->insn[i].count;
	}
	CHECK(sum == c->total);
	for (u32 i = 1; i < c->nr_calls; i++)
		CHECK(c->call[i - 1].from <= c->call[i].from);
}

static u64 when(u64 pc, u64 since, void *data)
{
	(void)data;
	return pc & 1 ? since : 0;
}

#define EVENTS 3u

static struct modeled_profile *modeled;

/* The bytes as places of modeled events, some of which are parts of paths that there may be. */
static void profile(const uint8_t *data, size_t n)
{
	u32 used = 0;
	struct profile_counts c;
	u64 sum[PROFILED_EVENTS] = {0};

	modeled->space = thread->space;
	for (size_t i = 0; i + 16 <= n; i += 4, used++) {
		struct modeled_place *p = &modeled->place[used];

		*p = (struct modeled_place){.at = number(data, n, i),
					    .addr = number(data, n, i + 4) & 0xff00,
					    .count = number(data, n, i + 8),
					    .event = data[i + 12] & 3};
		p->at = data[i + 13] & 1
				? path_part(data[i] & 63, data[i + 1] & 3, data[i + 2] & 15)
				: p->at;
		p->count <<= data[i + 14] & 1 ? 32 : 0;
	}
	modeled->used = n & 1 ? used : used + MODELED_PLACES;
	if (!(n & 1))
		memcpy(&modeled->place[MODELED_PLACES - 1], modeled->place, 8);
	modeled->unplaced[1] = number(data, n, 0);
	CHECK(profile_counts_read(&c, modeled, EVENTS, space_at, NULL) == 0);
	for (u64 i = 0; i < c.nr; i++) {
		const struct profile_count *x = &c.at[i], *y = x - 1;

		CHECK(x->event < EVENTS && x->count);
		CHECK(!i || y->event < x->event ||
		      (y->event == x->event &&
		       (y->pc < x->pc || (y->pc == x->pc && y->addr < x->addr))));
		sum[x->event] += x->count;
	}
	for (u32 i = 0; i < PROFILED_EVENTS; i++)
		CHECK(sum[i] + c.unplaced[i] == c.total[i]);
	profile_counts_release(&c);
	memset(modeled->place, 0, used * sizeof(modeled->place[0]));
	memset(&modeled->place[MODELED_PLACES - 1], 0, sizeof(modeled->place[0]));
}

static void on_step(const struct path_step *s, void *data)
{
	CHECK(s->len < 16 && s->nr_accesses <= PATH_WALK_ACCESSES);
	for (u32 i = 0; i < s->nr_accesses; i++) {
		const struct path_access *a = &s->access[i];

		CHECK(a->kind <= PATH_STORES && a->scale <= 3);
	}
	++*(u64 *)data;
}

static void on_records(const u32 *words, u32 n, u32 word, u32 at, void *data)
{
	for (u32 i = 0; i < n * PATH_RECORD_WORDS; i++)
		*(u64 *)data += words[i];
	*(u64 *)data += word + at;
}

static void on_events(const u32 *words, u32 n, u32 first, void *data)
{
	for (u32 i = 0; i < n * PATH_EVENT_WORDS; i++)
		*(u64 *)data += words[i];
	*(u64 *)data += first;
}

static size_t on_known(const u32 *number, size_t n, void *data)
{
	size_t known = ++*(u64 *)data & 1 ? n : n / 2;

	for (size_t i = 0; i < n; i++)
		CHECK(number[i] < PATH_WORDS);
	return known;
}

static void on_done(u32 number, void *data)
{
	CHECK(number < PATH_WORDS);
	++*(u64 *)data;
}

static void on_note(u32 kind, const u32 *words, u32 n, void *data)
{
	CHECK(kind <= 0xffff);
	for (u32 i = 0; i < n; i++)
		*(u64 *)data += words[i];
}

static void on_gap(u32 n, void *data)
{
	CHECK(n < PATH_FIRST);
	++*(u64 *)data;
}

static void on_interrupted(const struct path_step *s, const u64 *ends, void *data)
{
	CHECK(s->nr_accesses == 1 || s->nr_accesses == 2);
	for (u32 i = 0; i < s->nr_accesses; i++) {
		CHECK(s->access[i].kind == PATH_LOADS || s->access[i].kind == PATH_STORES);
		*(u64 *)data += ends[2 * i] + ends[2 * i + 1];
	}
}

/* A string that was interrupted, or two, or what is nearly so. */
static void feed_string(struct path_walk *w, const uint8_t *data)
{
	u32 words[3], ends = data[2] & 4 ? data[2] & 7 : 2 + (data[2] & 2);

	memcpy(words, data, sizeof(words));
	words[0] = PATH_TRACE_ELEMENTS | ends << 8 | data[0];
	path_walk_feed(w, words, ARRAY_SIZE(words));
	for (u32 i = 0; i < 5; i++) {
		u32 kind = data[i + 3] & 2 ? data[i + 3] & 7 : PATH_LOADS + (data[i] & 1);

		words[0] = PATH_TRACE_ELEMENT | kind << 16 | data[i + 4];
		path_walk_feed(w, words, ARRAY_SIZE(words));
	}
}

/* The bytes as a trace, with paths that there may be among them. */
static void walk(const uint8_t *data, size_t n)
{
	u64 told = 0;
	struct path_walk w = {.source = {space_at, NULL},
			      .space = thread->space,
			      .step = on_step,
			      .gap = on_gap,
			      .data = &told};
	u64 sum = 0;
	struct path_walk by_number = w;
	u32 event[1 + PATH_EVENT_WORDS], record[PATH_RECORDS_HEAD + PATH_RECORD_WORDS];

	by_number.known = on_known;
	by_number.done = on_done;
	by_number.note = on_note;
	by_number.records = on_records;
	by_number.events = on_events;
	by_number.interrupted = on_interrupted;
	by_number.data = &sum;
	for (size_t i = 0; i + 12 <= n; i += 4) {
		u32 words[4] = {PATH_FIRST + (data[i] & 31)};

		memcpy(words + 1, data + i, 12);
		if (data[i] & 64)
			words[1] = PATH_TRACE_PART + ((u32)(data[i] & 3) << 24) + data[i + 1];
		path_walk_feed(&w, words, data[i] & 128 ? 4 : 3);
		if (data[i] & 32)
			words[0] = data[i] & 16 ? PATH_TRACE_RECORDS | (data[i] & 1)
						: PATH_TRACE_NOTE | (data[i] & 7);
		path_walk_feed(&by_number, words, data[i] & 128 ? 4 : 3);
		if (i + sizeof(event) <= n && data[i + 1] & 1) {
			memcpy(event, data + i, sizeof(event));
			event[0] = PATH_TRACE_EVENTS | (data[i] & 2 ? PATH_EVENTS_SETTLED : 0) |
				   (data[i] & 1);
			path_walk_feed(&by_number, event, data[i] & 1 ? ARRAY_SIZE(event) : 1);
		}
		if (data[i + 1] & 4)
			feed_string(&by_number, data + i);
		if (i + sizeof(record) <= n && data[i + 1] & 2) {
			memcpy(record, data + i, sizeof(record));
			record[0] = PATH_TRACE_RECORDS | (data[i] & 1);
			path_walk_feed(&by_number, record,
				       data[i] & 1 ? ARRAY_SIZE(record) : PATH_RECORDS_HEAD);
		}
	}
	path_walk_end(&w);
	path_walk_end(&by_number);
	/* A path has at most 255 instructions, and each word tells one path or none. */
	CHECK(told + w.bad <= n * 256 + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t n = len < 1024 ? len : 1024, entries = n / 8;
	struct path_counts c;

	if (!thread) {
		thread = at_the_end(sizeof(*thread));
		modeled = at_the_end(sizeof(*modeled));
		spaces[0] = at_the_end(sizeof(*spaces[0]));
		spaces[1] = at_the_end(sizeof(*spaces[1]));
	}
	thread->magic = PATH_MAGIC;
	thread->space = number(data, n, 0) & 3;
	for (u32 i = 0; i < 2; i++) {
		struct path_space *s = spaces[i];

		s->magic = PATH_MAGIC;
		s->parent = number(data, n, 1) & 3;
		s->from_path = PATH_FIRST + (number(data, n, 2) & 63);
		s->paths = number(data, n, i * 8) & (number(data, n, 3) & 1 ? 1023 : ~0u);
		s->from_log = number(data, n, 4) & 255;
		s->logged = number(data, n, i * 8 + 4);
		s->marks = number(data, n, 5) >> (number(data, n, 6) & 31);
		if (n) {
			memcpy(s->path + PATH_FIRST, data, n);
			memcpy(s->path + PATH_WORDS - entries, data, entries * 8);
			memcpy(s->log + (i ? 8 : 0), data, n);
			memcpy(s->log + PATH_LOG - n, data, n);
			memcpy(s->mark, data, n);
			memcpy(s->mark + PATH_MARKS - entries, data, entries * 8);
		}
		for (u32 k = 0; k < entries && k < 16; k++) {
			s->path[PATH_FIRST + k].block &= k & 1 ? 0xff : ~0u;
			s->path[PATH_FIRST + k].known = 1;
		}
	}
	for (size_t i = 0; i < entries; i++) {
		thread->word[PATH_FIRST + i] = i & 1 ? number(data, n, i * 8) : i;
		memcpy(&thread->extra[i], data + (i & ~1ull) * 8 % (n - 7), 8);
		thread->extra[i].count = (s64)i - 3;
	}
	CHECK(path_counts_read(&c, thread, space_at, NULL, NULL) == 0);
	check(&c);
	path_counts_release(&c);
	CHECK(path_counts_read(&c, thread, space_at, when, NULL) == 0);
	check(&c);
	path_counts_release(&c);
	walk(data, n);
	profile(data, n);
	for (u32 i = 0; i < 2; i++) {
		memset(spaces[i]->path + PATH_FIRST, 0, n);
		memset(spaces[i]->path + PATH_WORDS - entries, 0, entries * 8);
		memset(spaces[i]->log, 0, n + 8);
		memset(spaces[i]->log + PATH_LOG - n, 0, n);
		memset(spaces[i]->mark, 0, n);
		memset(spaces[i]->mark + PATH_MARKS - entries, 0, entries * 8);
	}
	memset(thread->word + PATH_FIRST, 0, entries * 8);
	memset(thread->extra, 0, entries * sizeof(thread->extra[0]));
	return 0;
}
