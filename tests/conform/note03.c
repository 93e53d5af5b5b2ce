/*
 * The example of perf_event_open(2), written anew: it counts the instructions of one printf
 * [NOTE-03]. Same calls in the same order; also compiled from the page's own text where the page is
 * installed.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	long long count;

	if (fd < 0) {
		perror("perf_event_open");
		return EXIT_FAILURE;
	}
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	printf("Measuring instruction count for this printf\n");
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return EXIT_FAILURE;
	printf("Used %lld instructions\n", count);
	close(fd);
	return EXIT_SUCCESS;
}
