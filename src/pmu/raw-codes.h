/*
 * PURPOSE: which raw codes are what the virtual cpu PMU counts, by the vendors' tables of events
 * for each CPU model. A code means one thing on one model and another on the next, and who uses one
 * has chosen it by the CPUID that he was shown.
 */
#ifndef PMU_RAW_CODES_H
#define PMU_RAW_CODES_H

#include "pmu/drivers.h"

/* What the code @code (umask << 8 | event select) counts on the CPU of @config; false: nothing. */
bool raw_code_find(const struct cpu_pmu_config *config, u64 code, enum cpu_what *what);

#define RAW_CODE_FILES 5 /* the most that a model has */

/*
 * Puts the files of sysfs in @files that name such codes, but those of the kernel's own events.
 */
void raw_code_files(const struct cpu_pmu_config *config, struct pmu_file *files);

#endif
