#include "session/task/probe-places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

int probe_file_find(void *ctx, struct task *opener, const char *path, u64 offset,
		    struct probe_file *file)
{
	struct session *s = ctx;
	const struct guest_thread *th = opener ? task_host(opener) : NULL;
	char full[PATH_MAX + 64];
	struct stat st;
	int fd, err;

	if (!th)
		return -EINVAL;
	snprintf(full, sizeof(full), "/proc/%d/%s%s", th->process->pid,
		 *path == '/' ? "root" : "cwd/", path);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || offset > (u64)st.st_size)
		err = -EINVAL;
	else
		err = as_mapped(fd, file);
	close(fd);
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
