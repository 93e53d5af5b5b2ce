/*
 * Which of the program's calls may not be made while a thread of ours simulates, and before which
 * all that the caller has done is to be simulated: nearly each, since it can wake somebody who
 * looks at its counts.
 */
#include "rt/mm/guest-mem.h"
#include "rt/syscall/syscall-table.h"
#include "rt/task/beside.h"
#include "rt/task/thread.h"
#include "sys/string.h"

#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/prctl.h>

/* Nobody learns of it, and it does not wait for anybody. */
static bool is_private(u64 nr)
{
	switch (nr) {
	case __NR_brk:
	case __NR_clock_gettime:
	case __NR_fstat:
	case __NR_getpid:
	case __NR_gettid:
	case __NR_gettimeofday:
	case __NR_lseek:
	case __NR_madvise:
	case __NR_mmap:
	case __NR_mprotect:
	case __NR_mremap:
	case __NR_munmap:
	case __NR_rt_sigaction:
	case __NR_rt_sigprocmask: return true;
	}
	return false;
}

/* Of the calling thread alone, though it means the process; or it refuses who has threads. */
static bool concerns_threads(const struct thread *t, u64 nr)
{
	switch (nr) {
	case __NR_capset:
	case __NR_chroot:
	case __NR_close_range:
	case __NR_exit:
	case __NR_ioprio_set:
	case __NR_keyctl:
	case __NR_landlock_restrict_self:
	case __NR_pivot_root:
	case __NR_sched_setaffinity:
	case __NR_sched_setattr:
	case __NR_sched_setparam:
	case __NR_sched_setscheduler:
	case __NR_seccomp:
	case __NR_setfsgid:
	case __NR_setfsuid:
	case __NR_setgid:
	case __NR_setgroups:
	case __NR_setns:
	case __NR_setpriority:
	case __NR_setregid:
	case __NR_setresgid:
	case __NR_setresuid:
	case __NR_setreuid:
	case __NR_setuid:
	case __NR_unshare: return true;
	case __NR_prctl: return guest_arg(t, 0) != PR_SET_NAME;
	}
	return false;
}

/* Whether the relative path of a call begins at a folder below /proc. */
static bool begins_in_proc(const struct thread *t, const struct syscall_row *row)
{
	bool has_folder = row->path && row->dirs & BIT(row->path - 1u);
	int folder = has_folder ? (int)guest_arg(t, row->path - 1u) : AT_FDCWD;
	struct statfs fs;
	long err = folder == AT_FDCWD ? raw_call2(__NR_statfs, (long)".", (long)&fs)
				      : raw_call2(__NR_fstatfs, folder, (long)&fs);

	return !err && fs.f_type == PROC_SUPER_MAGIC;
}

/* A path below /proc, or of one who is there already; or a folder that may be there. */
static bool looks_at_tasks(const struct thread *t, u64 nr)
{
	const struct syscall_row *row = syscall_row(nr);
	char path[256];
	long len;

	if (nr == __NR_getdents64)
		return true;
	if (!(row->steps & SYSCALL_PATH) || !guest_arg(t, row->path))
		return false;
	len = guest_string(path, guest_arg(t, row->path), sizeof(path));
	if (len <= 0)
		return len == -ENAMETOOLONG;
	if (path[0] == '/')
		return str_starts(path, "/proc/");
	for (long i = 0; i < len; i++)
		if (str_starts(path + i, "proc/"))
			return true;
	return begins_in_proc(t, row);
}

void beside_before_call(struct thread *t, u64 nr)
{
	if (is_private(nr))
		return;
	if (concerns_threads(t, nr) || looks_at_tasks(t, nr))
		beside_end(t);
	else
		beside_finish(t, t);
}
