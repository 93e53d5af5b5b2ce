#include "session/task/probe-places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "session/helper-thread.h"
#include "session/session-priv.h"

static struct probe_file file_of(const struct proc_range *r)
{
	return (struct probe_file){makedev(r->major, r->minor), r->ino};
}

/* What mappings say of a file is not what stat(2) does on every file system, so one is made. */
static int as_mapped(int fd, struct probe_file *file)
{
	void *at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	struct proc_range r;
	int err = -EINVAL;
	FILE *maps;

	if (at == MAP_FAILED)
		return -errno;
	maps = fopen("/proc/self/maps", "re");
	while (maps && err && proc_range_next(maps, &r)) {
		if (r.start > (u64)at || r.end <= (u64)at)
			continue;
		*file = file_of(&r);
		err = 0;
	}
	if (maps)
		fclose(maps);
	munmap(at, 1);
	return err;
}

/*
 * A path that is looked up for a guest. Its file system may be the guest's own (FUSE) and never
 * answer, so a thread does it that has nothing else to do, and the session waits for a moment only.
 */
struct file_search {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	char path[PATH_MAX + 64];
	u64 offset;
	struct probe_file file; /* the result, if !err */
	int err;
	bool done, given_up; /* under `lock`; who is second frees it */
};

#define SEARCH_NS 500000000l
#define SEARCHES  64u /* that nobody waits for any more; beyond that there are no new ones */

static u32 searches_lost; /* atomic */

static int search(const char *path, u64 offset, struct probe_file *file)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || offset > (u64)st.st_size)
		err = -EINVAL;
	else
		err = as_mapped(fd, file);
	close(fd);
	return err;
}

static void search_free(struct file_search *f)
{
	pthread_cond_destroy(&f->ended);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static void *run_search(void *arg)
{
	struct file_search *f = arg;
	int err = search(f->path, f->offset, &f->file);
	bool alone;

	pthread_mutex_lock(&f->lock);
	f->err = err;
	f->done = true;
	alone = f->given_up;
	pthread_cond_signal(&f->ended);
	pthread_mutex_unlock(&f->lock);
	if (alone) {
		search_free(f);
		__atomic_fetch_sub(&searches_lost, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static struct file_search *search_new(void)
{
	struct file_search *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->ended, &attr);
	pthread_condattr_destroy(&attr);
	return f;
}

/* 0, -errno of the search, or -ETIMEDOUT: the thread goes on without us. */
static int search_wait(struct file_search *f, struct probe_file *file)
{
	struct timespec until;
	bool done;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += SEARCH_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&f->lock);
	while (!f->done && pthread_cond_timedwait(&f->ended, &f->lock, &until) == 0)
		;
	done = f->done;
	err = f->err;
	*file = f->file;
	f->given_up = true;
	if (!done)
		__atomic_fetch_add(&searches_lost, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&f->lock);
	if (!done)
		return -ETIMEDOUT;
	search_free(f);
	return err;
}

int probe_file_find(void *ctx, struct task *opener, const char *path, u64 offset,
		    struct probe_file *file)
{
	struct session *s = ctx;
	const struct guest_thread *th = opener ? task_host(opener) : NULL;
	struct file_search *f;
	int err;

	if (!th)
		return -EINVAL;
	/* Who has been waited for in vain is not waited for again. */
	if (th->process->searched_in_vain ||
	    __atomic_load_n(&searches_lost, __ATOMIC_RELAXED) >= SEARCHES)
		return core_refuse(s->core, -ETIMEDOUT, PROBE_SILENT);
	f = search_new();
	if (!f)
		return -ENOMEM;
	snprintf(f->path, sizeof(f->path), "/proc/%d/%s%s", th->process->pid,
		 *path == '/' ? "root" : "cwd/", path);
	f->offset = offset;
	if (!helper_start(run_search, f)) {
		search_free(f);
		return -EAGAIN;
	}
	err = search_wait(f, file);
	if (err == -ETIMEDOUT) {
		th->process->searched_in_vain = true;
		return core_refuse(s->core, err, PROBE_SILENT);
	}
	s->track_files |= !err;
	return err;
}

static bool is_of_file(const struct probe *probe)
{
	return probe->kind == PROBE_UPROBE || probe->kind == PROBE_RETURN;
}

bool probes_of_files(const struct list *probes)
{
	const struct probe *probe;

	list_for_each_entry (probe, probes, armed)
		if (is_of_file(probe))
			return true;
	return false;
}

/* As the kernel has it: where the program could execute it, and cannot write. */
static void add_place(struct probe *probe, const struct proc_range *r)
{
	struct probe_file file = file_of(r);

	if (!is_of_file(probe) || r->prot & PROT_WRITE || r->shared ||
	    file.dev != probe->file.dev || file.ino != probe->file.ino ||
	    probe->offset < r->offset || probe->offset - r->offset >= r->end - r->start ||
	    probe->nr_at == PROBE_AT)
		return;
	probe->at[probe->nr_at++] = r->start + (probe->offset - r->offset);
}

void probes_find_places(struct guest_process *p, const struct list *probes)
{
	struct proc_range r;
	struct probe *probe;
	char path[64];
	FILE *maps;

	if (!probes_of_files(probes))
		return;
	/* One that is about to be made has what its parent has. */
	snprintf(path, sizeof(path), "/proc/%d/maps", p->pid ? p->pid : p->forker);
	maps = fopen(path, "re");
	if (!maps)
		return;
	list_for_each_entry (probe, probes, armed)
		if (is_of_file(probe))
			probe->nr_at = 0;
	while (proc_range_next(maps, &r))
		list_for_each_entry (probe, probes, armed)
			add_place(probe, &r);
	fclose(maps);
}
