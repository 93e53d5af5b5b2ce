/*
 * PURPOSE: what a guest sees of itself, and of its fellow guests, under /proc: the program that it
 * is, not the runtime. Files whose content differs are shown as a snapshot; links and the targets
 * of other calls on /proc/PID/exe are redirected.
 */
#ifndef RT_PROC_PROC_FILES_H
#define RT_PROC_PROC_FILES_H

#include "rt/task/thread.h"

/*
 * @path is /proc/PID/exe of a guest: writes a path that leads to its program to @out (CONTROL_PATH
 * bytes) and returns true.
 */
bool proc_exe_path(struct thread *t, const char *path, char *out);

/* Whether @fd is /proc/PID/mem of the process itself. */
bool proc_is_own_memory(struct thread *t, int fd);

long guest_open(struct thread *t);     /* open, openat */
long guest_readlink(struct thread *t); /* and readlinkat */
/* Calls on a path that may go through /proc/PID/exe: stat, access and their relatives. */
long guest_path(struct thread *t);
long guest_mount(struct thread *t);

#endif
