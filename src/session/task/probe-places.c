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

/* A line of /proc/PID/maps. */
struct file_range {
	u64 start, end, offset;
	struct probe_file file;
	bool writable, shared;
};

static bool next_range(FILE *maps, struct file_range *r)
{
	unsigned long long start, end, offset, ino;
	unsigned int major, minor;
	char line[4400], perm[5];

	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &start, &end, perm, &offset,
			   &major, &minor, &ino) != 7)
			continue;
		*r = (struct file_range){
			.start = start,
			.end = end,
			.offset = offset,
			.file = {makedev(major, minor), ino},
			.writable = perm[1] == 'w',
			.shared = perm[3] == 's',
		};
		return true;
	}
	return false;
}

/* What mappings say of a file is not what stat(2) does on every file system, so one is made. */
static int as_mapped(int fd, struct probe_file *file)
{
	void *at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	struct file_range r;
	int err = -EINVAL;
	FILE *maps;

	if (at == MAP_FAILED)
		return -errno;
	maps = fopen("/proc/self/maps", "re");
	while (maps && err && next_range(maps, &r)) {
		if (r.start > (u64)at || r.end <= (u64)at)
			continue;
		*file = r.file;
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
static void add_place(struct probe *probe, const struct file_range *r)
{
	if (!is_of_file(probe) || r->writable || r->shared || r->file.dev != probe->file.dev ||
	    r->file.ino != probe->file.ino || probe->offset < r->offset ||
	    probe->offset - r->offset >= r->end - r->start || probe->nr_at == PROBE_AT)
		return;
	probe->at[probe->nr_at++] = r->start + (probe->offset - r->offset);
}

void probes_find_places(struct guest_process *p, const struct list *probes)
{
	struct file_range r;
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
	while (next_range(maps, &r))
		list_for_each_entry (probe, probes, armed)
			add_place(probe, &r);
	fclose(maps);
}
