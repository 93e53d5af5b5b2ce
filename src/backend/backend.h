/*
 * PURPOSE: where perf events really live. Everything that the library does to an event goes through
 * this table: the kernel's perf_event_open(2), or a session that implements perf_event in user
 * space.
 *
 * A backend gives handles, small non-negative integers that mean something only to it; for the
 * kernel they are file descriptors. All functions return -errno, never set errno alone. They may be
 * called from several threads if the machine is used from several.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include <sys/types.h>

#include "abi/perf.h"
#include "base/refusal.h"

struct ap__backend_ops {
	const char *name; /* "kernel", "session": for the log */

	/*
	 * The directory of its one PMU that counts what threads do, of type PERF_TYPE_RAW, so that
	 * it need not be looked for. NULL: sysfs tells.
	 */
	const char *core_pmu;

	/*
	 * perf_event_open(2): the handle or -errno. On -E2BIG the size that is known is stored in
	 * @attr->size as the kernel does. @leader is a handle or -1.
	 */
	int (*open)(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags);
	int (*close)(void *be, int handle);

	/* read(2): bytes or -errno. */
	ssize_t (*read)(void *be, int handle, void *buf, size_t len);

	/*
	 * ioctl(2) with a PERF_EVENT_IOC_* request; handles in @arg (SET_OUTPUT) are the backend's.
	 */
	int (*ioctl)(void *be, int handle, unsigned long request, unsigned long arg);

	/*
	 * mmap(2), MAP_SHARED, @writable: PROT_READ|PROT_WRITE. *@out is undone with munmap. NULL:
	 * no.
	 */
	int (*mmap)(void *be, int handle, size_t len, u64 offset, bool writable, void **out);
	int (*munmap)(void *be, void *base, size_t len);

	/*
	 * Who maps the event reads all of its buffer, and those who write there wait for him rather
	 * than lose anything. How many bytes that had to wait are in the buffer now, or -errno.
	 * NULL: what finds no room is lost.
	 */
	s64 (*lossless)(void *be, int handle);

	/* An event that inherits has a buffer even if it is of any CPU, which a kernel refuses. */
	bool maps_inherited;

	/*
	 * The buffer is about to be looked at: what poll(2) has told of the handle until now is no
	 * news any more. NULL: poll(2) itself takes it back.
	 */
	void (*heard)(void *be, int handle);

	/*
	 * The directory that stands in for "/" where the backend's PMUs are looked up; asked for at
	 * each look. NULL: the machine's own.
	 */
	const char *(*root)(void *be);

	/*
	 * Why the last call of the calling thread failed. NULL: the backend has errnos only, as the
	 * kernel, and the library works out what they mean.
	 */
	const struct refusal *(*refusal)(void *be);
};

extern const struct ap__backend_ops ap__backend_kernel; /* its `be` is NULL */

/* A remedy with what its text needs. */
struct ap__advice {
	u16 remedy; /* enum refusal_remedy */
	const char *name[REFUSAL_NAMES];
};

#endif
