/*
 * PURPOSE: the machine whose model counts, on the command line: the option that names it, which
 * events it counts, and how that is said. doc/model.md.
 */
#ifndef CLI_MODELED_EVENTS_H
#define CLI_MODELED_EVENTS_H

#include "cli/cmd.h"
#include "cli/report/report.h"

/* The row of a command's table; @type is its struct of options, @field a const char * in it. */
#define MACHINE_OPTION(type, field, without, does)                                                    \
	{                                                                                             \
		OPTION_STR, 0, "machine", "NAME|FILE|none",                                           \
			.offset = offsetof(type, field), .complete = COMPLETE_MACHINE,                \
			.help = does,                                                                 \
			.more = "Cycles, cache misses and branch misses of the virtual PMU are "      \
				"those of a model. It runs when somebody counts such an event; "      \
				"to see all of a program makes that 10 to 120 times slower. " without \
				" `anyperf machine` lists machines, and shows what a FILE can "       \
				"say. `host` is this one. With `none` such events are refused."       \
	}

extern const char *const model_beside_words[];

/* Likewise, of a command that counts. */
#define MODEL_BESIDE_OPTION(type, field)                                                         \
	{                                                                                        \
		OPTION_STR, 0, "model-beside", "no|auto|yes",                                    \
			.offset = offsetof(type, field), .words = model_beside_words,            \
			.help = "whether the model of a machine runs on a second CPU",           \
			.more = "The program then runs on while what it has done is simulated. " \
				"`auto`, the default: if the program may use another CPU, and "  \
				"there is much to simulate. What is counted is the same either " \
				"way. Who joins a session has what that has."                    \
	}

#define MODEL_WINDOWS_OPTION(type, field, without)                                                                \
	{                                                                                                         \
		OPTION_STR, 0, "model-windows", "no|auto|N/EVERY",                                                \
			.offset = offsetof(type, field),                                                          \
			.help = "estimate what the model counts from parts of the program",                       \
			.more = "The model sees N instructions in a row of each EVERY, as in "                    \
				"50K/10M, after the first two million of each thread; what it "                   \
				"counts is multiplied. `auto`, the default: fewer of them the "                   \
				"longer the program runs, and of a process's children behind "                    \
				"the first five only some, which count for the others. That "                     \
				"costs a fraction, and is the same each time. With `no` it "                      \
				"sees all, as it does while somebody counts a process of his "                    \
				"own, wants each sample of a modeled event or counts "                            \
				"floating-point operations. doc/model.md says how far off estimates are." without \
	}

/* 0, or -1 after saying what is wrong with --model-windows @text; NULL is fine. */
int model_windows_check(const struct command *cmd, const char *text);

/* Of enum ap_virtual_flags. */
unsigned int model_beside_flags(const char *word);

/* 0, or -1 after saying what is wrong with --machine @name; NULL is fine. */
int modeled_check(const struct command *cmd, const char *name);

/* Of a virtual PMU: is the event counted by the model, not by the translator? */
bool modeled_event(const struct perf_event_attr *attr);

/* Has the model counted any of @r's events? */
bool modeled_any(const struct report *r);

/*
 * "modeled: NAME: cycles, branch-misses", as far as it fits, and what estimates are: returns @buf.
 */
char *modeled_note(const struct report *r, const struct report_style *style, char *buf,
		   size_t size);

#endif
