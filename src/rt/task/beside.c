/*
 * Nobody ever waits for the thread as such: whoever waits, because there is no room for his piece
 * or because he wants to know what was counted, takes what is to be done next, and sleeps only
 * while others are at all of it. So it does no harm that the thread gets no core, and work is
 * divided as it comes: while the thread is at one half, who waits for it is at the other.
 */
#include "rt/task/beside.h"

#include "abi/modeled.h"
#include "abi/run-config.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/signal/signal.h"
#include "rt/task/meter-page.h"
#include "rt/task/shared-mm.h"
#include "rt/task/simulate-priv.h"
#include "rt/task/thread.h"
#include "sys/guest-call.h"
#include "sys/kernel.h"

#include <linux/sched.h>

#define STACK_SIZE 0x10000ul
#define OWN_ID     0x7fffffffu /* to locks; no thread of the program's */
#define CPUS       8192u       /* that a mask may have */

/* An own task is no thread that anybody is to trace, and shares what threads share. */
#define OWN_FLAGS                                                                           \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_UNTRACED | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

u32 beside_on;

static struct lock control;        /* around beginning and ending */
static u32 own_tid;                /* 0: it is not there; the kernel says so */
static u8 *stack;                  /* STACK_SIZE bytes; kept */
static u32 stop, failed;           /* it is to end; it could not be begun */
static u32 sharers;                /* processes that share our memory; under simulate_lock */
static struct trace_pieces pieces; /* under simulate_lock */
static u32 handed, finished;       /* futexes: how many pieces were */
static u32 idle, waiting;          /* who sleeps at them */

static const struct __kernel_timespec patience = {.tv_nsec = 20000000};

/* Shows what all halves are past; returns how many pieces. Under simulate_lock. */
static u32 show_done(void)
{
	const struct trace_piece *done;
	u32 n = 0;

	for (; (done = pieces_done(&pieces)); n++) {
		simulate_show(done);
		pieces_drop(&pieces, done);
	}
	return n;
}

static void tell_done(u32 n)
{
	__atomic_fetch_add(&finished, n, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST))
		sys_futex(&finished, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

/* The piece has been taken by a half. */
static void past(struct trace_piece *p, u32 half, u32 me)
{
	u32 n;

	lock_acquire(&simulate_lock, me, thread_gone);
	pieces_past(&pieces, half, p);
	n = show_done();
	lock_release(&simulate_lock, me);
	if (n)
		tell_done(n);
}

/* Under the half's lock: its next piece, if that was handed over before @end. */
static bool work(u32 half, u64 end, u32 me)
{
	struct trace_piece *p;

	lock_acquire(&simulate_lock, me, thread_gone);
	p = pieces_next(&pieces, half, end);
	lock_release(&simulate_lock, me);
	if (!p)
		return false;
	simulate_piece(p, half);
	past(p, half, me);
	return true;
}

/* A piece of a half that nobody is at; of @first rather than of others. */
static bool work_at_any(u32 first, u32 me)
{
	for (u32 i = 0; i < pieces.halves; i++) {
		u32 half = (first + i) % pieces.halves;
		bool done;

		if (!lock_try(&simulate_half_lock[half], me))
			continue;
		done = work(half, ~0ull, me);
		lock_release(&simulate_half_lock[half], me);
		if (done)
			return true;
	}
	return false;
}

/* The last half takes longer: it is the thread's first. */
__attribute__((noreturn)) static void run_beside(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		u32 seen = __atomic_load_n(&handed, __ATOMIC_SEQ_CST);

		if (work_at_any(pieces.halves - 1, OWN_ID))
			continue;
		__atomic_store_n(&idle, 1, __ATOMIC_SEQ_CST);
		sys_futex(&handed, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		__atomic_store_n(&idle, 0, __ATOMIC_SEQ_CST);
	}
	sys_exit(0);
}

/* Whether the program may use more than one CPU. */
static bool has_cpus(void)
{
	u64 mask[CPUS / 64];
	long size = raw_call3(__NR_sched_getaffinity, 0, sizeof(mask), (long)mask);
	u64 one = 0;

	for (long i = 0; i < size / 8; i++) {
		if (mask[i] & (mask[i] - 1) || (one && mask[i]))
			return true;
		one |= mask[i];
	}
	return false;
}

/*
 * Numbers of tasks in a PID namespace of the program's own follow one another, and programs count
 * on those of the first.
 */
static bool is_wanted(void)
{
	if (meter_namespaces())
		return false;
	switch (run_config()->beside) {
	case MODEL_BESIDE_NO: return false;
	case MODEL_BESIDE_YES: return true;
	default: return has_cpus();
	}
}

/* Under `control`. */
static bool spawn(u32 halves)
{
	void **top;
	u64 mask;
	long ret;

	if (!stack)
		stack = region_map(STACK_SIZE);
	if (!pieces.room)
		pieces.room = region_map(PIECES_ROOM);
	if (!stack || !pieces.room)
		return false;
	pieces.halves = halves;
	stop = 0;
	top = (void **)(stack + STACK_SIZE - 64);
	top[0] = NULL;
	top[1] = (void *)run_beside;
	/* Whatever comes is the program's. */
	mask = signal_block_all();
	ret = thread_spawn(__NR_clone, OWN_FLAGS, 0, (u64)&own_tid, (u64)&own_tid, top, 0);
	signal_set_mask(mask);
	return !sys_failed(ret);
}

void beside_begin(struct thread *t)
{
	u32 halves;

	if (beside_on || failed || !lock_try(&control, t->id))
		return;
	lock_acquire(&simulate_lock, t->id, thread_gone);
	halves = sharers ? 0 : simulate_halves();
	/* There may be another model by now than the one before, with more halves. */
	if (!beside_on)
		pieces_forget(&pieces);
	lock_release(&simulate_lock, t->id);
	/* Who has none is not asked again at each buffer, but when the next call may change it. */
	if (halves && !beside_on) {
		if (is_wanted() && spawn(halves))
			__atomic_store_n(&beside_on, 1, __ATOMIC_RELEASE);
		else
			failed = 1;
	}
	lock_release(&control, t->id);
}

/*
 * The kernel still counts it for a moment when it has said that it is gone. A tracer from outside
 * may keep it for long.
 */
static void wait_for_end(u32 tid)
{
	const struct __kernel_timespec moment = {.tv_nsec = 100000};
	u32 now;

	while ((now = __atomic_load_n(&own_tid, __ATOMIC_ACQUIRE)))
		sys_futex(&own_tid, FUTEX_WAIT, now, &patience, NULL, 0);
	for (u32 looks = 0; looks < 10000 && !sys_tgkill(sys_getpid(), (int)tid, 0); looks++)
		raw_call2(__NR_nanosleep, (long)&moment, 0);
}

bool beside_stop(struct thread *t)
{
	u32 tid;

	failed = 0;
	lock_acquire(&control, t->id, thread_gone);
	if (!beside_on)
		return false;
	beside_finish(t, NULL);
	tid = __atomic_load_n(&own_tid, __ATOMIC_ACQUIRE);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&handed, 1, __ATOMIC_SEQ_CST);
	sys_futex(&handed, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	wait_for_end(tid);
	lock_acquire(&simulate_lock, t->id, thread_gone);
	__atomic_store_n(&beside_on, 0, __ATOMIC_RELEASE);
	lock_release(&simulate_lock, t->id);
	/* Others have handed over meanwhile. */
	beside_finish(t, NULL);
	return true;
}

void beside_go(struct thread *t)
{
	lock_release(&control, t->id);
}

bool beside_end(struct thread *t)
{
	bool was = beside_stop(t);

	beside_go(t);
	return was;
}

u32 beside_tid(void)
{
	return __atomic_load_n(&own_tid, __ATOMIC_ACQUIRE);
}

u32 beside_tid_of(const struct other_guest *other)
{
	u32 tid;

	return mm_read_foreign(other->pid, &own_tid, &tid, sizeof(tid)) ? tid : 0;
}

void beside_inherit(struct thread *t, u32 id)
{
	if (!lock_held_by(&control, id))
		return;
	lock_acquire(&control, t->id, thread_gone);
	lock_release(&control, t->id);
}

bool beside_put(const struct trace_piece *p)
{
	if (!pieces_put(&pieces, p))
		return false;
	p->thread->modeled.handed = pieces.end;
	return true;
}

void beside_wake(void)
{
	__atomic_fetch_add(&handed, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&idle, __ATOMIC_SEQ_CST))
		sys_futex(&handed, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Until a half is past what was handed over before @end. */
static void finish_half(struct thread *t, u32 half, u64 end)
{
	bool done;

	do {
		lock_acquire(&simulate_half_lock[half], t->id, thread_gone);
		done = !work(half, end, t->id);
		lock_release(&simulate_half_lock[half], t->id);
	} while (!done);
}

u32 beside_finished(void)
{
	return __atomic_load_n(&finished, __ATOMIC_SEQ_CST);
}

void beside_help(struct thread *t, u32 seen)
{
	if (work_at_any(0, t->id))
		return;
	__atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
	sys_futex(&finished, FUTEX_WAIT_PRIVATE, seen, &patience, NULL, 0);
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
}

void beside_finish(struct thread *t, const struct thread *of)
{
	bool done = true;
	u64 end;

	lock_acquire(&simulate_lock, t->id, thread_gone);
	end = of ? of->modeled.handed : pieces.end;
	for (u32 half = 0; half < pieces.halves; half++)
		done = done && pieces.at[half] >= end;
	if (!done)
		pieces_hurry(&pieces);
	lock_release(&simulate_lock, t->id);
	for (u32 half = 0; !done && half < pieces.halves; half++)
		finish_half(t, half, end);
}

void beside_drain(void)
{
	struct trace_piece *p;
	u32 n;

	for (u32 half = 0; half < pieces.halves; half++)
		while ((p = pieces_next(&pieces, half, pieces.end))) {
			simulate_piece(p, half);
			pieces_past(&pieces, half, p);
		}
	n = show_done();
	if (n)
		tell_done(n);
}

void beside_shared(struct thread *t, bool with)
{
	lock_acquire(&simulate_lock, t->id, thread_gone);
	sharers += with ? 1 : -1u;
	lock_release(&simulate_lock, t->id);
	beside_end(t);
}

void beside_forked(void)
{
	lock_reset(&control);
	pieces_forget(&pieces);
	beside_on = own_tid = stop = failed = sharers = idle = waiting = 0;
}
