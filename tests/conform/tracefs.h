/*
 * PURPOSE: opening tracepoints by name, for the programs that check them. They need tracefs, which
 * is root's as a rule.
 */
#ifndef CONFORM_TRACEFS_H
#define CONFORM_TRACEFS_H

#include "conform/conform.h"

/* The number of the tracepoint "group/name"; -1: it has none, or not for us. */
static inline long tp_id(const char *name)
{
	char path[128], text[32];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

/* False after a skip of the row. */
static inline bool tp_readable(const char *row)
{
	if (tp_id("raw_syscalls/sys_enter") >= 0 && capable())
		return true;
	skip_row(row, "tracepoints", "tracefs is not there, or not for us");
	return false;
}

static inline struct pe_attr tp_attr(const char *name)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_TRACEPOINT, (u64)tp_id(name));

	attr.exclude_kernel = 0;
	return attr;
}

static inline int tp_open(const char *name)
{
	long fd = ev_self(tp_attr(name));

	NEED(fd >= 0);
	return (int)fd;
}

/* What @fd counts while @fn runs. */
static inline u64 tp_counted(int fd, void (*fn)(void))
{
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	fn();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return ev_count(fd);
}

#endif
