/* Branches, one by one and those of a path. */
#include "model/path-branches.h"

/* A direct branch that the front end learns of only when it has decoded it. */
void branch_look_in_btb(struct model_core *core, u64 ip)
{
	struct tags *btb = &core->predictor.btb;
	u64 key = ip << 4 | TAG_VALID;
	u32 set = tags_set(btb, ip ^ ip >> 7);

	if (tags_touch(btb, set, key))
		return;
	/* What is known of paths ends when one is lost. */
	if (tags_insert(btb, set, key))
		core->predictor.btb_lost += MODEL_CORES;
	count(core, MODEL_BTB_MISSES);
	lose_front(core, core->model->machine.penalty.btb);
}

bool model_branch(struct model_core *core, u64 ip, u64 next, enum model_branch_kind kind,
		  bool taken, u64 target)
{
	struct predictor *p = &core->predictor;
	bool right = true;

	count(core, MODEL_BRANCH_INSTRUCTIONS);
	switch (kind) {
	case MODEL_COND: right = predict_direction(p, ip, taken); break;
	case MODEL_JUMP: break;
	case MODEL_CALL: predictor_call(p, next); break;
	case MODEL_JUMP_IND: right = predict_target(p, ip, target); break;
	case MODEL_CALL_IND:
		right = predict_target(p, ip, target);
		predictor_call(p, next);
		break;
	case MODEL_RETURN: right = predict_return(p, target); break;
	}
	if (taken) {
		predictor_path(p, target);
		if (core->parts & MODEL_CYCLES && right)
			branch_look_in_btb(core, ip);
	}
	if (likely(right))
		return false;
	branches_missed(core, 1, kind == MODEL_COND);
	return true;
}

void branches_missed(struct model_core *core, u32 n, bool conditional)
{
	core->count[MODEL_BRANCH_MISSES] += n;
	if (conditional)
		core->count[MODEL_CONDITIONAL_MISSES] += n;
	if (core->parts & MODEL_CYCLES)
		lose_front(core, core->model->machine.penalty.mispredict * n);
}
