/*
 * PURPOSE: calls that take something away and then give it to the program: bytes of a pipe, a
 * message, a child's status. Where they are to put it may lie on a page that translated code came
 * from, which is write-protected; an EFAULT would come too late.
 */
#ifndef RT_SYSCALL_SYSCALL_FILL_H
#define RT_SYSCALL_SYSCALL_FILL_H

#include "rt/syscall/syscall-table.h"
#include "rt/task/thread.h"

/* Gives up translations of what the guest's call, which has @row, is going to write to. */
void fill_release(struct thread *t, const struct syscall_row *row);

#endif
