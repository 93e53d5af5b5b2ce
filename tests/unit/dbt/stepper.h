/*
 * PURPOSE: the oracle of exactness: runs a function of the test program natively, one instruction
 * after the other, and notes the state after each. Needs a struct guest of the thread, for its
 * handlers; the function runs on the guest's stack.
 */
#ifndef UNIT_DBT_STEPPER_H
#define UNIT_DBT_STEPPER_H

#include "unit/dbt/guest.h"

struct native_step {
	struct dbt_regs regs; /* after it */
	u64 pc;               /* of the instruction */
	u8 counts[METER_QUANTITIES];
	u8 taken;  /* enum trace_branch_type; 0: no branch, or not taken */
	bool next; /* it goes to what follows in memory */
};

/*
 * Runs @fn(a, b, c) as guest_call() does, its other registers being those of @from, until it
 * returns or @max instructions have retired. How many have; *@steps is to be freed.
 */
u64 native_steps(struct guest *g, const void *fn, const u64 *abc, u64 max,
		 struct native_step **steps);

/* A stop at a deadline. */
struct stop {
	struct dbt_regs regs;
	u64 ip, count;
};

/* And the branches before it. */
struct stop_branches {
	u32 nr;
	struct trace_branch at[TRACE_LBR];
};

/* The stops of the thread under the translator, one after each @period of @q. */
struct stops {
	enum meter_quantity q;
	u64 next, period;
	struct stop *at;                /* the first `max` of them are noted */
	struct stop_branches *branches; /* likewise, if not NULL */
	u32 kinds;                      /* of these */
	u64 n, max;
	/* Traces in turns, from one stop to the next; edge[] has how many words there were. */
	u64 *edge;
};
extern __thread struct stops stops;

/* From here on, with q, at and max set; and to here. */
void stops_begin(struct guest *g, u64 period);
void stops_end(struct guest *g);

/* The registers that the oracle and the guest begin with. */
void native_begin(struct guest *g, const void *fn, const u64 *abc);

#endif
