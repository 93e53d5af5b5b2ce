/* What CPUID says: the signature, what leaf 0 and leaf 0xa are. Hexadecimal, one line. */
#include <cpuid.h>
#include <stdio.h>

int main(void)
{
	unsigned int r[3][4] = {{0}};

	__cpuid(0, r[0][0], r[0][1], r[0][2], r[0][3]);
	__cpuid(1, r[1][0], r[1][1], r[1][2], r[1][3]);
	__cpuid_count(0xa, 0, r[2][0], r[2][1], r[2][2], r[2][3]);
	printf("%x %x %x %x %x %x\n", r[1][0], r[0][0], r[0][1], r[2][0], r[2][1], r[2][3]);
	return 0;
}
