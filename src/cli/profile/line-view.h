/*
 * PURPOSE: the source lines of addresses in a recording, from the debug information of the files
 * that were mapped, if they are still those that were recorded.
 *
 * Lifetime: a struct line_view that is all zero is empty; line_view_release() frees all names.
 */
#ifndef CLI_PROFILE_LINE_VIEW_H
#define CLI_PROFILE_LINE_VIEW_H

#include "cli/reading.h"

struct line_object;

struct line_view {
	struct line_object *objects; /* owned */
	/* The last one that was found: samples of an instruction stand together. */
	u32 pid, line;
	u64 addr, generation;
	const char *file;
};

/* Of user mode. *@file is NULL and *@line 0 where nothing is known. */
void line_view_find(struct line_view *v, struct reading *r, u32 pid, u64 addr, const char **file,
		    u32 *line);
void line_view_release(struct line_view *v);

#endif
