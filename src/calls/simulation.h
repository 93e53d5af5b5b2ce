/*
 * PURPOSE: caches and branch predictors as callgrind and cachegrind simulate them, and how often
 * each instruction has met which event. Caches are simpler than a model's; the predictors are
 * theirs: a table of two-bit counters by address and history, and the last target of each indirect
 * branch. All threads of a program share one core, since Valgrind lets one run at a time.
 *
 * Lifetime: new .. free, with what was made for instructions.
 */
#ifndef CALLS_SIMULATION_H
#define CALLS_SIMULATION_H

#include "calls/calls-memory.h"
#include "data/path-walk.h"
#include "model/machine.h"

/* What is simulated, each with how often, misses of the first level, and of the last one. */
enum simulated {
	SIMULATED_FETCH, /* how often is not counted: it is the number of instructions */
	SIMULATED_READ,
	SIMULATED_WRITE,
	SIMULATED_COND, /* branches have one level */
	SIMULATED_INDIRECT,
	SIMULATED_GROUPS,
};

struct event_counts {
	u64 n[SIMULATED_GROUPS][3];
};

static inline void event_counts_add(struct event_counts *to, const struct event_counts *more)
{
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		for (u32 k = 0; k < 3; k++)
			to->n[i][k] += more->n[i][k];
}

static inline void event_counts_subtract(struct event_counts *from, const struct event_counts *what)
{
	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		for (u32 k = 0; k < 3; k++)
			from->n[i][k] -= what->n[i][k];
}

static inline bool event_counts_none(const struct event_counts *e)
{
	u64 any = 0;

	for (u32 i = 0; i < SIMULATED_GROUPS; i++)
		for (u32 k = 0; k < 3; k++)
			any |= e->n[i][k];
	return !any;
}

struct simulation_opts {
	const struct machine *machine; /* copied; for its caches */
	bool caches, branches;
	/* What is read and then written at once is a read, as of cachegrind; else a write. */
	bool modified_is_read;
};

struct event_simulation;

struct event_simulation *simulation_new(const struct simulation_opts *opts);
void simulation_free(struct event_simulation *s);

/* What instructions one after the other have to do with caches and branches. */
struct simulated_code;

struct simulated_code *simulated_code_new(struct event_simulation *s, const struct path_step *steps,
					  u32 n);
/* How many of them can meet an event: so many counts of three numbers there are. */
u32 simulated_places(const struct simulated_code *c);
/*
 * The instruction of a place, by its index, and what is counted there. *@counts: the first number
 * is how often; else that is how often the instruction was executed, and the number what that is
 * off by.
 */
u32 simulated_insn(const struct simulated_code *c, u32 place, enum simulated *what, bool *counts);

/*
 * What a thread says of its accesses, by a filter in front of us (abi/path-trace.h): those that are
 * not of one of the two lines that their set has used last, or are not known to be, in their order;
 * and which one of the two was used last, where it matters. `at` is the number of the word of the
 * trace that each belongs to.
 */
struct path_records {
	const struct path_record *next, *end;
	u32 word; /* of what is executed */
	struct event_simulation *simulation;
};

/* What a record with PATH_RECORD_AGAIN says. */
void simulate_again(struct event_simulation *s, const struct path_record *r);

/* The word is done, and @n - 1 behind it: what is left of its records belongs to nothing. */
static inline void path_records_pass(struct path_records *r, u32 n)
{
	r->word += n;
	for (; r->next < r->end && (s32)(r->next->at - r->word) < 0; r->next++)
		if (path_record_is_again(r->next))
			simulate_again(r->simulation, r->next);
}

/*
 * The instructions were executed, which are of word @records->word or a part of it. Adds to
 * @counts, three numbers for each place, or NULL, and to @sum. True: the last one is an indirect
 * branch, and simulate_target() is to say where it went.
 */
bool simulate(struct event_simulation *s, const struct simulated_code *c,
	      struct path_records *records, u64 *counts, struct event_counts *sum);
/* It has been interrupted: what it has accessed, and no fetch, branch or instruction. */
void simulate_accesses(struct event_simulation *s, const struct simulated_code *c,
		       struct path_records *records, u64 *counts, struct event_counts *sum);
/*
 * The same code was executed @times times more, at least once, of as many words from that of
 * @records on. False: nothing was done; it is to be simulated each time.
 */
bool simulate_round(struct event_simulation *s, const struct simulated_code *c, u32 times,
		    struct path_records *records, u64 *counts, struct event_counts *sum);
/*
 * Code that is executed one after the other, as one: what it has to do with caches is less, since
 * lines come again. NULL: it cannot be. It lies in @m.
 */
struct simulated_part {
	const struct simulated_code *code;
	u32 word;        /* of how many words that are taken it is, from 0 on */
	u64 last, after; /* its last instruction; the first one behind it */
};

#define SIMULATED_PARTS 64u /* at most, and words */

struct simulated_code *simulated_join(const struct simulated_part *part, u32 n,
				      struct calls_memory *m);
/* Its bytes. */
size_t simulated_size(const struct simulated_code *c);
/* How often a part meets each of enum simulated in any case. */
const u64 *simulated_met(const struct simulated_code *c);

/* One that was missed, or not foreseen, in the first level or, beyond that, the last one. */
struct simulated_miss {
	u16 place; /* of the part */
	u8 part, group, level;
};

#define SIMULATED_MISSES 1024u /* of joined code, at most */

/*
 * Joined code was executed, of the word of @records and those behind it. Returns how many misses
 * there were, in the order of parts. The last part's indirect branch is still to be told of.
 */
__attribute__((nonnull)) u32 simulate_joined(struct event_simulation *s,
					     const struct simulated_code *c,
					     struct path_records *records,
					     struct simulated_miss *miss);
/* Whether its last instruction is an indirect branch. */
bool simulated_is_open(const struct simulated_code *c);
/* True: that was not foreseen, which is the second number of the last place. */
bool simulate_target(struct event_simulation *s, u64 pc, u64 target);

#endif
