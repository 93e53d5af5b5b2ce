/*
 * PURPOSE: text for the guest world: a small printf into the caller's buffer, and lines on stderr.
 * Nothing is allocated or locked; a line is one write(2), so lines of several threads do not mix.
 */
#ifndef SYS_FMT_H
#define SYS_FMT_H

#include <stdarg.h>

#include "base/types.h"

/*
 * %s %c %d %u %x with an optional width (zero-padded if it begins with 0) and an optional l for 64
 * bits, %p, %%. Returns the length that the whole text has, as snprintf does; @buf is always
 * terminated if @size is not 0.
 */
size_t fmt(char *buf, size_t size, const char *format, ...) printf_like(3, 4);
size_t fmt_va(char *buf, size_t size, const char *format, va_list args);

/* One line (at most 1,000 bytes) to file descriptor 2; the newline is the caller's. */
void say(const char *format, ...) printf_like(1, 2);

/*
 * The last words of a runtime that cannot go on through no fault of its own code: a line on stderr
 * beginning "anyperf: ", then exit_group(125).
 */
__attribute__((noreturn, cold)) void die(const char *format, ...) printf_like(1, 2);

#endif
