#include "cli/put-name.h"

#include <stdlib.h>
#include <string.h>

/*
 * How many bytes of a control character begin here. Of UTF-8 those behind ASCII count too, U+0080
 * to U+009F, which steer terminals as well.
 */
static int control_len(const char *at)
{
	unsigned char c = (unsigned char)at[0], next;

	if (c < ' ' || c == 0x7f)
		return 1;
	if (c != 0xc2)
		return 0;
	next = (unsigned char)at[1];
	return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

void put_name(FILE *out, int width, const char *name)
{
	int blanks = width ? abs(width) - (int)strlen(name) : 0, n;
	const char *p = name;

	if (width > 0 && blanks > 0)
		fprintf(out, "%*s", blanks, "");
	for (;;) {
		const char *plain = p;

		for (n = 0; *p && !(n = control_len(p)); p++)
			;
		fwrite(plain, 1, (size_t)(p - plain), out);
		if (!*p)
			break;
		fputs(n == 2 ? "??" : "?", out);
		p += n;
	}
	if (width < 0 && blanks > 0)
		fprintf(out, "%*s", blanks, "");
}
