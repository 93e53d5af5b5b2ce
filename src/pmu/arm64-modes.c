/* What arm64's exclude bits and thresholds mean: two pure functions. */
#include "pmu/arm64.h"

struct arm64_modes arm64_modes(const struct pe_attr *attr, const struct arm64_env *env)
{
	bool vhe = env->vhe && !env->guest;
	bool switched = attr->exclude_host != attr->exclude_guest;
	struct arm64_modes m = {0};

	/* EL0 is user space on both sides; which side it is the hardware does not know. */
	m.el0 = !attr->exclude_user && !attr->exclude_host;
	m.guest_el0 = !attr->exclude_user && !attr->exclude_guest;
	/* A guest's kernel is at EL1; so is the host's without VHE. */
	m.guest_el1 = !attr->exclude_kernel && !attr->exclude_guest;
	m.el1 = !vhe && !attr->exclude_kernel && !attr->exclude_host;
	if (env->guest)
		m.el2 = false;
	else if (vhe)
		/* The host kernel is the hypervisor: exclude_hv has nothing left to say. */
		m.el2 = !attr->exclude_kernel && !attr->exclude_host;
	else
		m.el2 = !attr->exclude_hv && !attr->exclude_host;

	m.el0_switched = vhe && switched && !attr->exclude_user;
	m.event_switched = !vhe && switched;
	m.blackout = !vhe && !env->guest && !attr->exclude_hv && !attr->exclude_host;
	return m;
}

u32 arm64_threshold_step(const struct arm64_threshold *threshold, u32 n)
{
	bool met = false;

	if (!threshold->value)
		return n;
	switch (threshold->compare) {
	case ARM64_NOT_EQUAL: met = n != threshold->value; break;
	case ARM64_EQUAL: met = n == threshold->value; break;
	case ARM64_AT_LEAST: met = n >= threshold->value; break;
	case ARM64_LESS: met = n < threshold->value; break;
	}
	if (!met)
		return 0;
	return threshold->count ? 1 : n;
}
