/* PURPOSE: machines for tests: one that is small, and models of it in zeroed memory. */
#ifndef UNIT_MODEL_MACHINES_H
#define UNIT_MODEL_MACHINES_H

#include "model/model.h"

/* A small machine without L2, second TLB and prefetchers, everything LRU. */
struct machine small_machine(void);

/* One with other caches, policies and crossings for each number below SMALL_MACHINES. */
#define SMALL_MACHINES 256u
struct machine small_machine_of(u32 i);

void set_cache(struct machine *m, enum machine_cache_id id, u64 size, u32 ways);

/* A checked model; ends the program if the machine is wrong. Free it with model_free(). */
struct model *model_new(const struct machine *m, u32 cores, u32 parts);
void model_free(struct model *model);

/* The same numbers in each run. */
u64 random_number(u64 *state);

#endif
