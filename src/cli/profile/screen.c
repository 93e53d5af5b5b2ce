/*
 * The few declarations are written here after ncurses' stable interface (ABI 6), so that building
 * does not need its header.
 */
#include "cli/profile/screen.h"

#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ncurses_window WINDOW;
typedef struct ncurses_screen SCREEN;

#define ATTR_REVERSE (1u << 18)
#define ATTR_BOLD    (1u << 21)
#define KEY_CTRL_C   3
#define KEY_CTRL_L   12

enum {
	KEY_NONE = -1,
	KEY_DOWN = 0402,
	KEY_UP = 0403,
	KEY_HOME = 0406,
	KEY_NPAGE = 0522,
	KEY_PPAGE = 0523,
	KEY_END = 0550,
	KEY_RESIZE = 0632
};

struct ncurses {
	SCREEN *(*newterm)(const char *type, FILE *out, FILE *in);
	void (*delscreen)(SCREEN *screen);
	int (*endwin)(void);
	int (*cbreak)(void);
	int (*noecho)(void);
	int (*curs_set)(int visible);
	int (*keypad)(WINDOW *w, bool on);
	int (*nodelay)(WINDOW *w, bool on);
	int (*wgetch)(WINDOW *w);
	int (*werase)(WINDOW *w);
	int (*clearok)(WINDOW *w, bool on);
	int (*wmove)(WINDOW *w, int y, int x);
	int (*waddnstr)(WINDOW *w, const char *text, int n);
	int (*wattr_on)(WINDOW *w, unsigned int attr, void *opts);
	int (*wattr_off)(WINDOW *w, unsigned int attr, void *opts);
	int (*wrefresh)(WINDOW *w);
	int (*setupterm)(const char *type, int fd, int *problem);
	char *(*tigetstr)(const char *capability);
	int (*getmaxy)(const WINDOW *w);
	int (*getmaxx)(const WINDOW *w);
	WINDOW **stdscr;
};

struct screen {
	void *lib;
	struct ncurses f;
	SCREEN *screen;
	FILE *keys;   /* owned */
	char *text;   /* owned; NULL: nothing shown yet */
	char *status; /* owned */
	u32 fixed, lines;
	u32 top; /* of the lines behind the fixed ones the first that is shown */
};

static bool resolve(struct screen *s)
{
	static const struct {
		const char *name;
		size_t at;
	} wanted[] = {
#define WANT(name) {#name, offsetof(struct ncurses, name)}
		WANT(newterm),   WANT(delscreen), WANT(endwin),   WANT(cbreak),   WANT(noecho),
		WANT(curs_set),  WANT(keypad),    WANT(nodelay),  WANT(wgetch),   WANT(werase),
		WANT(clearok),   WANT(wmove),     WANT(waddnstr), WANT(wattr_on), WANT(wattr_off),
		WANT(wrefresh),  WANT(getmaxy),   WANT(getmaxx),  WANT(stdscr),   WANT(tigetstr),
		WANT(setupterm),
#undef WANT
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		/* In the library or in libtinfo, which it brings. */
		void *found = dlsym(s->lib, wanted[i].name);

		if (!found)
			return false;
		memcpy((char *)&s->f + wanted[i].at, &found, sizeof(found));
	}
	return true;
}

/* ncurses also takes terminals that only print. */
static bool can_place(const struct screen *s)
{
	const char *cup;
	int problem;

	if (s->f.setupterm(NULL, STDOUT_FILENO, &problem))
		return false;
	cup = s->f.tigetstr("cup");
	return cup && cup != (const char *)-1;
}

struct screen *screen_open(int keys)
{
	struct screen *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lib = dlopen("libncursesw.so.6", RTLD_NOW | RTLD_LOCAL);
	if (!s->lib || !resolve(s) || !can_place(s))
		goto fail;
	s->keys = fdopen(keys, "r");
	if (!s->keys)
		goto fail;
	setlocale(LC_CTYPE, "");
	s->screen = s->f.newterm(NULL, stdout, s->keys);
	if (!s->screen)
		goto fail;
	s->f.cbreak();
	s->f.noecho();
	(void)s->f.curs_set(0);
	s->f.keypad(*s->f.stdscr, true);
	s->f.nodelay(*s->f.stdscr, true);
	return s;
fail:
	screen_close(s);
	return NULL;
}

void screen_close(struct screen *s)
{
	if (!s)
		return;
	if (s->screen) {
		s->f.endwin();
		s->f.delscreen(s->screen);
	}
	if (s->keys)
		fclose(s->keys);
	if (s->lib)
		dlclose(s->lib);
	free(s->text);
	free(s->status);
	free(s);
}

u32 screen_rows(const struct screen *s, u32 fixed)
{
	int lines = s->f.getmaxy(*s->f.stdscr);

	return lines > (int)fixed + 1 ? (u32)lines - fixed - 1 : 1;
}

static void put_line(struct screen *s, int y, const char *line, unsigned int attr)
{
	int width = s->f.getmaxx(*s->f.stdscr), len = (int)strcspn(line, "\n");

	s->f.wmove(*s->f.stdscr, y, 0);
	s->f.wattr_on(*s->f.stdscr, attr, NULL);
	s->f.waddnstr(*s->f.stdscr, line, len < width ? len : width);
	s->f.wattr_off(*s->f.stdscr, attr, NULL);
}

static void draw(struct screen *s)
{
	const char *line = s->text ? s->text : "";
	u32 rows = screen_rows(s, s->fixed), n = 0;

	if (s->top + rows > s->lines)
		s->top = s->lines > rows ? s->lines - rows : 0;
	s->f.werase(*s->f.stdscr);
	while (*line) {
		const char *end = strchr(line, '\n');

		if (n < s->fixed)
			put_line(s, (int)n, line, ATTR_BOLD);
		else if (n - s->fixed >= s->top && n - s->fixed - s->top < rows)
			put_line(s, (int)(n - s->top), line, 0);
		n++;
		line = end ? end + 1 : "";
	}
	if (s->status)
		put_line(s, s->f.getmaxy(*s->f.stdscr) - 1, s->status, ATTR_REVERSE);
	s->f.wrefresh(*s->f.stdscr);
}

static char *replace(char *old, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return old;
	free(old);
	return copy;
}

void screen_show(struct screen *s, const char *text, u32 fixed, const char *status)
{
	s->text = replace(s->text, text);
	s->status = replace(s->status, status);
	s->fixed = fixed;
	s->lines = 0;
	for (const char *p = s->text; p && (p = strchr(p, '\n')); p++)
		s->lines++;
	s->lines = s->lines > fixed ? s->lines - fixed : 0;
	draw(s);
}

static enum screen_key move_to(struct screen *s, s64 top)
{
	s->top = top > 0 ? (u32)top : 0;
	draw(s);
	return SCREEN_MOVE;
}

enum screen_key screen_key(struct screen *s)
{
	u32 rows = screen_rows(s, s->fixed);
	int key = s->f.wgetch(*s->f.stdscr);

	switch (key) {
	case KEY_NONE: return SCREEN_NONE;
	case 'q':
	case 'Q':
	case KEY_CTRL_C: return SCREEN_QUIT;
	case ' ':
	case 'p': return SCREEN_PAUSE;
	case 'e':
	case '\t': return SCREEN_NEXT;
	case 'h':
	case '?': return SCREEN_HELP;
	case 'k':
	case KEY_UP: return move_to(s, (s64)s->top - 1);
	case 'j':
	case KEY_DOWN: return move_to(s, (s64)s->top + 1);
	case KEY_PPAGE: return move_to(s, (s64)s->top - rows);
	case KEY_NPAGE: return move_to(s, (s64)s->top + rows);
	case KEY_HOME: return move_to(s, 0);
	case KEY_END: return move_to(s, s->lines);
	case KEY_CTRL_L: s->f.clearok(*s->f.stdscr, true); return move_to(s, s->top);
	case KEY_RESIZE:
	default: return move_to(s, s->top);
	}
}
