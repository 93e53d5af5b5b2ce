/* Caches as CPUID tells of them: Intel SDM vol. 2, leaf 4; AMD APM vol. 3, leaf 8000001DH. */
#include <cpuid.h>

#include "lib/machine/machine-file.h"

static u32 cache_leaf(bool *amd)
{
	u32 a, b, c, d;

	*amd = false;
	if (!__get_cpuid(0, &a, &b, &c, &d))
		return 0;
	*amd = c == signature_AMD_ecx || c == 0x656e6975; /* HygonGenuine */
	if (!*amd)
		return a >= 4 ? 4 : 0;
	if (!__get_cpuid(0x80000000, &a, &b, &c, &d) || a < 0x8000001d)
		return 0;
	__cpuid(0x80000001, a, b, c, d);
	return c >> 22 & 1 ? 0x8000001d : 0; /* TopologyExtensions */
}

static const char *nearest_machine(bool amd)
{
	u32 a, b, c, d, family, model;

	if (!__get_cpuid(1, &a, &b, &c, &d))
		return "skylake-server";
	family = (a >> 8 & 15) + (a >> 20 & 0xff);
	model = (a >> 4 & 15) | (a >> 12 & 0xf0);
	if (amd) {
		if (family < 0x19)
			return "zen2";
		if (family > 0x19)
			return "zen5";
		return (model >= 0x10 && model < 0x20) || (model >= 0x60 && model < 0x80) ||
				       model >= 0xa0
			       ? "zen4"
			       : "zen3";
	}
	switch (model) {
	case 0x6a:
	case 0x6c:
	case 0x7d:
	case 0x7e:
	case 0x8c:
	case 0x8d:
	case 0xa7: return "icelake-server";
	case 0x8f:
	case 0xcf:
	case 0xad:
	case 0xae:
	case 0x97:
	case 0x9a:
	case 0xb7:
	case 0xba:
	case 0xbf:
	case 0xaa:
	case 0xac: return "sapphire-rapids";
	}
	return "skylake-server";
}

const char *ap__host_geometry(struct machine_cache cache[MACHINE_CACHES], u32 *line)
{
	bool amd;
	u32 leaf = cache_leaf(&amd);

	for (u32 i = 0; leaf && i < 8; i++) {
		u32 a, b, c, d, type, level;
		enum machine_cache_id id;

		__cpuid_count(leaf, i, a, b, c, d);
		type = a & 31;
		level = a >> 5 & 7;
		if (!type)
			break;
		if (level == 1)
			id = type == 2 ? MACHINE_L1I : MACHINE_L1D;
		else if (level == 2 || level == 3)
			id = level == 2 ? MACHINE_L2 : MACHINE_LL;
		else
			continue;
		cache[id].ways = (b >> 22) + 1;
		*line = (b & 0xfff) + 1;
		cache[id].size = (u64)cache[id].ways * ((b >> 12 & 0x3ff) + 1) * *line *
				 ((u64)c + 1);
	}
	return nearest_machine(amd);
}
