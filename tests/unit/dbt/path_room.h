/* PURPOSE: for tests of what happens when the numbers of paths, or their descriptions, are full. */
#ifndef UNIT_DBT_PATH_ROOM_H
#define UNIT_DBT_PATH_ROOM_H

#include "base/types.h"

struct path_room {
	u32 paths, log; /* used so far, as the cache has it */
};

/* Sets what is used, as far as it is not 0; returns what was. */
struct path_room path_room_set(u32 paths, u32 log);

#endif
