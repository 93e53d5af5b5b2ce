/* PURPOSE: the kernel's lists of CPU numbers, "0-3,8". */
#ifndef LIB_SPEC_CPULIST_H
#define LIB_SPEC_CPULIST_H

#include "base/types.h"

/*
 * The numbers of @list in ascending order without repetition, into *@cpus (free() it). Returns how
 * many, -EINVAL if it is not a list, -ERANGE for a CPU above 1 million, -ENOMEM.
 */
int ap__cpulist_parse(const char *list, int **cpus);

/* Whether @cpu is in @list; false if that is not a list. */
bool ap__cpulist_has(const char *list, int cpu);

/* The highest number in @list, -1 if it is empty or not a list. */
int ap__cpulist_last(const char *list);

#endif
