/*
 * PURPOSE: struct ap_event, and opening one with what counter-groups.c has prepared.
 */
#ifndef LIB_COUNT_EVENT_PRIV_H
#define LIB_COUNT_EVENT_PRIV_H

#include <anyperf/event.h>

#include "lib/refusal/explain.h"
#include "lib/machine/machine-priv.h"

struct ap_event {
	struct ap_machine *m;
	int handle; /* the backend's; a descriptor for the kernel's */
	pid_t tid;
	int cpu;
	u64 id;                  /* 0 until ap_event_id() or reading oneself in a group has asked */
	struct ap_event *leader; /* borrowed; NULL if it leads */
	unsigned int members;    /* leader: events opened into its group, itself included */
	char *name;              /* for sentences; owned */
	void *page;              /* user page or buffer, NULL while unmapped; owned */
	size_t page_len;
	struct pe_attr *attr; /* as accepted; at least sizeof(*attr) bytes; owned */
};

/* What an open needs beyond the attr. */
struct ap__where {
	pid_t tid;
	int cpu;                 /* -1 any */
	int cgroup_fd;           /* -1 none; else @tid is not used */
	struct ap_event *leader; /* NULL: lead */
	struct ap_event *output; /* NULL: none */
	const char *name;        /* for sentences; NULL: made from the attr */
};

int ap__event_open(struct ap_event **out, struct ap_machine *m, const struct perf_event_attr *attr,
		   const struct ap__where *where, struct ap_error *err);

struct ap_counters;
struct ap_open_opts;
struct ap_specs;
struct ap_target;

/*
 * As ap_counters_open(); with @probe to see whether it opens, though nothing may be there to count.
 */
int ap__counters_open(struct ap_counters **out, struct ap_machine *m, struct ap_specs *specs,
		      const struct ap_target *target, const struct ap_open_opts *opts, bool probe,
		      struct ap_error *err);

/* Fields that an older kernel, or a PMU, may refuse and that can be dropped; bits of m->missing. */
enum {
	AP__MISSING_LOST = 1 << 0,      /* PERF_FORMAT_LOST, 6.0 */
	AP__MISSING_CLOEXEC = 1 << 1,   /* PERF_FLAG_FD_CLOEXEC, 3.14 */
	AP__MISSING_KSYMBOL = 1 << 2,   /* ksymbol and bpf_event, 5.0 */
	AP__MISSING_MMAP2 = 1 << 3,     /* mmap2 and comm_exec, 3.16 */
	AP__MISSING_GUEST = 1 << 4,     /* exclude_guest, 3.2, or a PMU that cannot exclude */
	AP__MISSING_BUILD_ID = 1 << 5,  /* build_id, 5.12 */
	AP__MISSING_CGROUP = 1 << 6,    /* CGROUP records, 5.7 */
	AP__MISSING_NAMESPACES = 1 << 7 /* 4.11 */
};

/* Takes out of @attr and @flags what @missing says. Returns the bits that made a difference. */
unsigned int ap__drop(struct pe_attr *attr, u64 *flags, unsigned int missing);

/*
 * Opens with retries: the smallest attr size that holds what is set; droppable fields one by one on
 * -EINVAL; a higher soft RLIMIT_NOFILE on -EMFILE. @attr is left as accepted. Returns a handle, or
 * -errno of the first attempt with *@known_size set after -E2BIG.
 */
int ap__open_compat(struct ap_machine *m, struct pe_attr *attr, pid_t pid, int cpu, int leader,
		    u64 flags, u32 *known_size);

/*
 * Raises the soft RLIMIT_NOFILE for @more descriptors beyond it, at most to the hard one. 0 if it
 * is now higher than before, else -EMFILE.
 */
int ap__nofile_raise(struct ap_machine *m, unsigned long more);

/*
 * Opens a cgroup's directory: @name as it is if it begins with a slash and exists, else below where
 * the perf_event (version 1) or version 2 hierarchy is mounted. A descriptor or -errno.
 */
int ap__cgroup_open(struct ap_machine *m, const char *name, struct ap_error *err);

#endif
