/*
 * Messages with a descriptor: between parts of the session, and to guests (struct wire_fd_message).
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/session-priv.h"

int send_fd(int sock, const void *bytes, size_t len, int fd, int flags)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int receive_fd(int sock, void *bytes, size_t len, int *fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {bytes, len};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		/* Not its size: there would be place for a second, which nobody closes. */
		.msg_controllen = CMSG_LEN(sizeof(int))};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*fd = -1;
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	if (n == (ssize_t)len && !(msg.msg_flags & MSG_TRUNC))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return n ? -EPROTO : -ECONNRESET;
}

int fd_message_send(int sock, u32 slot, u32 seq, int fd)
{
	struct wire_fd_message message = {slot, seq};

	return send_fd(sock, &message, sizeof(message), fd, MSG_DONTWAIT);
}
