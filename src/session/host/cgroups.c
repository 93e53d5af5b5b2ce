/*
 * Cgroups: which one a descriptor names, and in which one a thread is. The hierarchy is that of the
 * kernel's perf_event controller: a version 1 hierarchy of its own if there is one, else version 2.
 *
 * A cgroup is known by its path as /proc/PID/cgroup shows it to the session, and by its inode,
 * since a path may be given to another one later. Ancestors of a cgroup that somebody counts are
 * known as well; a thread belongs to the deepest known one above it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "session/session-priv.h"

#define CGROUP_V1 0x27e0ebu
#define CGROUP_V2 0x63677270u

struct known_cgroup {
	struct list link;
	u64 ino;
	struct cgroup *cgroup;
	char path[]; /* "" once another cgroup has it */
};

static char *task_path(pid_t pid, s32 tid, char *text, size_t size, bool *v1)
{
	return pid_task_text(pid, tid, "cgroup", text, size) ? proc_perf_cgroup(text, v1) : NULL;
}

/*
 * The mount that has device @dev and is the longest prefix of @path: its point's length, its root
 * and its superblock's options. Without one (a mount of another namespace) @path begins at the file
 * system's root.
 */
static size_t find_mount(dev_t dev, const char *path, char *root, size_t size, bool *perf_event)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	struct proc_mount m;
	char line[4096];
	size_t best = 0;

	snprintf(root, size, "/");
	while (f && proc_line(f, line, sizeof(line))) {
		size_t len;

		if (!proc_mount_parse(line, &m) || m.dev != dev || !*m.at || !*m.root)
			continue;
		*perf_event |= strstr(m.options, "perf_event") != NULL;
		len = strcmp(m.at, "/") ? strlen(m.at) : 0;
		if (strncmp(path, m.at, len) != 0 || (path[len] && path[len] != '/') || len < best)
			continue;
		best = len;
		snprintf(root, size, "%s", m.root);
	}
	if (f)
		fclose(f);
	return best;
}

/* The path of directory @fd within its hierarchy. 0, -ENOENT: not one that perf knows. */
static int fd_path(struct session *s, int fd, const struct stat *st, bool v1, char *out,
		   size_t size)
{
	char link[32], path[2048], root[1024], own[4096];
	bool perf_v1 = false, has_controller = false;
	size_t len;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return -EBADF;
	path[n] = 0;
	/* A directory that was removed while it was open has no counts to give. */
	if (!st->st_nlink || (n > 10 && !strcmp(path + n - 10, " (deleted)")))
		return core_refuse(s->core, -ENOENT, CGROUP_REMOVED);
	len = find_mount(st->st_dev, path, root, sizeof(root), &has_controller);
	(void)task_path(getpid(), gettid(), own, sizeof(own), &perf_v1);
	if (v1 != perf_v1 || (v1 && !has_controller))
		return perf_v1 ? core_refuse(s->core, -ENOENT, CGROUP_NOT_V1)
			       : core_refuse(s->core, -ENOENT, CGROUP_NOT_V2);
	if (snprintf(out, size, "%s%s", strcmp(root, "/") ? root : "", path + len) >= (int)size)
		return -ENAMETOOLONG;
	if (!*out)
		snprintf(out, size, "/");
	return 0;
}

static struct known_cgroup *remember(struct session *s, const char *path, u64 ino,
				     struct cgroup *parent)
{
	size_t size = strlen(path) + 1;
	struct known_cgroup *k = malloc(sizeof(*k) + size);

	if (!k)
		return NULL;
	memcpy(k->path, path, size);
	k->ino = ino;
	k->cgroup = cgroup_new(s->core, parent, ino);
	if (!k->cgroup) {
		free(k);
		return NULL;
	}
	list_add_tail(&k->link, &s->cgroups);
	return k;
}

/* The cgroup of directory @fd at @path, which is changed; those above it become known first. */
static struct cgroup *know(struct session *s, int fd, char *path)
{
	struct cgroup *parent = NULL;
	struct known_cgroup *k;
	struct stat st;
	char *slash, kept;

	if (fstat(fd, &st))
		return NULL;
	list_for_each_entry (k, &s->cgroups, link) {
		if (strcmp(k->path, path) != 0)
			continue;
		if (k->ino == st.st_ino)
			return k->cgroup;
		k->path[0] = 0;
	}
	if (strcmp(path, "/") != 0) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		slash = strrchr(path, '/');
		kept = slash == path ? slash[1] : *slash;
		slash[slash == path] = 0;
		parent = up >= 0 ? know(s, up, path) : NULL;
		slash[slash == path] = kept;
		if (up >= 0)
			close(up);
		if (!parent)
			return NULL;
	}
	k = remember(s, path, st.st_ino, parent);
	return k ? k->cgroup : NULL;
}

/* As fd_path(); -EBADF: it is no cgroup's directory. */
static int dir_path(struct session *s, int fd, struct stat *st, char *out, size_t size)
{
	const pid_t guest = s->call ? s->call->process->pid : 0;
	struct file_id id;
	struct statfs fs;

	/* Of any other file system one must not even ask what it is. */
	if (fd < 0 || !file_id(fd, "", &id) || !S_ISDIR(id.mode) ||
	    (!file_system_is(0, id.dev, "cgroup") && !file_system_is(guest, id.dev, "cgroup")))
		return -EBADF;
	if (fstatfs(fd, &fs) || fstat(fd, st) || (fs.f_type != CGROUP_V1 && fs.f_type != CGROUP_V2))
		return -EBADF;
	return fd_path(s, fd, st, fs.f_type == CGROUP_V1, out, size);
}

void cgroup_made(struct guest_thread *th, int fd)
{
	struct session *s = th->process->s;
	char path[2048];
	struct stat st;
	int err = dir_path(s, fd, &st, path, sizeof(path));

	/* One of a controller that perf does not go by. */
	core_refusal_clear(s->core);
	if (!err && th->task)
		task_made_cgroup(th->task, st.st_ino, path);
}

int cgroup_by_fd(struct session *s, int fd, struct cgroup **cgroup)
{
	char path[2048];
	struct stat st;
	int err = dir_path(s, fd, &st, path, sizeof(path));

	if (err)
		return err;
	*cgroup = know(s, fd, path);
	return *cgroup ? 0 : -ENOMEM;
}

static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (!strcmp(top, "/"))
		return strncmp(path, "/..", 3) != 0;
	return len && !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

/* The directory of the cgroup at @path in the hierarchy that perf goes by; -1: none is mounted. */
static int open_path(const char *path, bool v1)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], dir[4096];
	struct proc_mount m;
	int fd = -1;

	while (f && fd < 0 && proc_line(f, line, sizeof(line))) {
		size_t len;

		if (!proc_mount_parse(line, &m) || !*m.at || !*m.root ||
		    strcmp(m.type, v1 ? "cgroup" : "cgroup2") != 0 ||
		    (v1 && !strstr(m.options, "perf_event")))
			continue;
		len = strcmp(m.root, "/") ? strlen(m.root) : 0;
		if (strncmp(path, m.root, len) != 0 || (path[len] && path[len] != '/'))
			continue;
		snprintf(dir, sizeof(dir), "%s%s", m.at, path + len);
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (f)
		fclose(f);
	return fd;
}

static struct known_cgroup *deepest(struct session *s, const char *path)
{
	struct known_cgroup *k, *best = NULL;

	list_for_each_entry (k, &s->cgroups, link)
		if (is_below(path, k->path) && (!best || strlen(k->path) > strlen(best->path)))
			best = k;
	return best;
}

void cgroup_place(struct guest_thread *th)
{
	struct session *s = th->process->s;
	struct known_cgroup *best;
	char text[4096], *path;
	bool v1;

	if ((list_empty(&s->cgroups) && !s->wide.cgroups) || !th->task || th->tid <= 0)
		return;
	path = task_path(th->process->pid, th->tid, text, sizeof(text), &v1);
	if (!path)
		return; /* it is dying; where it was is what counts */
	best = deepest(s, path);
	/* A sample says the very one. */
	if (s->wide.cgroups && (!best || strcmp(best->path, path) != 0)) {
		int fd = open_path(path, v1);

		if (fd >= 0 && know(s, fd, path))
			best = deepest(s, path);
		if (fd >= 0)
			close(fd);
	}
	if (task_cgroup(th->task) != (best ? best->cgroup : NULL))
		task_set_cgroup(th->task, best ? best->cgroup : NULL);
}

void cgroups_forget(struct session *s)
{
	struct known_cgroup *k, *tmp;

	list_for_each_entry_safe (k, tmp, &s->cgroups, link)
		free(k);
	list_init(&s->cgroups);
}
