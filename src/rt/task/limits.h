/*
 * PURPOSE: limits of memory (RLIMIT_AS, RLIMIT_DATA) that are the guest's. The kernel counts the
 * runtime's memory too, so the soft limit that it is given is the guest's and what is ours on top:
 * the kernel itself refuses what goes over the guest's, to the page. The kernel's hard limit is not
 * lowered, as it could not be raised again by as much as the next thread needs; the guest's is kept
 * here. What somebody else sets from outside is taken over when we look next; another guest says
 * which part of it is meant for the program.
 *
 * Limits belong to a process, what is ours to the memory, which several may share. Locking: each
 * process's limits have a lock, within which nothing but the kernel is called.
 */
#ifndef RT_TASK_LIMITS_H
#define RT_TASK_LIMITS_H

#include <linux/resource.h>

#include "base/types.h"
#include "sys/lock.h"

struct rt_control;
struct thread;

/* In the order of struct rt_control's. */
enum limit_kind { LIMIT_AS, LIMIT_DATA, LIMITS };

struct guest_limits {
	struct lock lock;
	struct guest_limit {
		struct rlimit64 guest; /* as the guest believes */
		struct rlimit64 set;   /* as the kernel was told last */
		/*
		 * Another guest's: what it wants `guest` to be from when the kernel says `told`,
		 * which it is going to tell it.
		 */
		struct limit_wish {
			struct rlimit64 guest, told;
			u32 pending;
		} wish;
	} of[LIMITS];
};

/* Before anything is mapped: what the limits are, and out of our way as far as we may. */
void limits_lift(struct rlimit64 found[LIMITS]);

/*
 * From now on the limits hold for the guest, which maps what follows. @c tells them if the process
 * was a guest before, or else they are what limits_lift() has found.
 */
void limits_start(struct thread *t, const struct rt_control *c, const struct rlimit64 *found);
/* For the next program of the process. */
void limits_save(const struct thread *t, struct rt_control *c);

/* In the child of a fork; and in a process that shares our memory, whose struct is a copy. */
void limits_forked(struct thread *t);

/*
 * So much more is ours than was, or less: of addresses, and of them private and writable. Before it
 * is mapped, or after it was unmapped.
 */
void limits_ours(s64 all, s64 data);

/* What was ours goes with the thread that tells so, which is on its last steps. */
void limits_leave(s64 all, s64 data);
/* The guest is about to ask for memory: what has gone with threads is not to be had by it. */
void limits_settle(void);

/* Whether the guest's heap stays as it is: its soft limit of data is 0. */
bool limits_forbid_heap(const struct thread *t);

/* Whether the guest has capability @cap in the machine's own user namespace, as limits ask. */
bool limits_capable(u32 cap);

/* Whether memory may be short that the program itself could do without. */
bool limits_are_tight(void);

/* How many bytes are ours. */
u64 limits_own(enum limit_kind kind);

/*
 * A mapping of ours has failed, maybe since the guest has more than it is allowed, as it may after
 * it has lowered a limit: lifts what stands in the way; false if nothing does. limits_ours(0, 0)
 * puts it back.
 */
bool limits_give_way(void);

/* Around an execve of what runs natively. */
void limits_exec_prepare(struct thread *t);
void limits_exec_failed(void);

/* The LIMITS of guest @pid as it believes them; false: it is none, or nobody says. */
bool limits_of(struct thread *t, u32 pid, struct rlimit64 *limits);
/*
 * What is a guest's of /proc/PID/limits, whose LIMITS are @limits: the line that belongs in place
 * of @line, or "".
 */
void limits_line(const struct rlimit64 *limits, const char *line, char *text, size_t size);

/* See rt/syscall/syscall.h. */
long guest_getrlimit(struct thread *t);
long guest_setrlimit(struct thread *t);
long guest_prlimit64(struct thread *t);

#endif
