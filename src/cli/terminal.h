/* PURPOSE: what the stream that we print to is: a terminal, how wide, and whether to colour. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

#include "base/types.h"

struct terminal {
	int width;   /* columns to wrap at; a readable default if it is no terminal */
	bool colour; /* it is a terminal, and NO_COLOR (https://no-color.org) is not set */
};

struct terminal terminal_of(FILE *stream);

#endif
