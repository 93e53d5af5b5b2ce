/*
 * Serving slots: taking a request out of guest memory, answering it there, and watching the slots
 * of recent callers for a moment before going to sleep.
 *
 * Order, session and guest (rt/perf/wire-call.c):
 *	guest: request, word = POSTED (release); awake == 0? kick
 *	session: awake = 0; full barrier; word != POSTED? sleep
 * so either the session sees the post or the guest sees that it must kick.
 */
#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/host-cpu.h"
#include "session/session-priv.h"

#define SPIN_NS 100000
#define LOOK_NS 1000000

/*
 * Who calls from @slot; a thread that the session has not met is believed to be what it says it is.
 */
static struct guest_thread *caller_of(struct guest_process *p, u32 slot, const struct wire_slot *sl)
{
	struct guest_thread *th = p->callers[slot];
	s32 guest_tid = __atomic_load_n(&sl->tid, __ATOMIC_RELAXED);
	u32 meter = __atomic_load_n(&sl->meter, __ATOMIC_RELAXED);
	u32 token = __atomic_load_n(&sl->token, __ATOMIC_RELAXED);
	bool same;
	s32 tid;

	if (th && th->guest_tid == guest_tid && th->meter == meter && !th->token)
		return th;
	if (meter >= p->s->meters.slots && meter != WIRE_NO_METER)
		return NULL;
	tid = p->same_ns > 0 && pid_has_tid(p->pid, guest_tid)
		      ? guest_tid
		      : pid_translate(p->pid, guest_tid, &same);
	if (tid <= 0)
		return NULL;
	th = guest_thread_by_token(p, token);
	if (th) {
		guest_thread_set_tid(th, tid);
		guest_thread_set_token(th, 0);
		if (th->task)
			clock_attach(th);
	} else {
		th = guest_thread_by_tid(p, tid);
		/* Announced, and its token is spent; two threads never have one meter. */
		if (!th && meter != WIRE_NO_METER)
			th = guest_thread_by_meter(p, meter);
		if (th && th->tid != tid)
			guest_thread_set_tid(th, tid);
	}
	if (!th) {
		th = guest_thread_new(p, tid, meter);
		if (!th)
			return NULL;
	}
	th->guest_tid = guest_tid;
	guest_thread_set_meter(th, meter);
	p->callers[slot] = th;
	return th;
}

/* Everything that a call looks at afterwards is a private copy. */
static bool copy_request(struct call *c, const struct wire_slot *sl)
{
	c->seq = __atomic_load_n(&sl->seq, __ATOMIC_RELAXED);
	c->op = __atomic_load_n(&sl->op, __ATOMIC_RELAXED);
	c->len = __atomic_load_n(&sl->len, __ATOMIC_RELAXED);
	if (c->len > WIRE_DATA)
		return false;
	for (u32 i = 0; i < ARRAY_SIZE(c->args.words); i++)
		c->args.words[i] = __atomic_load_n(&sl->args.words[i], __ATOMIC_RELAXED);
	memcpy(c->in, sl->data, c->len);
	c->in[c->len] = 0;
	return true;
}

static void reply(struct call *c, struct wire_slot *sl)
{
	u32 flags = 0, old;

	if (c->fd_out >= 0) {
		int err = fd_message_send(c->process->sock, c->slot, c->seq, c->fd_out);

		if (err) {
			/* What it would have got reads as what goes with a refusal. */
			memset(&c->result, 0, sizeof(c->result));
			c->out_len = 0;
			c->ret =
				refusal_set(&c->refusal, -EMFILE, CAUSE_SESSION_FD,
					    &(const struct refusal_args){.name = {strerror(-err)}});
		} else {
			flags = WIRE_REPLY_FD;
		}
	}
	sl->ret = c->ret;
	sl->reply_flags = flags;
	sl->reply_len = c->out_len;
	sl->result = c->result;
	if (c->out_len)
		memcpy(sl->data, c->data, c->out_len);
	if (c->ret < 0)
		sl->refusal = c->refusal;
	old = __atomic_exchange_n(&sl->word, WIRE_DONE, __ATOMIC_ACQ_REL);
	if (old == WIRE_WAITED)
		syscall(SYS_futex, &sl->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void busy_poll_add(struct session *s, struct guest_process *p, u32 slot, u32 cpu)
{
	struct wire_slot *sl = guest_process_slot(p, slot);

	if (s->busy_poll.ending || s->nr_cpus < 2 || (u32)sched_getcpu() == cpu)
		return;
	s->busy_poll.until = session_now() + SPIN_NS;
	for (u32 i = 0; i < s->busy_poll.nr; i++)
		if (s->busy_poll.slots[i].process == p && s->busy_poll.slots[i].slot == slot)
			return;
	if (s->busy_poll.nr == BUSY_POLL_SLOTS)
		return;
	s->busy_poll.slots[s->busy_poll.nr].process = p;
	s->busy_poll.slots[s->busy_poll.nr++].slot = slot;
	__atomic_store_n(&sl->awake, 1, __ATOMIC_RELEASE);
}

/* The call, from its request to what it returns. */
static s64 run_request(struct call *c)
{
	struct guest_process *p = c->process;
	struct wire_slot *sl = guest_process_slot(p, c->slot);
	struct guest_thread *th = c->thread = caller_of(p, c->slot, sl);
	struct session *s = c->s;
	int err;

	if (!th || !copy_request(c, sl))
		return -EPROTO;
	clock_told(th, __atomic_load_n(&sl->cpu_time, __ATOMIC_RELAXED));
	th->clock.switches = __atomic_load_n(&sl->switches, __ATOMIC_RELAXED);
	s->call = c;
	s->instant.caller = th;
	err = guest_thread_need_task(th);
	if (err)
		return err;
	if (c->cpu < s->nr_cpus && task_cpu(th->task) != (int)c->cpu)
		task_sched_in(th->task, c->cpu);
	return op_run(c);
}

static void run_call(struct session *s, void *arg)
{
	struct call *c = arg;

	/* It may have been among what has ended. */
	if (c->process->sock_poll.gone)
		return;
	core_refusal_clear(s->core);
	c->ret = run_request(c);
	if (c->ret >= 0)
		return;
	refusals_note(c);
	/* While the call is on: what ends its instant makes calls of its own. */
	(void)core_refuse_default(s->core, (int)c->ret, SESSION_ERRNO,
				  .name = {strerror((int)-c->ret)});
	c->refusal = *core_refusal(s->core);
}

/* Answers what is posted in the slot, if anything. */
void serve_slot(struct guest_process *p, u32 slot)
{
	static struct call call; /* large; one thread, and calls do not nest */
	struct session *s = p->s;
	struct wire_slot *sl = guest_process_slot(p, slot);
	struct call *c = &call;
	u32 word;

	if (!sl)
		return;
	word = __atomic_load_n(&sl->word, __ATOMIC_ACQUIRE);
	if (word != WIRE_POSTED && word != WIRE_WAITED)
		return;
	memset(c, 0, offsetof(struct call, in));
	c->s = s;
	c->process = p;
	c->fd_out = -1;
	c->slot = slot;
	c->fd_in = p->fds[slot];
	p->fds[slot] = -1;
	c->cpu = __atomic_load_n(&sl->cpu, __ATOMIC_RELAXED);
	instant_run(s, run_call, c);
	s->call = NULL;
	if (!p->sock_poll.gone)
		reply(c, sl);
	if (c->fd_in >= 0 && c->fd_in_known)
		close(c->fd_in);
	else if (!closer_close(&p->closer, c->fd_in) && !p->sock_poll.gone)
		sock_refuse(p);
	if (c->fd_out >= 0 && !c->fd_out_keep)
		close(c->fd_out);
	if (!p->sock_poll.gone && c->thread && c->op != WIRE_OP_EXIT)
		busy_poll_add(s, p, slot, c->cpu);
}

/*
 * The process may go on with another socket and the same slots, so these are left as on going to
 * sleep.
 */
void serve_forget(struct session *s, struct guest_process *p)
{
	u32 n = 0;

	for (u32 i = 0; i < s->busy_poll.nr; i++) {
		struct wire_slot *sl = guest_process_slot(s->busy_poll.slots[i].process,
							  s->busy_poll.slots[i].slot);

		if (s->busy_poll.slots[i].process != p)
			s->busy_poll.slots[n++] = s->busy_poll.slots[i];
		else if (sl)
			__atomic_store_n(&sl->awake, 0, __ATOMIC_SEQ_CST);
	}
	s->busy_poll.nr = n;
}

static bool posted(const struct wire_slot *sl)
{
	u32 word = __atomic_load_n(&sl->word, __ATOMIC_ACQUIRE);

	return word == WIRE_POSTED || word == WIRE_WAITED;
}

/* Serves what is posted in slots that are polled; was there anything? */
static bool serve_posted(struct session *s)
{
	bool any = false;

	for (u32 i = 0; i < s->busy_poll.nr; i++) {
		struct guest_process *p = s->busy_poll.slots[i].process;
		struct wire_slot *sl = guest_process_slot(p, s->busy_poll.slots[i].slot);

		if (sl && posted(sl)) {
			/* Descriptors that belong to the request are in the socket. */
			u32 slot = s->busy_poll.slots[i].slot;

			sock_read(p);
			if (!p->sock_poll.gone && posted(sl))
				serve_slot(p, slot);
			any = true;
		}
	}
	return any;
}

/*
 * Recent callers on other CPUs are likely to call again at once: their slots are looked at for some
 * microseconds, and no longer than LOOK_NS in all, before the session sleeps or goes on to others.
 * No slot is left believing that it is looked at.
 */
void serve_busy_poll(struct session *s)
{
	u64 end;

	if (!s->busy_poll.nr)
		return;
	end = session_now() + LOOK_NS;
	for (u64 now = 0; s->busy_poll.nr && now < s->busy_poll.until && now < end;
	     now = session_now())
		if (!serve_posted(s))
			session_relax();
	s->busy_poll.ending = true;
	for (u32 i = 0; i < s->busy_poll.nr; i++) {
		struct wire_slot *sl = guest_process_slot(s->busy_poll.slots[i].process,
							  s->busy_poll.slots[i].slot);

		__atomic_store_n(&sl->awake, 0, __ATOMIC_RELAXED);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	(void)serve_posted(s);
	s->busy_poll.nr = 0;
	s->busy_poll.ending = false;
}
