/*
 * Event snapshots: from one, the thread that an event counts reads the event without asking the
 * session. That is exact as long as every change of the event's state is in the snapshot before the
 * thread can look. A thread that is in the call which changes something finds the snapshots
 * revalidated when it returns. Others run on, so theirs are invalidated before the change: who
 * reads one meanwhile has to ask, and is answered after the change.
 *
 * There is no snapshot of what is not the thread's own doing: groups, events with living children,
 * software events and events bound to a CPU.
 */
#include <string.h>

#include "base/bitmap.h"
#include "session/session-priv.h"

void snapshot_take(struct perf_file *file, struct guest_process *opener)
{
	u64 used[BITMAP_WORDS(WIRE_SNAPSHOTS)] = {0};
	struct perf_file *other;
	u32 snapshot;

	if (!opener->page)
		return;
	list_for_each_entry (other, &file->s->files.all, link)
		if (other->snapshot.owner == opener && other->snapshot.index)
			bitmap_set(used, other->snapshot.index - 1);
	for (snapshot = 0; snapshot < WIRE_SNAPSHOTS && bitmap_test(used, snapshot); snapshot++)
		;
	if (snapshot == WIRE_SNAPSHOTS)
		return;
	file->snapshot.owner = opener;
	file->snapshot.index = snapshot + 1;
	file->snapshot.stale = true;
}

static void write_snapshot(struct perf_file *file, const struct wire_snapshot *snapshot)
{
	struct wire_snapshot *to = &file->snapshot.owner->page->snapshots[file->snapshot.index - 1];
	u32 seq = file->snapshot.seq;

	__atomic_store_n(&to->seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(
		__ATOMIC_RELEASE); /* mate: perf_snapshot_read() in rt/perf/perf-open.c */
	memcpy((u8 *)to + sizeof(to->seq), (const u8 *)snapshot + sizeof(snapshot->seq),
	       sizeof(*to) - sizeof(to->seq));
	__atomic_store_n(&to->seq, seq + 2, __ATOMIC_RELEASE);
	file->snapshot.seq = seq + 2;
	file->snapshot.invalid = false;
}

static struct guest_thread *counted(const struct perf_file *file)
{
	return file->event->target ? task_host(file->event->target) : NULL;
}

/* Before events are changed; snapshots_revalidate() follows. */
void snapshots_invalidate(struct session *s)
{
	const struct guest_thread *caller = s->call ? s->call->thread : NULL;
	struct perf_file *file;
	bool any = false;

	instant_check(s);
	list_for_each_entry (file, &s->files.all, link) {
		if (!file->snapshot.index || file->snapshot.invalid ||
		    (caller && counted(file) == caller))
			continue;
		__atomic_store_n(
			&file->snapshot.owner->page->snapshots[file->snapshot.index - 1].seq,
			file->snapshot.seq + 1, __ATOMIC_RELAXED);
		file->snapshot.invalid = any = true;
	}
	/*
	 * Before its meter and clock are read; mate: perf_snapshot_read() in rt/perf/perf-open.c.
	 */
	if (any)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Nothing of it changed but the time, of which all snapshots of a thread say the same. */
static void revalidate(struct perf_file *file)
{
	const struct guest_thread *th = counted(file);

	if (th)
		__atomic_store_n(
			&file->snapshot.owner->page->snapshots[file->snapshot.index - 1].clock,
			th->clock.cpu_time, __ATOMIC_RELAXED);
	if (!file->snapshot.invalid)
		return;
	file->snapshot.seq += 2;
	__atomic_store_n(&file->snapshot.owner->page->snapshots[file->snapshot.index - 1].seq,
			 file->snapshot.seq, __ATOMIC_RELEASE);
	file->snapshot.invalid = false;
}

void snapshot_drop(struct perf_file *file)
{
	static const struct wire_snapshot none;

	if (file->snapshot.owner && file->snapshot.owner->page)
		write_snapshot(file, &none);
	file->snapshot.owner = NULL;
	file->snapshot.index = 0;
}

/* kind stays WIRE_SNAPSHOT_NONE where the session must be asked. */
static void fill(struct perf_file *file, struct wire_snapshot *snapshot)
{
	static u64 words[EVENT_READ_MAX / 8];
	struct event *e = file->event;
	struct guest_thread *th = counted(file);
	u64 now;
	u32 i = 0;

	memset(snapshot, 0, sizeof(*snapshot));
	if (!th || th->process != file->snapshot.owner || th->task != e->target ||
	    e->pmu != file->s->pmus.cpu || e->cpu >= 0 || e->attr.read_format & PERF_FORMAT_GROUP ||
	    !list_empty(&e->children) || e->state < EVENT_OFF ||
	    th->meter >= file->s->meters.slots || e->hw.what >= CPU_WHAT_MAX)
		return;
	(void)clock_read(th);
	if (event_read(e, words, sizeof(words)) <= 0)
		return;
	/* The one that the event's times were brought up to. */
	now = th->clock.cpu_time;
	snapshot->clock = now;
	snapshot->kind = WIRE_SNAPSHOT_METER;
	snapshot->meter = th->meter;
	snapshot->quantity = meters_quantity(e->hw.what);
	snapshot->handle = file->handle;
	snapshot->id = event_id(e);
	snapshot->lost = e->lost_samples;
	snapshot->read_format = e->attr.read_format;
	snapshot->base = words[i++];
	if (e->attr.read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		snapshot->enabled_base = words[i++];
	if (e->attr.read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		snapshot->running_base = words[i];
	if (e->leader->state >= EVENT_INACTIVE && e->state >= EVENT_INACTIVE) {
		snapshot->flags |= WIRE_SNAPSHOT_ENABLED;
		snapshot->enabled_base -= now;
	}
	if (e->state == EVENT_ACTIVE) {
		snapshot->flags |= WIRE_SNAPSHOT_RUNNING;
		snapshot->running_base -= now;
		snapshot->base -= guest_thread_sum(th, snapshot->quantity);
	}
}

/* What a snapshot depends on besides what the guest can see for itself. */
static struct snapshot_state state_of(const struct event *e)
{
	return (struct snapshot_state){
		.state = e->state,
		.leader = e->leader->state,
		.child_count = e->child_count,
		.lost = e->lost_samples,
		.has_children = !list_empty(&e->children),
	};
}

/* Brings the snapshots of events that changed up to date, and lets their readers look again. */
void snapshots_revalidate(struct session *s)
{
	struct perf_file *file;

	list_for_each_entry (file, &s->files.all, link) {
		struct snapshot_state now;
		struct wire_snapshot snapshot;

		if (!file->snapshot.index)
			continue;
		now = state_of(file->event);
		if (!file->snapshot.stale &&
		    memcmp(&now, &file->snapshot.state, sizeof(now)) == 0) {
			revalidate(file);
			continue;
		}
		fill(file, &snapshot);
		write_snapshot(file, &snapshot);
		file->snapshot.state = now;
		file->snapshot.stale = false;
	}
}

/* An ioctl changed what no state shows: a count, a period. */
void snapshots_stale(struct session *s, const struct event *event)
{
	struct perf_file *file;

	list_for_each_entry (file, &s->files.all, link)
		if (file->event->leader == event->leader)
			file->snapshot.stale = true;
}
