/* TLBs: a first level for instructions and one for data, a second one for both. */
#include "model/model-priv.h"

static bool is_huge(const struct model *model, u64 addr)
{
	for (u32 i = 0; i < model->nr_huge; i++)
		if (addr >= model->huge[i].start && addr < model->huge[i].end)
			return true;
	return false;
}

enum model_tlb_source tlb_lookup_other(struct model_core *core, enum machine_tlb_id id, u64 addr,
				       u32 op)
{
	struct model *model = core->model;
	const struct machine *m = &model->machine;
	bool huge = unlikely(model->nr_huge) && is_huge(model, addr);
	u64 page = addr >> (huge ? model->huge_shift : model->page_shift);
	u64 key = tlb_key(page, huge);
	struct tags *l1 =
		&core->tlb[id][huge && core->tlb[id][TLB_HUGE].sets ? TLB_HUGE : TLB_SMALL];
	struct tags *l2 = &core->tlb[MACHINE_TLB2][TLB_SMALL];
	u32 set = tags_set(l1, page), set2;

	if (likely(tags_touch(l1, set, key)))
		return MODEL_TLB_L1;
	tags_insert(l1, set, key);
	if (l2->sets) {
		set2 = tags_set(l2, page);
		if (tags_touch(l2, set2, key)) {
			count(core, MODEL_TLB2_HITS);
			if (id == MACHINE_ITLB)
				count(core, MODEL_ITLB2_HITS);
			if (core->parts & MODEL_CYCLES)
				lose(core, m->penalty.tlb2);
			return MODEL_TLB_L2;
		}
		tags_insert(l2, set2, key);
	}
	count_cache(core, id == MACHINE_ITLB ? MODEL_ITLB : MODEL_DTLB, op, true);
	core->unsure[UNSURE_PAGE + tlb_sight(id, op)]++;
	if (core->parts & MODEL_CYCLES)
		lose(core, m->penalty.walk);
	return MODEL_TLB_WALK;
}

bool model_huge_pages(struct model *model, u64 start, u64 end, bool huge)
{
	u32 n = 0;

	for (u32 i = 0; i < model->active; i++)
		if (model->core[i])
			model->core[i]->data_page = 0;
	/* What lies in the range goes; of a range that reaches beyond the rest stays. */
	for (u32 i = 0; i < model->nr_huge; i++) {
		struct huge_range r = model->huge[i];

		if (r.start < start && r.end > end) {
			if (huge)
				return true;
			if (model->nr_huge == MODEL_HUGE_RANGES)
				return false;
			model->huge[i].end = start;
			model->huge[model->nr_huge++] = (struct huge_range){end, r.end};
			return true;
		}
	}
	for (u32 i = 0; i < model->nr_huge; i++) {
		struct huge_range r = model->huge[i];

		if (r.end > start && r.end <= end)
			r.end = r.start < start ? start : r.start;
		else if (r.start >= start && r.start < end)
			r.start = end;
		if (r.start < r.end)
			model->huge[n++] = r;
	}
	model->nr_huge = n;
	if (!huge || start >= end)
		return true;
	if (n == MODEL_HUGE_RANGES)
		return false;
	model->huge[model->nr_huge++] = (struct huge_range){start, end};
	return true;
}
