/*
 * PURPOSE: hands the traces of threads to a reader outside (abi/path-trace.h): each thread that has
 * one writes into a ring of its own in the counter segment, and waits while that is full.
 *
 * Locking: a thread writes its own stream. Who ends the process writes the last words of all.
 */
#ifndef RT_TASK_PATH_STREAM_H
#define RT_TASK_PATH_STREAM_H

#include "rt/task/thread.h"

/*
 * At the program's start, before anything is translated, and behind simulate_start(): what a model
 * has counted is told before what has caused it.
 */
void streams_start(void);
/* Whether the run wants them. Constant. */
bool streams_wanted(void);

/* The thread is known by pid and tid from now on; after a fork it is another one's. */
void stream_begin(struct thread *t);
/* Before: the program's arguments are from @from to @upto. */
void stream_arguments(u64 from, u64 upto);
/* Nothing more comes from it. */
void stream_end(struct thread *t);

/* What @other, which will be killed, has traced until now. */
void stream_rescue(struct thread *other);

/* What the model has counted of what will be handed out next, or of what has been. */
void stream_events(struct thread *t, const struct path_event *list, u32 n);
/* Where the stack of the thread is, which begins to tell a model. */
void stream_say_stack(struct thread *t);

/* Says something between what is executed. Out of the translator. */
void stream_note(struct thread *t, enum path_note kind, const u32 *words, u32 n);
/* Waits until all that the thread has said was read. */
void stream_wait_read(struct thread *t);

#endif
