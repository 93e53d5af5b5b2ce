/*
 * PURPOSE: the trace of a thread: which paths through translated code it has taken, one after the
 * other. With the descriptions of paths (path-profile.h) it says every instruction that was
 * executed, in order, and with it what each branch did: the next instruction is where it went.
 * Shapes only.
 *
 * A trace is words of 32 bits. A word below PATH_WORDS is a path that was taken, all of it unless a
 * part of it is taken back. Others begin an entry of several words, of which the first says what it
 * is; such an entry is never torn by a hand-over.
 *
 * Where accesses of memory are traced as well there is a second list, of slots: for each path or
 * part of one, in order, the slots of its instructions (struct path_accesses). What BACK says has
 * not retired has none, and other entries have none.
 */
#ifndef ABI_PATH_TRACE_H
#define ABI_PATH_TRACE_H

#include "abi/path-profile.h"

#define PATH_TRACE_SIZE (32u << 10) /* bytes of a thread's buffer */
/* And of that of slots: for as many paths as fit there, and one that is going on. */
#define PATH_SLOTS_SIZE (((u64)PATH_TRACE_SIZE / 4 + 1) * PATH_SLOTS_MAX * 8)

#define PATH_TRACE_KIND (0xffu << 24)
/*
 * Instructions [from, upto) of a block have retired: | from << 8 | upto; then path_entry.block. The
 * thread has left a path early, and goes on somewhere else.
 */
#define PATH_TRACE_PART (0x81u << 24)
/*
 * The same, but they have not, though the path that was told last has them as its end: it ends
 * before. Comes right behind the path.
 */
#define PATH_TRACE_BACK (0x82u << 24)
/* One instruction, of no path; then its pc, the lower half first. */
#define PATH_TRACE_INSN (0x83u << 24)
/* That instruction has not retired, and is to be executed again: a system call. As INSN. */
#define PATH_TRACE_AGAIN (0x84u << 24)

#define PATH_TRACE_ENTRY 3u /* words of the longest */

#endif
