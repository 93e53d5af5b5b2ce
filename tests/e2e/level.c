/*
 * What a program can learn of the CPU: CPUID's leaves, XCR0, the auxiliary vector and the sizes of
 * caches, a line each. `xsave` instead looks at what xsave writes: no more than the area that CPUID
 * tells of, even if more state is in use (`xsave dirty`: the CPU has AVX-512).
 */
#include <cpuid.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

static void leaves(unsigned from, unsigned to)
{
	unsigned a, b, c, d;

	for (unsigned leaf = from; leaf < to; leaf++) {
		for (unsigned sub = 0; sub < 5; sub++) {
			__cpuid_count(leaf, sub, a, b, c, d);
			if (a || b || c || d)
				printf("%x.%u %x %x %x %x\n", leaf, sub, a, b, c, d);
		}
	}
}

static uint64_t xcr0(void)
{
	uint32_t a, d;

	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return (uint64_t)d << 32 | a;
}

#define ROOM 16384 /* AMX's tiles have 8 KB */

/* As much as CPUID tells of, up to the end of a mapping. */
static unsigned char *last_area(unsigned size)
{
	unsigned char *at = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(at + ROOM, 4096, PROT_NONE);
	return at + ROOM - size;
}

static int save(int dirty)
{
	static const unsigned char in[32] = "0123456789abcdef0123456789ABCDE";
	unsigned a, size, c, d;
	unsigned char *area, out[32];
	uint64_t in_use, pc;
	uint16_t status;

	__cpuid_count(13, 0, a, size, c, d);
	area = last_area(size);
	if (dirty)
		/* vpternlogd $0xff, %zmm24, %zmm24, %zmm24; kxnorw %k0, %k0, %k1 */
		__asm__ volatile(".byte 0x62, 0x03, 0x3d, 0x40, 0x25, 0xc0, 0xff\n"
				 "	.byte 0xc5, 0xfc, 0x46, 0xc8");
	__asm__ volatile("fldpi\n"
			 "	vmovups %1, %%ymm5\n"
			 "	xsave64 (%0)\n"
			 "	fstp %%st(0)\n"
			 "	vxorps %%ymm5, %%ymm5, %%ymm5\n"
			 :
			 : "r"(area), "m"(in), "a"(-1), "d"(-1)
			 : "xmm5", "memory");
	memcpy(&in_use, area + 512, sizeof(in_use));
	memcpy(&pc, area + 8, sizeof(pc));
	if (in_use & ~7ull || memcmp(area + 160 + 5 * 16, in, 16) != 0 ||
	    memcmp(area + 576 + 5 * 16, in + 16, 16) != 0)
		return printf("components %llx, or a register is wrong\n",
			      (unsigned long long)in_use),
		       2;
	/* Some CPUs leave the address out. */
	if (pc && (pc < (uintptr_t)save || pc > (uintptr_t)save + 1000))
		return printf("x87 at %llx\n", (unsigned long long)pc), 3;
	__asm__ volatile("xrstor64 (%2)\n"
			 "	vmovups %%ymm5, %0\n"
			 "	fldpi\n"
			 "	fcompp\n"
			 "	fnstsw %1\n"
			 : "=m"(out), "=m"(status)
			 : "r"(area), "a"(-1), "d"(-1)
			 : "xmm5", "memory");
	if (memcmp(out, in, sizeof(in)) != 0 || (status & 0x4500) != 0x4000)
		return puts("another state is restored"), 4;
	memset(area, 0xff, 64);
	__asm__ volatile("xsave (%0)" : : "r"(area), "a"(2), "d"(0) : "memory");
	puts(area[0] == 0xff ? "ok" : "x87 is written, too");
	return 0;
}

int main(int argc, char **argv)
{
	static const int caches[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL1_DCACHE_ASSOC,
				     _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_MINSIGSTKSZ};
	char **words = environ;
	unsigned a, b, c, d;

	if (argc > 1 && !strcmp(argv[1], "xsave"))
		return save(argc > 2);
	leaves(0, 32);
	leaves(0x40000000, 0x40000010);
	leaves(0x80000000, 0x80000020);
	__cpuid(1, a, b, c, d);
	if (c & 1u << 27)
		printf("xcr0 %llx\n", (unsigned long long)xcr0());
	/* As it is on the stack: the C library changes what it answers. */
	while (*words)
		words++;
	for (const Elf64_auxv_t *aux = (const void *)(words + 1); aux->a_type; aux++)
		if (aux->a_type == AT_HWCAP || aux->a_type == AT_HWCAP2 ||
		    aux->a_type == AT_MINSIGSTKSZ)
			printf("auxv %lu %lx\n", aux->a_type, aux->a_un.a_val);
	for (unsigned i = 0; i < sizeof(caches) / sizeof(*caches); i++)
		printf("sysconf %ld\n", sysconf(caches[i]));
	return 0;
}
