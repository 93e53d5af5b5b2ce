/* What guests ask for, op by op, but the event calls themselves (ops-event.c). */
#include <errno.h>
#include <signal.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "session/session-priv.h"

static s64 op_ping(struct call *c)
{
	c->result.caller.tid = (u64)c->thread->tid;
	return 0;
}

static s64 op_prctl(struct call *c)
{
	return perf_prctl(c->thread->task, c->args.prctl.enable != 0);
}

static u32 next_token(struct guests *g)
{
	g->last_token = (g->last_token + 1) & 0x7fffffff;
	if (!g->last_token)
		g->last_token = 1;
	return g->last_token;
}

/* Who announces processes that never come has the session keep descriptors for them. */
static int announce(struct call *c, struct guest_process *p)
{
	u32 held, left;
	int err = allowance_take(&c->process->allowance, &p->announced, ANNOUNCED, c->fd_out, &held,
				 &left);

	return err == -EMFILE ? core_refuse(c->s->core, err, SESSION_SHARE, .number = {held, left})
			      : err;
}

#define SAME_METER 8u /* tasks that may be awaited with one, of which at most one comes */

/* Each names a meter of its own, and a meter is looked for by its number. */
static bool is_awaited(struct session *s, u32 meter)
{
	u32 n = 0;

	for (struct hash_link *l = hash_find(&s->guests.by_meter, meter); l && n < SAME_METER;
	     l = hash_next(l))
		n += container_of(l, struct guest_thread, by_meter)->tid == 0;
	return n == SAME_METER;
}

/* What is known of a task is kept from here on, with a copy of each event that it inherits. */
static int announce_task(struct call *c, struct guest_thread *child)
{
	u64 bytes = 2 * sizeof(*child) + task_events(c->thread->task) * sizeof(struct event);
	struct session *s = c->s;
	u64 held, left;
	int err;

	err = allowance_take_memory(&s->memory, &c->process->allowance, &child->memory, bytes,
				    &held, &left);
	if (!err || !held)
		return err;
	return core_refuse(s->core, err, SESSION_MEMORY, .number = {held >> 20, left >> 20});
}

/*
 * A task is about to be made. The events it inherits exist from now on, so nothing that it does and
 * nothing that its maker does next can come in between.
 */
static s64 op_fork(struct call *c)
{
	u64 flags = c->args.fork.clone_flags;
	bool is_thread = flags & CLONE_THREAD;
	struct guest_process *p = c->process;
	struct guest_thread *child = NULL;
	s64 err;

	if (c->args.fork.meter >= c->s->meters.slots)
		return -EINVAL;
	if (is_awaited(c->s, c->args.fork.meter))
		return core_refuse(c->s->core, -EAGAIN, SESSION_AWAITS, .number = {SAME_METER});

	if (!is_thread) {
		p = guest_process_new(c->s, 0);
		if (!p)
			return -ENOMEM;
		err = guest_process_reserve(p);
		if (!err)
			err = guest_process_make_socket(p, &c->fd_out);
		if (!err)
			err = announce(c, p);
		if (err) {
			guest_process_end(p);
			if (c->fd_out >= 0)
				close(c->fd_out);
			c->fd_out = -1;
			return err;
		}
	}
	/* Before its events are on: where their code is mapped is asked of its parent. */
	if (!is_thread)
		p->forker = c->process->pid;
	child = guest_thread_new(p, 0, c->args.fork.meter);
	if (!child) {
		err = -ENOMEM;
		goto fail;
	}
	err = announce_task(c, child);
	if (err)
		goto fail;
	guest_thread_set_token(child, next_token(&c->s->guests));
	err = task_fork(c->thread->task, 0, p->pid ? p->pid : -(int)child->token, is_thread,
			flags & CLONE_CLEAR_SIGHAND, child, &child->task);
	if (err) {
		child->task = NULL;
		goto fail;
	}
	guest_thread_watch(child);
	task_sched_in(child->task, (u32)task_cpu(c->thread->task));
	if (!is_thread)
		p->token = child->token;
	return child->token;
fail:
	if (!is_thread) {
		guest_process_end(p);
		close(c->fd_out);
		c->fd_out = -1;
	} else if (child) {
		guest_thread_end(child);
	}
	return err;
}

static s64 op_unfork(struct call *c)
{
	u32 token = c->args.unfork.token;
	struct guest_thread *th = guest_thread_by_token(c->process, token);
	struct hash_link *l = token ? hash_find(&c->s->guests.by_token, token) : NULL;

	if (th) {
		guest_thread_end(th);
		return 0;
	}
	/* Or the only thread of a process that was announced, by its maker. */
	for (; l; l = hash_next(l)) {
		struct guest_process *p = container_of(l, struct guest_thread, by_token)->process;

		if (p->token == token && p->forker == c->process->pid && !p->pid) {
			guest_process_end(p);
			return 0;
		}
	}
	return -ENOENT;
}

static s64 op_exit(struct call *c)
{
	struct guest_thread *th;

	/*
	 * Alone it is at its end, and who waits for the process is to find its records. Others run
	 * on until the kernel has told them; their counts are final when the process is gone.
	 */
	if (c->args.exit.process &&
	    (records_outlive(c->thread) || !(c->s->track_watch & WIRE_WATCH_END) ||
	     c->process->threads.next->next != &c->process->threads)) {
		list_for_each_entry (th, &c->process->threads, link)
			clock_last(th);
		return 0;
	}
	guest_thread_end(c->thread);
	c->thread = NULL;
	return 0;
}

static s64 op_named(struct call *c)
{
	track_named(c->thread, false);
	return 0;
}

static s64 op_namespaces(struct call *c)
{
	track_namespaces(c->thread);
	return 0;
}

static s64 op_made_cgroup(struct call *c)
{
	cgroup_made(c->thread, c->fd_in);
	return 0;
}

static s64 op_bpf(struct call *c)
{
	records_bpf(c->thread);
	return 0;
}

static s64 op_mapped(struct call *c)
{
	const struct wire_mapped_args *args = &c->args.mapped;

	track_mapped(c->thread, args);
	return 0;
}

static s64 op_stops(struct call *c)
{
	const char *names = (const char *)c->in, *interp;

	trace_execs(c->thread, !c->args.stops.on);
	if (!c->len || names[c->len - 1]) {
		guest_process_executes(c->process, NULL, NULL);
		return 0;
	}
	interp = names + strlen(names) + 1;
	guest_process_executes(c->process, names, interp < names + c->len ? interp : names);
	return 0;
}

static s64 op_view(struct call *c)
{
	char why[512];
	int err = view_make(c->s, why, sizeof(why));
	struct stat st;

	if (err)
		return core_refuse(c->s->core, err, CALL_ERRNO,
				   .name = {"making the files of PMUs and limits that programs see",
					    strerror(-err)});
	if (fstat(c->s->shown.dir, &st))
		return -errno;
	c->result.view = (struct wire_view_result){st.st_ino, major(st.st_dev), minor(st.st_dev)};
	c->out_len = (u32)strlen(c->s->shown.root) + 1;
	memcpy(c->data, c->s->shown.root, c->out_len);
	return 0;
}

/* To find a thread of another namespace takes as long as to look where all are. */
static s64 op_moved(struct call *c)
{
	if (c->args.moved.tid && c->process->same_ns > 0)
		wide_moved_task(c->s, c->args.moved.tid);
	else
		wide_moved(c->s);
	return 0;
}

/* Who starts a program has no meter; who has one is a guest, and its children say who they are. */
static s64 op_adopt(struct call *c)
{
	s32 pid = pid_from_guest(c->process, c->args.adopt.pid);
	s64 err;

	if (guest_thread_meter(c->thread))
		return -EPERM;
	if (pid <= 0 || pid == c->s->guests.own_pid)
		return -ESRCH;
	if (pid_proc_is_foreign())
		return core_refuse(c->s->core, -EPERM, PROC_NAMESPACE);
	/* A session lives as long as a guest: nobody keeps it alive by others' processes. */
	if (!pid_is_child(c->process->pid, pid))
		return -EPERM;
	if (guest_process_by_pid(c->s, pid))
		return -EEXIST;
	err = guest_process_adopt(c->s, pid, c->process->same_ns);
	if (err)
		return core_refuse(c->s->core, (int)err, CALL_ERRNO,
				   .name = {"making a process a guest", strerror((int)-err)});
	return 0;
}

static s64 op_trace(struct call *c)
{
	if (!trace_is_there(c->thread))
		return -ENOENT;
	c->fd_out = c->process->memfd;
	c->fd_out_keep = true;
	return 0;
}

s64 op_run(struct call *c)
{
	static s64 (*const ops[WIRE_OP_COUNT])(struct call * c) = {
		[WIRE_OP_OPEN] = op_open,
		[WIRE_OP_READ] = op_read,
		[WIRE_OP_IOCTL] = op_ioctl,
		[WIRE_OP_MMAP] = op_mmap,
		[WIRE_OP_MUNMAP] = op_munmap,
		[WIRE_OP_POLL] = op_poll,
		[WIRE_OP_PRCTL] = op_prctl,
		[WIRE_OP_LOOKUP] = op_lookup,
		[WIRE_OP_FORK] = op_fork,
		[WIRE_OP_UNFORK] = op_unfork,
		[WIRE_OP_EXIT] = op_exit,
		[WIRE_OP_PING] = op_ping,
		[WIRE_OP_HANGUP] = op_hangup,
		[WIRE_OP_VIEW] = op_view,
		[WIRE_OP_MOVED] = op_moved,
		[WIRE_OP_SYSCTL] = op_sysctl,
		[WIRE_OP_ADOPT] = op_adopt,
		[WIRE_OP_ASYNC] = op_async,
		[WIRE_OP_NAMED] = op_named,
		[WIRE_OP_MAPPED] = op_mapped,
		[WIRE_OP_STOPS] = op_stops,
		[WIRE_OP_NAMESPACES] = op_namespaces,
		[WIRE_OP_MADE_CGROUP] = op_made_cgroup,
		[WIRE_OP_LOSSLESS] = op_lossless,
		[WIRE_OP_BPF] = op_bpf,
		[WIRE_OP_TRACE] = op_trace,
	};

	instant_check(c->s);
	if (c->op >= WIRE_OP_COUNT || !ops[c->op])
		return -ENOSYS;
	return ops[c->op](c);
}
