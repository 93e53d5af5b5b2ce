/*
 * PURPOSE: the text of /proc/PID/maps as a guest is to see it: without the runtime's mappings, with
 * the guest's own protections, mappings that differ only because of the runtime put together or
 * apart again. Pure, so that it can be tested on text.
 */
#ifndef RT_MM_MAPS_H
#define RT_MM_MAPS_H

#include "base/types.h"

struct maps_filter {
	/* Set by the caller. */
	void (*put)(void *to, const char *text, size_t len);
	void *to;
	/*
	 * The guest's protection (PROT_* bits) of the code at @start, or -1 if the kernel's is
	 * right; lowers *@end to where that ends. NULL: the kernel's is right everywhere.
	 */
	int (*prot_of)(const void *of, u64 start, u64 *end);
	const void *of;
	u64 code_start, code_end; /* of its code cache */
	bool whole; /* mappings are followed by attributes: do not divide or join them */

	/* The line not yet put out, since the next one may continue it. */
	bool hidden, joinable;
	u64 start, end, offset;
	char perm[5];
	char rest[4400];
};

/* Takes the next line, NUL in place of the newline. */
void maps_line(struct maps_filter *f, const char *line);
/* Puts out what is left. */
void maps_end(struct maps_filter *f);

#endif
