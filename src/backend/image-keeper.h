/*
 * PURPOSE: keeps what the programs of one run have translated for the others of it
 * (abi/tree-images.h): takes the images that they send, looks whether they are whole, and shows
 * them to all.
 *
 * Only programs of the user and group who have made the keeper are believed, and who has the socket
 * at all: a runtime gives it up with its rights (rt/load/images.h).
 *
 * Lifetime: a thread of its own, until the last process that has the socket has ended.
 */
#ifndef BACKEND_IMAGE_KEEPER_H
#define BACKEND_IMAGE_KEEPER_H

#include "base/types.h"

/*
 * Starts one: 0 with what guests inherit, both the caller's and CLOEXEC. -errno, so that nothing is
 * shared: -EINVAL where the kernel cannot seal memory as it has to be (before 5.1).
 */
must_check int ap__image_keeper_start(int *images, int *sock);

#endif
