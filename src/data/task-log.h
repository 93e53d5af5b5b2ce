/*
 * PURPOSE: keeps the records that tell what tasks have done (names, mappings, forks, ends), to put
 * them in front of each further file of a recording: whoever reads that finds the names of all that
 * runs. What has ended is forgotten, so what is kept is in proportion to what runs.
 */
#ifndef DATA_TASK_LOG_H
#define DATA_TASK_LOG_H

#include "base/types.h"

struct data_task_log {
	u8 *bytes; /* owned: whole records, in the order in which they came */
	size_t len, room;
	size_t begun;   /* how much there was when the pass over the buffers began that goes on */
	size_t settled; /* and when the last one began */
	size_t limit;   /* beyond which what has ended is looked for */
};

/* All zero at first. */
void data_task_log_release(struct data_task_log *log);

/* Whether a record of that type is one of them. */
bool data_tells_of_tasks(u32 type);

/* Keeps those of @records that tell of tasks. Without memory it keeps less. */
void data_task_log_add(struct data_task_log *log, const void *records, size_t len);

/*
 * A pass over all buffers has ended. A process is forgotten if its end was read before that pass
 * began, so that its last samples have been read as well, and if no process that was forked from it
 * is kept, which may have its mappings.
 */
void data_task_log_pass(struct data_task_log *log);

/* Forgets what may be forgotten now. */
void data_task_log_trim(struct data_task_log *log);

#endif
