/* Which descriptors are perf events: a cache over the truth, which is the session's. */
#include "rt/perf/perf-guest.h"

#include "rt/mm/region.h"
#include "rt/perf/perf-priv.h"
#include "sys/string.h"

/* There at once: faults of ours would be counted as the program's. */
void *perf_memory(u64 len)
{
	void *at = region_map(len);

	if (at)
		sys_madvise(at, ALIGN_UP(len, 4096), MADV_POPULATE_WRITE);
	return at;
}

/* What *@at leads to; of @len bytes, which several threads may be about to make, if it is @make. */
static void *made(void **at, u64 len, bool make)
{
	void *now = __atomic_load_n(at, __ATOMIC_ACQUIRE), *none = NULL;

	if (now || !make)
		return now;
	now = perf_memory(len);
	if (now && !__atomic_compare_exchange_n(at, &none, now, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
		region_unmap(now, len);
		now = none;
	}
	return now;
}

struct perf_fd *perf_fd_page(const struct perf *p, u32 page)
{
	struct perf_fd *const *fds = __atomic_load_n(&p->fds, __ATOMIC_ACQUIRE);

	return fds ? __atomic_load_n(&fds[page], __ATOMIC_ACQUIRE) : NULL;
}

struct perf_fd *perf_fd_slot(struct perf *p, int fd, bool make)
{
	u32 page = (u32)fd / PERF_FDS_PAGE;
	struct perf_fd **fds, *entries;

	if (fd < 0 || page >= PERF_FDS_PAGES)
		return NULL;
	fds = made((void **)&p->fds, PERF_FDS_PAGES * sizeof(*fds), make);
	if (!fds)
		return NULL;
	entries = made((void **)&fds[page], PERF_FDS_PAGE * sizeof(*entries), make);
	return entries ? &entries[(u32)fd % PERF_FDS_PAGE] : NULL;
}

void perf_fd_set(struct thread *t, int fd, const struct perf_fd *entry)
{
	struct perf *p = t->proc->perf;
	struct perf_fd *e = perf_fd_slot(p, fd, entry->kind != PERF_FD_NONE);
	bool closed;

	if (!e || e == entry)
		return;
	closed = e->kind == PERF_FD_EVENT;
	if ((e->kind != PERF_FD_NONE) != (entry->kind != PERF_FD_NONE))
		__atomic_fetch_add(&p->nr_fds, entry->kind != PERF_FD_NONE ? 1 : -1u,
				   __ATOMIC_RELAXED);
	e->handle = entry->handle;
	e->snapshot = entry->snapshot;
	e->owner = entry->owner;
	__atomic_store_n(&e->kind, entry->kind, __ATOMIC_RELEASE);
	if (closed)
		perf_locks_end(t, !__atomic_load_n(&p->nr_fds, __ATOMIC_RELAXED));
}

/* What the session says about a descriptor that came from elsewhere. */
static void look_up(struct thread *t, int fd, struct perf_fd *e)
{
	struct perf_fd found = {.kind = PERF_FD_NONE};
	struct wire_slot *sl = wire_begin(t);

	if (sl) {
		long ret = wire_send_fd(t, sl, fd) ? -1 : wire_call(t, sl, WIRE_OP_LOOKUP);

		if (ret >= 0) {
			found.kind = ret ? PERF_FD_SYSCTL : PERF_FD_EVENT;
			found.handle = ret ? t->perf_reply.result.setting.setting
					   : t->perf_reply.result.event.handle;
			found.snapshot = ret ? 0 : (u16)t->perf_reply.result.event.snapshot;
		}
		wire_end(t, sl);
	}
	perf_fd_set(t, fd, &found);
	(void)e;
}

struct perf_fd *perf_fd_known(struct thread *t, int fd)
{
	struct perf_fd *e = perf_fd_slot(t->proc->perf, fd, false);

	if (!e || e->kind == PERF_FD_NONE)
		return NULL;
	if (e->kind == PERF_FD_MAYBE)
		look_up(t, fd, e);
	return e->kind == PERF_FD_NONE ? NULL : e;
}

/* NULL: not a perf event. */
struct perf_fd *perf_fd_find(struct thread *t, int fd)
{
	struct perf_fd *e = perf_fd_known(t, fd);

	return e && e->kind == PERF_FD_EVENT ? e : NULL;
}

/* @from was copied to @to, whatever that was. */
void perf_fd_copied(struct thread *t, int from, int to)
{
	static const struct perf_fd none;
	struct perf_fd *e = perf_fd_slot(t->proc->perf, from, false);

	perf_fd_set(t, to, e ? e : &none);
}

void perf_fd_closed(struct thread *t, int fd)
{
	static const struct perf_fd none;

	perf_fd_set(t, fd, &none);
}

void perf_fd_closed_range(struct thread *t, u32 first, u32 last)
{
	struct perf *p = t->proc->perf;

	for (u32 page = first / PERF_FDS_PAGE; page < PERF_FDS_PAGES && p->nr_fds; page++) {
		if (!perf_fd_page(p, page))
			continue;
		for (u32 i = 0; i < PERF_FDS_PAGE; i++) {
			u32 fd = page * PERF_FDS_PAGE + i;

			if (fd >= first && fd <= last)
				perf_fd_closed(t, (int)fd);
		}
	}
}

/* Descriptors received: pipes among them may be perf events. */
void perf_fd_received(struct thread *t, int fd)
{
	const struct perf_fd maybe = {.kind = PERF_FD_MAYBE};

	perf_fd_set(t, fd, &maybe);
}

/* The last word: the highest number, if that is beyond the bits. */
void perf_save_fds(struct thread *t, u64 *fds)
{
	struct perf *p = t->proc->perf;

	memset(fds, 0, PERF_FDS_SAVED * sizeof(*fds));
	if (!p || !p->nr_fds)
		return;
	for (u32 i = 0; i < PERF_FDS_PAGES; i++) {
		const struct perf_fd *entries = perf_fd_page(p, i);

		for (u32 j = 0; entries && j < PERF_FDS_PAGE; j++) {
			u32 fd = i * PERF_FDS_PAGE + j;

			if (entries[j].kind == PERF_FD_NONE)
				continue;
			if (fd < (PERF_FDS_SAVED - 1) * 64)
				fds[fd / 64] |= BIT(fd % 64);
			else
				fds[PERF_FDS_SAVED - 1] = fd;
		}
	}
}

/*
 * Those that were close-on-exec are closed; whether the others still are what they were is asked.
 */
void perf_restore_fds(struct thread *t, const u64 *fds)
{
	const u32 bits = (PERF_FDS_SAVED - 1) * 64;
	u64 high = min_u64(fds[PERF_FDS_SAVED - 1], PERF_FDS_PAGES * PERF_FDS_PAGE - 1);

	for (u32 fd = 0; fd < bits; fd++)
		if (fds[fd / 64] & BIT(fd % 64) && !sys_failed(sys_fcntl((int)fd, F_GETFD, 0)))
			perf_fd_received(t, (int)fd);
	for (u32 fd = bits; fd <= high; fd++)
		if (!sys_failed(sys_fcntl((int)fd, F_GETFD, 0)))
			perf_fd_received(t, (int)fd);
}
