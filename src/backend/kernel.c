/* The kernel's own perf_event_open(2). */
#include "backend/backend.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, leader, flags);

	(void)be;
	return fd < 0 ? -errno : (int)fd;
}

static int kernel_close(void *be, int handle)
{
	(void)be;
	return close(handle) ? -errno : 0;
}

static ssize_t kernel_read(void *be, int handle, void *buf, size_t len)
{
	ssize_t n;

	(void)be;
	do
		n = read(handle, buf, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int kernel_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	int r = ioctl(handle, request, arg);

	(void)be;
	return r < 0 ? -errno : r;
}

static int kernel_mmap(void *be, int handle, size_t len, u64 offset, bool writable, void **out)
{
	void *p = mmap(NULL, len, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, handle,
		       (off_t)offset);

	(void)be;
	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	return 0;
}

static int kernel_munmap(void *be, void *base, size_t len)
{
	(void)be;
	return munmap(base, len) ? -errno : 0;
}

const struct ap__backend_ops ap__backend_kernel = {
	.name = "kernel",
	.open = kernel_open,
	.close = kernel_close,
	.read = kernel_read,
	.ioctl = kernel_ioctl,
	.mmap = kernel_mmap,
	.munmap = kernel_munmap,
};
