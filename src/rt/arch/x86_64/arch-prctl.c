/* What arch_prctl(2) is about: GS, which the runtime has for itself, and whether cpuid faults. */
#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/syscall/syscall.h"
#include "rt/task/traces.h"

#include <asm/prctl.h>

void arch_install(struct thread *t)
{
	CHECK(!sys_arch_prctl(ARCH_SET_GS, (u64)t));
}

long guest_arch_prctl(struct thread *t)
{
	u64 addr = guest_arg(t, 1);

	switch ((int)guest_arg(t, 0)) {
	case ARCH_SET_GS:
		if (addr >= TASK_SIZE)
			return -EPERM;
		t->dbt.arch.gs_base = addr;
		t->dbt.arch.gs_selector = 0;
		return 0;
	case ARCH_GET_GS: return guest_write(t, addr, &t->dbt.arch.gs_base, sizeof(u64));
	case ARCH_GET_CPUID: return !t->arch.cpuid_faults;
	case ARCH_SET_CPUID: {
		/*
		 * Only the guest's cpuid faults; ours goes on working. The kernel knows whether the
		 * CPU can do it.
		 */
		long ret = raw_call2(__NR_arch_prctl, ARCH_SET_CPUID, 1);

		if (!ret)
			t->arch.cpuid_faults = !addr;
		return ret;
	}
	}
	return call_kernel(t);
}

void arch_segments(const struct dbt_thread *t, u64 *fs_base, u64 *gs_base)
{
	/* By which the addresses of what is handed over were made; to ask takes a system call. */
	*fs_base = t->filter.fs_base;
	if (!traces_filtered())
		sys_arch_prctl(ARCH_GET_FS, (u64)fs_base);
	*gs_base = t->arch.gs_base;
}
