/*
 * PURPOSE: what guests are shown of the machine: the wire_view in the counter segment, and a
 * directory that stands in for the root of sysfs's PMUs and perf's sysctls.
 *
 * Ownership: the directory is made when somebody first looks, locked as long as the session lives,
 * and removed with it.
 */
#ifndef SESSION_HOST_VIEW_H
#define SESSION_HOST_VIEW_H

#include "base/types.h"

struct session;
struct wire_view;

struct shown {
	struct wire_view *view; /* in the segment's first page */
	char root[256];         /* the directory; "": not made */
	int dir;                /* it, locked while it is used */
	int place;              /* the directory that it is in */
};

/* Makes the directory; does nothing if it is there. */
int must_check view_make(struct session *s, char *why, size_t len);
void view_remove(struct session *s);
/* The file @path, as shown, says @text from now on. */
void view_change(struct session *s, const char *path, const char *text);

#endif
