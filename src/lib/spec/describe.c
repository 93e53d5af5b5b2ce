/* From an attr back to a description. */
#include "lib/spec/spec-priv.h"

#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/spec/names.h"

static bool pmu_name(struct ap_machine *m, u32 type, char *buf, size_t len)
{
	char **names;
	long long t;
	bool found = false;
	int n = m ? ap__names(m, &names, AP__DEVICES) : -1;

	for (int i = 0; i < n && !found; i++) {
		found = ap__slurp_number(m, &t, AP__DEVICES "/%s/type", names[i]) == 0 &&
			t == (long long)type;
		if (found)
			snprintf(buf, len, "%s", names[i]);
	}
	if (n >= 0)
		ap__names_free(names);
	return found;
}

static void modifiers(const struct pe_attr *a, char *buf)
{
	if (a->exclude_user | a->exclude_kernel | a->exclude_hv) {
		if (!a->exclude_user)
			*buf++ = 'u';
		if (!a->exclude_kernel)
			*buf++ = 'k';
		if (!a->exclude_hv)
			*buf++ = 'h';
	}
	for (u64 i = 0; i < a->precise_ip; i++)
		*buf++ = 'p';
	if (a->exclude_host && !a->exclude_guest)
		*buf++ = 'G';
	if (a->pinned)
		*buf++ = 'D';
	if (a->exclusive)
		*buf++ = 'e';
	*buf = '\0';
}

/* PMU/config=...,config1=.../ */
static void pmu_terms(const struct pe_attr *a, const char *pmu, char *buf, size_t len)
{
	/* A probe's config1 is a pointer, which says nothing outside this process. */
	bool probe = strcmp(pmu, "kprobe") == 0 || strcmp(pmu, "uprobe") == 0;
	u64 more[] = {probe ? 0 : a->config1, a->config2, a->config3, a->config4};
	size_t have;

	snprintf(buf, len, "%s/config=%#llx", pmu, (unsigned long long)a->config);
	for (unsigned int i = 0; i < ARRAY_SIZE(more); i++) {
		have = strlen(buf);
		if (more[i])
			snprintf(buf + have, len - have, ",config%u=%#llx", i + 1,
				 (unsigned long long)more[i]);
	}
	have = strlen(buf);
	snprintf(buf + have, len - have, "/");
}

/* Whether @a is something that mem: can say. */
static bool is_breakpoint(const struct pe_attr *a)
{
	return a->bp_type >= HW_BREAKPOINT_R && a->bp_type <= HW_BREAKPOINT_X && a->bp_len &&
	       a->bp_len <= 8 && !(a->bp_len & (a->bp_len - 1));
}

char *ap_attr_describe(const struct perf_event_attr *attr, struct ap_machine *m, char *buf,
		       size_t len)
{
	char name[224] = "", mods[16], pmu[64], cache[64];
	const struct ap__corepmu *core;
	const struct ap__generic *g;
	struct pe_attr a = {0};
	u32 size = attr->size ? attr->size : PE_ATTR_SIZE_VER0;
	bool slash = false;
	u64 config;

	memcpy(&a, attr, size < sizeof(a) ? size : sizeof(a));
	config = a.config;
	modifiers(&a, mods);
	if (a.type == PERF_TYPE_HARDWARE || a.type == PERF_TYPE_HW_CACHE) {
		/* The upper half names the PMU on hybrid machines. */
		g = ap__generic_of(a.type, config & UINT32_MAX);
		if (g)
			snprintf(name, sizeof(name), "%s", g->alias[0] ? g->alias : g->name);
		else if (a.type == PERF_TYPE_HW_CACHE &&
			 ap__cache_name(config & UINT32_MAX, cache, sizeof(cache)))
			snprintf(name, sizeof(name), "%s", cache);
		if (name[0] && config >> 32 && pmu_name(m, (u32)(config >> 32), pmu, sizeof(pmu))) {
			snprintf(buf, len, "%s/%s/%s", pmu, name, mods);
			return buf;
		}
	} else if (a.type == PERF_TYPE_SOFTWARE) {
		g = ap__generic_of(a.type, config);
		if (g)
			snprintf(name, sizeof(name), "%s", g->name);
	} else if (a.type == PERF_TYPE_RAW && !(m && ap__core_pmus(m, &core) > 1)) {
		snprintf(name, sizeof(name), "r%llx", (unsigned long long)config);
	} else if (a.type == PERF_TYPE_BREAKPOINT && is_breakpoint(&a)) {
		snprintf(name, sizeof(name), "mem:%#llx/%llu:%s%s%s", (unsigned long long)a.bp_addr,
			 (unsigned long long)a.bp_len, a.bp_type & 1 ? "r" : "",
			 a.bp_type & 2 ? "w" : "", a.bp_type & 4 ? "x" : "");
	} else if (a.type != PERF_TYPE_TRACEPOINT && pmu_name(m, a.type, pmu, sizeof(pmu))) {
		pmu_terms(&a, pmu, name, sizeof(name));
		slash = true;
	}
	if (!name[0])
		snprintf(name, sizeof(name), "%u:%#llx", a.type, (unsigned long long)config);
	snprintf(buf, len, "%s%s%s", name, mods[0] && !slash ? ":" : "", mods);
	return buf;
}
