#include "session/host-cpu.h"

#include <cpuid.h>
#include <string.h>

void session_cpuid(char vendor[13], u32 *eax)
{
	u32 a, b, c, d;

	__cpuid(0, a, b, c, d);
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	vendor[12] = 0;
	__cpuid(1, *eax, b, c, d);
}

void session_relax(void)
{
	__builtin_ia32_pause();
}
