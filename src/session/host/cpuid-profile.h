/*
 * PURPOSE: which CPU guests are shown. Clients of perf_event choose their tables by CPUID's family
 * and model, and have none for a CPU that is newer than they are; so does a C library choose its
 * functions. Hence: the machine's own where libpfm4 4.13 and PAPI 7 have tables for it, else one
 * that is like it.
 *
 * The library has a copy of this under a name of its own: who starts a program as a guest shows it
 * the CPU before there is a session.
 */
#ifndef SESSION_HOST_CPUID_PROFILE_H
#define SESSION_HOST_CPUID_PROFILE_H

#include "base/types.h"

/*
 * The profile of a run that is shown a level of features, on machines of every vendor: Intel's, as
 * rt/arch/x86_64/deterministic-cpuid.c has it.
 */
#define CPUID_PROFILE_LEVEL "level"

struct cpuid_profile {
	u32 signature;   /* EAX of CPUID leaf 1 */
	bool amd;        /* the vendor: the machine's, but of CPUID_PROFILE_LEVEL */
	bool zen;        /* AMD's, with that core or a later one */
	bool zen1;       /* the first one, or Zen+ */
	const char *pmu; /* caps/pmu_name; NULL: none. Constant */
};

/*
 * The profile of that name, "host", or, for "auto" and NULL, the machine's own if perf's clients
 * have tables for it and else one that they have. 0, or -EINVAL with @why, a sentence cut to @len
 * bytes: there is none of that name, or it is of another vendor.
 */
int must_check cpuid_profile_find(const char *name, struct cpuid_profile *profile, char *why,
				  size_t len);

#endif
