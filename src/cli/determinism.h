/*
 * PURPOSE: `--deterministic` of `anyperf run` and `anyperf stat`: its options, and what is said of
 * it afterwards. The runtime carries it out (rt/deterministic/deterministic-run.h).
 */
#ifndef CLI_RUN_DETERMINISTIC_H
#define CLI_RUN_DETERMINISTIC_H

#include <stdio.h>

#include <anyperf/machine.h>

#include "cli/cmd.h"
#include "cli/json.h"

/* Part of a command's options; strings are borrowed from argv. */
struct deterministic_opts {
	bool on;
	long seed;
	long cpus;       /* 0: the machine's */
	const char *cpu; /* a word of deterministic_cpu_words; NULL: host */
};

/*
 * The rows of a command's table; @type is its struct of options, @field a deterministic_opts in it.
 */
#define DETERMINISTIC_OPTIONS(type, field)                                                         \
	{OPTION_FLAG,                                                                              \
	 0,                                                                                        \
	 "deterministic",                                                                          \
	 .offset = offsetof(type, field.on),                                                       \
	 .help = "fix what varies between runs: addresses, random numbers, time stamp counter",    \
	 .more = "What cannot be fixed is named below the counts if the programs made use of "     \
		 "it: process ids, the wall clock, the interleaving of threads, I/O, signals. If " \
		 "nothing is named, every run retires the same instructions."},                    \
		{OPTION_INT,                                                                       \
		 0,                                                                                \
		 "seed",                                                                           \
		 "N",                                                                              \
		 .offset = offsetof(type, field.seed),                                             \
		 .min = 0,                                                                         \
		 .max = 0x7fffffffffffffff,                                                        \
		 .help = "with --deterministic: what random numbers are made from (default 0)"},   \
		{OPTION_INT,                                                                       \
		 0,                                                                                \
		 "cpus",                                                                           \
		 "N",                                                                              \
		 .offset = offsetof(type, field.cpus),                                             \
		 .min = 1,                                                                         \
		 .max = 64,                                                                        \
		 .help = "with --deterministic: how many CPUs programs see",                       \
		 .more = "Without it they see the machine's, and CPUs are named when a program "   \
			 "asks."},                                                                 \
	{                                                                                          \
		OPTION_STR, 0, "cpu-features", "host|x86-64-v2|x86-64-v3",                         \
			.offset = offsetof(type, field.cpu), .words = deterministic_cpu_words,     \
			.help = "with --deterministic: the CPU that CPUID shows",                  \
			.more = "A level, instead of the default, host, is one CPU with its "      \
				"features and with caches of a fixed size, the same on every "     \
				"machine that has them, of Intel's or AMD's. So the C library "    \
				"makes the same choices."                                          \
	}

extern const char *const deterministic_cpu_words[];

/* Holds the options against each other: 0, or -1 after saying what is wrong. */
must_check int deterministic_check(const struct command *cmd,
				   const struct deterministic_opts *opts);

/* Likewise, with the CPU that --cpu-model shows; NULL: there is none. */
must_check int deterministic_check_model(const struct command *cmd,
					 const struct deterministic_opts *opts, const char *model);

/*
 * What guests of @m have made use of so far; the first program ended with @status, as wait(2) has
 * it.
 */
u32 deterministic_sources(struct ap_machine *m, int status);

/* Sentences, without line breaks. */
void deterministic_text(u64 seed, u32 nondet, char *text, size_t size);

/* The names of what @nondet has, with commas between them. */
void deterministic_names(u32 nondet, char *text, size_t size);

/* The member "not_fixed". */
void deterministic_not_fixed_json(struct json *j, u32 nondet);

/* The member "deterministic". */
void deterministic_json(struct json *j, u64 seed, u32 nondet);

#endif
