/*
 * Processes that share memory (CLONE_VM without CLONE_THREAD) and die in the middle of anything by
 * the hand of one that is not among them: the others go on as if nothing had been.
 */
#include "say.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGES 64

static const unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov $0, %eax; ret */
static char stack[65536] __attribute__((aligned(16))), stack2[65536] __attribute__((aligned(16)));
static unsigned char *page;
static volatile long turns;

static int call(void *at)
{
	return ((int (*)(void))at)();
}

static unsigned char *make_code(size_t size)
{
	unsigned char *at = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i + 64 <= size; i += 64)
		memcpy(at + i, code, sizeof(code));
	return at;
}

/* Kills who is named in the pipe, some time later. */
static pid_t killer(int *to)
{
	unsigned int random = 1;
	int ends[2];
	pid_t pid, victim;

	if (pipe(ends))
		exit(1);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		while (read(ends[0], &victim, sizeof(victim)) == sizeof(victim)) {
			random = random * 1103515245 + 12345;
			usleep(random >> 16 & 255);
			kill(victim, SIGKILL);
		}
		_exit(0);
	}
	close(ends[0]);
	*to = ends[1];
	return pid;
}

/* How many of @n such processes in @fn died of SIGKILL; after each of them @then. */
static int kill_some(int n, int (*fn)(void *), void (*then)(void))
{
	int to, status, died = 0;
	pid_t killing = killer(&to), pid;

	for (int i = 0; i < n; i++) {
		pid = clone(fn, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
		if (write(to, &pid, sizeof(pid)) != sizeof(pid))
			kill(pid, SIGKILL);
		waitpid(pid, &status, __WALL);
		died += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		if (then)
			then();
	}
	close(to);
	waitpid(killing, &status, 0);
	return died;
}

static int map_and_run(void *arg)
{
	for (;;) {
		unsigned char *p = make_code(4096);

		call(p);
		munmap(p, 4096);
	}
	return arg != NULL;
}

static int write_and_run(void *arg)
{
	for (;;) {
		for (int i = 0; i < PAGES; i++) {
			page[i * 4096 + 1]++;
			call(page + (size_t)i * 4096);
		}
	}
	return arg != NULL;
}

static void write_all(void)
{
	for (int i = 0; i < PAGES; i++)
		page[i * 4096 + 8] = 1;
}

static int change(void *arg)
{
	for (;;) {
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		mprotect(page, 4096, PROT_READ | PROT_EXEC);
	}
	return arg != NULL;
}

static sigjmp_buf faulted;

static void fault(int sig)
{
	siglongjmp(faulted, sig);
}

/* Executable or not, as the one who died has left it; then as we say. */
static void run_once(void)
{
	if (!sigsetjmp(faulted, 1))
		call(page);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	call(page);
}

static int spin(void *arg)
{
	for (;;)
		turns++;
	return arg != NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static void many_threads_and_much_code(void)
{
	size_t size = 2 << 20;
	unsigned char *at = make_code(size);
	long sum = 0;
	pthread_t t;

	for (int i = 0; i < 300; i++) {
		pthread_create(&t, NULL, nothing, NULL);
		pthread_join(t, NULL);
	}
	mprotect(at, size, PROT_READ | PROT_EXEC);
	for (size_t i = 0; i < size; i += 64)
		sum += call(at + i);
	munmap(at, size);
	SAY("much code says %ld", sum);
}

static int beat(void *arg)
{
	for (;;) {
		turns++;
		usleep(1000);
	}
	return arg != NULL;
}

static int leave(void *arg)
{
	syscall(SYS_exit_group, 0);
	return arg != NULL;
}

/* One with other numbers than ours is not taken for dead. */
static void other_numbers(void)
{
	pid_t pid = clone(beat, stack + sizeof(stack), CLONE_VM | CLONE_NEWPID | SIGCHLD, NULL),
	      other;
	long before;
	int status;

	if (pid < 0) {
		TRY("another namespace", pid);
		return;
	}
	usleep(20000);
	for (int i = 0; i < 100; i++) {
		other = clone(leave, stack2 + sizeof(stack2), CLONE_VM | SIGCHLD, NULL);
		waitpid(other, &status, __WALL);
	}
	before = turns;
	while (turns == before && waitpid(pid, &status, WNOHANG | __WALL) == 0)
		usleep(1000);
	SAY("it is %s", turns == before ? "DEAD" : "alive");
	kill(pid, SIGKILL);
	waitpid(pid, &status, __WALL);
}

int main(void)
{
	SAY("mapping: %d died", kill_some(100, map_and_run, NULL));
	page = make_code(PAGES * 4096);
	SAY("writing: %d died", kill_some(40, write_and_run, write_all));
	signal(SIGSEGV, fault);
	SAY("protecting: %d died", kill_some(40, change, run_once));
	SAY("running: %d died", kill_some(3, spin, many_threads_and_much_code));
	other_numbers();
	return 0;
}
