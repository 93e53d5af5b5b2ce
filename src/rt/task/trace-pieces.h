/*
 * PURPOSE: pieces of threads' traces that wait to be simulated, in the order in which they were
 * handed over: a ring in memory of the process. Each half of the model (model/model.h) goes through
 * them by itself; a piece leaves when all halves are past it.
 *
 * Locking: the caller's. A piece stays where it is, and is as it was put, until it has left.
 */
#ifndef RT_TASK_TRACE_PIECES_H
#define RT_TASK_TRACE_PIECES_H

#include "model/model.h"

struct thread;

struct trace_piece {
	u32 size;              /* in the ring */
	u32 core;              /* of the model */
	struct thread *thread; /* in the ring NULL: it only fills the end */
	u64 fs_base, gs_base;
	u64 trace; /* the address of the first word */
	u64 nr_memory;
	u32 nr_words;
	bool records; /* `memory` are these, not slots */
	u32 weight;   /* for how much it counts */
	u32 times;    /* and how often that is told */
	bool apart;   /* the thread has executed something else before it */
	bool early;   /* only predictors see it */
	bool settles; /* behind it nothing is taken back */
	const u32 *words;
	const u8 *memory;
	/* Of each half what the core has counted with it. */
	u64 counts[MODEL_HALVES][MODEL_COUNTERS];
};

#define PIECES_ROOM (8u << 20)
#define PIECES_FEW  (128u << 10)      /* bytes that wait while somebody waits for them */
#define PIECE_MOST  (PIECES_ROOM / 4) /* bytes of words and memory; more fits in no case */

struct trace_pieces {
	u8 *room;   /* PIECES_ROOM bytes; NULL: not yet */
	u64 filled; /* of them, as fill_ahead() has it */
	u32 halves;
	u64 first, end; /* as if the ring had no end */
	u64 most;       /* bytes that may wait now, if it is more than one piece */
	u64 at[MODEL_HALVES];
};

static inline bool piece_fits(const struct trace_piece *p)
{
	return p->nr_words * sizeof(u32) + p->nr_memory <= PIECE_MOST;
}

/* A copy of @p is the last one; false: there is no room now. */
must_check bool pieces_put(struct trace_pieces *q, const struct trace_piece *p);

/*
 * Somebody waits until all halves are past what there is. The next pieces find room for few, and
 * for more with each, so that who waits again and again does not wait for the whole ring each time.
 */
void pieces_hurry(struct trace_pieces *q);

/* The next one for @half that begins before @end; NULL: there is none. */
struct trace_piece *pieces_next(struct trace_pieces *q, u32 half, u64 end);
/* It is past that one. */
void pieces_past(struct trace_pieces *q, u32 half, const struct trace_piece *p);

/* The first one, if all halves are past it. To be dropped. */
const struct trace_piece *pieces_done(struct trace_pieces *q);
void pieces_drop(struct trace_pieces *q, const struct trace_piece *p);

/* All of them. */
void pieces_forget(struct trace_pieces *q);

#endif
