/*
 * PURPOSE: the machine that events are described and opened on: where its /sys and /proc are, who
 * is told what the library does, and, for `anyperf doctor`, what perf can and cannot do here.
 *
 * Making one costs no system call; files are read when something needs them and kept. It must
 * outlive every object that was made with it. It may be used from several threads. One whose PMU is
 * virtual is not to be used in a process that was forked from the one that made it.
 */
#ifndef ANYPERF_MACHINE_H
#define ANYPERF_MACHINE_H

#include <anyperf/error.h>
#include <anyperf/log.h>

AP_BEGIN_DECLS

struct ap_machine;

/* Whose events are opened. */
enum ap_machine_pmu {
	/*
	 * The kernel's; but after ap_machine_choose() the virtual one if the kernel has no PMU of
	 * the CPU, or refuses perf events altogether, and something is asked for that needs it.
	 */
	AP_PMU_AUTO = 0,
	AP_PMU_KERNEL, /* the kernel's only */
	/*
	 * The virtual PMU, which counts instructions and branches exactly, in user mode, without
	 * hardware or privilege, of programs that are started under it: command.h.
	 */
	AP_PMU_VIRTUAL,
};

enum ap_virtual_flags {
	/*
	 * Fix what varies between runs: addresses, random numbers, time stamp counter. A program
	 * that uses nothing else that varies then counts the same every time
	 * (doc/deterministic.md).
	 */
	AP_VIRTUAL_DETERMINISTIC = 1 << 0,
	AP_VIRTUAL_STRICT = 1 << 1, /* refuse programs that cannot be counted: execve(2) fails */
	AP_VIRTUAL_VERIFY = 1 << 2, /* the translator verifies its invariants; slow */
	AP_VIRTUAL_IGNORE_KERNEL = 1 << 3, /* what includes kernel mode counts user mode */
	/*
	 * Keep what is translated for later runs, in $XDG_CACHE_HOME/anyperf/translations. A user's
	 * programs have their files at the same addresses each time then. Without effect with
	 * AP_VIRTUAL_DETERMINISTIC.
	 */
	AP_VIRTUAL_TRANSLATIONS = 1 << 5,
	/*
	 * The same among the programs that one program starts, and those that they start, and no
	 * longer than they run; in memory.
	 */
	AP_VIRTUAL_TRANSLATIONS_TREE = 1 << 6,
	/*
	 * The model of a machine runs beside the program, on a second CPU, in any case, or if the
	 * program may use another CPU when there is much to simulate. What is counted is the same.
	 */
	AP_VIRTUAL_MODEL_BESIDE = 1 << 7,
	AP_VIRTUAL_MODEL_BESIDE_AUTO = 1 << 8,
	/* If no `model_windows` are given: "auto", or those of the session that is joined. */
	AP_VIRTUAL_MODEL_WINDOWS_AUTO = 1 << 9,
};

/* What the virtual PMU is like, and the translator. All zero: the usual. Strings are copied. */
struct ap_virtual_opts {
	size_t size;
	unsigned int flags;    /* enum ap_virtual_flags */
	unsigned int counters; /* how many it has, at most 64; 0: as many as wanted */
	const char *cpu_model; /* the CPU that CPUID shows: "host", or a model; NULL: "auto" */
	/*
	 * Programs of one session can count each other. The name of the session; if it does not run
	 * it is started with the first command. NULL: one of its own, which ends with its last
	 * program. A process can have one machine for each name.
	 */
	const char *session;
	unsigned int cache_mb; /* most translated code per process, MB; 0: 64 */
	/*
	 * Of AP_VIRTUAL_DETERMINISTIC: "x86-64-v2", "-v3", one CPU that is the same on every
	 * machine, so that there can be no cpu_model; "host" or NULL: the machine's.
	 */
	const char *cpu_features;
	uint64_t seed;     /* of the same: what random numbers are made from */
	unsigned int cpus; /* of the same: how many programs see, at most 64; 0: the machine's */
	/*
	 * The machine whose model counts cycles, cache misses and what else depends on one: a name,
	 * the path of a file, or "none" (doc/model.md); NULL: "host".
	 */
	const char *machine;
	/*
	 * Windows in which the model sees the program, for estimates that cost much less
	 * (doc/model.md): "no", "auto", or so many instructions of so many, as in "50K/10M"; NULL:
	 * "no".
	 */
	const char *model_windows;
};

struct ap_machine_opts {
	size_t size;
	/*
	 * Prefix of every path that is read (/sys, /proc/sys, tracefs ...); NULL or "" is this
	 * machine. With a prefix, descriptions can be parsed for another machine; opening still
	 * happens here.
	 */
	const char *root;
	ap_log_fn *log;              /* NULL: silent */
	void *log_data;              /* handed to @log */
	enum ap_log_level log_level; /* the least urgent level that @log is called for */
	enum ap_machine_pmu pmu;
	const struct ap_virtual_opts *virtual_pmu; /* NULL: the usual. Borrowed for the call */
};

/*
 * Makes a machine; @opts may be NULL. Strings are copied. -ENOMEM; -EINVAL: @opts or those of the
 * virtual PMU have a flag or a value that there is not.
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

/*
 * Decides for AP_PMU_AUTO which PMU is to count @events, a list as of ap_specs_parse(), of a
 * command that is to be started. Opens an event of the kernel's to see; a mistake in @events is
 * left for ap_specs_parse() to tell. If there is no virtual PMU either, it is the kernel's. For
 * AP_PMU_VIRTUAL sees to it that there is one, which else is found out when it is first needed; in
 * a program that runs under the virtual PMU itself, that one is taken, which is the kernel's there.
 *
 * Nothing else may use the machine meanwhile, and specs must be parsed after it. 0; with
 * AP_PMU_VIRTUAL -errno if there is none.
 */
AP_API AP_MUST_CHECK int ap_machine_choose(struct ap_machine *m, const char *events,
					   struct ap_error *err);

/* Who counts: AP_PMU_KERNEL or AP_PMU_VIRTUAL. */
AP_API enum ap_machine_pmu ap_machine_pmu(const struct ap_machine *m);

/* Why it is that one, words for a sentence; valid until the next choice. */
AP_API const char *ap_machine_pmu_why(const struct ap_machine *m);

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
 * kptr_restrict, seccomp, yama, cgroups, tracefs, the fd limit, NMI watchdog, the virtual PMU.
 * Files that cannot be read are facts too, not errors. Opens a few events on the calling thread to
 * see what is really possible when the machine's root is this machine's. Returns 0, @fn's value, or
 * -ENOMEM.
 */
AP_API int ap_machine_facts(struct ap_machine *m, ap_fact_fn *fn, void *data);

AP_END_DECLS

#endif
