/* System calls of many kinds, failing ones and interrupted ones among them, and the vDSO. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static void nothing(int sig)
{
	(void)sig;
}

/* Some kernels have no 32-bit calls: the `int` faults. It has two bytes. */
static void no_gate(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	regs[REG_RIP] += 2;
	regs[REG_RAX] = -ENOSYS;
}

int main(void)
{
	struct sigaction fault = {.sa_sigaction = no_gate, .sa_flags = SA_SIGINFO};

	char buffer[64] = "";
	char hello[] = "hello ", world[] = "world\n";
	struct iovec iov[2] = {{hello, 6}, {world, 6}};
	/* No mkstemp(3): it throws the dice for a name, and now and then once more. */
	int fd = memfd_create("calls", 0), pipes[2];
	struct stat st;
	long pid;
	char *p;

	writev(fd, iov, 2);
	fstat(fd, &st);
	printf("%ld bytes, links %ld\n", (long)st.st_size, (long)st.st_nlink);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[0] = 'H';
	pread(fd, buffer, 12, 0);
	printf("%s", buffer);
	printf("%d", open("/nonexistent/file", O_RDONLY));
	printf(" %s\n", strerror(errno));
	printf("%d", close(12345));
	printf(" %s\n", strerror(errno));
	printf("%ld", syscall(100000));
	printf(" %s\n", strerror(errno));
	pipe(pipes);
	write(pipes[1], "x", 1);
	printf("%d\n", poll(&(struct pollfd){pipes[0], POLLIN, 0}, 1, 1000));
	p = sbrk(0);
	printf("%d\n", sbrk(100000) == p && sbrk(-100000) == p + 100000 && sbrk(0) == p);
	signal(SIGUSR1, nothing);
	pid = syscall(SYS_getpid);
	printf("%d\n", pid == getpid() && !kill((pid_t)pid, SIGUSR1));
	sigaction(SIGSEGV, &fault, NULL);
	/* int 0x80 takes the 32-bit numbers: 20 is getpid. */
	__asm__ volatile("int $0x80" : "=a"(pid) : "a"(20L) : "r8", "r9", "r10", "r11", "memory");
	printf("%d\n", pid == getpid() || pid == -ENOSYS);
	return 0;
}
