#include "rt/mm/window.h"

#include "sys/call.h"

static u64 cursor = WINDOW_OWN;

u64 window_code_start, window_code_end;

bool window_first(u64 start, u64 end, u64 *ours, u64 *ours_end)
{
	bool window = start < WINDOW_END && end > WINDOW_START;
	bool code = start < window_code_end && end > window_code_start;

	if (code && (!window || window_code_start < WINDOW_START)) {
		*ours = window_code_start;
		*ours_end = window_code_end;
		return true;
	}
	*ours = WINDOW_START;
	*ours_end = WINDOW_END;
	return window;
}

void *window_map(u64 len, int prot)
{
	len = ALIGN_UP(len, 0x10000);
	/* Whatever still lives is skipped with EEXIST, a second time round included. */
	for (u32 tries = 0; tries < 100000; tries++) {
		u64 at = __atomic_fetch_add(&cursor, len, __ATOMIC_RELAXED);
		long ret;

		if (at + len > WINDOW_END) {
			__atomic_store_n(&cursor, WINDOW_OWN, __ATOMIC_RELAXED);
			continue;
		}
		ret = sys_mmap((void *)at, len, prot,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			       -1, 0);
		if (ret == (long)at)
			return (void *)at;
		if (ret != -EEXIST)
			return NULL;
	}
	return NULL;
}
