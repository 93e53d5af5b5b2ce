/*
 * PURPOSE: where the threads of an exact profile have their words (abi/path-profile.h): memory of
 * the counter segment, which outlives them. Each thread has pages of its own, and each program that
 * a process becomes, with all that share its memory, a space.
 */
#ifndef RT_TASK_PATH_PAGES_H
#define RT_TASK_PATH_PAGES_H

#include "rt/task/thread.h"

/* Whether the run wants an exact profile. Constant once there is a segment. */
bool paths_wanted(void);

/* What code always counts by: the translator's mask. */
u64 paths_mask(void);

/* Gives the thread that lies in @t->area, or will, new pages of words. 0 or -errno. */
must_check int paths_map(struct thread *t);

/*
 * A new program, or a forked one in the child: describes its paths in a space of its own. Ends the
 * process without memory.
 */
void paths_new_space(struct thread *t);

/* The same, unless the program has one. */
void paths_need_space(struct thread *t);

/*
 * The guest has mapped code, which nobody has executed there yet: what is described from here on
 * may be of another file than what was described before. Under the lock of mm.
 */
void paths_mark(void);

/* The space that describes the program's paths; NULL: there is none. */
const struct path_space *paths_space(void);

/* The next index of a thread in the segment; PATH_THREADS: there is none. */
u32 paths_take_thread(void);
u32 paths_space_index(void);

/* Says whose words they are, if there are any: once the session has told what it calls @t. */
void paths_begin(struct thread *t);

#endif
