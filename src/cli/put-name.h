/*
 * PURPOSE: names that are the measured program's, or the file's: of threads, files, functions and
 * events. They neither steer a terminal nor begin a row.
 */
#ifndef CLI_PUT_NAME_H
#define CLI_PUT_NAME_H

#include <stdio.h>

/* As printf("%*s"), with `?` for each byte of control characters. */
void put_name(FILE *out, int width, const char *name);

#endif
