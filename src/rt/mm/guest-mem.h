/*
 * PURPOSE: the guest's memory as the runtime touches it: always guarded, never trusted. An address
 * that the program has passed may be unmapped, protected, or ours.
 */
#ifndef RT_MM_GUEST_MEM_H
#define RT_MM_GUEST_MEM_H

#include "rt/task/thread.h"

/* 0, or -EFAULT after copying some of it. */
must_check int guest_read(void *to, u64 from, size_t len);
/* The same the other way. Translations of the pages that are written to are given up. */
must_check int guest_write(struct thread *t, u64 to, const void *from, size_t len);

/* Writes zeros. 0 or -EFAULT. */
must_check int guest_zero(u64 to, size_t len);

/*
 * A NUL-terminated string of at most @size bytes with its end: its length, -EFAULT, or
 * -ENAMETOOLONG if no NUL was among them.
 */
must_check long guest_string(char *to, u64 from, size_t size);

#endif
