#include "rt/sandbox/seccomp.h"

#include "rt/load/images.h"
#include "rt/load/told.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/region.h"
#include "rt/sandbox/bpf.h"
#include "rt/signal/signal.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "rt/task/process.h"
#include "rt/task/shared-mm.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <linux/capability.h>
#include <linux/prctl.h>

void seccomp_get(struct seccomp_filter *f)
{
	if (f)
		__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}

void seccomp_put(struct seccomp_filter *f)
{
	while (f && !__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL)) {
		struct seccomp_filter *older = f->older;

		region_unmap(f, f->mapped);
		f = older;
	}
}

/*
 * A filter for @len instructions, which the caller fills in, above @older, whose count it takes
 * over.
 */
static struct seccomp_filter *filter_new(u32 len, struct seccomp_filter *older)
{
	u64 size = sizeof(struct seccomp_filter) + len * sizeof(struct sock_filter);
	struct seccomp_filter *f = region_map(size);

	if (!f)
		return NULL;
	f->refs = 1;
	f->len = len;
	f->mapped = size;
	f->older = older;
	return f;
}

/* A filter that a sibling has put on everybody (TSYNC) is taken over at the next call. */
static void adopt_shared(struct thread *t)
{
	struct proc *p = t->proc;

	struct seccomp_filter *f;

	lock_acquire(&p->lock, t->id, NULL);
	/* Unless what this thread has is built on it already. */
	for (f = t->filters; f && f != p->filters;)
		f = f->older;
	if (!f && p->filters) {
		seccomp_get(p->filters);
		seccomp_put(t->filters);
		t->filters = p->filters;
		t->seccomp_mode = SECCOMP_MODE_FILTER;
	}
	lock_release(&p->lock, t->id);
}

/* Which verdict wins among filters: the smallest action, as a signed number. */
static bool outranks(u32 a, u32 b)
{
	return (s32)(a & SECCOMP_RET_ACTION_FULL) < (s32)(b & SECCOMP_RET_ACTION_FULL);
}

u32 seccomp_verdict(const struct seccomp_filter *f, const struct seccomp_data *d,
		    const struct seccomp_filter **whose)
{
	const struct seccomp_filter *found = NULL;
	u32 verdict = SECCOMP_RET_ALLOW;

	for (; f; f = f->older) {
		u32 v = bpf_run(f->code, f->len, d);

		if (outranks(v, verdict)) {
			verdict = v;
			found = f;
		}
	}
	if (whose)
		*whose = found;
	return verdict;
}

static void raise_sigsys(struct thread *t, const struct seccomp_data *d, u32 ret_data)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSYS;
	info.si_code = SYS_SECCOMP;
	info.si_errno = (int)ret_data;
	info.si_call_addr = (void *)regs_pc(&t->dbt.regs);
	info.si_syscall = d->nr;
	info.si_arch = d->arch;
	signal_raise(t, &info, (struct cpu_fault){0});
}

/*
 * Installs a filter with a listener. The kernel gets a filter of ours, which reports calls to the
 * listener that come from one address (guest_call_notified) and lets all others pass. So the kernel
 * itself serves the supervisor, and makes the call if the supervisor says so. Calls that our
 * functions have to make cannot be made that way; no supervisor is asked about them.
 */
static long install_listener(u64 flags)
{
	const u64 end = (u64)guest_call_notified_end;
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (u32)end, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (u32)(end >> 32), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {ARRAY_SIZE(code), (struct sock_filter *)code};

	return raw_call3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, (long)flags, (long)&prog);
}

/* Whether the kernel may make the call, if a supervisor tells it to. */
static bool kernel_may_make(u64 nr)
{
	u32 steps = syscall_row(nr)->steps;

	return !(steps & SYSCALL_GUEST) || steps & SYSCALL_NOTIFY;
}

static long ask_supervisor(struct thread *t, const struct seccomp_filter *f,
			   const struct seccomp_data *d)
{
	u64 args[7] = {(u32)d->nr, d->args[0], d->args[1], d->args[2],
		       d->args[3], d->args[4], d->args[5]};
	struct sys_guest_ret r;

	/* Nobody listens: that is what the kernel answers then. */
	if (!f || !f->notifies || d->arch != ARCH_AUDIT || !kernel_may_make((u32)d->nr))
		return -ENOSYS;
	r = guest_call_notified(args, &t->pending_count);
	return r.redo ? CALL_REDO : r.val;
}

/* Dies of SIGSYS, or SIGKILL for the strict mode, whatever the dispositions are. */
static void kill_guest(struct thread *t, const struct seccomp_data *d, u32 ret_data, bool process)
{
	if (process) {
		lock_acquire(&t->sighand->lock, t->id, thread_gone);
		memset(&t->sighand->act[SIGSYS], 0, sizeof(t->sighand->act[SIGSYS]));
		lock_release(&t->sighand->lock, t->id);
		t->sigmask &= ~SIG(SIGSYS);
		raise_sigsys(t, d, ret_data);
		return;
	}
	signal_block_all();
	t->pending_count = 0;
	thread_end(t, SIGSYS, SIGSYS);
}

bool seccomp_judge(struct thread *t, const struct seccomp_data *d, bool strict)
{
	const struct seccomp_filter *whose;
	u32 verdict;

	if (t->proc->filters != t->filters)
		adopt_shared(t);
	if (t->seccomp_mode == SECCOMP_MODE_STRICT) {
		if (strict)
			return true;
		/* SIGKILL to this thread; strict programs have one. */
		sys_tgkill(sys_getpid(), sys_gettid(), SIGKILL);
		return false;
	}
	verdict = seccomp_verdict(t->filters, d, &whose);
	switch (verdict & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG: return true;
	case SECCOMP_RET_ERRNO: {
		u32 err = verdict & SECCOMP_RET_DATA;

		regs_set_result(&t->dbt.regs, -(long)(err > 4095 ? 4095 : err));
		return false;
	}
	case SECCOMP_RET_TRAP:
		/* As the kernel leaves it: the call's number is where its result would be. */
		raise_sigsys(t, d, verdict & SECCOMP_RET_DATA);
		return false;
	case SECCOMP_RET_USER_NOTIF: syscall_finish(t, ask_supervisor(t, whose, d)); return false;
	case SECCOMP_RET_TRACE:
		/* Nobody listens: that is what the kernel answers then. */
		regs_set_result(&t->dbt.regs, -ENOSYS);
		return false;
	case SECCOMP_RET_KILL_THREAD:
		kill_guest(t, d, verdict & SECCOMP_RET_DATA,
			   __atomic_load_n(&t->proc->refs, __ATOMIC_ACQUIRE) == 1);
		return false;
	default: kill_guest(t, d, verdict & SECCOMP_RET_DATA, true); return false;
	}
}

bool seccomp_allows(struct thread *t, u64 nr)
{
	struct seccomp_data data = {
		.nr = (int)nr,
		.arch = ARCH_AUDIT,
		.instruction_pointer = regs_pc(&t->dbt.regs),
	};

	for (u32 i = 0; i < ARRAY_SIZE(data.args); i++)
		data.args[i] = guest_arg(t, i);
	return seccomp_judge(t, &data,
			     nr == __NR_read || nr == __NR_write || nr == __NR_exit ||
				     nr == __NR_rt_sigreturn);
}

static u32 total_insns(const struct seccomp_filter *f)
{
	u32 n = 0;

	/* The kernel charges each filter four more. */
	for (; f; f = f->older)
		n += f->len + 4;
	return n;
}

bool seccomp_may_install(void)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};

	if (sys_prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return true;
	return !raw_call2(__NR_capget, (long)&head, (long)caps) &&
	       caps[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

static long install_filter(struct thread *t, u64 flags, u64 prog_at, bool by_prctl)
{
	struct {
		u16 len;
		u64 code;
	} prog;
	struct seccomp_filter *f;
	long ret;

	if (flags & ~(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG |
		      SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_NEW_LISTENER |
		      SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV))
		return -EINVAL;
	if (guest_read(&prog, prog_at, sizeof(prog)))
		return -EFAULT;
	if (!prog.len || prog.len > BPF_MAXINSNS)
		return -EINVAL;
	if (!seccomp_may_install())
		return -EACCES;
	f = filter_new(prog.len, NULL);
	if (!f)
		return -ENOMEM;
	ret = -EFAULT;
	if (guest_read(f->code, prog.code, prog.len * sizeof(struct sock_filter)))
		goto out;
	ret = bpf_check(f->code, prog.len);
	if (ret)
		goto out;
	ret = -EINVAL;
	if (t->seccomp_mode == SECCOMP_MODE_STRICT)
		goto out;
	ret = -ENOMEM;
	if (total_insns(t->filters) + prog.len > FILTERS_MOST_INSNS)
		goto out;
	ret = 0;
	if (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) {
		ret = install_listener(flags & ~(u64)SECCOMP_FILTER_FLAG_LOG);
		if (sys_failed(ret))
			goto out;
		f->notifies = true;
	}
	f->older = t->filters;
	f->log = flags & SECCOMP_FILTER_FLAG_LOG;
	f->by_prctl = by_prctl;
	t->filters = f;
	t->seccomp_mode = SECCOMP_MODE_FILTER;
	images_leave(t);
	if (flags & SECCOMP_FILTER_FLAG_TSYNC) {
		lock_acquire(&t->proc->lock, t->id, NULL);
		seccomp_get(f);
		seccomp_put(t->proc->filters);
		__atomic_store_n(&t->proc->filters, f, __ATOMIC_RELEASE);
		lock_release(&t->proc->lock, t->id);
	}
	return ret;
out:
	seccomp_put(f);
	return ret;
}

static long set_strict(struct thread *t)
{
	if (t->seccomp_mode == SECCOMP_MODE_FILTER)
		return -EINVAL;
	t->seccomp_mode = SECCOMP_MODE_STRICT;
	images_leave(t);
	return 0;
}

long guest_seccomp(struct thread *t)
{
	u64 flags = guest_arg(t, 1), at = guest_arg(t, 2);

	switch ((u32)guest_arg(t, 0)) {
	case SECCOMP_SET_MODE_STRICT: return flags || at ? -EINVAL : set_strict(t);
	case SECCOMP_SET_MODE_FILTER: return install_filter(t, flags, at, false);
	case SECCOMP_GET_ACTION_AVAIL:
		if (flags)
			return -EINVAL;
		return call_kernel(t);
	}
	return call_kernel(t);
}

long seccomp_prctl(struct thread *t)
{
	if ((int)guest_arg(t, 0) == PR_GET_SECCOMP) {
		if (t->seccomp_mode == SECCOMP_MODE_DISABLED)
			return call_kernel(t);
		return t->seccomp_mode;
	}
	switch (guest_arg(t, 1)) {
	case SECCOMP_MODE_STRICT: return set_strict(t);
	case SECCOMP_MODE_FILTER: return install_filter(t, 0, guest_arg(t, 2), true);
	}
	return -EINVAL;
}

/* Each has at least the four instructions' worth that the kernel charges for it. */
_Static_assert(CONTROL_FILTERS >= FILTERS_MOST_INSNS * sizeof(struct sock_filter), "room for all");

size_t seccomp_save(struct thread *t, void *buf, size_t size)
{
	u8 *at = buf;
	size_t n = 0;

	for (struct seccomp_filter *f = t->filters; f; f = f->older) {
		size_t len = f->len * sizeof(struct sock_filter);
		u32 head;

		CHECK(n + sizeof(u32) + len <= size);
		head = f->len | (f->notifies ? TOLD_NOTIFIES : 0) | (f->by_prctl ? TOLD_PRCTL : 0) |
		       (f->log ? TOLD_LOG : 0);
		memcpy(at + n, &head, sizeof(u32));
		memcpy(at + n + sizeof(u32), f->code, len);
		n += sizeof(u32) + len;
	}
	return n;
}

int seccomp_load(struct thread *t, const void *buf, size_t len)
{
	struct seccomp_filter *last = NULL;
	struct told_filter told;
	size_t at = 0;
	int ret;

	while ((ret = told_filter(buf, len, &at, &told)) > 0) {
		struct seccomp_filter *f = filter_new(told.insns, NULL);

		if (!f)
			return -ENOMEM;
		memcpy(f->code, told.code, told.insns * sizeof(struct sock_filter));
		if (bpf_check(f->code, f->len))
			return -EINVAL;
		f->notifies = told.flags & TOLD_NOTIFIES;
		f->by_prctl = told.flags & TOLD_PRCTL;
		f->log = told.flags & TOLD_LOG;
		if (last)
			last->older = f;
		else
			t->filters = f;
		last = f;
	}
	return ret;
}
