#include "unit/dbt/path_room.h"

#include "dbt/run-priv.h"

struct path_room path_room_set(u32 paths, u32 log)
{
	struct path_room was = {cache.nr_paths, cache.path_log};

	if (paths)
		cache.nr_paths = paths;
	if (log)
		cache.path_log = log;
	return was;
}
