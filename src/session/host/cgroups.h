/*
 * PURPOSE: which cgroup a descriptor names, and in which one a thread is.
 *
 * Ownership: session->cgroups lists those that somebody counts and what they are in, until the
 * session ends; the cgroup objects are the core's.
 */
#ifndef SESSION_HOST_CGROUPS_H
#define SESSION_HOST_CGROUPS_H

#include "base/types.h"

struct cgroup;
struct guest_thread;
struct session;

/* 0, -EBADF no cgroup's directory, -ENOENT one that perf does not count, -ENOMEM. */
int must_check cgroup_by_fd(struct session *s, int fd, struct cgroup **cgroup);
/*
 * @th has made the one whose directory is @fd, if it is one: those that ask for CGROUP records are
 * told.
 */
void cgroup_made(struct guest_thread *th, int fd);
/* Tells the core where @th is now. */
void cgroup_place(struct guest_thread *th);
void cgroups_forget(struct session *s);

#endif
