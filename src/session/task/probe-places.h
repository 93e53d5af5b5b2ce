/*
 * PURPOSE: probes of files: which file a path names, and where an instruction of it is mapped in a
 * guest. A runtime is told of addresses alone.
 */
#ifndef SESSION_TASK_PROBE_PLACES_H
#define SESSION_TASK_PROBE_PLACES_H

#include "base/list.h"
#include "base/types.h"

struct guest_process;
struct probe_file;
struct task;

/* Of struct probe_host; @ctx is the session. */
int probe_file_find(void *ctx, struct task *opener, const char *path, u64 offset,
		    struct probe_file *file);

/* Whether there is one of a file among @probes, by their `armed`. */
bool probes_of_files(const struct list *probes);
/* Says of each of those where it is now. */
void probes_find_places(struct guest_process *p, const struct list *probes);

#endif
