/* The perf calls: from a request to core/call.h and back. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session/session-priv.h"

static int no_event(struct call *c)
{
	return core_refuse(c->s->core, -EBADF, NO_EVENT);
}

static void describe(struct call *c, struct perf_file *file)
{
	c->result.event = (struct wire_event_result){
		.handle = file->handle,
		.id = event_id(file->event),
		.snapshot = file->snapshot.owner == c->process ? file->snapshot.index : 0,
	};
}

/*
 * The attr as it lies in the guest: a page at most, of which the guest has sent what can matter and
 * said whether the rest is zero.
 */
static size_t whole_attr(struct call *c, u8 *attr)
{
	const struct wire_open_args *args = &c->args.open;
	u64 size = args->attr_size, have = args->path && args->path < c->len ? args->path : c->len;

	if (size > 4096)
		size = 4096;
	if (have > 4096)
		have = 4096;
	memset(attr, 0, 4096);
	memcpy(attr, c->in, have);
	if (args->attr_flags & WIRE_ATTR_FAULT)
		return have;
	if (args->attr_flags & WIRE_ATTR_TAIL && have < size)
		attr[size - 1] = 1;
	return size > have ? size : have;
}

/* What config1 points to, if it is a string. */
static const char *path_of(struct call *c)
{
	u32 at = c->args.open.path;

	return at && at < c->len && memchr(c->in + at, 0, c->len - at) ? (const char *)c->in + at
								       : NULL;
}

s64 op_open(struct call *c)
{
	static u8 attr[4096];
	const struct wire_open_args *args = &c->args.open;
	struct open_call open = {
		.caller = c->thread->task,
		.attr = attr,
		.attr_len = whole_attr(c, attr),
		.pid = args->pid,
		.cpu = args->cpu,
		.group_fd = args->group == WIRE_NO_EVENT ? FD_NONE : FD_NAMED,
		.flags = args->flags,
		.path = path_of(c),
		.host = c,
	};
	struct perf_file *file;
	int err = perf_open(c->s->core, &open);

	if (err) {
		c->result.open_refusal = (struct wire_open_refusal){
			.attr_size = open.store_size,
			.past_fd_check = c->past_fd_check,
			.ask_again = c->ask_again,
			.ask_kernel = c->ask_kernel,
		};
		return err;
	}
	err = perf_file_new(c->process, open.event, &file, &c->fd_out);
	if (err) {
		event_put(open.event);
		c->result.open_refusal.past_fd_check = 1;
		return core_refuse_default(c->s->core, err, SESSION_FD, .name = {strerror(-err)});
	}
	__atomic_store_n(&c->s->shown.view->any_event, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&c->s->meters.segment->measured, 1, __ATOMIC_RELAXED);
	wide_opened(c->s, open.event);
	track_opened(c->s, open.event);
	records_opened(c->s, open.event);
	snapshot_take(file, c->process);
	describe(c, file);
	return 0;
}

s64 op_read(struct call *c)
{
	struct perf_file *file = perf_file_by_handle(c->s, c->args.read.handle);
	s64 n;

	if (!file)
		return no_event(c);
	wide_look(c->s, file->event);
	n = event_read(file->event, c->data, c->args.read.len);
	if (n > 0)
		c->out_len = (u32)n;
	return n;
}

s64 op_ioctl(struct call *c)
{
	const struct wire_ioctl_args *args = &c->args.ioctl;
	struct perf_file *file = perf_file_by_handle(c->s, args->handle);
	struct ioctl_call call = {
		.caller = c->thread->task,
		.cmd = args->cmd,
		.arg = args->arg,
		.in = c->in,
		.in_len = c->len,
	};
	int err;

	if (!file)
		return no_event(c);
	if (call.cmd == PERF_EVENT_IOC_SET_OUTPUT)
		call.arg = args->output == WIRE_NO_EVENT ? (u64)FD_NONE : (u64)FD_NAMED;
	wide_look(c->s, file->event);
	err = event_ioctl(file->event, &call);
	if (!err && call.cmd == PERF_EVENT_IOC_SET_OUTPUT)
		trace_read_by(file->event);
	if (call.out_len) {
		memcpy(c->data, call.out, sizeof(call.out));
		c->out_len = call.out_len;
		c->result.ioctl.offset = call.out_at;
	}
	return err;
}

s64 op_mmap(struct call *c)
{
	const struct wire_mmap_args *args = &c->args.mmap;
	struct perf_file *file = perf_file_by_handle(c->s, args->handle);
	u64 type = args->flags & MAP_TYPE;
	struct map_call map = {
		.caller = c->thread->task,
		.len = args->len,
		.offset = args->offset,
		.inherited = args->inherited,
		.shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE,
		.writable = args->prot & PROT_WRITE,
	};
	int err;

	if (!file)
		return no_event(c);
	err = event_map(file->event, &map);
	if (!err)
		err = map_note(c->process, file, 1);
	if (err)
		return err;
	/* Its own: an event whose output goes to another's buffer cannot be mapped. */
	c->fd_out = (int)(intptr_t)event_memory(file->event);
	c->fd_out_keep = true;
	if (file->polled)
		perf_file_polled(file);
	trace_read_by(file->event);
	return file->event->pmu->event_width && file->event->pmu->event_width(file->event) != 0;
}

s64 op_munmap(struct call *c)
{
	struct perf_file *file = perf_file_by_handle(c->s, c->args.event.handle);

	return file ? map_note(c->process, file, -1) : no_event(c);
}

s64 op_poll(struct call *c)
{
	struct perf_file *file = perf_file_by_handle(c->s, c->args.event.handle);

	if (!file)
		return no_event(c);
	perf_file_polled(file);
	return event_poll(file->event);
}

s64 op_hangup(struct call *c)
{
	struct perf_file *file = perf_file_by_handle(c->s, c->args.event.handle);

	if (!file)
		return no_event(c);
	perf_file_in_epoll(file);
	return event_hangs_up(file->event);
}

s64 op_lossless(struct call *c)
{
	struct perf_file *file = perf_file_by_handle(c->s, c->args.event.handle);

	if (!file)
		return no_event(c);
	if (guest_thread_meter(c->thread))
		return -EPERM;
	event_lossless(file->event);
	return (s64)event_backlog_write(file->event);
}

/*
 * The flag belongs to the open file, so who shares it sees it. The pipe of an event that counts
 * does not have it: a kernel signals for a pipe whatever happens to its ends.
 */
s64 op_async(struct call *c)
{
	struct perf_file *file = perf_file_by_handle(c->s, c->args.async.handle);

	if (!file)
		return no_event(c);
	if (c->args.async.set != WIRE_ASYNC_ASK)
		file->async = c->args.async.set == WIRE_ASYNC_ON;
	return (file->async ? WIRE_ASYNC_HAS : 0) |
	       (event_attr(file->event)->sample_period ? WIRE_ASYNC_BYTES : 0) |
	       (file->last ? WIRE_ASYNC_HUP : 0);
}

s64 op_lookup(struct call *c)
{
	struct perf_file *file = c->fd_in < 0 ? NULL : perf_file_by_fd(c->s, c->fd_in);

	if (!file) {
		s64 setting = c->fd_in < 0 ? -ENOENT : setting_by_fd(c->s, c->fd_in);

		if (setting < 0)
			return setting;
		c->fd_in_known = true;
		c->result.setting.setting = (u64)setting;
		return 1;
	}
	c->fd_in_known = true;
	describe(c, file);
	return 0;
}
