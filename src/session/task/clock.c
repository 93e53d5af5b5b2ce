/*
 * How long a thread has run, and what the kernel has counted for it.
 *
 * A thread's own calls carry its CPU time. Looked at from outside, the kernel's own dummy event on
 * the thread tells the time it has run to within microseconds, and keeps telling it after the
 * thread is dead; without perf events schedstat does, in steps of a tick. Whatever the source, a
 * thread's clock never goes back.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/session-priv.h"

void clock_init(struct thread_clock *clock)
{
	clock->fd = -1;
	for (u32 i = 0; i < SW_WHAT_MAX; i++)
		clock->sw_fd[i] = -1;
}

void clock_release(struct thread_clock *clock)
{
	if (clock->fd >= 0)
		close(clock->fd);
	for (u32 i = 0; i < SW_WHAT_MAX; i++)
		if (clock->sw_fd[i] >= 0)
			close(clock->sw_fd[i]);
	clock_init(clock);
}

void clock_told(struct guest_thread *th, u64 cpu_time)
{
	if (cpu_time > th->clock.cpu_time)
		th->clock.cpu_time = cpu_time;
}

static int open_in_group(s32 tid, u64 config, enum sw_mode mode, int group_fd)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PE_ATTR_SIZE_VER5,
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.exclude_kernel = mode == SW_USER,
		.exclude_hv = mode == SW_USER,
		.exclude_user = mode == SW_KERNEL,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
}

static int open_software(s32 tid, u64 config, enum sw_mode mode)
{
	return open_in_group(tid, config, mode, -1);
}

/*
 * The kernel looks for the group after it has asked whether the event is allowed, and before it
 * makes it. Making the machine's only event is dear: the kernel patches itself and waits for all
 * CPUs to have noticed, some milliseconds.
 */
static bool may_open(u64 config, enum sw_mode mode)
{
	return open_in_group(0, config, mode, INT_MAX) < 0 && errno == EBADF;
}

/* What kind of events the kernel allows us: 0 with the kernel's part, 1 without, -1 none. */
static int software_mode(void)
{
	static int mode = -2;

	if (mode == -2)
		mode = may_open(PERF_COUNT_SW_CONTEXT_SWITCHES, SW_ALL) ? 0
		       : may_open(PERF_COUNT_SW_DUMMY, SW_USER)         ? 1
									: -1;
	return mode;
}

static bool read_event(int fd, u64 *value, u64 *enabled)
{
	u64 words[2];

	if (fd < 0 || read(fd, words, sizeof(words)) != sizeof(words))
		return false;
	*value = words[0];
	*enabled = words[1];
	return true;
}

static bool read_number(struct guest_thread *th, const char *file, const char *key, u32 word,
			u64 *value)
{
	char buf[4096];

	return th->tid && pid_task_text(th->process->pid, th->tid, file, buf, sizeof(buf)) &&
	       proc_word(buf, key, word, value);
}

/* Field @field of stat, from 3, the state, on: behind a name that may hold anything. */
static bool read_stat(struct guest_thread *th, u32 field, u64 *value)
{
	char buf[1024];

	return th->tid && pid_task_text(th->process->pid, th->tid, "stat", buf, sizeof(buf)) &&
	       proc_stat_field(buf, field, value);
}

static u64 schedstat(struct guest_thread *th)
{
	u64 ns = 0;

	return read_number(th, "schedstat", NULL, 0, &ns) ? ns : 0;
}

/*
 * Software counts come from the kernel's own event, opened when the count is first wanted, so that
 * they outlive the thread; where we are denied the kernel's part, from /proc. Only differences
 * matter to who asks.
 */
static u64 from_proc(struct guest_thread *th, u32 config, u64 last)
{
	u64 a = 0, b = 0;

	switch (config) {
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
		if (read_number(th, "status", "\nvoluntary_ctxt_switches", 0, &a) &&
		    read_number(th, "status", "\nnonvoluntary_ctxt_switches", 0, &b))
			return a + b;
		break;
	case PERF_COUNT_SW_CPU_MIGRATIONS:
		if (read_number(th, "sched", "se.nr_migrations", 0, &a))
			return a;
		break;
	/* minflt is field 10, majflt 12. */
	case PERF_COUNT_SW_PAGE_FAULTS:
		if (read_stat(th, 10, &a) && read_stat(th, 12, &b))
			return a + b;
		break;
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
		if (read_stat(th, 10, &a))
			return a;
		break;
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		if (read_stat(th, 12, &a))
			return a;
		break;
	}
	return last;
}

/* The kernel's event, since it outlives the thread, and how many switches there were before it. */
static void open_switches(struct guest_thread *th)
{
	int *fd = &th->clock.sw_fd[PERF_COUNT_SW_CONTEXT_SWITCHES];
	u64 before, after, enabled;

	*fd = open_software(th->tid, PERF_COUNT_SW_CONTEXT_SWITCHES, SW_ALL);
	for (int tries = 0; tries < 100 && read_event(*fd, &before, &enabled); tries++) {
		th->clock.switches_base = from_proc(th, PERF_COUNT_SW_CONTEXT_SWITCHES, 0) - before;
		if (read_event(*fd, &after, &enabled) && after == before)
			break;
	}
}

/* Called when someone else than the thread itself takes an interest, and for inherited events. */
void clock_attach(struct guest_thread *th)
{
	u64 value, enabled;

	if (!th->tid)
		guest_thread_learn_tid(th);
	if (th->clock.tried || !th->tid)
		return;
	th->clock.tried = true;
	clock_told(th, schedstat(th));
	if (software_mode() < 0)
		return;
	th->clock.fd = open_software(th->tid, PERF_COUNT_SW_DUMMY,
				     software_mode() > 0 ? SW_USER : SW_ALL);
	if (!read_event(th->clock.fd, &value, &enabled))
		enabled = 0;
	th->clock.offset = th->clock.cpu_time - enabled;
	for (u32 what = 0; what < SW_WHAT_MAX; what++) {
		if (!(th->clock.sw_wanted & BIT(what)) || th->clock.sw_fd[what] >= 0)
			continue;
		if (what == PERF_COUNT_SW_CONTEXT_SWITCHES)
			open_switches(th);
		else
			th->clock.sw_fd[what] = open_software(th->tid, what % 16, what / 16);
	}
}

/*
 * CPU time of @th, ns. Who is in a call has just said it; of others it is asked once an operation.
 */
u64 clock_read(struct guest_thread *th)
{
	const struct meter *m = guest_thread_meter(th);
	struct session *s = th->process->s;
	u64 value, enabled;

	snapshots_invalidate(th);
	if (s->instant.caller == th)
		return th->clock.cpu_time;
	if (th->clock.read_at == s->instant.number)
		return th->clock.cpu_time;
	th->clock.read_at = s->instant.number;
	/* What it has read in a snapshot is not taken back. */
	if (m)
		clock_told(th, __atomic_load_n(&m->cpu_time, __ATOMIC_RELAXED));
	if (!th->clock.tried)
		clock_attach(th);
	if (!read_event(th->clock.fd, &value, &enabled)) {
		clock_told(th, schedstat(th));
		return th->clock.cpu_time;
	}
	/*
	 * The event lacks what the thread ran while it was being opened. When the thread itself has
	 * said more since, it goes on from there: else its time would stand still until it had
	 * caught up.
	 */
	if (th->clock.offset + enabled < th->clock.cpu_time)
		th->clock.offset = th->clock.cpu_time - enabled;
	th->clock.cpu_time = th->clock.offset + enabled;
	return th->clock.cpu_time;
}

void clock_skip(struct guest_thread *th)
{
	th->clock.read_at = th->process->s->instant.number;
}

/*
 * By mode only faults: switches and migrations happen in the kernel, which counts none of them for
 * an event that excludes it, although the thread was switched.
 */
u64 software_have(void)
{
	const u64 faults = BIT(PERF_COUNT_SW_PAGE_FAULTS) | BIT(PERF_COUNT_SW_PAGE_FAULTS_MIN) |
			   BIT(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	u64 have = faults | BIT(PERF_COUNT_SW_CONTEXT_SWITCHES);

	if (software_mode() == 0 || access("/proc/self/sched", R_OK) == 0)
		have |= BIT(PERF_COUNT_SW_CPU_MIGRATIONS);
	if (software_mode() == 0)
		have |= BIT(PERF_COUNT_SW_CGROUP_SWITCHES) | faults << SW_WHAT(0, SW_KERNEL);
	if (software_mode() >= 0)
		have |= faults << SW_WHAT(0, SW_USER);
	return have;
}

u32 software_from_proc(void)
{
	return (software_mode() != 0 ? WIRE_VIEW_PROC_ALL : 0) |
	       (software_mode() < 0 ? WIRE_VIEW_PROC_USER : 0);
}

/*
 * Context switches of the program: those of the thread without those on account of its calls to us.
 * A thread that is in a call has said them. From outside they are the kernel's number less what the
 * runtime has noted, which may lag by one while the thread is in a call.
 */
static u64 program_switches(struct guest_thread *th, u64 last)
{
	const struct meter *m = guest_thread_meter(th);
	int *fd = &th->clock.sw_fd[PERF_COUNT_SW_CONTEXT_SWITCHES];
	u64 own = m ? __atomic_load_n(&m->own_switches, __ATOMIC_RELAXED) : 0, now, enabled;

	if (*fd < 0 && software_mode() == 0)
		open_switches(th);
	if (th->process->s->instant.caller == th)
		return th->clock.switches;
	if (read_event(*fd, &now, &enabled))
		now += th->clock.switches_base;
	else
		now = from_proc(th, PERF_COUNT_SW_CONTEXT_SWITCHES, last + own);
	return now - min_u64(now, own);
}

static bool is_faults(u32 config)
{
	return config == PERF_COUNT_SW_PAGE_FAULTS || config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	       config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
}

/* Only the kernel's event leaves out what is made present at once; /proc counts that as well. */
static void watch_faults(struct guest_thread *th, u32 mode)
{
	if (th->clock.faults || (software_mode() != 0 && mode == SW_ALL))
		return;
	th->clock.faults = true;
	/* One whom nobody has watched yet is about to be. */
	if (th->task)
		guest_thread_watch(th);
}

u64 software_read(void *ctx, struct task *task, u32 what)
{
	struct guest_thread *th = task_host(task);
	u32 config = what % 16, mode = what / 16;
	u64 now, enabled, last;

	(void)ctx;
	if (th && !th->tid)
		guest_thread_learn_tid(th);
	if (!th || what >= SW_WHAT_MAX)
		return 0;
	if (is_faults(config) && !(th->clock.sw_wanted & BIT(what)))
		watch_faults(th, mode);
	if (!th->tid) {
		/*
		 * Made, but not begun: what it does is counted from its beginning, clock_attach().
		 */
		th->clock.sw_wanted |= BIT(what);
		return 0;
	}
	last = th->clock.sw_last[what];
	th->clock.sw_wanted |= BIT(what);
	if (config == PERF_COUNT_SW_CONTEXT_SWITCHES) {
		now = program_switches(th, last);
	} else if (software_mode() == 0 || mode != SW_ALL) {
		if (th->clock.sw_fd[what] < 0)
			th->clock.sw_fd[what] = open_software(th->tid, config, mode);
		if (!read_event(th->clock.sw_fd[what], &now, &enabled))
			now = last;
	} else {
		now = from_proc(th, config, last);
	}
	if (now > last)
		th->clock.sw_last[what] = now;
	return th->clock.sw_last[what];
}

bool clock_outlives(void)
{
	return software_mode() >= 0;
}

void clock_last(struct guest_thread *th)
{
	(void)clock_read(th);
	for (u32 what = 0; th->task && what < SW_WHAT_MAX; what++)
		if (th->clock.sw_wanted & BIT(what))
			software_read(NULL, th->task, what);
}
