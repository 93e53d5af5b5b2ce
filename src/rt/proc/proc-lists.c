#include "rt/proc/proc-lists.h"

#include "rt/mm/guest-mem.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/beside.h"
#include "rt/task/other-guest.h"
#include "rt/task/process.h"
#include "sys/string.h"

#include <asm/statfs.h>
#include <linux/magic.h>

/* What a list is of that has something of ours in it. */
struct own_entries {
	bool descriptors;
	u32 tid; /* else the thread that is no one's; 0: neither */
};

/*
 * The thread of ours in the process that /proc calls @number; 0: there is none. A process in
 * another pid namespace calls it something else, and then it is shown.
 */
static u32 own_thread_of(struct thread *t, u32 number)
{
	u32 pid = pid_of_number(t, number);
	struct other_guest other;

	if (pid == t->proc->pid)
		return beside_tid();
	return pid == number && other_guest_find(pid, &other) ? beside_tid_of(&other) : 0;
}

static bool ends_with(const char *path, long len, const char *end)
{
	long n = (long)str_len(end);

	return len > n && str_eq(path + len - n, end);
}

static struct own_entries listed_in(struct thread *t, int fd)
{
	static const char below[] = "/proc/";
	struct own_entries own = {0};
	char path[128];
	struct statfs fs;
	u64 number;
	long len;
	int n;

	if (raw_call2(__NR_fstatfs, fd, (long)&fs) || fs.f_type != PROC_SUPER_MAGIC)
		return own;
	len = fd_path(fd, path, sizeof(path));
	/* Also a thread's. */
	own.descriptors = ends_with(path, len, "/fd") || ends_with(path, len, "/fdinfo");
	/* Of a /proc that is mounted elsewhere all threads are shown. */
	if (len <= 0 || !str_starts(path, below))
		return own;
	n = str_u64(path + str_len(below), 10, &number);
	if (n && str_eq(path + str_len(below) + n, "/task"))
		own.tid = own_thread_of(t, (u32)number);
	return own;
}

static bool is_own(const struct own_entries *own, u64 number)
{
	return own->tid ? number == own->tid : fd_is_own((s64)number);
}

/* Drops what is ours from what the kernel has listed; returns how many bytes remain. */
static long filter(struct thread *t, u64 buf, long len, const struct own_entries *own)
{
	long in = 0, out = 0;

	while (in < len) {
		struct linux_dirent64 head;
		char name[16] = "";
		u64 number;
		long size;

		if (guest_read(&head, buf + (u64)in, sizeof(head)))
			return len;
		size = head.d_reclen;
		if (size < (long)sizeof(head) || in + size > len)
			return len;
		if (guest_read(name, buf + (u64)in + offsetof(struct linux_dirent64, d_name),
			       min_u64(sizeof(name) - 1,
				       (u64)size - offsetof(struct linux_dirent64, d_name))))
			return len;
		if (!(str_u64(name, 10, &number) && is_own(own, number))) {
			if (in != out) {
				u8 entry[320];

				if (size > (long)sizeof(entry) ||
				    guest_read(entry, buf + (u64)in, (size_t)size) ||
				    guest_write(t, buf + (u64)out, entry, (size_t)size))
					return len;
			}
			out += size;
		}
		in += size;
	}
	return out;
}

long guest_getdents64(struct thread *t)
{
	struct own_entries own;
	long ret;

	do {
		ret = call_kernel(t);
		if (ret <= 0 || ret == CALL_REDO)
			return ret;
		own = listed_in(t, (int)guest_arg(t, 0));
		if (!own.descriptors && !own.tid)
			return ret;
		ret = filter(t, guest_arg(t, 1), ret, &own);
	} while (!ret); /* only ours were left in this part of the list */
	return ret;
}
