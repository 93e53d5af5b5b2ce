/*
 * PURPOSE: keeps what the programs of one run have translated for the others of it
 * (abi/tree-images.h): takes the images that they send, looks whether they are whole, and shows
 * them to all.
 *
 * Only programs of the user and group who have made the keeper are believed, and who has the socket
 * at all: a runtime gives it up with its rights (rt/load/images.h).
 *
 * Most runs have one program, which has nobody to share with: the thread that does all this is
 * started when somebody writes to the socket. Lifetime: until the last process that has the socket
 * has ended.
 */
#ifndef BACKEND_IMAGE_KEEPER_H
#define BACKEND_IMAGE_KEEPER_H

#include "base/types.h"

/* A socket: what the keeper reads, and what guests inherit; both CLOEXEC. 0 or -errno. */
must_check int ap__image_keeper_pair(int *inside, int *outside);
/* Starts the keeper, which takes @inside. 0; or -errno, and nothing is shared. */
must_check int ap__image_keeper_start(int inside);

#endif
