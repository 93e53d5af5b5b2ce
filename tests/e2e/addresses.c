/* Says where its parts are: image, heap, stack, libraries, vDSO and a mapping. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	char local, *heap = sbrk(0);
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("image %lu heap %lu stack %lu library %lu vdso %lu map %lu\n", (unsigned long)main,
	       (unsigned long)heap, (unsigned long)&local, (unsigned long)stdout,
	       getauxval(AT_SYSINFO_EHDR), (unsigned long)map);
	return 0;
}
