/*
 * PURPOSE: the accesses of memory that Zydis sees in native single steps of a program, in order.
 */
#ifndef UNIT_DBT_SEEN_ACCESSES_H
#define UNIT_DBT_SEEN_ACCESSES_H

#include "unit/dbt/guest.h"
#include "unit/dbt/snippets.h"

struct noted {
	u64 ip, addr;
	u32 size;
	char kind; /* 'l', 's', 'p' */
};

struct seen_accesses {
	struct noted at[1 << 20];
	u64 n;
	u64 twice; /* loads that Valgrind has twice: of what is done at once, but for cmpxchg */
	u64 fs_base, gs_base; /* the guest's */
};
extern struct seen_accesses seen;

/* Set by a test: extended state that is saved and restored is what it initially is. */
extern bool seen_initial_state;

/* Of tiles 0 and 1, in the configuration that a program is to load. */
extern const u8 seen_tile_rows[2];
extern const u16 seen_tile_bytes[2];

void see_program(struct guest *g, const struct program *p);
/* What a plain filter leaves out goes: stores to what the same instruction has loaded. */
void see_no_stores_back(void);

#endif
