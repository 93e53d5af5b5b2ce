/*
 * PURPOSE: the kernel, for code of the guest world. One thin function per system call that the
 * runtime makes on its own behalf; each returns what the kernel returns, -errno included. There is
 * no errno. Flags and structures are those of the kernel's own headers.
 */
#ifndef SYS_KERNEL_H
#define SYS_KERNEL_H

#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/stat.h>
#include <linux/time.h>

#include "base/types.h"
#include "sys/arch/x86_64/raw.h"
#include "sys/uapi.h"

/* A result that is an error: the kernel uses the last 4095 values of the address space. */
static inline bool sys_failed(long ret)
{
	return (unsigned long)ret >= (unsigned long)-4095;
}

/* Files */

static inline long sys_read(int fd, void *buf, size_t len)
{
	return raw_call3(__NR_read, fd, (long)buf, (long)len);
}

static inline long sys_write(int fd, const void *buf, size_t len)
{
	return raw_call3(__NR_write, fd, (long)buf, (long)len);
}

static inline long sys_pread(int fd, void *buf, size_t len, u64 at)
{
	return raw_call4(__NR_pread64, fd, (long)buf, (long)len, (long)at);
}

static inline long sys_pwrite(int fd, const void *buf, size_t len, u64 at)
{
	return raw_call4(__NR_pwrite64, fd, (long)buf, (long)len, (long)at);
}

static inline long sys_openat(int dir, const char *path, int flags, int mode)
{
	return raw_call4(__NR_openat, dir, (long)path, flags, mode);
}

static inline long sys_close(int fd)
{
	return raw_call1(__NR_close, fd);
}

static inline long sys_lseek(int fd, s64 offset, int whence)
{
	return raw_call3(__NR_lseek, fd, offset, whence);
}

static inline long sys_fcntl(int fd, int cmd, long arg)
{
	return raw_call3(__NR_fcntl, fd, cmd, arg);
}

static inline long sys_dup3(int from, int to, int flags)
{
	return raw_call3(__NR_dup3, from, to, flags);
}

static inline long sys_statx(int dir, const char *path, int flags, u32 mask, struct statx *st)
{
	return raw_call5(__NR_statx, dir, (long)path, flags, mask, (long)st);
}

static inline long sys_readlinkat(int dir, const char *path, char *buf, size_t size)
{
	return raw_call4(__NR_readlinkat, dir, (long)path, (long)buf, (long)size);
}

static inline long sys_faccessat2(int dir, const char *path, int mode, int flags)
{
	return raw_call4(__NR_faccessat2, dir, (long)path, mode, flags);
}

static inline long sys_memfd_create(const char *name, u32 flags)
{
	return raw_call2(__NR_memfd_create, (long)name, flags);
}

static inline long sys_execveat(int dir, const char *path, char *const *argv, char *const *envp,
				int flags)
{
	return raw_call5(__NR_execveat, dir, (long)path, (long)argv, (long)envp, flags);
}

/* Memory */

static inline long sys_mmap(void *addr, size_t len, int prot, int flags, int fd, u64 offset)
{
	return raw_call6(__NR_mmap, (long)addr, (long)len, prot, flags, fd, (long)offset);
}

static inline long sys_munmap(void *addr, size_t len)
{
	return raw_call2(__NR_munmap, (long)addr, (long)len);
}

static inline long sys_mprotect(void *addr, size_t len, int prot)
{
	return raw_call3(__NR_mprotect, (long)addr, (long)len, prot);
}

static inline long sys_mremap(void *old, size_t old_len, size_t new_len, int flags, void *at)
{
	return raw_call5(__NR_mremap, (long)old, (long)old_len, (long)new_len, flags, (long)at);
}

static inline long sys_madvise(void *addr, size_t len, int advice)
{
	return raw_call3(__NR_madvise, (long)addr, (long)len, advice);
}

/* Processes and threads */

static inline int sys_getpid(void)
{
	return (int)raw_call0(__NR_getpid);
}

static inline int sys_gettid(void)
{
	return (int)raw_call0(__NR_gettid);
}

static inline long sys_prctl(int op, u64 a, u64 b, u64 c, u64 d)
{
	return raw_call5(__NR_prctl, op, (long)a, (long)b, (long)c, (long)d);
}

static inline long sys_arch_prctl(int op, u64 addr)
{
	return raw_call2(__NR_arch_prctl, op, (long)addr);
}

__attribute__((noreturn)) static inline void sys_exit(int status)
{
	for (;;)
		raw_call1(__NR_exit, status);
}

__attribute__((noreturn)) static inline void sys_exit_group(int status)
{
	for (;;)
		raw_call1(__NR_exit_group, status);
}

static inline long sys_sched_yield(void)
{
	return raw_call0(__NR_sched_yield);
}

/* @op as in futex(2); FUTEX_PRIVATE_FLAG is the caller's choice. @timeout may be NULL. */
static inline long sys_futex(u32 *word, int op, u32 val, const struct __kernel_timespec *timeout,
			     u32 *word2, u32 val3)
{
	return raw_call6(__NR_futex, (long)word, op, val, (long)timeout, (long)word2, val3);
}

/* In nanoseconds. */
static inline u64 sys_clock(int clock)
{
	struct __kernel_timespec ts = {0, 0};

	raw_call2(__NR_clock_gettime, clock, (long)&ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* Signals: a set is one u64, bit (sig - 1). */

struct sys_sigaction {
	u64 handler;
	u64 flags;
	u64 restorer;
	u64 mask;
};

static inline long sys_rt_sigaction(int sig, const struct sys_sigaction *act,
				    struct sys_sigaction *old)
{
	return raw_call4(__NR_rt_sigaction, sig, (long)act, (long)old, SIGSET_SIZE);
}

static inline long sys_rt_sigprocmask(int how, const u64 *set, u64 *old)
{
	return raw_call4(__NR_rt_sigprocmask, how, (long)set, (long)old, SIGSET_SIZE);
}

static inline long sys_tgkill(int tgid, int tid, int sig)
{
	return raw_call3(__NR_tgkill, tgid, tid, sig);
}

#endif
