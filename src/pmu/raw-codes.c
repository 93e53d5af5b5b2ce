/*
 * From the vendors' tables, Intel's perfmon events and AMD's Processor Programming References, of
 * which perf's and libpfm4's are made. What is taken counts exactly what the translator does. Left
 * out is AMD's 0xcc of Zen 3, since AMD does not say whether its indirect branches include returns.
 */
#include "pmu/raw-codes.h"

#include <string.h>

/*
 * Names have no dashes: perf 6.1 takes a name apart there, and "returns" behind one is the event of
 * the PMU anyperf to it.
 */
/* clang-format off */
static const struct raw_code {
	u32 models;
	u64 code; /* umask << 8 | event select; a umask of 0 is "all of them" */
	enum cpu_what what;
	struct pmu_file file; /* its name in sysfs; none: it has the kernel's */
} codes[] = {
	/* INST_RETIRED.ANY_P; ANY, the fixed counter's pseudo code; PREC_DIST */
	{INTEL_ALL, 0x00c0, CPU_INSTRUCTIONS, {0}},
	{INTEL_ALL, 0x0100, CPU_INSTRUCTIONS, {0}},
	{INTEL_ALL, 0x01c0, CPU_INSTRUCTIONS, {0}},
	/* BR_INST_RETIRED.ALL_BRANCHES, ALL_BRANCHES_PEBS */
	{INTEL_ALL, 0x00c4, CPU_BRANCHES, {0}},
	{INTEL_SANDYBRIDGE, 0x04c4, CPU_BRANCHES, {0}},
	/* BR_INST_RETIRED.CONDITIONAL; then COND, and COND_TAKEN, which has its code */
	{INTEL_UNTIL, 0x01c4, CPU_CONDITIONAL,
	 {"events/conditional_retired", "event=0xc4,umask=0x1\n"}},
	{INTEL_ICELAKE, 0x11c4, CPU_CONDITIONAL,
	 {"events/conditional_retired", "event=0xc4,umask=0x11\n"}},
	{INTEL_ICELAKE, 0x01c4, CPU_TAKEN, {"events/conditional_taken", "event=0xc4,umask=0x1\n"}},
	/* BR_INST_RETIRED.NEAR_CALL, NEAR_RETURN, INDIRECT: near ones, without returns */
	{INTEL_CORE, 0x02c4, CPU_CALLS, {"events/near_calls", "event=0xc4,umask=0x2\n"}},
	{INTEL_SINCE, 0x08c4, CPU_RETURNS, {"events/near_returns", "event=0xc4,umask=0x8\n"}},
	{INTEL_ICELAKE, 0x80c4, CPU_INDIRECT, {"events/near_indirect", "event=0xc4,umask=0x80\n"}},

	/* ex_ret_instr, ex_ret_brn, ex_ret_near_ret */
	{AMD_ALL, 0x00c0, CPU_INSTRUCTIONS, {0}},
	{AMD_ALL, 0x00c2, CPU_BRANCHES, {0}},
	{AMD_ALL, 0x00c8, CPU_RETURNS, {"events/near_returns", "event=0xc8\n"}},
	/* ex_ret_cond; before Zen it counted stalls */
	{AMD_ZEN, 0x00d1, CPU_CONDITIONAL, {"events/conditional_retired", "event=0xd1\n"}},
};
/* clang-format on */

static const struct {
	const char *pmu; /* caps/pmu_name */
	u32 model;
} intel_models[] = {
	{"nehalem", INTEL_NEHALEM},
	{"westmere", INTEL_NEHALEM},
	{"sandybridge", INTEL_SANDYBRIDGE | INTEL_STORE_SAMPLE},
	{"ivybridge", INTEL_SANDYBRIDGE | INTEL_STORE_SAMPLE},
	{"haswell", INTEL_SANDYBRIDGE | INTEL_ALL_STORES},
	{"broadwell", INTEL_SANDYBRIDGE | INTEL_ALL_STORES | INTEL_FLOATS},
	{"skylake", INTEL_SANDYBRIDGE | INTEL_ALL_STORES | INTEL_FLOATS | INTEL_SKYLAKE},
	{"icelake", INTEL_ICELAKE | INTEL_ALL_STORES | INTEL_FLOATS},
	{"sapphire_rapids", INTEL_ICELAKE | INTEL_STORE_SAMPLE | INTEL_LOADS_AUX | INTEL_FLOATS},
};

u32 raw_code_model(const struct cpu_pmu_config *config)
{
	if (config->vendor == CPU_VENDOR_AMD)
		return config->is_zen1 ? AMD_ZEN | AMD_ZEN1 : config->is_zen ? AMD_ZEN : AMD;
	for (size_t i = 0; config->pmu_name && i < ARRAY_SIZE(intel_models); i++)
		if (strcmp(intel_models[i].pmu, config->pmu_name) == 0)
			return intel_models[i].model;
	return INTEL;
}

bool raw_code_find(const struct cpu_pmu_config *config, u64 code, enum cpu_what *what)
{
	u32 model = raw_code_model(config);

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if ((codes[i].models & model) && codes[i].code == code) {
			*what = codes[i].what;
			return true;
		}
	return false;
}

void raw_code_files(const struct cpu_pmu_config *config, struct pmu_file *files)
{
	u32 model = raw_code_model(config);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if ((codes[i].models & model) && codes[i].file.path)
			files[n++] = codes[i].file;
}
