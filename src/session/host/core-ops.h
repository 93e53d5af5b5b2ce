/*
 * PURPOSE: what the core asks of its host (struct core_ops), answered by the session: time,
 * permissions, and what a call's numbers name.
 */
#ifndef SESSION_HOST_CORE_OPS_H
#define SESSION_HOST_CORE_OPS_H

#include "core/core.h"

/*
 * Descriptors as the core sees them: a call names at most one event beside its own, by
 * wire_open_args.group or wire_ioctl_args.output.
 */
enum {
	FD_NONE = -1,
	FD_NAMED = 0,
};

extern const struct core_ops session_core_ops;

#endif
