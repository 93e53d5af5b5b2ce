/*
 * PURPOSE: which areas of threads the child of a fork gets. It has one thread only. To copy the
 * areas of the others, and to unmap them there, takes longer than the fork if they are many; so the
 * kernel leaves out (MADV_DONTFORK) those of threads that have nothing else to be given back.
 *
 * Locking: the list of threads is locked from fork_areas_offer() to fork_areas_keep().
 */
#ifndef RT_TASK_FORK_AREAS_H
#define RT_TASK_FORK_AREAS_H

#include "rt/task/thread.h"

/* From now on the area of @t, which is a new one, is in no child unless it is offered. */
void fork_areas_leave_out(struct thread *t);
/* @t is about to fork: its area is copied, and those that the child has to look at. */
void fork_areas_offer(struct thread *t);
/* In the parent, when it has. */
void fork_areas_keep(struct thread *t);
/* In the child: gives back what it has of other threads. */
void fork_areas_free(struct thread *t);
/* Whoever forks, the areas of all threads are copied. */
void fork_areas_offer_all(struct thread *first);

#endif
