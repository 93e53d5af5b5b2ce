/*
 * clone. Without CLONE_VM the child is a copy of everything, and what it must not share is made
 * anew: its meter page, its locks, its list of threads. With CLONE_VM it is a further thread area
 * in the same memory, whether it is a thread, a vfork child or another process; what it shares with
 * its creator beyond memory (signal dispositions, the process) follows the flags.
 *
 * All signals are blocked from before the child exists until it stands on its own feet.
 */
#include "rt/task/process.h"

#include "rt/deterministic/deterministic-run.h"
#include "rt/load/images.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mdwe.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/sample/trace-hits.h"
#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall.h"
#include "rt/syscall/user-dispatch.h"
#include "rt/task/fork-areas.h"
#include "rt/task/meter-page.h"
#include "rt/task/simulate.h"
#include "rt/task/path-pages.h"
#include "rt/task/path-stream.h"
#include "rt/task/shared-mm.h"
#include "rt/task/stopped.h"
#include "rt/task/traces.h"
#include "rt/task/windows-draw.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/sched.h>

static struct lock list_lock;
static struct thread *all;

/* Who dies in the middle of a change leaves the list right in its forward direction only. */
static void list_acquire(u32 me)
{
	struct thread *prev = NULL;

	if (!lock_acquire(&list_lock, me, thread_gone))
		return;
	for (struct thread *t = all; t; prev = t, t = t->all_next)
		t->all_prev = prev;
}

static void list_release(u32 me)
{
	lock_release(&list_lock, me);
}

bool process_is_single(struct thread *t)
{
	bool single;

	list_acquire(t->id);
	single = all == t && !t->all_next;
	list_release(t->id);
	return single;
}

bool process_is_alone(struct thread *t)
{
	bool alone = true;

	list_acquire(t->id);
	for (const struct thread *other = all; other; other = other->all_next)
		alone &= other->proc == t->proc;
	list_release(t->id);
	return alone;
}

struct thread *threads_lock(struct thread *t)
{
	list_acquire(t->id);
	return all;
}

void threads_unlock(struct thread *t)
{
	list_release(t->id);
}

struct thread *const *threads_list(void)
{
	return &all;
}

void threads_add(struct thread *t)
{
	list_acquire(t->id);
	t->all_prev = NULL;
	t->all_next = all;
	if (all)
		all->all_prev = t;
	__atomic_store_n(&all, t, __ATOMIC_RELEASE);
	list_release(t->id);
}

void threads_unlink(struct thread *t)
{
	if (t->all_next)
		t->all_next->all_prev = t->all_prev;
	if (t->all_prev)
		__atomic_store_n(&t->all_prev->all_next, t->all_next, __ATOMIC_RELEASE);
	else if (all == t)
		__atomic_store_n(&all, t->all_next, __ATOMIC_RELEASE);
	t->all_next = t->all_prev = NULL;
}

void threads_remove(struct thread *t)
{
	u32 me = this_thread()->id;

	list_acquire(me);
	threads_unlink(t);
	list_release(me);
}

u32 threads_watch(struct thread *t)
{
	u32 watch = 0;

	list_acquire(t->id);
	for (struct thread *other = all; other; other = other->all_next)
		if (other->proc == t->proc)
			watch |= __atomic_load_n(&dbt_meter(&other->dbt)->watch, __ATOMIC_RELAXED) |
				 sample_watch(other);
	list_release(t->id);
	return watch;
}

/*
 * A queued SIGSYS with TRACE_KICK as its value. The signal is always deliverable and never a
 * guest's.
 */
void process_make_kick(siginfo_t *info)
{
	memset(info, 0, sizeof(*info));
	info->si_signo = SIGNAL_KICK;
	info->si_code = SI_QUEUE;
	info->si_ptr = (void *)TRACE_KICK;
}

bool process_kick(struct dbt_thread *dbt)
{
	struct thread *t = container_of(dbt, struct thread, dbt);
	siginfo_t info;

	if (!t->tid)
		return true; /* not in the cache: it has not begun */
	if (t->proc != this_thread()->proc && thread_has_left(t->tid))
		return false;
	process_make_kick(&info);
	/*
	 * To another process in our memory (vfork) this may be forbidden; a plain signal serves as
	 * well.
	 */
	if (raw_call4(__NR_rt_tgsigqueueinfo, (long)t->proc->pid, t->tid, SIGNAL_KICK, (long)&info))
		sys_tgkill((int)t->proc->pid, (int)t->tid, SIGNAL_KICK);
	stopped_run_on();
	return true;
}

bool process_is_kick(const siginfo_t *info)
{
	return info->si_signo == SIGNAL_KICK && info->si_code == SI_QUEUE &&
	       info->si_ptr == (void *)TRACE_KICK;
}

void proc_put(struct proc *p)
{
	if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (p->perf)
		perf_free(p->perf);
	region_unmap(p, sizeof(*p));
}

/* The parts of clone and clone3 that we look at; the kernel sees the guest's own arguments. */
struct clone_request {
	u64 flags;
	u64 stack;                /* stack pointer of the child, 0: the parent's */
	u64 nr, a, b, c, d, e;    /* the kernel's arguments */
	struct clone_args *args3; /* clone3: our copy, stack taken out */
};

/* As CLONE_CLEAR_SIGHAND: what is ignored stays so. */
static void handlers_clear(struct sighand *sh)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (sh->act[sig].handler != (u64)SIG_IGN)
			memset(&sh->act[sig], 0, sizeof(sh->act[sig]));
}

/* What a fork may cost more so that page faults are the program's: a quarter of a millisecond. */
#define POPULATE_MOST (1u << 20)

/*
 * In both processes of a fork: what the runtime writes next is a copy first, and where somebody
 * counts page faults each would be counted as the program's.
 */
static void fork_populate(const struct perf_fork *pf)
{
	if (!pf->faults)
		return;
	image_populate();
	dbt_populate(POPULATE_MOST);
}

#define MAKES_NAMESPACE                                                                \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

/* Where the next child of @t is. */
static struct model_place place_of_child(struct thread *t)
{
	return draw_child(&t->proc->place, simulate_asked() & MODEL_PARTS);
}

/* What is another one's in a child of a fork. */
struct fork_own {
	struct deterministic_task task;
	struct model_place place;
};

static void fork_child(struct thread *t, const struct clone_request *rq, u32 meter,
		       const struct fork_own *own, const struct perf_fork *pf)
{
	limits_forked(t);
	mdwe_inherit(mdwe_inherited());
	fork_populate(pf);
	thread_know(t, (u32)sys_gettid());
	dbt_fork_child(&t->dbt, t->id);
	images_forked();
	mm_reset_lock();
	mm_lock_forked();
	lock_reset(&list_lock);
	t->proc->place = own->place;
	simulate_forked(t);
	fork_areas_free(t);
	t->all_next = t->all_prev = NULL;
	all = t;
	t->vfork_child = false;
	lock_reset(&t->sighand->lock);
	t->sighand->refs = 1;
	lock_reset(&t->proc->lock);
	t->proc->refs = 1;
	t->proc->threads = 0;
	t->proc->pid = (u32)sys_getpid();
	if (rq->flags & MAKES_NAMESPACE)
		images_leave(t);

	t->meter = meter;
	if (meter_map(t->area + AREA_METER_AT, t->meter))
		die("no memory for the meter of a forked process\n");
	dbt_meter_attach(&t->dbt);
	if (paths_wanted() && paths_map(t))
		die("no memory for the profile of a forked process\n");
	if (paths_wanted() || streams_wanted())
		paths_new_space(t);
	t->proc->execs = 0;
	meter_begin(t, METER_NEW_PROCESS);
	meter_kickable(t, true);
	t->proc->meter = t->meter;
	t->pending_count = 0;
	t->held = 0;
	t->dispatch.on = false;
	if (rq->flags & CLONE_CLEAR_SIGHAND) {
		handlers_clear(t->sighand);
		signal_install_all(t->sighand);
	}
	t->deterministic = own->task;
	if (rq->stack)
		regs_set_sp(&t->dbt.regs, rq->stack);
	regs_set_result(&t->dbt.regs, 0);
	perf_forked(t, pf);
	meter_told(t);
	paths_begin(t);
	stream_begin(t);
	sample_forked(t);
	debug_forked(t);
	t->traced = false;
}

struct thread *locks_take(struct thread *t)
{
	simulate_take_over_lock(t);
	mm_lock(t);
	list_acquire(t->id);
	lock_acquire(&t->sighand->lock, t->id, thread_gone);
	dbt_fork_prepare(&t->dbt);
	simulate_locks_take(t);
	return all;
}

void locks_give(struct thread *t)
{
	simulate_locks_give(t);
	dbt_fork_parent(&t->dbt);
	lock_release(&t->sighand->lock, t->id);
	list_release(t->id);
	mm_unlock(t);
	simulate_take_over_unlock(t);
}

static long do_fork(struct thread *t, const struct clone_request *rq)
{
	struct fork_own own;
	struct perf_fork pf;
	u64 stamp, mask = 0;
	u32 meter;
	long ret;

	signal_block_all();
	if (t->pending_count) {
		signal_set_mask(~SIGNALS_SYNC);
		return CALL_REDO;
	}
	own = (struct fork_own){deterministic_child(t), place_of_child(t)};
	meter = meter_take();
	ret = perf_fork(t, rq->flags, meter, &pf);
	if (ret) {
		meter_return(meter);
		signal_set_mask(signal_kernel_mask(t->sigmask));
		return ret;
	}
	stamp = meter_stamp(meter);
	locks_take(t);
	/* A descriptor that has just come is nobody else's. */
	if (t->proc->perf)
		mask = wire_lock(t);
	fork_areas_offer(t);
	dbt_fork_share();
	simulate_fork(&own.place);
	if (rq->args3)
		ret = raw_call2(__NR_clone3, (long)rq->args3, (long)rq->b);
	else
		ret = raw_call5((long)rq->nr, (long)rq->a, 0, (long)rq->c, (long)rq->d,
				(long)rq->e);
	if (!ret) {
		fork_child(t, rq, meter, &own, &pf);
		signal_set_mask(signal_kernel_mask(t->sigmask));
		return CALL_SET;
	}
	simulate_fork_done();
	if (t->proc->perf)
		wire_unlock(t, mask);
	if (!sys_failed(ret))
		fork_populate(&pf);
	fork_areas_keep(t);
	locks_give(t);
	perf_made(t, rq->flags, &pf, ret);
	if (sys_failed(ret))
		meter_return(meter);
	else if (!(rq->flags & CLONE_NEWPID))
		meter_announce(meter, stamp, (u32)ret);
	signal_set_mask(signal_kernel_mask(t->sigmask));
	return ret;
}

void thread_begin(struct thread *t)
{
	thread_install(t);
	thread_know(t, (u32)sys_gettid());
	if (t->own_proc)
		t->proc->pid = (u32)sys_getpid();
	if (t->install_handlers)
		signal_install_all(t->sighand);
	meter_begin(t, t->own_proc ? METER_NEW_PROCESS : METER_NEW_THREAD);
	meter_kickable(t, true);
	if (t->own_proc) {
		struct perf_fork pf = {.sock = t->perf_sock};

		perf_forked(t, &pf);
	}
	t->begun = true;
	perf_thread_begin(t);
	meter_told(t);
	paths_begin(t);
	stream_begin(t);
	signal_set_mask(signal_kernel_mask(t->sigmask));
	probe_begun(t, t->sampling.made_by);
	thread_loop(t);
}

/* What it may hold is taken from it while it is still known. */
static void inherit_from(const struct thread *c)
{
	struct thread *t = this_thread();

	beside_inherit(t, c->id);
	if (!mm_lock_held_by(c->id) && !lock_held_by(&list_lock, c->id) &&
	    !lock_held_by(&t->sighand->lock, c->id) && !dbt_lock_held_by(c->id) &&
	    !simulate_locks_held_by(c->id))
		return;
	locks_take(t);
	locks_give(t);
}

void thread_release(struct thread *c)
{
	inherit_from(c);
	dbt_thread_remove(&c->dbt, this_thread()->id);
	threads_remove(c);
	sighand_put(c->sighand);
	proc_put(c->proc);
	seccomp_put(c->filters);
	thread_free(c);
}

static bool share_sighand(struct thread *c, struct thread *t, u64 flags)
{
	if (flags & CLONE_SIGHAND) {
		__atomic_fetch_add(&t->sighand->refs, 1, __ATOMIC_RELAXED);
		c->sighand = t->sighand;
	} else {
		c->sighand = sighand_copy(t->sighand, t->id);
	}
	return c->sighand;
}

static bool share_proc(struct thread *c, struct thread *t, u64 flags)
{
	if (flags & CLONE_THREAD) {
		__atomic_fetch_add(&t->proc->refs, 1, __ATOMIC_RELAXED);
		c->proc = t->proc;
		c->windows.nth = __atomic_add_fetch(&t->proc->threads, 1, __ATOMIC_RELAXED);
		return true;
	}
	c->proc = region_map(sizeof(*c->proc));
	if (!c->proc)
		return false;
	memcpy(c->proc, t->proc, sizeof(*c->proc));
	lock_reset(&c->proc->lock);
	lock_reset(&c->proc->limits.lock);
	c->proc->refs = 1;
	c->proc->threads = 0;
	c->proc->meter = c->meter;
	c->proc->execs = 0;
	c->proc->place = place_of_child(t);
	c->proc->perf = t->proc->perf ? perf_copy(t->proc->perf) : NULL;
	c->proc->confined |= (flags & MAKES_NAMESPACE) != 0;
	c->own_proc = true;
	return !t->proc->perf || c->proc->perf;
}

/*
 * A thread for the child, in the list and with a meter page. NULL if a step fails, and then nothing
 * of it is left.
 */
static struct thread *clone_prepare(struct thread *t, const struct clone_request *rq)
{
	struct thread *c;

	if (rq->flags & CLONE_VM && !(rq->flags & CLONE_THREAD))
		sharers_expect(t, rq->flags);
	c = thread_alloc();
	if (!c)
		return NULL;
	if (!share_sighand(c, t, rq->flags) || !share_proc(c, t, rq->flags)) {
		if (c->proc)
			proc_put(c->proc);
		if (c->sighand)
			sighand_put(c->sighand);
		meter_return_of(c);
		thread_free(c);
		return NULL;
	}
	c->dbt.regs = t->dbt.regs;
	c->dbt.arch = t->dbt.arch;
	c->arch = t->arch;
	regs_set_result(&c->dbt.regs, 0);
	if (rq->stack)
		regs_set_sp(&c->dbt.regs, rq->stack);
	c->sampling.made_by = (u32)rq->nr;
	c->sigmask = t->sigmask;
	c->min_altstack = t->min_altstack;
	c->alt_flags = SS_DISABLE;
	if (rq->flags & CLONE_VFORK) {
		c->alt_sp = t->alt_sp;
		c->alt_size = t->alt_size;
		c->alt_flags = t->alt_flags;
	}
	if (rq->flags & CLONE_CLEAR_SIGHAND) {
		handlers_clear(c->sighand);
		c->install_handlers = true;
	}
	c->vfork_child = rq->flags & CLONE_VFORK;
	c->deterministic = deterministic_child(t);
	c->filters = t->filters;
	c->seccomp_mode = t->seccomp_mode;
	seccomp_get(c->filters);
	dbt_thread_add(&c->dbt, c->id);
	threads_add(c);
	return c;
}

/*
 * The child's tid, in case it is killed before it can say so itself. It may have ended already, and
 * its area with it: it is looked up by its id.
 */
static void name_sharer(struct thread *t, const struct thread *c, u32 id, u32 tid)
{
	list_acquire(t->id);
	for (struct thread *o = all; o; o = o->all_next)
		if (o == c && o->id == id && !o->tid)
			__atomic_store_n(&o->tid, tid, __ATOMIC_RELEASE);
	list_release(t->id);
}

static long do_clone_vm(struct thread *t, const struct clone_request *rq)
{
	struct perf_fork pf;
	struct thread *c;
	void **top;
	long ret;
	u32 id;

	signal_block_all();
	if (t->pending_count) {
		signal_set_mask(~SIGNALS_SYNC);
		return CALL_REDO;
	}
	c = clone_prepare(t, rq);
	if (!c) {
		signal_set_mask(signal_kernel_mask(t->sigmask));
		return -ENOMEM;
	}
	ret = perf_fork(t, rq->flags, c->meter, &pf);
	if (ret) {
		meter_return_of(c);
		thread_release(c);
		signal_set_mask(signal_kernel_mask(t->sigmask));
		return ret;
	}
	if (!(rq->flags & CLONE_THREAD))
		beside_shared(t, true);
	c->perf_token = pf.token;
	c->perf_sock = pf.sock;
	id = c->id;
	top = (void **)(c->area + AREA_STACK_TOP - 64);
	top[0] = c;
	top[1] = (void *)thread_begin;
	if (rq->args3)
		ret = thread_spawn(__NR_clone3, (u64)rq->args3, rq->b, 0, 0, top, 0);
	else
		ret = thread_spawn(__NR_clone, rq->flags, 0, rq->c, rq->d, top, rq->e);
	/* Others stay for as long as they like. */
	if (!(rq->flags & CLONE_THREAD) && (sys_failed(ret) || rq->flags & CLONE_VFORK))
		beside_shared(t, false);
	/* Unless it is a vfork's, the child may have ended and unmapped @c already. */
	if (sys_failed(ret) || rq->flags & CLONE_VFORK) {
		/*
		 * A vfork's child has executed another program or is dead; it has left our memory.
		 */
		if (sys_failed(ret) || !c->begun)
			meter_return_of(c);
		else if (!c->execing)
			meter_free(c->meter, c->tid);
		thread_release(c);
	} else if (!(rq->flags & CLONE_THREAD)) {
		name_sharer(t, c, id, (u32)ret);
	}
	perf_made(t, rq->flags, &pf, ret);
	signal_set_mask(signal_kernel_mask(t->sigmask));
	return ret;
}

static long clone_once(struct thread *t, const struct clone_request *rq)
{
	return rq->flags & CLONE_VM ? do_clone_vm(t, rq) : do_fork(t, rq);
}

/* What children translate the next one need not. */
static void learn_from_children(struct thread *t)
{
	static struct dbt_told *told;

	mm_lock(t);
	if (!told) {
		told = region_map_shared(DBT_TOLD_SIZE);
		if (told)
			dbt_relatives(&t->dbt, told);
	}
	mm_unlock(t);
	dbt_learn(&t->dbt);
}

static long do_clone(struct thread *t, const struct clone_request *rq)
{
	long ret;

	if (rq->flags & CLONE_NEWPID)
		meter_namespace();
	if (!(rq->flags & CLONE_THREAD))
		images_share(t);
	if (!(rq->flags & CLONE_VM))
		learn_from_children(t);
	ret = clone_once(t, rq);
	/* There may be a task more than the program has made. */
	if (ret == -EAGAIN && beside_end(t))
		ret = clone_once(t, rq);
	return ret;
}

long guest_clone(struct thread *t)
{
	struct clone_request rq = {
		.flags = guest_arg(t, 0),
		.stack = guest_arg(t, 1),
		.nr = __NR_clone,
		.a = guest_arg(t, 0),
		.c = guest_arg(t, 2),
		.d = guest_arg(t, 3),
		.e = guest_arg(t, 4),
	};

	return do_clone(t, &rq);
}

long guest_fork(struct thread *t)
{
	struct clone_request rq = {.nr = __NR_clone, .a = SIGCHLD, .flags = SIGCHLD};

	return do_clone(t, &rq);
}

long guest_vfork(struct thread *t)
{
	struct clone_request rq = {
		.nr = __NR_clone,
		.flags = CLONE_VM | CLONE_VFORK | SIGCHLD,
	};

	return do_clone(t, &rq);
}

long guest_clone3(struct thread *t)
{
	u64 at = guest_arg(t, 0), size = guest_arg(t, 1);
	struct clone_args args;
	struct clone_request rq = {.nr = __NR_clone3};

	memset(&args, 0, sizeof(args));
	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	if (guest_read(&args, at, min_u64(size, sizeof(args))))
		return -EFAULT;
	for (u64 i = sizeof(args); i < size; i++) {
		u8 byte;

		if (guest_read(&byte, at + i, 1))
			return -EFAULT;
		if (byte)
			return -E2BIG;
	}
	/* The kernel's own checks of what we take out of its sight. */
	if (args.flags & (CLONE_DETACHED | (CSIGNAL & ~CLONE_NEWTIME)) ||
	    args.exit_signal & ~(u64)CSIGNAL)
		return -EINVAL;
	if (!args.stack != !args.stack_size)
		return -EINVAL;
	rq.flags = args.flags;
	rq.stack = args.stack ? args.stack + args.stack_size : 0;
	rq.b = min_u64(size, sizeof(args));
	args.stack = args.stack_size = 0;
	rq.args3 = &args;
	return do_clone(t, &rq);
}

void thread_end(struct thread *t, u32 code, int status)
{
	struct proc *p = t->proc;

	sample_end(t);
	debug_take_over(t, true);
	perf_thread_exit(t, __atomic_load_n(&t->proc->refs, __ATOMIC_ACQUIRE) == 1);
	/* First, because the translator writes to the pages of all threads that it knows. */
	dbt_thread_remove(&t->dbt, t->id);
	simulate_end(t);
	traces_unmap(t);
	stream_end(t);
	meter_end(t, code, __atomic_load_n(&t->proc->refs, __ATOMIC_ACQUIRE) == 1);
	if (t->vfork_child)
		sys_exit(status);
	threads_remove(t);
	sighand_put(t->sighand);
	/* It may be gone when the last memory is given back (rt/task/limits.h). */
	t->proc = NULL;
	proc_put(p);
	seccomp_put(t->filters);
	thread_exit_free(t, status);
}

long guest_exit(struct thread *t)
{
	int status = (int)guest_arg(t, 0);

	signal_block_all();
	/* A signal for the process that was handed to this thread must not be lost with it. */
	if (t->pending_count) {
		signal_set_mask(~SIGNALS_SYNC);
		return CALL_REDO;
	}
	/* The same, with more to do, if there never was or no longer is another thread. */
	if (t->tid == t->proc->pid && process_is_single(t))
		return guest_exit_group(t);
	thread_end(t, (u32)(status & 0xff) << 8, status);
}

/* Our threads are killed where they are; what they have done until now counts. */
static void rescue_streams(struct thread *t)
{
	if (!streams_wanted())
		return;
	list_acquire(t->id);
	for (struct thread *other = all; other; other = other->all_next)
		if (other != t && other->proc == t->proc)
			stream_rescue(other);
	list_release(t->id);
	stream_end(t);
}

long guest_exit_group(struct thread *t)
{
	int status = (int)guest_arg(t, 0);

	signal_block_all();
	sample_flush(t);
	perf_thread_exit(t, true);
	rescue_streams(t);
	images_complete(t);
	meter_end(t, (u32)(status & 0xff) << 8, true);
	images_save(t);
	/* What other threads have handed over meanwhile. */
	simulate_finish(t);
	sys_exit_group(status);
}

long guest_prctl(struct thread *t)
{
	long ret;

	switch ((int)guest_arg(t, 0)) {
	case PR_SET_NAME: {
		char comm[16] = "";

		ret = call_kernel(t);
		sys_prctl(PR_GET_NAME, (u64)comm, 0, 0, 0);
		meter_set_comm(t, comm);
		perf_named(t);
		return ret;
	}
	case PR_GET_SECCOMP:
	case PR_SET_SECCOMP: return seccomp_prctl(t);
	case PR_SET_MDWE:
	case PR_GET_MDWE: return mdwe_prctl(t);
	case PR_SET_SYSCALL_USER_DISPATCH: return dispatch_prctl(t);
	case PR_CAPBSET_DROP:
	case PR_SET_NO_NEW_PRIVS:
	case PR_SET_SECUREBITS: return guest_confine(t);
	}
	return call_kernel(t);
}

long guest_namespace(struct thread *t)
{
	long ret;

	/* setns says by its descriptor what kind it is about. */
	if (guest_nr(t) == __NR_setns || guest_arg(t, 0) & CLONE_NEWPID)
		meter_namespace();
	ret = guest_confine(t);
	if (!ret)
		perf_namespaces(t);
	return ret;
}

long guest_personality(struct thread *t)
{
	long ret = call_kernel(t), now = raw_call1(__NR_personality, PERSONALITY_ASK);

	t->proc->read_implies_exec = now & READ_IMPLIES_EXEC;
	return ret;
}
