/* What a thread that is sampled has, for the files of this folder. */
#ifndef RT_SAMPLE_THREAD_SAMPLER_PRIV_H
#define RT_SAMPLE_THREAD_SAMPLER_PRIV_H

#include "abi/trace.h"
#include "rt/sample/cpu-timer.h"
#include "rt/sample/modeled-samples.h"
#include "rt/sample/trace-ring.h"
#include "rt/task/thread.h"

/* How deep the kernel looks, too. */
#define RETURN_DEPTH  64u
#define RETURN_PLACES 128u

/* What a thread has for itself; behind it the trace is mapped. */
struct sampler {
	struct trace_event event[TRACE_EVENTS]; /* as they were taken over */
	u32 order[TRACE_EVENTS];                /* those in use, by id */
	u32 nr;
	/* What all of the kernel's events want; period 0: there are none. */
	struct cpu_timer timers[TRACE_EVENTS];
	u32 over[TRACE_EVENTS]; /* periods of theirs; the handler adds */
	struct trace_event stop;
	struct trace_calls calls;
	struct trace_watch watch, fired;
	struct trace_place place[TRACE_PLACES];
	u64 places[TRACE_PLACES]; /* addresses of this thread among those of its memory */
	u32 nr_places;
	/* Functions that have been called and whose return is to be told, the last one last. */
	struct {
		u64 ret, sp, addr; /* where to, with which stack pointer; where it begins */
	} frame[RETURN_DEPTH];
	u32 nr_frames;
	u64 returns[RETURN_PLACES]; /* where they return to, among the places of its memory */
	u32 nr_returns;
	struct modeled_watching modeled;
	u8 entry[TRACE_ENTRY_MAX] __attribute__((aligned(8))); /* the one being made */
};

#define SAMPLER_SIZE ALIGN_UP(sizeof(struct sampler), 4096ull)
#define MAPPED_SIZE  (SAMPLER_SIZE + TRACE_SIZE)

static inline struct sampler *sampler_of(const struct thread *t)
{
	return t->sampling.own;
}

static inline struct trace *trace_of(const struct thread *t)
{
	return (struct trace *)((u8 *)t->sampling.own + SAMPLER_SIZE);
}

/*
 * Makes @sample, with all that @e wants behind it, of where the thread is. The caller fills in what
 * there is to say of it.
 */
void sample_make(struct thread *t, struct trace_sample *sample, const struct trace_event *e,
		 const u64 *sums);

/*
 * Puts @entry into the ring, and gets the signal that it brings. One on its way swallows others.
 * @answer: as for trace_put().
 */
void sample_tell(struct thread *t, const struct trace_entry *entry, bool answer);

/* The thread is about to execute the instruction at @place. */
void hit_executed(struct thread *t, const struct trace_place *place);
/* The function that begins there has returned, and its caller goes on. */
void hit_returned(struct thread *t, const struct trace_place *place);

/* The thread's places are those of its table from here on; or none, if it is @gone. */
void places_take_over(struct thread *t, bool gone);
/* @t is all that a fork has left of its process. */
void places_forked(struct thread *t);

#endif
