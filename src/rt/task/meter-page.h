/*
 * PURPOSE: the runtime's hold on the counter segment (abi/meter.h): which page a thread counts
 * into, and what the report of the segment's owner will say about it.
 */
#ifndef RT_TASK_METER_PAGE_H
#define RT_TASK_METER_PAGE_H

#include "abi/run-config.h"
#include "rt/task/thread.h"

/*
 * Maps the header of the segment behind @fd, which stays open; the process belongs to run @number,
 * of a session with @config.
 */
void meter_init(int fd, u32 number, const struct run_config *config);
struct counter_segment *counter_segment(void);
/* What no other process can change; like the header it is there before anything else. */
const struct run_config *run_config(void);
u32 meter_run(void);
/* Whether who opened the run is still there; if that cannot be told it is. */
bool meter_run_watched(void);

/* The run's command cannot be started: leaves -errno and a sentence, or "", for who started it. */
__attribute__((noreturn)) void meter_no_launch(int err, const char *text);

/*
 * A page for a new thread: its index. Takes over one that is free. With all
 * of them taken it is SEGMENT_SLOTS: a page that counts for nobody.
 */
u32 meter_take(void);
/* The same, mapped at @at over what is there. 0 or -errno. */
must_check int meter_take_at(u64 at, u32 *index);
/* Page @index, which is mapped at @at already. False: it is somebody else's by now. */
must_check bool meter_take_again(u64 at, u32 index);

/*
 * A forked child may be killed before it has said that the page is its own, so its parent says so
 * as well: what meter_stamp() gave before, and the child's pid. If the child has been faster
 * nothing is done.
 */
u64 meter_stamp(u32 index);
void meter_announce(u32 index, u64 stamp, u32 pid);

/* Notes what a report is to call @t, once the session has told what it calls it. */
void meter_told(struct thread *t);

/* A guest makes or enters a PID namespace: pids in pages say no longer who is alive. */
void meter_namespace(void);
bool meter_namespaces(void);

/* A guest says where tasks may run; until one does, they may run where their processes may. */
void meter_bound(void);

/* Maps page @index at @at, over what is there. 0 or -errno. */
int meter_map(u64 at, u32 index);

/* Fills in whose page it is. */
enum meter_owner {
	METER_NEW_THREAD,
	METER_NEW_PROCESS,  /* its first thread */
	METER_SAME_PROCESS, /* after execve, on the page it had before */
};
void meter_begin(struct thread *t, enum meter_owner owner);
/*
 * Whether the session may interrupt the thread, with a SIGSYS that kills where our handler is not
 * installed: not from before an execve until the new program has its handlers.
 */
void meter_kickable(struct thread *t, bool kickable);
/*
 * Whether a guest traces @t's process; and that process @pid is traced from now on, or no longer.
 * Noted in the page of the process's first thread.
 */
bool meter_traced(struct thread *t);
void meter_set_traced(u32 pid, bool traced);
void meter_set_comm(struct thread *t, const char *comm);

/* The thread counts no more. @code is for wait(2), if the whole process leaves with it. */
void meter_end(struct thread *t, u32 code, bool process);

/*
 * Frees page @index of thread @tid, which is gone. The thread may have done so itself, and the page
 * may be another's by now.
 */
void meter_free(u32 index, u32 tid);

/* Page @index, or @t's, was taken for a task that was not made. */
void meter_return(u32 index);
void meter_return_of(struct thread *t);

/* Notes a program that runs natively from now on. */
void meter_uncounted(u32 pid, const char *path, const char *why);
/* The kernel refused to run what was just noted for @pid. */
void meter_not_uncounted(u32 pid);

#endif
