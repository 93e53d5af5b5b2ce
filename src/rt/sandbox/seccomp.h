/*
 * PURPOSE: the guest's seccomp filters. They are not installed in the kernel, where they would
 * judge the runtime's own calls; a classic-BPF interpreter gives the kernel's verdicts here, before
 * a call is looked at any further.
 */
#ifndef RT_SANDBOX_SECCOMP_H
#define RT_SANDBOX_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "rt/task/thread.h"

/* The kernel's limit on a thread's filters together, in instructions. */
#define FILTERS_MOST_INSNS 32768u

/* One filter and the older ones below it; threads and children share the tail. Counted. */
struct seccomp_filter {
	u32 refs;
	u32 len;
	bool log;
	bool notifies; /* it has a listener: see install_listener() */
	bool by_prctl; /* installed by prctl(2), not seccomp(2) */
	struct seccomp_filter *older;
	u64 mapped;
	struct sock_filter code[];
};

void seccomp_get(struct seccomp_filter *f);
void seccomp_put(struct seccomp_filter *f);

/*
 * Judges the call @nr of @t: true if it may go on. Otherwise the verdict has been carried out: the
 * result is in the registers, a SIGSYS is noted, or the process is no more.
 */
bool seccomp_allows(struct thread *t, u64 nr);
/* The same for a call @d by another gate of the CPU. @strict: the strict mode allows the call. */
bool seccomp_judge(struct thread *t, const struct seccomp_data *d, bool strict);

/*
 * The verdict of @f and the older ones on a call; *@whose is the one it is of, or NULL. @whose may
 * be NULL.
 */
u32 seccomp_verdict(const struct seccomp_filter *f, const struct seccomp_data *d,
		    const struct seccomp_filter **whose);
/* Whether the kernel would let the calling thread install a filter. */
bool seccomp_may_install(void);

/* Why the filters of @t cannot be given to the kernel; NULL: they can, or there are none. */
const char *seccomp_native_obstacle(struct thread *t);
/*
 * Gives them to the kernel. There is no way back, neither if it fails in the middle nor if the
 * execve fails that is to follow: the thread is under them then.
 */
must_check bool seccomp_go_native(struct thread *t);

long guest_seccomp(struct thread *t);
long seccomp_prctl(struct thread *t);

/*
 * Filters as bytes, and back, for execve. seccomp_save() writes at most @size and returns how many.
 */
size_t seccomp_save(struct thread *t, void *buf, size_t size);
int seccomp_load(struct thread *t, const void *buf, size_t len);

#endif
