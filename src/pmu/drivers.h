/*
 * PURPOSE: the drivers that the session registers: the virtual cpu PMU, the translator's own, IBS,
 * software events, and those of places in a program (breakpoint, tracepoint, kprobe, uprobe).
 *
 * Lifetime: each *_new() allocates a driver and registers it with @core; *_free() after
 * core_free(). Locking: none.
 */
#ifndef PMU_DRIVERS_H
#define PMU_DRIVERS_H

#include "core/pmu.h"
#include "model/model.h"
#include "pmu/source.h"

/*
 * What the source of the cpu PMU and of the translator's counts: what was retired in user mode. The
 * cpu PMU has events for the first two, and raw codes for others. Their number is also what rdpmc
 * of a mapped event is given in ECX (the user page's index - 1): the runtime answers with the same
 * free-running counter that the source reads, 64 bits wide.
 */
enum cpu_what {
	CPU_INSTRUCTIONS,
	CPU_BRANCHES,
	CPU_CONDITIONAL,
	CPU_TAKEN,
	CPU_CALLS,
	CPU_RETURNS,
	CPU_INDIRECT,
	CPU_WHAT_MAX,
};

/* Further on, + enum model_counter: what a model of a machine counts of a task. */
#define CPU_MODELED     16u
#define CPU_MODELED_MAX (CPU_MODELED + MODEL_COUNTERS)
_Static_assert(CPU_WHAT_MAX <= CPU_MODELED && CPU_MODELED_MAX <= SOURCE_MAX, "apart");

/* The hw.measure of what a model counts. */
#define CPU_MEASURE                                      \
	((struct coverage){.executed = CPU_INSTRUCTIONS, \
			   .covered = CPU_MODELED + MODEL_INSTRUCTIONS})

/* Whose raw codes there are: pmu/raw-codes.c. */
enum cpu_vendor {
	CPU_VENDOR_INTEL,
	CPU_VENDOR_AMD,
};

enum cpu_kernel_mode {
	CPU_KERNEL_REFUSE, /* exclude_kernel = 0 is EACCES; perf retries with :u */
	CPU_KERNEL_IGNORE, /* counted in user mode */
};

/* Who may execute rdpmc, as the file of that name says [FILE-10]. */
enum cpu_rdpmc {
	CPU_RDPMC_NEVER,
	CPU_RDPMC_MAPPED, /* tasks that have an event mapped */
	CPU_RDPMC_ALWAYS,
};

struct cpu_pmu_config {
	const struct pmu_source *source; /* of enum cpu_what */
	enum cpu_vendor vendor;          /* of the CPUID that the guest is shown */
	bool is_zen;                     /* AMD: it is Zen or later */
	bool is_zen1;                    /* and before Zen 2 */
	enum cpu_kernel_mode kernel_mode;
	/* The model's; NULL: there is none, and what depends on a machine is refused. */
	const char *machine;
	const struct machine *modeled; /* what that is, while there is a name */
	const char *windows;           /* in which it sees a program; NULL: all is seen. Copied */
	bool machine_samples;          /* the source can stop tasks at what the model counts */
	u32 counters;                  /* --counters, at most 64; 0: as many as wanted */
	u32 reserved;         /* of those, taken by someone else (the NMI watchdog's way) */
	const char *pmu_name; /* caps/pmu_name, e.g. "skylake"; NULL: no such file */
	enum cpu_rdpmc rdpmc; /* not NEVER: the user pages show an index */
};

/* "cpu", type 4, also HARDWARE and HW_CACHE ids. 0, -ENOMEM, or pmu_register()'s. */
int must_check cpu_pmu_new(struct core *core, const struct cpu_pmu_config *config,
			   struct pmu **pmu);
/* A write to the file: 0, or -EINVAL with a refusal. It concerns events that are opened later. */
int must_check cpu_pmu_set_rdpmc(struct pmu *pmu, int value);
enum cpu_rdpmc cpu_pmu_rdpmc(struct pmu *pmu);
void cpu_pmu_free(struct pmu *pmu);

/*
 * "anyperf", type PE_TYPE_ANYPERF: all that the translator counts, attr.config being an enum
 * cpu_what. There is always a counter for each event. Of @config the source and the kernel mode
 * matter. Errors as above; to be freed by cpu_pmu_free().
 */
int must_check translator_pmu_new(struct core *core, const struct cpu_pmu_config *config,
				  struct pmu **pmu);

/*
 * "ibs_op", type PE_TYPE_IBS: loads and stores of the model of a machine, for AMD's CPUs. Of
 * @config the source and the kernel mode matter. Errors as above; to be freed by ibs_pmu_free().
 */
int must_check ibs_pmu_new(struct core *core, const struct cpu_pmu_config *config,
			   struct pmu **pmu);
void ibs_pmu_free(struct pmu *pmu);

/*
 * What the software PMU asks its source: a PERF_COUNT_SW_*, in all modes or in one. Where the mode
 * that an event's exclude bits ask for is not in `have`, all modes are counted
 * [doc/differences.md].
 */
enum sw_mode { SW_ALL, SW_USER, SW_KERNEL };
#define SW_WHAT(config, mode) ((u32)(config) + 16 * (u32)(mode))
#define SW_WHAT_MAX           48u

/*
 * "software", type 1. @source answers SW_WHAT()s; task-clock and cpu-clock are the core's own
 * clocks, dummy and bpf-output count nothing, nor do alignment and emulation faults without a
 * source; others without one are ENOENT.
 */
int must_check software_pmu_new(struct core *core, const struct pmu_source *source,
				struct pmu **pmu);
void software_pmu_free(struct pmu *pmu);

/*
 * "tracepoint" 2, "breakpoint" 5, and "kprobe" and "uprobe" under the numbers that the host's sysfs
 * shows (-1: it has none): what the kernel would refuse is refused alike, what is not served is
 * EOPNOTSUPP.
 */
struct probe_pmu_config {
	s32 kprobe_type, uprobe_type;
	const struct probe_host *host; /* pmu/probes.h; NULL: none of them counts */
};
struct probe_pmus;
int must_check probe_pmus_new(struct core *core, const struct probe_pmu_config *config,
			      struct probe_pmus **probes);
void probe_pmus_free(struct probe_pmus *probes);

#endif
