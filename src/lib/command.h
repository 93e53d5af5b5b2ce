/* PURPOSE: starting a command in ways that only the command line uses. */
#ifndef LIB_COMMAND_H
#define LIB_COMMAND_H

#include <anyperf/command.h>

#include <sys/resource.h>

#include "backend/virtual.h"

enum ap__command_flags {
	AP__COMMAND_AT_ONCE = 1 << 0, /* it is not stopped: it runs when this returns */
	/*
	 * The caller waits for ap__virtual_fd() and ap__virtual_keeper_fd() to be readable, too,
	 * and calls ap__virtual_answer() and ap__virtual_keep(): so a session, and a thread, are
	 * started only if somebody needs them.
	 */
	AP__COMMAND_SERVED = 1 << 1,
};

/* As ap_command_new(). */
must_check int ap__command_new(struct ap_command **out, struct ap_machine *m, char *const *argv,
			       const struct ap_command_opts *opts, unsigned int flags,
			       struct ap_error *err);

/* What one that was waited for has used, with the children that it has waited for. */
const struct rusage *ap__command_usage(const struct ap_command *c);

/* The virtual PMU behind @m; NULL: there is none. */
struct virtual_pmu *ap__machine_virtual(const struct ap_machine *m);

/* The meters of its guests, for reports; NULL: there are none. */
const struct guest_segment *ap__machine_segment(const struct ap_machine *m);

#endif
