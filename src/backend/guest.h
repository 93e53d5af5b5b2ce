/*
 * PURPOSE: makes a process a guest: it becomes anyperf-rt, which is told by a memfd (abi/control.h)
 * what program to run, in which counter segment it counts, and where its session is.
 *
 * What needs memory or may be refused happens before there is a process, so that the child of a
 * program with threads makes nothing but system calls.
 *
 * Lifetime: ap__guest_prepare() to ap__guest_free(), once for each process. Errors: 0 or -errno.
 */
#ifndef BACKEND_GUEST_H
#define BACKEND_GUEST_H

#include "backend/guest-segment.h"

struct guest_launch;

/* Where translations are kept, and what addresses are drawn from; translations.h. */
struct guest_images {
	int fd;     /* of the user's folder, or of a run's memory with @keeper; or -1; borrowed */
	int keeper; /* where a run's programs send more, image-keeper.h; or -1; borrowed */
	u64 seed;
};

/*
 * Prepares for the program @argv, looked up in PATH as execvp(3) does. @runtime is anyperf-rt,
 * @bootstrap the guests' end of the bootstrap socket or -1; they, @segment and @argv must live as
 * long. @inside is the session's end of it while it is here, or -1. -ENOENT: there is no such
 * program; -EACCES: it may not be executed.
 */
must_check int ap__guest_prepare(struct guest_launch **out, const struct guest_segment *segment,
				 const struct guest_images *images, int runtime, int bootstrap,
				 int inside, char *const *argv);

/*
 * In a child that waits before it becomes the program: gives up its copy of the bootstrap socket's
 * other end, @inside, or nobody would learn of a session that dies meanwhile.
 */
void ap__guest_waits(const struct guest_launch *l);

/*
 * In the child: becomes the program. Returns only on failure, with an errno; EBUSY: we are guests
 * ourselves. If the runtime cannot start the program it exits with 127, and ap__segment_failure()
 * knows why.
 */
int ap__guest_become(const struct guest_launch *l);

/* In the parent, once the child has executed. NULL is fine. */
void ap__guest_free(struct guest_launch *l);

/*
 * Whether this process itself runs under the translator, which does not run itself: the only sign
 * of it that there is. Costs a vfork(2).
 */
bool ap__guest_are_we_one(void);

#endif
