#include "lib/count/pmc.h"

bool ap__pmc_usable(void)
{
	return true;
}

u64 ap__pmc_read(u32 index)
{
	u32 low, high;

	/* SDM volume 2, RDPMC: ECX is the counter's number, fixed ones with bit 30. */
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1));
	return low | (u64)high << 32;
}

u64 ap__pmc_clock(void)
{
	u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return low | (u64)high << 32;
}
