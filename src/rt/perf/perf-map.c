/* The user page of an event in the guest's memory, and what ends it. */
#include "rt/perf/perf-guest.h"

#include "rt/mm/mm.h"
#include "rt/perf/perf-priv.h"
#include "rt/syscall/syscall.h"
#include "sys/string.h"

/* The next one after @at that overlaps [start, start + len); NULL: none. Begins with NULL. */
static struct perf_map *next_map(const struct perf *p, struct perf_map *at, u64 start, u64 len)
{
	for (struct perf_maps *maps = p->nr_maps ? p->maps : NULL; maps; maps = maps->next) {
		u32 i = 0;

		if (at) {
			if (at < maps->map || at >= maps->map + PERF_MAPS)
				continue;
			i = (u32)(at - maps->map) + 1;
			at = NULL;
		}
		for (; i < PERF_MAPS; i++) {
			struct perf_map *m = &maps->map[i];

			if (m->len && m->start < start + len && m->start + m->len > start)
				return m;
		}
	}
	return NULL;
}

/* A free one; NULL: no memory. Under wire.lock. */
static struct perf_map *map_slot(struct perf *p)
{
	struct perf_maps *maps;

	for (maps = p->maps; maps; maps = maps->next)
		for (u32 i = 0; i < PERF_MAPS; i++)
			if (!maps->map[i].len)
				return &maps->map[i];
	maps = perf_memory(sizeof(*maps));
	if (!maps)
		return NULL;
	maps->next = p->maps;
	__atomic_store_n(&p->maps, maps, __ATOMIC_RELEASE);
	return &maps->map[0];
}

/* A fork inherits no mapping of an event. */
void perf_maps_forget(struct perf *p)
{
	for (struct perf_maps *maps = p->maps; maps; maps = maps->next)
		memset(maps->map, 0, sizeof(maps->map));
	p->nr_maps = p->nr_counters = 0;
}

static void forget(struct thread *t, u64 handle)
{
	struct wire_slot *sl = wire_begin(t);

	if (!sl)
		return;
	sl->args.event.handle = handle;
	(void)wire_call(t, sl, WIRE_OP_MUNMAP);
	wire_end(t, sl);
}

/*
 * The memory is the session's; that a fork does not inherit the mapping, that it cannot grow and is
 * in no core dump is as with the kernel's own [RING-14].
 */
static bool map_event(struct thread *t, const struct perf_fd *pf, long *ret)
{
	struct perf *p = t->proc->perf;
	/* The kernel's length is one of whole pages before anybody looks at it [RING-01]. */
	u64 len = ALIGN_UP(guest_arg(t, 1), PAGE_SIZE), was_fd = guest_arg(t, 4),
	    offset = guest_arg(t, 5), addr, mask;
	struct wire_slot *sl;
	struct perf_map *m;
	u64 handle = pf->handle;
	bool counter;
	int fd;

	if (guest_arg(t, 2) & PROT_EXEC) {
		/* Anonymous files are where nothing may be executed, which is looked at first. */
		*ret = -EPERM;
		return true;
	}
	sl = wire_begin(t);
	if (!sl) {
		*ret = -ENODEV;
		return true;
	}
	sl->args.mmap = (struct wire_mmap_args){
		.handle = handle,
		.len = len,
		.prot = guest_arg(t, 2),
		.flags = guest_arg(t, 3),
		.offset = offset,
	};
	*ret = wire_call(t, sl, WIRE_OP_MMAP);
	fd = *ret < 0 ? -1 : wire_take_fd(t, true);
	wire_end(t, sl);
	if (*ret < 0)
		return true;
	counter = *ret > 0;
	if (fd >= 0 && !wire_memory_is(fd, len)) {
		sys_close(fd);
		fd = -EPROTO;
	}
	if (fd < 0) {
		*ret = fd;
		forget(t, handle);
		return true;
	}
	regs_set_arg(&t->dbt.regs, 4, (u64)fd);
	regs_set_arg(&t->dbt.regs, 5, 0);
	*ret = guest_mmap(t);
	regs_set_arg(&t->dbt.regs, 4, was_fd);
	regs_set_arg(&t->dbt.regs, 5, offset);
	sys_close(fd);
	if (sys_failed(*ret) || *ret == CALL_REDO) {
		forget(t, handle);
		return true;
	}
	addr = (u64)*ret;
	sys_madvise((void *)addr, len, MADV_DONTFORK);
	sys_madvise((void *)addr, len, MADV_DONTDUMP);
	mask = wire_lock(t);
	m = map_slot(p);
	if (m) {
		m->start = addr;
		m->handle = handle;
		m->counter = counter;
		m->len = len;
		p->nr_maps++;
		p->nr_counters += counter;
	}
	wire_unlock(t, mask);
	return true;
}

/* What of [start, start + len) was an event's page is no longer one. */
static void unmapped(struct thread *t, u64 start, u64 len)
{
	struct perf *p = t->proc->perf;
	struct perf_map *m = NULL;

	while ((m = next_map(p, m, start, len))) {
		u64 handle, mask;
		bool gone;

		mask = wire_lock(t);
		gone = m->len != 0;
		handle = m->handle;
		m->len = 0;
		p->nr_maps -= gone;
		p->nr_counters -= gone && m->counter;
		wire_unlock(t, mask);
		if (gone)
			forget(t, handle);
	}
}

bool perf_on_mmap(struct thread *t, u64 nr, long *ret)
{
	u64 flags = guest_arg(t, 3);
	struct perf_fd *pf;

	(void)nr;
	if (flags & MAP_FIXED)
		unmapped(t, guest_arg(t, 0), guest_arg(t, 1));
	if (flags & MAP_ANONYMOUS)
		return false;
	pf = perf_fd_find(t, (int)guest_arg(t, 4));
	return pf && map_event(t, pf, ret);
}

bool perf_on_munmap(struct thread *t, u64 nr, long *ret)
{
	(void)nr, (void)ret;
	unmapped(t, guest_arg(t, 0), guest_arg(t, 1));
	return false;
}

/* A perf mapping does not grow; moved or cut it goes on [RING-14]. */
bool perf_on_mremap(struct thread *t, u64 nr, long *ret)
{
	struct perf *p = t->proc->perf;
	u64 at = guest_arg(t, 0), old = ALIGN_UP(guest_arg(t, 1), PAGE_SIZE);
	u64 len = ALIGN_UP(guest_arg(t, 2), PAGE_SIZE);
	struct perf_map *m = next_map(p, NULL, at, 1);

	if (!m)
		return false;
	if (len > old) {
		*ret = -EFAULT;
		return true;
	}
	*ret = syscall_plain(t, nr);
	if (!sys_failed(*ret) && *ret != CALL_REDO)
		m->start = (u64)*ret - (at - m->start);
	return true;
}

/* There is no file behind a perf mapping that could be written to. */
bool perf_on_msync(struct thread *t, u64 nr, long *ret)
{
	*ret = syscall_plain(t, nr);
	if (*ret == 0 && guest_arg(t, 2) & MS_SYNC &&
	    next_map(t->proc->perf, NULL, guest_arg(t, 0), guest_arg(t, 1)))
		*ret = -EINVAL;
	return true;
}

/* Anonymous files are where nothing may be executed. */
bool perf_on_mprotect(struct thread *t, u64 nr, long *ret)
{
	(void)nr;
	if (!(guest_arg(t, 2) & PROT_EXEC) ||
	    !next_map(t->proc->perf, NULL, guest_arg(t, 0), guest_arg(t, 1)))
		return false;
	*ret = -EACCES;
	return true;
}

/* Neither a fork nor a core dump gets the mapping, whatever is asked for [RING-14]. */
bool perf_on_madvise(struct thread *t, u64 nr, long *ret)
{
	int advice = (int)guest_arg(t, 2);

	(void)nr;
	if ((advice != MADV_DOFORK && advice != MADV_DODUMP) ||
	    !next_map(t->proc->perf, NULL, guest_arg(t, 0), guest_arg(t, 1)))
		return false;
	*ret = -EINVAL;
	return true;
}
