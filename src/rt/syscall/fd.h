/*
 * PURPOSE: the few file descriptors that the runtime keeps over the life of a program, out of the
 * guest's reach: a call about one answers EBADF, close_range goes around them, dup2 onto one makes
 * it move, and they are not listed in /proc/self/fd.
 *
 * They live above the guest's RLIMIT_NOFILE if that is moderate and the hard limit allows, else as
 * high as it allows below 1024, since the cost of fork follows the highest descriptor. Most are not
 * close-on-exec: the program's next runtime inherits them.
 */
#ifndef RT_SYSCALL_FD_H
#define RT_SYSCALL_FD_H

#include "rt/task/thread.h"

enum fd_own {
	FD_RT,      /* anyperf-rt, O_PATH */
	FD_SEGMENT, /* the counter segment */
	FD_IMAGES,  /* what is translated, rt/load/image-store.h, or -1 */
	FD_KEEPER,  /* and where more of it goes, abi/tree-images.h, or -1 */
	FD_SESSION, /* the session's bootstrap socket, abi/wire.h */
	FD_WIRE,    /* this process's own socket to the session; ends with execve */
	FD_EXE,     /* the program, or -1; ends with execve */
	FD_LOCKS,   /* what the locks of perf descriptors are on, or -1; ends with execve */
	FD_OWN,
};

/* Takes charge of @fd, moving it out of the way if it is not yet. Returns its number. */
int fd_adopt(enum fd_own which, int fd);
/*
 * Keeps the program's file @fd as FD_EXE, which takes it, if there is a number for it that is out
 * of the guest's way.
 */
void fd_keep_exe(int fd);
int fd_get(enum fd_own which);
/* Closes it; for what a forked process does not go on with. */
void fd_drop(enum fd_own which);
bool fd_is_own(s64 fd);
/*
 * Whether the guest's call @nr, whose row has SYSCALL_FD, is about one of ours. The guest gets
 * EBADF.
 */
bool fd_hidden(struct thread *t, u64 nr);

/* Whether one of the @n messages at @at hands over one of ours (SCM_RIGHTS). */
bool fd_sends_hidden(struct thread *t, u64 at, u64 n);

/* Sets close-on-exec on all of ours, or takes it off. */
void fd_cloexec(bool on);

/*
 * openat(2) of the runtime for its own short purposes, which must work even in a program that has
 * used up its descriptors.
 */
long fd_open(int dir, const char *path, int flags);
long fd_memfd(const char *name, u32 flags);
/*
 * A memfd of @size bytes for code, close-on-exec; -EFBIG: it is larger than what the guest may have
 * files of (RLIMIT_FSIZE).
 */
int fd_for_code(u64 size);
/*
 * Moves @fd, close-on-exec, to a number that no other thread of the guest expects to be given, if
 * there is one. Returns its number.
 */
int fd_move_high(int fd);
/* An eventfd, close-on-exec. */
long fd_eventfd(void);
/*
 * A descriptor, not close-on-exec, out of which the @len bytes are read one after the other: a
 * memfd called @name, or a pipe where the guest's limit for files (RLIMIT_FSIZE), which holds for a
 * memfd too, is below that. -errno; -ENOMEM: the user has so many pipes that one holds less. The
 * memfd is sealed: a fork of another thread has it as well, and may be another user's before it is
 * read.
 */
long fd_with(const char *name, const void *bytes, size_t len);
/* The same as the guest's own: the lowest number that is free, -EMFILE if it may have no more. */
long fd_for_guest(const char *name, const void *bytes, size_t len, bool cloexec);
/*
 * What the file at @path says, with a NUL behind it, as far as there is room: how much, or -errno.
 */
long fd_read_text(const char *path, char *text, size_t size);
/* Where descriptor @fd leads, with a NUL behind it: how long that is, or -errno. */
long fd_path(int fd, char *path, size_t size);

/*
 * Calls @each for the descriptors in the message at @at (SCM_RIGHTS), until it says that this is
 * enough; whether it did.
 */
bool fd_of_message(struct thread *t, u64 at, bool (*each)(struct thread *t, int fd));

long guest_close_range(struct thread *t);
long guest_dup2(struct thread *t);
/* With ppoll and pselect6. */
long guest_poll(struct thread *t);
long guest_select(struct thread *t);

#endif
