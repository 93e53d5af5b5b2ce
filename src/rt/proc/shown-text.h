/*
 * PURPOSE: the text of a file that the guest is shown in place of the kernel's: written piece by
 * piece into memory of the runtime, handed over as a descriptor at the end.
 */
#ifndef RT_PROC_SHOWN_TEXT_H
#define RT_PROC_SHOWN_TEXT_H

#include "base/types.h"

/* All zero at first. */
struct shown_text {
	char *at;
	size_t used, room;
	bool lost; /* there was no memory for all of it */
};

/* Appends; the memory is the text's. */
void shown_put(struct shown_text *x, const char *s, size_t len);
/* Without handing it over. */
void shown_drop(struct shown_text *x);
/*
 * The lowest free descriptor, out of which the text is read; or -errno. The text is gone in either
 * case. @name: of the memfd that it is, unless the guest's limit for files is too low for one.
 */
long shown_open(struct shown_text *x, const char *name, bool cloexec);

#endif
