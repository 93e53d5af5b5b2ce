/* Tracepoints of system calls [TYPE-03, IOC-07, SAMP-11]. */
#include "pmu/probes-priv.h"

#include <errno.h>
#include <string.h>

#include "core/core.h"
#include "core/event/event.h"
#include "pmu/tracepoint-filter.h"

/*
 * Raw data tells what the kernel does; of one's own system calls everybody may know. Copies were
 * allowed with their original.
 */
static int check_raw(const struct event *event, bool of_calls)
{
	int level = core_sysctl(event->core)->paranoid;

	if (event->parent || (event->target && of_calls) ||
	    !(event->attr.sample_type & PERF_SAMPLE_RAW) || level <= -1 ||
	    event_capable(event, CORE_CAP_PERFMON))
		return 0;
	return core_refuse(event->core, -EPERM, PARANOID_RAW, .number = {(u64)(s64)level, (u64)-1});
}

/* One that fires in the kernel, which has an event of its own for it. */
static int kernel_init(struct event *event)
{
	const struct probe_host *host = probe_host_of(event);
	struct probe probe = {.event = event, .kind = PROBE_KERNEL, .anchor = -1};
	int err;

	/* A copy was allowed with its original. */
	err = event->parent ? 0 : host->kernel_open(host->ctx, &probe);
	if (err)
		return core_refuse(event->core, err, VIRTUAL_TRACEPOINT_HOST,
				   .name = {strerror(-err)});
	err = probe_opened(event, &probe);
	if (err && probe.anchor >= 0)
		host->kernel_close(host->ctx, &probe);
	event->hw.host_periods = true;
	return err;
}

int tracepoint_init(struct event *event)
{
	const struct probe_host *host = probe_host_of(event);
	struct probe_tracepoint tp = {0};
	int err;

	if (event->attr.type != PERF_TYPE_TRACEPOINT)
		return -ENOENT;
	err = probe_no_branches(event);
	if (err)
		return err;
	err = host ? host->tracepoint(host->ctx, event->attr.config, &tp) : -EOPNOTSUPP;
	if (err == -ENOENT)
		return core_refuse(event->core, -EINVAL, TRACEPOINT_ID);
	if (err)
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_TRACEPOINT);
	err = check_raw(event, tp.kind != PROBE_KERNEL);
	if (err)
		return err;
	if (tp.kind == PROBE_KERNEL)
		return kernel_init(event);
	return probe_opened(event, &(struct probe){.kind = tp.kind,
						   .nr = tp.nr,
						   .type = (u16)event->attr.config,
						   .format = tp.format});
}

int tracepoint_set_filter(struct event *event, const char *text)
{
	const struct probe_host *host = probe_host_of(event);
	struct probe *probe = probe_of(event);
	int err;

	if (probe->kind == PROBE_KERNEL) {
		err = host->kernel_filter(host->ctx, probe, text);
		if (err == -EEXIST)
			return core_refuse(event->core, err, FILTER_HAS_ONE);
		return err ? core_refuse(event->core, err, FILTER_TEXT, .name = {text}) : 0;
	}
	if (probe->filter)
		return core_refuse(event->core, -EEXIST, FILTER_HAS_ONE);
	err = tp_filter_parse(probe->format, text, &probe->filter);
	if (err == -EOPNOTSUPP)
		return core_refuse(event->core, err, VIRTUAL_FILTER, .name = {text});
	if (err && err != -ENOMEM)
		return core_refuse(event->core, err, FILTER_TEXT, .name = {text});
	return err;
}

/* It runs in the kernel, where the tracepoint fires. */
int tracepoint_set_bpf(struct event *event)
{
	const struct probe_host *host = probe_host_of(event);
	struct probe *probe = probe_of(event);
	int err;

	if (probe->kind != PROBE_KERNEL)
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_BPF);
	err = host->kernel_bpf(host->ctx, probe);
	if (err == -EEXIST)
		return core_refuse(event->core, err, BPF_HAS_ONE);
	return err ? core_refuse(event->core, err, CALL_ERRNO,
				 .name = {"attaching a BPF program", strerror(-err)})
		   : 0;
}

static void put(u8 *record, u32 at, u64 value, u32 size)
{
	memcpy(record + at, &value, size);
}

/*
 * As the kernel lays them out: of one call its number has 4 bytes and what follows begins at 16; of
 * any call the number has 8. With the size in front of it a record is a multiple of 8.
 */
u32 tracepoint_record(const struct probe *probe, const struct probe_hit *hit, u8 *record)
{
	/* Behind the number there is room for the arguments, if there are any. */
	u32 size = probe->format->size < 16 ? 16 : probe->format->size;

	memset(record, 0, TP_SIZE_MAX + 8);
	put(record, 0, probe->type, 2);
	put(record, 4, hit->tid, 4);
	put(record, 8, (u64)hit->nr, probe->nr == PROBE_ANY_CALL ? 8 : 4);
	for (u32 i = 0; i < 6 && 24 + i * 8 <= size; i++)
		put(record, 16 + i * 8, hit->args[i], 8);
	return ALIGN_UP(size + 4, 8u) - 4;
}
