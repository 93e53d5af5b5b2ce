#include "rt/task/meter-page.h"

#include "abi/runs.h"
#include "abi/wire.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/sample/sample.h"
#include "rt/syscall/fd.h"
#include "rt/task/limits.h"
#include "rt/task/path-pages.h"
#include "rt/task/process.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/prctl.h>

static struct counter_segment *segment;
static struct run_config run_told;
static u32 run;

void meter_init(int fd, u32 number, const struct run_config *config)
{
	long at = sys_mmap((void *)(REGION_AREAS - METER_SIZE), METER_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	if (sys_failed(at))
		die("cannot map the meters (error %d)\n", (int)-at);
	limits_ours(METER_SIZE, 0);
	segment = (struct counter_segment *)at;
	run_told = *config;
	run = number;
}

struct counter_segment *counter_segment(void)
{
	return segment;
}

const struct run_config *run_config(void)
{
	return &run_told;
}

u32 meter_run(void)
{
	return run;
}

bool meter_run_watched(void)
{
	struct meter_run *entry = meter_run_open(segment, run);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	if (!entry)
		return false;
	lock.l_start = entry - meter_runs(segment)->run;
	return sys_fcntl(fd_get(FD_SEGMENT), F_GETLK, (long)&lock) || lock.l_type != F_UNLCK;
}

void meter_no_launch(int err, const char *text)
{
	struct meter_run *entry = meter_run_open(segment, run);
	struct meter_runs *runs = meter_runs(segment);

	if (entry) {
		str_put(runs->text, sizeof(runs->text), text);
		__atomic_store_n(&runs->text_of, run, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->error, err, __ATOMIC_RELEASE);
	}
	sys_exit_group(127);
}

/* Whose page it is, as it stands in the file. */
struct owner {
	u32 state, pid, tid, run;
};

static bool read_owner(u32 index, struct owner *o)
{
	return sys_pread(fd_get(FD_SEGMENT), o, sizeof(*o),
			 segment_offset(index) + offsetof(struct meter, state)) == sizeof(*o);
}

/* Page @index of the segment at an address of ours for a moment; NULL if that fails. */
static struct meter *borrow(u32 index)
{
	if (index >= SEGMENT_SLOTS)
		return NULL;
	return region_map_file(METER_SIZE, fd_get(FD_SEGMENT), segment_offset(index));
}

static void give_back(struct meter *m)
{
	region_unmap_file(m, METER_SIZE);
}

/* Makes the page this task's, if it is nobody's. */
static bool claim(struct meter *m)
{
	u32 state = METER_FREE;

	if (!__atomic_compare_exchange_n(&m->state, &state, METER_RUNNING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	/* No tid until meter_begin(): the session looks for threads by what pages say. */
	__atomic_store_n(&m->tid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->run, run, __ATOMIC_RELEASE);
	m->start = sys_clock(CLOCK_MONOTONIC);
	__atomic_store_n(&m->watch, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->asked, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->chosen, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->told_pid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->cpu_time, 0, __ATOMIC_RELAXED);
	return true;
}

/* The same by its index; mapped at @at, if that is not 0. -ENOMEM: it cannot be looked at. */
static int claim_index(u32 index, u64 at)
{
	struct meter *m = at ? (struct meter *)at : borrow(index);
	bool taken;

	if (!m || (at && meter_map(at, index)))
		return -ENOMEM;
	taken = claim(m);
	if (!at)
		give_back(m);
	return taken;
}

/* Of those that are free: 1 with its index, 0: there is none, or -ENOMEM. */
static int take_over(u64 at, u32 *index)
{
	for (u32 i = 0; i < SEGMENT_FREED; i++) {
		u32 word = __atomic_load_n(&segment->freed[i], __ATOMIC_RELAXED);
		int ret;

		if (!word || !__atomic_compare_exchange_n(&segment->freed[i], &word, 0, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		*index = word - 1;
		ret = claim_index(*index, at);
		if (ret < 0)
			meter_note_freed(segment, *index);
		if (ret)
			return ret;
	}
	return 0;
}

static void set_free(struct meter *m, u32 index)
{
	u32 exited = METER_EXITED;

	if (meter_run_keeps(segment, m->run) ||
	    __atomic_load_n(&m->watch, __ATOMIC_SEQ_CST) & WIRE_WATCH_EXIT)
		return;
	/* The session may have found out by itself, and been first. */
	if (__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		meter_note_freed(segment, index);
}

/* Page @index was seen to be @o's, who is gone without a word. */
static void reclaim(u32 index, const struct owner *o)
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
#define COLLECT_MOST  4096u

/*
 * Looks at pages for those of tasks that were killed, or ended with their process, and for free
 * ones that nobody knows of. Each look costs as much as there are pages, so the next one comes when
 * an eighth more of them is in use. Of more than COLLECT_MOST only so many are looked at, any: how
 * many there are, and that it is time, may be what another guest has made up.
 */
static void collect(void)
{
	u32 used = min_u64(__atomic_load_n(&segment->used, __ATOMIC_RELAXED), SEGMENT_SLOTS);
	u32 at = __atomic_load_n(&segment->collect_at, __ATOMIC_RELAXED), found = 0;
	u32 looks = min_u64(used, COLLECT_MOST), first = 0;
	bool pids = !meter_namespaces();
	struct owner o;

	if (used < COLLECT_FIRST || used < at)
		return;
	if (looks < used)
		first = (u32)(sys_clock(CLOCK_MONOTONIC) / 1000 % used);
	for (u32 n = 0; n < looks; n++) {
		u32 i = (first + n) % used;

		if (!read_owner(i, &o))
			continue;
		if (o.state == METER_FREE) {
			meter_note_freed(segment, i);
			found++;
		} else if (o.state == METER_RUNNING && o.tid && pids &&
			   sys_tgkill((int)o.pid, (int)o.tid, 0) == -ESRCH) {
			reclaim(i, &o);
			found++;
		}
	}
	__atomic_store_n(&segment->collect_at, found >= looks / 8 ? used : used + used / 8 - found,
			 __ATOMIC_RELAXED);
}

/*
 * Into the segment, of which only one's own pages are mapped. To the kernel it is a file like those
 * of the guest, whose limit (RLIMIT_FSIZE) ends the write by SIGXFSZ. All signals are blocked here,
 * so it waits and can be taken back; and a mapping has no such limit.
 */
static void write_segment(u64 at, const void *bytes, size_t len)
{
	const u64 xfsz = BIT(SIGXFSZ - 1);
	const struct __kernel_timespec now = {0};
	u64 page = at & ~4095ull;
	u8 *map;

	if (sys_pwrite(fd_get(FD_SEGMENT), bytes, len, at) != -EFBIG)
		return;
	raw_call4(__NR_rt_sigtimedwait, (long)&xfsz, 0, (long)&now, SIGSET_SIZE);
	map = region_map_file(4096, fd_get(FD_SEGMENT), page);
	if (!map)
		return;
	memcpy(map + (at - page), bytes, len);
	region_unmap_file(map, 4096);
}

/* A page that nobody has used: its index, SEGMENT_SLOTS if there is none. */
static u32 take_new(void)
{
	u32 slots = run_told.slots ? (u32)min_u64(run_told.slots, SEGMENT_SLOTS) : SEGMENT_SLOTS;
	u32 index = __atomic_fetch_add(&segment->used, 1, __ATOMIC_RELAXED);
	/* RUNNING and without a tid, so that collect() does not take it for a free one. */
	const struct owner o = {.state = METER_RUNNING, .run = run};

	if (index < slots) {
		write_segment(segment_offset(index) + offsetof(struct meter, state), &o, sizeof(o));
		return index;
	}
	__atomic_store_n(&segment->used, slots, __ATOMIC_RELAXED);
	__atomic_fetch_add(&segment->lost, 1, __ATOMIC_RELAXED);
	return SEGMENT_SLOTS;
}

u32 meter_take(void)
{
	u32 index;

	if (take_over(0, &index) > 0)
		return index;
	collect();
	return take_over(0, &index) > 0 ? index : take_new();
}

int meter_take_at(u64 at, u32 *index)
{
	int ret = take_over(at, index);

	if (!ret) {
		collect();
		ret = take_over(at, index);
	}
	if (ret)
		return ret < 0 ? ret : 0;
	*index = take_new();
	ret = meter_map(at, *index);
	if (ret)
		meter_return(*index);
	return ret;
}

bool meter_take_again(u64 at, u32 index)
{
	if (index >= SEGMENT_SLOTS || !claim((struct meter *)at))
		return false;
	/* Others need not look at it. */
	for (u32 i = 0; i < SEGMENT_FREED; i++) {
		u32 word = index + 1;

		if (__atomic_load_n(&segment->freed[i], __ATOMIC_RELAXED) == word &&
		    __atomic_compare_exchange_n(&segment->freed[i], &word, 0, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			break;
	}
	return true;
}

void meter_namespace(void)
{
	__atomic_store_n(&segment->namespaces, 1, __ATOMIC_RELAXED);
}

bool meter_namespaces(void)
{
	return __atomic_load_n(&segment->namespaces, __ATOMIC_RELAXED);
}

void meter_bound(void)
{
	/* Not again: the line is read by all that start. */
	if (!__atomic_load_n(&segment->bound, __ATOMIC_RELAXED))
		__atomic_store_n(&segment->bound, 1, __ATOMIC_SEQ_CST);
}

/* What all threads write to, of hits and weights by the first classes. */
#define PAGES_USUAL (offsetof(struct meter, weight) + METER_CLASSES / 2 * sizeof(u64))

int meter_map(u64 at, u32 index)
{
	long ret;

	/* A page that nobody reads, for a thread that is not counted. */
	if (index >= SEGMENT_SLOTS)
		ret = region_map_at(at, METER_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	else
		ret = region_map_at(at, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				    fd_get(FD_SEGMENT), segment_offset(index));
	/* A fault for each page would take longer, and be counted as the program's. */
	if (!sys_failed(ret) && index < SEGMENT_SLOTS)
		sys_madvise((void *)at, PAGES_USUAL, MADV_POPULATE_WRITE);
	return sys_failed(ret) ? (int)ret : 0;
}

u64 meter_stamp(u32 index)
{
	u64 start = 0;

	if (index < SEGMENT_SLOTS)
		sys_pread(fd_get(FD_SEGMENT), &start, sizeof(start),
			  segment_offset(index) + offsetof(struct meter, start));
	return start;
}

void meter_announce(u32 index, u64 stamp, u32 pid)
{
	const u32 who[3] = {pid, pid, run};
	struct owner o;

	_Static_assert(offsetof(struct meter, run) == offsetof(struct meter, pid) + 8, "who[]");
	if (index < SEGMENT_SLOTS && read_owner(index, &o) && o.state == METER_RUNNING && !o.tid &&
	    meter_stamp(index) == stamp)
		write_segment(segment_offset(index) + offsetof(struct meter, pid), who,
			      sizeof(who));
}

void meter_kickable(struct thread *t, bool kickable)
{
	/* The session first tells of deadlines and then looks here. */
	__atomic_store_n(&dbt_meter(&t->dbt)->kickable, kickable, __ATOMIC_SEQ_CST);
	if (kickable && sample_is_stale(t))
		dbt_interrupt(&t->dbt);
}

void meter_begin(struct thread *t, enum meter_owner owner)
{
	struct meter *m = dbt_meter(&t->dbt);

	/*
	 * After execve the page goes on: what the process counted as another program is its own
	 * too.
	 */
	if (owner != METER_SAME_PROCESS) {
		meter_sums(m, METER_QUANTITIES, m->base);
		/* A thread begins when its page is taken. */
		if (owner == METER_NEW_PROCESS || !m->start)
			m->start = sys_clock(CLOCK_MONOTONIC);
		m->own_switches = 0;
	}
	if (owner == METER_NEW_PROCESS)
		m->traced = 0;
	/* Its last owner's, or of the execve: not in a system call of this program's. */
	meter_unpark(m);
	__atomic_store_n(&m->run, run, __ATOMIC_RELEASE);
	m->kickable = 0;
	m->pid = owner == METER_NEW_THREAD ? t->proc->pid : (u32)sys_getpid();
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

void meter_told(struct thread *t)
{
	struct meter *m = dbt_meter(&t->dbt);
	u32 pid;

	perf_ids(t, &pid, &m->told_tid);
	m->told_ppid = pid != m->pid && perf_parent(t) ? perf_parent(t) : m->ppid;
	__atomic_store_n(&m->told_pid, pid, __ATOMIC_RELEASE);
}

/* The page alone could say so of whom its writer wants to run natively. */
static bool kernel_says_traced(const char *path)
{
	static const char none[] = "\nTracerPid:\t0\n";
	char text[1024];
	const char *at = text;

	if (fd_read_text(path, text, sizeof(text)) <= 0)
		return true; /* there is no /proc */
	while (at && !str_starts(at, none))
		at = str_chr(at + 1, '\n');
	return !at;
}

bool meter_traced(struct thread *t)
{
	struct meter *m = t->proc->meter == t->meter ? dbt_meter(&t->dbt) : borrow(t->proc->meter);
	bool traced = m && __atomic_load_n(&m->traced, __ATOMIC_RELAXED);

	if (m && m != dbt_meter(&t->dbt))
		give_back(m);
	return traced && (kernel_says_traced("/proc/thread-self/status") ||
			  kernel_says_traced("/proc/self/status"));
}

void meter_set_traced(u32 pid, bool traced)
{
	u32 used = min_u64(__atomic_load_n(&segment->used, __ATOMIC_RELAXED), SEGMENT_SLOTS);
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
	 * A page that the session watches is freed by the session, when it has read it. The state
	 * is set before watch is read; mate: thread_need_task() in session/task/guest-process.c. So
	 * a thread that ends is not watched without anybody noticing.
	 */
	__atomic_store_n(&m->state, METER_EXITED, __ATOMIC_SEQ_CST);
	set_free(m, index);
}

void meter_end(struct thread *t, u32 code, bool process)
{
	struct meter *m = dbt_meter(&t->dbt);

	m->end = sys_clock(CLOCK_MONOTONIC);
	m->exit_code = code;
	m->exited = process;
	release(m, t->meter);
}

void meter_free(u32 index, u32 tid)
{
	struct owner o;

	if (read_owner(index, &o) && o.state == METER_RUNNING && o.tid == tid)
		reclaim(index, &o);
}

void meter_return(u32 index)
{
	struct meter *m = borrow(index);

	if (!m)
		return;
	release(m, index);
	give_back(m);
}

void meter_return_of(struct thread *t)
{
	if (t->meter < SEGMENT_SLOTS)
		release(dbt_meter(&t->dbt), t->meter);
}

static struct meter_uncounted *take_uncounted(void)
{
	for (u32 i = 0; i < SEGMENT_UNCOUNTED; i++) {
		struct meter_uncounted *u = &segment->uncounted[i];
		u32 state = __atomic_load_n(&u->state, __ATOMIC_ACQUIRE);

		if ((state == METER_UNCOUNTED_NONE ||
		     (state == METER_UNCOUNTED_READY && !meter_run_open(segment, u->run))) &&
		    __atomic_compare_exchange_n(&u->state, &state, METER_UNCOUNTED_WRITING, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return u;
	}
	return NULL;
}

void meter_uncounted(u32 pid, const char *path, const char *why)
{
	struct meter_run *entry = meter_run_open(segment, run);
	struct meter_uncounted *u = entry ? take_uncounted() : NULL;

	if (entry)
		__atomic_fetch_add(&entry->uncounted, 1, __ATOMIC_RELAXED);
	if (!u)
		return;
	u->pid = pid;
	u->run = run;
	str_put(u->path, sizeof(u->path), path);
	str_put(u->why, sizeof(u->why), why);
	__atomic_store_n(&u->state, METER_UNCOUNTED_READY, __ATOMIC_RELEASE);
}

void meter_not_uncounted(u32 pid)
{
	struct meter_run *entry = meter_run_open(segment, run);

	for (u32 i = 0; i < SEGMENT_UNCOUNTED; i++) {
		struct meter_uncounted *u = &segment->uncounted[i];

		if (__atomic_load_n(&u->state, __ATOMIC_ACQUIRE) == METER_UNCOUNTED_READY &&
		    u->run == run && u->pid == pid)
			__atomic_store_n(&u->state, METER_UNCOUNTED_NONE, __ATOMIC_RELEASE);
	}
	if (entry)
		__atomic_fetch_sub(&entry->uncounted, 1, __ATOMIC_RELAXED);
}
