/*
 * PURPOSE: what programs ask of Valgrind by client requests (valgrind.h, callgrind.h), answered in
 * runs that want it (SEGMENT_REQUESTS).
 */
#ifndef RT_TASK_REQUESTS_H
#define RT_TASK_REQUESTS_H

#include "rt/task/thread.h"

/* Of @args the first is the request. Returns what it gives, @otherwise if it is not known. */
u64 request_answer(struct thread *t, const u64 args[6], u64 otherwise);

#endif
