/*
 * Intel counts instructions by type and width, AMD operations by kind: an element each, two for one
 * that is multiplied and added.
 */
#include "model/floats.h"

#include "model/model-priv.h"

static u32 elements(u32 type, u32 width)
{
	static const u8 bytes[] = {
		[FLOATS_SINGLE] = 4, [FLOATS_DOUBLE] = 8, [FLOATS_HALF] = 2, [FLOATS_BF16] = 2};

	return width == FLOATS_SCALAR ? 1 : (8u << width) / bytes[type];
}

static void count_flops(struct model_core *core, u32 op, u32 type, u64 flops)
{
	static const u8 kinds[] = {
		[FLOATS_ADD] = MODEL_ADD, [FLOATS_MUL] = MODEL_MUL, [FLOATS_DIV] = MODEL_DIV};

	if (type == FLOATS_BF16)
		core->count[MODEL_FLOPS_BF16] += 2 * flops;
	else if (op == FLOATS_FUSED)
		core->count[model_flops_counter(MODEL_FUSED, type == FLOATS_DOUBLE)] += 2 * flops;
	else
		core->count[model_flops_counter(kinds[op], type == FLOATS_DOUBLE)] += flops;
}

void model_floats(struct model_core *core, u16 work, u64 times)
{
	u32 op = work & 7, type = work >> 3 & 3, width = work >> 5 & 3, set = work >> 7 & 3;
	u64 flops = times * elements(type, width);

	/* What is asked for stands where others may write. */
	if (op > FLOATS_OTHER)
		op = FLOATS_NONE;
	if (set)
		core->count[MODEL_INSNS_X87 + set - FLOATS_X87] += times;
	if (op == FLOATS_DOT) {
		count_flops(core, FLOATS_MUL, type, flops);
		count_flops(core, FLOATS_ADD, type, flops);
	} else if (op != FLOATS_NONE && op != FLOATS_OTHER && type != FLOATS_HALF) {
		count_flops(core, op, type, flops);
	}
	if (op != FLOATS_NONE && type <= FLOATS_DOUBLE)
		core->count[model_float_insns_counter(width, type == FLOATS_DOUBLE)] +=
			op == FLOATS_FUSED || op == FLOATS_DOT ? 2 * times : times;
}
