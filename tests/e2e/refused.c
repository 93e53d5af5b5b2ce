/*
 * Asks for perf events that are refused, or not: refused WORD...
 *   bad      a generic hardware event that does not exist
 *   kernel   instructions of the kernel too
 *   filter   SET_FILTER on an event that has none
 *   good     instructions of user mode
 *   fork     what follows is done in a child
 *   fail     ends with 7
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_event(unsigned long long config, int exclude_kernel)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = sizeof(attr)};

	attr.config = config;
	attr.exclude_kernel = exclude_kernel != 0;
	attr.exclude_hv = exclude_kernel != 0;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int filter(void)
{
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, 1);
	int refused = fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "x == 1") < 0;

	close(fd);
	return refused ? -1 : 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		int want = strcmp(word, "good") ? -1 : 0, got = want;

		if (!strcmp(word, "bad"))
			got = open_event(77, 1);
		else if (!strcmp(word, "kernel"))
			got = open_event(PERF_COUNT_HW_INSTRUCTIONS, 0);
		else if (!strcmp(word, "filter"))
			got = filter();
		else if (!strcmp(word, "good"))
			got = open_event(PERF_COUNT_HW_INSTRUCTIONS, 1);
		else if (!strcmp(word, "fail"))
			return 7;
		else if (!strcmp(word, "fork") && fork()) {
			wait(NULL);
			return 0;
		}
		if ((got < 0) != (want < 0)) {
			printf("%s: %d\n", word, got);
			return 1;
		}
	}
	return 0;
}
