/*
 * What a tracer sees of faults that a translator finds by itself, as a jump to what may not be
 * executed: SIGSEGV, which it passes on, or keeps, so that the instruction faults again.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char *page;
static sigjmp_buf back;
static volatile int handled;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	handled += sig == SIGSEGV && info->si_code == SEGV_ACCERR && info->si_addr == page;
	siglongjmp(back, 1);
}

static void jump(void)
{
	if (!sigsetjmp(back, 1))
		((void (*)(void))page)();
}

static int child(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	sigaction(SIGSEGV, &act, NULL);
	jump();
	jump();
	/* Now it kills. */
	signal(SIGSEGV, SIG_DFL);
	printf("%d handled\n", handled);
	fflush(stdout);
	jump();
	return 1;
}

/* It stops for a signal. */
static void stops(pid_t pid)
{
	struct user_regs_struct r;
	siginfo_t info;
	int status = 0;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		printf("no stop: %x\n", (unsigned)status);
		return;
	}
	ptrace(PTRACE_GETREGS, pid, 0, &r);
	ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
	printf("signal %d, code %d%s%s\n", WSTOPSIG(status), info.si_code,
	       info.si_addr == page ? ", of the page" : "",
	       r.rip == (unsigned long)page ? ", at it" : "");
}

static void goes_on(pid_t pid, int sig)
{
	ptrace(PTRACE_CONT, pid, 0, (long)sig);
	stops(pid);
}

/* Under `anyperf run` it stops once more before (doc/runtime.md). */
static void ends(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < 2; i++) {
		ptrace(PTRACE_CONT, pid, 0, (long)SIGSEGV);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
	}
	printf("%s by signal %d\n", WIFSIGNALED(status) ? "ended" : "not ended", WTERMSIG(status));
}

int main(void)
{
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(page, 0xcc, 4096);
	pid = fork();
	if (!pid)
		_exit(child());
	stops(pid);
	goes_on(pid, 0); /* to fault again */
	goes_on(pid, SIGSEGV);
	goes_on(pid, SIGSEGV);
	goes_on(pid, 0);
	ends(pid);
	return 0;
}
