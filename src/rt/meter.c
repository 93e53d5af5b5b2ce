#include "rt/meter.h"

#include "abi/wire.h"
#include "rt/fd.h"
#include "rt/window.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/prctl.h>

static struct meter_tree *tree;

void meter_init(int fd)
{
	long at = sys_mmap((void *)(WINDOW_OWN - METER_SIZE), METER_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	if (sys_failed(at))
		die("cannot map the meters (error %d)\n", (int)-at);
	tree = (struct meter_tree *)at;
	if (tree->magic != METER_TREE_MAGIC)
		die("descriptor %d holds no meters; anyperf-rt is started by `anyperf run`\n", fd);
}

struct meter_tree *meter_tree(void)
{
	return tree;
}

static u64 now_ns(void)
{
	struct __kernel_timespec ts = {0, 0};

	sys_clock_gettime(1 /* CLOCK_MONOTONIC */, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* Whose page it is, as it stands in the file. */
struct owner {
	u32 state, pid, tid;
};

static bool read_owner(u32 index, struct owner *o)
{
	return sys_pread(fd_get(FD_TREE), o, sizeof(*o),
			 meter_tree_offset(index) + offsetof(struct meter, state)) == sizeof(*o);
}

/* Page @index of the tree at an address of ours for a moment; NULL if that fails. */
static struct meter *borrow(u32 index)
{
	void *at = index < METER_TREE_SLOTS ? window_map(METER_SIZE, PROT_NONE) : NULL;

	if (!at ||
	    sys_failed(sys_mmap(at, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				fd_get(FD_TREE), meter_tree_offset(index))))
		return NULL;
	return at;
}

static void give_back(struct meter *m)
{
	sys_munmap(m, 0x10000);
}

/* Makes the page this task's, if it is nobody's. */
static bool claim(u32 index)
{
	u32 state = METER_FREE;
	struct meter *m = borrow(index);
	bool taken;

	if (!m)
		return false;
	taken = __atomic_compare_exchange_n(&m->state, &state, METER_RUNNING, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	if (taken) {
		/* Until meter_begin() it is nobody's: the session looks for threads by what pages say. */
		__atomic_store_n(&m->tid, 0, __ATOMIC_RELAXED);
		m->start = now_ns();
		__atomic_store_n(&m->watch, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&m->cpu_time, 0, __ATOMIC_RELAXED);
	}
	give_back(m);
	return taken;
}

static bool take_over(u32 *index)
{
	for (u32 i = 0; i < METER_TREE_FREED; i++) {
		u32 word = __atomic_load_n(&tree->freed[i], __ATOMIC_RELAXED);

		if (!word || !__atomic_compare_exchange_n(&tree->freed[i], &word, 0, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (claim(word - 1)) {
			*index = word - 1;
			return true;
		}
	}
	return false;
}

/* No room for the word: collect() finds the page by its state. */
static void hint(u32 index)
{
	for (u32 i = 0; i < METER_TREE_FREED; i++) {
		u32 none = 0;

		if (__atomic_compare_exchange_n(&tree->freed[i], &none, index + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	}
}

static void set_free(struct meter *m, u32 index)
{
	u32 exited = METER_EXITED;

	if (tree->flags & METER_TREE_KEEP ||
	    __atomic_load_n(&m->watch, __ATOMIC_SEQ_CST) & WIRE_WATCH_EXIT)
		return;
	/* The session may have found out by itself, and been first. */
	if (__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		hint(index);
}

/* Page @index was seen to be @o's, who is gone without a word. */
static void bury(u32 index, const struct owner *o)
{
	u32 running = METER_RUNNING, exited = METER_EXITED;
	struct meter *m = borrow(index);

	if (!m)
		return;
	if (__atomic_compare_exchange_n(&m->state, &running, METER_EXITED, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED)) {
		if (__atomic_load_n(&m->pid, __ATOMIC_SEQ_CST) == o->pid &&
		    __atomic_load_n(&m->tid, __ATOMIC_SEQ_CST) == o->tid)
			set_free(m, index);
		else
			/* It has been freed and taken meanwhile: that was somebody else's. */
			__atomic_compare_exchange_n(&m->state, &exited, METER_RUNNING, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	give_back(m);
}

#define COLLECT_FIRST 256u

/*
 * Looks at all pages for those of tasks that were killed, or ended with their process, and for free ones
 * that nobody knows of. Each look costs as much as there are pages, so the next one comes when an eighth
 * more of them is in use.
 */
static void collect(void)
{
	u32 used = min_u64(__atomic_load_n(&tree->used, __ATOMIC_RELAXED), METER_TREE_SLOTS);
	u32 at = __atomic_load_n(&tree->collect_at, __ATOMIC_RELAXED), found = 0;
	bool pids = !meter_namespaces();
	struct owner o;

	if (used < COLLECT_FIRST || used < at)
		return;
	for (u32 i = 0; i < used; i++) {
		if (!read_owner(i, &o))
			continue;
		if (o.state == METER_FREE) {
			hint(i);
			found++;
		} else if (o.state == METER_RUNNING && o.tid && pids &&
			   sys_tgkill((int)o.pid, (int)o.tid, 0) == -ESRCH) {
			bury(i, &o);
			found++;
		}
	}
	__atomic_store_n(&tree->collect_at, found >= used / 8 ? used : used + used / 8 - found,
			 __ATOMIC_RELAXED);
}

u32 meter_take(void)
{
	u32 index, slots = tree->slots ? (u32)min_u64(tree->slots, METER_TREE_SLOTS)
				       : METER_TREE_SLOTS;

	if (!(tree->flags & METER_TREE_KEEP)) {
		if (take_over(&index))
			return index;
		collect();
		if (take_over(&index))
			return index;
	}
	index = __atomic_fetch_add(&tree->used, 1, __ATOMIC_RELAXED);
	if (index < slots)
		return index;
	__atomic_store_n(&tree->used, slots, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tree->lost, 1, __ATOMIC_RELAXED);
	return METER_TREE_SLOTS;
}

void meter_namespace(void)
{
	__atomic_store_n(&tree->namespaces, 1, __ATOMIC_RELAXED);
}

bool meter_namespaces(void)
{
	return __atomic_load_n(&tree->namespaces, __ATOMIC_RELAXED);
}

int meter_map(u64 at, u32 index)
{
	long ret;

	/* A page that nobody reads, for a thread that is not counted. */
	if (index >= METER_TREE_SLOTS)
		ret = sys_mmap((void *)at, METER_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	else
		ret = sys_mmap((void *)at, METER_SIZE, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd_get(FD_TREE),
			       meter_tree_offset(index));
	return sys_failed(ret) ? (int)ret : 0;
}

u64 meter_stamp(u32 index)
{
	u64 start = 0;

	if (index < METER_TREE_SLOTS)
		sys_pread(fd_get(FD_TREE), &start, sizeof(start),
			  meter_tree_offset(index) + offsetof(struct meter, start));
	return start;
}

void meter_announce(u32 index, u64 stamp, u32 pid)
{
	const u32 who[2] = {pid, pid};
	struct owner o;

	_Static_assert(offsetof(struct meter, tid) == offsetof(struct meter, pid) + 4, "who[]");
	if (index < METER_TREE_SLOTS && read_owner(index, &o) && o.state == METER_RUNNING &&
	    !o.tid && meter_stamp(index) == stamp)
		sys_pwrite(fd_get(FD_TREE), who, sizeof(who),
			   meter_tree_offset(index) + offsetof(struct meter, pid));
}

void meter_begin(struct thread *t, enum meter_owner owner)
{
	struct meter *m = dbt_meter(&t->dbt);

	/* After execve the page goes on: what the process counted as another program is its own too. */
	if (owner != METER_SAME_PROCESS) {
		for (u32 q = 0; q < METER_QUANTITIES; q++)
			m->base[q] = meter_sum(m, q);
		m->start = now_ns();
		m->own_switches = 0;
	}
	if (owner == METER_NEW_PROCESS)
		m->traced = 0;
	m->pid = (u32)sys_getpid();
	__atomic_store_n(&m->tid, t->tid, __ATOMIC_RELEASE);
	m->ppid = (u32)raw_call0(__NR_getppid);
	m->end = 0;
	m->exited = 0;
	m->exit_code = 0;
	m->execs = t->proc->execs;
	memset(m->comm, 0, sizeof(m->comm));
	sys_prctl(PR_GET_NAME, (u64)m->comm, 0, 0, 0);
	str_put(m->exe, sizeof(m->exe), owner == METER_NEW_THREAD ? "" : t->proc->exe);
	__atomic_store_n(&m->state, METER_RUNNING, __ATOMIC_RELEASE);
}

bool meter_traced(struct thread *t)
{
	struct meter *m = t->proc->meter == t->meter ? dbt_meter(&t->dbt) : borrow(t->proc->meter);
	bool traced = m && __atomic_load_n(&m->traced, __ATOMIC_RELAXED);

	if (m && m != dbt_meter(&t->dbt))
		give_back(m);
	return traced;
}

void meter_set_traced(u32 pid, bool traced)
{
	u32 used = min_u64(__atomic_load_n(&tree->used, __ATOMIC_RELAXED), METER_TREE_SLOTS);
	struct owner o;

	for (u32 i = 0; i < used; i++) {
		struct meter *m;

		if (!read_owner(i, &o) || o.state != METER_RUNNING || o.pid != pid || o.tid != pid)
			continue;
		m = borrow(i);
		if (!m)
			return;
		__atomic_store_n(&m->traced, traced, __ATOMIC_RELAXED);
		give_back(m);
	}
}

void meter_set_comm(struct thread *t, const char *comm)
{
	str_put(dbt_meter(&t->dbt)->comm, sizeof(dbt_meter(&t->dbt)->comm), comm);
}

static void release(struct meter *m, u32 index)
{
	/*
	 * One that the session watches is free when the session has read it. State before watch, mate:
	 * thread_need_task() in session/guest.c, so a thread is not watched from here on unnoticed.
	 */
	__atomic_store_n(&m->state, METER_EXITED, __ATOMIC_SEQ_CST);
	set_free(m, index);
}

void meter_end(struct thread *t, u32 code, bool process)
{
	struct meter *m = dbt_meter(&t->dbt);

	m->end = now_ns();
	m->exit_code = code;
	m->exited = process;
	release(m, t->meter);
}

void meter_free(u32 index, u32 tid)
{
	struct owner o;

	if (read_owner(index, &o) && o.state == METER_RUNNING && o.tid == tid)
		bury(index, &o);
}

void meter_return(u32 index)
{
	struct meter *m = borrow(index);

	if (!m)
		return;
	release(m, index);
	give_back(m);
}

void meter_uncounted(u32 pid, const char *path, const char *why)
{
	u32 i = __atomic_fetch_add(&tree->uncounted_total, 1, __ATOMIC_RELAXED);

	if (i >= METER_TREE_UNCOUNTED)
		return;
	tree->uncounted[i].pid = pid;
	str_put(tree->uncounted[i].path, sizeof(tree->uncounted[i].path), path);
	str_put(tree->uncounted[i].why, sizeof(tree->uncounted[i].why), why);
	__atomic_store_n(&tree->uncounted[i].ready, 1, __ATOMIC_RELEASE);
}

void meter_not_uncounted(u32 pid)
{
	for (u32 i = 0; i < METER_TREE_UNCOUNTED; i++)
		if (tree->uncounted[i].ready && tree->uncounted[i].pid == pid)
			__atomic_store_n(&tree->uncounted[i].ready, 0, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&tree->uncounted_total, 1, __ATOMIC_RELAXED);
}
