#include "session/wire/rendezvous.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi/meter.h"

int bootstrap_pair(int *inside, int *outside)
{
	int pair[2], one = 1, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* From the first message on, whether it has been read by then or not. */
	if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one))) {
		err = -errno;
		close(pair[0]);
		close(pair[1]);
		return err;
	}
	*inside = pair[0];
	*outside = pair[1];
	return 0;
}

u32 session_segment_slots(const struct rlimit *addresses)
{
	u32 slots = SEGMENT_SLOTS;

	if (addresses->rlim_cur == RLIM_INFINITY)
		return slots;
	while (slots > SEGMENT_SLOTS_MIN && segment_offset(slots) > addresses->rlim_cur / 8)
		slots /= 2;
	return slots;
}

/* The abstract namespace leaves nothing behind; the uid in it keeps users apart. */
socklen_t session_address(struct sockaddr_un *sa, const char *name)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "anyperf-%u-%s",
		     (unsigned)getuid(), name);
	if (n < 0 || (size_t)n >= sizeof(sa->sun_path) - 1)
		return 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}
