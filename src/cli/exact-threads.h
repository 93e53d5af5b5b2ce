/*
 * PURPOSE: the threads of an exact profile (abi/path-profile.h), read out of the counter segment
 * once their programs have ended: how often each has executed which instruction.
 *
 * Lifetime: a struct exact_threads that is all zero is empty; exact_threads_release() frees it.
 */
#ifndef CLI_EXACT_THREADS_H
#define CLI_EXACT_THREADS_H

#include <anyperf/record.h>

#include "backend/guest-segment.h"
#include "cli/cmd.h"
#include "data/path-reader.h"
#include "data/profile-reader.h"

/* When a thread ended, or became another program. */
struct exact_end {
	u32 pid, tid;
	u64 time;
};

/* Code of a file was mapped; @over: where another file had been, in whatever process. */
struct exact_map {
	u64 time, start, end;
	u64 file; /* a hash of its name, build id and offset */
	u32 pid;
	bool over;
};

/* What was found out last: at one time all of a page is of one file. */
struct exact_asked {
	u64 pc, since, time;
};

struct exact_threads {
	struct exact_end *ends; /* in the order in which they were told; owned */
	u32 nr, room;
	struct exact_map *maps; /* likewise */
	u32 nr_maps, map_room;
	/* Of the thread that is read: the program it is of, when that began, and was over. */
	u32 pid;
	u64 begun, over;
	struct exact_asked asked;
	int fd;                           /* of the counter segment; borrowed */
	const struct path_space **spaces; /* by index, mapped when they are asked for; owned */
	u32 nr_spaces;
	u32 lost;                                 /* threads or programs that found no room */
	u64 threads, instructions, unplaced, bad; /* of all threads */
};

/* Looks at a record of a task, for when threads end and what was mapped. */
void exact_threads_note(struct exact_threads *x, const struct ap_record *rec);

/*
 * What a thread has executed until @time; instructions of files that were not mapped any more then
 * have times of their own. Another value than 0 ends the reading.
 */
typedef int exact_thread_fn(const struct path_thread *t, u64 time, const struct path_counts *c,
			    void *data);

/* The last moment of the program that thread @tid has executed from @start on. */
u64 exact_threads_end(const struct exact_threads *x, u32 tid, u64 start);

/* What a thread's modeled events are attributed to; likewise. */
typedef int modeled_thread_fn(const struct modeled_profile *p, u64 time,
			      const struct profile_counts *c, void *data);

struct exact_take {
	exact_thread_fn *thread;
	modeled_thread_fn *modeled; /* NULL: there are no modeled events */
	u32 nr_modeled;             /* how many events they are */
	void *data;
};

/* Each thread of our run, in the order in which they ended. 0, -ENOMEM, or what @take returned. */
must_check int exact_threads_read(struct exact_threads *x, const struct guest_segment *segment,
				  const struct exact_take *take);

/* Whether the sum is that of the threads' meters, *@meters; else programs still run. */
bool exact_threads_agree(const struct exact_threads *x, const struct guest_segment *segment,
			 u64 *meters);
/*
 * Says of an exact profile what is missing in it: @lost threads or programs found no room, @bad
 * counts make no sense, and @unplaced instructions are counted without their places.
 */
void exact_say_lost(const struct command *cmd, u32 lost, u64 bad, u64 unplaced);

void exact_threads_release(struct exact_threads *x);

#endif
