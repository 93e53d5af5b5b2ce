/*
 * PURPOSE: the tracepoints of system calls as the machine's tracefs numbers and describes them.
 * Guests see that directory too; what they find there they open events by.
 *
 * Ownership: the session's, made when somebody first asks and kept.
 */
#ifndef SESSION_HOST_TRACEPOINTS_H
#define SESSION_HOST_TRACEPOINTS_H

#include "base/types.h"

struct probe_tracepoint;
struct session;
struct tp_format;
struct tracepoints;

/* Of struct probe_host; @ctx is the session. */
int tracepoint_find(void *ctx, u64 id, struct probe_tracepoint *tp);
/*
 * What the records of @id, which was found, look like, if it tells of an execve with the names of
 * files; NULL: it does not.
 */
const struct tp_format *tracepoint_exec_format(const struct session *s, u64 id);
void tracepoints_free(struct tracepoints *t);

#endif
