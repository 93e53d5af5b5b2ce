/*
 * mlockall(2). What is ours shall not be locked: it is larger than most limits, and a lock makes
 * all of it present. So the guest's mappings are locked one by one, after the check that the kernel
 * makes of all of them together.
 */
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/limits.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/capability.h>
#include <linux/mman.h>
#include <linux/resource.h>

#define ALL_FLAGS (MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)

/* How many bytes of addresses the guest has. */
static u64 guest_size(void)
{
	u64 own = limits_own(LIMIT_AS), pages;
	char text[128];

	if (fd_read_text("/proc/self/statm", text, sizeof(text)) < 1 || !str_u64(text, 10, &pages))
		return 0;
	return pages * PAGE_SIZE > own ? pages * PAGE_SIZE - own : 0;
}

/* The parts of [start, end) that are not ours. What cannot be locked stays so, as in the kernel. */
static void lock_range(u64 start, u64 end, u64 flags)
{
	u64 ours, ours_end;

	for (u64 at = start; at < end; at = ours_end) {
		if (!region_first(at, end, &ours, &ours_end))
			ours = ours_end = end;
		if (at < ours)
			raw_call3(__NR_mlock2, (long)at, (long)(ours - at), (long)flags);
	}
}

static void lock_mappings(u64 flags)
{
	long fd = fd_open(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC), n;
	char text[4096];
	u64 start, end;
	bool begins = true;
	size_t have = 0;

	if (fd < 0)
		return;
	while ((n = sys_read((int)fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *next;

		have += (size_t)n;
		text[have] = '\0';
		for (; (next = str_chr(line, '\n')); line = next + 1, begins = true) {
			int digits = begins ? str_u64(line, 16, &start) : 0;

			if (digits && line[digits] == '-' && str_u64(line + digits + 1, 16, &end) &&
			    end <= TASK_SIZE)
				lock_range(start, end, flags);
		}
		have -= (size_t)(line - text);
		/* Of a long line the beginning is enough, and what follows it is no line. */
		if (have == sizeof(text) - 1) {
			int digits = begins ? str_u64(text, 16, &start) : 0;

			if (digits && text[digits] == '-' && str_u64(text + digits + 1, 16, &end) &&
			    end <= TASK_SIZE)
				lock_range(start, end, flags);
			begins = false;
			have = 0;
		}
		memmove(text, line, have);
	}
	sys_close((int)fd);
}

/* MCL_FUTURE. The kernel would lock what is ours as well, or refuse it to us. */
static bool locks_future;

u64 mm_lock_flags(void)
{
	return __atomic_load_n(&locks_future, __ATOMIC_RELAXED) ? MAP_LOCKED : 0;
}

void mm_lock_forked(void)
{
	locks_future = false;
}

long guest_mlockall(struct thread *t)
{
	u64 flags = (u32)guest_arg(t, 0);
	struct rlimit64 limit = {0};

	if (!flags || flags & ~(u64)ALL_FLAGS || flags == MCL_ONFAULT)
		return -EINVAL;
	if (!limits_capable(CAP_IPC_LOCK)) {
		raw_call4(__NR_prlimit64, 0, RLIMIT_MEMLOCK, 0, (long)&limit);
		if (!limit.rlim_cur)
			return -EPERM;
		if (flags & MCL_CURRENT && guest_size() > ALIGN_DOWN(limit.rlim_cur, PAGE_SIZE))
			return -ENOMEM;
	}
	mm_lock(t);
	__atomic_store_n(&locks_future, flags & MCL_FUTURE, __ATOMIC_RELAXED);
	if (flags & MCL_CURRENT)
		lock_mappings(flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
	mm_unlock(t);
	return 0;
}

long guest_munlockall(struct thread *t)
{
	__atomic_store_n(&locks_future, false, __ATOMIC_RELAXED);
	return call_kernel(t);
}
