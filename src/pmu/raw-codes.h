/*
 * PURPOSE: which raw codes are what the virtual cpu PMU counts, by the vendors' tables of events
 * for each CPU model. A code means one thing on one model and another on the next, and who uses one
 * has chosen it by the CPUID that he was shown. raw-codes.c has what the translator counts,
 * modeled-codes.c what a model of a machine does.
 */
#ifndef PMU_RAW_CODES_H
#define PMU_RAW_CODES_H

#include "pmu/cpu-sums.h"
#include "pmu/drivers.h"

/* Models with one table, as far as it matters here. */
enum raw_code_model {
	INTEL = 1,             /* any other: Atoms number their branches otherwise */
	INTEL_NEHALEM = 2,     /* and Westmere */
	INTEL_SANDYBRIDGE = 4, /* to Skylake and those derived from it */
	INTEL_ICELAKE = 8,     /* and later */
	AMD = 16,
	AMD_ZEN = 32,
	/* Beside one of these: */
	INTEL_FLOATS = 64,        /* Broadwell and later: FP_ARITH_INST_RETIRED */
	AMD_ZEN1 = 128,           /* what is listed for it comes before Zen's */
	INTEL_STORE_SAMPLE = 256, /* MEM_TRANS_RETIRED has one for stores */
	INTEL_ALL_STORES = 1024,  /* else perf takes MEM_INST_RETIRED.ALL_STORES */
	INTEL_LOADS_AUX = 512,    /* loads with latencies need mem-loads-aux beside them */
	INTEL_SKYLAKE = 2048,     /* and those derived from it */

	INTEL_CORE = INTEL_NEHALEM | INTEL_SANDYBRIDGE | INTEL_ICELAKE,
	INTEL_ALL = INTEL | INTEL_CORE,
	INTEL_SINCE = INTEL_SANDYBRIDGE | INTEL_ICELAKE, /* Sandy Bridge */
	INTEL_UNTIL = INTEL_NEHALEM | INTEL_SANDYBRIDGE, /* Skylake */
	AMD_ALL = AMD | AMD_ZEN,
};

/* One of them, and what is beside it. */
u32 raw_code_model(const struct cpu_pmu_config *config);

/*
 * What @code (bits 16 to 19 of AMD's event select << 16 | umask << 8 | event select) counts on the
 * CPU of @config; false: nothing.
 */
bool raw_code_find(const struct cpu_pmu_config *config, u64 code, enum cpu_what *what);

#define RAW_CODE_FILES 5 /* the most that a model has */

/*
 * Puts the files of sysfs in @files that name such codes, but those of the kernel's own events.
 */
void raw_code_files(const struct cpu_pmu_config *config, struct pmu_file *files);

/*
 * What the code counts with a model of a machine, and it is none of the above; false: nothing. And
 * the files of the kernel's own events of these.
 */
bool modeled_code_find(const struct cpu_pmu_config *config, u64 code, struct cpu_sum *sum);
/* Whether the code is MEM_TRANS_RETIRED.LOAD_LATENCY, which has a latency in config1. */
bool loads_code(const struct cpu_pmu_config *config, u64 code);
/* Whether such loads need a LOADS_AUX in their group. */
bool loads_need_aux(const struct cpu_pmu_config *config);
#define LOADS_AUX          0x8203u
#define MODELED_CODE_FILES 9 /* the most that a model has */
void modeled_code_files(const struct cpu_pmu_config *config, struct pmu_file *files);

#endif
