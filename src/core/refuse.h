/*
 * PURPOSE: how the core, its drivers and its host say why they refuse something. The refusal is the
 * core's until the next call; core_refusal() shows it.
 */
#ifndef CORE_REFUSE_H
#define CORE_REFUSE_H

#include "base/refusal.h"

struct core;

/* Notes the refusal and gives back @err. */
int core_note_refusal(struct core *core, int err, enum refusal_cause cause,
		      const struct refusal_args *args);
/* A second-hand one: keeps the refusal that is there already, else notes this. */
int core_note_default(struct core *core, int err, enum refusal_cause cause,
		      const struct refusal_args *args);

/*
 * `return core_refuse(core, -EINVAL, CPU_RANGE, .number = {cpu, nr_cpus})`: the cause without its
 * CAUSE_, and what its sentence and its remedy need (struct refusal_args). scripts/check-refusals
 * compares the two.
 */
#define core_refuse(core, err, id, ...) \
	core_note_refusal(core, err, CAUSE_##id, &(const struct refusal_args){__VA_ARGS__})
#define core_refuse_default(core, err, id, ...) \
	core_note_default(core, err, CAUSE_##id, &(const struct refusal_args){__VA_ARGS__})

#endif
