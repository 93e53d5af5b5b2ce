/*
 * PURPOSE: memory that is shared with guests: a memfd that nobody can resize, so that neither end
 * can be hit by SIGBUS.
 */
#ifndef SESSION_SEALED_MEMORY_H
#define SESSION_SEALED_MEMORY_H

#include "base/types.h"

/* A new one of @size bytes, all zero: its descriptor, CLOEXEC, or -errno. */
int must_check sealed_memory_new(const char *name, size_t size);
/*
 * Is @fd, which somebody sent, such memory, of at least @size bytes? What could be made shorter
 * would end who has mapped it by SIGBUS.
 */
bool sealed_memory_is(int fd, size_t size);
/* The first again, mapped at *@at. */
int must_check sealed_memory_map(const char *name, size_t size, void **at);

#endif
