/*
 * PURPOSE: the few string and memory functions that the guest world needs, with the meaning that
 * C gives them. The compiler itself emits calls of the mem*() ones.
 */
#ifndef SYS_STRING_H
#define SYS_STRING_H

#include "base/types.h"

void *memcpy(void *restrict to, const void *restrict from, size_t len);
void *memmove(void *to, const void *from, size_t len);
void *memset(void *to, int byte, size_t len);
int memcmp(const void *a, const void *b, size_t len);

size_t str_len(const char *s);
int str_cmp(const char *a, const char *b);
bool str_eq(const char *a, const char *b);

/* Whether @s begins with @prefix. */
bool str_starts(const char *s, const char *prefix);

/* The first @c in @s, its end included, or NULL; and the last one. */
char *str_chr(const char *s, char c);
char *str_rchr(const char *s, char c);

/*
 * Copies @s with its NUL into @to of @size bytes. Returns its length, or -ENAMETOOLONG when it did
 * not fit; then @to holds as much as does, terminated.
 */
int str_put(char *to, size_t size, const char *s);

/*
 * Reads an unsigned number in @base (10 or 16) from @s into @value; returns how many characters it
 * took, 0 if there is no digit. Does not look past a u64.
 */
int str_u64(const char *s, u32 base, u64 *value);

#endif
