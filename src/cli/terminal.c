#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cli/help/help.h"

struct terminal terminal_of(FILE *stream)
{
	struct terminal t = {.width = HELP_WIDTH};
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize window;

	if (ioctl(fileno(stream), TIOCGWINSZ, &window))
		return t;
	t.colour = !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
	if (window.ws_col >= 40)
		t.width = window.ws_col;
	return t;
}
