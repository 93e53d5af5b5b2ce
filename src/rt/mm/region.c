#include "rt/mm/region.h"

#include "sys/kernel.h"

static u64 cursor = REGION_OWN;

u64 region_code_start, region_code_end;

bool region_first(u64 start, u64 end, u64 *ours, u64 *ours_end)
{
	bool own = start < REGION_END && end > REGION_START;
	bool code = start < region_code_end && end > region_code_start;

	if (code && (!own || region_code_start < REGION_START)) {
		*ours = region_code_start;
		*ours_end = region_code_end;
		return true;
	}
	*ours = REGION_START;
	*ours_end = REGION_END;
	return own;
}

#define PIECE 0x10000ul

void *region_map(u64 len, int prot)
{
	len = ALIGN_UP(len, PIECE);
	/* Whatever still lives is skipped with EEXIST, a second time round included. */
	for (u32 tries = 0; tries < 100000; tries++) {
		u64 at = __atomic_fetch_add(&cursor, len, __ATOMIC_RELAXED);
		long ret;

		if (at + len > REGION_END) {
			__atomic_store_n(&cursor, REGION_OWN, __ATOMIC_RELAXED);
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

void region_unmap(void *at, u64 len)
{
	sys_munmap(at, ALIGN_UP(len, PIECE));
}

extern char image_start[], image_data[], start_stack_top[];

void image_populate(void)
{
	const u64 image = (u64)image_start, data = (u64)image_data, top = (u64)start_stack_top;
	const u64 stack = 0x10000, needed = 0x4000;

	sys_madvise((void *)image, data - image, MADV_POPULATE_READ);
	sys_madvise((void *)data, top - stack - data, MADV_POPULATE_WRITE);
	sys_madvise((void *)(top - needed), needed, MADV_POPULATE_WRITE);
}
