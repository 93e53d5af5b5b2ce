/*
 * PURPOSE: what instructions cost by themselves, when everything they need is in L1 and every
 * branch is predicted. A translator adds a block up once, and says at run time how often it ran.
 *
 * The cost is the largest of three bounds: what the core renames in a cycle; what each kind of port
 * takes; and a share of the sum of latencies, which stands for the dependences that nobody has
 * looked at. Instructions that run alone are added to that. doc/model.md.
 */
#ifndef MODEL_CYCLES_H
#define MODEL_CYCLES_H

#include "model/machine.h"

enum cost_port {
	PORT_INT,
	PORT_LOAD,
	PORT_STORE,
	PORT_VEC,
	PORT_DIV,
	PORT_KINDS,
	PORT_ALONE = PORT_KINDS, /* no other instruction runs beside it */
};

/* Of a run of instructions; all zero: of none. */
struct cost {
	u64 uops;
	u64 latency;          /* ticks */
	u64 port[PORT_KINDS]; /* ticks */
	u64 alone;            /* ticks */
};

/* Adds an instruction with its loads and stores; one that does nothing else is of their class. */
void cost_add(struct cost *c, const struct machine *m, enum cost_class class, u32 loads,
	      u32 stores);

/* What it takes, in MACHINE_TICKS of a cycle. */
u64 cost_ticks(const struct cost *c, const struct machine *m);

#endif
