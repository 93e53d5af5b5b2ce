/* Taking over an attr from a caller: its size rules [SIZE] and what can be judged without a PMU [ATTR]. */
#include "core/core-priv.h"

#include <string.h>

/* What we know; newer callers may pass more as long as it is zero [SIZE-11]. */
#define ATTR_KNOWN PE_ATTR_SIZE_VER8

#define SAMPLE_KNOWN (BIT(25) - 1)
#define READ_KNOWN   (BIT(5) - 1)
#define BRANCH_KNOWN (BIT(20) - 1)

#define BRANCH_PRIVILEGES \
	(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)

/* The general registers, without ds, es, fs and gs, which 64-bit tasks do not have; XMM from 32 on. */
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
		return core_refuse(core, -EFAULT, "the attr is at an address that cannot be read");
	memcpy(&size, bytes + offsetof(struct pe_attr, size), sizeof(size));
	if (!size)
		size = PE_ATTR_SIZE_VER0;
	if (size < PE_ATTR_SIZE_VER0 || size > core->page_size) {
		*store = ATTR_KNOWN;
		return core_refuse(
			core, -E2BIG,
			"attr.size is %u, it must be 0 or from %d to %u; the size known here, "
			"%d, was stored into it",
			size, PE_ATTR_SIZE_VER0, core->page_size, ATTR_KNOWN);
	}
	/* As the kernel does it: a newer tail is looked at before the known part is copied. */
	for (size_t i = ATTR_KNOWN; i < size; i++) {
		if (i >= len)
			return core_refuse(core, -EFAULT,
					   "attr.size is %u, but only %zu bytes can be read", size,
					   len);
		if (bytes[i]) {
			*store = ATTR_KNOWN;
			return core_refuse(
				core, -E2BIG,
				"attr byte %zu is set, which is newer than the %d bytes known "
				"here; that size was stored into attr.size",
				i, ATTR_KNOWN);
		}
	}
	if (len < min_u64(size, ATTR_KNOWN))
		return core_refuse(core, -EFAULT, "attr.size is %u, but only %zu bytes can be read",
				   size, len);
	memcpy(attr, bytes, min_u64(size, ATTR_KNOWN));
	attr->size = size;
	return 0;
}

static int attr_reserved(struct core *core, const struct pe_attr *attr)
{
	if (attr->reserved_1)
		return core_refuse(core, -EINVAL,
				   "attr has a flag bit of 38 or above, none is known");
	if (attr->reserved_2)
		return core_refuse(core, -EINVAL,
				   "attr.__reserved_2 (bytes 110 and 111) must be 0");
	if (attr->reserved_3 & ~AUX_ACTION_KNOWN)
		return core_refuse(
			core, -EINVAL,
			"attr.aux_action (bytes 116 to 119) has bits %#x, only 0 to 2 are known",
			attr->reserved_3 & ~AUX_ACTION_KNOWN);
	if (attr->sample_type & ~SAMPLE_KNOWN)
		return core_refuse(core, -EINVAL,
				   "attr.sample_type has bits %#llx, only bits 0 to 24 are known",
				   (unsigned long long)(attr->sample_type & ~SAMPLE_KNOWN));
	if (attr->read_format & ~READ_KNOWN)
		return core_refuse(core, -EINVAL,
				   "attr.read_format has bits %#llx, only bits 0 to 4 are known",
				   (unsigned long long)(attr->read_format & ~READ_KNOWN));
	return 0;
}

static int attr_branches(struct core *core, struct task *task, struct pe_attr *attr)
{
	u64 mask = attr->branch_sample_type;

	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 0;
	if (mask & ~BRANCH_KNOWN)
		return core_refuse(core, -EINVAL,
				   "attr.branch_sample_type has bits %#llx, only 0 to 19 are known",
				   (unsigned long long)(mask & ~BRANCH_KNOWN));
	if (!(mask & ~BRANCH_PRIVILEGES))
		return core_refuse(core, -EINVAL,
				   "attr.branch_sample_type names no kind of branch; set at least "
				   "PERF_SAMPLE_BRANCH_ANY");
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
		return perm_kernel(
			core, task,
			"attr.branch_sample_type (or an exclude bit left 0) asks for branches "
			"of the kernel or hypervisor");
	return 0;
}

static int attr_regs(struct core *core, u64 mask, const char *which)
{
	if (!mask)
		return core_refuse(core, -EINVAL,
				   "attr.%s is 0, but its registers are to be sampled", which);
	if (mask & ~core->arch->regs_valid)
		return core_refuse(
			core, -EINVAL,
			"attr.%s has bits %#llx, which are no registers of this processor", which,
			(unsigned long long)(mask & ~core->arch->regs_valid));
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
			return core_refuse(core, -ENOSYS,
					   "user stacks cannot be dumped on this architecture");
		if (attr->sample_stack_user >= 65535 || attr->sample_stack_user % 8)
			return core_refuse(
				core, -EINVAL,
				"attr.sample_stack_user is %u, it must be a multiple of 8 below "
				"65535",
				attr->sample_stack_user);
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
		return core_refuse(
			core, -EINVAL,
			"attr.sample_type has WEIGHT and WEIGHT_STRUCT, which share a place; "
			"choose one");
	return 0;
}

static int attr_pairs(struct core *core, const struct pe_attr *attr)
{
	if (attr->inherit_thread && !attr->inherit)
		return core_refuse(core, -EINVAL, "attr.inherit_thread needs attr.inherit");
	if (attr->remove_on_exec && attr->enable_on_exec)
		return core_refuse(
			core, -EINVAL,
			"attr.remove_on_exec and attr.enable_on_exec exclude each other");
	if (attr->sigtrap && !attr->remove_on_exec)
		return core_refuse(
			core, -EINVAL,
			"attr.sigtrap needs attr.remove_on_exec, so that no other program gets "
			"the signals");
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
