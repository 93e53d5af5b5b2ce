/*
 * A PMU made of single steps: the truth that counts are held against.
 *
 *   stepper PROGRAM ARGS...
 *
 * Runs PROGRAM under ptrace and plays a cpu PMU for events of type HARDWARE that a process opens on
 * itself: instructions (id 1) and branches (id 4) of user mode. While such an event is on, the
 * process is stepped instruction by instruction. What the program opens in truth is a dummy
 * software event; reads of it are filled in. ENABLE, DISABLE, RESET, FLAG_GROUP, both prctls and
 * groups are followed; inheritance, other tasks and the user page are not.
 *
 * Counted as hardware counts: a REP string instruction once, when rip leaves it; a system call's
 * instruction; a signal handler's instructions, not its delivery. A branch is what transfers
 * control and has a target: jumps, calls, returns, loops; the syscall instruction is not counted as
 * one here.
 *
 * Exit status: the program's.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/perf.h"

#define MAX_TASKS  64
#define MAX_EVENTS 64

struct event {
	int fd;     /* -1: free */
	int leader; /* index of the leader, its own for a leader */
	u64 config, read_format;
	bool on;
	u64 count;
};

struct task {
	pid_t pid; /* 0: free */
	bool in_call;
	int inject;   /* signal to deliver at the next resume */
	bool entered; /* a handler was just entered: nothing retired */
	u64 rip;      /* where it stood when it was resumed by a step, 0: it was not */
	struct event events[MAX_EVENTS];
	int opening; /* index of the event of a perf_event_open in progress, -1 */
	u64 attr_at; /* where its attr is */
	struct pe_attr attr;
};

static struct task tasks[MAX_TASKS];

static void die(const char *what)
{
	fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
	exit(125);
}

static struct task *task_of(pid_t pid)
{
	struct task *unused = NULL;

	for (struct task *t = tasks; t < tasks + MAX_TASKS; t++) {
		if (t->pid == pid)
			return t;
		if (!t->pid && !unused)
			unused = t;
	}
	if (!unused) {
		errno = E2BIG;
		die("too many tasks");
	}
	memset(unused, 0, sizeof(*unused));
	unused->pid = pid;
	unused->opening = -1;
	for (int i = 0; i < MAX_EVENTS; i++)
		unused->events[i].fd = -1;
	return unused;
}

static ssize_t peek(pid_t pid, u64 at, void *buf, size_t len)
{
	struct iovec here = {buf, len}, there = {(void *)at, len};

	return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

static void poke(pid_t pid, u64 at, const void *buf, size_t len)
{
	struct iovec here = {(void *)(unsigned long)buf, len}, there = {(void *)at, len};

	if (process_vm_writev(pid, &here, 1, &there, 1, 0) != (ssize_t)len)
		die("writing the program's memory");
}

static struct event *event_of(struct task *t, int fd)
{
	for (int i = 0; i < MAX_EVENTS && fd >= 0; i++)
		if (t->events[i].fd == fd)
			return &t->events[i];
	return NULL;
}

static bool counts(const struct task *t, const struct event *e)
{
	return e->fd >= 0 && e->on && t->events[e->leader].on;
}

static bool stepping(const struct task *t)
{
	for (int i = 0; i < MAX_EVENTS; i++)
		if (counts(t, &t->events[i]))
			return true;
	return false;
}

struct insn {
	bool branch, rep_string, call, cpuid;
};

/* Classifies the instruction at AT, as far as counting needs. */
static struct insn classify(pid_t pid, u64 at)
{
	u8 b[16] = {0}, op;
	struct insn insn = {0};
	bool rep = false;
	int i = 0;

	/* Near the end of a mapping fewer bytes can be read. */
	for (size_t len = sizeof(b); len && peek(pid, at, b, len) <= 0; len--)
		;
	for (;; i++) {
		if (b[i] == 0xf2 || b[i] == 0xf3)
			rep = true;
		else if (b[i] != 0x66 && b[i] != 0x67 && b[i] != 0x2e && b[i] != 0x3e &&
			 b[i] != 0x26 && b[i] != 0x36 && b[i] != 0x64 && b[i] != 0x65 &&
			 b[i] != 0xf0)
			break;
	}
	if ((b[i] & 0xf0) == 0x40)
		i++;
	op = b[i];
	if (op == 0x0f) {
		insn.call = b[i + 1] == 0x05;
		insn.branch = (b[i + 1] & 0xf0) == 0x80;
		insn.cpuid = b[i + 1] == 0xa2;
		return insn;
	}
	insn.rep_string = rep && ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf));
	insn.branch = (op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3) || op == 0xe8 ||
		      op == 0xe9 || op == 0xeb || op == 0xc2 || op == 0xc3 ||
		      (op == 0xff && ((b[i + 1] >> 3) & 7) >= 2 && ((b[i + 1] >> 3) & 7) <= 5);
	return insn;
}

static void retire(struct task *t, struct insn insn)
{
	for (int i = 0; i < MAX_EVENTS; i++) {
		struct event *e = &t->events[i];

		if (counts(t, e) && (e->config == PERF_COUNT_HW_INSTRUCTIONS || insn.branch))
			e->count++;
	}
}

static void control(struct task *t, struct event *e, unsigned long request)
{
	if (request == PERF_EVENT_IOC_ENABLE)
		e->on = true;
	else if (request == PERF_EVENT_IOC_DISABLE)
		e->on = false;
	else if (request == PERF_EVENT_IOC_RESET)
		e->count = 0;
	(void)t;
}

/* A perf_event_open of ours becomes one of a dummy. */
static void enter_call(struct task *t, struct user_regs_struct *r)
{
	struct pe_attr dummy;

	if (r->orig_rax != SYS_perf_event_open || r->rsi != 0)
		return;
	memset(&t->attr, 0, sizeof(t->attr));
	if (peek(t->pid, r->rdi, &t->attr, 64) != 64 || t->attr.type != PERF_TYPE_HARDWARE ||
	    (t->attr.config != PERF_COUNT_HW_INSTRUCTIONS &&
	     t->attr.config != PERF_COUNT_HW_BRANCH_INSTRUCTIONS))
		return;
	for (t->opening = 0; t->events[t->opening].fd >= 0;)
		if (++t->opening == MAX_EVENTS) {
			errno = E2BIG;
			die("too many events");
		}
	t->attr_at = r->rdi;
	dummy = t->attr;
	dummy.type = PERF_TYPE_SOFTWARE;
	dummy.config = PERF_COUNT_SW_DUMMY;
	poke(t->pid, r->rdi, &dummy, 16);
}

static void opened(struct task *t, struct user_regs_struct *r)
{
	struct event *e = &t->events[t->opening], *leader = event_of(t, (int)r->r10);

	poke(t->pid, t->attr_at, &t->attr, 16);
	if ((long)r->rax >= 0) {
		*e = (struct event){
			.fd = (int)r->rax,
			.leader = leader ? leader->leader : t->opening,
			.config = t->attr.config,
			.read_format = t->attr.read_format,
			.on = !t->attr.disabled,
		};
	}
	t->opening = -1;
}

/* Puts our counts where the kernel has put a dummy's. */
static void fill_in(struct task *t, const struct event *e, u64 at)
{
	u64 words = 1 + !!(e->read_format & PERF_FORMAT_ID) + !!(e->read_format & PERF_FORMAT_LOST);
	u64 times = 8 * (!!(e->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(e->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING));
	u64 n = 0;

	if (!(e->read_format & PERF_FORMAT_GROUP)) {
		poke(t->pid, at, &e->count, 8);
		return;
	}
	for (int i = e->leader; i < MAX_EVENTS; i++) {
		if (t->events[i].fd < 0 || t->events[i].leader != e->leader)
			continue;
		poke(t->pid, at + 8 + times + n * words * 8, &t->events[i].count, 8);
		n++;
	}
}

static void leave_call(struct task *t, struct user_regs_struct *r)
{
	struct event *e;

	if (r->orig_rax == SYS_perf_event_open && t->opening >= 0) {
		opened(t, r);
		return;
	}
	if ((long)r->rax < 0)
		return;
	if (r->orig_rax == SYS_prctl && (r->rdi == 31 || r->rdi == 32)) {
		for (int i = 0; i < MAX_EVENTS; i++)
			t->events[i].on = t->events[i].fd >= 0 && r->rdi == 32;
		return;
	}
	if (r->orig_rax != SYS_ioctl && r->orig_rax != SYS_read && r->orig_rax != SYS_close)
		return;
	e = event_of(t, (int)r->rdi);
	if (!e)
		return;
	if (r->orig_rax == SYS_read) {
		fill_in(t, e, r->rsi);
	} else if (r->orig_rax == SYS_close) {
		for (int i = 0; i < MAX_EVENTS; i++)
			if (&t->events[t->events[i].leader] == e)
				t->events[i].leader = i;
		e->fd = -1;
	} else if (r->rdx & PERF_IOC_FLAG_GROUP) {
		for (int i = 0; i < MAX_EVENTS; i++)
			if (t->events[i].fd >= 0 && t->events[i].leader == e->leader)
				control(t, &t->events[i], r->rsi);
	} else {
		control(t, e, r->rsi);
	}
}

/*
 * Resumes a stopped task: by a step while an event of it counts, else up to its next system call.
 */
static void resume(struct task *t)
{
	int signal = t->inject;
	enum __ptrace_request how = PTRACE_SYSCALL;
	struct user_regs_struct r;
	struct insn insn;

	t->inject = 0;
	t->rip = 0;
	t->entered = signal != 0;
	if (!t->in_call && stepping(t)) {
		if (ptrace(PTRACE_GETREGS, t->pid, NULL, &r) < 0)
			return;
		insn = classify(t->pid, r.rip);
		if (!insn.call || signal) {
			how = PTRACE_SINGLESTEP;
			t->rip = r.rip;
		}
	}
	/* A task that was killed meanwhile is reported by wait. */
	ptrace(how, t->pid, NULL, (void *)(long)signal);
}

/* A step has ended: did the instruction that it began at retire? */
static void stepped(struct task *t, const struct user_regs_struct *r, bool trap)
{
	struct insn insn = classify(t->pid, t->rip);

	if (r->rip != t->rip || (trap && !insn.rep_string))
		retire(t, insn);
	/* Some hypervisors that answer cpuid lose its trap: another one has retired then. */
	if (insn.cpuid && r->rip > t->rip + 2)
		retire(t, classify(t->pid, t->rip + 2));
}

static void stopped(struct task *t, int status)
{
	struct user_regs_struct r;
	int sig = WSTOPSIG(status);

	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &r) < 0)
		return;
	if (sig == (SIGTRAP | 0x80)) {
		t->in_call = !t->in_call;
		if (t->in_call) {
			retire(t, (struct insn){.call = true});
			enter_call(t, &r);
		} else {
			leave_call(t, &r);
		}
	} else if (status >> 16) {
		/* fork, exec: an exec leaves one call more to come, and closes nothing here */
		if (status >> 16 == PTRACE_EVENT_EXEC)
			t->in_call = true;
	} else {
		if (t->rip && !t->entered)
			stepped(t, &r, sig == SIGTRAP);
		if (sig != SIGTRAP && sig != SIGSTOP)
			t->inject = sig;
	}
}

int main(int argc, char **argv)
{
	int status, result = 125;
	pid_t first, pid;

	if (argc < 2) {
		fprintf(stderr, "usage: stepper PROGRAM ARGS...\n");
		return 125;
	}
	first = fork();
	if (first < 0)
		die("fork");
	if (first == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execvp(argv[1], argv + 1);
		die(argv[1]);
	}
	if (waitpid(first, &status, 0) != first || !WIFSTOPPED(status))
		die("waiting for the program");
	if (ptrace(PTRACE_SETOPTIONS, first, NULL,
		   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			    PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) < 0)
		die("PTRACE_SETOPTIONS");
	resume(task_of(first));
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		struct task *t = task_of(pid);

		if (WIFSTOPPED(status)) {
			stopped(t, status);
			resume(t);
			continue;
		}
		t->pid = 0;
		if (pid == first)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return result;
}
