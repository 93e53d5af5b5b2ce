/*
 * Records that are no samples [REC-01..22]: what a task does, told to the events that asked for it.
 * Those are the events of the CPU that it is on and those of its own context, if they are on and
 * for that CPU [REC-21]; which of them, each kind of record knows by the attr.
 */
#include "core/core-priv.h"

struct sideband {
	/* Does @event want it? Then what of @rec depends on the event is filled in. */
	bool (*wanted)(const struct sideband *sb, const struct event *event, struct ap_record *rec);
	struct task *current; /* who does it: the trailer's */
	struct task *task;    /* whom it is about */
	const struct task_map *map;
	const struct task_switch *sw;
	struct ap_record record;
};

static void ids(const struct event *event, const struct task *task, u32 *pid, u32 *tid)
{
	const struct core *core = event->core;

	*pid = (u32)task->tgid;
	*tid = (u32)task->tid;
	if (core->ops->record_ids)
		core->ops->record_ids(core->ctx, event, task, pid, tid);
}

static void tell(const struct sideband *sb, struct event *event, u32 cpu)
{
	struct ap_record rec = sb->record;

	/* The original has it. */
	if (event->standin)
		return;
	if (event->state < EVENT_INACTIVE || (event->cpu != -1 && (u32)event->cpu != cpu))
		return;
	if (event->cgroup && !cgroup_active(event->cgroup, &event->core->cpus[cpu]))
		return;
	if (sb->wanted(sb, event, &rec))
		output_record(event, &rec, sb->current, 0);
}

static void tell_ctx(const struct sideband *sb, struct ctx *ctx)
{
	struct event *event;

	list_for_each_entry (event, &ctx->events, ctx_link)
		tell(sb, event, sb->current->last_cpu);
}

static void tell_cpu(const struct sideband *sb)
{
	tell_ctx(sb, sb->current->core->cpus[sb->current->last_cpu].ctx);
}

static void tell_all(const struct sideband *sb)
{
	core_refusal_clear(sb->current->core);
	tell_cpu(sb);
	if (sb->current->ctx)
		tell_ctx(sb, sb->current->ctx);
}

/* mmap2 is another form, and asks for nothing by itself. */
static bool wants_map(const struct sideband *sb, const struct event *event, struct ap_record *rec)
{
	const struct pe_attr *attr = &event->attr;

	if (sb->map->executable ? !attr->mmap && !(attr->mmap2 && attr->mmap_data)
				: !attr->mmap_data)
		return false;
	ids(event, sb->task, &rec->mmap.pid, &rec->mmap.tid);
	if (!attr->mmap2)
		return true;
	rec->type = PERF_RECORD_MMAP2;
	if (attr->build_id && sb->map->build_id_size)
		rec->misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	return true;
}

void task_mapped(struct task *task, const struct task_map *map)
{
	struct sideband sb = {
		.wanted = wants_map,
		.current = task,
		.task = task,
		.map = map,
		.record = {.type = PERF_RECORD_MMAP,
			   .misc = PERF_RECORD_MISC_USER,
			   .mmap = {.addr = map->addr,
				    .len = map->len,
				    .pgoff = map->offset,
				    .filename = map->filename,
				    .maj = map->maj,
				    .min = map->min,
				    .ino = map->ino,
				    .ino_generation = map->ino_generation,
				    .prot = map->prot,
				    .flags = map->flags,
				    .build_id = map->build_id,
				    .build_id_size = map->build_id_size}},
	};

	if (!map->executable)
		sb.record.misc |= PERF_RECORD_MISC_MMAP_DATA;
	tell_all(&sb);
}

static bool wants_comm(const struct sideband *sb, const struct event *event, struct ap_record *rec)
{
	ids(event, sb->task, &rec->comm.pid, &rec->comm.tid);
	return event->attr.comm;
}

void task_named(struct task *task, const char *comm, bool exec)
{
	struct sideband sb = {
		.wanted = wants_comm,
		.current = task,
		.task = task,
		.record = {.type = PERF_RECORD_COMM,
			   .misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
			   .comm.comm = comm},
	};

	tell_all(&sb);
}

static bool wants_tasks(const struct event *event)
{
	const struct pe_attr *attr = &event->attr;

	return attr->task || attr->comm || attr->mmap || attr->mmap2 || attr->mmap_data;
}

static bool wants_fork(const struct sideband *sb, const struct event *event, struct ap_record *rec)
{
	ids(event, sb->task, &rec->task.pid, &rec->task.tid);
	ids(event, sb->current, &rec->task.ppid, &rec->task.ptid);
	rec->task.time = event_clock(event);
	return wants_tasks(event);
}

void sideband_fork(struct task *child)
{
	struct task *parent = child->forker;
	struct sideband sb = {
		.wanted = wants_fork,
		.current = parent,
		.task = child,
		.record.type = PERF_RECORD_FORK,
	};

	/* What the kernel calls it the host learns later, if it comes to be. */
	if (!parent || !child->tid)
		return;
	child->forker = NULL;
	tell_all(&sb);
	task_namespaces(parent, child);
	task_put(parent);
}

/* The parent's pid stands in both places, as the kernel has it. */
static bool wants_exit(const struct sideband *sb, const struct event *event, struct ap_record *rec)
{
	const struct core *core = event->core;

	ids(event, sb->task, &rec->task.pid, &rec->task.tid);
	rec->task.ppid = (u32)sb->task->parent_tgid;
	if (core->ops->parent_pid)
		rec->task.ppid = core->ops->parent_pid(core->ctx, event, sb->task);
	rec->task.ptid = rec->task.ppid;
	rec->task.time = event_clock(event);
	return wants_tasks(event);
}

void sideband_exit(struct task *task)
{
	struct sideband sb = {
		.wanted = wants_exit,
		.current = task,
		.task = task,
		.record.type = PERF_RECORD_EXIT,
	};

	if (task->forker)
		return;
	if (task->ctx)
		tell_ctx(&sb, task->ctx);
	else
		tell_cpu(&sb);
}

void sideband_read(struct event *event, struct task *task)
{
	struct ap_record rec = {.type = PERF_RECORD_READ};

	if (!output_wanted(event))
		return;
	ids(event, task, &rec.read.pid, &rec.read.tid);
	rec.read.read = sample_read_block(event);
	output_record(event, &rec, task, 0);
}

static bool wants_namespaces(const struct sideband *sb, const struct event *event,
			     struct ap_record *rec)
{
	ids(event, sb->task, &rec->namespaces.pid, &rec->namespaces.tid);
	return event->attr.namespaces;
}

void task_namespaces(struct task *current, struct task *task)
{
	const struct core *core = current->core;
	struct perf_ns_link_info links[NR_NAMESPACES];
	struct sideband sb = {
		.wanted = wants_namespaces,
		.current = current,
		.task = task,
		.record = {.type = PERF_RECORD_NAMESPACES, .namespaces = {.links = links}},
	};

	if (core->ops->namespaces)
		sb.record.namespaces.nr = core->ops->namespaces(core->ctx, task, links);
	if (sb.record.namespaces.nr)
		tell_all(&sb);
}

static bool wants_cgroup(const struct sideband *sb, const struct event *event,
			 struct ap_record *rec)
{
	(void)sb, (void)rec;
	return event->attr.cgroup;
}

void task_made_cgroup(struct task *task, u64 id, const char *path)
{
	struct sideband sb = {
		.wanted = wants_cgroup,
		.current = task,
		.record = {.type = PERF_RECORD_CGROUP, .cgroup = {.id = id, .path = path}},
	};

	tell_all(&sb);
}

static bool wants_kernel_record(const struct sideband *sb, const struct event *event,
				struct ap_record *rec)
{
	(void)sb;
	return rec->type == PERF_RECORD_KSYMBOL     ? event->attr.ksymbol
	       : rec->type == PERF_RECORD_BPF_EVENT ? event->attr.bpf_event
						    : event->attr.text_poke;
}

void task_kernel_record(struct task *task, const struct ap_record *rec)
{
	struct sideband sb = {.wanted = wants_kernel_record, .current = task, .record = *rec};

	tell_all(&sb);
}

/* Only who counts a CPU may know who else is on it. */
static bool wants_switch(const struct sideband *sb, const struct event *event,
			 struct ap_record *rec)
{
	if (!event->ctx->task) {
		rec->type = PERF_RECORD_SWITCH_CPU_WIDE;
		rec->context_switch.next_prev_pid = sb->sw->other_pid;
		rec->context_switch.next_prev_tid = sb->sw->other_tid;
	}
	return event->attr.context_switch;
}

void task_switched(struct task *task, const struct task_switch *sw)
{
	struct sideband sb = {
		.wanted = wants_switch,
		.current = task,
		.sw = sw,
		.record.type = PERF_RECORD_SWITCH,
	};

	if (sw->out)
		sb.record.misc = PERF_RECORD_MISC_SWITCH_OUT;
	if (sw->out && sw->preempted)
		sb.record.misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	tell_all(&sb);
}

void event_lost_samples(struct event *event, u64 lost)
{
	struct ap_record rec = {.type = PERF_RECORD_LOST_SAMPLES, .lost.lost = lost};

	output_record(event, &rec, event_on_task(event), 0);
}
