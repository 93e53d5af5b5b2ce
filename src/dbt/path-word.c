/*
 * Words of paths: abi/path-profile.h. Code adds to them (emit_count() in arch/.../path-count.c).
 * Here paths get their numbers and are described, and what is not of a whole path is noted.
 */
#include "dbt/arch-priv.h"
#include "dbt/run-priv.h"
#include "sys/fill.h"
#include "sys/string.h"

static struct path_thread *words_of(struct dbt_thread *t)
{
	return (struct path_thread *)((u64)t + DBT_PATHS_AT);
}

void dbt_paths(struct dbt_thread *t, struct path_space *space)
{
	cache_lock(t);
	space->from_path = space->paths = cache.nr_paths ? cache.nr_paths : PATH_FIRST;
	/* No block is at 0. */
	space->from_log = space->logged = cache.path_log ? cache.path_log : 8;
	space->magic = PATH_MAGIC;
	cache.nr_paths = space->paths;
	cache.path_log = space->logged;
	cache.path_filled = 0;
	cache.paths = space;
	cache_unlock(t);
}

/* Paths of one block at most: all of them have slots, or none, since who corrects has no number. */
#define BLOCK_PATHS_MAX (2u * BLOCK_INSNS_MAX)

static u64 details_size(const struct path_details *d, u32 nr_insns)
{
	u64 size = ALIGN_UP(path_costs_end(nr_insns) - nr_insns, 8ull) + 8;

	if (d->memory)
		size += sizeof(struct path_accesses) + ALIGN_UP(d->nr_slots, 8u) +
			d->nr_accesses * sizeof(*d->accesses);
	return size;
}

/* Appends @n bytes at @to, which is moved to a multiple of @align first. */
static u8 *put(u8 *to, u32 align, const void *from, u64 n)
{
	to = (u8 *)ALIGN_UP((u64)to, (u64)align);
	memcpy(to, from, n);
	return to + n;
}

u32 path_block_add(const struct block_frag *frags, u32 nr_frags, const struct block_insn *insns,
		   u32 nr_insns, const u64 *targets, u32 nr_targets,
		   const struct path_details *details)
{
	struct path_space *space = cache.paths;
	struct path_block head = {.nr_frags = (u16)nr_frags,
				  .nr_insns = (u16)nr_insns,
				  .nr_targets = (u16)nr_targets};
	u32 size = (u32)ALIGN_UP(sizeof(head) + nr_frags * sizeof(struct path_frag) +
					 nr_targets * sizeof(*targets) + nr_insns +
					 (details ? details_size(details, nr_insns) : 0),
				 8);
	u32 at;
	u8 *to;

	if (!cache_describes_paths() || !space || !nr_insns || cache.path_log > PATH_LOG - size)
		return 0;
	if (details && details->memory && cache.nr_paths > PATH_WORDS - BLOCK_PATHS_MAX)
		return 0;
	if (details)
		head.traced = details->records  ? PATH_TRACED_RECORDS
			      : details->memory ? PATH_TRACED_ACCESSES
						: PATH_TRACED;
	at = cache.path_log;
	fill_ahead(space->log + space->from_log, PATH_LOG - space->from_log, &cache.path_filled,
		   at + size - space->from_log);
	to = space->log + at;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	for (u32 i = 0; i < nr_frags; i++, to += sizeof(struct path_frag)) {
		struct path_frag f = {.pc = frags[i].pc, .first = frags[i].first};

		memcpy(to, &f, sizeof(f));
	}
	to = put(to, 1, targets, nr_targets * sizeof(*targets));
	for (u32 i = 0; i < nr_insns; i++)
		*to++ = insns[i].guest;
	if (details)
		to = put(to, 4, details->costs, nr_insns * sizeof(*details->costs));
	if (details && details->memory) {
		struct path_accesses a = {.nr_slots = (u16)details->nr_slots,
					  .nr_accesses = (u16)details->nr_accesses};

		to = put(to, 8, &a, sizeof(a));
		to = put(to, 1, details->slot_insn, details->nr_slots);
		put(to, 8, details->accesses, details->nr_accesses * sizeof(*details->accesses));
	}
	cache.path_log = at + size;
	__atomic_store_n(&space->logged, at + size, __ATOMIC_RELEASE);
	return at / 8;
}

/* How many slots instructions [from, upto) of a block have. Async-signal-safe. */
static u32 slots_of(u32 block, u32 from, u32 upto)
{
	const struct path_block *head;
	const struct path_accesses *a;
	const u8 *at;
	u32 n = 0;

	if (!(cache.mask & DBT_MASK_MEMORY) || !block)
		return 0;
	at = cache.paths->log + block * 8ull;
	head = (const struct path_block *)at;
	if (head->traced != PATH_TRACED_ACCESSES)
		return 0;
	at += sizeof(*head) + head->nr_frags * sizeof(struct path_frag) +
	      head->nr_targets * sizeof(u64);
	at += path_costs_end(head->nr_insns);
	a = (const struct path_accesses *)ALIGN_UP((u64)at, 8ull);
	at = (const u8 *)(a + 1);
	for (u32 i = 0; i < a->nr_slots; i++)
		n += at[i] >= from && at[i] < upto;
	return n;
}

u32 path_add(u32 block, u32 from, u32 upto, bool taken)
{
	struct path_space *space = cache.paths;
	u32 number = cache.nr_paths;

	if (!block || number == PATH_WORDS)
		return upto - from;
	space->path[number] = (struct path_entry){
		.block = block, .from = (u8)from, .upto = (u8)upto, .taken = taken, .known = 1};
	cache.nr_paths++;
	/* Before code counts it. */
	__atomic_store_n(&space->paths, number + 1, __ATOMIC_RELEASE);
	return number;
}

/* @n instructions, if there is no room. */
static void add_extra(struct dbt_thread *t, u64 key, s64 count, u32 n)
{
	struct path_thread *words = words_of(t);
	u32 at = (u32)((key * 0x9e3779b97f4a7c15ull) >> 48);

	_Static_assert(PATH_EXTRAS == 1u << 16, "as many as the hash has values");
	for (u32 i = 0; i < PATH_PROBES; i++) {
		struct path_extra *x = &words->extra[(at + i) % PATH_EXTRAS];

		if (x->key && x->key != key)
			continue;
		x->count += count;
		__atomic_store_n(&x->key, key, __ATOMIC_RELEASE);
		return;
	}
	words->unplaced += count * (s64)n;
}

static u32 *trace_of(const struct dbt_thread *t)
{
	return (u32 *)t->trace_begin;
}

static u64 trace_end(const struct dbt_thread *t)
{
	return t->trace_start + PATH_TRACE_SIZE;
}

/* Where words go next; there is room for @n at least. */
static void set_begin(struct dbt_thread *t, u32 n)
{
	u64 room = t->trace_room < n ? n : t->trace_room;

	t->trace_begin = t->trace_start;
	if (t->trace_room && room < PATH_TRACE_SIZE / 4)
		t->trace_begin = trace_end(t) - room * 4;
}

/* There is no memory for its trace: it executes what traces nothing, until it is to trace again. */
static void do_without(struct dbt_thread *t)
{
	CHECK(cache.mask & DBT_MASK_WINDOWS);
	t->untraced = true;
}

void path_trace_begin(struct dbt_thread *t)
{
	if (!(cache.mask & DBT_MASK_TRACE) || t->untraced)
		return;
	if (!t->trace_start)
		t->trace_start = cache.ops.trace_map(t);
	if (t->trace_start && cache.mask & DBT_MASK_MEMORY && !t->slots_start)
		t->slots_at = t->slots_start = cache.ops.slots_map(t);
	if (!t->trace_start || (cache.mask & DBT_MASK_MEMORY && !t->slots_start)) {
		do_without(t);
		return;
	}
	/* It is a system call, and most that come back here have met new code only. */
	if (cache.mask & DBT_MASK_FILTER && t->filter.is_stale) {
		arch_filter_begin(t);
		t->filter.is_stale = false;
	}
	if (!t->trace_at) {
		set_begin(t, 1);
		t->trace_at = t->trace_begin;
	}
}

void dbt_filter(u32 shift, u32 sets, u32 plain)
{
	CHECK(sets && sets <= DBT_FILTER_SETS && !(sets & (sets - 1)) && plain <= 2);
	cache.filter_shift = (u8)shift;
	cache.filter_sets = sets;
	cache.filter_plain = (u8)plain;
}

void dbt_filter_forget(struct dbt_thread *t)
{
	u64 size = cache.filter_sets * sizeof(t->filter.load[0]);

	memset(t->filter.load, 0, size);
	memset(t->filter.store, 0, size);
}

/* The records of what has not been handed over with the @n words that have. */
static void keep_records(struct dbt_thread *t, u32 n)
{
	struct path_record *to = (struct path_record *)t->slots_start;
	const struct path_record *end = (const struct path_record *)t->slots_at, *r = end;

	while (r > to && path_record_word(r - 1, t->trace_begin) >= (s32)n)
		r--;
	set_begin(t, 1);
	for (; r < end; r++, to++) {
		*to = *r;
		to->at = (u32)t->trace_begin;
	}
	t->slots_at = (u64)to;
}

/*
 * Others may access before what comes next is read, as all threads have one cache: it is told what
 * the order is, and forgotten. That is of the path which is kept, or else of the last one that was
 * handed over.
 */
static void give_away(struct dbt_thread *t)
{
	struct path_record *to = (struct path_record *)t->slots_at;
	u32 what = PATH_RECORD_AGAIN;

	if (t->slots_at == t->slots_start)
		what |= PATH_RECORD_COUNTED;
	for (u32 i = 0; cache.filter_plain == 2 && i < cache.filter_sets; i++)
		if (t->filter.store[i] & 1)
			*to++ = (struct path_record){-t->filter.load[i], (u32)t->trace_begin, what};
	t->slots_at = (u64)to;
	dbt_filter_forget(t);
}

/* What a record that is taken back says of the order of lines: *@to. */
static bool order_of(const struct dbt_thread *t, const struct path_record *r, u64 set,
		     struct path_record *to)
{
	u64 line = r->addr >> cache.filter_shift << cache.filter_shift;

	if (cache.filter_plain != 2 || !(r->what & PATH_RECORD_SWAPPED) ||
	    t->filter.load[set] != -line)
		return false;
	*to = *r;
	to->addr = -(t->filter.store[set] & ~1ull);
	to->what |= PATH_RECORD_AGAIN;
	return true;
}

/*
 * The lines of a record that is taken back are not known to have been accessed. Where it goes
 * something may be put in its place: true.
 */
static bool forget_lines(struct dbt_thread *t, const struct path_record *r, struct path_record *to)
{
	u64 line = r->addr >> cache.filter_shift;
	u32 more = r->what >> PATH_RECORD_MORE_AT;
	bool tells = order_of(t, r, line % cache.filter_sets, to);
	u64 last;

	if (cache.filter_plain == 2)
		more = (r->what & ~PATH_RECORD_SWAPPED) >> PATH_RECORD_MORE_AT;
	last = (r->addr + more) >> cache.filter_shift;
	for (u32 i = 0; i < cache.filter_sets && line + i <= last; i++)
		t->filter.load[(line + i) % cache.filter_sets] =
			t->filter.store[(line + i) % cache.filter_sets] = 0;
	return tells;
}

void path_records_drop(struct dbt_thread *t, u32 insn, bool counted)
{
	struct path_record *end = (struct path_record *)t->slots_at, *r = end, *to, told;
	s32 word;

	if (!(cache.mask & DBT_MASK_FILTER) || !t->trace_at)
		return;
	word = (s32)((t->trace_at - t->trace_begin) / 4) - counted;
	while ((u64)r > t->slots_start &&
	       (path_record_is_again(r - 1) || (path_record_word(r - 1, t->trace_begin) == word &&
						path_record_insn(r - 1) >= insn)))
		r--;
	for (to = r; r < end; r++) {
		if (path_record_is_again(r))
			*to++ = *r;
		else if (forget_lines(t, r, &told))
			*to++ = told;
	}
	t->slots_at = (u64)to;
}

/* Hands over @n words, with their slots. Those of the path that goes on come first then. */
static void hand_over(struct dbt_thread *t, u32 n)
{
	cache.ops.trace(t, trace_of(t), n);
	if (cache.mask & DBT_MASK_FILTER) {
		keep_records(t, n);
		if (cache.filter_plain)
			give_away(t);
		return;
	}
	set_begin(t, 1);
	if (t->slots_at == t->slots_start)
		return;
	memmove((void *)t->slots_start, (const void *)t->slots_at, PATH_SLOTS_MAX * 8);
	t->slots_at = t->slots_start;
}

u64 path_trace_full(struct dbt_thread *t, u64 addr)
{
	if (!(cache.mask & DBT_MASK_TRACE) || !t->trace_start || addr != trace_end(t))
		return 0;
	hand_over(t, (u32)((addr - t->trace_begin) / 4));
	t->trace_at = t->trace_begin;
	return t->trace_at;
}

u64 path_records_full(struct dbt_thread *t, u64 addr)
{
	u64 end = t->slots_start + PATH_RECORDS_SIZE;

	if (!(cache.mask & DBT_MASK_FILTER) || !t->slots_start || addr != end)
		return 0;
	hand_over(t, (u32)((t->trace_at - t->trace_begin) / 4));
	t->trace_at = t->trace_begin;
	return t->slots_at;
}

void dbt_trace_flush(struct dbt_thread *t)
{
	u64 start = (u64)trace_of(t);

	if (t->trace_at > start)
		hand_over(t, (u32)((t->trace_at - start) / 4));
	t->trace_at = 0;
}

void dbt_trace_on(struct dbt_thread *t, bool on)
{
	if (t->untraced == !on)
		return;
	/* What code has counted ahead of itself is put right as it was counted. */
	deadline_no_resume(t);
	dbt_trace_flush(t);
	t->untraced = !on;
	t->filter.is_stale = true;
	/* They lead to blocks of one form. */
	if (table_sets() == 2)
		return;
	cache_lock(t);
	if (t->epoch == cache.epoch)
		thread_tables_clear(t);
	cache_unlock(t);
}

static bool is_traced(const struct dbt_thread *t)
{
	return cache.mask & DBT_MASK_TRACE && t->trace_start && !t->untraced;
}

/* An entry of @n words. */
static void trace(struct dbt_thread *t, u32 a, u32 b, u32 c, u32 n)
{
	u32 *to;

	if (!is_traced(t))
		return;
	if (t->trace_at + PATH_TRACE_ENTRY * 4 > trace_end(t))
		dbt_trace_flush(t);
	if (!t->trace_at) {
		set_begin(t, PATH_TRACE_ENTRY);
		t->trace_at = t->trace_begin;
	}
	to = (u32 *)t->trace_at;
	to[0] = a;
	to[1] = b;
	if (n == 3)
		to[2] = c;
	t->trace_at += n * 4;
}

/* The slots of what did not retire go before the entry is made, of what did they come behind it. */
static void trace_part(struct dbt_thread *t, const struct path_correction *c)
{
	if (!c->traced)
		return;
	if (c->slots < 0)
		t->slots_at += (s64)c->slots * 8;
	trace(t, (c->sign < 0 ? PATH_TRACE_BACK : PATH_TRACE_PART) | (u32)c->from << 8 | c->upto,
	      c->block, 0, 2);
	if (c->slots > 0)
		t->slots_at += (s64)c->slots * 8;
}

static void correct(struct dbt_thread *t, const struct path_correction *c, s64 sign)
{
	if (!c->sign || !(cache.mask & DBT_MASK_PATHS))
		return;
	if (c->block)
		add_extra(t, path_part(c->block, c->from, c->upto), sign * c->sign,
			  c->upto - c->from);
	else
		words_of(t)->unplaced += sign * c->sign * (c->upto - c->from);
}

void path_correct(struct dbt_thread *t, u32 block, u32 from, u32 upto, s32 sign)
{
	t->correction = (struct path_correction){0};
	if (!cache_describes_paths() || t->untraced || from >= upto)
		return;
	t->correction = (struct path_correction){
		.block = block, .from = (u8)from, .upto = (u8)upto, .sign = (s8)sign};
	t->correction.slots = (s16)((s32)slots_of(block, from, upto) * sign);
	/*
	 * If another thread has changed the mask meanwhile, the code that is left traces nothing:
	 * its blocks have no numbers then, or the thread has no trace yet.
	 */
	t->correction.traced = block && is_traced(t);
	correct(t, &t->correction, 1);
	trace_part(t, &t->correction);
}

void path_take_back(struct dbt_thread *t)
{
	correct(t, &t->correction, -1);
	/* It is the last entry, and the trace has not been handed over since. */
	if (t->correction.traced) {
		t->trace_at -= 2 * sizeof(u32);
		t->slots_at -= (s64)t->correction.slots * 8;
	}
}

void path_correct_again(struct dbt_thread *t)
{
	correct(t, &t->correction, 1);
	trace_part(t, &t->correction);
	t->correction = (struct path_correction){0};
}

void path_retired(struct dbt_thread *t, u64 pc, s32 times)
{
	if (cache.mask & DBT_MASK_PATHS)
		add_extra(t, pc, times, 1);
	trace(t, times < 0 ? PATH_TRACE_AGAIN : PATH_TRACE_INSN, (u32)pc, (u32)(pc >> 32), 3);
}

void path_strings(struct dbt_thread *t, u64 pc, u32 ends, u32 flags)
{
	bool filtered = cache.mask & DBT_MASK_FILTER && !t->untraced;

	/* What is known of the order is told before these accesses are: give_away(). */
	if (filtered && cache.filter_plain && ends)
		dbt_trace_flush(t);
	trace(t, PATH_TRACE_ELEMENTS | ends << 8 | flags, (u32)pc, (u32)(pc >> 32), 3);
	/* The filter does not know of them; elements of gathers are nothing to a plain one. */
	if (filtered && !cache.filter_plain)
		dbt_filter_forget(t);
}

void path_elements(struct dbt_thread *t, u64 pc)
{
	path_strings(t, pc, 0, 0);
}

void path_element(struct dbt_thread *t, u32 kind, u32 size, u64 addr)
{
	trace(t, PATH_TRACE_ELEMENT | kind << 16 | size, (u32)addr, (u32)(addr >> 32), 3);
}

void dbt_call_again(struct dbt_thread *t, u64 pc)
{
	u64 *count = dbt_meter(t)->count[0];

	meter_unpark(dbt_meter(t));
	count[METER_INSTRUCTIONS]--;
	count[METER_BRANCHES]--;
	path_retired(t, pc, -1);
}
