/* PURPOSE: predicts branches: the direction of conditional ones, targets, returns. */
#ifndef MODEL_PREDICTOR_H
#define MODEL_PREDICTOR_H

#include "model/machine.h"
#include "model/tags.h"

#define TAGE_TABLES 6u

struct indirect_entry {
	u64 target;
	u32 tag; /* of branch and path */
	u32 sure;
};

struct predictor {
	u8 direction; /* enum machine_direction */
	u32 mask;     /* entries - 1; of TAGE, of each table */
	u32 index_bits;
	u32 indirect_mask;
	u32 returns, top; /* the return stack's size, and where it was pushed last */
	u32 depth;        /* how much of it is good */
	u64 history[2];   /* of directions: bit 0 is the last branch */
	u64 history_mask; /* gshare */
	u64 path;         /* of targets: the last thirteen */
	u32 random;
	s32 use_alternate;          /* TAGE: whether a new entry is trusted */
	u64 tage_mask[TAGE_TABLES]; /* of history[0] */
	u64 tage_mask_high;         /* of history[1], for the last table */
	/* In the model's memory. */
	u8 *counter; /* two bits each; TAGE's base */
	u16 *tagged; /* TAGE: tables of tag << 5 | useful << 3 | counter */
	u64 *stack;
	struct indirect_entry *indirect, *last_target;
	struct tags btb;
};

/* True: the prediction was @taken. Learns. */
bool predict_direction(struct predictor *p, u64 ip, bool taken);

/* The same of the target of an indirect jump or call. */
bool predict_target(struct predictor *p, u64 ip, u64 target);

void predictor_call(struct predictor *p, u64 next);
bool predict_return(struct predictor *p, u64 target);

/* A branch has been taken to @target: for what depends on the path. */
static inline void predictor_path(struct predictor *p, u64 target)
{
	p->path = p->path << 5 ^ target >> 1;
}

#endif
