#include "rt/task/stopped.h"

#include "rt/task/meter-page.h"
#include "rt/task/shared-mm.h"
#include "sys/kernel.h"
#include "sys/string.h"

#include <linux/ptrace.h>
#include <linux/wait.h>

/* Of the threads that are let go at the same time. */
#define STOPPED_MAX 32u

/* Somebody in this memory traces. */
static bool traces;

struct stopped {
	u32 tid;
	bool has_info; /* not one that has stopped with its group */
	bool untold;   /* the tracer has not waited for it yet */
	bool expected; /* PTRACE_ATTACH's SIGSTOP is to come yet */
	bool taken;    /* and has come meanwhile */
	siginfo_t info;
};

/*
 * The signal that a thread stood at when it was let go, which it has then, whatever its tracer says
 * later: a fault has to be repaired where it is. By tid; 0 none.
 */
static struct {
	u32 tid;
	int sig;
} passed[STOPPED_MAX];

/* How threads have gone on that do not by PTRACE_CONT. By tid; 0 none. */
static struct {
	u32 tid, request;
} resumed[STOPPED_MAX];

void stopped_expect(void)
{
	traces = true;
}

void stopped_resume_by(u32 tid, u64 request)
{
	u32 i = tid % STOPPED_MAX;

	resumed[i].tid = request == PTRACE_CONT || request == PTRACE_DETACH ? 0 : tid;
	resumed[i].request = (u32)request;
}

u32 stopped_resumed_by(u32 tid)
{
	u32 i = tid % STOPPED_MAX;

	return resumed[i].tid == tid ? resumed[i].request : PTRACE_CONT;
}

static long trace(u32 request, u32 tid, u64 value)
{
	return raw_call4(__NR_ptrace, request, tid, 0, (long)value);
}

static bool is_pending(u32 tid, int sig)
{
	struct ptrace_peeksiginfo_args args = {.nr = 1};
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	for (; raw_call4(__NR_ptrace, PTRACE_PEEKSIGINFO, tid, (long)&args, (long)&info) == 1;
	     args.off++)
		if (info.si_signo == sig)
			return true;
	return false;
}

bool tracee_goes_on(u64 request)
{
	return request == PTRACE_CONT || request == PTRACE_SYSCALL ||
	       request == PTRACE_SINGLESTEP || request == PTRACE_DETACH;
}

bool tracee_next_stop(u32 tid, int flags, siginfo_t *info)
{
	long ret;

	memset(info, 0, sizeof(*info));
	flags |= WSTOPPED | WEXITED | __WALL | WNOWAIT;
	do
		ret = raw_call6(__NR_waitid, P_PID, tid, (long)info, flags, 0, 0);
	while (ret == -EINTR);
	return !ret && info->si_code == CLD_TRAPPED;
}

bool stopped_has_passed(u32 tid, u64 sig)
{
	u32 i = tid % STOPPED_MAX;
	bool has = passed[i].tid == tid;

	if (has)
		passed[i].tid = 0;
	return has && (u64)passed[i].sig == sig;
}

/* What goes on with the thread that stands at @info. */
static int signal_of(u32 tid, const siginfo_t *info)
{
	u32 i = tid % STOPPED_MAX;

	if (info->si_signo == SIGSTOP || info->si_signo == SIGTRAP || passed[i].tid == tid)
		return 0;
	passed[i].tid = tid;
	passed[i].sig = info->si_signo;
	return info->si_signo;
}

/* Those that stand. */
static u32 let_go(struct stopped *s)
{
	static u32 turn;
	u32 first = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED), n = 0, tid;
	siginfo_t info;

	for (u32 i = 0; i < KNOWN_MAX && n < STOPPED_MAX; i++) {
		long ret;

		tid = known_tid(first * STOPPED_MAX + i);
		ret = tid ? trace(PTRACE_GETSIGINFO, tid, (u64)&s[n].info) : -ESRCH;
		/* ESRCH: it runs, or another traces it. */
		if (ret && ret != -EINVAL)
			continue;
		s[n].tid = tid;
		s[n].has_info = !ret;
		s[n].untold = tracee_next_stop(tid, WNOHANG, &info);
		s[n].expected = is_pending(tid, SIGSTOP);
		s[n].taken = false;
		n += !trace(PTRACE_CONT, tid, ret ? 0 : (u64)signal_of(tid, &s[n].info));
	}
	return n;
}

/*
 * What it stands at then is what it stood at before. Signals that come earlier go through; another
 * event is left for the tracer to see. There must not be a second SIGSTOP, which would come when
 * nobody traces the thread any more.
 */
static void stop_again(const struct stopped *s)
{
	/* Only who was seized can be interrupted. */
	bool seized = !trace(PTRACE_INTERRUPT, s->tid, 0);
	int wanted = seized ? SIGTRAP | PTRACE_EVENT_STOP << 8 : SIGSTOP, status;
	siginfo_t info;

	if (!seized && (!s->expected || s->taken))
		raw_call2(__NR_tkill, s->tid, SIGSTOP);
	for (;;) {
		if (!tracee_next_stop(s->tid, 0, &info))
			return;
		if (info.si_status == wanted)
			break;
		if (info.si_status >> 8)
			return;
		/* Each other stop cancels the interrupt that was asked for. */
		if (seized)
			trace(PTRACE_INTERRUPT, s->tid, 0);
		trace(PTRACE_CONT, s->tid, (u64)info.si_status);
	}
	if (s->has_info)
		trace(PTRACE_SETSIGINFO, s->tid, (u64)&s->info);
	if (s->expected)
		raw_call2(__NR_tkill, s->tid, SIGSTOP);
	if (!s->untold)
		raw_call4(__NR_wait4, s->tid, (long)&status, __WALL, 0);
}

/*
 * A signal that it comes to stand at goes through at once. One that was waiting for it, as a kick
 * does, would else use up all of its time again and again.
 */
static void pass_on(struct stopped *s)
{
	siginfo_t info;

	if (!tracee_next_stop(s->tid, WNOHANG, &info) || info.si_status >> 8)
		return;
	if (info.si_status != SIGSTOP) {
		trace(PTRACE_CONT, s->tid, (u64)info.si_status);
	} else if (s->expected && !s->taken) {
		s->taken = true;
		trace(PTRACE_CONT, s->tid, 0);
	}
}

void stopped_run_on(void)
{
	const struct __kernel_timespec pause = {.tv_nsec = 200000};
	struct stopped s[STOPPED_MAX];
	u32 n, never = 0;

	/* Threads of other PID namespaces have other numbers here. */
	if (likely(!traces) || meter_namespaces())
		return;
	memset(s, 0, sizeof(s));
	n = let_go(s);
	for (u32 round = 0; n && round < 5; round++) {
		sys_futex(&never, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
		for (u32 i = 0; i < n; i++)
			pass_on(&s[i]);
	}
	for (u32 i = 0; i < n; i++)
		stop_again(&s[i]);
}
