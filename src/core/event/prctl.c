/*
 * prctl(PR_TASK_PERF_EVENTS_DISABLE, ENABLE): every event that the calling thread opened, leaders
 * and members, whatever it counts; not what others opened on the caller [PRC-01..03].
 */
#include "core/core-priv.h"

int perf_prctl(struct task *caller, bool enable)
{
	struct event *event;

	core_refusal_clear(caller->core);
	list_for_each_entry (event, &caller->owned, owner_link)
		event_each_child(event, enable ? event_enable : event_disable);
	core_settle(caller->core);
	return 0;
}
