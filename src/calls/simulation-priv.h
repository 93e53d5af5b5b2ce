/*
 * PURPOSE: what code has to do with caches and branches, worked out once (simulated-code.c) to be
 * run quickly (simulation.c).
 */
#ifndef CALLS_SIMULATION_PRIV_H
#define CALLS_SIMULATION_PRIV_H

#include "calls/calls-memory.h"
#include "calls/fetch-cache.h"
#include "calls/lru-cache.h"
#include "calls/simulation.h"

#define SIMULATED_INSNS 256u /* of a path, at most */
#define JOINED_PLACES   512u /* of joined code, at most */

/* Where an instruction may meet an event. */
struct event_place {
	u8 group; /* enum simulated */
	u8 insn;
	bool counts; /* it is not met as often as the instruction is executed */
	/* Of joined code: of which part, and which place of that. */
	u8 part;
	u16 own;
};

/* A line that is fetched, and is not the one that was fetched just before in the same code. */
struct line_fetch {
	u32 line; /* its number */
	u16 place;
	bool both;   /* the next one is of the same instruction */
	bool second; /* the instruction begins in the line before */
};

#define NO_PLACE 0xffffu

/* An access of the code's, which a record may be of. */
struct one_access {
	u16 place; /* NO_PLACE: it counts with another one, or is none for the simulation */
	u16 size;  /* a line at most; of a string, of each element */
	bool string, with_next, addr32;
};

struct cond_branch {
	u64 pc;
	u32 place;
	bool taken;
};

/* An indirect branch within joined code. */
struct known_target {
	u64 pc, target;
	u32 place;
};

/* Of joined code: what records may be of. */
struct joined_part {
	const struct one_access *access; /* of the part; here are their numbers: */
	u32 first_access, nr_accesses;
	u32 place; /* its first one, among those of all */
	u32 word;
};

struct simulated_code {
	u32 nr_places, nr_fetches, nr_accesses, nr_conds;
	u32 first_access;          /* its number among the block's; the others follow */
	bool indirect;             /* the last one is an indirect branch, and the last place */
	u64 met[SIMULATED_GROUPS]; /* each time */
	struct line_fetch *fetch;  /* these lie behind it */
	struct one_access *access; /* in order */
	struct cond_branch *cond;
	struct event_place *place;
	/* Of joined code, which has no accesses itself. */
	u32 nr_unique, nr_targets, nr_parts, nr_words;
	u32 *unique; /* the lines that are fetched, each once, by when they are fetched last */
	struct known_target *target;
	struct joined_part *part;
};

struct event_simulation {
	struct simulation_opts opts; /* without a machine */
	struct fetch_cache i1;
	struct lru_cache d1, ll;
	u64 within; /* the bits of an address within a line */
	u64 history;
	u8 *counter;                /* of branches; owned */
	u64 *last_target;           /* likewise */
	struct calls_memory memory; /* of code */
	/* Fetches of what is being executed that LL is to be asked for. */
	const struct line_fetch *missed[SIMULATED_INSNS];
	u32 nr_missed;
};

#endif
