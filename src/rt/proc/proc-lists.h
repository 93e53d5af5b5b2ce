/*
 * PURPOSE: folders below /proc that list what a process has, without what is the runtime's there:
 * its descriptors, and the thread that simulates beside the program (task/beside.h).
 */
#ifndef RT_PROC_PROC_LISTS_H
#define RT_PROC_PROC_LISTS_H

#include "rt/task/thread.h"

long guest_getdents64(struct thread *t);

#endif
