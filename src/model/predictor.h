/* PURPOSE: predicts branches: the direction of conditional ones, targets, returns. */
#ifndef MODEL_PREDICTOR_H
#define MODEL_PREDICTOR_H

#include "model/machine.h"
#include "model/tags.h"

#define TAGE_TABLES 4u
#define TAGE_LENGTH 128u /* of the longest history */

/*
 * By which its upper half is multiplied before the lower one is added. What is folded with an
 * exclusive or, and moved no matter how far, is the same for a history and for one in which all is
 * the other way round, as it is half a turn later where four are taken and four are not.
 */
#define HISTORY_HIGH 0x94d049bb133111ebull

/* With TAGE: what is known of a branch before it is predicted; more than a core has of these. */
#define SITE_BITS 16u
#define SITES     (1u << SITE_BITS)

/* Directions that the branches of a site have had so far, for all cores of a model. */
enum site_bias {
	SITE_UNSEEN,
	SITE_NOT_TAKEN,
	SITE_TAKEN,
	SITE_BOTH,
};

/* A branch as the predictor knows it. */
struct branch_place {
	u64 key; /* what is mixed with a history */
	u32 at;  /* for tables without one */
	u32 site;
};

struct indirect_entry {
	u64 target;
	u32 tag; /* of branch and path */
	u32 sure;
};

/* Of the tables that target-tables.c is about; all zero: never used. */
struct target_entry {
	u32 target; /* some of its bits */
	u16 tag;    /* with TARGET_KNOWN */
	u8 sure;
	u8 useful; /* of where a branch went last: that it has gone to others as well */
};

#define TARGET_TAG    0xfffu
#define TARGET_KNOWN  0x1000u
#define TARGET_SURE   3u
#define TARGET_USEFUL 3u
#define TARGET_BITS   4u /* of a target, in the history */

struct predictor {
	u8 direction; /* enum machine_direction */
	u32 mask;     /* entries - 1; of TAGE, of each table */
	u32 shift;    /* 64 - bits of that */
	u32 indirect, indirect_mask, btb_entries;
	u32 returns, top; /* the return stack's size, and where it was pushed last */
	u32 depth;        /* how much of it is good */
	u64 history[2];   /* of directions: bit 0 is the last branch */
	u64 history_mask; /* gshare */
	u64 path;         /* of targets: the last thirteen */
	u32 random;
	s32 use_alternate;          /* TAGE: whether a new entry is trusted */
	s32 use_other_target;       /* likewise, of targets */
	u64 tage_mask[TAGE_TABLES]; /* of history[0] */
	u64 tage_mask_high;         /* of history[1], for the last table */
	/* In the model's memory. */
	u8 *bias;    /* TAGE: of each site, enum site_bias; the model's */
	s16 *run;    /* TAGE: of each site, how often it has gone the same way; below 0 not taken */
	u8 *counter; /* two bits each; TAGE's base */
	u16 *tagged; /* TAGE: TAGE_TABLES side by side, each tag << 5 | useful << 3 | counter */
	u64 *stack;
	struct indirect_entry *by_path, *last_by_path;
	/* ITTAGE: where branches of the BTB went last; tables one behind the other, or NULL */
	struct target_entry *last_target, *target_table;
	struct tags btb; /* the first that came goes first: to find one changes nothing */
	u64 btb_lost;    /* grows with each that goes; of no two cores the same */
};

static inline struct branch_place branch_place(u64 ip)
{
	u64 key = ip * 0x9e3779b97f4a7c15ull;

	/* What lies near stays apart in tables without history. */
	return (struct branch_place){.key = key,
				     .at = (u32)(ip >> 1 ^ ip >> 16),
				     .site = (u32)(key >> (64 - SITE_BITS))};
}

/* True: the prediction was @taken. Learns. */
bool predict_direction(struct predictor *p, u64 ip, bool taken);

/*
 * The same of @n branches that come one after the other, not taken but for the last one, which was
 * @taken. Returns how many of them were predicted wrongly, and whether the last one was. With TAGE
 * they have gone both ways.
 */
u32 predict_directions(struct predictor *p, const struct branch_place *b, u32 n, bool taken,
		       bool *last_wrong);

#define RUN_MAX 127 /* nearly as long as the longest history */

/*
 * The same if each has gone the same way for so long that it is predicted to go on, and does: then
 * there is nothing to learn. Else false, and nothing has been done. @n is 1 to 63.
 */
static inline bool predict_runs(struct predictor *p, const struct branch_place *b, u32 n,
				bool taken)
{
	const s16 *run = p->run;

	if (!run)
		return false;
	for (u32 i = 0; i + 1 < n; i++)
		if (run[b[i].site] != -RUN_MAX)
			return false;
	if (run[b[n - 1].site] != (taken ? RUN_MAX : -RUN_MAX))
		return false;
	p->history[1] = p->history[1] << n | p->history[0] >> (64 - n);
	p->history[0] = p->history[0] << n | taken;
	return true;
}

/* Whether the branch is predicted as it has always gone, and what it has done is not remembered. */
static inline bool predictor_filters(const struct predictor *p, u64 ip)
{
	return p->bias && p->bias[branch_place(ip).site] != SITE_BOTH;
}

/* The same of the target of an indirect jump or call. */
bool predict_target(struct predictor *p, u64 ip, u64 target);

static inline void predictor_call(struct predictor *p, u64 next)
{
	p->top = p->top + 1 == p->returns ? 0 : p->top + 1;
	p->stack[p->top] = next;
	p->depth += p->depth < p->returns;
}

static inline bool predict_return(struct predictor *p, u64 target)
{
	u64 predicted = p->stack[p->top];

	if (!p->depth)
		return false;
	p->depth--;
	p->top = p->top ? p->top - 1 : p->returns - 1;
	return predicted == target;
}

/* A branch has been taken to @target: for what depends on the path. */
static inline void predictor_path(struct predictor *p, u64 target)
{
	p->path = p->path << 5 ^ target >> 1;
}

#endif
