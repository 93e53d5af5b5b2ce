/* Opening on kernels of all ages [SIZE-01..13]. */
#include "lib/count/event-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

static const struct droppable {
	unsigned int bit;
	bool whole_machine; /* remember: no open of this machine will differ */
	const char *what;
	u64 read_format, bits, open_flags; /* what it is made of, in the attr and the call */
} droppable[] = {
	{AP__MISSING_LOST, true, "PERF_FORMAT_LOST (Linux 6.0)", .read_format = PE_FORMAT_LOST},
	{AP__MISSING_BUILD_ID, true, "build_id (Linux 5.12)", .bits = BIT(34)},
	{AP__MISSING_CGROUP, true, "cgroup records (Linux 5.7)", .bits = BIT(32)},
	{AP__MISSING_KSYMBOL, true, "ksymbol and bpf_event records (Linux 5.0)",
	 .bits = BIT(29) | BIT(30)},
	{AP__MISSING_NAMESPACES, true, "namespaces records (Linux 4.11)", .bits = BIT(28)},
	{AP__MISSING_MMAP2, true, "mmap2 and comm_exec (Linux 3.16)", .bits = BIT(23) | BIT(24)},
	{AP__MISSING_CLOEXEC, true, "PERF_FLAG_FD_CLOEXEC (Linux 3.14)",
	 .open_flags = PERF_FLAG_FD_CLOEXEC},
	/* Often only one PMU cannot exclude guests: msr, power, many uncore ones. */
	{AP__MISSING_GUEST, false, "exclude_guest", .bits = BIT(20)},
};

unsigned int ap__drop(struct pe_attr *attr, u64 *flags, unsigned int missing)
{
	unsigned int made = 0;

	for (size_t i = 0; i < ARRAY_SIZE(droppable); i++) {
		const struct droppable *d = &droppable[i];

		if (!(missing & d->bit))
			continue;
		/* With exclude_host, guests are not a detail but the point. */
		if (d->bit == AP__MISSING_GUEST && attr->exclude_host)
			continue;
		if ((attr->read_format & d->read_format) || (attr->flags & d->bits) ||
		    (*flags & d->open_flags))
			made |= d->bit;
		attr->read_format &= ~d->read_format;
		attr->flags &= ~d->bits;
		*flags &= ~d->open_flags;
	}
	return made;
}

/*
 * Bytes of @attr up to the last that is not zero, rounded up to a size that some kernel published.
 */
static u32 needed_size(const struct pe_attr *attr, u32 size)
{
	static const u32 sizes[] = {PE_ATTR_SIZE_VER0, PE_ATTR_SIZE_VER1, PE_ATTR_SIZE_VER2,
				    PE_ATTR_SIZE_VER3, PE_ATTR_SIZE_VER4, PE_ATTR_SIZE_VER5,
				    PE_ATTR_SIZE_VER6, PE_ATTR_SIZE_VER7, PE_ATTR_SIZE_VER8,
				    PE_ATTR_SIZE_VER9};
	const u8 *bytes = (const u8 *)attr;

	while (size > PE_ATTR_SIZE_VER0 && !bytes[size - 1])
		size--;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i] >= size)
			return sizes[i];
	return size; /* fields newer than this library, passed on as they are */
}

int ap__nofile_raise(struct ap_machine *m, unsigned long more)
{
	struct rlimit rl;
	rlim_t was;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= rl.rlim_max)
		return -EMFILE;
	was = rl.rlim_cur;
	if (rl.rlim_max == RLIM_INFINITY || rl.rlim_max - was > more)
		rl.rlim_cur = was + more;
	else
		rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl))
		return -EMFILE;
	ap__log(m, AP_LOG_INFO, "raised the soft limit of open files from %llu to %llu",
		(unsigned long long)was, (unsigned long long)rl.rlim_cur);
	return 0;
}

static int try_open(struct ap_machine *m, struct pe_attr *attr, pid_t pid, int cpu, int leader,
		    u64 flags, u32 *known_size)
{
	u32 size = attr->size;
	int fd;

	for (;;) {
		fd = m->ops->open(m->be, attr, pid, cpu, leader, flags);
		if (fd == -EMFILE && ap__nofile_raise(m, 1024) == 0)
			continue;
		break;
	}
	ap__log(m, AP_LOG_DEBUG,
		"perf_event_open type %u config %#llx size %u read_format %#llx bits %#llx pid %d cpu %d "
		"group %d flags %#llx: %s%d",
		attr->type, (unsigned long long)attr->config, size,
		(unsigned long long)attr->read_format, (unsigned long long)attr->flags, (int)pid,
		cpu, leader, (unsigned long long)flags, fd < 0 ? "error " : "", fd < 0 ? -fd : fd);
	if (fd == -E2BIG) {
		*known_size = attr->size;
		attr->size = size;
	}
	if (fd >= 0 && !(flags & PERF_FLAG_FD_CLOEXEC) && m->ops == &ap__backend_kernel)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static bool may_drop(int e)
{
	return e == -EINVAL || e == -EOPNOTSUPP || e == -EPERM;
}

/* One open under way, and what of it is left when some fields are dropped. */
struct attempt {
	struct ap_machine *m;
	const struct pe_attr *attr; /* as asked for */
	pid_t pid;
	int cpu, leader;
	u64 flags;
};

/* Opens with the fields @dropped left out. @out is the attr as accepted. */
static int open_without(const struct attempt *t, unsigned int dropped, struct pe_attr *out)
{
	u64 flags = t->flags;
	u32 ignored;

	*out = *t->attr;
	ap__drop(out, &flags, dropped);
	return try_open(t->m, out, t->pid, t->cpu, t->leader, flags, &ignored);
}

/*
 * Which of @all must go for the open to succeed: one, if one is enough; else as few as a trial of
 * each can find. Returns the handle with *@dropped and @out, or -EINVAL.
 */
static int open_with_less(const struct attempt *t, unsigned int all, unsigned int *dropped,
			  struct pe_attr *out)
{
	struct pe_attr less;
	int fd, again;

	for (size_t i = 0; i < ARRAY_SIZE(droppable); i++) {
		*dropped = droppable[i].bit;
		if ((all & *dropped) && (fd = open_without(t, *dropped, out)) >= 0)
			return fd;
	}
	*dropped = all;
	if (!(all & (all - 1)) || (fd = open_without(t, all, out)) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(droppable); i++) {
		unsigned int fewer = *dropped & ~droppable[i].bit;

		if (fewer == *dropped || (again = open_without(t, fewer, &less)) < 0)
			continue;
		t->m->ops->close(t->m->be, fd);
		fd = again;
		*dropped = fewer;
		*out = less;
	}
	return fd;
}

int ap__open_compat(struct ap_machine *m, struct pe_attr *attr, pid_t pid, int cpu, int leader,
		    u64 flags, u32 *known_size)
{
	unsigned int missing = atomic_load_explicit(&m->missing, memory_order_relaxed);
	unsigned int all = 0, dropped;
	struct attempt t = {.m = m, .attr = attr, .pid = pid, .cpu = cpu, .leader = leader};
	struct pe_attr scratch, accepted;
	int fd, again;

	*known_size = 0;
	attr->size = needed_size(attr, attr->size);
	ap__drop(attr, &flags, missing);
	t.flags = flags;
	fd = try_open(m, attr, pid, cpu, leader, flags, known_size);
	if (fd >= 0 || !may_drop(fd) || attr->size > sizeof(*attr))
		return fd;
	for (size_t i = 0; i < ARRAY_SIZE(droppable); i++)
		if (fd == -EINVAL || !droppable[i].whole_machine)
			all |= droppable[i].bit;
	scratch = *attr;
	all = ap__drop(&scratch, &flags, all);
	if (!all)
		return fd;
	again = open_with_less(&t, all, &dropped, &accepted);
	if (again < 0)
		return fd;
	for (size_t k = 0; k < ARRAY_SIZE(droppable); k++) {
		if (!(dropped & droppable[k].bit))
			continue;
		if (droppable[k].whole_machine)
			atomic_fetch_or_explicit(&m->missing, droppable[k].bit,
						 memory_order_relaxed);
		ap__log(m, AP_LOG_INFO, "left out what the kernel or the PMU refuses: %s",
			droppable[k].what);
	}
	*attr = accepted;
	return again;
}
