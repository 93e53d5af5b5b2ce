/*
 * Finding guests that have not introduced themselves: by their meters, and by what the kernel says.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "session/session-priv.h"

#define LIES_AT_ONCE 64u   /* meters that name a task which is no guest */
#define DEAD_AT_ONCE 4096u /* that name nobody, or such a one */
#define SCAN_SHARE   20u   /* of its time the session looks in vain at most one part in so many */

/*
 * The process that WIRE_OP_FORK announced with meter @index for its only thread, and that runs as
 * @pid but has not said HELLO yet. NULL: none, or it is over.
 */
static struct guest_thread *announced(struct session *s, u32 index, pid_t pid, s32 tid)
{
	for (struct hash_link *l = hash_find(&s->guests.by_meter, index); l; l = hash_next(l)) {
		struct guest_thread *th = container_of(l, struct guest_thread, by_meter);
		struct guest_process *p = th->process;

		if (p->pid)
			continue;
		guest_process_set_pid(p, pid);
		if (guest_process_watch_end(p)) {
			/* Its socket tells the end. */
			guest_process_set_pid(p, 0);
			return NULL;
		}
		p->token = 0;
		guest_thread_set_tid(th, tid);
		return th;
	}
	return NULL;
}

/*
 * The thread with meter @index, which is @tid of process @in->tgid; NULL: it ended, or memory did.
 */
static struct guest_thread *meet(struct session *s, u32 index, s32 tid, const struct pid_inside *in)
{
	struct guest_process *p = guest_process_by_pid(s, in->tgid);
	struct guest_thread *th;
	bool is_new = !p;

	if (is_new) {
		th = announced(s, index, in->tgid, tid);
		if (th)
			return th;
		p = guest_process_new(s, in->tgid);
		if (!p)
			return NULL;
		p->same_ns = in->same;
	}
	if (guest_process_watch_end(p))
		goto fail;
	th = guest_thread_by_meter(p, index);
	if (th) {
		guest_thread_set_tid(th, tid);
		return th;
	}
	th = guest_thread_new(p, tid, index);
	if (!th)
		goto fail;
	th->guest_tid = in->tid;
	return th;
fail:
	if (is_new)
		guest_process_end(p);
	return NULL;
}

/*
 * The guest thread @tid of the session's namespace, connected or not: one that is known, or one
 * whose meter names it. The kernel has the last word on whose thread a tid is, what its own
 * namespace calls it, and whether its process has our meters.
 */
struct guest_thread *guest_find(struct session *s, s32 tid)
{
	struct hash_link *known;
	struct pid_inside in;
	struct meter *m;

	if (tid <= 0)
		return NULL;
	known = hash_find(&s->guests.by_tid, (u64)tid);
	if (known)
		return container_of(known, struct guest_thread, by_tid);
	if (!pid_inside(tid, &in) || in.tgid == s->guests.own_pid)
		return NULL;
	for (u32 i = 0; (m = meters_next(&s->meters, &i)); i++) {
		if (__atomic_load_n(&m->state, __ATOMIC_RELAXED) != METER_RUNNING ||
		    (s32)m->tid != in.tid || (pid_t)m->pid != in.pid)
			continue;
		if (guest_process_by_pid(s, in.tgid) || pid_has_file(in.tgid, s->meters.fd))
			return meet(s, i, tid, &in);
		return NULL;
	}
	return NULL;
}

/* All threads of process @pid, if it is a guest. */
static void meet_process(struct session *s, pid_t pid)
{
	char path[40];
	struct dirent *d;
	DIR *dir;

	if (pid == s->guests.own_pid ||
	    (!guest_process_by_pid(s, pid) && !pid_has_file(pid, s->meters.fd)))
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		(void)guest_find(s, atoi(d->d_name));
	if (dir)
		closedir(dir);
}

/*
 * The thread that meter @index names, if the kernel says that it is a guest. *@asked: that has
 * taken files of /proc, as it does for a name that belongs to somebody else.
 */
static struct guest_thread *named_by(struct session *s, u32 index, const struct meter *m,
				     bool *asked)
{
	s32 tid = (s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED);
	pid_t pid = (pid_t)__atomic_load_n(&m->pid, __ATOMIC_RELAXED);
	struct hash_link *known = hash_find(&s->guests.by_tid, (u64)tid);
	struct pid_inside in = {.tgid = pid, .pid = pid, .tid = tid, .same = true};
	const struct guest_process *p;

	*asked = false;
	if (known)
		return container_of(known, struct guest_thread, by_tid);
	if (pid <= 0 || !pid_has_tid(pid, tid))
		return NULL;
	/* Of one who is known already the number is enough. */
	p = guest_process_by_pid(s, pid);
	if (p && p->same_ns > 0)
		return meet(s, index, tid, &in);
	*asked = true;
	if (!pid_inside(tid, &in) || in.tgid == s->guests.own_pid || in.tid != tid ||
	    in.pid != pid ||
	    (!guest_process_by_pid(s, in.tgid) && !pid_has_file(in.tgid, s->meters.fd)))
		return NULL;
	return meet(s, index, tid, &in);
}

/* Guests of other pid namespaces, whose numbers mean nothing to us: is it one of those here? */
static void meet_all(struct session *s)
{
	u64 begun = session_now();
	u32 before = s->guests.by_tid.n;
	struct dirent *d;
	DIR *dir;

	if (begun < s->wide.scan_after)
		return;
	dir = opendir("/proc");
	while (dir && (d = readdir(dir)))
		if (atoi(d->d_name) > 0)
			meet_process(s, atoi(d->d_name));
	if (dir)
		closedir(dir);
	/* Meters of strangers can be made as often as one likes. */
	if (s->guests.by_tid.n == before)
		s->wide.scan_after = session_now() + (session_now() - begun) * SCAN_SHARE;
}

void guests_meet(struct session *s)
{
	u32 i = s->wide.next_meter, before = i ? s->wide.strange : 0, strange = 0, lies = 0;
	struct meter *m;

	s->wide.next_meter = 0;
	for (; (m = meters_next(&s->meters, &i)); i++) {
		bool asked;

		/* Who is watched has been met. */
		if (__atomic_load_n(&m->state, __ATOMIC_RELAXED) != METER_RUNNING ||
		    (s32)__atomic_load_n(&m->tid, __ATOMIC_RELAXED) <= 0 ||
		    __atomic_load_n(&m->watch, __ATOMIC_RELAXED) & WIRE_WATCH_TASKS ||
		    named_by(s, i, m, &asked))
			continue;
		strange++;
		lies += asked;
		/* Each costs more to see through than to write. The rest is looked at next time. */
		if (lies == LIES_AT_ONCE || strange == DEAD_AT_ONCE) {
			s->wide.next_meter = i + 1;
			break;
		}
	}
	s->wide.strange = before + strange;
	if (s->wide.strange > s->wide.unfound) {
		meet_all(s);
		s->wide.unfound = s->wide.strange;
	} else if (!s->wide.next_meter) {
		s->wide.unfound = s->wide.strange;
	}
}
