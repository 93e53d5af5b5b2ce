/*
 * PURPOSE: what the kernel says of processes: whose thread is whose, pid namespaces, credentials.
 *
 * Nothing is kept: all of it is read when it is asked for.
 */
#ifndef SESSION_HOST_PIDS_H
#define SESSION_HOST_PIDS_H

#include <sys/types.h>

#include "core/core.h"

struct guest_process;
struct guest_thread;

bool pid_has_tid(pid_t pid, s32 tid);
/* The text of /proc/@pid/task/@tid/@name, as much as there is room for; false: there is none. */
bool pid_task_text(pid_t pid, s32 tid, const char *name, char *text, size_t size);
/* A zombie has no events, and cannot get any [CALL-09]. */
bool pid_exists(pid_t pid);
/*
 * Do both run the same program file? For guests, which all run the runtime. Without /proc: perhaps.
 */
bool pid_same_exe(pid_t a, pid_t b);
/* Has process @pid the file of @fd open? If that cannot be looked at: could it be a guest? */
bool pid_has_file(pid_t pid, int fd);

/* Is @pid a child of @parent, both ours? True where that cannot be looked at. */
bool pid_is_child(pid_t parent, pid_t pid);

/* Whether /proc is that of another PID namespace than ours, so that its numbers are others'. */
bool pid_proc_is_foreign(void);

/* The thread of @pid (ours) that calls itself @tid, in our namespace; 0: there is none. */
s32 pid_translate(pid_t pid, s32 tid, bool *same);
/* A pid that guest @p names, in our namespace; 0: there is none. */
s32 pid_from_guest(struct guest_process *p, s32 pid);

/* What a thread's own pid namespace calls it and its process. */
struct pid_inside {
	pid_t tgid; /* in the session's namespace */
	pid_t pid;  /* of its process, inside */
	s32 tid;    /* inside */
	bool same;  /* it is the session's namespace */
};
bool pid_inside(s32 tid, struct pid_inside *in);

/* ~0u: not known */
u32 cred_euid(pid_t pid, s32 tid);
/* What the process may lock, in bytes; ~0: all, or not known. */
u64 cred_memlock(pid_t pid);
bool cred_capable(pid_t pid, s32 tid, enum core_cap cap);
/* Might @who ptrace @target in that way? */
bool cred_may_access(struct guest_thread *who, struct guest_thread *target, enum core_access how);

#endif
