/*
 * PURPOSE: a program that is started to be measured. Its process is there before the program is, so
 * that events can be opened on it and miss nothing:
 *
 *   ap_command_new(&cmd, machine, argv, NULL, &err);
 *   ap_counters_open(&c, machine, specs, &AP_OPTS(ap_target, .command = cmd),
 *                    &AP_OPTS(ap_open_opts, .flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT), &err);
 *   ap_command_start(cmd);
 *   ap_command_wait(cmd, 0, &end, &err);
 *   ap_counters_read(c);
 *
 * On a machine whose PMU is virtual (machine.h) the program and all that it starts run under the
 * translator; it is the only thing that such a PMU counts.
 *
 * Lifetime: ap_command_new() to ap_command_free(). The machine must live as long. The process is a
 * child of the caller's like any other: its end raises SIGCHLD, and nobody but ap_command_wait()
 * may wait for it.
 */
#ifndef ANYPERF_COMMAND_H
#define ANYPERF_COMMAND_H

#include <anyperf/error.h>

AP_BEGIN_DECLS

struct ap_command;
struct ap_machine;

struct ap_command_opts {
	size_t size;
	/*
	 * Called in the new process, before it waits: to restore signals, change the directory and
	 * the like. Only what is async-signal-safe may be called. NULL: nothing.
	 */
	void (*in_child)(void *data);
	void *data; /* handed to @in_child */
};

/*
 * Makes the process, which waits on a pipe to be started. @argv ends with NULL, is borrowed for the
 * call, and argv[0] is looked up in PATH as execvp(3) does. @opts may be NULL.
 *   -ENOENT, -EACCES and the like: there is no such program, or it may not be executed. On a
 *            machine of the kernel's PMU it is ap_command_wait() that finds this out.
 *   -EAGAIN, -ENOMEM: as of fork(2)
 *   others:  there is no virtual PMU here, the reason says why
 */
AP_API AP_MUST_CHECK int ap_command_new(struct ap_command **out, struct ap_machine *m,
					char *const *argv, const struct ap_command_opts *opts,
					struct ap_error *err);

/* Its process id. 0: it has been waited for. */
AP_API pid_t ap_command_pid(const struct ap_command *c);

/* Lets it go, once. It may be running, or even gone, when this returns. */
AP_API void ap_command_start(struct ap_command *c);

enum ap_command_flags {
	AP_COMMAND_NOHANG = 1 << 0, /* do not wait: look whether it has ended */
};

struct ap_command_end {
	int status;       /* as wait(2) has it */
	uint64_t user_ns; /* CPU time of it and of those of its children that it has waited for */
	uint64_t system_ns;
};

/*
 * Waits for the command's end; one that was not started is started first. @end may be NULL. Read
 * the counters before and after: what ends here has counted all that it will.
 *   1         it has ended, *@end is filled in
 *   0         it has not; only with AP_COMMAND_NOHANG
 *   -ENOENT, -EACCES and the like: the program could not be executed; its process is gone
 *   -EPERM    only the kernel can run it (AP_CAUSE_UNSUPPORTED): a setuid, 32-bit or unreadable
 *             program, on a machine whose PMU is virtual; it has not begun
 *   -EBUSY    this program itself runs under the virtual PMU, and one translator inside another is
 *             not supported
 *   -ECHILD   it has been waited for already, by this or by wait(2); or SIGCHLD is ignored, and
 *             nobody hears how children end
 */
AP_API AP_MUST_CHECK int ap_command_wait(struct ap_command *c, unsigned int flags,
					 struct ap_command_end *end, struct ap_error *err);

/* One that was not started goes away; one that runs is left alone. NULL is fine. */
AP_API void ap_command_free(struct ap_command *c);

/* A program that ran natively. Strings live until the callback returns. */
struct ap_uncounted {
	pid_t pid;        /* as its pid namespace has it */
	const char *path; /* the program */
	const char *why;  /* a few words: "setuid program", "32-bit program" ... */
};

/* A non-zero return ends the enumeration, which then returns that value. */
typedef int ap_uncounted_fn(const struct ap_uncounted *program, void *data);

/*
 * Calls @fn (NULL: nothing) for each program that the commands of this machine have started so far
 * and that the virtual PMU could not count: setuid and 32-bit programs and others that the
 * translator leaves to the kernel. The counts are short by what these did. Only some are named; *@n
 * is how many there were. 0 or @fn's value. Of the kernel's PMU there are none.
 */
AP_API int ap_machine_uncounted(struct ap_machine *m, ap_uncounted_fn *fn, void *data,
				unsigned int *n);

AP_END_DECLS

#endif
