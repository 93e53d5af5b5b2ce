/*
 * PURPOSE: events that happen at places of a program: tracepoints of its system calls, breakpoints
 * and uprobes. The drivers say what an event waits for and what a record of it looks like; the host
 * has threads tell of what happens to them, and hands each occurrence to probe_happened().
 *
 * Lifetime: a struct probe belongs to its event; struct event.hw.priv leads to it.
 */
#ifndef PMU_PROBES_H
#define PMU_PROBES_H

#include "base/list.h"
#include "core/pmu.h"
#include "core/sample/sample-facts.h"
#include "pmu/tracepoint-format.h"

struct event;
struct tp_filter;

enum probe_kind {
	PROBE_CALL_ENTER, /* a system call is about to be made */
	PROBE_CALL_EXIT,  /* and has been answered */
	PROBE_EXECUTED,   /* the instruction at an address is about to be executed */
	PROBE_ACCESSED,   /* an instruction has accessed data */
	PROBE_UPROBE,     /* that of a file */
	PROBE_RETURN,     /* a function that begins there has returned */
	PROBE_KERNEL,     /* the host's kernel sees it, and keeps count and periods */
	PROBE_KINDS
};

#define PROBE_ANY_CALL (-1)

#define PROBE_AT 8u /* where one instruction of a file is mapped in a process, at most */

/* A file as mappings have it. */
struct probe_file {
	u64 dev, ino;
};

/* What an event waits for. */
struct probe {
	struct event *event;
	enum probe_kind kind;
	struct list link;  /* the driver's */
	struct list armed; /* the host's, while the event is on; empty before and after */
	u64 told;          /* the host's: the number of the last occurrence that it was told of */
	/* Likewise, of data: NULL, or what `watched` is a link of; as `host` is of the kernel's. */
	struct data_watch *watch;
	struct list watched;
	/* Of system calls. */
	s32 nr;   /* which one, or PROBE_ANY_CALL */
	u16 type; /* the tracepoint's id, as its records have it */
	const struct tp_format *format;
	struct tp_filter *filter; /* of an original: SET_FILTER's; copies use their original's */
	/*
	 * Of instructions, or data: where they are; of those of files the host says it while it is
	 * armed.
	 */
	u32 nr_at;
	u64 at[PROBE_AT];
	struct probe_file file;
	u64 offset; /* in the file */
	/* Of the host's kernel, all of them the host's. */
	int anchor; /* an event of the kernel's on nobody; -1: a copy has none */
	void *host; /* where the event is; NULL: nowhere yet */
	char *text; /* the filter; NULL: none */
};

/* A system call's tracepoint. The format is the host's, for as long as the core lives. */
struct probe_tracepoint {
	enum probe_kind kind;
	s32 nr;
	const struct tp_format *format;
};

/* What the drivers ask of their host. */
struct probe_host {
	void *ctx;
	/*
	 * The tracepoint of that number; -ENOENT: the kernel has none, -EOPNOTSUPP: it is none of
	 * system calls.
	 */
	int (*tracepoint)(void *ctx, u64 id, struct probe_tracepoint *tp);
	/*
	 * The file that @opener calls @path, which has an instruction at @offset: 0; -ENOENT or
	 * what else the path is not; -EINVAL: it has none there, or is no file.
	 */
	int (*file)(void *ctx, struct task *opener, const char *path, u64 offset,
		    struct probe_file *file);
	/*
	 * Of data: what @probe needs of the machine is its own until it is released, and follows
	 * its event's attr. 0; -ENOSPC: all of it is in use; or another errno: there is none here.
	 */
	int (*reserve)(void *ctx, struct probe *probe);
	void (*release)(void *ctx, struct probe *probe);
	/*
	 * Of PROBE_KERNEL. Whether the host's kernel has such an event for us: 0, or its -errno.
	 * What belongs to @probe goes with kernel_close(). What it has counted on the event's task
	 * since that was last asked, while the probe was armed; false: that is not known. A filter,
	 * and the BPF program that the call under way names: the kernel's answer.
	 */
	int (*kernel_open)(void *ctx, struct probe *probe);
	void (*kernel_close)(void *ctx, struct probe *probe);
	bool (*kernel_count)(void *ctx, struct probe *probe, u64 *more);
	int (*kernel_filter)(void *ctx, struct probe *probe, const char *text);
	int (*kernel_bpf)(void *ctx, struct probe *probe);
	/*
	 * Occurrences of @probe are wanted from now on, of the task that its event is on. 0, or
	 * -errno: there will be none, and it is to be disarmed.
	 */
	int (*arm)(void *ctx, struct probe *probe);
	void (*disarm)(void *ctx, struct probe *probe);
};

/* Something that has happened to a thread. */
struct probe_hit {
	enum probe_kind kind;
	s64 nr;          /* of a system call */
	bool other_mode; /* likewise: by the numbers of another mode of the CPU */
	u64 args[6];     /* likewise; of one that was answered args[0] is the result */
	u64 addr;        /* of an instruction */
	const struct data_watch *watch; /* PROBE_ACCESSED: whose of the host's it was */
	bool by_kernel;                 /* likewise: in a system call */
	u64 ret; /* PROBE_RETURN: where the function at addr has returned to */
	u32 tid; /* in the outermost namespace that is known */
	u32 cpu;
	const char *comm;
};

/* @event's, which is of these drivers. */
struct probe *probe_of(const struct event *event);
/* Whether it is, and of the host's kernel. */
bool probe_is_kernel(const struct event *event);

/* Whether the event waits for that. */
bool probe_matches(const struct probe *probe, const struct probe_hit *hit);

/* It has happened while the event was on: filters, counts, and perhaps overflows. */
void probe_happened(struct probe *probe, const struct probe_hit *hit,
		    const struct sample_facts *facts);

/* The host's kernel has recorded a sample of it, of which it has kept the period. */
void probe_recorded(struct probe *probe, const struct sample_facts *facts);
/* The same of each occurrence, of which the host has filtered some out: no period has been kept. */
void probe_passed(struct probe *probe, const struct sample_facts *facts);

#endif
