/*
 * PURPOSE: a text on the whole terminal that is replaced every now and then, and keys, by ncursesw,
 * which is loaded when a screen is opened: other commands must not pay for it.
 *
 * Lifetime: open .. close; the terminal is the screen's meanwhile, and as it was afterwards.
 */
#ifndef CLI_PROFILE_SCREEN_H
#define CLI_PROFILE_SCREEN_H

#include "base/types.h"

struct screen;

enum screen_key {
	SCREEN_NONE,
	SCREEN_QUIT,
	SCREEN_PAUSE,
	SCREEN_NEXT,
	SCREEN_MOVE, /* up or down: the screen has moved already */
	SCREEN_HELP,
};

/* On stdout, with keys from @keys. NULL: no ncursesw, or it does not know the terminal. */
struct screen *screen_open(int keys);
void screen_close(struct screen *s);

/* So many lines fit below @fixed lines and above the last. */
u32 screen_rows(const struct screen *s, u32 fixed);

/*
 * Shows @text, whose first @fixed lines stay when the rest is moved, and @status in the last line.
 */
void screen_show(struct screen *s, const char *text, u32 fixed, const char *status);

/* A key that was pressed; SCREEN_NONE: none more. Does not wait. */
enum screen_key screen_key(struct screen *s);

#endif
