/* More code than there is room to describe (PATH_LOG, abi/path-profile.h), and what comes then. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS 65536u
#define BLOCK  256u /* bytes, and instructions, of each */

static volatile int sink;

__attribute__((noinline)) static void late(void)
{
	for (int i = 0; i < 100000; i++)
		sink += i;
}

int main(void)
{
	unsigned char *code = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return 1;
	memset(code, 0x90, BLOCKS * BLOCK);
	for (unsigned i = 0; i < BLOCKS; i++)
		code[i * BLOCK + BLOCK - 1] = 0xc3;
	if (mprotect(code, BLOCKS * BLOCK, PROT_READ | PROT_EXEC))
		return 1;
	for (unsigned i = 0; i < BLOCKS; i++)
		((void (*)(void))(code + i * BLOCK))();
	late();
	return 0;
}
