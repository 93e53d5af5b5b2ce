/* The drivers of probes.h among themselves. */
#ifndef PMU_PROBES_PRIV_H
#define PMU_PROBES_PRIV_H

#include "core/event/event.h"
#include "pmu/drivers.h"
#include "pmu/probes.h"

enum { TRACEPOINT, BREAKPOINT, KPROBE, UPROBE, PROBE_PMUS };

struct probe_pmus {
	struct pmu pmus[PROBE_PMUS];
	const struct probe_host *host; /* NULL: nothing is counted */
	struct list opened;            /* struct probe */
};

static inline struct probe_pmus *probes_of(const struct event *event)
{
	return event->pmu->priv;
}

/* The last step of event_init(): @event waits for what @probe says. 0 or -ENOMEM. */
int must_check probe_opened(struct event *event, const struct probe *probe);
/* Undoes it. */
void probe_closed(struct event *event);
const struct probe_host *probe_host_of(const struct event *event);
/* Refuses what no PMU of these can record. */
int must_check probe_no_branches(const struct event *event);

/* breakpoint.c */
int breakpoint_init(struct event *event);
int breakpoint_modify(struct event *event, const struct pe_attr *attr);

/* uprobe.c */
int uprobe_init(struct event *event);
u32 uprobe_record(const struct probe *probe, const struct probe_hit *hit, u8 *record);

/* call-tracepoint.c */
int tracepoint_init(struct event *event);
int tracepoint_set_filter(struct event *event, const char *text);
int tracepoint_set_bpf(struct event *event);
/* The record of @hit, as long as the kernel makes it; 0: it has none. */
u32 tracepoint_record(const struct probe *probe, const struct probe_hit *hit, u8 *record);

#endif
