/*
 * Taking over an attr from a caller: its size rules [SIZE] and what can be judged without a PMU
 * [ATTR].
 */
#include "core/core-priv.h"

#include <string.h>

/* What we know; newer callers may pass more as long as it is zero [SIZE-11]. */
#define ATTR_KNOWN PE_ATTR_SIZE_VER8

#define SAMPLE_KNOWN (BIT(25) - 1)
#define READ_KNOWN   (BIT(5) - 1)
#define BRANCH_KNOWN (BIT(20) - 1)

#define BRANCH_PRIVILEGES \
	(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)

/*
 * The general registers, without ds, es, fs and gs, which 64-bit tasks do not have; XMM from 32 on.
 */
const struct core_arch core_arch_x86_64 = {
	.regs_valid = 0xffffffff00000000ull | (0xffffffull & ~(0xfull << 12)),
	.regs_extended = 0xffffffff00000000ull,
	.stack_dump = true,
};

/* x0 to x30, sp and pc. */
const struct core_arch core_arch_arm64 = {
	.regs_valid = BIT(33) - 1,
	.stack_dump = true,
};

static int attr_fetch(struct core *core, const u8 *bytes, size_t len, struct pe_attr *attr,
		      u32 *store)
{
	u32 size;

	*store = 0;
	memset(attr, 0, sizeof(*attr));
	if (len < offsetof(struct pe_attr, size) + sizeof(size))
		return core_refuse(core, -EFAULT, ATTR_FAULT);
	memcpy(&size, bytes + offsetof(struct pe_attr, size), sizeof(size));
	if (!size)
		size = PE_ATTR_SIZE_VER0;
	if (size < PE_ATTR_SIZE_VER0 || size > core->page_size) {
		*store = ATTR_KNOWN;
		return core_refuse(
			core, -E2BIG, ATTR_SIZE,
			.number = {size, PE_ATTR_SIZE_VER0, core->page_size, ATTR_KNOWN});
	}
	/* As the kernel does it: a newer tail is looked at before the known part is copied. */
	for (size_t i = ATTR_KNOWN; i < size; i++) {
		if (i >= len)
			return core_refuse(core, -EFAULT, ATTR_SHORT, .number = {size, len});
		if (bytes[i]) {
			*store = ATTR_KNOWN;
			return core_refuse(core, -E2BIG, ATTR_NEWER, .number = {i, ATTR_KNOWN});
		}
	}
	if (len < min_u64(size, ATTR_KNOWN))
		return core_refuse(core, -EFAULT, ATTR_SHORT, .number = {size, len});
	memcpy(attr, bytes, min_u64(size, ATTR_KNOWN));
	attr->size = size;
	return 0;
}

static int attr_reserved(struct core *core, const struct pe_attr *attr)
{
	if (attr->reserved_1)
		return core_refuse(core, -EINVAL, ATTR_FLAGS);
	if (attr->reserved_2)
		return core_refuse(core, -EINVAL, ATTR_RESERVED);
	if (attr->reserved_3 & ~AUX_ACTION_KNOWN)
		return core_refuse(core, -EINVAL, ATTR_AUX_ACTION,
				   .number = {attr->reserved_3 & ~AUX_ACTION_KNOWN});
	if (attr->sample_type & ~SAMPLE_KNOWN)
		return core_refuse(core, -EINVAL, ATTR_BITS,
				   .number = {attr->sample_type & ~SAMPLE_KNOWN, 24},
				   .name = {"sample_type"});
	if (attr->read_format & ~READ_KNOWN)
		return core_refuse(core, -EINVAL, ATTR_BITS,
				   .number = {attr->read_format & ~READ_KNOWN, 4},
				   .name = {"read_format"});
	return 0;
}

static int attr_branches(struct core *core, struct task *task, struct pe_attr *attr)
{
	u64 mask = attr->branch_sample_type;

	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 0;
	if (mask & ~BRANCH_KNOWN)
		return core_refuse(core, -EINVAL, ATTR_BITS, .number = {mask & ~BRANCH_KNOWN, 19},
				   .name = {"branch_sample_type"});
	if (!(mask & ~BRANCH_PRIVILEGES))
		return core_refuse(core, -EINVAL, BRANCH_KIND);
	if (!(mask & BRANCH_PRIVILEGES)) {
		if (!attr->exclude_kernel)
			mask |= PERF_SAMPLE_BRANCH_KERNEL;
		if (!attr->exclude_user)
			mask |= PERF_SAMPLE_BRANCH_USER;
		if (!attr->exclude_hv)
			mask |= PERF_SAMPLE_BRANCH_HV;
		attr->branch_sample_type = mask;
	}
	if (mask & (PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV))
		return perm_kernel(core, task, CAUSE_PARANOID_BRANCHES);
	return 0;
}

static int attr_regs(struct core *core, u64 mask, const char *which)
{
	if (!mask)
		return core_refuse(core, -EINVAL, REGS_NONE, .name = {which});
	if (mask & ~core->arch->regs_valid)
		return core_refuse(core, -EINVAL, REGS_UNKNOWN,
				   .number = {mask & ~core->arch->regs_valid}, .name = {which});
	return 0;
}

static int attr_samples(struct core *core, struct pe_attr *attr)
{
	int err;

	if (attr->sample_type & PERF_SAMPLE_REGS_USER) {
		err = attr_regs(core, attr->sample_regs_user, "sample_regs_user");
		if (err)
			return err;
	}
	if (attr->sample_type & PERF_SAMPLE_STACK_USER) {
		if (!core->arch->stack_dump)
			return core_refuse(core, -ENOSYS, STACK_DUMP);
		if (attr->sample_stack_user >= 65535 || attr->sample_stack_user % 8)
			return core_refuse(core, -EINVAL, STACK_SIZE,
					   .number = {attr->sample_stack_user});
	}
	if (!attr->sample_max_stack)
		attr->sample_max_stack = (u16)core->sysctl.max_stack;
	if (attr->sample_type & PERF_SAMPLE_REGS_INTR) {
		err = attr_regs(core, attr->sample_regs_intr, "sample_regs_intr");
		if (err)
			return err;
	}
	if ((attr->sample_type & PERF_SAMPLE_WEIGHT) &&
	    (attr->sample_type & PERF_SAMPLE_WEIGHT_STRUCT))
		return core_refuse(core, -EINVAL, WEIGHT_TWICE);
	return 0;
}

static int attr_pairs(struct core *core, const struct pe_attr *attr)
{
	if (attr->inherit_thread && !attr->inherit)
		return core_refuse(core, -EINVAL, INHERIT_THREAD);
	if (attr->remove_on_exec && attr->enable_on_exec)
		return core_refuse(core, -EINVAL, EXEC_TWICE);
	if (attr->sigtrap && !attr->remove_on_exec)
		return core_refuse(core, -EINVAL, SIGTRAP_EXEC);
	return 0;
}

int attr_copy(struct core *core, struct task *task, const void *bytes, size_t len,
	      struct pe_attr *attr, u32 *store)
{
	int err = attr_fetch(core, bytes, len, attr, store);

	if (!err)
		err = attr_reserved(core, attr);
	if (!err)
		err = attr_branches(core, task, attr);
	if (!err)
		err = attr_samples(core, attr);
	if (!err)
		err = attr_pairs(core, attr);
	return err;
}
