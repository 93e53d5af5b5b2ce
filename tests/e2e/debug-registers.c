/*
 * Gives another process of this program debug registers by ptrace, and says whether what it meets
 * and what is seen of it is what the kernel shows of a program on the CPU: functions of its own
 * are where it stops, before their first instruction, and data that it writes, behind that.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "breakpoints-fire.h"

#define EXECUTE(i)     (1ul << (2 * (i)))
#define WATCH(i, kind) (EXECUTE(i) | (unsigned long)(kind) << (16 + 4 * (i)))
#define WRITE_8        0x9 /* of WATCH */
#define MET            0xffff0ff0ul
#define RESUME         0x10000
#define MODES          16

void place(void);
void other_place(void);
void store(void);
void round_and_round(void);
extern const char stored[], in_loop[];
extern volatile long cell;
volatile long cell __attribute__((aligned(8)));
__asm__(".pushsection .text, \"ax\", @progbits\n"
	"place:\n"
	"	nop\n"
	"	ret\n"
	"other_place:\n"
	"	nop\n"
	"	ret\n"
	"store:	movq $7, cell(%rip)\n"
	"stored:\n"
	"	ret\n"
	"round_and_round:\n"
	"1:	inc %rax\n"
	"in_loop:\n"
	"	nop\n"
	"	jmp 1b\n"
	".popsection\n");

static int faults;

static void must(int right, const char *what)
{
	if (right)
		return;
	if (faults++ < 10)
		printf("wrong: %s (%s)\n", what, strerror(errno));
}

static int set(pid_t pid, int n, unsigned long value)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[n]), value) ? errno
											 : 0;
}

static unsigned long get(pid_t pid, int n)
{
	return (unsigned long)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[n]), 0);
}

static void begin(void (*fn)(void))
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	fn();
	fflush(stdout);
	_exit(faults ? 9 : 7);
}

static pid_t child(void (*fn)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		begin(fn);
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "it stops");
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* It goes on, and stops with a trap. */
static int traps(pid_t pid, const char *what)
{
	int status = 0;

	must(!ptrace(PTRACE_CONT, pid, 0, 0) && waitpid(pid, &status, 0) == pid, what);
	if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP)
		return 1;
	must(0, what);
	return 0;
}

/* It stands with @rip at @at having met the registers of @met. */
static void has_met(pid_t pid, const void *at, unsigned long met, int resume, const char *what)
{
	struct user_regs_struct r;
	siginfo_t info;

	must(!ptrace(PTRACE_GETREGS, pid, 0, &r) && r.rip == (unsigned long)at, what);
	must((long)r.orig_rax == -1, "in no system call");
	must(!(r.eflags & RESUME) == !resume, "the resume flag");
	must(!ptrace(PTRACE_GETSIGINFO, pid, 0, &info) && info.si_signo == SIGTRAP &&
		     info.si_code == TRAP_HWBKPT && info.si_addr == at,
	     "what the signal says");
	must(get(pid, 6) == (MET | met), "the status");
}

static void meets(pid_t pid, const void *at, unsigned long met, int resume, const char *what)
{
	if (traps(pid, what))
		has_met(pid, at, met, resume, what);
}

static void ends(pid_t pid, int code, const char *what)
{
	int status = 0;

	ptrace(PTRACE_CONT, pid, 0, 0);
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == code,
	     what);
}

static void calls(void)
{
	place();
	other_place();
	place();
}

static void check_modified(void)
{
	pid_t pid = child(calls);

	must(!set(pid, 0, (unsigned long)other_place) && !set(pid, 7, EXECUTE(0)), "set");
	must(!set(pid, 0, (unsigned long)place), "modified while it is on");
	must(set(pid, 0, ~0ul) == EINVAL && get(pid, 0) == (unsigned long)place, "no address");
	meets(pid, place, 1, 1, "the first call");
	must(get(pid, 7) == EXECUTE(0), "the control stays");
	meets(pid, place, 1, 1, "the second call");
	ends(pid, 7, "no third one");

	pid = child(calls);
	must(!set(pid, 0, (unsigned long)place) && !set(pid, 2, (unsigned long)place), "set");
	must(!set(pid, 3, (unsigned long)other_place + 1), "behind the first instruction");
	must(!set(pid, 7, EXECUTE(0) | EXECUTE(2) | EXECUTE(3)), "three are on");
	meets(pid, place, 1 | 4, 1, "two at one place");
	meets(pid, (const char *)other_place + 1, 8, 1, "the third one");
	must(!set(pid, 6, 0) && !get(pid, 6), "the status is what is set");
	must(!set(pid, 7, 0), "off");
	ends(pid, 7, "none is met");
}

static void check_refused(void)
{
	/* Of length, from bit 2 on, and type: execution has the length of a byte. */
	static const int fits[MODES] = {1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
	pid_t pid = child(calls);

	must(get(pid, 6) == MET && !get(pid, 7), "at first");
	must(set(pid, 0, 1ul << 63) == EINVAL && set(pid, 0, 0x7ffffffff000) == EINVAL, "too high");
	must(set(pid, 4, 1) == EIO && set(pid, 5, 1) == EIO, "those that are not there");
	must(!set(pid, 0, (unsigned long)&cell), "an address for all lengths");
	for (unsigned long mode = 0; mode < MODES; mode++)
		must(set(pid, 7, WATCH(0, mode)) == (fits[mode] ? 0 : EINVAL), "types and lengths");
	must(!set(pid, 7, 0), "off");
	ends(pid, 7, "none is met");
}

static void stores(void)
{
	long seen;

	store();
	seen = cell;
	must(seen == 7, "what was stored");
}

static void check_data(void)
{
	pid_t pid = child(stores);

	must(!set(pid, 1, (unsigned long)&cell) && !set(pid, 0, (unsigned long)stored), "set");
	must(!set(pid, 7, WATCH(1, WRITE_8) | EXECUTE(0)), "both are on");
	/* Some CPUs (Emerald Rapids) tell of both at once. */
	if (traps(pid, "what is written") && get(pid, 6) == (MET | 3)) {
		has_met(pid, stored, 3, 1, "both");
	} else {
		has_met(pid, stored, 2, 0, "what is written");
		meets(pid, stored, 1, 1, "the instruction behind");
	}
	ends(pid, 7, "reading is not met");
}

static volatile int handled, wrong_address;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	(void)sig;
	handled++;
	wrong_address += (greg_t)info->si_addr != uc->uc_mcontext.gregs[REG_RIP] ||
			 info->si_code != TRAP_HWBKPT;
	if (info->si_addr == (void *)place)
		wrong_address += !(uc->uc_mcontext.gregs[REG_EFL] & RESUME);
	else
		wrong_address += info->si_addr != stored;
}

static void handles(void)
{
	struct sigaction act = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	sigaction(SIGTRAP, &act, NULL);
	place();
	place();
	must(handled == 2, "each call is handled, once");
	store();
	must(handled == 3 && !wrong_address, "so is what is written");
}

/* Without its tracer it has the signal itself, as it has one that the tracer lets through. */
static void check_handled(void)
{
	const unsigned long on = EXECUTE(0) | WATCH(1, WRITE_8);
	int status = 0;
	pid_t pid = child(handles);

	must(!set(pid, 0, (unsigned long)place) && !set(pid, 1, (unsigned long)&cell), "set");
	must(!set(pid, 7, on) && !ptrace(PTRACE_DETACH, pid, 0, 0), "detach");
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7,
	     "handled without a tracer");

	pid = child(handles);
	must(!set(pid, 0, (unsigned long)place) && !set(pid, 1, (unsigned long)&cell), "set");
	must(!set(pid, 7, on), "on");
	meets(pid, place, 1, 1, "the first call");
	for (int i = 0; i < 2; i++)
		must(!ptrace(PTRACE_CONT, pid, 0, SIGTRAP) && waitpid(pid, &status, 0) == pid &&
			     WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP,
		     "let through");
	must(get(pid, 6) == (MET | 2), "the last one is of the data");
	must(!ptrace(PTRACE_CONT, pid, 0, SIGTRAP) && waitpid(pid, &status, 0) == pid &&
		     WIFEXITED(status) && WEXITSTATUS(status) == 7,
	     "handled as the tracer let it through");
}

static void blocks(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	place();
}

static void check_blocked(void)
{
	int status = 0;
	pid_t pid = child(blocks);

	must(!set(pid, 0, (unsigned long)place) && !set(pid, 7, EXECUTE(0)), "set");
	must(!ptrace(PTRACE_DETACH, pid, 0, 0), "detach");
	must(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP,
	     "it dies of one that it blocks");
}

static void *in_thread(void *arg)
{
	place();
	return arg;
}

static void begins(void)
{
	pthread_t thread;
	sigset_t all;
	int status = 0;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL); /* no stop for its child's end */
	pid = fork();
	if (!pid) {
		place();
		_exit(5);
	}
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "a child has none");
	must(!pthread_create(&thread, NULL, in_thread, NULL), "a thread");
	pthread_join(thread, NULL);
	place();
}

static void check_inherited(void)
{
	pid_t pid = child(begins);

	must(!set(pid, 0, (unsigned long)place) && !set(pid, 7, EXECUTE(0)), "set");
	meets(pid, place, 1, 1, "by itself, not by its child or thread");
	ends(pid, 7, "only once");
}

/* It is stopped amid code that it never leaves. */
static void check_running(void)
{
	int status = 0;
	pid_t pid = child(round_and_round);

	must(!ptrace(PTRACE_CONT, pid, 0, 0), "it goes on");
	for (int i = 0; i < 5; i++) {
		usleep(20000);
		kill(pid, SIGSTOP);
		must(waitpid(pid, &status, 0) == pid && WSTOPSIG(status) == SIGSTOP, "it stops");
		must(!set(pid, 0, (unsigned long)in_loop) && !set(pid, 7, EXECUTE(0)), "set");
		meets(pid, in_loop, 1, 1, "in its loop");
		meets(pid, in_loop, 1, 1, "in its loop again");
		must(!set(pid, 7, 0) && !ptrace(PTRACE_CONT, pid, 0, 0), "off");
	}
	end(pid);
}

int main(void)
{
	if (!breakpoints_fire(HW_BREAKPOINT_W)) {
		puts(BREAKPOINTS_NEVER_FIRE);
		return 77;
	}
	check_refused();
	printf("refused: %d wrong\n", faults);
	check_modified();
	printf("modified: %d wrong\n", faults);
	check_data();
	printf("data: %d wrong\n", faults);
	check_handled();
	printf("handled: %d wrong\n", faults);
	check_blocked();
	printf("blocked: %d wrong\n", faults);
	check_inherited();
	printf("inherited: %d wrong\n", faults);
	check_running();
	printf("running: %d wrong\n", faults);
	return faults != 0;
}
