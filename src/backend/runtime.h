/*
 * PURPOSE: finds the programs without which there is no virtual PMU: anyperf-rt, inside which a
 * measured program runs, and anyperf-session, which plays the kernel for it.
 */
#ifndef BACKEND_RUNTIME_H
#define BACKEND_RUNTIME_H

#include <stddef.h>

#include "base/types.h"

/*
 * Opens program @name, O_PATH and CLOEXEC. It is beside the one that ANYPERF_RUNTIME names, or in
 * folder @folder of the build directory that our own program or library is in, or where it is
 * installed. A descriptor, the caller's; or -errno with a sentence in @why, cut to @len bytes.
 */
int must_check ap__runtime_open(const char *folder, const char *name, char *why, size_t len);

/*
 * Whether the runtime can be executed and is one of ours, of this version, which else is found out
 * when it is started. 0, or -errno with a sentence in @why.
 */
int must_check ap__runtime_check(char *why, size_t len);

#endif
