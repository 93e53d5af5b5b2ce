/*
 * PURPOSE: what a session and those who come to it must agree on before they have spoken: the
 * bootstrap socket, the size of the counter segment, what guests are shown of the machine before
 * there is a session, and the address of a session that has a name.
 *
 * The library, which starts sessions and joins them, has a copy of this under names of its own
 * (lib/own-names.h).
 */
#ifndef SESSION_WIRE_RENDEZVOUS_H
#define SESSION_WIRE_RENDEZVOUS_H

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "abi/wire.h"

/*
 * A bootstrap socket. *@outside is for guests. *@inside becomes readable when one of them
 * introduces itself, and hangs up (POLLHUP) with the last one; the kernel tells with each message
 * who has sent it. Both are the caller's and CLOEXEC. 0 or -errno.
 */
int must_check bootstrap_pair(int *inside, int *outside);

/*
 * How many meters of a new segment are to be used. All of them are addresses of several GB, of
 * which it takes no more than an eighth of @addresses, which is RLIMIT_AS.
 */
u32 must_check session_segment_slots(const struct rlimit *addresses);

/*
 * The address under which this user's session @name listens: its length; 0: the name is too long.
 */
socklen_t must_check session_address(struct sockaddr_un *sa, const char *name);

#endif
