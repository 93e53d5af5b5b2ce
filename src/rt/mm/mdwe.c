#include "rt/mm/mdwe.h"

#include "rt/mm/mm.h"
#include "sys/uapi.h"

#include <linux/prctl.h>

/* PR_MDWE_ bits: those of the guest, and those that were set before anyperf was started. */
static u32 mdwe;
static bool of_kernel;

long mdwe_prctl(struct thread *t)
{
	u64 bits = guest_arg(t, 1);
	bool set = guest_arg(t, 0) == PR_SET_MDWE;

	/* Unknown to the kernel, or badly asked for. */
	if (raw_call5(__NR_prctl, PR_GET_MDWE, 0, 0, 0, 0) < 0 || guest_arg(t, 2) ||
	    guest_arg(t, 3) || guest_arg(t, 4) || (!set && bits))
		return -EINVAL;
	if (!set)
		return mdwe;
	if (bits & ~(u64)(PR_MDWE_REFUSE_EXEC_GAIN | PR_MDWE_NO_INHERIT) ||
	    bits == PR_MDWE_NO_INHERIT)
		return -EINVAL;
	if (mdwe && mdwe != bits)
		return -EPERM;
	mdwe = (u32)bits;
	return 0;
}

u32 mdwe_inherited(void)
{
	return mdwe & PR_MDWE_NO_INHERIT ? 0 : mdwe;
}

void mdwe_inherit(u32 bits)
{
	mdwe = bits;
}

void mdwe_begin(u32 bits)
{
	long kernel = raw_call5(__NR_prctl, PR_GET_MDWE, 0, 0, 0, 0);

	of_kernel = kernel > 0;
	mdwe = bits ? bits : of_kernel ? (u32)kernel : 0;
}

bool mdwe_of_kernel(void)
{
	return of_kernel;
}

bool mdwe_denies(u64 prot)
{
	return mdwe && prot & PROT_EXEC && prot & PROT_WRITE;
}

u64 mdwe_end(u64 start, u64 end, u64 prot)
{
	const struct mm_range *r;

	if (!mdwe)
		return end;
	if (prot & PROT_WRITE)
		return start;
	while (start < end && (r = mm_exec_find(start)) && r->start <= start)
		start = r->end;
	return min_u64(start, end);
}

long mdwe_refusal(struct thread *t, u64 prot)
{
	u64 flags = guest_arg(t, 3) & ~(u64)(MAP_FIXED | MAP_FIXED_NOREPLACE),
	    len = guest_arg(t, 1);
	long ret = raw_call6(__NR_mmap, 0, (long)len, (long)(prot & ~(u64)PROT_EXEC), (long)flags,
			     (long)guest_arg(t, 4), (long)guest_arg(t, 5));

	if (sys_failed(ret))
		return ret;
	sys_munmap((void *)ret, ALIGN_UP(len, PAGE_SIZE));
	return -EACCES;
}
