#include "lib/count/pmc.h"

bool ap__pmc_usable(void)
{
	return true;
}

/* A system register is named in the instruction itself, hence one instruction per counter. */
#define READ_EVCNTR(n, reg) \
	case n: __asm__ volatile("mrs %0, " reg : "=r"(v)); break;

u64 ap__pmc_read(u32 index)
{
	u64 v = 0;

	/* The cycle counter is shown as 32 (counter 31 + 1) [ARM-14]. */
	if (index == 32) {
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(v));
		return v;
	}
	switch (index - 1) {
		READ_EVCNTR(0, "pmevcntr0_el0")
		READ_EVCNTR(1, "pmevcntr1_el0")
		READ_EVCNTR(2, "pmevcntr2_el0")
		READ_EVCNTR(3, "pmevcntr3_el0")
		READ_EVCNTR(4, "pmevcntr4_el0")
		READ_EVCNTR(5, "pmevcntr5_el0")
		READ_EVCNTR(6, "pmevcntr6_el0")
		READ_EVCNTR(7, "pmevcntr7_el0")
		READ_EVCNTR(8, "pmevcntr8_el0")
		READ_EVCNTR(9, "pmevcntr9_el0")
		READ_EVCNTR(10, "pmevcntr10_el0")
		READ_EVCNTR(11, "pmevcntr11_el0")
		READ_EVCNTR(12, "pmevcntr12_el0")
		READ_EVCNTR(13, "pmevcntr13_el0")
		READ_EVCNTR(14, "pmevcntr14_el0")
		READ_EVCNTR(15, "pmevcntr15_el0")
		READ_EVCNTR(16, "pmevcntr16_el0")
		READ_EVCNTR(17, "pmevcntr17_el0")
		READ_EVCNTR(18, "pmevcntr18_el0")
		READ_EVCNTR(19, "pmevcntr19_el0")
		READ_EVCNTR(20, "pmevcntr20_el0")
		READ_EVCNTR(21, "pmevcntr21_el0")
		READ_EVCNTR(22, "pmevcntr22_el0")
		READ_EVCNTR(23, "pmevcntr23_el0")
		READ_EVCNTR(24, "pmevcntr24_el0")
		READ_EVCNTR(25, "pmevcntr25_el0")
		READ_EVCNTR(26, "pmevcntr26_el0")
		READ_EVCNTR(27, "pmevcntr27_el0")
		READ_EVCNTR(28, "pmevcntr28_el0")
		READ_EVCNTR(29, "pmevcntr29_el0")
		READ_EVCNTR(30, "pmevcntr30_el0")
	}
	return v;
}

u64 ap__pmc_clock(void)
{
	u64 v;

	/* The kernel's clock counts the virtual counter; isb keeps it from being read early. */
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(v) : : "memory");
	return v;
}
