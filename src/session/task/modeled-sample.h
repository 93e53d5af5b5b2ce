/*
 * PURPOSE: what a model knows of the place at which one of its counters has reached a period, as
 * perf's samples say it: PERF_SAMPLE_ADDR, WEIGHT and DATA_SRC.
 */
#ifndef SESSION_TASK_MODELED_SAMPLE_H
#define SESSION_TASK_MODELED_SAMPLE_H

#include "abi/trace.h"
#include "core/sample/sample-facts.h"
#include "session/session-priv.h"

/* PERF_SAMPLE_DATA_SRC of it, where these parts of a model (enum model_part) are simulated. */
u64 modeled_data_src(const struct trace_modeled *hit, u32 parts);

/* @th has told @s of an event that counts @counter of a model: completes @facts, and its counts. */
void modeled_sample(struct guest_thread *th, u32 counter, const struct trace_sample *s,
		    struct sample_facts *facts);

#endif
