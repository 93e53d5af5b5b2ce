#include "rt/task/simulate.h"

#include "model/feed.h"
#include "rt/arch.h"
#include "rt/mm/region.h"
#include "rt/sample/sample.h"
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
		.trace = t->dbt.trace_start,
	};

	lock_acquire(&lock, t->id, thread_gone);
	if (is_in(t)) {
		simulation->feed.space = paths_space();
		arch_segments(&t->dbt, &t->modeled.feed->fs_base, &t->modeled.feed->gs_base);
		feed_words(&simulation->feed, t->modeled.feed, core_of(t), &in);
		use_filter(t);
		show(t);
	}
	lock_release(&lock, t->id);
}

static void settle(struct thread *t)
{
	lock_acquire(&lock, t->id, thread_gone);
	if (is_in(t)) {
		feed_settle(&simulation->feed, t->modeled.feed, core_of(t));
		show(t);
	}
	lock_release(&lock, t->id);
}

static const struct trace_user model_user = {.words = take_words, .settle = settle};

/* A model of the machine that we were told of; false if that is none, or without memory. */
static bool make(u32 parts)
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
	feed_init(&new->feed, model_init(new->model, &machine, MODEL_CORES, parts), NULL, parts);
	if (simulation)
		region_unmap(simulation, simulation->size);
	simulation = new;
	return true;
}

static void trace_memory(const struct machine *m)
{
	u32 sets = model_filter_sets(m);

	trace_use_memory();
	if (sets)
		trace_use_filter((u32)__builtin_ctz(m->memory.line), sets);
}

/* Takes notice of what is wanted. True: there is a model that was not there before. */
static bool take_parts(void)
{
	u32 wanted = __atomic_load_n(segment_model_parts(counter_segment()), __ATOMIC_ACQUIRE);
	u32 parts = wanted & MODEL_PARTS;

	simulated_parts = wanted;
	if (!parts || (simulation && simulation->feed.parts == parts) || !make(parts))
		return false;
	trace_use(&model_user);
	if (parts & (MODEL_CACHES | MODEL_TLBS))
		trace_memory(model_machine(simulation->feed.model));
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
	cores_used = t->modeled.on ? BIT(t->modeled.core) : 0;
	/* Filters of threads that are not here. */
	for (u32 i = 0; simulation && i < MODEL_CORES; i++)
		if (simulation->user[i] && (!t->modeled.on || t->modeled.core != i))
			forget_filter(i);
}

void simulate_end(struct thread *t)
{
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
