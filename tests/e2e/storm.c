/*
 * Many tasks without a libc, so that every instruction is the program's own and the same each time:
 *
 *   storm forks xxx...     forks a child for each x, one after the other
 *   storm crowd xxx...     forks them all, then waits for them all
 *   storm threads xxx...   starts a thread for each x; the last one to finish ends the process
 *   storm execs xxx...     execs itself with one x less, until there is none
 *   storm dies xxx...      forks children that kill themselves with SIGKILL
 *
 * Each task runs a loop of 10,000 turns, so what N of them count is a straight line in N.
 */
#include <asm/unistd.h>
#include <linux/sched.h>

static inline long call(long n, long a, long b, long c, long d, long e)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	long ret;

	asm volatile("syscall"
		     : "=a"(ret)
		     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
		     : "rcx", "r11", "memory");
	return ret;
}

static inline void work(void)
{
	asm volatile("movl $10000, %%ecx\n1: decl %%ecx\njnz 1b" ::: "ecx", "cc");
}

static void die(int status)
{
	for (;;)
		call(__NR_exit_group, status, 0, 0, 0, 0);
}

static void forks(const char *n, int wait_each, int kill_self)
{
	const char *left = n;
	long pid;

	for (; *n; n++) {
		pid = call(__NR_fork, 0, 0, 0, 0, 0);
		if (pid < 0)
			die(2);
		if (pid == 0) {
			work();
			if (kill_self)
				call(__NR_kill, call(__NR_getpid, 0, 0, 0, 0, 0), 9, 0, 0, 0);
			die(0);
		}
		if (wait_each && call(__NR_wait4, pid, 0, 0, 0, 0) != pid)
			die(3);
	}
	for (; !wait_each && *left; left++)
		if (call(__NR_wait4, -1, 0, 0, 0, 0) < 0)
			die(4);
}

/* The threads use no stack at all, so they may share one. */
static void threads(const char *n)
{
	unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			      CLONE_SYSVSEM;
	static char stack[4096] __attribute__((aligned(16)));
	long ret;

	for (; *n; n++) {
		asm volatile("syscall\n\t"
			     "testq %%rax, %%rax\n\t"
			     "jnz 2f\n\t"
			     "movl $10000, %%ecx\n\t"
			     "1: decl %%ecx\n\t"
			     "jnz 1b\n\t"
			     "movl $60, %%eax\n\t" /* exit, of this thread */
			     "xorl %%edi, %%edi\n\t"
			     "syscall\n\t"
			     "2:"
			     : "=a"(ret)
			     : "a"((long)__NR_clone), "D"(flags), "S"(stack + sizeof(stack)),
			       "d"(0L)
			     : "rcx", "r11", "r8", "r10", "memory", "cc");
		if (ret < 0)
			die(5);
	}
	for (;;)
		call(__NR_exit, 0, 0, 0, 0, 0);
}

static void execs(char **argv, char **envp)
{
	work();
	if (!*argv[2])
		die(0);
	argv[2]++;
	call(__NR_execve, (long)"/proc/self/exe", (long)argv, (long)envp, 0, 0);
	die(6);
}

void start(long *sp); /* called by _start below */

void start(long *sp)
{
	char **argv = (char **)(sp + 1), **envp = argv + sp[0] + 1;

	if (sp[0] != 3)
		die(1);
	switch (argv[1][0]) {
	case 'f': forks(argv[2], 1, 0); break;
	case 'c': forks(argv[2], 0, 0); break;
	case 'd': forks(argv[2], 1, 1); break;
	case 't': threads(argv[2]); break;
	case 'e': execs(argv, envp); break;
	default: die(1);
	}
	die(0);
}

asm(".globl _start\n_start: movq %rsp, %rdi\nandq $-16, %rsp\ncall start\nhlt\n");
