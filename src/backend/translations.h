/*
 * PURPOSE: the folder in which runtimes keep what they have translated (rt/load/images.c) for later
 * runs of the same user. Files that have not been used for longest go when there is too much.
 */
#ifndef BACKEND_TRANSLATIONS_H
#define BACKEND_TRANSLATIONS_H

#include <stddef.h>

#include "base/types.h"

#define TRANSLATIONS_MOST (512ull << 20) /* bytes that stay */

/*
 * Opens $XDG_CACHE_HOME/anyperf/translations, or that of ~/.cache, and makes it if there is none;
 * *@seed: where its user's programs have their files. A descriptor, or -errno with a sentence in
 * @why: there is no place, or it is not this user's alone.
 */
must_check int ap__translations_open(u64 *seed, char *why, size_t len);

/* Removes what was used least lately, until no more than @most bytes stay. */
void ap__translations_trim(int dir, u64 most);

struct translations_kept {
	char path[1024]; /* "": there is no place for it */
	u64 bytes;
	size_t files;
};

/*
 * What the folder has, without making it: a descriptor of it, or -errno. -ENOENT: there is none;
 * -EPERM: others may have a say in it.
 */
must_check int ap__translations_find(struct translations_kept *kept);
/* Removes all of it, *@kept; 0, or -errno as above. */
must_check int ap__translations_clear(struct translations_kept *kept);

#endif
