/* Counts the page faults of a fork and of the child's end, a few times, and prints the least. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .inherit = 1,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	unsigned long long before, after, least = ~0ull;

	if (fd < 0)
		return 2;
	for (int i = 0; i < 5; i++) {
		pid_t pid;

		if (read(fd, &before, sizeof(before)) != sizeof(before))
			return 3;
		pid = fork();
		if (pid == 0)
			_exit(0);
		if (waitpid(pid, NULL, 0) != pid ||
		    read(fd, &after, sizeof(after)) != sizeof(after))
			return 4;
		if (after - before < least)
			least = after - before;
	}
	printf("%llu\n", least);
	return 0;
}
