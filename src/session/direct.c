/* Calls of the session's own process, without a wire. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/session-priv.h"

static struct event *direct_event(struct session *s, int handle)
{
	return handle >= 0 && (u32)handle < s->nr_direct ? s->direct[handle] : NULL;
}

static int take_handle(struct session *s, struct event *event)
{
	struct event **grown;
	u32 i;

	for (i = 0; i < s->nr_direct && s->direct[i]; i++)
		;
	if (i == s->nr_direct) {
		grown = reallocarray(s->direct, i * 2 + 16, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + i, 0, (i + 16) * sizeof(*grown));
		s->direct = grown;
		s->nr_direct = i * 2 + 16;
	}
	s->direct[i] = event;
	return (int)i;
}

int session_open(struct session *s, struct pe_attr *attr, int pid, int cpu, int leader, u64 flags)
{
	struct open_call open = {
		.caller = s->self->task,
		.attr = attr,
		.attr_len = sizeof(*attr),
		.pid = pid,
		.cpu = cpu,
		.group_fd = leader < 0 ? -1 : 0,
		.flags = flags,
	};
	bool frozen;
	int err;

	session_drain(s);
	s->direct_leader = direct_event(s, leader);
	snapshots_invalidate(s);
	frozen = session_freeze(s);
	err = perf_open(s->core, &open);
	snapshots_revalidate(s);
	session_thaw(s, frozen);
	s->direct_leader = NULL;
	if (err) {
		if (open.store_size)
			attr->size = open.store_size;
		return err;
	}
	err = take_handle(s, open.event);
	if (err < 0) {
		event_put(open.event);
		return err;
	}
	wide_opened(s, open.event);
	return err;
}

s64 session_read(struct session *s, int handle, void *buf, size_t len)
{
	static u64 words[EVENT_READ_MAX / 8];
	struct event *event;
	bool frozen;
	s64 n;

	session_drain(s);
	event = direct_event(s, handle);
	if (!event)
		return -EBADF;
	frozen = session_freeze(s);
	wide_look(s, event);
	n = event_read(event, words, len);
	session_thaw(s, frozen);
	if (n > 0)
		memcpy(buf, words, (size_t)n);
	return n;
}

int session_ioctl(struct session *s, int handle, u64 cmd, u64 arg)
{
	struct ioctl_call call = {.caller = s->self->task, .cmd = (u32)cmd, .arg = arg};
	struct event *event;
	bool frozen;
	int err;

	session_drain(s);
	event = direct_event(s, handle);
	if (!event)
		return -EBADF;
	call.in_len = ioctl_reads(call.cmd);
	call.in = call.in_len ? (const void *)arg : NULL;
	if (call.cmd == PERF_EVENT_IOC_SET_OUTPUT) {
		s->direct_leader = direct_event(s, (int)arg);
		call.arg = (int)arg < 0 ? (u64)-1 : 0;
	}
	snapshots_invalidate(s);
	frozen = session_freeze(s);
	wide_look(s, event);
	err = event_ioctl(event, &call);
	snapshots_revalidate(s);
	session_thaw(s, frozen);
	s->direct_leader = NULL;
	if (call.out_len)
		memcpy((u8 *)arg + call.out_at, call.out, call.out_len);
	return err;
}

int session_close(struct session *s, int handle)
{
	struct event *event = direct_event(s, handle);

	if (!event)
		return -EBADF;
	s->direct[handle] = NULL;
	snapshots_invalidate(s);
	event_put(event);
	snapshots_revalidate(s);
	return 0;
}

void direct_release(struct session *s)
{
	for (u32 i = 0; i < s->nr_direct; i++)
		if (s->direct[i])
			event_put(s->direct[i]);
	free(s->direct);
	s->direct = NULL;
	s->nr_direct = 0;
}

int session_adopt(struct session *s, int pid)
{
	struct guest_process *p = guest_process_new(s, pid);
	struct guest_thread *th;
	int err;

	if (!p)
		return -ENOMEM;
	err = guest_process_watch_end(p);
	if (err)
		goto fail;
	th = guest_thread_new(p, pid, WIRE_NO_METER);
	err = th ? guest_thread_need_task(th) : -ENOMEM;
	if (err)
		goto fail;
	p->same_ns = 1;
	clock_attach(th);
	s->view->flags |= WIRE_VIEW_LAUNCH;
	return 0;
fail:
	guest_process_end(p);
	return err;
}

const char *session_root(struct session *s)
{
	char why[512];

	return view_make(s, why, sizeof(why)) ? NULL : s->root;
}

const char *session_reason(const struct session *s)
{
	return core_reason(s->core);
}
