/*
 * PURPOSE: another guest, as this process sees it. Its runtime is the same file at the same
 * addresses, so what it knows of itself is read in its memory, where nobody else writes; the
 * counter segment is everybody's. What it says is about itself alone, and it may lie.
 */
#ifndef RT_TASK_OTHER_GUEST_H
#define RT_TASK_OTHER_GUEST_H

#include "rt/task/thread.h"

struct other_guest {
	u32 pid;         /* what system calls name it here */
	struct proc *at; /* there */
};

/* False: @pid is no guest, or one whose memory we may not read. */
must_check bool other_guest_find(u32 pid, struct other_guest *o);

/* What we call the process that is @number below our /proc; 0: it is none, or not of our kind. */
u32 pid_of_number(struct thread *t, u32 number);

#endif
