/*
 * A piece of a trace is simulated by the thread that hands it over, or beside it (beside.h). Either
 * way each half of the model gets all pieces of all threads in one order.
 */
#include "rt/task/simulate.h"

#include "model/feed.h"
#include "rt/arch.h"
#include "rt/mm/region.h"
#include "rt/sample/modeled-samples.h"
#include "rt/sample/sample.h"
#include "rt/task/alloc-sites.h"
#include "rt/task/beside.h"
#include "rt/task/limits.h"
#include "rt/task/modeled-tally.h"
#include "rt/task/path-pages.h"
#include "rt/task/path-stream.h"
#include "rt/task/process.h"
#include "rt/task/shared-mm.h"
#include "rt/task/simulate-priv.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "sys/fill.h"
#include "sys/string.h"

_Static_assert(MODEL_COUNTERS <= METER_MODELED, "a meter has room for each counter");
_Static_assert(sizeof(struct machine) <= RUN_CONFIG_MACHINE,
	       "and what is told has for the machine");

/* All of a model, in one mapping of which little is touched. */
struct simulation {
	u64 size;
	u32 parts, halves;
	bool windows;                           /* the models may see windows only */
	u32 user[MODEL_CORES];                  /* whose trace came last, by thread->id */
	u64 shown[MODEL_CORES][MODEL_COUNTERS]; /* of each core, in the meters of its threads */
	u64 filled[MODEL_HALVES];               /* of feed[].room, as fill_ahead() has it */
	struct feed feed[MODEL_HALVES];
	u8 model[] __attribute__((aligned(64)));
};

u32 simulate_wanted;
struct lock simulate_half_lock[MODEL_HALVES], simulate_lock;
static struct lock take_over_lock; /* before those and all others */

/* Under simulate_lock; it is replaced under all of them. */
static struct simulation *simulation; /* NULL: there is none */
static u64 cores_used;                /* a bit each */
static u64 withheld;                  /* its size, if the child of a fork does not get it; else 0 */

static void lock_all(struct thread *t)
{
	for (u32 h = 0; h < MODEL_HALVES; h++)
		lock_acquire(&simulate_half_lock[h], t->id, thread_gone);
	lock_acquire(&simulate_lock, t->id, thread_gone);
}

static void unlock_all(struct thread *t)
{
	lock_release(&simulate_lock, t->id);
	for (u32 h = MODEL_HALVES; h-- > 0;)
		lock_release(&simulate_half_lock[h], t->id);
}

/* As far as there are cores each thread has its own. */
static void take_core(struct thread *t)
{
	u32 free = (u32)__builtin_ctzll(~cores_used ? ~cores_used : BIT(t->id % MODEL_CORES));

	cores_used |= BIT(free);
	t->modeled.core = (u8)free;
	t->modeled.on = true;
}

static struct model_core *core_of(u32 half, u32 core)
{
	return model_core(simulation->feed[half].model, core);
}

/* The half that caches are part of, if there are any. */
static u32 memory_half(void)
{
	return simulation->halves - 1;
}

/*
 * The filter of @t knows of what @t has accessed since the model began; others on the same core
 * have accessed more.
 */
static void use_filter(struct thread *t)
{
	if (simulation->user[t->modeled.core] == t->id)
		return;
	simulation->user[t->modeled.core] = t->id;
	dbt_filter_forget(&t->dbt);
}

static void forget_filter(u32 core)
{
	model_use_filter(core_of(memory_half(), core), NULL, NULL);
	simulation->user[core] = 0;
}

/* Whether there is a model, and a place for @t in it. */
static bool is_in(struct thread *t)
{
	if (!simulation)
		return false;
	if (!t->modeled.feed)
		t->modeled.feed = region_map(MODEL_HALVES * sizeof(*t->modeled.feed));
	if (t->modeled.feed && !t->modeled.on)
		take_core(t);
	return t->modeled.feed;
}

/* Adds what the thread's core has counted since it was last shown. */
static void show(struct thread *t, u32 core, const u64 *counts, u32 times)
{
	u64 *shown = simulation->shown[core];
	struct meter *m = dbt_meter(&t->dbt);

	for (u32 i = 0; i < MODEL_COUNTERS; i++) {
		if (counts[i] == shown[i])
			continue;
		__atomic_store_n(&m->modeled[i], m->modeled[i] + (counts[i] - shown[i]) * times,
				 __ATOMIC_RELAXED);
		shown[i] = counts[i];
	}
}

static void sum(const u64 (*counts)[MODEL_COUNTERS], u64 *of_all)
{
	model_halves_sum(model_machine(simulation->feed[0].model), counts, simulation->halves,
			 of_all);
}

void simulate_show(const struct trace_piece *p)
{
	u64 counts[MODEL_COUNTERS];

	sum(p->counts, counts);
	show(p->thread, p->core, counts, p->times);
}

/* What the core of @t stands at; under all locks. */
static void core_counts(const struct thread *t, u64 *counts)
{
	u64 of[MODEL_HALVES][MODEL_COUNTERS];

	for (u32 h = 0; h < simulation->halves; h++)
		model_counts(core_of(h, t->modeled.core), of[h]);
	sum(of, counts);
}

/*
 * What the thread watches is in numbers of its meter, and for the model in those of its core, which
 * another thread may have had before. There is one half then.
 */
static void watch_core(struct thread *t, bool of_core)
{
	struct feed_watching *w = t->modeled.feed->watching;
	const u64 *shown = simulation->shown[t->modeled.core];
	const u64 *counts = dbt_meter(&t->dbt)->modeled;

	for (u32 i = 0; i < w->nr; i++) {
		u64 more = counts[w->watch[i].counter] - shown[w->watch[i].counter];

		w->watch[i].at += of_core ? 0 - more : more;
	}
}

/* What counts for nothing reaches no period. */
static void watch_begin(struct thread *t, u32 weight)
{
	struct modeled_watching *w = t->modeled.watching;
	bool counts = weight || !simulation->windows;
	bool each = simulation->feed[0].each && counts;
	struct feed_watching *sampled = each && w && w->feed.nr ? &w->feed : NULL;

	t->modeled.feed->watching = modeled_tally_watch(t, sampled, core_of(0, t->modeled.core));
	if (!sampled)
		return;
	watch_core(t, true);
	feed_watch_begin(sampled, core_of(0, t->modeled.core), simulation->windows ? weight : 1);
}

/* Before what has been counted is shown; @hits had been found before. */
static void watch_end(struct thread *t, u32 hits)
{
	struct feed_watching *w = t->modeled.feed->watching;
	const u64 *shown = simulation->shown[t->modeled.core];
	const u64 *counts = dbt_meter(&t->dbt)->modeled;

	if (!w)
		return;
	watch_core(t, false);
	for (; hits < w->nr_hits; hits++)
		for (u32 i = 0; i < w->nr; i++)
			if (w->watch[i].name == w->hit[hits].name)
				w->hit[hits].count += counts[w->watch[i].counter] -
						      shown[w->watch[i].counter];
	if (w->nr_hits)
		sample_stopped(t);
}

static u32 hits_of(const struct thread *t)
{
	return t->modeled.watching ? t->modeled.watching->feed.nr_hits : 0;
}

static void show_now(struct thread *t)
{
	u64 counts[MODEL_COUNTERS];

	core_counts(t, counts);
	show(t, t->modeled.core, counts, 1);
}

static void count_all(struct thread *t, u64 *counts)
{
	const u64 *shown = simulation->shown[t->modeled.core];
	const struct meter *m = dbt_meter(&t->dbt);
	u64 now[MODEL_COUNTERS];

	for (u32 i = 0; i < METER_MODELED; i++)
		counts[i] = m->modeled[i];
	core_counts(t, now);
	for (u32 i = 0; i < MODEL_COUNTERS; i++)
		counts[i] += now[i] - shown[i];
}

static void set_pace(struct thread *t, u32 n, u32 weight)
{
	u64 counts[METER_MODELED];

	if (!t->modeled.watching || !t->modeled.watching->feed.nr) {
		/* What is listed for a reader is not to be much at once. */
		bool listed = t->modeled.tally && streams_wanted();

		if (!t->modeled.watching)
			t->dbt.trace_room = beside_on || listed ? BESIDE_PACE : 0;
		return;
	}
	count_all(t, counts);
	t->dbt.trace_room = modeled_pace(t->modeled.watching, n, counts, weight);
}

/* What a piece adds mostly. */
#define ROOM_AHEAD (32u << 10)

void simulate_piece(struct trace_piece *p, u32 half)
{
	struct feed *f = &simulation->feed[half];
	struct thread *t = p->thread;
	struct feed_thread *ft = &t->modeled.feed[half];
	struct model_core *core = core_of(half, p->core);
	bool memory = half == memory_half();
	const struct feed_input in = {
		.words = p->words,
		.nr_words = p->nr_words,
		.slots = (const u64 *)p->memory,
		.nr_slots = memory ? p->nr_memory / sizeof(u64) : 0,
		.records = (const struct path_record *)p->memory,
		.nr_records = memory && p->records ? p->nr_memory / sizeof(struct path_record) : 0,
		.trace = p->trace,
	};

	fill_ahead(f->room, sizeof(f->room), &simulation->filled[half], f->used + ROOM_AHEAD);
	f->space = paths_space();
	ft->fs_base = p->fs_base;
	ft->gs_base = p->gs_base;
	if (p->early && f->parts & (MODEL_CACHES | MODEL_TLBS)) {
		model_counts(core, p->counts[half]);
		return;
	}
	/* Where the last branch went is not known. */
	if (p->apart)
		ft->open = 0;
	if (simulation->windows)
		model_window(core, p->weight, p->apart);
	if (memory)
		model_use_filter(core, t->dbt.filter.load, t->dbt.filter.store);
	if (p->settles)
		feed_settle(f, ft, core);
	else
		feed_words(f, ft, core, &in);
	if (simulation->windows) {
		/* No count is less than what a sample of it says. */
		if (ft->watching && ft->watching->nr && ft->watching->found)
			model_keep(core);
		model_weigh(core);
	}
	model_counts(core, p->counts[half]);
}

/* All locks, and nothing that was handed over is left. */
static void lock_all_done(struct thread *t)
{
	lock_all(t);
	beside_drain();
}

/* By the thread itself, at once. */
static void simulate_now(struct thread *t, struct trace_piece *p)
{
	lock_all_done(t);
	if (is_in(t)) {
		u32 hits = hits_of(t);

		p->core = t->modeled.core;
		watch_begin(t, p->weight);
		use_filter(t);
		for (u32 h = 0; h < simulation->halves; h++)
			simulate_piece(p, h);
		watch_end(t, hits);
		/* What is counted with a hit is shown when that has been told. */
		if (!hits_of(t))
			simulate_show(p);
		if (!p->settles)
			set_pace(t, p->nr_words, p->weight);
	}
	unlock_all(t);
}

/* False: not now. */
static bool hand_over(struct thread *t, struct trace_piece *p)
{
	bool put = false;

	lock_acquire(&simulate_lock, t->id, thread_gone);
	if (beside_on && !is_in(t)) {
		/* Without memory, as in simulate_now(). */
		lock_release(&simulate_lock, t->id);
		return true;
	}
	if (beside_on) {
		p->core = t->modeled.core;
		put = beside_put(p);
		if (put) {
			use_filter(t);
			set_pace(t, p->nr_words, p->weight);
		}
	}
	lock_release(&simulate_lock, t->id);
	if (put)
		beside_wake();
	return put;
}

static void simulate(struct thread *t, struct trace_piece *p)
{
	p->thread = t;
	p->weight = windows_weight(t);
	p->times = windows_times(t);
	p->apart = windows_apart(t);
	p->early = windows_early(t);
	arch_segments(&t->dbt, &p->fs_base, &p->gs_base);
	while (unlikely(beside_on) && piece_fits(p)) {
		u32 seen = beside_finished();

		if (hand_over(t, p))
			return;
		beside_help(t, seen);
	}
	simulate_now(t, p);
}

u32 simulate_halves(void)
{
	/* Not where each event is to be found while it happens, or has been a moment ago. */
	return simulation && !simulation->feed[0].each ? simulation->halves : 0;
}

static void take_words(struct thread *t, const u32 *words, u32 n)
{
	struct trace_piece p;

	if (n >= BESIDE_FIRST)
		beside_begin(t);
	p.words = words;
	p.nr_words = n;
	p.memory = (const u8 *)t->dbt.slots_start;
	p.nr_memory = t->dbt.slots_at - t->dbt.slots_start;
	p.records = traces_filtered();
	p.settles = false;
	p.trace = t->dbt.trace_begin;
	simulate(t, &p);
}

static void settle(struct thread *t)
{
	struct trace_piece p;

	p.words = NULL;
	p.memory = NULL;
	p.nr_words = 0;
	p.nr_memory = p.trace = 0;
	p.records = false;
	p.settles = true;
	simulate(t, &p);
}

bool simulate_counts(struct thread *t, u64 *counts)
{
	bool is;

	beside_finish(t, t);
	lock_all(t);
	is = simulation && t->modeled.on;
	if (is)
		count_all(t, counts);
	unlock_all(t);
	return is;
}

void simulate_told(struct thread *t)
{
	lock_all(t);
	if (simulation && t->modeled.on)
		show_now(t);
	unlock_all(t);
}

static const struct trace_user model_user = {.words = take_words, .settle = settle};

/* Of LL's tables more are filled only as they are used: 300 MB of LL have 45 MB of them. */
#define LL_FILLED (8ull << 20)

static void fill_usual(const struct model *m)
{
	u64 size;
	const void *ll = model_ll_tables(m, &size);

	fill(m, model_usual(m));
	if (size && size <= LL_FILLED)
		fill(ll, size);
}

/* The machine that we were told of; false if that is none. */
static bool machine_told(struct machine *machine)
{
	struct machine_mistake why;

	memcpy(machine, run_config()->machine, sizeof(*machine));
	return machine->version && !machine_check(machine, &why);
}

static bool is_room_for_traces(void)
{
	return !limits_are_tight() || traces_have_room();
}

/* A model of it; false if there is none, or without memory. */
static bool make(u32 parts, bool each, bool windows)
{
	struct model_half half[MODEL_HALVES] = {{parts, parts}};
	u32 halves = each ? 1 : model_halves(parts, half);
	struct machine machine;
	struct simulation *new;
	u8 *model;
	u64 size;

	if (!machine_told(&machine))
		return false;
	size = sizeof(*new);
	for (u32 h = 0; h < halves; h++)
		size += model_size(&machine, MODEL_CORES, half[h].parts);
	new = region_map(size);
	if (new && !is_room_for_traces()) {
		region_unmap(new, size);
		new = NULL;
	}
	if (!new) {
		__atomic_or_fetch(segment_model_lacks(counter_segment()), MODEL_NO_MEMORY,
				  __ATOMIC_RELAXED);
		return false;
	}
	new->size = size;
	new->parts = parts;
	new->windows = windows;
	new->halves = halves;
	model = new->model;
	for (u32 h = 0; h < halves; h++) {
		struct model *m = model_init(model, &machine, MODEL_CORES, half[h].parts);

		fill_usual(m);
		feed_init(&new->feed[h], m, NULL, half[h].fed, each);
		/* Sites lie anywhere in it. */
		if (half[h].fed & MODEL_BRANCHES)
			fill(new->feed[h].left_out, sizeof(new->feed[h].left_out));
		new->feed[h].counts = h + 1 == halves;
		model += model_size(&machine, MODEL_CORES, half[h].parts);
	}
	if (simulation)
		region_unmap(simulation, simulation->size);
	simulation = new;
	return true;
}

static void trace_memory(const struct machine *m, bool each)
{
	u32 sets = model_filter_sets(m);

	trace_use_memory();
	if (sets && !each)
		trace_use_filter((u32)__builtin_ctz(m->memory.line), sets, 0);
}

static void trace_for(const struct machine *m, u32 parts, bool each)
{
	trace_use(&model_user);
	if (parts & (MODEL_CACHES | MODEL_TLBS))
		trace_memory(m, each);
}

/*
 * There will be a model, unless the program ends before. So that nothing has to be translated again
 * for it, and images are for all, code is what it will be: what traces nothing does so in any case.
 */
static void trace_for_later(u32 parts)
{
	struct machine machine;

	if (machine_told(&machine) && is_room_for_traces())
		trace_for(&machine, parts, false);
}

/*
 * Takes notice of what is wanted. Parts that nobody wants any more stay, since a model with others
 * would be a cold one. True: code is to be translated anew.
 */
static bool take_parts(u32 wanted)
{
	u32 parts = wanted & MODEL_PARTS;
	bool each = wanted & MODEL_EACH || modeled_tally_wanted();
	bool all = modeled_tally_wanted() || wanted & MODEL_WHOLE, windows;

	if (!parts && !simulation)
		return false;
	windows = windows_decide(parts, all, each);
	if (!simulation && windows_put_off()) {
		trace_for_later(parts);
		return true;
	}
	if (simulation) {
		parts |= simulation->parts;
		each |= simulation->feed[0].each;
	}
	if ((simulation && simulation->parts == parts && simulation->feed[0].each == each) ||
	    !make(parts, each, windows_possible()))
		return windows;
	windows_anew();
	trace_for(model_machine(simulation->feed[0].model), parts, each);
	return true;
}

void simulate_start(void)
{
	u32 wanted = simulate_asked();

	(void)take_parts(wanted);
	simulate_wanted = wanted;
}

static void take_over(struct thread *t, u32 wanted)
{
	bool anew;

	beside_stop(t);
	lock_all(t);
	anew = take_parts(wanted);
	unlock_all(t);
	beside_go(t);
	if (!anew)
		return;
	if (traces_mask())
		paths_need_space(t);
	sample_new_mask(t);
}

void simulate_take_over_lock(struct thread *t)
{
	lock_acquire(&take_over_lock, t->id, thread_gone);
}

void simulate_take_over_unlock(struct thread *t)
{
	lock_release(&take_over_lock, t->id);
}

/*
 * Until all is done the others find that they have to look, and wait here: a model takes some time
 * to be made, and what they executed meanwhile would not be seen. SIMULATE_ANEW may come again.
 */
void simulate_take_over(struct thread *t)
{
	simulate_take_over_lock(t);
	while (simulate_is_stale()) {
		u32 before = __atomic_load_n(&simulate_wanted, __ATOMIC_ACQUIRE);
		u32 wanted = simulate_asked();

		take_over(t, wanted);
		__atomic_compare_exchange_n(&simulate_wanted, &before, wanted, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
	simulate_take_over_unlock(t);
}

/* The child has the model as all that was handed over has left it. */
void simulate_locks_take(struct thread *t)
{
	lock_all_done(t);
}

bool simulate_locks_held_by(u32 id)
{
	for (u32 h = 0; h < MODEL_HALVES; h++)
		if (lock_held_by(&simulate_half_lock[h], id))
			return true;
	return lock_held_by(&simulate_lock, id) || lock_held_by(&take_over_lock, id);
}

void simulate_locks_give(struct thread *t)
{
	unlock_all(t);
}

void simulate_fork(const struct model_place *place)
{
	bool wanted = simulation && windows_pass_over(place);

	withheld = 0;
	if (wanted && !sys_madvise(simulation, simulation->size, MADV_DONTFORK))
		withheld = simulation->size;
}

void simulate_fork_done(void)
{
	if (withheld)
		sys_madvise(simulation, withheld, MADV_DOFORK);
	withheld = 0;
}

/* The child of a fork has none of it but its place. */
static void leave_model(struct thread *t)
{
	region_unmap(simulation, withheld);
	simulation = NULL;
	t->modeled.on = false;
}

void simulate_forked(struct thread *t)
{
	for (u32 h = 0; h < MODEL_HALVES; h++)
		lock_reset(&simulate_half_lock[h]);
	lock_reset(&simulate_lock);
	lock_reset(&take_over_lock);
	beside_forked();
	modeled_tally_leave(t);
	if (withheld)
		leave_model(t);
	windows_forked(t, !withheld);
	cores_used = t->modeled.on ? BIT(t->modeled.core) : 0;
	/* Filters of threads that are not here. */
	for (u32 i = 0; simulation && i < MODEL_CORES; i++)
		if (simulation->user[i] && (!t->modeled.on || t->modeled.core != i))
			forget_filter(i);
}

void simulate_end(struct thread *t)
{
	struct feed_thread *feed = t->modeled.feed;
	struct thread *me = this_thread();

	modeled_tally_leave(t);
	alloc_sites_leave(t);
	if (t->modeled.on) {
		beside_finish(me, t);
		lock_all(me);
		/* Another on its core may have handed over, and its last piece come behind that. */
		if (simulation)
			forget_filter(t->modeled.core);
		t->modeled.on = false;
		cores_used &= ~BIT(t->modeled.core);
		unlock_all(me);
	}
	t->modeled.feed = NULL; /* before it is gone, as in traces_unmap() */
	if (feed)
		region_unmap(feed, MODEL_HALVES * sizeof(*feed));
}
