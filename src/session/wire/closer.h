/*
 * PURPOSE: closing descriptors that a guest has sent, of a kind that is not known. To close one may
 * take as long as the guest likes: a socket that lingers, a file of a file system that the guest
 * itself plays (FUSE). So a thread does it that does nothing else, one for each guest that sends
 * such a thing; what it waits for is that guest's alone.
 *
 * Lifetime: the thread begins with the first descriptor, and ends by itself after closer_end(),
 * when the last has been closed. Locking: one thread calls.
 */
#ifndef SESSION_WIRE_CLOSER_H
#define SESSION_WIRE_CLOSER_H

#include "base/types.h"

struct closer;

/*
 * Takes @fd. *@closer is made if it is NULL. False: so many are being closed for this guest that it
 * is better not listened to; @fd is taken all the same.
 */
bool closer_close(struct closer **closer, int fd);
/* NULL is fine. */
void closer_end(struct closer *closer);

#endif
