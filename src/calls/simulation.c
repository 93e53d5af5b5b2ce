#include "calls/simulation.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model/model.h"

/* Of cachegrind: seven bits of the address below seven of the history; the last targets of 512. */
#define HISTORY_BITS 7u
#define ADDRESS_BITS 7u
#define LAST_TARGETS 512u

#define STRING_MAX BIT(30)

enum place_kind {
	PLACE_FETCH,
	PLACE_ACCESS, /* at disp + slot[base] */
	PLACE_COMPLEX_ACCESS,
	PLACE_STRING, /* a repeated one; with the next one, if they go along */
	PLACE_COND,
	PLACE_INDIRECT, /* the last one */
};

struct event_place {
	u8 kind;  /* enum place_kind */
	u8 group; /* enum simulated */
	u8 flags; /* enum path_access_flags */
	u8 scale;
	u8 insn;
	u8 len; /* of a fetch */
	u8 with_next;
	u8 taken;
	u16 size, base, index;
	u64 pc, disp;
};

struct simulated_code {
	u32 n;
	struct event_place place[];
};

struct event_simulation {
	struct simulation_opts opts;
	struct machine machine;
	void *memory; /* of the model; owned */
	struct model_core *core;
	u64 fetched; /* the line, + 1; 0: none */
	u64 history;
	u8 counter[1u << (HISTORY_BITS + ADDRESS_BITS)];
	u64 last_target[LAST_TARGETS];
};

struct event_simulation *simulation_new(const struct simulation_opts *opts)
{
	struct event_simulation *s = calloc(1, sizeof(*s));
	u64 size;

	CHECK(s);
	s->opts = *opts;
	s->machine = *opts->machine;
	s->opts.machine = &s->machine;
	if (!opts->caches)
		return s;
	size = model_size(&s->machine, 1, MODEL_CACHES);
	s->memory = aligned_alloc(64, ALIGN_UP(size, 64ull));
	CHECK(s->memory);
	memset(s->memory, 0, size);
	s->core = model_core(model_init(s->memory, &s->machine, 1, MODEL_CACHES), 0);
	return s;
}

void simulation_free(struct event_simulation *s)
{
	if (!s)
		return;
	free(s->memory);
	free(s);
}

static struct event_place *add(struct simulated_code *c, enum place_kind kind, enum simulated group,
			       u32 insn, u64 pc)
{
	struct event_place *p = &c->place[c->n++];

	*p = (struct event_place){.kind = kind, .group = group, .insn = (u8)insn, .pc = pc};
	return p;
}

/* Within the line that was fetched last, which is *@line less 1, nothing would be counted. */
static void add_fetch(const struct event_simulation *s, struct simulated_code *c,
		      const struct path_step *at, u32 insn, u64 *line)
{
	u64 mask = ~((u64)s->machine.memory.line - 1);
	u8 len = at->len ? at->len : 1;
	u64 last = (at->pc + len - 1) & mask;

	if ((at->pc & mask) + 1 == *line && last + 1 == *line)
		return;
	*line = last + 1;
	add(c, PLACE_FETCH, SIMULATED_FETCH, insn, at->pc)->len = len;
}

/* Whether @a is written where it was read just before, by one instruction. */
static bool modifies(const struct event_place *p, const struct path_access *a, u32 insn)
{
	return p->group == SIMULATED_READ && p->insn == insn && a->kind == PATH_STORE &&
	       (p->kind == PLACE_ACCESS || p->kind == PLACE_COMPLEX_ACCESS) && p->disp == a->disp &&
	       p->base == a->base && p->index == a->index && p->size == a->size &&
	       p->scale == a->scale && p->flags == a->flags;
}

static void add_access(const struct event_simulation *s, struct simulated_code *c,
		       const struct path_access *a, u32 insn, u64 pc)
{
	bool string = a->kind == PATH_LOADS || a->kind == PATH_STORES;
	bool write = a->kind == PATH_STORE || a->kind == PATH_STORES;
	struct event_place *p = c->n ? &c->place[c->n - 1] : NULL;

	if (a->kind == PATH_PREFETCH || !a->size)
		return;
	if (string && (a->base == PATH_NO_SLOT || a->index == PATH_NO_SLOT))
		return;
	if (p && modifies(p, a, insn)) {
		if (!s->opts.modified_is_read)
			p->group = SIMULATED_WRITE;
		return;
	}
	if (string && p && p->kind == PLACE_STRING && p->insn == insn)
		p->with_next = 1;
	p = add(c, PLACE_COMPLEX_ACCESS, write ? SIMULATED_WRITE : SIMULATED_READ, insn, pc);
	if (string)
		p->kind = PLACE_STRING;
	else if (a->base != PATH_NO_SLOT && a->index == PATH_NO_SLOT && !a->flags)
		p->kind = PLACE_ACCESS;
	p->disp = a->disp;
	p->base = a->base;
	p->index = a->index;
	p->size = a->size < s->machine.memory.line ? a->size : (u16)s->machine.memory.line;
	p->flags = a->flags;
	p->scale = a->scale;
}

struct simulated_code *simulated_code_new(const struct event_simulation *s,
					  const struct path_step *steps, u32 n)
{
	struct simulated_code *c;
	u64 fetched = 0;
	u32 room = n * 2;

	for (u32 i = 0; i < n; i++)
		room += steps[i].nr_accesses;
	c = malloc(sizeof(*c) + room * sizeof(c->place[0]));
	CHECK(c);
	c->n = 0;
	for (u32 i = 0; i < n; i++) {
		const struct path_step *at = &steps[i];

		if (s->opts.caches) {
			add_fetch(s, c, at, i, &fetched);
			for (u32 k = 0; k < at->nr_accesses; k++)
				add_access(s, c, &at->access[k], i, at->pc);
		}
		if (!s->opts.branches)
			continue;
		if (at->kind == PATH_COND)
			add(c, PLACE_COND, SIMULATED_COND, i, at->pc)->taken = at->taken;
		/* Returns are foreseen, so cachegrind has none of them. */
		if (i + 1 == n && (at->kind == PATH_CALL_IND || at->kind == PATH_JUMP_IND))
			add(c, PLACE_INDIRECT, SIMULATED_INDIRECT, i, at->pc);
	}
	return c;
}

void simulated_code_free(struct simulated_code *c)
{
	free(c);
}

u32 simulated_places(const struct simulated_code *c)
{
	return c->n;
}

u32 simulated_insn(const struct simulated_code *c, u32 place, enum simulated *what)
{
	*what = (enum simulated)c->place[place].group;
	return c->place[place].insn;
}

/* How often, and what of that were misses. */
static inline void note(u64 *counts, struct event_counts *sum, u32 group, u64 first, u64 last)
{
	u64 *all = sum->n[group];

	all[0]++;
	all[1] += first;
	all[2] += last;
	if (!counts)
		return;
	counts[0]++;
	counts[1] += first;
	counts[2] += last;
}

static void fetch_other(struct event_simulation *s, const struct event_place *p, u64 *counts,
			struct event_counts *sum)
{
	u32 miss = model_cache_counter(MODEL_L1I, MODEL_READ, true);
	u64 first = model_count(s->core, (enum model_counter)miss);
	u64 last = model_count(s->core, MODEL_LL_FETCH_MISSES);
	u64 line = ~((u64)s->machine.memory.line - 1);

	model_fetch(s->core, p->pc, p->len);
	s->fetched = ((p->pc + p->len - 1) & line) + 1;
	first = model_count(s->core, (enum model_counter)miss) - first;
	last = model_count(s->core, MODEL_LL_FETCH_MISSES) - last;
	sum->n[SIMULATED_FETCH][1] += first;
	sum->n[SIMULATED_FETCH][2] += last;
	if (!counts)
		return;
	counts[1] += first;
	counts[2] += last;
}

static inline void fetch(struct event_simulation *s, const struct event_place *p, u64 *counts,
			 struct event_counts *sum)
{
	u64 line = ~((u64)s->machine.memory.line - 1);

	if ((p->pc & line) + 1 != s->fetched || ((p->pc + p->len - 1) & line) + 1 != s->fetched)
		fetch_other(s, p, counts, sum);
}

static inline void access(struct event_simulation *s, const struct event_place *p, u64 addr,
			  u64 *counts, struct event_counts *sum)
{
	struct model_access a = p->group == SIMULATED_WRITE
					? model_store(s->core, p->pc, addr, p->size)
					: model_load(s->core, p->pc, addr, p->size);

	note(counts, sum, p->group, a.misses != 0, a.source == MODEL_FROM_MEMORY);
}

static u64 address(const struct event_place *p, const struct path_slots *slots)
{
	u64 a = p->disp;

	if (p->base != PATH_NO_SLOT)
		a += slots->slot[p->base];
	if (p->index != PATH_NO_SLOT && p->kind != PLACE_STRING)
		a += (p->flags & PATH_BYTE_INDEX ? (u8)slots->slot[p->index]
						 : slots->slot[p->index])
		     << p->scale;
	if (p->flags & PATH_ADDR32)
		a = (u32)a;
	if (p->flags & PATH_FS)
		a += slots->fs_base;
	if (p->flags & PATH_GS)
		a += slots->gs_base;
	return a;
}

/* By what the instruction has done to the registers that go over the strings. */
static void string(struct event_simulation *s, const struct event_place *p,
		   const struct path_slots *slots, u64 *counts, struct event_counts *sum)
{
	u64 moved = slots->slot[p->index] - (slots->slot[p->base] + p->disp), step = p->size, n;
	u64 at[2] = {address(p, slots), p->with_next ? address(p + 1, slots) : 0};

	if (p->flags & PATH_ADDR32)
		moved = (u64)(s64)(s32)moved;
	if ((s64)moved < 0) {
		moved = -moved;
		step = -step;
	}
	n = moved / p->size;
	/* What nobody executes: the registers may be anybody's. */
	if (n > STRING_MAX)
		return;
	for (; n; n--, at[0] += step, at[1] += step) {
		access(s, p, at[0], counts, sum);
		if (p->with_next)
			access(s, p + 1, at[1], counts ? counts + 3 : NULL, sum);
	}
}

/* True: it was not foreseen. */
static bool branch(struct event_simulation *s, const struct event_place *p)
{
	u32 at = (u32)((s->history & (BIT(HISTORY_BITS) - 1)) << ADDRESS_BITS |
		       (p->pc & (BIT(ADDRESS_BITS) - 1)));
	u8 was = s->counter[at];

	s->history = s->history << 1 | p->taken;
	if (p->taken)
		s->counter[at] = (u8)(was + (was < 3));
	else
		s->counter[at] = (u8)(was - (was > 0));
	return (was >= 2) != p->taken;
}

bool simulate_target(struct event_simulation *s, u64 pc, u64 target)
{
	u64 *last = &s->last_target[pc % LAST_TARGETS];
	bool wrong = *last != target;

	*last = target;
	return wrong;
}

/* Slots are counted before; what has none of them is left out. */
static bool has_slots(const struct event_place *p, const struct path_slots *slots)
{
	return (p->base == PATH_NO_SLOT || p->base < slots->n) &&
	       (p->index == PATH_NO_SLOT || p->index < slots->n);
}

bool simulate(struct event_simulation *s, const struct simulated_code *c,
	      const struct path_slots *slots, u64 *counts, struct event_counts *sum)
{
	for (u32 i = 0; i < c->n; i++) {
		const struct event_place *p = &c->place[i];
		u64 *of = counts ? counts + (size_t)i * 3 : NULL;

		switch ((enum place_kind)p->kind) {
		case PLACE_FETCH: fetch(s, p, of, sum); break;
		case PLACE_COND: note(of, sum, SIMULATED_COND, branch(s, p), 0); break;
		case PLACE_INDIRECT: note(of, sum, SIMULATED_INDIRECT, 0, 0); return true;
		case PLACE_ACCESS:
			if (p->base < slots->n)
				access(s, p, slots->slot[p->base] + p->disp, of, sum);
			break;
		case PLACE_COMPLEX_ACCESS:
			if (has_slots(p, slots))
				access(s, p, address(p, slots), of, sum);
			break;
		case PLACE_STRING:
			if (has_slots(p, slots) && (!p->with_next || has_slots(p + 1, slots)))
				string(s, p, slots, of, sum);
			i += p->with_next;
			break;
		}
	}
	return false;
}
