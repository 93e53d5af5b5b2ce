/* PURPOSE: what the runtime's perf files share among themselves. */
#ifndef RT_PERF_PERF_PRIV_H
#define RT_PERF_PERF_PRIV_H

#include "rt/perf/perf-guest.h"

/* perf-fds.c */
void *perf_memory(u64 len);
struct perf_fd *perf_fd_slot(struct perf *p, int fd, bool make);
/* The PERF_FDS_PAGE entries from @page times so many on; NULL: none of them was ever made. */
struct perf_fd *perf_fd_page(const struct perf *p, u32 page);
void perf_fd_copied(struct thread *t, int from, int to);
void perf_fd_closed(struct thread *t, int fd);
void perf_fd_closed_range(struct thread *t, u32 first, u32 last);
void perf_fd_received(struct thread *t, int fd);
/* What is known of @fd, after asking; NULL: nothing special. */
struct perf_fd *perf_fd_known(struct thread *t, int fd);
void perf_save_fds(struct thread *t, u64 *fds);
void perf_restore_fds(struct thread *t, const u64 *fds);

/*
 * perf-fstat.c: the call as it stands, with another anonymous file in place of the perf descriptor
 * that argument @n is. All of them look alike, and share one inode in the kernel.
 */
bool perf_as_anonymous(struct thread *t, u64 nr, u32 n, long *ret);
/* What /proc/self/fdinfo says of @fd: a descriptor with the text, or -errno. */
long perf_fdinfo_open(struct thread *t, int fd, u32 flags);
/* enum wire_async_answer of @pf's open file, after setting it as @set says (enum wire_async) */
u32 perf_async(struct thread *t, const struct perf_fd *pf, u32 set);

/*
 * perf-locks.c: an anonymous file to ask in place of a perf descriptor, or -errno, until
 * perf_anonymous_end().
 */
long perf_anonymous(struct thread *t);
void perf_anonymous_end(struct thread *t, long fd);
/* fcntl with a command about locks of a perf descriptor. */
bool perf_lock(struct thread *t, u64 nr, long *ret);
/* A perf descriptor is closed, the process's @last. */
void perf_locks_end(struct thread *t, bool last);

/* perf-owner.c: the guest has asked with success for @cmd, which is about who is signalled. */
void perf_owner_set(struct thread *t, int fd, int cmd, u64 arg);
/* The answer to F_GETOWN or F_GETOWN_EX of an owner that F_SETOWN has named. */
long perf_owner_shown(struct thread *t, const struct perf_fd *pf, int cmd, u64 arg);

/* perf-map.c */
void perf_maps_forget(struct perf *p);

/* perf-open.c */
u32 perf_ioctl_read(u32 cmd, u64 arg, u8 *data);
u32 perf_snapshot_read(struct thread *t, const struct perf_fd *pf, u64 *words);

/* perf-overlay.c */
u64 perf_own_count(struct thread *t, enum meter_quantity q);

/* perf-sysctl.c: true with the answer in *@ret if it is about a setting */
bool perf_sysctl_open(struct thread *t, u64 nr, const u64 a[6], const char *path, const char *shown,
		      long *ret);
/* What write, writev or pwrite64 puts into setting @handle. */
long perf_sysctl_write(struct thread *t, u64 nr, u64 handle);

/* wire-call.c: CLOCK_THREAD_CPUTIME_ID, ns */
u64 perf_cpu_time(void);

/*
 * What syscall.tbl names: each returns true with the answer in *@ret if the guest's call @nr is
 * about a perf descriptor, or a setting.
 */
bool perf_on_close(struct thread *t, u64 nr, long *ret);
bool perf_on_close_range(struct thread *t, u64 nr, long *ret);
bool perf_on_dup(struct thread *t, u64 nr, long *ret);
bool perf_on_epoll_ctl(struct thread *t, u64 nr, long *ret);
bool perf_on_anonymous(struct thread *t, u64 nr, long *ret);
bool perf_on_fallocate(struct thread *t, u64 nr, long *ret);
bool perf_on_fcntl(struct thread *t, u64 nr, long *ret);
bool perf_on_ftruncate(struct thread *t, u64 nr, long *ret);
bool perf_on_ioctl(struct thread *t, u64 nr, long *ret);
bool perf_on_mmap(struct thread *t, u64 nr, long *ret);
bool perf_on_madvise(struct thread *t, u64 nr, long *ret);
bool perf_on_mprotect(struct thread *t, u64 nr, long *ret);
bool perf_on_mremap(struct thread *t, u64 nr, long *ret);
bool perf_on_msync(struct thread *t, u64 nr, long *ret);
bool perf_on_munmap(struct thread *t, u64 nr, long *ret);
bool perf_on_open(struct thread *t, u64 nr, long *ret);
bool perf_on_poll(struct thread *t, u64 nr, long *ret);
bool perf_on_prctl(struct thread *t, u64 nr, long *ret);
bool perf_on_read(struct thread *t, u64 nr, long *ret);
bool perf_on_receive(struct thread *t, u64 nr, long *ret);
bool perf_on_select(struct thread *t, u64 nr, long *ret);
bool perf_on_setaffinity(struct thread *t, u64 nr, long *ret);
/* A read of no perf descriptor: true: it was made. */
bool perf_read_signals(struct thread *t, u64 nr, long *ret);
bool perf_on_bpf(struct thread *t, u64 nr, long *ret);
bool perf_on_mkdir(struct thread *t, u64 nr, long *ret);
bool perf_on_splice(struct thread *t, u64 nr, long *ret);
bool perf_on_vmsplice(struct thread *t, u64 nr, long *ret);
bool perf_on_write(struct thread *t, u64 nr, long *ret);

#endif
