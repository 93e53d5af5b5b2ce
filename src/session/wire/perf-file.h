/*
 * PURPOSE: guests' perf descriptors, as the session holds them: a perf file is the write end of the
 * pipe of which the guest has the read end.
 *
 * Ownership: a perf file holds a reference to its event, whose host pointer it is. It ends with the
 * last descriptor and the last mapping, within an instant (task/instant.h), and is freed after the
 * batch of epoll events.
 */
#ifndef SESSION_WIRE_PERF_FILE_H
#define SESSION_WIRE_PERF_FILE_H

#include "base/list.h"
#include "session/hash.h"
#include "session/poll-source.h"
#include "session/wire/snapshot.h"

struct event;
struct guest_process;
struct session;

struct perf_files {
	struct list all;     /* struct perf_file */
	struct list hung;    /* those of them with a hung_fd */
	struct list changed; /* those whose event is not what its snapshot says */
	struct list dead;    /* those to be freed after the batch */
	struct hash by_pipe; /* those in `all`, by inode */
	/* By handle. A free place has the next free one: its index + 1, or 0. */
	struct perf_handle {
		struct perf_file *file; /* NULL: free */
		u32 next_free;
	} * handles;
	u32 nr_handles, first_free;
};

struct perf_file {
	struct poll_source poll;
	struct session *s;
	struct list link;      /* in perf_files.all or perf_files.dead */
	struct list hung_link; /* in perf_files.hung */
	struct hash_link by_pipe;
	struct event *event;
	int wfd;
	struct allowance *taken; /* of who has opened it */
	u64 dev;                 /* of the pipe, whose inode is by_pipe.key */
	u64 handle;              /* what guests call it */
	u32 index;               /* in perf_files.handles */
	struct event_snapshot snapshot;
	struct list mappings; /* struct mapping, by guests */
	u32 maps;             /* how many; each keeps the event open */
	bool closed;          /* no descriptor is left */
	bool async;           /* its descriptors show O_ASYNC */
	bool last;            /* the latest overflow is the last that REFRESH allows */
	bool polled;          /* perf_file_polled() */
	int hung_fd; /* O_PATH of the pipe while its writer is closed so that it hangs up, or -1 */
};

/* What one process has mapped of one event. */
struct mapping {
	struct list link;      /* in guest_process.mappings */
	struct list file_link; /* in perf_file.mappings */
	struct guest_process *process;
	struct perf_file *file;
	u32 times;
};

void perf_files_init(struct perf_files *files);
void perf_files_release(struct perf_files *files);

/*
 * Takes over the reference to @event, which @opener has opened. *@guest_fd is the caller's to send
 * and close. 0 or -errno; -EMFILE has its reason if it is one of @opener's own.
 */
int must_check perf_file_new(struct guest_process *opener, struct event *event,
			     struct perf_file **out, int *guest_fd);
struct perf_file *perf_file_by_handle(struct session *s, u64 handle);
/* By a copy of the descriptor itself. */
struct perf_file *perf_file_by_fd(struct session *s, int fd);
/*
 * Somebody polls its descriptors: the pipe itself is to hang up when the event does, which wakes
 * who waits. For epoll, which asks nobody but the pipe, also while there is no buffer.
 */
void perf_file_polled(struct perf_file *file);
/* An overflow: who asked for signals gets one. */
void perf_file_signal(struct perf_file *file, bool last);
void perf_file_in_epoll(struct perf_file *file);
/* What poll says of its event may have changed: who waits looks again. */
void perf_file_wake(struct perf_file *file);
/* No descriptor is left; a mapping keeps the event as it keeps a file. */
void perf_file_closed(struct perf_file *file);
void perf_file_free(struct perf_file *file);
/* Of those that hang up nothing tells the last close: looks for it, at some of them in turn. */
void perf_files_probe(struct session *s);

/*
 * @p has mapped @file's event once more (@times 1) or once less (-1: 0, or -EINVAL if it had not).
 */
int map_note(struct guest_process *p, struct perf_file *file, int times);
/* Its address space went: exec or the end. */
void maps_drop(struct guest_process *p);

#endif
