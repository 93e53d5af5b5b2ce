/*
 * Which CPU guests are shown. Clients of perf_event choose their tables by CPUID's family and
 * model, and have none for a CPU that is newer than they are; so does a C library choose its
 * functions. Hence: the machine's own where libpfm4 4.13 and PAPI 7 both have tables for it, else one
 * that is like it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/host-cpu.h"
#include "session/session-priv.h"

struct model {
	const char *name;
	enum cpu_vendor vendor;
	u32 eax;         /* of CPUID leaf 1 */
	const char *pmu; /* caps/pmu_name as the kernel has it; NULL: no such file */
};

/* The first of each vendor is shown in place of a CPU that has no tables. */
static const struct model models[] = {
	{"skylake-x", CPU_VENDOR_INTEL, 0x00050654, "skylake"},
	{"haswell-x", CPU_VENDOR_INTEL, 0x000306f2, "haswell"},
	{"broadwell-x", CPU_VENDOR_INTEL, 0x000406f1, "broadwell"},
	{"icelake-x", CPU_VENDOR_INTEL, 0x000606a6, "icelake"},
	{"sapphirerapids", CPU_VENDOR_INTEL, 0x000806f8, "sapphire_rapids"},
	{"zen3", CPU_VENDOR_AMD, 0x00a00f11, NULL},
	{"zen2", CPU_VENDOR_AMD, 0x00830f10, NULL},
	{"zen4", CPU_VENDOR_AMD, 0x00a10f11, NULL},
};

/* Models of Intel's family 6 with tables and one kind of core. */
static const struct {
	u8 model;
	const char *pmu;
} intel_known[] = {
	{26, "nehalem"},          {30, "nehalem"},   {31, "nehalem"},   {46, "nehalem"},
	{37, "westmere"},         {44, "westmere"},  {47, "westmere"},  {42, "sandybridge"},
	{45, "sandybridge"},      {58, "ivybridge"}, {62, "ivybridge"}, {60, "haswell"},
	{63, "haswell"},          {69, "haswell"},   {70, "haswell"},   {61, "broadwell"},
	{71, "broadwell"},        {79, "broadwell"}, {86, "broadwell"}, {78, "skylake"},
	{94, "skylake"},          {142, "skylake"},  {158, "skylake"},  {85, "skylake"},
	{125, "icelake"},         {126, "icelake"},  {106, "icelake"},  {108, "icelake"},
	{143, "sapphire_rapids"},
};

static u32 family_of(u32 eax)
{
	u32 family = eax >> 8 & 0xf;

	return family == 15 ? family + (eax >> 20 & 0xff) : family;
}

static u32 model_of(u32 eax)
{
	return (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
}

/*
 * In a virtual machine each cpuid takes some 25 us: so no more than are needed, and once for the
 * starter and the session that it forks.
 */
static void host(struct session_model *m)
{
	static struct session_model found;
	static bool known;
	char vendor[13];

	if (!known) {
		session_cpuid(vendor, &found.cpuid);
		found.amd = !strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine");
		known = true;
	}
	*m = found;
}

/*
 * Zen 1 to 3. Of Zen 4, which has models of family 0x19 too, libpfm4 has the events, but PAPI 7 has no preset:
 * not even PAPI_TOT_INS would exist.
 */
static bool is_known_amd(u32 family, u32 model)
{
	return family == 0x17 ||
	       (family == 0x19 && (model < 0x10 || (model >= 0x20 && model < 0x60)));
}

/* Have the clients tables for it? */
static bool is_known(struct session_model *m)
{
	u32 family = family_of(m->cpuid), model = model_of(m->cpuid);

	if (m->amd)
		return is_known_amd(family, model);
	for (size_t i = 0; family == 6 && i < ARRAY_SIZE(intel_known); i++) {
		if (intel_known[i].model == model) {
			m->pmu = intel_known[i].pmu;
			return true;
		}
	}
	return false;
}

static void show(struct session_model *m, const struct model *as)
{
	m->cpuid = as->eax;
	m->pmu = as->pmu;
}

int session_model(const char *name, struct session_model *m, char *why, size_t len)
{
	enum cpu_vendor vendor;
	size_t n;

	host(m);
	vendor = m->amd ? CPU_VENDOR_AMD : CPU_VENDOR_INTEL;

	if (!name || !strcmp(name, "auto")) {
		if (is_known(m))
			return 0;
		for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
			if (models[i].vendor == vendor) {
				show(m, &models[i]);
				return 0;
			}
		}
	}
	if (!strcmp(name, "host")) {
		(void)is_known(m);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		if (strcmp(name, models[i].name) != 0)
			continue;
		if (models[i].vendor != vendor) {
			snprintf(
				why, len,
				"%s is a model of another vendor than this machine's, whose programs "
				"would use what the CPU does not have",
				name);
			return -EINVAL;
		}
		show(m, &models[i]);
		return 0;
	}
	n = (size_t)snprintf(why, len, "'%s' is no model; there are auto, host", name);
	for (size_t i = 0; i < ARRAY_SIZE(models) && n < len; i++)
		if (models[i].vendor == vendor)
			n += (size_t)snprintf(why + n, len - n, ", %s", models[i].name);
	return -EINVAL;
}
