/*
 * The kernel writes into a core the registers that each thread has when it is killed. A thread can
 * be given others only while a tracer holds it stopped. So a process is forked that is the tracer
 * of its parent's other threads, sets their registers, and lets go of them when they are dead: if
 * it went before, they would run on where the program's own code is, not its translation.
 *
 * Vector registers are the program's already: a thread is in the code cache, in a system call, or
 * in code of ours that uses none, but for the moments in which it is in a handler.
 */
#include "rt/task/core-threads.h"

#include <asm/signal.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/resource.h>
#include <linux/socket.h>
#include <linux/wait.h>

#include "rt/arch.h"
#include "rt/task/fork-areas.h"
#include "rt/task/process.h"
#include "sys/string.h"

#define LOOKS     200 /* at threads that have not stopped yet */
#define LOOK_NS   1000000
#define WAIT_MOST 10000 /* ms; the tracer takes less, or is dead */

/* The process in which a thread is at it: two would stop each other. */
static u32 dying;

static const struct thread *next_other(const struct thread *at, const struct thread *me)
{
	while (at && (at == me || at->proc != me->proc || !at->tid))
		at = at->all_next;
	return at;
}

/* False: it has not stopped yet. */
static bool show_guest(u32 tid)
{
	u64 user[USER_REGS_SIZE / sizeof(u64)];
	s32 status = 0;
	long ret = raw_call4(__NR_wait4, tid, (long)&status, WNOHANG | __WALL, 0);

	if (!ret)
		return false;
	/* It may have ended, or be somebody else's to trace. */
	if (ret == (long)tid && (status & 0xff) == 0x7f &&
	    !raw_call4(__NR_ptrace, PTRACE_GETREGS, tid, 0, (long)user) &&
	    tracee_as_guest(tid, user))
		raw_call4(__NR_ptrace, PTRACE_SETREGS, tid, 0, (long)user);
	return true;
}

static void hold_threads(const struct thread *first, const struct thread *me)
{
	const struct __kernel_timespec moment = {0, LOOK_NS};
	u64 shown[64] = {0};
	u32 left = 0;

	for (const struct thread *t = next_other(first, me); t; t = next_other(t->all_next, me))
		if (!raw_call4(__NR_ptrace, PTRACE_SEIZE, t->tid, 0, 0))
			raw_call4(__NR_ptrace, PTRACE_INTERRUPT, t->tid, 0, 0);
	for (u32 look = 0; look < LOOKS; look++) {
		u32 i = 0;

		left = 0;
		for (const struct thread *t = next_other(first, me); t;
		     t = next_other(t->all_next, me), i++) {
			if (i < 64 * ARRAY_SIZE(shown) && shown[i / 64] & BIT(i % 64))
				continue;
			if (!show_guest(t->tid))
				left++;
			else if (i < 64 * ARRAY_SIZE(shown))
				shown[i / 64] |= BIT(i % 64);
		}
		if (!left)
			return;
		raw_call2(__NR_nanosleep, (long)&moment, 0);
	}
}

/* The tracer, in memory of its own. The list stays as it was when it was forked. */
__attribute__((noreturn)) static void trace(const struct thread *first, const struct thread *me,
					    int sock)
{
	const struct rlimit64 none = {0, 0};
	char byte;
	long ret;

	raw_call4(__NR_prlimit64, 0, RLIMIT_CORE, (long)&none, 0);
	/* Nobody is to wait for the end of what the program had open. */
	if (sock)
		raw_call3(__NR_close_range, 0, sock - 1, 0);
	raw_call3(__NR_close_range, sock + 1, ~0u, 0);
	/* Then it has said that we may. */
	if (sys_read(sock, &byte, 1) == 1) {
		hold_threads(first, me);
		sys_close(sock);
		do
			ret = raw_call4(__NR_wait4, -1, 0, __WALL, 0);
		while (ret > 0 || ret == -EINTR);
	}
	sys_exit_group(0);
}

void core_threads_stop(struct thread *t)
{
	struct pollfd done = {.events = POLLIN};
	struct thread *first;
	bool others;
	s32 pair[2];
	long pid = -1;

	if (__atomic_exchange_n(&dying, t->proc->pid, __ATOMIC_SEQ_CST) == t->proc->pid)
		return;
	first = threads_lock(t);
	others = next_other(first, t);
	if (others &&
	    !raw_call4(__NR_socketpair, AF_UNIX, SOCK_SEQPACKET | O_CLOEXEC, 0, (long)pair)) {
		fork_areas_offer_all(first);
		pid = raw_call5(__NR_clone, 0, 0, 0, 0, 0);
		if (!pid) {
			sys_close(pair[0]);
			trace(first, t, pair[1]);
		}
		sys_close(pair[1]);
	}
	threads_unlock(t);
	if (pid <= 0)
		return;
	/* Where only ancestors may trace (Yama). */
	sys_prctl(PR_SET_PTRACER, (u64)pid, 0, 0, 0);
	done.fd = pair[0];
	if (sys_write(pair[0], "", 1) == 1)
		raw_call3(__NR_poll, (long)&done, 1, WAIT_MOST);
}
