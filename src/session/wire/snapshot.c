/*
 * Event snapshots: from one, the thread that an event counts reads the event without asking the
 * session. That is exact as long as every change of the event's state is in the snapshot before the
 * thread can look. A thread that is in the call which changes something finds the snapshots
 * revalidated when it returns. Others run on, so a gate in its meter is closed before anything is
 * looked at or changed of a thread: who reads meanwhile has to ask, and is answered after the
 * change.
 *
 * There is no snapshot of what is not the thread's own doing: groups, events with living children,
 * software events and events bound to a CPU.
 */
#include <string.h>

#include "session/session-priv.h"

void snapshot_init(struct event_snapshot *snapshot)
{
	list_init(&snapshot->link);
	list_init(&snapshot->changed_link);
}

static void mark_changed(struct perf_file *file)
{
	if (list_empty(&file->snapshot.changed_link))
		list_add_tail(&file->snapshot.changed_link, &file->s->files.changed);
}

void snapshot_take(struct perf_file *file, struct guest_process *owner)
{
	struct process_snapshots *all = &owner->snapshots;
	u32 i;

	if (!owner->page)
		return;
	for (i = 0; i < WIRE_SNAPSHOTS && bitmap_test(all->used, i); i++)
		if (all->used[i / 64] == ~0ull)
			i |= 63;
	if (i == WIRE_SNAPSHOTS)
		return;
	bitmap_set(all->used, i);
	list_add_tail(&file->snapshot.link, &all->files);
	file->snapshot.owner = owner;
	file->snapshot.index = i + 1;
	mark_changed(file);
}

static struct wire_snapshot *shared(const struct perf_file *file)
{
	return &file->snapshot.owner->page->snapshots[file->snapshot.index - 1];
}

static void write_snapshot(struct perf_file *file, const struct wire_snapshot *snapshot)
{
	u32 *seq = &file->snapshot.owner->snapshots.seq[file->snapshot.index - 1];
	struct wire_snapshot *to = shared(file);

	__atomic_store_n(&to->seq, *seq + 1, __ATOMIC_RELAXED);
	/* Mate: perf_snapshot_read() in rt/perf/perf-open.c. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((u8 *)to + sizeof(to->seq), (const u8 *)snapshot + sizeof(snapshot->seq),
	       sizeof(*to) - sizeof(to->seq));
	*seq += 2;
	__atomic_store_n(&to->seq, *seq, __ATOMIC_RELEASE);
}

void snapshot_drop(struct perf_file *file)
{
	static const struct wire_snapshot none;
	struct event_snapshot *own = &file->snapshot;

	if (!own->index)
		return;
	write_snapshot(file, &none);
	bitmap_clear(own->owner->snapshots.used, own->index - 1);
	list_del(&own->link);
	list_del(&own->changed_link);
	own->owner = NULL;
	own->index = 0;
}

void snapshots_drop(struct guest_process *owner)
{
	struct perf_file *file, *tmp;

	list_for_each_entry_safe (file, tmp, &owner->snapshots.files, snapshot.link)
		snapshot_drop(file);
}

static struct guest_thread *counted(const struct event *event)
{
	return event->target ? task_host(event->target) : NULL;
}

void snapshot_event_changed(void *ctx, struct event *event)
{
	struct perf_file *file = event_host(event);
	struct guest_thread *th = counted(event);

	(void)ctx;
	if (!file || !file->snapshot.index)
		return;
	if (th)
		snapshots_invalidate(th);
	mark_changed(file);
}

void snapshots_invalidate(struct guest_thread *th)
{
	struct session *s = th->process->s;
	struct meter *m;

	instant_check(s);
	if (th == s->instant.caller || !list_empty(&th->invalid_link))
		return;
	list_add_tail(&th->invalid_link, &s->instant.invalid);
	m = guest_thread_meter(th);
	if (!m)
		return;
	__atomic_store_n(&m->snapshot_gate, 2 * s->instant.begun + 1, __ATOMIC_RELAXED);
	/*
	 * Before its meter and clock are read; mate: perf_snapshot_read() in rt/perf/perf-open.c.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* What @th reads from here on is not less than what has been read of it. */
static void open_gate(struct guest_thread *th)
{
	struct meter *m = guest_thread_meter(th);
	bool closed = !list_empty(&th->invalid_link);

	list_del(&th->invalid_link);
	if (!m)
		return;
	__atomic_store_n(&m->snapshot_clock, th->clock.cpu_time, __ATOMIC_RELAXED);
	if (closed)
		__atomic_store_n(&m->snapshot_gate, 2 * th->process->s->instant.begun + 2,
				 __ATOMIC_RELEASE);
}

void snapshots_thread_leaves(struct guest_thread *th)
{
	if (!list_empty(&th->invalid_link))
		open_gate(th);
}

void snapshots_thread_moved(struct guest_thread *th)
{
	struct perf_file *file;

	list_for_each_entry (file, &th->process->snapshots.files, snapshot.link)
		if (counted(file->event) == th)
			mark_changed(file);
}

/* Is what @event says the doing of the thread that it counts alone, which is @owner's? */
static bool is_own(const struct perf_file *file, const struct guest_thread *th)
{
	const struct event *e = file->event;

	return th && th->process == file->snapshot.owner && th->task == e->target &&
	       th->meter < file->s->meters.slots && e->pmu == file->s->pmus.cpu && e->cpu < 0 &&
	       e->hw.what < CPU_WHAT_MAX && !(e->attr.read_format & PERF_FORMAT_GROUP) &&
	       list_empty(&e->children);
}

/* What is to stand in @file's snapshot; `kind` stays WIRE_SNAPSHOT_NONE where one must ask. */
static void fill(struct perf_file *file, struct wire_snapshot *snapshot)
{
	struct event *e = file->event;
	struct guest_thread *th = counted(e);
	struct event_totals total;

	memset(snapshot, 0, sizeof(*snapshot));
	if (!is_own(file, th) || e->state < EVENT_OFF)
		return;
	/* Its time is what the event's times are brought up to. */
	(void)clock_read(th);
	total = event_totals(e);
	snapshot->kind = WIRE_SNAPSHOT_METER;
	snapshot->meter = th->meter;
	snapshot->quantity = meters_quantity(e->hw.what);
	snapshot->handle = file->handle;
	snapshot->id = event_id(e);
	snapshot->lost = e->lost_samples;
	snapshot->read_format = e->attr.read_format;
	snapshot->base = total.count;
	snapshot->enabled_base = total.enabled;
	snapshot->running_base = total.running;
	if (e->leader->state >= EVENT_INACTIVE && e->state >= EVENT_INACTIVE) {
		snapshot->flags |= WIRE_SNAPSHOT_ENABLED;
		snapshot->enabled_base -= th->clock.cpu_time;
	}
	if (e->state == EVENT_ACTIVE) {
		snapshot->flags |= WIRE_SNAPSHOT_RUNNING;
		snapshot->running_base -= th->clock.cpu_time;
		snapshot->base -= guest_thread_sum(th, snapshot->quantity);
	}
}

void snapshots_revalidate(struct session *s)
{
	struct wire_snapshot now;
	struct perf_file *file;

	while ((file = list_first(&s->files.changed, struct perf_file, snapshot.changed_link))) {
		list_del(&file->snapshot.changed_link);
		fill(file, &now);
		write_snapshot(file, &now);
	}
}

void snapshots_allow(struct session *s)
{
	struct guest_thread *th;

	while ((th = list_first(&s->instant.invalid, struct guest_thread, invalid_link)))
		open_gate(th);
	if (s->instant.caller)
		open_gate(s->instant.caller);
}

void snapshots_check(struct session *s)
{
	struct wire_snapshot now;
	struct perf_file *file;

	list_for_each_entry (file, &s->files.all, link) {
		const struct wire_snapshot *is;

		if (!file->snapshot.index)
			continue;
		is = shared(file);
		fill(file, &now);
		CHECK(memcmp((const u8 *)is + sizeof(is->seq), (const u8 *)&now + sizeof(now.seq),
			     sizeof(now) - sizeof(now.seq)) == 0);
	}
}
