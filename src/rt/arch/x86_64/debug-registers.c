#include "rt/arch/x86_64/debug-registers.h"

#include "rt/arch.h"
#include "rt/mm/mm.h"
#include "rt/sample/trace-hits.h"
#include "rt/signal/signal.h"
#include "rt/task/core-threads.h"
#include "rt/task/process.h"
#include "rt/task/stopped.h"
#include "sys/string.h"

#include <linux/ptrace.h>
#include <linux/wait.h>

/* Where struct user of ptrace has them, one behind the other. */
#define USER_DEBUGREG 848ul
#define USER_DR(n)    (USER_DEBUGREG + (n)*8ul)
#define DR_STATUS     6
#define DR_CONTROL    7

/* Of the control register: whether register @i is on, and what stops; 0: execution. */
#define DR_ON(control, i)   ((control) >> (2 * (i)) & 3)
#define DR_TYPE(control, i) ((control) >> (16 + 4 * (i)) & 3)
/* The status register's other bits as the kernel shows them, and those that say what was met. */
#define DR_STATUS_SET 0xffff0ff0ul
#define DR_STATUS_MET 0xful

/* More instructions than there are in the native form of one. */
#define STEPS_MAX 256u

/*
 * This process has set registers of some thread. Else no tracee need be asked what it has met.
 */
static bool has_set;

/* The tracee */

void debug_take_over(struct thread *t, bool gone)
{
	struct debug_registers *d = &t->debug;
	u64 wanted[DEBUG_REGISTERS];
	u32 nr = 0;

	__atomic_store_n(&d->changed, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (u32 i = 0; i < DEBUG_REGISTERS && !gone; i++)
		if (d->execution & BIT(i))
			wanted[nr++] = d->addr[i];
	d->nr_places = places_trade(t, d->places, d->nr_places, wanted, nr);
}

void debug_forked(struct thread *t)
{
	memset(&t->debug, 0, sizeof(t->debug));
}

void debug_place(struct thread *t, u64 pc)
{
	struct debug_registers *d = &t->debug;
	siginfo_t info;
	u32 met = 0;

	for (u32 i = 0; i < DEBUG_REGISTERS; i++)
		if (d->execution & BIT(i) && d->addr[i] == pc)
			met |= (u32)BIT(i);
	if (!met)
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_code = TRAP_HWBKPT;
	info.si_addr = (void *)pc;
	d->met = met;
	CHECK(signal_send_own(t, &info, CPU_FAULT_DEBUG));
}

/* The tracer */

static u64 peek(u32 tid, u64 at)
{
	u64 value = 0;

	raw_call4(__NR_ptrace, PTRACE_PEEKUSR, tid, (long)at, (long)&value);
	return value;
}

/* Where @tid's struct thread is in its memory; 0: it is no guest's, or has not begun. */
static u64 tracee_at(u32 tid)
{
	u64 user[USER_REGS_SIZE / sizeof(u64)], base;
	u32 its_tid;

	if (raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)user))
		return 0;
	base = ptrace_regs_gs(user);
	if (!base || !tracee_as_guest(tid, user) ||
	    !mm_read_foreign(tid, (void *)(base + offsetof(struct thread, tid)), &its_tid,
			     sizeof(its_tid)) ||
	    its_tid != tid)
		return 0;
	return base;
}

static bool read_debug(u32 tid, u64 at, struct debug_registers *d)
{
	return at &&
	       mm_read_foreign(tid, (void *)(at + offsetof(struct thread, debug)), d, sizeof(*d));
}

bool debug_is_trapping(u32 tid, u64 thread)
{
	struct debug_registers d;

	return read_debug(tid, thread, &d) && d.trapping;
}

/* The kernel shows what has been met last, of whatever kind, and keeps it until the next time. */
static void tell_met(u32 tid)
{
	struct debug_registers d;
	u64 at = tracee_at(tid);
	u32 none = 0;

	if (!read_debug(tid, at, &d) || !d.met)
		return;
	if (mm_write_foreign(tid, (void *)(at + offsetof(struct thread, debug.met)), &none,
			     sizeof(none)))
		raw_call4(__NR_ptrace, PTRACE_POKEUSR, tid, USER_DR(DR_STATUS),
			  (long)(DR_STATUS_SET | d.met));
}

static bool is_debug(u64 at)
{
	return at >= USER_DR(0) && at <= USER_DR(DR_CONTROL);
}

void debug_before_ptrace(u64 request, u32 tid, u64 at)
{
	bool user = request == PTRACE_PEEKUSR || request == PTRACE_POKEUSR;

	if ((user && is_debug(at)) || (has_set && tracee_goes_on(request)))
		tell_met(tid);
}

/* What the kernel has let stand is what the tracee is to take over. */
long debug_after_ptrace(u64 request, u32 tid, u64 at)
{
	struct debug_registers d;
	u64 thread, control;
	u32 one = 1;

	if (request != PTRACE_POKEUSR || !is_debug(at))
		return 0;
	thread = tracee_at(tid);
	if (!read_debug(tid, thread, &d))
		return 0;
	has_set = true;
	control = peek(tid, USER_DR(DR_CONTROL));
	d.execution = 0;
	for (u32 i = 0; i < DEBUG_REGISTERS; i++) {
		d.addr[i] = peek(tid, USER_DR(i));
		if (DR_ON(control, i) && !DR_TYPE(control, i))
			d.execution |= (u32)BIT(i);
	}
	d.changed = 1;
	if (!mm_write_foreign(tid, (void *)(thread + offsetof(struct thread, debug)), &d,
			      offsetof(struct debug_registers, met)) ||
	    !mm_write_foreign(tid, (void *)(thread + offsetof(struct thread, dbt.interrupt)), &one,
			      sizeof(one)))
		return -EIO;
	return 0;
}

static bool read_tracee(void *ctx, const void *addr, void *to, u64 len)
{
	return mm_read_foreign(*(const u32 *)ctx, addr, to, len);
}

/*
 * A signal that comes amid the native form of an instruction would make the thread step itself to
 * its end, and each step would be a stop. So it is made to step before, and comes to stand at a
 * signal of its own. False: something else has happened meanwhile, which the tracer is to see.
 */
static bool step_to_boundary(u32 tid, u64 thread, bool once)
{
	const struct dbt_foreign memory = {read_tracee, &tid};
	u64 user[USER_REGS_SIZE / sizeof(u64)];
	struct dbt_regs regs;
	siginfo_t info;
	int status;

	for (u32 i = 0; i < STEPS_MAX; i++) {
		if (raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)user))
			return false;
		ptrace_to_regs(user, &regs);
		if ((i || !once) && dbt_foreign_at_boundary(&memory, thread, regs_pc(&regs)))
			return true;
		if (raw_call4(__NR_ptrace, PTRACE_SINGLESTEP, tid, 0, 0) ||
		    !tracee_next_stop(tid, 0, &info) || info.si_status != SIGTRAP ||
		    peek(tid, USER_DR(DR_STATUS)) & DR_STATUS_MET ||
		    raw_call4(__NR_wait4, tid, (long)&status, __WALL, 0) != (long)tid)
			return false;
	}
	return true;
}

enum debug_kicked debug_kick(u32 tid)
{
	struct debug_registers d;
	siginfo_t info;
	u64 at = has_set ? tracee_at(tid) : 0;
	u32 in_cache;
	bool by_signal;

	if (!read_debug(tid, at, &d) || !d.changed ||
	    !mm_read_foreign(tid, (void *)(at + offsetof(struct thread, dbt.in_cache)), &in_cache,
			     sizeof(in_cache)) ||
	    !in_cache)
		return DEBUG_NOT_KICKED;
	by_signal = !raw_call4(__NR_ptrace, PTRACE_GETSIGINFO, tid, 0, (long)&info) &&
		    info.si_code >> 8 <= 0;
	if (!step_to_boundary(tid, at, !by_signal))
		return DEBUG_RUNS;
	process_make_kick(&info);
	return raw_call4(__NR_ptrace, PTRACE_SETSIGINFO, tid, 0, (long)&info) ? DEBUG_NOT_KICKED
									      : DEBUG_KICKED;
}
