#include "data/path-walk.h"

#include "data/path-reader-priv.h"

/* What instruction @insn accesses. */
static void add_accesses(struct path_walk *w, struct seen_block *b, u32 insn, struct path_step *s)
{
	struct path_access a;

	s->access = w->access + w->nr_accesses;
	while (path_block_access(b, insn, &a)) {
		/* Nobody asks for what is told more exactly. */
		a.kind = a.kind == PATH_LOAD_ABOUT    ? PATH_LOAD
			 : a.kind == PATH_STORE_ABOUT ? PATH_STORE
						      : a.kind;
		if (w->nr_accesses == PATH_WALK_ACCESSES) {
			w->bad++;
			continue;
		}
		/* It keeps its number, and is nothing. */
		if (a.kind > PATH_STORES || a.scale > 3) {
			w->bad++;
			a.kind = PATH_PREFETCH;
		}
		w->access[w->nr_accesses++] = a;
		s->nr_accesses++;
	}
	s->first_access = b->access - s->nr_accesses;
}

/* Instructions [from, upto) of a block, of which the last one is a branch that was @taken. */
static void tell(struct path_walk *w, u32 number, u32 block, u32 from, u32 upto, bool taken)
{
	struct seen_block b;
	struct seen_insn i;

	w->nr_accesses = 0;
	if (!path_block_see(&w->source, w->space, block, &b) || upto > b.nr_insns) {
		w->bad++;
		w->told++;
		return;
	}
	while (b.next < upto) {
		struct path_step s;

		if (!path_block_next(&b, &i)) {
			w->bad++;
			break;
		}
		s = (struct path_step){
			.pc = i.pc, .target = i.target, .len = i.insn & 15, .kind = i.insn >> 4};
		s.taken = taken && b.next == upto;
		if (b.next <= from)
			continue;
		if (b.accesses)
			add_accesses(w, &b, b.next - 1, &s);
		w->step(&s, w->data);
	}
	if (w->done)
		w->done(number, w->data);
	w->told++;
}

/* Tells the path that is pending, without what comes from @upto on. */
static void settle(struct path_walk *w, u32 upto)
{
	struct path_entry e;
	u32 number = w->pending;
	bool settled = w->settled;

	w->pending = 0;
	w->settled = false;
	w->word = w->pending_word;
	if (!number)
		return;
	if (upto == ~0u && w->known && number >= PATH_FIRST && w->known(&number, 1, w->data)) {
		w->told++;
		return;
	}
	if (number < PATH_FIRST) {
		w->gap(number, w->data);
		w->told++;
	} else if (!path_entry_see(&w->source, w->space, number, &e)) {
		w->bad++;
		w->told++;
	} else if (upto >= e.upto) {
		tell(w, number, e.block, e.from, e.upto, e.taken);
	} else if (upto > e.from || settled) {
		tell(w, 0, e.block, e.from, upto, false);
	}
}

/* The path that is pending ends with instruction @upto of @block, and has gone up to @from. */
static void take_back(struct path_walk *w, u32 block, u32 from, u32 upto)
{
	struct path_entry e;

	/* What is not described: so many of them have not been executed. */
	if (w->pending && w->pending < PATH_FIRST && upto - from <= w->pending) {
		w->pending -= upto - from;
		settle(w, ~0u);
		return;
	}
	if (!w->pending || !path_entry_see(&w->source, w->space, w->pending, &e) ||
	    e.block != block || e.upto != upto || from < e.from || from >= upto) {
		w->bad++;
		settle(w, ~0u);
		return;
	}
	settle(w, from);
}

/* The last instruction that was told, which ends its path, is to be executed again. */
static void again(struct path_walk *w)
{
	struct path_entry e;

	if (w->pending < PATH_FIRST || !path_entry_see(&w->source, w->space, w->pending, &e)) {
		w->bad++;
		return;
	}
	settle(w, e.upto - 1u);
}

/* Where the last basic block of instructions [from, upto) of a block begins. */
static u32 basic_block(struct path_walk *w, u32 block, u32 from, u32 upto)
{
	struct seen_block b;
	struct seen_insn i;
	u32 at = from;

	if (!path_block_see(&w->source, w->space, block, &b) || upto > b.nr_insns)
		return at;
	while (b.next < upto && path_block_next(&b, &i))
		if (b.next > from && i.insn >> 4 != PATH_PLAIN)
			at = b.next;
	return at;
}

/*
 * A client request, which is told as one instruction. Its basic block is told by itself, since what
 * is asked for may be about it as well.
 */
static void request(struct path_walk *w, u32 kind, const u32 *words)
{
	struct path_entry e;
	u32 number = w->pending, begin, end;

	if (number < PATH_FIRST || !path_entry_see(&w->source, w->space, number, &e)) {
		settle(w, ~0u);
	} else {
		end = e.upto > e.from + PATH_REQUEST_INSNS ? e.upto - PATH_REQUEST_INSNS : e.from;
		begin = basic_block(w, e.block, e.from, end);
		w->pending = 0;
		w->word = w->pending_word;
		if (begin > e.from)
			tell(w, 0, e.block, e.from, begin, false);
		if (end > begin)
			tell(w, 0, e.block, begin, end, false);
	}
	if (w->note)
		w->note(kind, words + 2, words[1], w->data);
}

static size_t note(struct path_walk *w, const u32 *words, size_t n)
{
	size_t size = n > 1 ? (size_t)words[1] + 2 : 2;
	u32 kind = words[0] & 0xffff;

	if (size > n) {
		w->bad++;
		return n;
	}
	if (kind >= PATH_NOTE_REQUEST) {
		request(w, kind, words);
		return size;
	}
	settle(w, ~0u);
	if (w->note)
		w->note(kind, words + 2, words[1], w->data);
	return size;
}

/* Records that come before what they are of. */
static size_t take_records(struct path_walk *w, const u32 *words, size_t n)
{
	u32 nr = words[0] & ~PATH_TRACE_KIND;
	size_t size = PATH_RECORDS_HEAD + (size_t)nr * PATH_RECORD_WORDS;

	if (size > n) {
		w->bad++;
		return n;
	}
	if (w->records)
		w->records(words + PATH_RECORDS_HEAD, nr, words[1], words[2], w->data);
	return size;
}

/* Events that come before what has caused them. */
static size_t take_events(struct path_walk *w, const u32 *words, size_t n)
{
	u32 nr = words[0] & ~(PATH_TRACE_KIND | PATH_EVENTS_SETTLED);
	size_t size = 1 + (size_t)nr * PATH_EVENT_WORDS;

	if (size > n) {
		w->bad++;
		return n;
	}
	if (w->events && nr)
		w->events(words + 1, nr, w->told + (w->settled ? 1 : 0), w->data);
	if (words[0] & PATH_EVENTS_SETTLED && w->pending)
		w->settled = true;
	return size;
}

/* Whether the words of an entry have numbers: it is the thread's, and not its stream's. */
static bool is_numbered(u32 word)
{
	u32 kind = word & PATH_TRACE_KIND;

	return kind != PATH_TRACE_NOTE && kind != PATH_TRACE_RECORDS && kind != PATH_TRACE_EVENTS;
}

static void interrupted(struct path_walk *w, const u32 *words)
{
	u32 ends = words[0] >> 8 & 0xff;

	w->nr_ends = w->string_ends = 0;
	/* Nobody asks for elements of gathers. */
	if (!w->interrupted || !ends)
		return;
	settle(w, ~0u);
	if (ends != 2 && ends != 4) {
		w->bad++;
		return;
	}
	w->string_pc = words[1] | (u64)words[2] << 32;
	w->string_ends = ends;
	w->access[0].flags = (u8)words[0];
	w->access[1].flags = (u8)words[0] & PATH_ADDR32;
}

static void interrupted_end(struct path_walk *w, const u32 *words)
{
	struct path_step s = {.pc = w->string_pc, .kind = PATH_PLAIN, .access = w->access};
	struct path_access *a = &w->access[w->nr_ends / 2];
	u32 kind = words[0] >> 16 & 0xff;

	if (!w->string_ends)
		return;
	*a = (struct path_access){.kind = (u8)kind, .size = (u16)words[0], .flags = a->flags};
	w->ends[w->nr_ends++] = words[1] | (u64)words[2] << 32;
	if (kind != PATH_LOADS && kind != PATH_STORES) {
		w->bad++;
		w->string_ends = 0;
	}
	if (w->nr_ends < w->string_ends || !w->string_ends)
		return;
	s.nr_accesses = w->string_ends / 2;
	w->string_ends = 0;
	w->interrupted(&s, w->ends, w->data);
}

/* An entry of several words; how many it has. */
static size_t entry(struct path_walk *w, const u32 *words, size_t n)
{
	u32 kind = words[0] & PATH_TRACE_KIND, from = words[0] >> 8 & 0xff, upto = words[0] & 0xff;
	size_t size = kind == PATH_TRACE_PART || kind == PATH_TRACE_BACK ? 2 : 3;

	if (kind == PATH_TRACE_NOTE)
		return note(w, words, n);
	if (kind == PATH_TRACE_RECORDS)
		return take_records(w, words, n);
	if (kind == PATH_TRACE_EVENTS)
		return take_events(w, words, n);
	if ((kind == PATH_TRACE_ELEMENTS || kind == PATH_TRACE_ELEMENT) && size <= n) {
		if (kind == PATH_TRACE_ELEMENTS)
			interrupted(w, words);
		else
			interrupted_end(w, words);
		return size;
	}
	if (kind < PATH_TRACE_PART || kind > PATH_TRACE_AGAIN || size > n) {
		w->bad++;
		return 1;
	}
	if (kind == PATH_TRACE_BACK) {
		take_back(w, words[1], from, upto);
		return size;
	}
	if (kind == PATH_TRACE_AGAIN) {
		again(w);
		return size;
	}
	settle(w, ~0u);
	w->word = w->next_word;
	if (kind == PATH_TRACE_PART) {
		if (from < upto) {
			tell(w, 0, words[1], from, upto, false);
		} else {
			w->bad++;
			w->told++;
		}
	} else {
		struct path_step s = {.pc = words[1] | (u64)words[2] << 32};

		w->nr_accesses = 0;
		w->step(&s, w->data);
		if (w->done)
			w->done(0, w->data);
		w->told++;
	}
	return size;
}

/* Paths that were taken, all of them; the first one is word @word. */
static void take_paths(struct path_walk *w, const u32 *number, size_t n, u32 word)
{
	size_t (*known)(const u32 *number, size_t n, void *data) = w->known;

	for (size_t i = 0; i < n; i++) {
		size_t nr;

		w->word = word + (u32)i;
		nr = known ? known(number + i, n - i, w->data) : 0;
		w->told += (u32)nr;
		i += nr;
		if (i >= n)
			break;
		/* One that nobody knows by its number. */
		w->pending = number[i];
		w->pending_word = word + (u32)i;
		w->known = NULL;
		settle(w, ~0u);
		w->known = known;
	}
}

/* How many of @n words are paths, from the first on, which is one. */
static size_t paths_of(const u32 *words, size_t n)
{
	size_t i = 1;

	_Static_assert(!(PATH_WORDS & (PATH_WORDS - 1)), "a path has no bit above");
	for (; i + 8 <= n; i += 8) {
		const u32 *w = words + i;

		if ((w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) >= PATH_WORDS)
			break;
	}
	while (i < n && words[i] < PATH_WORDS)
		i++;
	return i;
}

void path_walk_feed(struct path_walk *w, const u32 *words, size_t n)
{
	for (size_t i = 0; i < n;) {
		u32 pending = w->pending;
		size_t last;

		if (words[i] >= PATH_WORDS) {
			size_t size = entry(w, words + i, n - i);

			if (is_numbered(words[i]))
				w->next_word += (u32)size;
			i += size;
			continue;
		}
		w->pending = 0;
		w->settled = false;
		if (pending)
			take_paths(w, &pending, 1, w->pending_word);
		/* The last one may be taken back. */
		last = i + paths_of(words + i, n - i) - 1;
		take_paths(w, words + i, last - i, w->next_word);
		w->pending = words[last];
		w->pending_word = w->next_word + (u32)(last - i);
		w->next_word = w->pending_word + 1;
		i = last + 1;
	}
}

void path_walk_end(struct path_walk *w)
{
	settle(w, ~0u);
}
