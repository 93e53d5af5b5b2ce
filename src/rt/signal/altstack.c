#include "rt/signal/altstack.h"

#include "rt/arch.h"

bool altstack_on(const struct thread *t, u64 sp)
{
	/* With AUTODISARM the stack is switched off while in use, so the pointer says nothing. */
	if (t->alt_flags & SS_AUTODISARM)
		return false;
	return sp > t->alt_sp && sp - t->alt_sp <= t->alt_size;
}

u32 altstack_flags(const struct thread *t, u64 sp)
{
	if (!t->alt_size)
		return SS_DISABLE;
	return altstack_on(t, sp) ? SS_ONSTACK : 0;
}

int altstack_set(struct thread *t, const stack_t *ss, u64 sp)
{
	u32 flags = (u32)ss->ss_flags, mode = flags & ~SS_AUTODISARM;

	if (altstack_on(t, sp))
		return -EPERM;
	if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
		return -EINVAL;
	if (mode == SS_DISABLE) {
		t->alt_sp = t->alt_size = 0;
	} else {
		if (!altstack_size_valid(t, ss->ss_size))
			return -ENOMEM;
		t->alt_sp = (u64)ss->ss_sp;
		t->alt_size = ss->ss_size;
	}
	t->alt_flags = flags;
	return 0;
}
