/*
 * All stops that a tracer is told of, of a child that works for a while and has three signals. What
 * its runtime has besides, for traces, samples and deadlines, is not among them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_signal(int sig)
{
	(void)sig;
}

static void work(void)
{
	for (volatile long i = 0; i < 3000000; i++)
		;
}

static int child(void)
{
	signal(SIGUSR1, on_signal);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	work();
	kill(getpid(), SIGUSR1);
	work();
	__asm__ volatile("int3");
	work();
	return 42;
}

/* As wait4(2) has it. */
static int next_stop(pid_t pid, int by_waitid)
{
	siginfo_t info;
	int status = 0;

	if (!by_waitid)
		return waitpid(pid, &status, 0) == pid ? status : -1;
	do {
		memset(&info, 0, sizeof(info));
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT))
			return -1;
	} while (waitpid(pid, &status, WNOHANG) == 0);
	if (info.si_code == CLD_TRAPPED && info.si_status != WSTOPSIG(status))
		printf("waitid says %d, ", info.si_status);
	return status;
}

int main(void)
{
	static const int ways[] = {PTRACE_CONT, PTRACE_SYSCALL};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int n = 0; n < 4; n++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(child());
		while (status = next_stop(pid, n & 1), status >= 0 && WIFSTOPPED(status)) {
			int sig = WSTOPSIG(status), calls = ways[n / 2] == PTRACE_SYSCALL;

			/* The runtime makes others. */
			if (!calls || sig != SIGTRAP)
				printf("stop %x\n", (unsigned)status);
			ptrace((enum __ptrace_request)ways[n / 2], pid, 0,
			       (long)(sig == SIGSTOP || sig == SIGTRAP ? 0 : sig));
		}
		printf("end %x\n", (unsigned)status);
	}
	return 0;
}
