/*
 * PURPOSE: the machine that events are described and opened on: where its /sys and /proc are, who is
 * told what the library does, and, for `anyperf doctor`, what perf can and cannot do here.
 *
 * Making one costs no system call; files are read when something needs them and kept. It must
 * outlive every object that was made with it. It may be used from several threads.
 */
#ifndef ANYPERF_MACHINE_H
#define ANYPERF_MACHINE_H

#include <anyperf/error.h>
#include <anyperf/log.h>

AP_BEGIN_DECLS

struct ap_machine;

struct ap_machine_opts {
	size_t size;
	/*
	 * Prefix of every path that is read (/sys, /proc/sys, tracefs ...); NULL or "" is this machine.
	 * With a prefix, descriptions can be parsed for another machine; opening still happens here.
	 */
	const char *root;
	ap_log_fn *log;              /* NULL: silent */
	void *log_data;              /* handed to @log */
	enum ap_log_level log_level; /* the least urgent level that @log is called for */
};

/*
 * Makes a machine; @opts may be NULL. Strings are copied. -ENOMEM.
 */
AP_API AP_MUST_CHECK int ap_machine_new(struct ap_machine **out,
					const struct ap_machine_opts *opts);

/* Frees @m and what it has read. NULL is fine. */
AP_API void ap_machine_free(struct ap_machine *m);

/*
 * Forgets what was read, so that the next use reads it again: after a PMU's module was loaded, a
 * probe was made, or a setting was changed. Pointers got from pmu.h become invalid.
 */
AP_API void ap_machine_refresh(struct ap_machine *m);

enum ap_fact_state {
	AP_FACT_INFO = 0, /* neither good nor bad */
	AP_FACT_GOOD,     /* works without limits */
	AP_FACT_LIMITED,  /* works with the limits that `effect` names */
	AP_FACT_BAD,      /* does not work */
};

/* One line of `anyperf doctor`. The strings live until the callback returns. */
struct ap_fact {
	const char *id;     /* stable word for programs: "paranoid", "cpu-pmu", "mlock" ... */
	const char *title;  /* for people: "kernel.perf_event_paranoid" */
	const char *value;  /* what was found: "2" */
	const char *effect; /* what that means for the caller, with his capabilities */
	const char *remedy; /* what would improve it, "" if nothing needs to */
	enum ap_fact_state state;
};

/* A non-zero return ends the enumeration, which then returns that value. */
typedef int ap_fact_fn(const struct ap_fact *fact, void *data);

/*
 * Calls @fn once per fact: PMUs, paranoid, capabilities, mlock, sample rate, user-space reads,
 * kptr_restrict, seccomp, yama, cgroups, tracefs, the fd limit, NMI watchdog. Files that cannot be
 * read are facts too, not errors. Opens a few events on the calling thread to see what is really
 * possible when the machine's root is this machine's. Returns 0, @fn's value, or -ENOMEM.
 */
AP_API int ap_machine_facts(struct ap_machine *m, ap_fact_fn *fn, void *data);

AP_END_DECLS

#endif
