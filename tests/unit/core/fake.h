/*
 * PURPOSE: a host for the core whose clock stands still until a test moves it: tasks with CPU time,
 * descriptors, capabilities, and a hardware PMU of N counters.
 *
 * A task that is on a CPU uses CPU time as the clock moves; fake_advance() stops at every deadline
 * the core announced, so that the mux timer fires to the nanosecond.
 */
#ifndef UNIT_CORE_FAKE_H
#define UNIT_CORE_FAKE_H

#include <errno.h>

#include "core/call.h"
#include "core/core.h"
#include "core/event/event.h"
#include "core/pmu.h"
#include "pmu/counters.h"

#define FAKE_TASKS 64
#define FAKE_FDS   2048

struct fake_task {
	struct task *task; /* NULL: free or gone */
	int tid, tgid, uid;
	u64 cpu_time;
	u64 counter; /* events that the fake PMU counts: one per ns unless `rate` says else */
	u32 rate;
	bool asleep; /* on its CPU for the core, but using no time */
};

/* A PMU with counters 0..n-1; config is a mask of where an event may be, 0: anywhere. */
struct fake_pmu {
	struct pmu pmu;
	u32 counters;
	bool in_txn, txn_bad;
	u32 adds, dels, txns, cancels, inits, destroys;
	int init_err; /* not 0: event_init's answer */
	u64 taken;    /* by somebody else */
	bool cpu_bad; /* add() fails whatever */
	char order[256];
};

struct fake {
	struct core *core;
	u64 now, timer;
	struct fake_task tasks[FAKE_TASKS];
	struct event *fds[FAKE_FDS];
	int last_fd;                   /* none behind it was ever open */
	struct cgroup *cgroup_fds[16]; /* descriptors 3000.. */
	bool perfmon, sys_admin, kill, ipc_lock, access;
	bool in_namespace; /* of users, which is not the first */

	const char *path; /* what config1 of the next event's attr points to */
	u64 mlock_limit;  /* RLIMIT_MEMLOCK of every process */
	u64 memory;       /* bytes that buffers have now */
	int memory_err;   /* memory_new's answer, if not 0 */
	int fd_err;       /* fd_reserve's answer */
	u32 wakes, frees;
	const struct event *changed; /* who was last said to have changed; a test may clear it */
	u32 overflows, lasts;        /* signals, and those of them with POLL_HUP */
	u32 nr_namespaces;           /* that a task says it is in */
	u32 traps;
	int trap_tid;
	u64 trap_addr;
	struct sample_facts facts; /* of every sample; ip and task are filled in */
	bool throttle;             /* may overflows be throttled? At first they may */
	struct fake_pmu hw;
	struct pmu *software;
	u64 words[EVENT_READ_MAX / 8];
	s64 got; /* of the last fake_read() */
	u64 bytes[RECORD_MAX / 8 + 1];
	struct ap_record record; /* fake_take()'s */
	char why[1024];          /* fake_why()'s */
};

/* A core with 2 CPUs, HZ 250, paranoid 2, @counters counters; task 100 on CPU 0, privileged. */
struct fake *fake_new(u32 counters);
void fake_free(struct fake *f);

void fake_advance(struct fake *f, u64 ns);

struct fake_task *fake_task(struct fake *f, int tid);
struct task *fake_add_task(struct fake *f, int tid, int tgid);
struct task *fake_fork(struct fake *f, int parent, int tid, bool thread);
void fake_exit(struct fake *f, int tid);

/* A counting attr for the fake PMU. */
struct pe_attr fake_attr(void);
struct pe_attr fake_sw_attr(u64 config);

/* perf_event_open by task @caller: descriptor or -errno. */
int fake_open_as(struct fake *f, int caller, const struct pe_attr *attr, int pid, int cpu,
		 int group, u64 flags);
int fake_open(struct fake *f, const struct pe_attr *attr, int pid, int cpu, int group);
/* Why the last call was refused, "SENTENCE; REMEDY"; "" if it was not. Valid until the next one. */
const char *fake_why(struct fake *f);

struct event *fake_event(struct fake *f, int fd);
void fake_close(struct fake *f, int fd);
/* mmap of so many pages by task 100; the page that it gave. */
int fake_map(struct fake *f, int fd, u64 pages, bool writable);
struct perf_event_mmap_page *fake_page(struct fake *f, int fd);
/*
 * The next record in the buffer of @fd, whose layout all in it have, or NULL. Valid until the next
 * call. fake_take_type(): NULL if it is of another type, too.
 */
const struct ap_record *fake_take(struct fake *f, int fd);
const struct ap_record *fake_take_type(struct fake *f, int fd, u32 type);
int fake_ioctl(struct fake *f, int fd, u32 cmd, u64 arg);
int fake_ioctl_in(struct fake *f, int fd, u32 cmd, const void *in, size_t len);

/* The call is refused with that errno, for that cause (without its CAUSE_). */
#define EXPECT_REFUSED(f, call, error, id)                             \
	do {                                                           \
		EXPECT_EQ(call, error);                                \
		EXPECT_EQ(core_refusal((f)->core)->cause, CAUSE_##id); \
	} while (0)

/* Reads into f->words; bytes or -errno, also in f->got. */
s64 fake_read(struct fake *f, int fd);
/* The count alone, whatever the read format. */
u64 fake_count(struct fake *f, int fd);

#endif
