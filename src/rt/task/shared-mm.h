/*
 * PURPOSE: processes that share our memory (CLONE_VM without CLONE_THREAD). The child of a vfork is
 * one whose parent waits for it; of the end of the others, called sharers, nobody here is told.
 * What they leave behind is given back, and none of us kills one while it holds a lock of the
 * runtime.
 */
#ifndef RT_TASK_SHARED_MM_H
#define RT_TASK_SHARED_MM_H

#include "rt/task/thread.h"

/* @t runs, and the kernel calls it @tid. */
void thread_know(struct thread *t, u32 tid);
/* Before its area is given back. */
void thread_forget(struct thread *t);
/* In the child of a fork, whose only thread is @t. */
void threads_forget_others(const struct thread *t);
/*
 * Whether the thread with this id, or tid, has left our memory; false where that can't be known.
 * The first is asked by who has waited for that thread in vain, and so does stopped_run_on() too.
 */
bool thread_gone(u32 id);
bool thread_has_left(u32 tid);
/* The tid of one of the threads that are known, for all @i; 0: none. */
#define KNOWN_MAX 4096u
u32 known_tid(u32 i);

/*
 * Before @t makes one, with @flags of clone: gives back the areas of those that have gone if there
 * may be many.
 */
void sharers_expect(struct thread *t, u64 flags);

/* kill and its relatives; see rt/syscall/syscall.h. */
long guest_kill(struct thread *t);

#endif
