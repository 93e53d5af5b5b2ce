/* What happens behind the first level (hierarchy.c), for access.c. */
#ifndef MODEL_HIERARCHY_PRIV_H
#define MODEL_HIERARCHY_PRIV_H

#include "model/model-priv.h"

enum line_use {
	LINE_FETCH,
	LINE_LOAD,
	LINE_STORE,
};

static inline enum sight_kind sight_of(enum line_use use)
{
	return use == LINE_FETCH ? SIGHT_FETCH : use == LINE_STORE ? SIGHT_STORE : SIGHT_LOAD;
}

struct found {
	u32 latency;
	u8 source; /* enum model_source */
	u8 snoop;  /* enum model_snoop */
	u64 owned; /* LINE_OWNED or 0 */
};

/* Finds a line behind L1, and leaves it where it then belongs, but for L1. */
void hierarchy_find(struct model_core *core, u64 line, enum line_use use, struct found *f);

/* The line of @addr is not in L1D. */
void hierarchy_data_miss(struct model_core *core, u64 ip, u64 addr, bool store, struct found *f);

/* A line that a prefetcher has brought is used for the first time. */
void hierarchy_data_used_first(struct model_core *core, u64 ip, u64 addr);
void hierarchy_fetch_used_first(struct model_core *core, u64 line);

void hierarchy_fetch_miss(struct model_core *core, u64 line);

/* Takes a line that is in L1D from the other cores. */
enum model_snoop hierarchy_own(struct model_core *core, u64 line);

void hierarchy_prefetch(struct model_core *core, u64 line);

/* An access to two lines of a machine with MACHINE_ONCE. True: both are in L1. */
bool hierarchy_crossing(struct model_core *core, u64 first, u64 last, enum line_use use,
			struct found *f);

#endif
