/*
 * System calls of a 64-bit program through the i386 gate: numbers, structures and pointers are
 * those of 32 bits. Some kernels have no such gate: what the program gets in its place is said.
 */
#include "say.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

static char *low; /* two pages below 4 GB */

static long gate(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
		 unsigned long e)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

#define LOW(at) ((unsigned long)(low + (at)))

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

extern const char the_gate[];

static void on_fault(int sig, siginfo_t *si, void *u)
{
	const greg_t *regs = ((ucontext_t *)u)->uc_mcontext.gregs;

	SAY("no gate: signal %d code %d addr %p, trap %lld error %llx at %s", sig, si->si_code,
	    si->si_addr, regs[REG_TRAPNO], regs[REG_ERR],
	    regs[REG_RIP] == (greg_t)the_gate ? "the call" : "another place");
	_exit(0);
}

static bool has_gate(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	int status;

	if (!fork()) {
		sigaction(SIGSEGV, &sa, NULL);
		__asm__ volatile("	.globl the_gate\nthe_gate:\n	int $0x80"
				 :
				 : "a"(20ul)
				 : "memory", "r8", "r9", "r10", "r11");
		_exit(1);
	}
	wait(&status);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_alarm};
	uint32_t *words;
	int status, fd;
	long ret;

	low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		   0);
	if (low == MAP_FAILED)
		return 1;
	words = (uint32_t *)(low + 4096);
	if (!has_gate())
		return 0;
	HOLDS(gate(20, 0, 0, 0, 0, 0) == getpid());
	HOLDS(gate(224, 0, 0, 0, 0, 0) == getpid());
	strcpy(low, "/proc/self/exe");
	fd = (int)gate(5, LOW(0), O_RDONLY, 0, 0, 0);
	SAY("open %d", fd);
	SAY("read %ld %.3s", gate(3, (unsigned long)fd, LOW(4096), 4, 0, 0), low + 4097);
	SAY("lseek %ld", gate(19, (unsigned long)fd, (unsigned int)-2, SEEK_CUR, 0, 0));
	SAY("_llseek %ld %u", gate(140, (unsigned long)fd, 0, 1, LOW(4096), SEEK_SET), words[0]);
	SAY("fstat64 %ld mode %o", gate(197, (unsigned long)fd, LOW(4096), 0, 0, 0), words[4]);
	SAY("close %ld", gate(6, (unsigned long)fd, 0, 0, 0, 0));
	SAY("close %ld", gate(6, (unsigned long)fd, 0, 0, 0, 0));
	SAY("uname %ld %s", gate(122, LOW(4096), 0, 0, 0, 0), low + 4096);
	SAY("time %d", gate(13, 0, 0, 0, 0, 0) > 1000000);
	words[0] = 0;
	words[1] = 2000000;
	SAY("nanosleep %ld", gate(162, LOW(4096), 0, 0, 0, 0));
	SAY("pipe %ld", gate(42, LOW(4096), 0, 0, 0, 0));
	SAY("write %ld", gate(4, words[1], LOW(0), 5, 0, 0));
	{
		uint32_t *v = words + 8;

		v[0] = (uint32_t)LOW(200);
		v[1] = 2;
		v[2] = (uint32_t)LOW(300);
		v[3] = 3;
		SAY("readv %ld %.2s %.3s", gate(145, words[0], LOW(4096 + 32), 2, 0, 0), low + 200,
		    low + 300);
	}
	ret = gate(2, 0, 0, 0, 0, 0);
	if (!ret)
		gate(1, 9, 0, 0, 0, 0);
	HOLDS(gate(7, (unsigned long)ret, LOW(4096), 0, 0, 0) == ret);
	SAY("status %x", words[0]);
	ret = gate(190, 0, 0, 0, 0, 0);
	if (!ret)
		gate(252, 11, 0, 0, 0, 0);
	HOLDS(waitpid((pid_t)ret, &status, 0) == ret && status == 11 << 8);
	ret = gate(192, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   (unsigned int)-1);
	HOLDS(ret > 0 && (unsigned long)ret < 1ul << 32);
	*(volatile int *)ret = 4;
	SAY("mprotect %ld", gate(125, (unsigned long)ret, 4096, PROT_READ, 0, 0));
	SAY("munmap %ld", gate(91, (unsigned long)ret, 4096, 0, 0, 0));
	SAY("futex %ld", gate(240, LOW(4096), 1, 1, 0, 0));
	SAY("a bad pointer %ld", gate(122, 8, 0, 0, 0, 0));
	SAY("no such call %ld", gate(1000, 0, 0, 0, 0, 0));
	/* Interrupted, and restarted. */
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 20000}}, NULL);
	SAY("pause %ld, %d", gate(29, 0, 0, 0, 0, 0), alarms);
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	gate(42, LOW(4096), 0, 0, 0, 0);
	if (!fork()) {
		usleep(60000);
		write((int)words[1], "late", 4);
		_exit(0);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 20000}}, NULL);
	SAY("read %ld, %d", gate(3, words[0], LOW(0), 4, 0, 0), alarms);
	wait(NULL);
	return 0;
}
