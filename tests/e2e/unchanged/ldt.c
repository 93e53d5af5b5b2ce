/* A segment of the program's own in its local descriptor table, which GS then names. */
#include "say.h"

#include <asm/ldt.h>
#include <sys/mman.h>
#include <sys/syscall.h>

int main(void)
{
	struct user_desc desc = {.entry_number = 3,
				 .base_addr = 0x10000,
				 .limit = 0xfffff,
				 .seg_32bit = 1,
				 .limit_in_pages = 1,
				 .useable = 1};
	unsigned int *low = mmap((void *)0x10000, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unsigned long r;

	if (low == MAP_FAILED || syscall(SYS_modify_ldt, 1, &desc, sizeof(desc)))
		return 1;
	low[5] = 0x55667788;
	__asm__ volatile("mov %1, %%gs\n\tmovl %%gs:20, %k0" : "=r"(r) : "a"(3 << 3 | 7));
	SAY("through the LDT %lx", r);
	return 0;
}
