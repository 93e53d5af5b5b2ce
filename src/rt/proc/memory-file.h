/*
 * PURPOSE: what a guest writes to its own memory through /proc/self/mem, as JITs do whose code is
 * not writable. The kernel writes through any protection, so nobody else notices.
 */
#ifndef RT_PROC_MEMORY_FILE_H
#define RT_PROC_MEMORY_FILE_H

#include "rt/task/thread.h"

/* From now on writes are looked at. */
void memory_file_opened(void);

/* write, pwrite and their relatives: what was translated from where they write to is forgotten. */
long guest_write_file(struct thread *t);

#endif
