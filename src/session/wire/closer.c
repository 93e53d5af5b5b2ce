#include "session/wire/closer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "session/helper-thread.h"

#define AT_ONCE 64u /* under way, of one guest */

struct closer {
	int queue[2]; /* numbers of descriptors; the second end is the session's */
	u32 waiting;  /* atomic: taken, and not closed yet */
};

/* The closer is the thread's when the session has shut its end. */
static void *run(void *arg)
{
	struct closer *c = arg;
	int fd;

	while (read(c->queue[0], &fd, sizeof(fd)) == sizeof(fd)) {
		close(fd);
		__atomic_fetch_sub(&c->waiting, 1, __ATOMIC_RELAXED);
	}
	close(c->queue[0]);
	free(c);
	return NULL;
}

static struct closer *closer_new(void)
{
	struct closer *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (pipe2(c->queue, O_CLOEXEC)) {
		free(c);
		return NULL;
	}
	fcntl(c->queue[1], F_SETFL, O_NONBLOCK);
	if (helper_start(run, c))
		return c;
	close(c->queue[0]);
	close(c->queue[1]);
	free(c);
	return NULL;
}

bool closer_close(struct closer **closer, int fd)
{
	struct closer *c = *closer;
	u32 waiting;

	if (fd < 0)
		return true;
	if (!c)
		c = *closer = closer_new();
	if (!c) {
		/* Without memory for a thread there is no other way. */
		close(fd);
		return true;
	}
	waiting = __atomic_add_fetch(&c->waiting, 1, __ATOMIC_RELAXED);
	/* There is room in the pipe for some thousand; who has so many is not listened to. */
	if (write(c->queue[1], &fd, sizeof(fd)) != sizeof(fd))
		__atomic_fetch_sub(&c->waiting, 1, __ATOMIC_RELAXED);
	return waiting < AT_ONCE;
}

void closer_end(struct closer *closer)
{
	if (closer)
		close(closer->queue[1]);
}
