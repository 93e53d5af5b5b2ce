/* A CPU without a translator: the session is built, but no guest can be started. */
#include "session/host-cpu.h"

void session_cpuid(char vendor[13], u32 *eax)
{
	vendor[0] = 0;
	*eax = 0;
}

void session_relax(void)
{
}
