/*
 * PMUs that every kernel has: tracepoints, breakpoints, kprobes and uprobes. They refuse what the
 * kernel would refuse with its errno, so that a wrong attr is not told "not supported", and what is
 * not served here with EOPNOTSUPP.
 */
#include "pmu/probes-priv.h"

#include <errno.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/event/event.h"
#include "pmu/tracepoint-filter.h"

struct probe *probe_of(const struct event *event)
{
	return (struct probe *)(uintptr_t)event->hw.priv[0];
}

const struct probe_host *probe_host_of(const struct event *event)
{
	return probes_of(event)->host;
}

int probe_opened(struct event *event, const struct probe *probe)
{
	struct probe *mine = malloc(sizeof(*mine));

	if (!mine)
		return core_refuse(event->core, -ENOMEM, NO_MEMORY, .name = {"a probe"});
	*mine = *probe;
	mine->event = event;
	list_init(&mine->armed);
	list_init(&mine->watched);
	list_add_tail(&mine->link, &probes_of(event)->opened);
	event->hw.priv[0] = (uintptr_t)mine;
	event->hw.by_tasks = !event->target;
	return 0;
}

int probe_no_branches(const struct event *event)
{
	if (!(event->attr.sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 0;
	return core_refuse(event->core, -EOPNOTSUPP, NO_BRANCHES, .name = {event->pmu->name});
}

static int kprobe_init(struct event *event)
{
	if ((s32)event->attr.type != event->pmu->type)
		return -ENOENT;
	if (!event_capable(event, CORE_CAP_PERFMON) && !event_capable(event, CORE_CAP_SYS_ADMIN))
		return core_refuse(event->core, -EACCES, CAP_KPROBE);
	return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_KPROBE);
}

void probe_closed(struct event *event)
{
	struct probe *probe = probe_of(event);

	if (probe->watch)
		probe_host_of(event)->release(probe_host_of(event)->ctx, probe);
	if (probe->kind == PROBE_KERNEL)
		probe_host_of(event)->kernel_close(probe_host_of(event)->ctx, probe);
	list_del(&probe->link);
	tp_filter_free(probe->filter);
	free(probe);
}

/* What @event has seen; its periods are a stand-in's own, and its CPU's event counts it. */
static void seen(struct event *event, u64 times)
{
	struct event *original = event->standin ? event->parent : NULL;

	event->count += (s64)times;
	if (original && original->state == EVENT_ACTIVE)
		original->count += (s64)times;
}

/* Whoever has been told of an occurrence has counted it already. */
static void probe_read(struct event *event)
{
	const struct probe_host *host = probe_host_of(event);
	struct probe *probe = probe_of(event);
	struct event *standin;
	u64 more;

	if (probe->kind != PROBE_KERNEL)
		return;
	if (host->kernel_count(host->ctx, probe, &more))
		seen(event, more);
	list_for_each_entry (standin, &event->standins, child_link)
		probe_read(standin);
}

static int start(struct event *event)
{
	const struct probe_host *host = probe_host_of(event);

	if (!(event->hw.state & HW_STOPPED))
		return 0;
	event->hw.state = 0;
	if (event->hw.by_tasks)
		return 0;
	return host->arm(host->ctx, probe_of(event));
}

/* It was on when it was added. */
static void probe_start(struct event *event, u32 flags)
{
	(void)flags;
	(void)start(event);
}

static void probe_stop(struct event *event, u32 flags)
{
	const struct probe_host *host = probe_host_of(event);

	(void)flags;
	if (event->hw.state & HW_STOPPED)
		return;
	event->hw.state = HW_STOPPED | HW_UPTODATE;
	probe_read(event);
	if (!event->hw.by_tasks)
		host->disarm(host->ctx, probe_of(event));
}

static int probe_add(struct event *event, u32 flags)
{
	int err;

	event->hw.state = HW_STOPPED;
	event_occurrences_start(event);
	if (!(flags & PMU_EF_START))
		return 0;
	err = start(event);
	if (err)
		probe_stop(event, 0);
	return err;
}

static bool is_at(const struct probe *probe, u64 addr)
{
	for (u32 i = 0; i < probe->nr_at; i++)
		if (probe->at[i] == addr)
			return true;
	return false;
}

bool probe_is_kernel(const struct event *event)
{
	return event->pmu->stop == probe_stop && probe_of(event)->kind == PROBE_KERNEL;
}

void probe_recorded(struct probe *probe, const struct sample_facts *facts)
{
	/* It may be off by now, and was on when the kernel saw this. */
	probe_read(probe->event);
	(void)event_overflow(probe->event, facts, false);
}

void probe_passed(struct probe *probe, const struct sample_facts *facts)
{
	probe_read(probe->event);
	event_occurred(probe->event, 1, facts);
}

bool probe_matches(const struct probe *probe, const struct probe_hit *hit)
{
	switch (probe->kind) {
	case PROBE_EXECUTED:
		return hit->kind == PROBE_EXECUTED && is_at(probe, hit->addr) &&
		       !probe->event->attr.exclude_user;
	case PROBE_ACCESSED:
		return hit->kind == PROBE_ACCESSED && probe->watch == hit->watch &&
		       !(hit->by_kernel ? probe->event->attr.exclude_kernel
					: probe->event->attr.exclude_user);
	case PROBE_UPROBE: return hit->kind == PROBE_EXECUTED && is_at(probe, hit->addr);
	case PROBE_KERNEL: return false;
	case PROBE_RETURN: return hit->kind == PROBE_RETURN && is_at(probe, hit->addr);
	default: break;
	}
	if (probe->kind != hit->kind)
		return false;
	/*
	 * What fires for any call has the kernel's instruction, which an event that excludes the
	 * kernel does not see [TYPE-03].
	 */
	if (probe->nr == PROBE_ANY_CALL)
		return !probe->event->attr.exclude_kernel;
	return probe->nr == hit->nr && !hit->other_mode;
}

static bool is_breakpoint(const struct probe *probe)
{
	return probe->kind == PROBE_EXECUTED || probe->kind == PROBE_ACCESSED;
}

/* What stands in RAW; 0: nothing. */
static u32 record_of(const struct probe *probe, const struct probe_hit *hit, u8 *record)
{
	if (probe->format)
		return tracepoint_record(probe, hit, record);
	if (is_breakpoint(probe))
		return 0;
	return uprobe_record(probe, hit, record);
}

void probe_happened(struct probe *probe, const struct probe_hit *hit,
		    const struct sample_facts *facts)
{
	struct event *event = probe->event;
	struct event *original = event->parent ? event->parent : event;
	const struct tp_filter *filter = probe_of(original)->filter;
	const struct tp_context context = {hit->cpu, hit->comm};
	struct sample_facts mine = *facts;
	u8 record[TP_SIZE_MAX + 8];

	if (event->state != EVENT_ACTIVE || event->hw.state & HW_STOPPED)
		return;
	mine.sample.raw.len = record_of(probe, hit, record);
	if (mine.sample.raw.len) {
		mine.sample.raw.bytes = record;
		mine.has |= PERF_SAMPLE_RAW;
	}
	if (filter && !tp_filter_passes(filter, record, &context))
		return;
	if (is_breakpoint(probe)) {
		mine.has |= PERF_SAMPLE_ADDR;
		mine.sample.addr = probe->at[0];
	}
	seen(event, 1);
	event_occurred(event, 1, &mine);
}

static const struct pmu_file kprobe_files[] = {{"format/retprobe", "config:0\n"}, {0}};

static const struct pmu_file uprobe_files[] = {
	{"format/retprobe", "config:0\n"},
	{"format/ref_ctr_offset", "config:32-63\n"},
	{0},
};

int probe_pmus_new(struct core *core, const struct probe_pmu_config *config,
		   struct probe_pmus **out)
{
	const struct pmu table[PROBE_PMUS] = {
		[TRACEPOINT] = {.name = "tracepoint",
				.type = PERF_TYPE_TRACEPOINT,
				.event_init = tracepoint_init,
				.set_filter = tracepoint_set_filter,
				.set_bpf = tracepoint_set_bpf},
		[BREAKPOINT] = {.name = "breakpoint",
				.type = PERF_TYPE_BREAKPOINT,
				.event_init = breakpoint_init,
				.modify = breakpoint_modify},
		[KPROBE] = {.name = "kprobe",
			    .type = config->kprobe_type,
			    .files = kprobe_files,
			    .event_init = kprobe_init},
		[UPROBE] = {.name = "uprobe",
			    .type = config->uprobe_type,
			    .files = uprobe_files,
			    .event_init = uprobe_init},
	};
	struct probe_pmus *probes = calloc(1, sizeof(*probes));
	int err;

	if (!probes)
		return -ENOMEM;
	probes->host = config->host;
	list_init(&probes->opened);
	for (int i = 0; i < PROBE_PMUS; i++) {
		struct pmu *pmu = &probes->pmus[i];

		*pmu = table[i];
		if (pmu->type < 0)
			continue;
		pmu->priv = probes;
		pmu->class = PMU_SOFTWARE;
		pmu->add = probe_add;
		pmu->del = pmu->stop = probe_stop;
		pmu->start = probe_start;
		pmu->read = probe_read;
		pmu->destroy = probe_closed;
		err = pmu_register(core, pmu);
		if (err) {
			/* The core keeps those that are registered already; it ends before them. */
			*out = probes;
			return err;
		}
	}
	*out = probes;
	return 0;
}

void probe_pmus_free(struct probe_pmus *probes)
{
	free(probes);
}
