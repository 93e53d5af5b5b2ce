/*
 * A perf descriptor of a guest is the read end of a pipe; here is the write end. dup, fork, exec
 * and SCM_RIGHTS need nothing from us, and when the last copy has been closed the write end reports
 * an error, once.
 *
 * Guests name events by handles: an index and 32 random bits, so that a guest cannot name an event
 * whose descriptor it never had.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session-priv.h"

#define HANDLES_FIRST 64
#define PROBES        16u /* pipes that an instant looks at */

void perf_files_init(struct perf_files *files)
{
	list_init(&files->all);
	list_init(&files->hung);
	list_init(&files->changed);
	list_init(&files->dead);
	hash_init(&files->by_pipe);
}

void perf_files_release(struct perf_files *files)
{
	hash_release(&files->by_pipe);
	free(files->handles);
}

/* Makes room for more handles, none of which is free before. */
static int grow_handles(struct perf_files *files)
{
	u32 have = files->nr_handles, want = have ? have * 2 : HANDLES_FIRST;
	struct perf_handle *grown = reallocarray(files->handles, want, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	for (u32 i = have; i < want; i++)
		grown[i] = (struct perf_handle){.next_free = i + 1 < want ? i + 2 : 0};
	files->handles = grown;
	files->nr_handles = want;
	files->first_free = have + 1;
	return 0;
}

static int take_handle(struct perf_files *files, struct perf_file *file)
{
	u32 secret, i;

	if (!files->first_free && grow_handles(files))
		return -ENOMEM;
	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return -EAGAIN;
	i = files->first_free - 1;
	files->first_free = files->handles[i].next_free;
	files->handles[i].file = file;
	file->index = i;
	/* Neither WIRE_NO_EVENT nor WIRE_BAD_EVENT. */
	file->handle = (u64)(secret >> 1) << 32 | (i + 1);
	return 0;
}

static void give_handle(struct perf_files *files, struct perf_file *file)
{
	files->handles[file->index] = (struct perf_handle){.next_free = files->first_free};
	files->first_free = file->index + 1;
}

/* The last close of a reader's descriptor is an end. */
static int watch_close(struct perf_file *file)
{
	return poll_source_add(file->s->loop.ends, file->wfd, &file->poll, POLL_SOURCE_PERF_FILE,
			       EPOLLERR | EPOLLET);
}

int perf_file_new(struct guest_process *opener, struct event *event, struct perf_file **out,
		  int *guest_fd)
{
	struct session *s = opener->s;
	struct perf_file *file = calloc(1, sizeof(*file));
	struct stat st;
	u32 held, left;
	int pipefd[2], err;

	if (!file)
		return -ENOMEM;
	file->hung_fd = -1;
	if (pipe2(pipefd, O_CLOEXEC)) {
		free(file);
		return -errno;
	}
	/* Only our end: the guest sees the flags of its own. */
	fcntl(pipefd[1], F_SETFL, O_NONBLOCK);
	err = allowance_take(&opener->allowance, &file->taken, 1, pipefd[1], &held, &left);
	if (err == -EMFILE)
		(void)core_refuse(s->core, err, SESSION_SHARE, .number = {held, left});
	if (!err)
		err = take_handle(&s->files, file);
	if (err)
		goto fail;
	file->s = s;
	file->event = event;
	file->wfd = pipefd[1];
	err = fstat(file->wfd, &st) ? -errno : watch_close(file);
	if (err) {
		give_handle(&s->files, file);
		goto fail;
	}
	file->dev = st.st_dev;
	list_init(&file->hung_link);
	list_init(&file->mappings);
	snapshot_init(&file->snapshot);
	hash_add(&s->files.by_pipe, &file->by_pipe, st.st_ino);
	list_add_tail(&file->link, &s->files.all);
	event_set_host(event, file);
	*guest_fd = pipefd[0];
	*out = file;
	return 0;
fail:
	allowance_give(&file->taken, 1);
	free(file);
	close(pipefd[0]);
	close(pipefd[1]);
	return err;
}

struct perf_file *perf_file_by_handle(struct session *s, u64 handle)
{
	u32 index = (u32)handle - 1;
	struct perf_file *file;

	if (index >= s->files.nr_handles)
		return NULL;
	file = s->files.handles[index].file;
	return file && file->handle == handle ? file : NULL;
}

struct perf_file *perf_file_by_fd(struct session *s, int fd)
{
	struct hash_link *l;
	struct file_id id;

	if (!file_id(fd, "", &id) || !S_ISFIFO(id.mode))
		return NULL;
	for (l = hash_find(&s->files.by_pipe, id.ino); l; l = hash_next(l)) {
		struct perf_file *file = container_of(l, struct perf_file, by_pipe);

		if (file->dev == id.dev)
			return file;
	}
	return NULL;
}

static int reopen(int from, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	return open(path, flags | O_CLOEXEC);
}

static void perf_file_end(struct perf_file *file)
{
	struct session *s = file->s;

	instant_check(s);
	file->poll.gone = true;
	list_del(&file->hung_link);
	snapshot_drop(file);
	/*
	 * To ask a thread on another CPU what time it has is to interrupt it, and that CPU's
	 * hypervisor with it. When exactly an event ends nobody can see, unless another one takes
	 * its place.
	 */
	if (s->instant.draining && file->event->target && task_host(file->event->target) &&
	    !event_is_waited_for(file->event))
		clock_skip(task_host(file->event->target));
	give_handle(&s->files, file);
	hash_del(&s->files.by_pipe, &file->by_pipe);
	event_set_host(file->event, NULL);
	wide_closed(s, file->event);
	event_put(file->event);
	file->event = NULL;
	list_move_tail(&file->link, &s->files.dead);
	if (s->instant.draining)
		s->instant.number++;
}

/* @p has mapped @c's event once more (@times 1) or once less (-1: 0, or -EINVAL if it had not). */
void perf_file_closed(struct perf_file *file)
{
	file->closed = true;
	list_del(&file->hung_link);
	if (file->wfd >= 0)
		epoll_ctl(file->s->loop.ends, EPOLL_CTL_DEL, file->wfd, NULL);
	if (!file->maps)
		perf_file_end(file);
}

/*
 * A pipe whose writer is closed hangs up by itself, for epoll too. The pipe is kept by an O_PATH
 * descriptor; without a writer nothing tells of the last close, so perf_files_probe() asks.
 */
static void hang_up(struct perf_file *file, bool hung)
{
	if (file->closed || hung == (file->hung_fd >= 0))
		return;
	/* An end of a pipe that closes is a signal, too. */
	if (hung && file->async && event_attr(file->event)->sample_period)
		return;
	if (hung) {
		file->hung_fd = reopen(file->wfd, O_PATH);
		if (file->hung_fd < 0)
			return;
		epoll_ctl(file->s->loop.ends, EPOLL_CTL_DEL, file->wfd, NULL);
		close(file->wfd);
		file->wfd = -1;
		list_add_tail(&file->hung_link, &file->s->files.hung);
		return;
	}
	file->wfd = reopen(file->hung_fd, O_WRONLY | O_NONBLOCK);
	close(file->hung_fd);
	file->hung_fd = -1;
	list_del(&file->hung_link);
	if (file->wfd < 0 || watch_close(file))
		perf_file_closed(file);
}

/*
 * A byte says that there is something to ask for. Who is in an epoll set hears of the next byte
 * alone (EPOLLET), as does who wants signals; so a pipe that is full is emptied first.
 */
static void put_byte(struct perf_file *file)
{
	char bytes[4096];
	int fd;

	if (file->wfd < 0 || write(file->wfd, "", 1) == 1)
		return;
	fd = reopen(file->wfd, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return;
	while (read(fd, bytes, sizeof(bytes)) == sizeof(bytes))
		;
	(void)!write(file->wfd, "", 1);
	close(fd);
}

/* Its overflows are signals, sent by the kernel for the bytes in the pipe. */
static bool signals(const struct perf_file *file)
{
	return file->async && event_attr(file->event)->sample_period;
}

static void tell_report(struct perf_file *file)
{
	if (event_reports(file->event) && !signals(file))
		put_byte(file);
}

void perf_file_signal(struct perf_file *file, bool last)
{
	file->last = last;
	if (signals(file))
		put_byte(file);
}

void perf_file_wake(struct perf_file *file)
{
	if (!file->polled)
		return;
	hang_up(file, event_hangs_up(file->event));
	tell_report(file);
}

void perf_file_polled(struct perf_file *file)
{
	file->polled = true;
	/* Without a buffer nobody waits, and to be told of the last close is cheaper. */
	if (file->event->buffer || file->hung_fd >= 0)
		hang_up(file, event_hangs_up(file->event));
}

void perf_file_in_epoll(struct perf_file *file)
{
	file->polled = true;
	hang_up(file, event_hangs_up(file->event));
	tell_report(file);
}

/*
 * A pipe without readers is an error to who would write. That it cannot be opened, as a FIFO cannot
 * be then, is not so for one without a name.
 */
static bool has_readers(struct perf_file *file)
{
	struct pollfd end = {.fd = reopen(file->hung_fd, O_WRONLY | O_NONBLOCK), .events = POLLOUT};
	bool gone;

	if (end.fd < 0)
		return errno != ENXIO;
	gone = poll(&end, 1, 0) == 1 && end.revents & POLLERR;
	close(end.fd);
	return !gone;
}

/* Each call looks at the next few. */
void perf_files_probe(struct session *s)
{
	struct list *hung = &s->files.hung;
	const struct list *last = hung->prev;

	for (u32 i = 0; i < PROBES && !list_empty(hung); i++) {
		struct perf_file *file = list_first(hung, struct perf_file, hung_link);

		list_move_tail(&file->hung_link, hung);
		if (!has_readers(file))
			perf_file_closed(file);
		if (&file->hung_link == last)
			return;
	}
}

int map_note(struct guest_process *p, struct perf_file *file, int times)
{
	struct mapping *m, *found = NULL;

	list_for_each_entry (m, &file->mappings, file_link)
		if (m->process == p)
			found = m;
	if (times > 0) {
		if (!found) {
			found = calloc(1, sizeof(*found));
			if (!found) {
				event_unmap(file->event);
				return -ENOMEM;
			}
			found->file = file;
			found->process = p;
			list_add_tail(&found->link, &p->mappings);
			list_add_tail(&found->file_link, &file->mappings);
		}
		found->times++;
		file->maps++;
		return 0;
	}
	if (!found)
		return -EINVAL;
	if (--found->times == 0) {
		list_del(&found->link);
		list_del(&found->file_link);
		free(found);
	}
	file->maps--;
	event_unmap(file->event);
	if (!file->maps && file->closed)
		perf_file_end(file);
	else
		perf_file_wake(file);
	return 0;
}

void maps_drop(struct guest_process *p)
{
	while (!list_empty(&p->mappings)) {
		struct mapping *m = list_first(&p->mappings, struct mapping, link);

		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was freed has left the list */
		map_note(p, m->file, -1);
	}
}

void perf_file_free(struct perf_file *file)
{
	list_del(&file->link);
	if (file->wfd >= 0)
		close(file->wfd);
	if (file->hung_fd >= 0)
		close(file->hung_fd);
	allowance_give(&file->taken, 1);
	free(file);
}
