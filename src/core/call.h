/*
 * PURPOSE: the calls that programs make on perf events: open, ioctl, read, poll, mmap, close,
 * prctl. The host gets them off the wire or out of a direct call, resolves descriptors with
 * ops->fd_event(), and hands over the bytes of guest memory that a call may look at. The core never
 * sees a guest address.
 *
 * Lifetime: events are reference counted: one reference per open file description (dup, fork and
 * SCM_RIGHTS share one), given back with event_put().
 * Locking: none, one thread. Before each call the host brings the counters that its sources answer
 * with up to date for the calling thread, and finishes with tasks that are already dead
 * (doc/core.md, "What a host must do").
 * Errors: 0 or -errno with core_refusal(); doc/matrix.md says which, and which of two wins.
 */
#ifndef CORE_CALL_H
#define CORE_CALL_H

#include "core/core.h"

#define OPEN_FLAG_NO_GROUP   BIT(0)
#define OPEN_FLAG_OUTPUT     BIT(1)
#define OPEN_FLAG_PID_CGROUP BIT(2)
#define OPEN_FLAG_CLOEXEC    BIT(3)

struct open_call {
	struct task *caller;

	/*
	 * The bytes at the caller's attr pointer, as many as could be read, at most a page: a short
	 * @attr_len means that the next byte faults. More than attr.size need not be given.
	 */
	const void *attr;
	size_t attr_len;

	s32 pid;
	s32 cpu;
	s32 group_fd;
	u64 flags; /* PERF_FLAG_*; CLOEXEC is checked here, and the host's to carry out */

	const char *path; /* what attr.config1 points to, if that is a string; or NULL */
	void *host;       /* the host's own, for its ops */

	/* Results. */
	struct event *event; /* 0: with one reference for the new descriptor */
	/* not 0: store it into the caller's attr.size, a fault is ignored (E2BIG) */
	u32 store_size;
};

/* perf_event_open(2) [CALL, FLAG, SIZE, ATTR]. */
int must_check perf_open(struct core *core, struct open_call *call);

struct event *event_get(struct event *event);

/* The last one closes the event: GRP-04 for its members, its children go, its counter is freed. */
void event_put(struct event *event);

/* What one read(2) gives at most: 16 KiB, as open refuses groups beyond [GRP-16]. */
#define EVENT_READ_MAX 16384

/*
 * read(2) into @words, of which the caller asked for @len bytes: bytes stored, 0 in ERROR, -ENOSPC
 * if @len is too small, -ECHILD [READ]. @words has room for EVENT_READ_MAX bytes whatever @len
 * says. Copying to the guest and its EFAULT are the host's.
 */
s64 must_check event_read(struct event *event, u64 *words, u64 len);

/* What a read of the event alone says now, its children included. Leaves core_reason() as it is. */
struct event_totals {
	u64 count, enabled, running;
};
struct event_totals event_totals(struct event *event);

/*
 * poll(2): POLLHUP without a buffer [OVF-03] or when the target is gone, POLLERR for a pinned event
 * in
 * ERROR [GRP-08], else what was woken for since the last call, which this consumes [OVF-02].
 */
u32 event_poll(struct event *event);

/* Has it anything to report but a hang-up? Consumes nothing. */
bool event_reports(const struct event *event);

/* POLLHUP is what it would answer; consumes nothing. */
bool event_hangs_up(const struct event *event);

/*
 * Whoever reads @event's buffer takes everything: what finds no room there waits until there is
 * some, and is not lost. The host has those wait who make more of it, while event_has_backlog(),
 * and calls core_backlogs_write(). Nothing changes where old records give way to new ones.
 */
void event_lossless(struct event *event);
bool event_has_backlog(const struct event *event);
/* Writes what there is room for now; how many bytes that was. */
u64 event_backlog_write(struct event *event);

/* The event whose mapping has the buffer that @event's records go to; NULL: there is none. */
struct event *event_output(const struct event *event);

/* Calls @fn for @event and for each copy and stand-in of it. */
void event_each_child(struct event *event, void (*fn)(struct event *event));

/* Have the target and every inherited child died? With a ring this is POLLHUP [OVF-04]. */
bool event_target_gone(const struct event *event);

struct ioctl_call {
	struct task *caller;
	u32 cmd;
	u64 arg; /* the argument itself: a flag, a number, a descriptor, or the guest's address */

	/*
	 * The bytes at @arg that could be read, see ioctl_reads(); a short @in_len means a fault.
	 * SET_FILTER: the string with its NUL.
	 */
	const void *in;
	size_t in_len;

	/*
	 * Results: bytes to store at @arg + @out_at; a fault makes the call EFAULT (the host's).
	 * MODIFY_ATTRIBUTES' E2BIG store arrives here as well, with a negative return value; there
	 * a fault is ignored.
	 */
	u8 out[8];
	u32 out_len;
	u32 out_at;
};

/* How many bytes at its argument @cmd wants to read at most; 0: the argument is no address. */
size_t ioctl_reads(u32 cmd);

/* ioctl(2) [IOC]: 0 or -errno. The caller's right to the descriptor is the only one needed. */
int must_check event_ioctl(struct event *event, struct ioctl_call *call);

/* prctl(PR_TASK_PERF_EVENTS_DISABLE or ENABLE): the events that @caller opened [PRC]. Always 0. */
int perf_prctl(struct task *caller, bool enable);

struct perf_event_mmap_page;

struct map_call {
	struct task *caller; /* whose memory it is */
	u64 len, offset;
	bool shared; /* MAP_SHARED */
	/* An inheriting event of any CPU as well, as no kernel has it [INH-07]. */
	bool inherited;
	bool writable; /* PROT_WRITE; the first mapping's decides whether old records are kept */
};

/*
 * mmap(2) [RING-01, RING-02]: the user page [PAGE] and the data pages behind it, in memory that the
 * first mapping takes from ops->memory_new(); further ones share it. The core writes there, and of
 * what is there it reads data_tail, aux_offset and aux_size alone. 0, -EINVAL (inherit with cpu -1,
 * private, geometry, another size than the first), -EBUSY (output is redirected), -EPERM (locked
 * memory), or what memory_new() says.
 */
int must_check event_map(struct event *event, const struct map_call *call);
/*
 * With an offset it is the AUX area of the event's PMU, at aux_offset of the user page and with
 * aux_size [AUX-01..03]: memory of its own, from ops->memory_new() as well. It keeps the event and
 * the data as a mapping of these does. -EINVAL (other words, other place or size than the first),
 * -EPERM, -EOPNOTSUPP (its PMU has none).
 */

/* One mapping made by event_map() is gone (munmap, exec, exit). The last one frees the memory. */
void event_unmap(struct event *event);
/* The same of a mapping of the AUX area. The last one stops who writes there, and frees it. */
void event_unmap_aux(struct event *event);

/* The user page while @event itself is mapped, and what the host knows its memory by; or NULL. */
struct perf_event_mmap_page *event_page(const struct event *event);
void *event_memory(const struct event *event);
/* What the host knows the memory of the AUX area by, or NULL. */
void *event_aux_memory(const struct event *event);

/* What tools need to know of an event besides. */
u64 event_id(const struct event *event);
/* Whether there are events of its task that found no counter free, perhaps for its sake. */
bool event_is_waited_for(const struct event *event);
const struct pe_attr *event_attr(const struct event *event);
void *event_host(const struct event *event);
void event_set_host(struct event *event, void *host);

#endif
