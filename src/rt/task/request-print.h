/*
 * PURPOSE: the text of VALGRIND_PRINTF, whose format and arguments are the program's.
 */
#ifndef RT_TASK_REQUEST_PRINT_H
#define RT_TASK_REQUEST_PRINT_H

#include "base/types.h"

/*
 * @format with the arguments of @list, the address of a va_list (System V ABI, 3.5.7). Returns how
 * many bytes there are in @buf, which no NUL ends: what has no room is left out, and where the
 * program's memory cannot be read the text says so.
 *
 * Conversions are those of printf(3) but for %a, %n and %ls. %e and %g are as %f, which has 17
 * digits behind the point at most and no numbers from 2^64 on.
 */
size_t request_print(char *buf, size_t size, u64 format, u64 list);

#endif
