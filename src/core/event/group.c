/* Groups [GRP]: who may lead and join, and what becomes of the members when a leader goes. */
#include "core/core-priv.h"

void group_attach(struct event *event)
{
	struct event *leader = event->leader;

	if (leader == event || !list_empty(&event->sibling_link))
		return;
	CHECK(leader->ctx == event->ctx);
	if (!event_is_software(event))
		leader->group_pure_sw = false;
	list_add_tail(&event->sibling_link, &leader->siblings);
	leader->nr_siblings++;
	leader->group_generation++;
}

/*
 * Members become groups of their own, where they are and as they are: what counts goes on counting.
 */
static void promote(struct event *sibling, const struct event *leader)
{
	sibling->leader = sibling;
	event_changed(sibling);
	list_del(&sibling->sibling_link);
	sibling->group_pure_sw = leader->group_pure_sw;
	if (!sibling->in_ctx)
		return;
	ctx_insert_group(sibling->ctx, sibling);
	if (sibling->state == EVENT_ACTIVE)
		list_add_tail(&sibling->active_link, event_active_list(sibling));
}

void group_detach(struct event *event)
{
	struct event *leader = event->leader, *sibling, *tmp;

	if (leader != event) {
		if (list_empty(&event->sibling_link))
			return;
		list_del(&event->sibling_link);
		leader->nr_siblings--;
		leader->group_generation++;
		event->leader = event;
		return;
	}
	list_for_each_entry_safe (sibling, tmp, &event->siblings, sibling_link)
		promote(sibling, event);
	event->nr_siblings = 0;
	event->group_generation++;
}

u64 group_read_size(u64 read_format, u32 nr_siblings)
{
	u64 entry = 8, nr = 1, size = 0;

	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		size += 8;
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		size += 8;
	if (read_format & PERF_FORMAT_ID)
		entry += 8;
	if (read_format & PE_FORMAT_LOST)
		entry += 8;
	if (read_format & PERF_FORMAT_GROUP) {
		nr += nr_siblings;
		size += 8;
	}
	return size + nr * entry;
}

/* With @event as one more member: may everyone in the group still be read [GRP-16]? */
bool group_size_valid(const struct event *event)
{
	const struct event *leader = event->leader, *sibling;
	u32 nr = leader->nr_siblings + 1;

	if (group_read_size(event->attr.read_format, nr) > EVENT_READ_MAX ||
	    group_read_size(leader->attr.read_format, nr) > EVENT_READ_MAX)
		return false;
	list_for_each_entry (sibling, &leader->siblings, sibling_link)
		if (group_read_size(sibling->attr.read_format, nr) > EVENT_READ_MAX)
			return false;
	return true;
}

int group_check(struct core *core, struct event *event, struct ctx *ctx, struct pmu **sched_pmu,
		bool *move)
{
	struct event *leader = event->leader;

	*sched_pmu = event->pmu;
	*move = false;
	if (leader == event)
		return 0;
	if (!event_is_leader(leader))
		return core_refuse(core, -EINVAL, GROUP_MEMBER);
	if (leader->clockid != event->clockid)
		return core_refuse(core, -EINVAL, GROUP_CLOCK);
	if (leader->cpu != event->cpu)
		return core_refuse(core, -EINVAL, GROUP_CPU, .number = {event->cpu, leader->cpu});
	if (leader->ctx != ctx)
		return core_refuse(core, -EINVAL, GROUP_TARGET);
	if (event->attr.exclusive || event->attr.pinned)
		return core_refuse(core, -EINVAL, GROUP_LEADERS_ONLY,
				   .name = {event->attr.pinned ? "pinned" : "exclusive"});
	if (event_is_software(event)) {
		*sched_pmu = leader->epc->pmu;
		return 0;
	}
	if (event_is_software(leader) && leader->group_pure_sw) {
		*move = leader->epc->pmu != event->pmu;
		return 0;
	}
	if (leader->epc->pmu != event->pmu)
		return core_refuse(core, -EINVAL, GROUP_PMU,
				   .name = {leader->epc->pmu->name, event->pmu->name});
	return 0;
}
