/*
 * PURPOSE: the virtual PMU for the command line itself: a session in this process, events of it behind
 * the library's API, and the command as its guest. Chosen when the kernel cannot count what is asked.
 *
 * Lifetime: virtual_open() to virtual_close(); the machine must be freed first. One thread.
 */
#ifndef CLI_RUN_VIRTUAL_H
#define CLI_RUN_VIRTUAL_H

#include <sys/resource.h>

#include <anyperf/anyperf.h>

#include "base/types.h"
#include "cli/run/deterministic.h"
#include "cli/run/guest.h"

struct observer;
struct session;

struct virtual_pmu {
	struct session *session;   /* NULL: not open */
	bool around;               /* the kernel that we see is a session, whose guest we are */
	struct observer *observer; /* of a session elsewhere, in place of one of our own; or NULL */
	struct guest_tree tree;
	struct rlimit files, file_size; /* as we were given them, for the command */
	bool xfsz_ignored;              /* the same of SIGXFSZ */
};

struct virtual_opts {
	u32 counters;
	const char *cpu_model; /* NULL: auto */
	bool ignore_kernel;
	const struct deterministic_opts *deterministic; /* NULL: an ordinary run */
};

/* 0, or -errno with a sentence. */
must_check int virtual_open(struct virtual_pmu *v, const struct virtual_opts *opts, char *why,
			    size_t size);
/* The events of the running session @name, on its guests. */
must_check int virtual_join(struct virtual_pmu *v, const char *name, char *why, size_t size);
void virtual_close(struct virtual_pmu *v);

/* Whether it is the virtual PMU, of whatever session, that counts. */
bool virtual_counts(const struct virtual_pmu *v);

/* A machine on which events are those of the virtual PMU. */
must_check int virtual_machine(struct virtual_pmu *v, const struct ap_machine_opts *opts,
			       struct ap_machine **machine);

/* In a child: becomes @argv as a guest; returns an errno. For child_make(). */
int virtual_exec(void *v, char *const *argv);
/* In the parent: @pid is going to; events may be opened on it. 0 or -errno. */
must_check int virtual_adopt(struct virtual_pmu *v, pid_t pid);

/* Readable when virtual_serve() has something to do. */
int virtual_fd(const struct virtual_pmu *v);
void virtual_serve(struct virtual_pmu *v);

/* The errno with which the runtime could not start the program, or 0; clears it. *@text may be "". */
int virtual_failure(struct virtual_pmu *v, const char **text);

#endif
