/* Costs of runs of instructions. */
#include "model/cycles.h"

static const u8 ports[COST_CLASSES] = {
	[COST_NOP] = PORT_INT,      [COST_INT] = PORT_INT,      [COST_LEA] = PORT_INT,
	[COST_SHIFT] = PORT_INT,    [COST_INT_MUL] = PORT_INT,  [COST_INT_DIV] = PORT_DIV,
	[COST_LOAD] = PORT_LOAD,    [COST_STORE] = PORT_STORE,  [COST_BRANCH] = PORT_INT,
	[COST_CALL] = PORT_INT,     [COST_VEC] = PORT_VEC,      [COST_SHUFFLE] = PORT_VEC,
	[COST_FP_ADD] = PORT_VEC,   [COST_FP_MUL] = PORT_VEC,   [COST_FP_DIV] = PORT_DIV,
	[COST_CONVERT] = PORT_VEC,  [COST_CRYPTO] = PORT_VEC,   [COST_X87] = PORT_VEC,
	[COST_GATHER] = PORT_ALONE, [COST_STRING] = PORT_ALONE, [COST_ATOMIC] = PORT_ALONE,
	[COST_FENCE] = PORT_ALONE,  [COST_SYSTEM] = PORT_ALONE,
};

static void add(struct cost *c, const struct machine_class *k, enum cost_class class, u32 times)
{
	c->latency += (u64)k->latency * times;
	if (ports[class] == PORT_ALONE)
		c->alone += (u64)k->throughput * times;
	else
		c->port[ports[class]] += (u64)k->throughput * times;
}

void cost_add(struct cost *c, const struct machine *m, enum cost_class class, u32 loads, u32 stores)
{
	/* Loads and stores of another operation are renamed with it. */
	c->uops += m->class[class].uops;
	if (class != COST_LOAD && class != COST_STORE)
		add(c, &m->class[class], class, 1);
	add(c, &m->class[COST_LOAD], COST_LOAD, loads);
	add(c, &m->class[COST_STORE], COST_STORE, stores);
}

u64 cost_ticks(const struct cost *c, const struct machine *m)
{
	u64 ticks = c->uops * MACHINE_TICKS / m->core.width;

	for (u32 i = 0; i < PORT_KINDS; i++)
		ticks = max_u64(ticks, c->port[i]);
	ticks = max_u64(ticks, c->latency * m->core.dependence / 100);
	return ticks + c->alone;
}
