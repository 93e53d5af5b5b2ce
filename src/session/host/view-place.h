/*
 * PURPOSE: a place for the directory of files that guests see. Other users write to /tmp as well,
 * and a root session is given TMPDIR by whoever calls sudo: so only a place in which nobody else
 * can exchange a name is used, the directory is held by its descriptor, and what is removed is
 * removed by descriptors too, without following a link.
 *
 * A session that is killed leaves its directory behind. The lock on it, which goes with every
 * process, tells the next session of the user that it may be removed.
 */
#ifndef SESSION_HOST_VIEW_PLACE_H
#define SESSION_HOST_VIEW_PLACE_H

#include "session/host/view.h"

/*
 * Makes and locks an empty directory: in memory if there is a place for that, because making and
 * removing some sixty files on a disk takes longer than starting everything else. *@from: the first
 * place to try, of 0 and more, and then the one behind that which was taken. 0, or -errno with the
 * reason.
 */
int must_check view_place(struct shown *shown, u32 *from, char *why, size_t len);

/* With all that is in it. */
void view_place_remove(struct shown *shown);

#endif
