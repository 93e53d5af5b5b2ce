/*
 * PURPOSE: a recording as the commands that show it read it: records in the order of time, with
 * what they tell of processes and mappings kept in a view of symbols, and filtered.
 *
 * Lifetime: open .. close.
 */
#ifndef CLI_READING_H
#define CLI_READING_H

#include "cli/cmd.h"
#include "data/read-parts.h"
#include "data/reader.h"
#include "data/rounds.h"
#include "sym/symbol-view.h"
#include "sym/unwind.h"

/* Which samples are wanted; all zero: all. */
struct reading_filter {
	const char *input; /* a path, "-", or NULL: stdin if it is a pipe, else perf.data */
	const char *time;  /* "START,STOP" in seconds, either may be missing */
	const char *comms, *pids, *tids, *cpus; /* lists; NULL: any */
};

#define READING_FILTER_OPTIONS(type, member)                                                            \
	{OPTION_STR,                                                                                    \
	 'i',                                                                                           \
	 "input",                                                                                       \
	 "FILE",                                                                                        \
	 .offset = offsetof(type, member.input),                                                        \
	 .complete = COMPLETE_FILE,                                                                     \
	 .help = "read FILE instead of perf.data; `-`: from stdin"},                                    \
		{OPTION_STR,                                                                            \
		 0,                                                                                     \
		 "time",                                                                                \
		 "START,STOP",                                                                          \
		 .offset = offsetof(type, member.time),                                                 \
		 .help = "only what happened between these times, in seconds; either may be left out"}, \
		{OPTION_STR,                                                                            \
		 'c',                                                                                   \
		 "comms",                                                                               \
		 "NAMES",                                                                               \
		 .offset = offsetof(type, member.comms),                                                \
		 .help = "only threads of these names, separated by commas"},                           \
		{OPTION_STR,                                                                            \
		 0,                                                                                     \
		 "pid",                                                                                 \
		 "PIDS",                                                                                \
		 .offset = offsetof(type, member.pids),                                                 \
		 .help = "only these processes"},                                                       \
		{OPTION_STR,                                                                            \
		 0,                                                                                     \
		 "tid",                                                                                 \
		 "TIDS",                                                                                \
		 .offset = offsetof(type, member.tids),                                                 \
		 .help = "only these threads"},                                                         \
	{                                                                                               \
		OPTION_STR, 'C', "cpu", "CPUS", .offset = offsetof(type, member.cpus),                  \
						.help = "only these CPUs, as in 0-3,8"                  \
	}

struct reading_range {
	u64 from, to;
};

/* Numbers out of a list of them and of ranges. */
struct reading_set {
	struct reading_range *range; /* owned; NULL: any */
	u32 n;
};

/* What samples must have, so that an option can be followed. */
struct reading_need {
	u64 any_of;          /* PERF_SAMPLE_*: one of these */
	const char *option;  /* "--cpu" */
	const char *part;    /* "CPU" */
	const char *instead; /* a sentence on what records it; NULL: there is nothing to say */
};

#define READING_NEEDS 16

enum reading_order {
	READING_AS_IT_STANDS, /* and not filtered */
	READING_BY_TIME,
	READING_LIVE, /* by time within each round, whose end comes as DATA_FINISHED_ROUND */
};

struct reading {
	const struct command *cmd;
	struct reading_filter filter;
	struct reading_set pids, tids, cpus;
	u64 from, to; /* ns */
	int fd;
	struct data_reader *data;
	struct data_rounds rounds;
	struct data_parts parts;
	bool is_part; /* the last record was a part of a sample */
	struct sym_view *view;
	enum reading_order order;
	bool data_maps; /* set by the caller: mappings are wanted that are not executable */
	bool ids_known;
	struct reading_need need[READING_NEEDS];
	u32 nr_needs;
	u32 events_seen;               /* that have all of them */
	bool refused;                  /* another one has not, which was said: no more is read */
	u64 lost;                      /* as records have told so far */
	char *arch;                    /* owned; NULL: not asked for yet */
	char *machine, *windows;       /* likewise */
	struct sym_unwinder *unwinder; /* owned; NULL: not needed yet, or not to be had */
	bool unwinder_tried;
	bool unwound; /* `frames` are of the last record */
	u32 nr_frames;
	u64 frames[SYM_UNWIND_DEPTH];
};

/* 0, or -1 after saying why not. */
must_check int reading_open(struct reading *r, const struct command *cmd,
			    const struct reading_filter *filter, enum reading_order order);
void reading_close(struct reading *r);

/* Before the first record is read. Not in a READING_AS_IT_STANDS, of which nothing is asked. */
void reading_needs(struct reading *r, struct reading_need need);

/*
 * The next record that is wanted: 1, or 0 at the end. What ends before is said, and what an event
 * lacks that is needed, with `refused`.
 */
must_check int reading_next(struct reading *r, struct data_item *item);

/* Whether a list with commas has the name; NULL has all, and NULL is no name of any other. */
bool reading_lists(const char *list, const char *name);

/* At the end: how many samples are missing, if any are, and why; and whose functions are. */
void reading_say_losses(const struct reading *r);

/* The thread's name, or ":TID" in @room (16 bytes). */
const char *reading_comm(const struct reading *r, const struct data_item *item, char *room);

/* Where an address of a sample is, in the kernel or in its process. */
void reading_find(const struct reading *r, const struct data_item *item, u64 addr, bool kernel,
		  struct sym_place *place);

/* How many occurrences a sample stands for: as it says, or as its event was to be sampled. */
u64 reading_period(const struct reading *r, const struct data_item *item);

/* Whether the sample was taken in the kernel. */
bool reading_in_kernel(const struct data_item *item);

/*
 * Goes over a call chain: the next address and its mode. False at its end; the walk is all zero at
 * first. Begins in the mode of the sample. What the kernel has followed comes first, then the user
 * stack, if the sample has a copy of that to be followed now. A record of the calls that are open
 * (`record -g=lbr`) stands for the user part: where the last one went, then each call, as perf
 * shows it.
 */
struct reading_walk {
	u64 at, call;
	u32 frame, depth;
	bool kernel, guest;
	bool returns; /* a call returns to the address, and the byte before it is the call's */
};
bool reading_walk_next(struct reading *r, const struct data_item *item, struct reading_walk *w,
		       u64 *addr);

/* Whether a walk would find anything. */
bool reading_has_chain(struct reading *r, const struct data_item *item);

/* The machine that was recorded, as uname(1) calls it; "" if the file does not say. */
const char *reading_arch(struct reading *r);

/* The machine of whose model events were sampled; NULL: the file does not say, or of none. */
const char *reading_machine(struct reading *r);
/* The windows in which that saw what was sampled at a frequency; NULL: it saw all. */
const char *reading_windows(struct reading *r);

/* What an event is called; "unknown" if the file has lost that. */
const char *reading_event_name(const struct reading *r, int event);

#endif
