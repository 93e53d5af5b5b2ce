/*
 * Signals that a program sends itself, so that their places are fixed: handlers with and without
 * SA_SIGINFO, masks, nesting, SA_NODEFER, SA_RESETHAND, queued real-time ones, an alternate stack,
 * a handler that edits its context, sigsuspend, sigwaitinfo, and siglongjmp out of a handler.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int log_at;
static char text[512];
static sigjmp_buf out;
static char alt[32768] __attribute__((aligned(16)));

static void note(char c)
{
	text[log_at++] = c;
}

static void simple(int sig)
{
	note('a' + (char)(sig % 26));
}

static void nested(int sig)
{
	(void)sig;
	note('<');
	raise(SIGUSR2);
	note('>');
}

static void queued(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	note('0' + (char)si->si_value.sival_int);
}

static void on_alt(int sig)
{
	char here;

	(void)sig;
	note(&here >= alt && &here < alt + sizeof(alt) ? 'A' : '!');
}

static void edits(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)si;
	uc->uc_mcontext.gregs[REG_R15] += 1000;
	uc->uc_mcontext.gregs[REG_EFL] |= 1; /* carry */
	uc->uc_mcontext.fpregs->_xmm[7].element[0] ^= 0xffff;
}

static void jumps(int sig)
{
	note('j');
	siglongjmp(out, sig);
}

static void install(int sig, void (*h)(int), int flags)
{
	struct sigaction sa = {.sa_flags = flags};

	sa.sa_handler = h;
	sigaction(sig, &sa, NULL);
}

int main(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};
	stack_t ss = {.ss_sp = alt, .ss_size = sizeof(alt)};
	union sigval v;
	sigset_t set, old, pending;
	siginfo_t si;
	long r15, carry, x;

	install(SIGUSR1, nested, 0);
	install(SIGUSR2, simple, 0);
	raise(SIGUSR1);
	install(SIGUSR1, simple, SA_RESETHAND);
	raise(SIGUSR1);
	install(SIGUSR1, SIG_IGN, 0);
	raise(SIGUSR1);

	sa.sa_sigaction = queued;
	sigaction(SIGRTMIN, &sa, NULL);
	sigaction(SIGRTMIN + 1, &sa, NULL);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	for (v.sival_int = 1; v.sival_int < 4; v.sival_int++) {
		sigqueue(getpid(), SIGRTMIN + 1, v);
		sigqueue(getpid(), SIGRTMIN, v);
	}
	raise(SIGUSR2);
	raise(SIGUSR2);
	sigpending(&pending);
	note(sigismember(&pending, SIGUSR2) ? 'p' : '!');
	sigprocmask(SIG_SETMASK, &old, NULL);

	sigaltstack(&ss, NULL);
	install(SIGUSR1, on_alt, SA_ONSTACK);
	raise(SIGUSR1);

	sa.sa_sigaction = edits;
	sigaction(SIGUSR1, &sa, NULL);
	__asm__ volatile("movl $0x1234, %%eax\n"
			 "	movd %%eax, %%xmm7\n"
			 "	movq $5, %%r15\n"
			 "	movl $39, %%eax\n" /* getpid */
			 "	syscall\n"
			 "	movl %%eax, %%edi\n"
			 "	movl $10, %%esi\n" /* SIGUSR1 */
			 "	movl $62, %%eax\n" /* kill */
			 "	syscall\n"
			 "	setc %%al\n"
			 "	movzbl %%al, %%eax\n"
			 "	movq %%r15, %1\n"
			 "	movq %%xmm7, %2\n"
			 : "=a"(carry), "=r"(r15), "=r"(x)
			 :
			 : "rdi", "rsi", "rcx", "r11", "r15", "xmm7", "memory", "cc");
	printf("%ld %ld %lx\n", carry, r15, x);

	/* Blocked, sent, then taken by a wait. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGUSR1);
	note(sigwaitinfo(&set, &si) == SIGUSR1 && si.si_pid == getpid() ? 'w' : '!');
	install(SIGUSR1, simple, 0);
	raise(SIGUSR1);
	sigsuspend(&old);
	sigprocmask(SIG_SETMASK, &old, NULL);

	install(SIGUSR1, jumps, 0);
	if (!sigsetjmp(out, 1))
		raise(SIGUSR1);
	if (log_at < 200 && !sigsetjmp(out, 1))
		raise(SIGUSR1);
	puts(text);
	return 0;
}
