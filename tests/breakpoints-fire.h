/*
 * PURPOSE: whether breakpoints do anything here. Some virtual machines have debug registers, and
 * the kernel gives breakpoints away, but none is ever met.
 */
#ifndef TESTS_BREAKPOINTS_FIRE_H
#define TESTS_BREAKPOINTS_FIRE_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BREAKPOINTS_NEVER_FIRE "this machine has breakpoints that are never met"

static volatile long breakpoint_word;

__attribute__((noinline, unused)) static void breakpoint_code(void)
{
	breakpoint_word++;
}

/* @type: HW_BREAKPOINT_X or HW_BREAKPOINT_W. True if none can be had: that is for others to say. */
static inline bool breakpoints_fire(unsigned int type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = type,
		.bp_addr = type == HW_BREAKPOINT_X ? (uintptr_t)breakpoint_code
						   : (uintptr_t)&breakpoint_word,
		.bp_len = sizeof(long),
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	uint64_t count = 0;

	if (fd < 0)
		return true;
	breakpoint_code();
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		count = 1;
	close(fd);
	return count != 0;
}

#endif
