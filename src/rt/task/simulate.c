#include "rt/task/simulate.h"

#include "model/feed.h"
#include "rt/arch.h"
#include "rt/mm/region.h"
#include "rt/sample/modeled-samples.h"
#include "rt/sample/sample.h"
#include "rt/task/modeled-tally.h"
#include "rt/task/path-pages.h"
#include "rt/task/process.h"
#include "rt/task/shared-mm.h"
#include "rt/task/traces.h"
#include "sys/string.h"

_Static_assert(MODEL_COUNTERS <= METER_MODELED, "a meter has room for each counter");
_Static_assert(sizeof(struct machine) <= RUN_CONFIG_MACHINE,
	       "and what is told has for the machine");

/* All of a model, in one mapping of which little is touched. */
struct simulation {
	u64 size;
	u32 user[MODEL_CORES];                  /* whose trace came last, by thread->id */
	u64 shown[MODEL_CORES][MODEL_COUNTERS]; /* of each core, in the meters of its threads */
	struct feed feed;
	u8 model[] __attribute__((aligned(64)));
};

u32 simulated_parts;

/* Under the lock. */
static struct lock lock;
static struct simulation *simulation; /* NULL: there is none */
static u64 cores_used;                /* a bit each */

/* As far as there are cores each thread has its own. */
static void take_core(struct thread *t)
{
	u32 free = (u32)__builtin_ctzll(~cores_used ? ~cores_used : BIT(t->id % MODEL_CORES));

	cores_used |= BIT(free);
	t->modeled.core = (u8)free;
	t->modeled.on = true;
}

static struct model_core *core_of(struct thread *t)
{
	return model_core(simulation->feed.model, t->modeled.core);
}

/*
 * The filter of @t knows of what @t has accessed since the model began; others on the same core
 * have accessed more.
 */
static void use_filter(struct thread *t)
{
	struct dbt_filtering *filter = &t->dbt.filter;

	model_use_filter(core_of(t), filter->load, filter->store);
	if (simulation->user[t->modeled.core] == t->id)
		return;
	simulation->user[t->modeled.core] = t->id;
	dbt_filter_forget(&t->dbt);
}

static void forget_filter(u32 core)
{
	model_use_filter(model_core(simulation->feed.model, core), NULL, NULL);
	simulation->user[core] = 0;
}

/* Whether there is a model, and a place for @t in it. */
static bool is_in(struct thread *t)
{
	if (!simulation)
		return false;
	if (!t->modeled.feed)
		t->modeled.feed = region_map(sizeof(*t->modeled.feed));
	if (t->modeled.feed && !t->modeled.on)
		take_core(t);
	return t->modeled.feed;
}

/* Adds what the thread's core has counted since it was last shown. */
static void show(struct thread *t)
{
	const struct model_core *core = core_of(t);
	u64 *shown = simulation->shown[t->modeled.core];
	struct meter *m = dbt_meter(&t->dbt);

	for (u32 i = 0; i < MODEL_COUNTERS; i++) {
		u64 now = model_count(core, (enum model_counter)i);

		if (now == shown[i])
			continue;
		__atomic_store_n(&m->modeled[i], m->modeled[i] + now - shown[i], __ATOMIC_RELAXED);
		shown[i] = now;
	}
}

/*
 * What the thread watches is in numbers of its meter, and for the model in those of its core, which
 * another thread may have had before.
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

static void watch_begin(struct thread *t)
{
	struct modeled_watching *w = t->modeled.watching;
	struct feed_watching *sampled = w && w->feed.nr ? &w->feed : NULL;

	t->modeled.feed->watching = modeled_tally_watch(t, sampled, core_of(t));
	if (sampled)
		watch_core(t, true);
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

/* What is counted with a hit is shown when that has been told. */
static void show_told(struct thread *t)
{
	if (!hits_of(t))
		show(t);
}

static void count_all(struct thread *t, u64 *counts)
{
	const u64 *shown = simulation->shown[t->modeled.core];
	const struct meter *m = dbt_meter(&t->dbt);

	for (u32 i = 0; i < METER_MODELED; i++)
		counts[i] = m->modeled[i];
	for (u32 i = 0; i < MODEL_COUNTERS; i++)
		counts[i] += model_count(core_of(t), (enum model_counter)i) - shown[i];
}

static void set_pace(struct thread *t, u32 n)
{
	u64 counts[METER_MODELED];

	if (!t->modeled.watching || !t->modeled.watching->feed.nr)
		return;
	count_all(t, counts);
	t->dbt.trace_room = modeled_pace(t->modeled.watching, n, counts);
}

static void take_words(struct thread *t, const u32 *words, u32 n)
{
	const struct feed_input in = {
		.words = words,
		.nr_words = n,
		.slots = (const u64 *)t->dbt.slots_start,
		.nr_slots = (t->dbt.slots_at - t->dbt.slots_start) / sizeof(u64),
		.records = (const struct path_record *)t->dbt.slots_start,
		.nr_records = traces_filtered() ? (t->dbt.slots_at - t->dbt.slots_start) /
							  sizeof(struct path_record)
						: 0,
		.trace = t->dbt.trace_begin,
	};

	lock_acquire(&lock, t->id, thread_gone);
	if (is_in(t)) {
		u32 hits = hits_of(t);

		simulation->feed.space = paths_space();
		arch_segments(&t->dbt, &t->modeled.feed->fs_base, &t->modeled.feed->gs_base);
		watch_begin(t);
		feed_words(&simulation->feed, t->modeled.feed, core_of(t), &in);
		use_filter(t);
		watch_end(t, hits);
		show_told(t);
		set_pace(t, n);
	}
	lock_release(&lock, t->id);
}

static void settle(struct thread *t)
{
	lock_acquire(&lock, t->id, thread_gone);
	if (is_in(t)) {
		u32 hits = hits_of(t);

		watch_begin(t);
		feed_settle(&simulation->feed, t->modeled.feed, core_of(t));
		watch_end(t, hits);
		show_told(t);
	}
	lock_release(&lock, t->id);
}

bool simulate_counts(struct thread *t, u64 *counts)
{
	bool is;

	lock_acquire(&lock, t->id, thread_gone);
	is = simulation && t->modeled.on;
	if (is)
		count_all(t, counts);
	lock_release(&lock, t->id);
	return is;
}

void simulate_told(struct thread *t)
{
	lock_acquire(&lock, t->id, thread_gone);
	if (simulation && t->modeled.on)
		show(t);
	lock_release(&lock, t->id);
}

static const struct trace_user model_user = {.words = take_words, .settle = settle};

/* A model of the machine that we were told of; false if that is none, or without memory. */
static bool make(u32 parts, bool each)
{
	struct machine_mistake why;
	struct machine machine;
	struct simulation *new;
	u64 size;

	memcpy(&machine, run_config()->machine, sizeof(machine));
	if (!machine.version || machine_check(&machine, &why))
		return false;
	size = sizeof(*new) + model_size(&machine, MODEL_CORES, parts);
	new = region_map(size);
	if (!new)
		return false;
	new->size = size;
	feed_init(&new->feed, model_init(new->model, &machine, MODEL_CORES, parts), NULL, parts,
		  each);
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
		trace_use_filter((u32)__builtin_ctz(m->memory.line), sets);
}

/* Takes notice of what is wanted. True: there is a model that was not there before. */
static bool take_parts(void)
{
	u32 wanted = __atomic_load_n(segment_model_parts(counter_segment()), __ATOMIC_ACQUIRE);
	u32 parts = wanted & MODEL_PARTS;
	bool each = wanted & MODEL_EACH || modeled_tally_wanted();

	simulated_parts = wanted;
	if (!parts ||
	    (simulation && simulation->feed.parts == parts && simulation->feed.each == each) ||
	    !make(parts, each))
		return false;
	trace_use(&model_user);
	if (parts & (MODEL_CACHES | MODEL_TLBS))
		trace_memory(model_machine(simulation->feed.model), each);
	return true;
}

void simulate_start(void)
{
	if (simulate_is_stale())
		take_parts();
}

void simulate_take_over(struct thread *t)
{
	bool made;

	lock_acquire(&lock, t->id, thread_gone);
	made = simulate_is_stale() && take_parts();
	lock_release(&lock, t->id);
	if (!made)
		return;
	paths_need_space(t);
	sample_new_mask(t);
}

void simulate_forked(struct thread *t)
{
	lock_reset(&lock);
	modeled_tally_leave(t);
	cores_used = t->modeled.on ? BIT(t->modeled.core) : 0;
	/* Filters of threads that are not here. */
	for (u32 i = 0; simulation && i < MODEL_CORES; i++)
		if (simulation->user[i] && (!t->modeled.on || t->modeled.core != i))
			forget_filter(i);
}

void simulate_end(struct thread *t)
{
	modeled_tally_leave(t);
	if (t->modeled.feed)
		region_unmap(t->modeled.feed, sizeof(*t->modeled.feed));
	t->modeled.feed = NULL;
	if (!t->modeled.on)
		return;
	lock_acquire(&lock, this_thread()->id, thread_gone);
	if (simulation && simulation->user[t->modeled.core] == t->id)
		forget_filter(t->modeled.core);
	t->modeled.on = false;
	cores_used &= ~BIT(t->modeled.core);
	lock_release(&lock, this_thread()->id);
}
