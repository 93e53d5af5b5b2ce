/*
 * The oracle of counts: runs a program one PTRACE_SINGLESTEP at a time and counts what retires.
 *
 *	stepper [-j] [-o FILE] [-t] [-r] [-b PERIOD [-k KINDS | -f]] [--] COMMAND [ARGUMENT...]
 *
 * -j JSON, -t threads too, -r without address-space randomization, -o where to (default: stderr).
 * -b: instead of counts, after each PERIOD instructions of a thread a line with its number, the
 * next pc and the last 32 taken branches of KINDS, the newest one first: from/to/type. KINDS has a
 * bit for each PERF_BR_*; bit 0 stands for calls that have not returned.
 * -f: before the pc the thread's id, and instead of branches its registers, in the order of
 * PERF_REG_X86_* without segments that perf does not sample, and behind a colon the frame-pointer
 * call chain, as the kernel follows it. Of a system call these are as the instruction has left
 * them, before the kernel did anything.
 * The exit status is the command's (128 + signal if killed).
 *
 * Counted is what hardware counts: a faulting instruction when it retires after the repair, a
 * system call instruction also when it never returns, a REP string instruction once although the
 * CPU traps at each iteration. Counting begins with the first instruction of the command.
 *
 * What a stop means, by si_code of its SIGTRAP: TRAP_TRACE, the instruction has retired;
 * TRAP_BRKPT, a system call is about to return (or a new thread to start); SIGTRAP, a handler's
 * frame was built and nothing ran; SI_KERNEL, an int3 has retired. A stop for any other signal: the
 * instruction that was due has not run.
 */
/* Under _GNU_SOURCE <signal.h> names registers as decode.h does, with other numbers. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "dbt/arch/x86_64/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/reg.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum quantity {
	INSTRUCTIONS,
	BRANCHES,
	CONDITIONAL,
	TAKEN,
	CALLS,
	RETURNS,
	INDIRECT,
	QUANTITIES,
};

static const char *const names[QUANTITIES] = {
	"instructions", "branches", "conditional", "taken", "calls", "returns", "indirect",
};

struct counts {
	unsigned long long n[QUANTITIES];
};

struct branch {
	u64 from, to;
	u32 type; /* PERF_BR_* */
};
#define TOLD_MAX   32
#define NESTED_MAX 65536 /* calls, for those that have not returned */

/* What -b and -k ask for. */
static unsigned long long branch_period;
static u32 branch_kinds = ~1u;
static bool wants_facts; /* instead of branches */
static FILE *out;

struct process {
	pid_t pid;
	int mem; /* /proc/PID/mem; -1: to be opened */
	struct process *next;
};

struct thread {
	pid_t tid;
	struct process *process;
	struct counts counts;
	bool alive;
	bool fresh;   /* has not returned from the call that made it */
	bool in_call; /* due is a system call and its return has not been seen */
	u64 pc;       /* of the instruction that is due */
	struct insn due;
	bool valid; /* due was decoded */
	int number;
	struct branch *branches; /* the newest one last */
	u32 nr_branches;
	struct thread *next;
};

static struct process *processes;
static struct thread *threads;
static pid_t child;

static void die(const char *what)
{
	perror(what);
	exit(125);
}

static struct process *process_find(pid_t pid)
{
	struct process *p;

	for (p = processes; p; p = p->next)
		if (p->pid == pid)
			return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		die("calloc");
	p->pid = pid;
	p->mem = -1;
	p->next = processes;
	processes = p;
	return p;
}

static pid_t thread_group(pid_t tid)
{
	char path[64], line[256];
	int tgid = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &tgid) == 1)
			break;
	if (f)
		fclose(f);
	return tgid;
}

static struct thread *thread_find(pid_t tid)
{
	struct thread *t;

	for (t = threads; t; t = t->next)
		if (t->tid == tid && t->alive)
			return t;
	return NULL;
}

static struct thread *thread_new(pid_t tid)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (!t)
		die("calloc");
	t->tid = tid;
	t->alive = true;
	t->fresh = true;
	t->process = process_find(thread_group(tid));
	t->number = threads ? threads->number + 1 : 0;
	t->next = threads;
	threads = t;
	return t;
}

static u64 peek_rip(struct thread *t)
{
	return (u64)ptrace(PTRACE_PEEKUSER, t->tid, offsetof(struct user_regs_struct, rip), 0);
}

static void look_at(struct thread *t, u64 pc)
{
	struct process *p = t->process;
	u8 bytes[INSN_MAX];
	char path[64];
	ssize_t n;

	t->pc = pc;
	if (p->mem < 0) {
		snprintf(path, sizeof(path), "/proc/%d/mem", t->tid);
		p->mem = open(path, O_RDONLY | O_CLOEXEC);
	}
	n = pread(p->mem, bytes, sizeof(bytes), (off_t)t->pc);
	if (n <= 0) /* the last page before a hole, or no code at all */
		for (n = 0; n < INSN_MAX && pread(p->mem, bytes + n, 1, (off_t)t->pc + n) == 1;)
			n++;
	t->valid = insn_decode(&t->due, bytes, n > 0 ? (size_t)n : 0) > 0;
	t->in_call = t->valid && t->due.cf == CF_SYSCALL;
}

/* Looks at the instruction that will run next. */
static void look(struct thread *t)
{
	look_at(t, peek_rip(t));
}

static u32 branch_type(const struct insn *insn, bool falls)
{
	switch (insn->cf) {
	case CF_JCC:
	case CF_LOOP: return falls ? 0 : PERF_BR_COND;
	case CF_JMP: return PERF_BR_UNCOND;
	case CF_JMP_IND:
	case CF_FAR_JMP: return PERF_BR_IND;
	case CF_CALL: return PERF_BR_CALL;
	case CF_CALL_IND:
	case CF_FAR_CALL: return PERF_BR_IND_CALL;
	case CF_RET:
	case CF_FAR_RET: return PERF_BR_RET;
	default: return 0; /* system calls among them */
	}
}

/* Open calls: a call of what follows in memory is none, as on hardware. */
static bool is_kept(struct thread *t, u32 type, bool falls)
{
	if (!(branch_kinds & 1))
		return branch_kinds >> type & 1;
	if (type == PERF_BR_RET && t->nr_branches)
		t->nr_branches--;
	return type == PERF_BR_IND_CALL || (type == PERF_BR_CALL && !falls);
}

static void note_branch(struct thread *t, const struct insn *insn, u64 pc, u64 next)
{
	bool falls = next == pc + insn->len;
	u32 type = branch_type(insn, falls);

	if (!branch_period || !type || !is_kept(t, type, falls))
		return;
	if (!t->branches)
		t->branches = calloc(NESTED_MAX, sizeof(*t->branches));
	if (!t->branches)
		die("calloc");
	if (t->nr_branches == NESTED_MAX) {
		t->nr_branches = NESTED_MAX / 2;
		memmove(t->branches, t->branches + NESTED_MAX / 2,
			NESTED_MAX / 2 * sizeof(*t->branches));
	}
	t->branches[t->nr_branches++] = (struct branch){pc, next, type};
}

static void print_branches(const struct thread *t, u64 next)
{
	if (!branch_period || t->counts.n[INSTRUCTIONS] % branch_period)
		return;
	fprintf(out, "%d %llx", t->number, (unsigned long long)next);
	for (u32 i = 0; i < TOLD_MAX && i < t->nr_branches; i++) {
		const struct branch *b = &t->branches[t->nr_branches - 1 - i];

		fprintf(out, " %llx/%llx/%u", (unsigned long long)b->from,
			(unsigned long long)b->to, b->type);
	}
	fprintf(out, "\n");
}

/* As the kernel's perf_callchain_user(): frames are in user memory, wherever they point. */
static void print_chain(const struct thread *t, u64 fp)
{
	u64 frame[2];

	for (u32 depth = 1; depth < 127; depth++) {
		if (fp >> 47 ||
		    pread(t->process->mem, frame, sizeof(frame), (off_t)fp) != sizeof(frame))
			return;
		fprintf(out, " %llx", (unsigned long long)frame[1]);
		fp = frame[0];
	}
}

static void print_facts(const struct thread *t, u64 next)
{
	struct user_regs_struct r;

	if (!branch_period || t->counts.n[INSTRUCTIONS] % branch_period)
		return;
	if (ptrace(PTRACE_GETREGS, t->tid, 0, &r))
		die("PTRACE_GETREGS");
	const u64 regs[] = {
		t->in_call ? r.orig_rax : r.rax,
		r.rbx,
		r.rcx,
		r.rdx,
		r.rsi,
		r.rdi,
		r.rbp,
		r.rsp,
		next,
		r.eflags,
		r.cs,
		r.ss,
		r.r8,
		r.r9,
		r.r10,
		r.r11,
		r.r12,
		r.r13,
		r.r14,
		r.r15,
	};

	fprintf(out, "%d %d %llx", t->number, t->tid, (unsigned long long)next);
	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++)
		fprintf(out, " %llx", (unsigned long long)regs[i]);
	fprintf(out, " :");
	print_chain(t, r.rbp);
	fprintf(out, "\n");
}

static void count(struct thread *t, const struct insn *insn, u64 pc, u64 next)
{
	unsigned long long *n = t->counts.n;

	n[INSTRUCTIONS]++;
	if (insn)
		note_branch(t, insn, pc, next);
	if (wants_facts)
		print_facts(t, next);
	else
		print_branches(t, next);
	if (!insn || !(insn->attr & INSN_BRANCH))
		return;
	n[BRANCHES]++;
	if (insn->attr & INSN_COND) {
		n[CONDITIONAL]++;
		/* A branch to the instruction after it shows nothing; the corpus has none. */
		n[TAKEN] += next != pc + insn->len;
	}
	n[CALLS] += insn->cf == CF_CALL || insn->cf == CF_CALL_IND || insn->cf == CF_FAR_CALL;
	n[RETURNS] += insn->cf == CF_RET || insn->cf == CF_FAR_RET;
	n[INDIRECT] += insn->cf == CF_JMP_IND || insn->cf == CF_CALL_IND ||
		       insn->cf == CF_FAR_JMP || insn->cf == CF_FAR_CALL;
}

/*
 * Some virtual machines do cpuid for the program and then let it go on, so the step ends behind the
 * next instruction. That has been counted when this returns, and @next is what follows it.
 */
static void count_late(struct thread *t, u64 next)
{
	u64 after = t->pc + t->due.len;

	count(t, &t->due, t->pc, after);
	look_at(t, after);
	count(t, t->valid ? &t->due : NULL, after, next);
}

static void count_call(struct thread *t)
{
	struct insn call = {.len = 2, .cf = CF_SYSCALL, .attr = INSN_BRANCH};

	count(t, &call, t->pc, t->pc + 2);
	t->in_call = false;
}

/* A SIGTRAP. Returns the signal to hand on. */
static int on_trap(struct thread *t)
{
	siginfo_t si;
	u64 next;

	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &si))
		return 0;
	/*
	 * A call ends with TRAP_BRKPT. So does a step that a hypervisor has finished without saying
	 * in DR6 that it was one.
	 */
	if (si.si_code == TRAP_TRACE || (si.si_code == TRAP_BRKPT && !t->in_call && !t->fresh)) {
		t->fresh =
			false; /* a forked child begins like this, a new thread with TRAP_BRKPT */
		next = peek_rip(t);
		if (t->valid && t->due.special == SP_CPUID && next != t->pc + t->due.len)
			count_late(t, next);
		else if (!(t->valid && (t->due.attr & INSN_REP) && next == t->pc))
			count(t, t->valid ? &t->due : NULL, t->pc, next);
		look(t);
		return 0;
	}
	if (si.si_code == TRAP_BRKPT) {
		if (!t->fresh)
			count_call(t);
		t->fresh = false;
		look(t);
		return 0;
	}
	if (si.si_code == SIGTRAP) {
		look(t);
		return 0;
	}
	/* int3 retires and then traps; a SIGTRAP that somebody sent changes nothing. */
	if (si.si_code == SI_KERNEL) {
		count(t, t->valid ? &t->due : NULL, t->pc, t->pc);
		look(t);
	}
	return SIGTRAP;
}

/* The thread is now the only one of its process, and has the leader's id. */
static void on_exec(struct thread *t)
{
	unsigned long old = 0;
	struct thread *caller, *other;

	ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &old);
	for (other = threads; other; other = other->next)
		if (other->process == t->process && other->alive && other != t &&
		    other->tid != (pid_t)old)
			other->alive = false;
	caller = thread_find((pid_t)old);
	if (caller && caller != t) {
		t->in_call = caller->in_call;
		caller->alive = false;
	}
	if (t->process->mem >= 0)
		close(t->process->mem);
	t->process->mem = -1;
	t->nr_branches = 0; /* addresses of another program */
}

static void on_exit_event(struct thread *t)
{
	struct user_regs_struct regs;

	/*
	 * exit, or killed inside a call: the instruction went into the kernel and never came out.
	 */
	if (t->in_call && !ptrace(PTRACE_GETREGS, t->tid, 0, &regs) && regs.rip == t->pc + 2 &&
	    (long)regs.orig_rax >= 0)
		count_call(t);
}

static void resume(struct thread *t, int sig)
{
	if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, sig) && errno != ESRCH)
		die("PTRACE_SINGLESTEP");
}

static void on_stop(pid_t tid, int status)
{
	struct thread *t = thread_find(tid);
	int event = status >> 16, sig = WSTOPSIG(status);
	siginfo_t si;

	if (!t) {
		t = thread_new(tid); /* stopped with the SIGSTOP of its attachment */
		look(t);
		t->in_call = false;
		resume(t, 0);
		return;
	}
	switch (event) {
	case PTRACE_EVENT_EXEC:
		on_exec(t);
		resume(t, 0);
		return;
	case PTRACE_EVENT_EXIT:
		on_exit_event(t);
		ptrace(PTRACE_CONT, tid, 0, 0);
		return;
	case 0: break;
	default: resume(t, 0); return;
	}
	if (sig == SIGTRAP) {
		resume(t, on_trap(t));
		return;
	}
	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &si))
		sig = 0; /* a group stop */
	look(t);
	resume(t, sig);
}

static void add(struct counts *to, const struct counts *from)
{
	for (int q = 0; q < QUANTITIES; q++)
		to->n[q] += from->n[q];
}

static void print_counts(FILE *f, const struct counts *c)
{
	for (int q = 0; q < QUANTITIES; q++)
		fprintf(f, "%s\"%s\":%llu", q ? "," : "", names[q], c->n[q]);
}

static void print_json(FILE *f, const struct counts *total, bool with_threads)
{
	const char *sep = "";

	fprintf(f, "{\"schema\":1,\"total\":{");
	print_counts(f, total);
	fprintf(f, "},\"processes\":[");
	for (struct process *p = processes; p; p = p->next) {
		struct counts sum = {0};
		const char *comma = "";

		for (struct thread *t = threads; t; t = t->next)
			if (t->process == p)
				add(&sum, &t->counts);
		fprintf(f, "%s{\"pid\":%d,", sep, p->pid);
		print_counts(f, &sum);
		sep = ",";
		if (with_threads) {
			fprintf(f, ",\"threads\":[");
			for (struct thread *t = threads; t; t = t->next) {
				if (t->process != p)
					continue;
				fprintf(f, "%s{\"tid\":%d,", comma, t->tid);
				print_counts(f, &t->counts);
				fprintf(f, "}");
				comma = ",";
			}
			fprintf(f, "]");
		}
		fprintf(f, "}");
	}
	fprintf(f, "]}\n");
}

static void print_plain(FILE *f, const struct counts *total, bool with_threads)
{
	for (int q = 0; q < QUANTITIES; q++)
		fprintf(f, "%16llu %s\n", total->n[q], names[q]);
	for (struct thread *t = threads; with_threads && t; t = t->next)
		fprintf(f, "pid %d tid %d: %llu instructions, %llu branches\n", t->process->pid,
			t->tid, t->counts.n[INSTRUCTIONS], t->counts.n[BRANCHES]);
}

/* Tracer and tracee on one CPU: a step is then a switch and not a wakeup, four times as fast. */
static void share_a_cpu(void)
{
	unsigned int cpu = 0;
	unsigned long mask[16] = {0};

	if (syscall(SYS_getcpu, &cpu, NULL, NULL) || cpu >= 1024)
		return;
	mask[cpu / 64] |= 1ul << (cpu % 64);
	syscall(SYS_sched_setaffinity, 0, sizeof(mask), mask);
}

static void start(char **argv, bool fixed)
{
	share_a_cpu();
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		if (fixed)
			personality(ADDR_NO_RANDOMIZE);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			die("PTRACE_TRACEME");
		raise(SIGSTOP);
		execvp(argv[0], argv);
		die(argv[0]);
	}
}

/* From the SIGSTOP of start() to the first instruction of the command. */
static void arrive(void)
{
	long options = PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		       PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;
	int status;

	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
		die("waitpid");
	if (ptrace(PTRACE_SETOPTIONS, child, 0, options))
		die("PTRACE_SETOPTIONS");
	do {
		ptrace(PTRACE_CONT, child, 0, 0);
		if (waitpid(child, &status, 0) != child || WIFEXITED(status) || WIFSIGNALED(status))
			exit(127);
	} while (status >> 16 != PTRACE_EVENT_EXEC);
	/* Fresh: the stop at the end of execve is not of the command's making. */
	resume(thread_new(child), 0);
}

static int run(void)
{
	int status, result = 0;
	struct thread *t;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		if (tid < 0)
			continue;
		if (WIFSTOPPED(status)) {
			on_stop(tid, status);
			continue;
		}
		if (tid == child)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		t = thread_find(tid);
		if (t)
			t->alive = false;
	}
	return result;
}

int main(int argc, char **argv)
{
	bool json = false, with_threads = false, fixed = false;
	struct counts total = {0};
	int opt, result;

	out = stderr;
	while ((opt = getopt(argc, argv, "+jtrfo:b:k:")) != -1) {
		switch (opt) {
		case 'j': json = true; break;
		case 't': with_threads = true; break;
		case 'r': fixed = true; break;
		case 'f': wants_facts = true; break;
		case 'b': branch_period = strtoull(optarg, NULL, 0); break;
		case 'k': branch_kinds = (u32)strtoul(optarg, NULL, 0); break;
		case 'o':
			out = fopen(optarg, "we");
			if (!out)
				die(optarg);
			break;
		default: return 125;
		}
	}
	if (optind >= argc) {
		fprintf(stderr, "usage: stepper [-jtr] [-o FILE] [-b PERIOD [-k KINDS | -f]] [--] "
				"COMMAND "
				"[ARGUMENT...]\n");
		return 125;
	}
	insn_set_near16(insn_cpu_has_near16());
	start(argv + optind, fixed);
	arrive();
	result = run();
	for (struct thread *t = threads; t; t = t->next)
		add(&total, &t->counts);
	if (branch_period)
		return result;
	if (json)
		print_json(out, &total, with_threads);
	else
		print_plain(out, &total, with_threads);
	return result;
}
