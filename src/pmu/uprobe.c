/* Probes of instructions of a file, and of returns from functions there [TYPE-08, ATTR-54]. */
#include "pmu/probes-priv.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/core.h"
#include "core/event/event.h"

static int find_file(struct event *event, struct probe_file *file)
{
	const struct probe_host *host = probe_host_of(event);
	const char *path = event_path(event);
	int err;

	if (event->parent) {
		*file = probe_of(event->parent)->file;
		return 0;
	}
	/* It is there, but cannot be read to its end, or not at all. */
	if (!path)
		return core_refuse(event->core, -EFAULT, PROBE_PLACE);
	if (strlen(path) >= PATH_MAX)
		return core_refuse(event->core, -E2BIG, PROBE_LONG);
	err = *path ? host->file(host->ctx, event_opener(event), path, event->attr.probe_offset,
				 file)
		    : -EINVAL;
	return err ? core_refuse_default(event->core, err, PROBE_PLACE) : 0;
}

int uprobe_init(struct event *event)
{
	struct probe probe = {0};
	int err;

	if ((s32)event->attr.type != event->pmu->type)
		return -ENOENT;
	if (!event->parent && !event_capable(event, CORE_CAP_SYS_ADMIN))
		return core_refuse(event->core, -EACCES, CAP_UPROBE);
	err = probe_no_branches(event);
	if (err)
		return err;
	if (!event->attr.uprobe_path)
		return core_refuse(event->core, -EINVAL, PROBE_PATH);
	if (!probe_host_of(event))
		return core_refuse(event->core, -EOPNOTSUPP, VIRTUAL_UPROBE);
	err = find_file(event, &probe.file);
	if (err)
		return err;
	probe.kind = event->attr.config & 1 ? PROBE_RETURN : PROBE_UPROBE;
	probe.offset = event->attr.probe_offset;
	return probe_opened(event, &probe);
}

/* Behind what all records begin with: the instruction, or function and return address. */
u32 uprobe_record(const struct probe *probe, const struct probe_hit *hit, u8 *record)
{
	const u64 words[2] = {hit->addr, hit->ret};
	u32 size = probe->kind == PROBE_RETURN ? 16 : 8;

	memset(record, 0, 32);
	memcpy(record + 4, &hit->tid, 4);
	memcpy(record + 8, words, size);
	return ALIGN_UP(8 + size + 4, 8u) - 4;
}
