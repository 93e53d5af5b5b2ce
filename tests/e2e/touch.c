/*
 * A program whose page faults are the same in every run: touches N fresh pages (argv[1]), and with
 * a second argument has a child that touches as many again. With "spin" as the first it spends CPU
 * time until it is killed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(size_t pages)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	if (p == MAP_FAILED || madvise(p, pages * size, MADV_NOHUGEPAGE))
		_exit(1);
	for (size_t i = 0; i < pages; i++)
		((volatile char *)p)[i * size] = 1;
}

int main(int argc, char **argv)
{
	size_t pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	volatile unsigned long spin = 0;

	if (argc > 1 && !strcmp(argv[1], "spin"))
		for (;;)
			spin++;
	if (pages)
		touch(pages);
	if (argc > 2) {
		pid_t pid = fork();

		if (!pid) {
			touch(pages);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}
