/*
 * A program that runs natively is out of our hands, so the filters that we have evaluated for it
 * are given to the kernel right before its execve. From then on they judge us too, and nobody can
 * take them back: what could fail is found out before.
 */
#include "rt/arch/x86_64/rt-arch.h"
#include "rt/sandbox/bpf.h"
#include "rt/sandbox/seccomp.h"

#include <linux/prctl.h>

/* The one below @depth others. */
static struct seccomp_filter *filter_at(struct seccomp_filter *f, u32 depth)
{
	while (depth--)
		f = f->older;
	return f;
}

static u32 filters(const struct seccomp_filter *f)
{
	u32 n = 0;

	for (; f; f = f->older)
		n++;
	return n;
}

/*
 * What the kernel makes of @f, in instructions of its own, is no more: a classic one becomes five
 * at most (a division by X), a jump three, a return two. Three go before them, and four are
 * charged.
 */
static u32 kernel_length(const struct seccomp_filter *f)
{
	u32 n = 3 + 4;

	for (u32 i = 0; i < f->len; i++)
		switch (BPF_CLASS(f->code[i].code)) {
		case BPF_ALU: n += 5; break;
		case BPF_JMP: n += 3; break;
		case BPF_RET: n += 2; break;
		default: n++;
		}
	return n;
}

/* The call that installs @f, as the program made it: older filters have let that through. */
static void call_for(const struct seccomp_filter *f, const struct sock_fprog *prog,
		     struct seccomp_data *d)
{
	*d = (struct seccomp_data){.arch = ARCH_AUDIT};
	if (f->by_prctl) {
		d->nr = __NR_prctl;
		d->args[0] = PR_SET_SECCOMP;
		d->args[1] = SECCOMP_MODE_FILTER;
	} else {
		d->nr = __NR_seccomp;
		d->args[0] = SECCOMP_SET_MODE_FILTER;
		d->args[1] = f->log ? SECCOMP_FILTER_FLAG_LOG : 0;
	}
	d->args[2] = (u64)prog;
}

const char *seccomp_native_obstacle(struct thread *t)
{
	u32 length = 0;

	if (!t->filters)
		return NULL;
	if (!seccomp_may_install())
		return "it may not install filters any more";
	for (const struct seccomp_filter *f = t->filters; f; f = f->older) {
		struct seccomp_data d;

		length += kernel_length(f);
		if (length > FILTERS_MOST_INSNS)
			return "they are too long together";
		if (f->notifies)
			return "a supervisor listens to one";
		call_for(f, NULL, &d);
		switch (seccomp_verdict(f->older, &d, NULL) & SECCOMP_RET_ACTION_FULL) {
		case SECCOMP_RET_ALLOW:
		case SECCOMP_RET_LOG: break;
		default: return "one forbids that the next is installed";
		}
	}
	return NULL;
}

bool seccomp_go_native(struct thread *t)
{
	for (u32 left = filters(t->filters); left--;) {
		struct seccomp_filter *f = filter_at(t->filters, left);
		struct sock_fprog prog = {(u16)f->len, f->code};
		struct seccomp_data d;

		call_for(f, &prog, &d);
		if (raw_call3(d.nr, (long)d.args[0], (long)d.args[1], (long)d.args[2]))
			return false;
	}
	return true;
}
