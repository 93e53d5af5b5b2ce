/*
 * PURPOSE: what a runtime is told when it is started: by `anyperf run` for the first program of a
 * tree, by the runtime of the same process at each execve after that. It is the content of a memfd
 * whose number is argv[1] of anyperf-rt; argv[2] and what follows are the program's own arguments,
 * so that the kernel itself carries arguments and environment over. Shapes only.
 */
#ifndef ABI_CONTROL_H
#define ABI_CONTROL_H

#include "abi/modeled.h"
#include "abi/run-config.h"
#include "base/types.h"

#define CONTROL_MAGIC   0x4c4f52544e4f4341ull
#define CONTROL_VERSION 13u
#define CONTROL_PATH    4096u
#define CONTROL_FILTERS 262144u /* most bytes of inherited seccomp filters */

/* argv of anyperf-rt that is not the program's: the runtime's name and the number of the memfd. */
#define CONTROL_ARGS 2

/*
 * An ELF note in anyperf-rt's file, by which it is told from other programs before it is started.
 */
#define CONTROL_NOTE_NAME "anyperf"
#define CONTROL_NOTE_TYPE 1u

struct control_note {
	u32 name_size, version_size, type; /* as Elf64_Nhdr */
	char name[8];                      /* CONTROL_NOTE_NAME */
	u32 version;                       /* CONTROL_VERSION */
};

enum control_flags {
	/*
	 * First program of a run: `exe` is a path that is still to be resolved ("#!" and all) and
	 * exe_fd, interp_fd are -1. What goes wrong is written to the segment's header.
	 */
	CONTROL_LAUNCH = 1,
	CONTROL_SECURE_ARGS = 2, /* argv was empty: the kernel made it { "" } */
	CONTROL_LIMITS = 4,      /* `limits` holds what the process believes */
	CONTROL_SIGNALS = 8,     /* `ignored` holds which signals are; else the kernel is asked */
};

#define CONTROL_CPUIDS    64u
#define CONTROL_CPUID_ALL (~0u)

enum control_cpuid_state {
	CONTROL_CPUID_UNKNOWN,
	CONTROL_CPUID_SAME,   /* all CPUs of the machine say the same */
	CONTROL_CPUID_DIFFER, /* nothing is remembered */
};

/* What cpuid has said to the programs that the process was; see rt/arch/x86_64/cpuid.c. */
struct control_cpuid {
	u32 state; /* enum control_cpuid_state */
	u32 n;
	struct {
		u32 leaf, subleaf, cpu; /* @cpu: where; CONTROL_CPUID_ALL: everywhere */
		u32 regs[4];
	} at[CONTROL_CPUIDS];
};

struct rt_control {
	u64 magic;
	u32 version;
	u32 flags;
	s32 segment_fd;  /* memfd with struct counter_segment */
	s32 rt_fd;       /* anyperf-rt itself, O_PATH, for the next execve */
	s32 exe_fd;      /* the ELF file to run, or -1: open `exe` */
	s32 interp_fd;   /* its program interpreter, or -1 */
	s32 session_fd;  /* socket to the session, or -1 */
	u32 meter;       /* index of the process's meter page, or ~0: take one */
	u32 execs;       /* how many programs the process was before */
	u32 seccomp_len; /* bytes of the inherited seccomp filters behind this structure */
	u32 seccomp_mode;
	u32 run;         /* of the process, as in struct meter; abi/runs.h */
	u32 mdwe;        /* PR_MDWE_ bits of the program */
	s32 images_fd;   /* what is translated: a folder, or with keeper_fd a memfd; or -1 */
	u32 images_root; /* the process that the tree began with; 0: this one */
	s32 keeper_fd;   /* the socket of tree-images.h, or -1 */
	u32 watch;       /* enum wire_watch, of a program that is sampled; trace.h */
	struct model_place place;
	u64 images_seed; /* where all of the tree has its files; 0: it is to be drawn */
	u64 form;        /* sample_form() of the program before */
	u64 ignored;     /* signals, as a mask of the kernel's */
	u64 affinity;    /* of a deterministic run with --cpus: where the process may run */
	u64 random_key;  /* of a deterministic run: what its random numbers are made from */
	u64 tsc;         /* and its time stamp counter, without what the meter counts */
	struct {
		u64 cur, max;
	} limits[2];      /* of addresses and of data; rt/task/limits.h */
	u64 perf_fds[17]; /* which descriptors were perf events; rt/perf/perf-guest.h */
	struct control_cpuid cpuid;
	struct run_config config;
	char comm[16];
	char exe[CONTROL_PATH];    /* what /proc/self/exe says; LAUNCH: what to run */
	char execfn[CONTROL_PATH]; /* AT_EXECFN */
};

#endif
