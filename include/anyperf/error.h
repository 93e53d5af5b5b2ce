/*
 * PURPOSE: why something was refused. perf_event_open(2) answers with a bare number; struct
 * ap_error adds a sentence on what was refused and why on this machine, a sentence on what would
 * help, and the cause as a constant for programs.
 *
 * The caller owns the struct; every function that takes one accepts NULL. It is written only on
 * failure, and then completely, so it needs no initialisation. It holds no pointers: copy it
 * freely.
 */
#ifndef ANYPERF_ERROR_H
#define ANYPERF_ERROR_H

#include <anyperf/api.h>

AP_BEGIN_DECLS

enum ap_cause {
	AP_CAUSE_OTHER = 0,     /* nothing more precise than the errno is known */
	AP_CAUSE_SYNTAX,        /* the event description cannot be parsed */
	AP_CAUSE_UNKNOWN_EVENT, /* no such event, PMU or term on this machine */
	AP_CAUSE_BAD_VALUE,     /* a value that the field cannot hold or the kernel never accepts */
	AP_CAUSE_PARANOID,      /* kernel.perf_event_paranoid forbids it without CAP_PERFMON */
	AP_CAUSE_CAPABILITY,    /* needs a capability whatever perf_event_paranoid says */
	AP_CAUSE_PTRACE,        /* another user's task, or yama, or not dumpable */
	AP_CAUSE_NO_TASK,       /* no such task, or it is exiting */
	AP_CAUSE_NO_PMU,        /* the machine (virtual machine, container) has no CPU PMU */
	AP_CAUSE_UNSUPPORTED,   /* the PMU exists but cannot count or sample this */
	AP_CAUSE_SECCOMP,       /* a seccomp filter refuses the system call */
	AP_CAUSE_LSM,           /* a security module or kernel lockdown refuses it */
	AP_CAUSE_KERNEL_OLD,    /* the kernel does not know a field that is needed */
	AP_CAUSE_NO_PERF,       /* the kernel is built without perf events */
	AP_CAUSE_SAMPLE_RATE,   /* over kernel.perf_event_max_sample_rate */
	AP_CAUSE_MAX_STACK,     /* over kernel.perf_event_max_stack */
	AP_CAUSE_MLOCK,         /* over kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK */
	AP_CAUSE_FD_LIMIT,      /* RLIMIT_NOFILE, or the system's fs.file-max */
	AP_CAUSE_MEMORY,        /* out of memory */
	AP_CAUSE_CPU,           /* no such CPU, or it is offline, or not one of this PMU's */
	AP_CAUSE_CGROUP,        /* no such cgroup, or it is not one that perf can use */
	AP_CAUSE_GROUP,         /* the group does not fit together, or not on the PMU */
	AP_CAUSE_BUSY,          /* an exclusive PMU or all breakpoint registers are in use */
	AP_CAUSE_TRACEFS,       /* tracefs is not mounted or not readable */
	AP_CAUSE_FILE,          /* a file named in the description cannot be used */
	AP_CAUSE_KERNEL_MODE,   /* the virtual PMU sees user mode only */
	AP_CAUSE_NOT_GUEST,     /* the virtual PMU counts only what was started under it */
	AP_CAUSE_SESSION,       /* the virtual PMU's session has ended or cannot go on */
};

struct ap_error {
	int code;         /* -errno, as returned by the function */
	int cause;        /* enum ap_cause */
	int about;        /* how many bytes of `why` name the event, as "cycles: " does; or 0 */
	char why[512];    /* one or two sentences without a full stop at the end */
	char remedy[500]; /* what to do about it; "" if there is nothing */
};

/* The cause as a short word for machine-readable output, e.g. "paranoid"; "other" if unknown. */
AP_API const char *ap_cause_name(int cause);

/*
 * Writes "WHY; REMEDY" into @buf, cut to @len bytes with the closing NUL. Returns @buf.
 */
AP_API char *ap_error_text(const struct ap_error *err, char *buf, size_t len);

AP_END_DECLS

#endif
