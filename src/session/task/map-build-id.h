/*
 * PURPOSE: the build id of a file that a guest has mapped, for MMAP2 records with attr.build_id
 * [REC-09].
 */
#ifndef SESSION_TASK_MAP_BUILD_ID_H
#define SESSION_TASK_MAP_BUILD_ID_H

#include <sys/types.h>

#include "elf/build-id.h"

/*
 * Of the file of that name, device and inode in /proc/@pid/maps. False: it has none, is no ELF file
 * any more, or is on a file system where reading could wait for another process.
 */
bool map_build_id(pid_t pid, const char *name, u32 maj, u32 min, u64 ino, struct elf_build_id *id);

#endif
