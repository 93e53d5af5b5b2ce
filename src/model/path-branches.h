/*
 * PURPOSE: the branches of a path (abi/path-trace.h) as the model takes them at once: what is the
 * same each time was worked out before, and those that TAGE does not look up (predictor.h) are left
 * out. model_branch() for each of them counts the same.
 */
#ifndef MODEL_PATH_BRANCHES_H
#define MODEL_PATH_BRANCHES_H

#include "model/model-priv.h"

struct path_branches {
	u64 targets; /* of taken ones, as predictor.path has them */
	u8 shift;    /* by which that moves, below 64 */
	u8 nr;       /* all that are counted here */
	u8 nr_conds; /* that are predicted one by one, below 64; not taken but for the last one */
	u8 taken;    /* the last one was */
	u8 nr_calls;
	u8 nr_jumps; /* looked for in the BTB */
	u8 if_right; /* the last jump is the last of those predicted: only if that was right */
	u8 reserved;
	u64 in_btb; /* all jumps are, while this is what btb_lost was */
	/* Then: struct branch_place cond[nr_conds]; u64 call[nr_calls], behind them; u64 jump[]. */
};

static inline u32 path_branches_size(const struct path_branches *b)
{
	return b->nr_conds * (u32)sizeof(struct branch_place) +
	       (b->nr_calls + b->nr_jumps) * (u32)sizeof(u64);
}

/* Direct branches that the front end learns of only when it has decoded them. */
void branch_look_in_btb(struct model_core *core, u64 ip);

/* @n were predicted wrongly. */
void branches_missed(struct model_core *core, u32 n, bool conditional);

/* An indirect branch: @kind went to @target. True: it was foretold. */
static inline bool predict_open(struct predictor *p, u64 ip, u64 next, u8 kind, u64 target)
{
	bool right;

	if (kind == MODEL_RETURN)
		return predict_return(p, target);
	right = predict_target(p, ip, target);
	if (kind == MODEL_CALL_IND)
		predictor_call(p, next);
	return right;
}

/* Jumps of a path, at @jump, of which it is not known that the BTB knows all. */
static inline void look_in_btb(struct model_core *core, struct path_branches *b, const u64 *jump,
			       bool last_wrong)
{
	u32 n = b->nr_jumps - (b->if_right && last_wrong);
	u64 before = core->predictor.btb_lost;

	if (b->in_btb == before || !n)
		return;
	for (u32 i = 0; i < n; i++)
		branch_look_in_btb(core, jump[i]);
	if (n == b->nr_jumps && core->predictor.btb_lost == before)
		b->in_btb = before;
}

/* @then is what stands behind @b. */
static inline void model_path_branches(struct model_core *core, struct path_branches *b,
				       const void *then)
{
	const struct branch_place *cond = then;
	const u64 *call = (const u64 *)(cond + b->nr_conds);
	struct predictor *p = &core->predictor;
	bool last_wrong = false;

	core->count[MODEL_BRANCH_INSTRUCTIONS] += b->nr;
	if (b->nr_conds && !predict_runs(p, cond, b->nr_conds, b->taken)) {
		u32 wrong = predict_directions(p, cond, b->nr_conds, b->taken, &last_wrong);

		if (unlikely(wrong))
			branches_missed(core, wrong, true);
	}
	for (u32 i = 0; i < b->nr_calls; i++)
		predictor_call(p, *call++);
	p->path = p->path << b->shift ^ b->targets;
	if (core->parts & MODEL_CYCLES)
		look_in_btb(core, b, call, last_wrong);
}

#endif
