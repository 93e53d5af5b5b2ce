/* Calls of the session's own process, without a wire. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/session-priv.h"

static struct event *direct_event(struct session *s, int handle)
{
	return handle >= 0 && (u32)handle < s->direct.nr ? s->direct.events[handle] : NULL;
}

static int take_handle(struct session *s, struct event *event)
{
	struct event **grown;
	u32 i;

	for (i = 0; i < s->direct.nr && s->direct.events[i]; i++)
		;
	if (i == s->direct.nr) {
		grown = reallocarray(s->direct.events, i * 2 + 16, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + i, 0, (i + 16) * sizeof(*grown));
		s->direct.events = grown;
		s->direct.nr = i * 2 + 16;
	}
	s->direct.events[i] = event;
	return (int)i;
}

/* A call on its way: what is asked, for the body of an instant, and what came of it. */
struct direct_call {
	int handle; /* of the event; of open: its leader's */
	struct open_call open;
	struct ioctl_call ioctl;
	u64 *words;
	size_t len;
	s64 ret;
};

static void run_open(struct session *s, void *arg)
{
	struct direct_call *c = arg;

	s->direct.leader = direct_event(s, c->handle);
	c->ret = perf_open(s->core, &c->open);
	s->direct.leader = NULL;
	if (c->ret)
		return;
	c->ret = take_handle(s, c->open.event);
	if (c->ret < 0)
		event_put(c->open.event);
	else
		wide_opened(s, c->open.event);
}

/* Whatever refuses leaves a reason. */
static void direct_run(struct session *s, void (*body)(struct session *s, void *arg),
		       struct direct_call *c)
{
	instant_run(s, body, c);
	if (c->ret < 0)
		(void)session_refused(s, (int)c->ret);
}

int session_open(struct session *s, struct pe_attr *attr, int pid, int cpu, int leader, u64 flags)
{
	struct direct_call c = {
		.handle = leader,
		.open =
			{
				.caller = s->guests.self->task,
				.attr = attr,
				.attr_len = sizeof(*attr),
				.pid = pid,
				.cpu = cpu,
				.group_fd = leader < 0 ? -1 : 0,
				.flags = flags,
			},
	};

	direct_run(s, run_open, &c);
	if (c.ret < 0 && c.open.store_size)
		attr->size = c.open.store_size;
	return (int)c.ret;
}

static void run_read(struct session *s, void *arg)
{
	struct direct_call *c = arg;
	struct event *event = direct_event(s, c->handle);

	if (!event) {
		c->ret = core_refuse(s->core, -EBADF, NO_EVENT);
		return;
	}
	wide_look(s, event);
	c->ret = event_read(event, c->words, c->len);
}

s64 session_read(struct session *s, int handle, void *buf, size_t len)
{
	static u64 words[EVENT_READ_MAX / 8];
	struct direct_call c = {.handle = handle, .words = words, .len = len};

	direct_run(s, run_read, &c);
	if (c.ret > 0)
		memcpy(buf, words, (size_t)c.ret);
	return c.ret;
}

static void run_ioctl(struct session *s, void *arg)
{
	struct direct_call *c = arg;
	struct event *event = direct_event(s, c->handle);

	if (!event) {
		c->ret = core_refuse(s->core, -EBADF, NO_EVENT);
		return;
	}
	if (c->ioctl.cmd == PERF_EVENT_IOC_SET_OUTPUT) {
		int output = (int)c->ioctl.arg;

		s->direct.leader = direct_event(s, output);
		c->ioctl.arg = output < 0 ? (u64)-1 : 0;
	}
	wide_look(s, event);
	c->ret = event_ioctl(event, &c->ioctl);
	s->direct.leader = NULL;
}

int session_ioctl(struct session *s, int handle, u64 cmd, u64 arg)
{
	struct direct_call c = {
		.handle = handle,
		.ioctl = {.caller = s->guests.self->task, .cmd = (u32)cmd, .arg = arg},
	};

	c.ioctl.in_len = ioctl_reads(c.ioctl.cmd);
	c.ioctl.in = c.ioctl.in_len ? (const void *)arg : NULL;
	direct_run(s, run_ioctl, &c);
	if (c.ioctl.out_len)
		memcpy((u8 *)arg + c.ioctl.out_at, c.ioctl.out, c.ioctl.out_len);
	return (int)c.ret;
}

static void run_close(struct session *s, void *arg)
{
	struct direct_call *c = arg;
	struct event *event = direct_event(s, c->handle);

	if (!event) {
		c->ret = core_refuse(s->core, -EBADF, NO_EVENT);
		return;
	}
	s->direct.events[c->handle] = NULL;
	wide_closed(s, event);
	event_put(event);
	c->ret = 0;
}

int session_close(struct session *s, int handle)
{
	struct direct_call c = {.handle = handle};

	direct_run(s, run_close, &c);
	return (int)c.ret;
}

void direct_release(struct session *s)
{
	for (u32 i = 0; i < s->direct.nr; i++)
		if (s->direct.events[i])
			event_put(s->direct.events[i]);
	free(s->direct.events);
	s->direct.events = NULL;
	s->direct.nr = 0;
}

static int adopt(struct session *s, int pid)
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
	s->shown.view->flags |= WIRE_VIEW_LAUNCH;
	return 0;
fail:
	guest_process_end(p);
	return err;
}

/* The pid in *@arg, which becomes what session_adopt() answers. */
static void run_adopt(struct session *s, void *arg)
{
	int *n = arg;

	*n = adopt(s, *n);
}

int session_adopt(struct session *s, int pid)
{
	int n = pid;

	instant_run(s, run_adopt, &n);
	return n;
}

const char *session_root(struct session *s)
{
	char why[512];

	return view_make(s, why, sizeof(why)) ? NULL : s->shown.root;
}

const struct refusal *session_refusal(const struct session *s)
{
	return core_refusal(s->core);
}

int session_refused(struct session *s, int err)
{
	return core_refuse_default(s->core, err, SESSION_ERRNO, .name = {strerror(-err)});
}
