#include "rt/task/limits.h"

#include "abi/control.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/other-guest.h"
#include "rt/task/process.h"
#include "rt/task/thread.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/capability.h>

/* The namespace that the machine begins with (PROC_USER_INIT_INO). */
#define FIRST_USER_NS "user:[4026531837]"

static const struct {
	int resource;
	const char *name; /* in /proc/PID/limits */
} kinds[LIMITS] = {
	[LIMIT_AS] = {RLIMIT_AS, "Max address space"},
	[LIMIT_DATA] = {RLIMIT_DATA, "Max data size"},
};

static u64 ours[LIMITS];
static bool started;

static long kernel_limit(u32 kind, const struct rlimit64 *new, struct rlimit64 *old)
{
	return raw_call4(__NR_prlimit64, 0, kinds[kind].resource, (long)new, (long)old);
}

/* As much as we may have; *@now is what it was and is. */
static void lift(u32 kind, struct rlimit64 *now)
{
	struct rlimit64 most = {RLIM64_INFINITY, RLIM64_INFINITY};

	if (now->rlim_cur == RLIM64_INFINITY)
		return;
	/* Only root may raise the hard one. */
	if (now->rlim_max == RLIM64_INFINITY || kernel_limit(kind, &most, NULL)) {
		most.rlim_cur = most.rlim_max = now->rlim_max;
		if (kernel_limit(kind, &most, NULL))
			return;
	}
	*now = most;
}

static bool tight; /* memory, as far as it can be lifted */

bool limits_are_tight(void)
{
	return tight;
}

void limits_lift(struct rlimit64 found[LIMITS])
{
	for (u32 i = 0; i < LIMITS; i++) {
		struct rlimit64 now = {RLIM64_INFINITY, RLIM64_INFINITY};

		kernel_limit(i, NULL, &now);
		found[i] = now;
		lift(i, &now);
		if (i == LIMIT_AS || i == LIMIT_DATA)
			tight |= now.rlim_max != RLIM64_INFINITY;
	}
}

/*
 * What holds of a guest's limit: one of data whose soft part is 0, as valgrind sets it, is the hard
 * one for all but the heap (may_expand_vm() of the kernel).
 */
static u64 soft_of(u32 kind, const struct rlimit64 *guest)
{
	return kind == LIMIT_DATA && !guest->rlim_cur ? guest->rlim_max : guest->rlim_cur;
}

bool limits_forbid_heap(const struct thread *t)
{
	return !t->proc->limits.of[LIMIT_DATA].guest.rlim_cur;
}

/* Tells the kernel what the guest's limit and ours make together. */
static void apply(struct guest_limit *l, u32 kind)
{
	u64 own = __atomic_load_n(&ours[kind], __ATOMIC_RELAXED);
	struct rlimit64 want = {soft_of(kind, &l->guest),
				max_u64(l->set.rlim_max, l->guest.rlim_max)};

	want.rlim_cur = want.rlim_cur < RLIM64_INFINITY - own ? want.rlim_cur + own
							      : RLIM64_INFINITY;
	if (want.rlim_cur > want.rlim_max) {
		struct rlimit64 higher = {want.rlim_cur, want.rlim_cur};

		if (!kernel_limit(kind, &higher, NULL)) {
			l->set = higher;
			return;
		}
		want.rlim_cur = want.rlim_max;
	}
	if ((want.rlim_cur != l->set.rlim_cur || want.rlim_max != l->set.rlim_max) &&
	    !kernel_limit(kind, &want, NULL))
		l->set = want;
}

static bool same(const struct rlimit64 *a, const struct rlimit64 *b)
{
	return a->rlim_cur == b->rlim_cur && a->rlim_max == b->rlim_max;
}

/* The kernel has @now: what of that it was not told by us is somebody else's wish. */
static void adopt_from(struct guest_limit *l, const struct rlimit64 *now)
{
	const struct limit_wish *wish = &l->wish;

	if (__atomic_load_n(&wish->pending, __ATOMIC_ACQUIRE) && same(now, &wish->told)) {
		l->guest = wish->guest;
		__atomic_store_n(&l->wish.pending, 0, __ATOMIC_RELAXED);
	} else {
		if (now->rlim_cur != l->set.rlim_cur)
			l->guest.rlim_cur = now->rlim_cur;
		if (now->rlim_max != l->set.rlim_max)
			l->guest.rlim_max = now->rlim_max;
		l->guest.rlim_cur = min_u64(l->guest.rlim_cur, l->guest.rlim_max);
	}
	l->set = *now;
}

static void adopt(struct guest_limit *l, u32 kind)
{
	struct rlimit64 now;

	if (!kernel_limit(kind, NULL, &now))
		adopt_from(l, &now);
}

void limits_start(struct thread *t, const struct rt_control *c, const struct rlimit64 *found)
{
	for (u32 i = 0; i < LIMITS; i++) {
		struct guest_limit *l = &t->proc->limits.of[i];

		l->guest = found[i];
		if (c->flags & CONTROL_LIMITS) {
			l->guest.rlim_cur = c->limits[i].cur;
			l->guest.rlim_max = c->limits[i].max;
		}
		l->set = found[i];
		if (found[i].rlim_cur != RLIM64_INFINITY)
			kernel_limit(i, NULL, &l->set);
		apply(l, i);
	}
	started = true;
}

void limits_save(const struct thread *t, struct rt_control *c)
{
	c->flags |= CONTROL_LIMITS;
	for (u32 i = 0; i < LIMITS; i++) {
		c->limits[i].cur = t->proc->limits.of[i].guest.rlim_cur;
		c->limits[i].max = t->proc->limits.of[i].guest.rlim_max;
	}
}

void limits_forked(struct thread *t)
{
	lock_reset(&t->proc->limits.lock);
	/* Its parent may have been about to change them. */
	for (u32 i = 0; i < LIMITS; i++)
		if (t->proc->limits.of[i].guest.rlim_cur != RLIM64_INFINITY)
			kernel_limit(i, NULL, &t->proc->limits.of[i].set);
}

/* The limits of who runs, if some are in force. */
static struct guest_limits *in_force(void)
{
	struct proc *p = started ? this_thread()->proc : NULL;
	struct guest_limits *l;

	if (!p)
		return NULL;
	l = &p->limits;
	for (u32 i = 0; i < LIMITS; i++)
		if (__atomic_load_n(&l->of[i].guest.rlim_cur, __ATOMIC_RELAXED) !=
			    RLIM64_INFINITY ||
		    __atomic_load_n(&l->of[i].wish.pending, __ATOMIC_RELAXED))
			return l;
	return NULL;
}

void limits_ours(s64 all, s64 data)
{
	struct guest_limits *l;

	__atomic_add_fetch(&ours[LIMIT_AS], (u64)all, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ours[LIMIT_DATA], (u64)data, __ATOMIC_RELAXED);
	l = in_force();
	if (likely(!l))
		return;
	lock_acquire(&l->lock, this_thread()->id, NULL);
	for (u32 i = 0; i < LIMITS; i++) {
		adopt(&l->of[i], i);
		apply(&l->of[i], i);
	}
	lock_release(&l->lock, this_thread()->id);
}

u64 limits_own(enum limit_kind kind)
{
	return __atomic_load_n(&ours[kind], __ATOMIC_RELAXED);
}

void limits_leave(s64 all, s64 data)
{
	__atomic_add_fetch(&ours[LIMIT_AS], (u64)-all, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ours[LIMIT_DATA], (u64)-data, __ATOMIC_RELAXED);
}

void limits_settle(void)
{
	struct guest_limits *l = in_force();

	for (u32 i = 0; l && i < LIMITS; i++) {
		const struct guest_limit *k = &l->of[i];
		u64 own = __atomic_load_n(&ours[i], __ATOMIC_RELAXED), soft = soft_of(i, &k->guest);

		if (soft < RLIM64_INFINITY - own && k->set.rlim_cur != soft + own) {
			limits_ours(0, 0);
			return;
		}
	}
}

bool limits_give_way(void)
{
	struct guest_limits *l = started ? &this_thread()->proc->limits : NULL;
	bool any = false;

	if (!l)
		return false;
	lock_acquire(&l->lock, this_thread()->id, NULL);
	for (u32 i = 0; i < LIMITS; i++) {
		/* It may have been set from outside since we last looked. */
		adopt(&l->of[i], i);
		any |= l->of[i].set.rlim_cur != RLIM64_INFINITY;
		lift(i, &l->of[i].set);
	}
	lock_release(&l->lock, this_thread()->id);
	return any;
}

void limits_exec_prepare(struct thread *t)
{
	struct guest_limits *l = &t->proc->limits;

	lock_acquire(&l->lock, t->id, NULL);
	for (u32 i = 0; i < LIMITS; i++) {
		adopt(&l->of[i], i);
		if (!kernel_limit(i, &l->of[i].guest, NULL))
			l->of[i].set = l->of[i].guest;
	}
	lock_release(&l->lock, t->id);
}

void limits_exec_failed(void)
{
	limits_ours(0, 0);
}

static void put_value(char *text, size_t size, u64 value)
{
	if (value == RLIM64_INFINITY)
		str_put(text, size, "unlimited");
	else
		fmt(text, size, "%lu", value);
}

/* As proc_pid_limits() of the kernel, "%-25s %-20s %-20s %-10s". */
void limits_line(const struct rlimit64 *limits, const char *line, char *text, size_t size)
{
	static const u32 columns[3] = {0, 26, 47};

	text[0] = '\0';
	for (u32 i = 0; i < LIMITS; i++) {
		char part[3][32];
		size_t n = 0;

		if (!str_starts(line, kinds[i].name))
			continue;
		str_put(part[0], sizeof(part[0]), kinds[i].name);
		put_value(part[1], sizeof(part[1]), limits[i].rlim_cur);
		put_value(part[2], sizeof(part[2]), limits[i].rlim_max);
		for (u32 k = 0; k < ARRAY_SIZE(part); k++) {
			while (n < columns[k] && n + 1 < size)
				text[n++] = ' ';
			n += (size_t)str_put(text + n, size - n, part[k]);
		}
		while (n < 68 && n + 1 < size)
			text[n++] = ' ';
		str_put(text + n, size - n, "bytes     ");
	}
}

bool limits_capable(u32 cap)
{
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	char ns[40];
	long n;

	if (raw_call2(__NR_capget, (long)&head, (long)caps) ||
	    !(caps[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap)))
		return false;
	n = sys_readlinkat(AT_FDCWD, "/proc/self/ns/user", ns, sizeof(ns) - 1);
	if (n < 0)
		return true;
	ns[n] = '\0';
	return str_eq(ns, FIRST_USER_NS);
}

/* As do_prlimit() of the kernel, for this process. */
static long exchange(struct thread *t, u32 kind, const struct rlimit64 *new, struct rlimit64 *old)
{
	struct guest_limits *all = &t->proc->limits;
	struct guest_limit *l = &all->of[kind];
	long ret = 0;

	if (new &&new->rlim_cur > new->rlim_max)
		return -EINVAL;
	lock_acquire(&all->lock, t->id, NULL);
	adopt(l, kind);
	if (new &&new->rlim_max > l->guest.rlim_max && !limits_capable(CAP_SYS_RESOURCE))
		ret = -EPERM;
	if (!ret) {
		*old = l->guest;
		if (new) {
			l->guest = *new;
			apply(l, kind);
		}
	}
	lock_release(&all->lock, t->id);
	return ret;
}

static bool is_own_thread(struct thread *t, u32 tid)
{
	bool found = false;

	for (const struct thread *o = threads_lock(t); o && !found; o = o->all_next)
		found = o->tid == tid && o->proc == t->proc;
	threads_unlock(t);
	return found;
}

/* A limit of another guest. */
struct foreign_limit {
	u32 pid;
	struct guest_limit *at; /* there */
	struct guest_limit l;   /* a copy */
	u64 own;                /* what is its runtime's */
};

/* False: @pid is no guest, or one that we may not look into. */
static bool find_foreign(u32 pid, u32 kind, struct foreign_limit *f)
{
	struct other_guest o;

	f->pid = pid;
	if (!other_guest_find(pid, &o))
		return false;
	f->at = &o.at->limits.of[kind];
	return mm_read_foreign(pid, f->at, &f->l, sizeof(f->l)) &&
	       mm_read_foreign(pid, &ours[kind], &f->own, sizeof(f->own));
}

/*
 * As exchange(), for another guest. The kernel gets what is its runtime's on top, and the runtime
 * is told beforehand what to make of that.
 */
static long exchange_foreign(struct foreign_limit *f, u32 kind, const struct rlimit64 *new,
			     struct rlimit64 *old)
{
	const int resource = kinds[kind].resource;
	struct limit_wish wish = {.pending = 1};
	struct rlimit64 now;
	long ret = raw_call4(__NR_prlimit64, f->pid, resource, 0, (long)&now);
	u64 soft;

	if (ret)
		return ret;
	adopt_from(&f->l, &now);
	*old = f->l.guest;
	if (!new)
		return 0;
	if (new->rlim_cur > new->rlim_max)
		return -EINVAL;
	if (new->rlim_max > old->rlim_max && !limits_capable(CAP_SYS_RESOURCE))
		return -EPERM;
	wish.guest = *new;
	soft = soft_of(kind, new);
	wish.told.rlim_cur = soft < RLIM64_INFINITY - f->own ? soft + f->own : RLIM64_INFINITY;
	wish.told.rlim_max = max_u64(now.rlim_max, new->rlim_max);
	if (wish.told.rlim_cur > wish.told.rlim_max && limits_capable(CAP_SYS_RESOURCE))
		wish.told.rlim_max = wish.told.rlim_cur;
	wish.told.rlim_cur = min_u64(wish.told.rlim_cur, wish.told.rlim_max);
	if (!mm_write_foreign(f->pid, &f->at->wish, &wish, sizeof(wish)))
		return raw_call4(__NR_prlimit64, f->pid, resource, (long)new, 0);
	return raw_call4(__NR_prlimit64, f->pid, resource, (long)&wish.told, 0);
}

bool limits_of(struct thread *t, u32 pid, struct rlimit64 *limits)
{
	struct foreign_limit f;

	for (u32 i = 0; i < LIMITS; i++)
		if (pid == t->proc->pid)
			limits[i] = t->proc->limits.of[i].guest;
		else if (!find_foreign(pid, i, &f) || exchange_foreign(&f, i, NULL, &limits[i]))
			return false;
	return true;
}

/* The limit that a call is about; LIMITS: one that is the kernel's alone. */
static u32 kind_of(u64 resource)
{
	u32 i = 0;

	while (i < LIMITS && kinds[i].resource != (int)resource)
		i++;
	return i;
}

long guest_getrlimit(struct thread *t)
{
	u32 kind = kind_of(guest_arg(t, 0));
	struct rlimit64 old;
	long ret;

	if (kind == LIMITS)
		return call_kernel(t);
	ret = exchange(t, kind, NULL, &old);
	return ret ? ret : guest_write(t, guest_arg(t, 1), &old, sizeof(old));
}

long guest_setrlimit(struct thread *t)
{
	u32 kind = kind_of(guest_arg(t, 0));
	struct rlimit64 new, old;

	if (kind == LIMITS)
		return call_kernel(t);
	if (guest_read(&new, guest_arg(t, 1), sizeof(new)))
		return -EFAULT;
	return exchange(t, kind, &new, &old);
}

long guest_prlimit64(struct thread *t)
{
	u32 kind = kind_of(guest_arg(t, 1)), pid = (u32)guest_arg(t, 0);
	u64 new_at = guest_arg(t, 2), old_at = guest_arg(t, 3);
	struct rlimit64 new, old;
	struct foreign_limit other;
	bool own = !pid || pid == t->proc->pid || is_own_thread(t, pid);
	long ret;

	if (kind == LIMITS || (!own && !find_foreign(pid, kind, &other)))
		return call_kernel(t);
	if (new_at && guest_read(&new, new_at, sizeof(new)))
		return -EFAULT;
	ret = own ? exchange(t, kind, new_at ? &new : NULL, &old)
		  : exchange_foreign(&other, kind, new_at ? &new : NULL, &old);
	return ret || !old_at ? ret : guest_write(t, old_at, &old, sizeof(old));
}
