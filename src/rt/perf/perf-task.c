/*
 * What a runtime tells the session of its tasks: only what a thread's meter says that somebody
 * wants to know (enum wire_watch), and that before it happens.
 */
#include "rt/perf/perf-guest.h"

#include "abi/trace.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-priv.h"
#include "rt/sample/sample.h"
#include "rt/syscall/fd.h"
#include "rt/task/meter-page.h"
#include "rt/task/process.h"
#include "sys/string.h"

#include <linux/sched.h>

/* A program and its interpreter have one or two each. */
#define CODE_RANGES 16u

static u32 watched(struct thread *t)
{
	return __atomic_load_n(&dbt_meter(&t->dbt)->watch, __ATOMIC_RELAXED) | sample_watch(t);
}

void perf_named(struct thread *t)
{
	struct wire_slot *sl = t->proc->perf && watched(t) & WIRE_WATCH_RECORDS ? wire_begin(t)
										: NULL;

	if (!sl)
		return;
	(void)wire_call(t, sl, WIRE_OP_NAMED);
	wire_end(t, sl);
}

void perf_namespaces(struct thread *t)
{
	struct wire_slot *sl = t->proc->perf && watched(t) & WIRE_WATCH_NAMESPACES ? wire_begin(t)
										   : NULL;

	if (!sl)
		return;
	(void)wire_call(t, sl, WIRE_OP_NAMESPACES);
	wire_end(t, sl);
}

static void mapped(struct thread *t, const struct wire_mapped_args *args)
{
	u32 what = args->prot & PROT_EXEC ? WIRE_WATCH_RECORDS : WIRE_WATCH_DATA;
	struct wire_slot *sl = t->proc->perf && watched(t) & what ? wire_begin(t) : NULL;

	if (!sl)
		return;
	sl->args.mapped = *args;
	(void)wire_call(t, sl, WIRE_OP_MAPPED);
	wire_end(t, sl);
}

void perf_mapped(struct thread *t, u64 addr, u64 len, u32 prot)
{
	mapped(t, &(struct wire_mapped_args){.addr = addr, .len = len, .prot = prot});
}

/* What the program that just began consists of. */
static void tell_code(struct thread *t)
{
	struct mm_range code[CODE_RANGES];
	const struct mm_range *r;
	u64 at = 0;
	u32 n = 0;

	if (!(watched(t) & WIRE_WATCH_RECORDS))
		return;
	mm_lock(t);
	while (n < CODE_RANGES && (r = mm_exec_find(at))) {
		code[n++] = *r;
		at = r->end;
	}
	mm_unlock(t);
	for (u32 i = 0; i < n; i++)
		mapped(t, &(struct wire_mapped_args){.addr = code[i].start,
						     .len = code[i].end - code[i].start,
						     .prot = code[i].prot,
						     .begun = 1});
}

static void put_name(struct wire_slot *sl, const char *name)
{
	size_t len = str_len(name) + 1;

	if (len > WIRE_DATA - sl->len)
		return;
	memcpy(sl->data + sl->len, name, len);
	sl->len += (u32)len;
}

void perf_stops(struct thread *t, bool on, const char *name, const char *interp)
{
	struct wire_slot *sl = t->proc->perf ? wire_begin(t) : NULL;

	if (!sl)
		return;
	sl->args.stops.on = on;
	if (name) {
		put_name(sl, name);
		put_name(sl, interp);
	}
	(void)wire_call(t, sl, WIRE_OP_STOPS);
	wire_end(t, sl);
}

bool perf_trace(struct thread *t, void *at)
{
	struct wire_slot *sl = t->proc->perf ? wire_begin(t) : NULL;
	bool mapped;

	if (!sl)
		return false;
	mapped = !wire_call(t, sl, WIRE_OP_TRACE) &&
		 wire_map_fd(t, at, TRACE_SIZE, trace_offset(t->meter));
	wire_end(t, sl);
	return mapped;
}

void perf_start(struct thread *t, const u64 *fds, u32 watch, bool launch)
{
	const struct wire_view *view =
		(const struct wire_view *)((const u8 *)counter_segment() + WIRE_VIEW_IN);
	struct perf *p;

	if (fd_get(FD_SESSION) < 0)
		return;
	p = perf_memory(sizeof(*p));
	if (!p)
		return;
	p->view = view;
	wire_init(&p->wire);
	t->proc->perf = p;
	t->sampling.watch = watch;
	if (launch ? view->flags & WIRE_VIEW_LAUNCH : watched(t) & WIRE_WATCH_EXEC)
		wire_hello_exec(t);
	perf_restore_fds(t, fds);
	tell_code(t);
}

u32 perf_exec(struct thread *t, u64 *fds)
{
	u32 watch = t->proc->perf ? threads_watch(t) & WIRE_WATCH_EXEC : 0;

	if (watch)
		__atomic_fetch_or(&dbt_meter(&t->dbt)->watch, watch, __ATOMIC_RELAXED);
	perf_save_fds(t, fds);
	return watch | sample_watch(t);
}

int perf_fork(struct thread *t, u64 flags, u32 meter, struct perf_fork *f)
{
	struct wire_slot *sl;
	long ret;

	f->token = 0;
	f->sock = -1;
	f->faults = t->proc->perf && watched(t) & WIRE_WATCH_FAULTS;
	if (!t->proc->perf)
		return 0;
	/* An exec by a thread that nobody watches ends those that are. */
	if (!(watched(t) & WIRE_WATCH_TASKS))
		return 0;
	/* A task without a meter is in no count, and said to be lost. */
	if (meter >= SEGMENT_SLOTS)
		return 0;
	sl = wire_begin(t);
	if (!sl)
		return 0; /* the session is gone, and with it everybody who wanted to know */
	sl->args.fork = (struct wire_fork_args){.clone_flags = flags, .meter = meter};
	ret = wire_call(t, sl, WIRE_OP_FORK);
	if (ret > 0) {
		f->token = (u32)ret;
		if (!(flags & CLONE_THREAD))
			f->sock = wire_take_fd(t, true);
		/* The lowest number is for what the kernel makes. */
		if (f->sock >= 0 && flags & CLONE_PIDFD)
			f->sock = fd_move_high(f->sock);
	}
	wire_end(t, sl);
	return ret == -ENODEV || ret > 0 ? 0 : (int)ret;
}

void perf_made(struct thread *t, u64 flags, struct perf_fork *f, long ret)
{
	struct wire_slot *sl;

	/* With CLONE_FILES the child's is ours. */
	if (f->sock >= 0 && (sys_failed(ret) || !(flags & CLONE_FILES)))
		sys_close(f->sock);
	if (!f->token || !sys_failed(ret))
		return;
	sl = wire_begin(t);
	if (!sl)
		return;
	sl->args.unfork.token = f->token;
	(void)wire_call(t, sl, WIRE_OP_UNFORK);
	wire_end(t, sl);
}

void perf_forked(struct thread *t, const struct perf_fork *f)
{
	struct perf *p = t->proc->perf;

	if (!p)
		return;
	if (!t->own_proc) {
		/* In its own memory: what is mapped goes, and so does the parent's socket. */
		if (p->wire.page)
			region_unmap_file(p->wire.page, WIRE_SIZE);
		wire_forked(&p->wire, p->wire.guest_sock ? p->wire.sock : -1);
		fd_drop(FD_WIRE);
	} else {
		wire_forked(&p->wire, -1);
	}
	perf_maps_forget(p);
	t->perf_token = 0;
	t->perf_tid = 0;
	p->pid = p->ppid = 0;
	if (f->sock >= 0)
		wire_hello_child(t, f->sock);
}

struct perf *perf_copy(const struct perf *p)
{
	struct perf *copy = perf_memory(sizeof(*copy));

	if (!copy)
		return NULL;
	copy->view = p->view;
	wire_init(&copy->wire);
	copy->wire.dead = p->wire.dead;
	for (u32 i = 0; p->nr_fds && i < PERF_FDS_PAGES; i++) {
		const struct perf_fd *from = perf_fd_page(p, i);
		struct perf_fd *to;

		if (!from)
			continue;
		to = perf_fd_slot(copy, (int)(i * PERF_FDS_PAGE), true);
		if (!to) {
			perf_free(copy);
			return NULL;
		}
		memcpy(to, from, PERF_FDS_PAGE * sizeof(*to));
	}
	copy->nr_fds = p->nr_fds;
	return copy;
}

void perf_free(struct perf *p)
{
	for (u32 i = 0; p->fds && i < PERF_FDS_PAGES; i++)
		if (p->fds[i])
			region_unmap(p->fds[i], PERF_FDS_PAGE * sizeof(struct perf_fd));
	if (p->fds)
		region_unmap(p->fds, PERF_FDS_PAGES * sizeof(*p->fds));
	if (p->wire.page)
		region_unmap_file(p->wire.page, WIRE_SIZE);
	region_unmap(p, sizeof(*p));
}

/* The session looks at the kernel's counts of it from here on. */
void perf_thread_begin(struct thread *t)
{
	struct wire_slot *sl;

	if (!t->perf_token)
		return;
	sl = wire_begin(t);
	if (!sl)
		return;
	if (!wire_call(t, sl, WIRE_OP_PING))
		t->perf_tid = (u32)t->perf_reply.result.caller.tid;
	wire_end(t, sl);
}

void perf_ids(const struct thread *t, u32 *pid, u32 *tid)
{
	u32 own = (u32)sys_getpid();

	*pid = t->proc->perf && t->proc->perf->pid ? t->proc->perf->pid : own;
	*tid = t->perf_tid ?: t->tid == own ? *pid : t->tid;
}

u32 perf_parent(const struct thread *t)
{
	return t->proc->perf ? t->proc->perf->ppid : 0;
}

void perf_thread_exit(struct thread *t, bool process)
{
	struct wire_slot *sl;

	if (!(watched(t) & WIRE_WATCH_EXIT))
		return;
	/* For a session that has no clock of the kernel's that outlives us. */
	__atomic_store_n(&dbt_meter(&t->dbt)->cpu_time, perf_cpu_time(), __ATOMIC_RELAXED);
	/* The session sees the end of a process by itself. */
	if (process && !(watched(t) & WIRE_WATCH_END))
		return;
	sl = wire_begin(t);
	if (!sl)
		return;
	sl->args.exit.process = process;
	(void)wire_call(t, sl, WIRE_OP_EXIT);
	wire_end(t, sl);
}
