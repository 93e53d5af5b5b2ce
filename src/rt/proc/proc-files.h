/*
 * PURPOSE: what a guest sees of itself, and of its fellow guests, under /proc: the program that it
 * is, not the runtime. Files whose content differs are shown as a snapshot; links and the targets
 * of other calls on /proc/PID/exe are redirected.
 */
#ifndef RT_PROC_PROC_FILES_H
#define RT_PROC_PROC_FILES_H

#include "rt/proc/shown-text.h"
#include "rt/task/thread.h"

/*
 * @path is /proc/PID/exe of a guest: writes a path that leads to its program to @out (CONTROL_PATH
 * bytes) and returns true.
 */
bool proc_exe_path(struct thread *t, const char *path, char *out);

#define PROC_MAPS_PATH 40u

/* @fd is a snapshot of maps: true, and in @path the file that it is of. */
bool proc_shown_maps(struct thread *t, int fd, char path[PROC_MAPS_PATH]);
/* Adds to @text what the guest is shown of such a file now. 0 or -errno. */
long proc_read_maps(struct thread *t, const char *path, struct shown_text *text);

/* Whether @fd is /proc/PID/mem of the process itself. */
bool proc_is_own_memory(struct thread *t, int fd);

long guest_open(struct thread *t);     /* open, openat */
long guest_readlink(struct thread *t); /* and readlinkat */
/* Calls on a path that may go through /proc/PID/exe: stat, access and their relatives. */
long guest_path(struct thread *t);
long guest_mount(struct thread *t);

#endif
