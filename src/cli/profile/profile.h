/*
 * PURPOSE: the samples of a recording added up by where they were taken: rows of (event, command,
 * object, symbol, line, data), whichever of them are asked for. It keeps rows, not samples.
 *
 * Lifetime: a struct profile that is all zero is empty; profile_release() frees the rows. Names are
 * of the reading's, which must live as long.
 */
#ifndef CLI_PROFILE_PROFILE_H
#define CLI_PROFILE_PROFILE_H

#include <stdio.h>

#include "cli/profile/call-tree.h"
#include "cli/profile/data-view.h"
#include "cli/profile/line-view.h"

enum profile_key {
	PROFILE_COMM = 1 << 0,
	PROFILE_OBJECT = 1 << 1,
	PROFILE_SYMBOL = 1 << 2,
	PROFILE_LINE = 1 << 3, /* of the source */
	PROFILE_DATA = 1 << 4, /* that was accessed */
	PROFILE_PID = 1 << 5,
	PROFILE_TID = 1 << 6,
	PROFILE_CPU = 1 << 7,
};

struct profile_row {
	int event;
	u32 pid, tid, cpu;  /* 0 unless asked for */
	char *comm;         /* owned; NULL unless asked for */
	const char *object; /* NULL unless asked for */
	bool in_full;       /* another row's object has its base name; `data_in_full` likewise */
	bool data_in_full;
	const char *symbol; /* NULL: `addr` instead */
	u64 addr;           /* in the object; the symbol's beginning, if there is one */
	bool kernel;
	const char *file; /* NULL: not asked for, or not known */
	u32 line;
	struct data_place data; /* all zero unless asked for */
	u64 period;             /* of the samples that were taken here */
	u64 samples;            /* how many they are */
	u64 children;           /* the period of those that were here or in what this has called */
	u64 seen;               /* the last sample that was added to `children` */
	u32 nr_group;
	u64 *group;             /* with a group of events: the period of each; owned, else NULL */
	struct call_node *tree; /* owned; NULL: there is none */
	u64 tree_seen;          /* the last sample that was added to it */
};

struct profile {
	unsigned int keys; /* enum profile_key */
	bool children;
	/* Rows that are shown: of this share of all, in percent, at least, and of these names. */
	double least;
	const char *objects, *symbols; /* lists with commas; borrowed; NULL: any */
	enum call_order tree;          /* of each row, not with a group */
	double tree_least;        /* the share of all, in percent, below which it shows nothing */
	u64 ways;                 /* with trees: samples that have a call chain */
	u32 group;                /* not 0: a row is of all events, of which there are so many */
	u32 group_by;             /* the event by which rows are sorted then */
	struct profile_row *rows; /* owned */
	u32 n, room;
	u32 *index; /* a hash table of numbers of rows + 1; owned */
	u32 index_room;
	u64 samples;
	u64 *period; /* of each event; owned */
	u64 *counts; /* samples of each event; owned */
	u32 events;
	struct data_view data_view;
	struct line_view lines;
};

void profile_add(struct profile *p, struct reading *r, const struct data_item *item);

/* By event, then the largest share first; and which objects have to be shown with their folder. */
void profile_sort(struct profile *p);

/* Prints the table of one event, at most @rows of it. */
void profile_print(const struct profile *p, const struct reading *r, int event, u32 rows,
		   FILE *out);

/* Whether it is one of those that are shown. */
bool profile_shows(const struct profile *p, const struct profile_row *row);

/* The same for a group, of all events. */
void profile_print_group(const struct profile *p, const struct reading *r, FILE *out);

/* What stands behind the last slash of a path. */
const char *profile_base_name(const char *path);

double profile_percent(u64 part, u64 whole);

void profile_release(struct profile *p);

#endif
