/*
 * PURPOSE: the operations of the wire (enum wire_op). Each has the call's own copy of the request,
 * and returns what `ret` of the reply says.
 *
 * Order: within an instant (task/instant.h).
 */
#ifndef SESSION_WIRE_OPS_H
#define SESSION_WIRE_OPS_H

#include "session/wire/serve.h"

s64 must_check op_run(struct call *c);

/* ops-event.c */
s64 op_open(struct call *c);
s64 op_read(struct call *c);
s64 op_ioctl(struct call *c);
s64 op_mmap(struct call *c);
s64 op_munmap(struct call *c);
s64 op_poll(struct call *c);
s64 op_lookup(struct call *c);
s64 op_hangup(struct call *c);
s64 op_lossless(struct call *c);
s64 op_async(struct call *c);

/* host/settings.c */
s64 op_sysctl(struct call *c);

#endif
