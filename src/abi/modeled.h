/*
 * PURPOSE: the place in a counter segment (meter.h) that says which parts of the model of a machine
 * the events that are open need; the machine is part of struct run_config. A runtime that finds
 * more parts than it simulates begins a new model, with cold caches, before its threads execute
 * another instruction; one that runs is told by a kick, as of deadlines. While no part is wanted a
 * program that begins traces nothing, nor does one with windows that has begun; without windows
 * that one goes on to simulate. What threads have counted of the model stands in their meters.
 */
#ifndef ABI_MODELED_H
#define ABI_MODELED_H

#include "abi/refusal-list.h"

/* Offset in the segment of a u32, atomic: enum model_part, MODEL_EACH and MODEL_WHOLE. */
#define MODEL_PARTS_IN 19456u

/* Somebody samples: the model is told one by one, and of each process something. */
#define MODEL_EACH 32u

/*
 * Somebody counts what he does himself, or wants the sample of each period: there are no windows,
 * between which counters stand still, and short parts of a program count nothing.
 */
#define MODEL_WHOLE 64u

#define MODEL_WANTS 127u /* all of these bits */

/* Offset of another, atomic: what runtimes have not done, enum model_lack. */
#define MODEL_LACKS_IN (MODEL_PARTS_IN + 4)

enum model_lack {
	MODEL_ESTIMATED = 1, /* what was left out is estimated */
	MODEL_NO_MEMORY = 2, /* there was none for the model of a process, which counts nothing */
};

/* Whether a second core simulates while the program runs on: in struct run_config. */
enum model_beside {
	MODEL_BESIDE_NO,
	MODEL_BESIDE_AUTO, /* if the program may use another one when there is much to simulate */
	MODEL_BESIDE_YES,
};

/*
 * With windows (struct run_config) a thread's first instructions are all simulated. If periods grow
 * each is that part of what has been executed, but none is shorter than the least. Before each
 * window so many of its length warm up.
 */
#define MODEL_WINDOWS_FIRST   2000000u
#define MODEL_WINDOWS_FORKED  100000u /* before it has a model: it may execute a program first */
#define MODEL_WINDOWS_PART    64u
#define MODEL_WINDOWS_LEAST   1000000u /* of a period */
#define MODEL_WINDOWS_SAMPLED 4000000u /* of a period at most, where samples are taken in windows */
#define MODEL_WINDOWS_FEW     8u       /* in place of that, of the last of many processes */
#define MODEL_WINDOW_WARM     3u
#define MODEL_WINDOW_EARLY    8u
#define WINDOW_LEAST          1000u
#define WINDOW_MOST           (1ull << 30) /* also of a period */

/*
 * Which of the processes of a session the model sees from their beginning is decided where each is
 * made, by its place among its sisters (rt/task/windows-draw.h). All 0: it is the first.
 */
struct model_place {
	u64 key;      /* one of its own */
	u32 more;     /* for how many it stands beside itself, if it is seen */
	u32 children; /* so far; atomic */
	u32 behind;   /* others, as far as its ancestors and sisters tell */
	u32 unseen;   /* not 0: it is not */
};

/* Do runtimes feed a model with what they execute? If not, sessions behave as without a machine. */
#define MODEL_IS_FED 1

_Static_assert(MODEL_PARTS_IN >= METER_REFUSALS_IN + METER_REFUSALS * sizeof(struct meter_refusal),
	       "behind the refusals");
_Static_assert(MODEL_LACKS_IN + sizeof(u32) <= METER_SIZE, "the header has the place of a meter");

static inline u32 *segment_model_parts(struct counter_segment *segment)
{
	return (u32 *)((u8 *)segment + MODEL_PARTS_IN);
}

static inline u32 *segment_model_lacks(struct counter_segment *segment)
{
	return (u32 *)((u8 *)segment + MODEL_LACKS_IN);
}

#endif
