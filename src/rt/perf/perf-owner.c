/*
 * Who gets the signals of a descriptor. That of a process, as F_SETOWN names one, goes to the
 * thread of that number if it takes it, and to another one only if it does not. A kernel's thread
 * that overflows is the first to look. Of guests' threads any may be on its way into the kernel,
 * stopped by an event of the session's, and take what waits for the process. So the thread itself
 * is made the owner for as long as it takes the signal.
 */
#include "rt/perf/perf-priv.h"

#include "rt/mm/guest-mem.h"
#include "rt/task/process.h"

#include <linux/fcntl.h>

/* @tid of this process; *@takes: it does not block @sig. It tells when that changes. */
static bool find_thread(struct thread *t, u32 tid, u32 sig, bool *takes)
{
	bool found = false;

	for (struct thread *other = threads_lock(t); other && !found; other = other->all_next) {
		if (other->proc != t->proc || other->tid != tid)
			continue;
		found = true;
		__atomic_fetch_or(&other->owned_signals, SIG(sig), __ATOMIC_RELAXED);
		*takes = !(other->sigmask & SIG(sig));
	}
	threads_unlock(t);
	return found;
}

static void choose(struct thread *t, int fd, u32 tid)
{
	struct f_owner_ex owner = {.pid = (int)tid};
	long sig = sys_fcntl(fd, F_GETSIG, 0);
	bool takes;

	if (sig < 0 || sig > SIGNALS || !find_thread(t, tid, sig ? (u32)sig : SIGIO, &takes))
		return;
	owner.type = takes ? F_OWNER_TID : F_OWNER_PID;
	sys_fcntl(fd, F_SETOWN_EX, (long)&owner);
}

void perf_owner_set(struct thread *t, int fd, int cmd, u64 arg)
{
	struct perf_fd *pf = perf_fd_find(t, fd);
	struct f_owner_ex owner;

	if (!pf)
		return;
	switch (cmd) {
	case F_SETOWN: pf->owner = (int)arg > 0 ? (u32)arg : 0; break;
	case F_SETOWN_EX:
		pf->owner = !guest_read(&owner, arg, sizeof(owner)) && owner.type == F_OWNER_PID
				    ? (u32)owner.pid
				    : 0;
	}
	if (pf->owner)
		choose(t, fd, pf->owner);
}

/* The kernel does not show a thread that is no process's first where a process was meant. */
static u32 shown(const struct thread *t, const struct perf_fd *pf)
{
	return pf->owner == t->proc->pid ? pf->owner : 0;
}

long perf_owner_shown(struct thread *t, const struct perf_fd *pf, int cmd, u64 arg)
{
	struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = (int)shown(t, pf)};

	if (cmd == F_GETOWN)
		return owner.pid;
	return guest_write(t, arg, &owner, sizeof(owner)) ? -EFAULT : 0;
}

void perf_owner_masked(struct thread *t)
{
	struct perf *p = t->proc->perf;

	for (u32 page = 0; p && page < PERF_FDS_PAGES; page++) {
		struct perf_fd *entries = perf_fd_page(p, page);

		for (u32 i = 0; entries && i < PERF_FDS_PAGE; i++)
			if (entries[i].kind == PERF_FD_EVENT && entries[i].owner == t->tid)
				choose(t, (int)(page * PERF_FDS_PAGE + i), t->tid);
	}
}
