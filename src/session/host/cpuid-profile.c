#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/host-cpu.h"
#include "session/host/cpuid-profile.h"

struct known_profile {
	const char *name;
	bool amd;
	u32 signature;   /* EAX of CPUID leaf 1 */
	const char *pmu; /* caps/pmu_name as the kernel has it; NULL: no such file */
};

/* The first of each vendor is shown in place of a CPU that has no tables. */
static const struct known_profile profiles[] = {
	{"skylake-x", false, 0x00050654, "skylake"},
	{"haswell-x", false, 0x000306f2, "haswell"},
	{"broadwell-x", false, 0x000406f1, "broadwell"},
	{"icelake-x", false, 0x000606a6, "icelake"},
	{"sapphirerapids", false, 0x000806f8, "sapphire_rapids"},
	{"zen3", true, 0x00a00f11, NULL},
	{"zen2", true, 0x00830f10, NULL},
	{"zen4", true, 0x00a10f11, NULL},
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
static void host(struct cpuid_profile *p)
{
	static struct cpuid_profile found;
	static bool known;
	char vendor[13];

	if (!known) {
		session_cpuid(vendor, &found.signature);
		found.amd = !strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine");
		known = true;
	}
	*p = found;
}

/*
 * Zen 1 to 3. Of Zen 4, which has models of family 0x19 too, libpfm4 has the events, but PAPI 7 has
 * no preset: not even PAPI_TOT_INS would exist.
 */
static bool is_known_amd(u32 family, u32 model)
{
	return family == 0x17 ||
	       (family == 0x19 && (model < 0x10 || (model >= 0x20 && model < 0x60)));
}

/* Have the clients tables for it? */
static bool is_known(struct cpuid_profile *p)
{
	u32 family = family_of(p->signature), model = model_of(p->signature);

	if (p->amd)
		return is_known_amd(family, model);
	for (size_t i = 0; family == 6 && i < ARRAY_SIZE(intel_known); i++) {
		if (intel_known[i].model == model) {
			p->pmu = intel_known[i].pmu;
			return true;
		}
	}
	return false;
}

static void show(struct cpuid_profile *p, const struct known_profile *as)
{
	p->signature = as->signature;
	p->pmu = as->pmu;
}

static int find(const char *name, struct cpuid_profile *p, char *why, size_t len)
{
	size_t n;

	/* Asks nothing of the machine: it is the same everywhere. */
	if (name && !strcmp(name, CPUID_PROFILE_LEVEL)) {
		p->amd = false;
		show(p, &profiles[0]);
		return 0;
	}
	host(p);

	if (!name)
		name = "auto";
	if (!strcmp(name, "auto")) {
		if (is_known(p))
			return 0;
		for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
			if (profiles[i].amd == p->amd) {
				show(p, &profiles[i]);
				return 0;
			}
		}
	}
	if (!strcmp(name, "host")) {
		(void)is_known(p);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		if (strcmp(name, profiles[i].name) != 0)
			continue;
		if (profiles[i].amd != p->amd) {
			snprintf(
				why, len,
				"%s is a model of another vendor than this machine's, whose programs "
				"would use what the CPU does not have",
				name);
			return -EINVAL;
		}
		show(p, &profiles[i]);
		return 0;
	}
	n = (size_t)snprintf(why, len, "'%s' is no model; there are auto, host", name);
	for (size_t i = 0; i < ARRAY_SIZE(profiles) && n < len; i++)
		if (profiles[i].amd == p->amd)
			n += (size_t)snprintf(why + n, len - n, ", %s", profiles[i].name);
	return -EINVAL;
}

int cpuid_profile_find(const char *name, struct cpuid_profile *p, char *why, size_t len)
{
	int err = find(name, p, why, len);

	p->zen = p->amd && family_of(p->signature) >= 0x17;
	p->zen1 = p->zen && (family_of(p->signature) == 0x18 ||
			     (family_of(p->signature) == 0x17 && model_of(p->signature) < 0x30));
	return err;
}
