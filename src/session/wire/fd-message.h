/*
 * PURPOSE: messages with a descriptor: between parts of the session, and to guests
 * (struct wire_fd_message).
 *
 * The library has a copy of this under names of its own (src/lib/meson.build).
 */
#ifndef SESSION_WIRE_FD_MESSAGE_H
#define SESSION_WIRE_FD_MESSAGE_H

#include <stddef.h>

#include "base/types.h"

/* A message of @len bytes, with @fd if that is not -1; @flags are sendmsg(2)'s. 0 or -errno. */
int send_fd(int sock, const void *bytes, size_t len, int fd, int flags);
/*
 * A message of exactly @len bytes; *@fd is the caller's, -1 if none came. 0 or -errno: -EPROTO if
 * it is another one, -ECONNRESET if whoever would send it has hung up.
 */
int must_check receive_fd(int sock, void *bytes, size_t len, int *fd);
/* A struct wire_fd_message to a guest, without waiting for room. 0 or -errno. */
int fd_message_send(int sock, u32 slot, u32 seq, int fd);

#endif
