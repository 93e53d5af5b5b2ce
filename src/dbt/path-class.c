/*
 * Classes of paths: see abi/meter.h. A process has one numbering of them, in the order in which
 * they are made. The meter of every thread holds the weights of all of them, so that a meter can be
 * read by itself.
 */
#include "dbt/run-priv.h"
#include "sys/string.h"

#define CLASSES_PER_WEIGHT 4
#define CLASSES_IN_TURN    (METER_CLASSES / 2)     /* from here on a weight has one class */
#define CLASSES_WHOLE      (METER_CLASSES / 4 * 3) /* from here on they are of parts of weights */

static u32 class_bucket(u64 weight)
{
	return (u32)((weight * 0x9e3779b97f4a7c15ull) >> 54);
}

_Static_assert(METER_CLASSES == 1u << (64 - 54), "class_bucket()");

static void class_publish(struct meter *m, u32 class)
{
	m->weight[class] = cache.class_weight[class];
	/* Pairs with meter_sum(). */
	__atomic_store_n(&m->classes, class + 1, __ATOMIC_RELEASE);
}

static u32 class_new(u64 weight)
{
	u32 class = cache.nr_classes++;

	cache.class_weight[class] = weight;
	for (struct dbt_thread *t = cache.threads.next; t != &cache.threads; t = t->next) {
		grants_new_class(t, class);
		class_publish(dbt_meter(t), class);
	}
	return class;
}

u32 meter_class(u64 weight, bool part)
{
	u32 bucket = class_bucket(weight), first = cache.class_hash[bucket], n = 0, class;

	while (first && cache.class_weight[first - 1] != weight)
		first = cache.class_chain[first - 1];
	if (!first) {
		if (cache.nr_classes >= (part ? METER_CLASSES : CLASSES_WHOLE))
			return ~0u;
		class = class_new(weight);
		cache.class_chain[class] = cache.class_hash[bucket];
		cache.class_hash[bucket] = (u16)(class + 1);
		return class;
	}
	for (class = first; class; class = cache.class_next[class - 1])
		n++;
	if (n < CLASSES_PER_WEIGHT && cache.nr_classes < CLASSES_IN_TURN) {
		class = class_new(weight);
		cache.class_next[class] = cache.class_next[first - 1];
		cache.class_next[first - 1] = (u16)(class + 1);
		return class;
	}
	class = first;
	for (u32 turn = cache.class_turn++ % n; turn; turn--)
		class = cache.class_next[class - 1];
	return class - 1;
}

void meter_attach(struct dbt_thread *t)
{
	struct meter *m = dbt_meter(t);
	u32 old = m->classes < METER_CLASSES ? m->classes : METER_CLASSES;

	/* Its last owner ended in a call. */
	meter_unpark(m);
	meter_fold_begin(m);
	for (u32 class = 0; class < old; class ++) {
		u64 hits = meter_hits(m, class);

		for (u32 q = 0; hits && q < METER_QUANTITIES; q++)
			m->count[0][q] += hits * (m->weight[class] >> (8 * q) & 0xff);
		m->hits[class] = 0;
	}
	if (m->grants)
		memset(m->granted, 0, sizeof(m->granted));
	m->moving = 0;
	m->classes = 0;
	for (u32 class = 0; class < cache.nr_classes; class ++)
		class_publish(m, class);
	meter_fold_end(m);
	grants_forget(t);
}

void dbt_meter_attach(struct dbt_thread *t)
{
	cache_lock(t);
	meter_attach(t);
	cache_unlock(t);
}
