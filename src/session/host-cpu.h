/* PURPOSE: what the session needs of the CPU: src/session/arch/<cpu>/host-cpu.c. Locking: none. */
#ifndef SESSION_HOST_CPU_H
#define SESSION_HOST_CPU_H

#include "base/types.h"

/* CPUID's vendor, ended by a 0, and leaf 1's EAX; an empty name and 0 on a CPU that has none. */
void session_cpuid(char vendor[13], u32 *eax);

/* For the body of a loop that waits for memory to change. */
void session_relax(void);

#endif
