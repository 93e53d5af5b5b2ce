/*
 * Children that cannot be made, for want of memory in any of the steps that it takes, or because
 * the kernel refuses. argv[1]: how often. Says how many there were and by how much more the process
 * has grown the last time than the first. With argv[2], children of children: how many generations.
 *
 * What the runtime needs does not count against a limit of the program's own. So it is started with
 * a hard limit of addresses (RLIMIT_AS) that nobody can raise, and uses up all but a little.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP 0x2000
#define MOST 0x400000 /* what a child takes of the address space is less */

/* All of it: in statm and status what is the runtime's is left out. */
static long size(void)
{
	char text[1024] = "", *at;
	int fd = open("/proc/self/stat", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 1)
		exit(2);
	close(fd);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 23; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		exit(2);
	return atol(at);
}

/* Maps all that may still be mapped, in one piece of *@len bytes. */
static char *fill(size_t *len)
{
	void *p;

	*len = 0;
	for (size_t step = 1ul << 36; step >= STEP; step /= 2) {
		p = mmap(NULL, *len + step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			continue;
		munmap(p, *len + step);
		*len += step;
	}
	p = mmap(NULL, *len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || *len < MOST)
		exit(3);
	return p;
}

/* Whether the child, which is to end at once, could be made. */
static int child(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return pid > 0;
}

static int stay(void *unused)
{
	while (!unused)
		syscall(SYS_pause);
	return 0;
}

/* A thread takes what the runtime has kept of the last child, so that the next begins anew. */
static void take_what_is_kept(int round)
{
	static char stacks[8][16384] __attribute__((aligned(16)));

	if (round >= 8 ||
	    clone(stay, stacks[round] + sizeof(stacks[round]),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) < 0)
		exit(4);
}

/*
 * Each generation is made by a child that shares its parent's memory (vfork) and forks. By how much
 * the last one is larger than the fifth.
 */
static void generations(int n)
{
	static long fifth; /* static, as the rest: a child of vfork writes to its parent's stack */
	static int i;

	for (i = 0; i < n; i++) {
		pid_t pid;
		int status;

		if (i == 5)
			fifth = size();
		pid = vfork();
		if (pid > 0) {
			waitpid(pid, &status, 0);
			_exit(WEXITSTATUS(status));
		}
		pid = (pid_t)syscall(SYS_fork);
		if (pid) {
			waitpid(pid, &status, 0);
			_exit(WEXITSTATUS(status));
		}
	}
	printf("generations %d grown %ld\n", n, size() - fifth);
	exit(0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, made = 0, failed = 0, refused = 0;
	long before, grown = 0, first = 0;

	if (argc > 2)
		generations(atoi(argv[2]));
	child();
	for (int round = 0; round < rounds; round++) {
		size_t len;
		char *p;

		take_what_is_kept(round);
		before = size();
		p = fill(&len);

		for (size_t more = 0; more < MOST; more += STEP) {
			if (child())
				made++;
			else
				failed++;
			munmap(p + len - more - STEP, STEP);
		}
		munmap(p, len - MOST);
		/* A thread with dispositions of its own is none. */
		for (int i = 0; i < 20; i++)
			refused += syscall(SYS_clone, CLONE_VM | CLONE_THREAD, 0, 0, 0, 0) == -1 &&
				   errno == EINVAL;
		grown = size() - before;
		first = round ? first : grown;
	}
	printf("made %d failed %d refused %d grown %ld\n", made, failed, refused, grown - first);
	return 0;
}
