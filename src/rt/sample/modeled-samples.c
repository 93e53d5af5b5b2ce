#include "rt/sample/modeled-samples.h"

#include "rt/sample/sample.h"
#include "rt/sample/thread-sampler-priv.h"
#include "rt/task/meter-page.h"
#include "rt/task/simulate.h"
#include "rt/task/windows.h"
#include "sys/string.h"

#define PACE_MOST  1024u /* words, where nobody wants registers: time is told as well */
#define PACE_FIRST 16u   /* with nothing known */
#define PACE_NEAR  4u    /* events from here on are looked for closely */
#define PACE_HITS  128u
#define PACE_KEPT  (1u << 16) /* words, of which it is known what was in them */

static bool is_modeled(const struct trace_event *e)
{
	return e->period && e->quantity >= TRACE_MODELED &&
	       e->quantity < TRACE_MODELED + MODEL_COUNTERS;
}

void modeled_leave(struct thread *t)
{
	const struct modeled_watching *w = t->modeled.watching;

	if (!w)
		return;
	for (u32 i = 0; i < w->feed.nr; i++)
		trace_of(t)->armed[w->feed.watch[i].name].next = w->feed.watch[i].at;
}

void modeled_take_over(struct thread *t)
{
	struct sampler *s = sampler_of(t);
	struct modeled_watching *w = &s->modeled;
	struct trace *trace = trace_of(t);

	w->feed.nr = 0;
	w->near = 0;
	for (u32 slot = 0; slot < TRACE_EVENTS; slot++) {
		const struct trace_event *e = &s->event[slot];
		struct trace_armed *a = &trace->armed[slot];

		if (!is_modeled(e))
			continue;
		if (a->generation != e->generation) {
			a->next = e->next;
			a->generation = e->generation;
		}
		if (e->wants & TRACE_WANT_REGS)
			w->near |= BIT(w->feed.nr);
		w->counted[w->feed.nr] = dbt_meter(&t->dbt)->modeled[e->quantity - TRACE_MODELED];
		w->events[w->feed.nr] = 0;
		w->feed.watch[w->feed.nr++] = (struct feed_watch){
			.counter = e->quantity - TRACE_MODELED,
			.name = slot,
			.at = a->next,
			.period = e->period,
		};
	}
	w->words = 0;
	t->modeled.watching = w->feed.nr || w->feed.nr_hits ? w : NULL;
	t->dbt.trace_room = w->feed.nr ? PACE_FIRST : 0;
}

void modeled_pace_anew(struct thread *t)
{
	if (t->modeled.watching && t->modeled.watching->feed.nr)
		t->dbt.trace_room = windows_weight(t) ? PACE_FIRST : PACE_MOST;
}

/* Numbers of words have so many bits of a fraction; of longer ways than FAR a part will do. */
#define WORD_BITS 20
#define WORD      BIT(WORD_BITS)
#define FAR       (1u << 19)

u32 modeled_pace(struct modeled_watching *w, u32 n, const u64 *counts, u32 weight)
{
	u64 least = PACE_MOST;

	/* What does not count leads nowhere. */
	if (!weight)
		return PACE_MOST;
	w->words += n;
	for (u32 i = 0; i < w->feed.nr; i++) {
		const struct feed_watch *watch = &w->feed.watch[i];
		u64 now = counts[watch->counter], left = watch->at - now, most, mean, part;

		w->events[i] += now - w->counted[i];
		w->counted[i] = now;
		/* Words from one event to the next. */
		mean = (w->words << WORD_BITS) / (w->events[i] ? w->events[i] : 1);
		most = (mean * min_u64(watch->period, FAR) * PACE_HITS) >> WORD_BITS;
		/* Of what is left: what comes many times with a word comes evenly. */
		part = mean < WORD ? 2 : 4;
		if (w->near & BIT(i))
			most = min_u64(most,
				       left > PACE_NEAR * (u64)weight
					       ? (mean * min_u64(left, FAR) / part) >> WORD_BITS
					       : mean / 32 >> WORD_BITS);
		least = min_u64(least, most);
		if (w->words >= PACE_KEPT)
			w->events[i] /= 2;
	}
	if (w->words >= PACE_KEPT)
		w->words /= 2;
	return least ? (u32)least : 1;
}

/* Without an address that is known it was where the thread is now. */
static void tell(struct thread *t, const struct trace_event *e, const struct feed_hit *h)
{
	struct trace_sample *sample = (struct trace_sample *)sampler_of(t)->entry;
	u64 sums[METER_QUANTITIES] = {0};

	if (e->wants & TRACE_WANT_SUMS)
		meter_sums(dbt_meter(&t->dbt), METER_QUANTITIES, sums);
	sample_make(t, sample, e, sums);
	sample->entry.kind = TRACE_SAMPLE;
	sample->entry.flags = TRACE_SAMPLE_MODELED;
	sample->id = e->id;
	sample->periods = h->periods;
	if (h->ip)
		sample->ip = h->ip;
	sample->hit = (struct trace_modeled){
		.count = h->count,
		.addr = h->addr,
		.latency = h->access.latency,
		.kind = (u8)h->kind,
		.source = h->access.source,
		.tlb = h->access.tlb,
		.snoop = h->access.snoop,
		.misses = h->access.misses,
		.locked = h->locked,
	};
	sample_tell(t, &sample->entry, e->wants & TRACE_WANT_ANSWER);
}

void modeled_tell(struct thread *t)
{
	struct modeled_watching *w = t->modeled.watching;
	struct sampler *s = sampler_of(t);
	u32 n = w->feed.nr_hits;

	/* What it does to tell of them is not to tell of them. */
	if (t->sampling.telling)
		return;
	t->sampling.telling = true;
	for (u32 i = 0; i < n; i++) {
		const struct trace_event *e = &s->event[w->feed.hit[i].name];

		if (is_modeled(e))
			tell(t, e, &w->feed.hit[i]);
	}
	w->feed.nr_hits = 0;
	t->sampling.telling = false;
	simulate_told(t);
}
