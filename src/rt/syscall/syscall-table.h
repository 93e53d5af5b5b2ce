/*
 * PURPOSE: what the runtime does with each system call, as syscall.tbl says: one row per number, in
 * which the steps that a call goes through (syscall.c) find what concerns them. A call whose
 * `steps` are 0 is the kernel's from beginning to end.
 */
#ifndef RT_SYSCALL_SYSCALL_TABLE_H
#define RT_SYSCALL_SYSCALL_TABLE_H

#include "base/types.h"

#define SYSCALLS      512u
#define SYSCALL_FILLS 3u

struct thread;

enum syscall_steps {
	SYSCALL_FD = BIT(0),         /* `fds`, `dirs` or a message name descriptors */
	SYSCALL_SENDS = BIT(1),      /* argument 1 is a struct msghdr that may carry descriptors */
	SYSCALL_SENDS_MANY = BIT(2), /* or an array of struct mmsghdr, of argument 2 entries */
	SYSCALL_PATH = BIT(3),
	SYSCALL_ATFLAGS = BIT(4),
	SYSCALL_PERF = BIT(5),
	SYSCALL_PERF_ALWAYS =
		BIT(6), /* `perf_call` also while the process has no perf descriptor */
	SYSCALL_NONDET = BIT(7),
	SYSCALL_NONDET_ARG = BIT(8),   /* `nondet` unless argument `nondet_arg` is 0 */
	SYSCALL_NONDET_AGAIN = BIT(9), /* `nondet` if the call fails with EAGAIN or EINTR */
	SYSCALL_FILL = BIT(10),
	SYSCALL_MASK = BIT(11),
	SYSCALL_MASK_PAIR = BIT(12), /* argument `mask` points to a pointer to the mask */
	SYSCALL_GUEST = BIT(13),
	SYSCALL_NOTIFY =
		BIT(14), /* a seccomp supervisor may let the kernel make it, `guest_call` or not */
};

enum syscall_fill_kind {
	FILL_NONE,
	FILL_BYTES,   /* unit bytes, or as many times as counted; and `more` */
	FILL_IOVEC,   /* an array of struct iovec, of `count` entries */
	FILL_MSGHDR,  /* one struct msghdr */
	FILL_MMSGHDR, /* an array of struct mmsghdr, of `count` entries */
	FILL_IOCB,    /* an array of pointers to struct iocb, of `count` entries */
};

/* A buffer of the guest's that the kernel fills: the one that argument `arg` points to. */
struct syscall_fill {
	u8 kind; /* enum syscall_fill_kind */
	u8 arg;
	u8 unit;
	u8 counted; /* argument `count` says how many units there are */
	u8 count;
	u8 more;
};

struct syscall_row {
	/* The result, or a CALL_ value of syscall.h. NULL: the kernel is asked. */
	long (*guest_call)(struct thread *t);
	u32 steps; /* enum syscall_steps */
	u8 fds;    /* bit n: argument n is a descriptor */
	u8 dirs; /* bit n: argument n is one of a directory, argument n + 1 a path relative to it */
	u8 path; /* argument that is a path */
	u8 atflags;    /* argument that holds AT_ flags */
	u8 mask;       /* argument that points to a signal mask */
	u8 nondet_arg; /* see SYSCALL_NONDET_ARG */
	u16 nondet;    /* enum nondet_source */
	/* True with the answer in *@ret; false: it does not concern perf after all. */
	bool (*perf_call)(struct thread *t, u64 nr, long *ret);
	/* Answers the call in a deterministic run. NULL: only `nondet` is noted. */
	long (*deterministic_call)(struct thread *t, u64 nr);
	struct syscall_fill fill[SYSCALL_FILLS];
};

extern const struct syscall_row syscall_rows[SYSCALLS];

/* The row of call @nr, whatever number the guest has come up with. The last one is no call's. */
static inline const struct syscall_row *syscall_row(u64 nr)
{
	return &syscall_rows[min_u64(nr, SYSCALLS - 1)];
}

#endif
