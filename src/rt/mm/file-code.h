/*
 * PURPOSE: what a file has where the memory that was mapped from it has something else. A uprobe of
 * the machine puts a breakpoint instruction into the pages of every process that has mapped the
 * file, ours too, whose code is not executed there but read.
 */
#ifndef RT_MM_FILE_CODE_H
#define RT_MM_FILE_CODE_H

#include "base/types.h"

/*
 * Of struct dbt_ops. The byte at @pc in the file of its mapping; false: it is not mapped from a
 * file, or that cannot be read.
 */
bool file_code_byte(u64 pc, u8 *byte);

#endif
