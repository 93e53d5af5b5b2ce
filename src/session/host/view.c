/*
 * The files that guests see in place of the machine's: a directory of this session's own that looks
 * like a root, with
 *	sys/bus/event_source/devices	the host's entries, linked, and ours
 *	sys/devices/cpu			the same as the bus's cpu
 *	proc/sys/kernel/perf_event_*	what is in force
 * Runtimes redirect paths into it; what is not in it they take from the host. For the library,
 * which can be given another root, the rest of what it reads is linked.
 *
 * It is made when somebody first looks, and goes with the session. A session that is killed leaves
 * it behind; the lock on it, which goes with every process, tells the next session of the user that
 * it may be removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session-priv.h"

#define HOST_DEVICES "/sys/bus/event_source/devices"

struct device_writer {
	const char *dir;
	int err;
};

/* Only root writes to settings, as in the kernel; nobody is to be told otherwise by the mode. */
static mode_t settings_mode(void)
{
	return geteuid() ? 0444 : 0644;
}

static int write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[512];
	size_t len = strlen(text);
	int fd, err = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		err = -EIO;
	close(fd);
	return err;
}

static bool is_setting(const char *path)
{
	return !strcmp(path, "perf_event_mux_interval_ms") || !strcmp(path, "rdpmc");
}

static void emit_file(void *arg, const char *path, const char *text)
{
	struct device_writer *e = arg;
	const char *slash = strchr(path, '/');

	if (e->err)
		return;
	if (slash) {
		char sub[512];

		snprintf(sub, sizeof(sub), "%s/%.*s", e->dir, (int)(slash - path), path);
		if (mkdir(sub, 0755) && errno != EEXIST) {
			e->err = -errno;
			return;
		}
	}
	e->err = write_file(e->dir, path, text, is_setting(path) ? settings_mode() : 0444);
}

static int make_device(struct session *s, struct pmu *pmu)
{
	char dir[400];
	struct device_writer e = {.dir = dir};

	snprintf(dir, sizeof(dir), "%s" HOST_DEVICES "/%s", s->shown.root, pmu->name);
	if (mkdir(dir, 0755))
		return -errno;
	pmu_files(pmu, emit_file, &e);
	return e.err;
}

/* Those of the host that the session has no PMU of its own for. */
static int link_host_devices(struct session *s)
{
	DIR *dir = opendir(HOST_DEVICES);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char from[600], to[600];

		if (d->d_name[0] == '.' || pmu_by_name(s->core, d->d_name))
			continue;
		snprintf(to, sizeof(to), HOST_DEVICES "/%s", d->d_name);
		snprintf(from, sizeof(from), "%s" HOST_DEVICES "/%s", s->shown.root, d->d_name);
		if (symlink(to, from)) {
			closedir(dir);
			return -errno;
		}
	}
	if (dir)
		closedir(dir);
	return 0;
}

static int make_sysctls(struct session *s)
{
	const char *path;
	char text[32];
	int err = 0;

	for (u32 i = 0; !err && (path = setting_show(s, i, text, sizeof(text))); i++)
		err = write_file(s->shown.root, path, text, settings_mode());
	return err;
}

void view_change(struct session *s, const char *path, const char *text)
{
	size_t len = strlen(text);
	char name[512];
	int fd;

	snprintf(name, sizeof(name), "%s%s", s->shown.root, path);
	fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return; /* nobody has looked, and who looks later will see it */
	/* In this order no reader finds the file empty. */
	if (pwrite(fd, text, len, 0) != (ssize_t)len || ftruncate(fd, (off_t)len))
		unlink(name);
	close(fd);
}

static int make_dirs(struct session *s)
{
	static const char *const dirs[] = {
		"sys",
		"sys/bus",
		"sys/bus/event_source",
		"sys/bus/event_source/devices",
		"sys/devices",
		"proc",
		"proc/sys",
		"proc/sys/kernel",
	};
	static const struct {
		const char *name, *to;
	} links[] = {
		{"sys/devices/cpu", "../bus/event_source/devices/cpu"},
		{"sys/devices/system", "/sys/devices/system"},
		{"sys/kernel", "/sys/kernel"},
		{"sys/fs", "/sys/fs"},
		{"proc/self", "/proc/self"},
		{"proc/cpuinfo", "/proc/cpuinfo"},
	};
	char path[400];

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->shown.root, dirs[i]);
		if (mkdir(path, 0755))
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->shown.root, links[i].name);
		if (symlink(links[i].to, path))
			return -errno;
	}
	return 0;
}

/* A few levels deep, and nothing of it but what view_make() made: links are not followed. */
static void remove_tree(const char *path, int depth)
{
	DIR *dir = depth < 8 ? opendir(path) : NULL;
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char sub[1024];
		struct stat st;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if ((size_t)snprintf(sub, sizeof(sub), "%s/%s", path, d->d_name) >= sizeof(sub) ||
		    lstat(sub, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			remove_tree(sub, depth + 1);
		else
			unlink(sub);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

#define VIEW_NAME "anyperf-view-"

/* @path, opened and locked, if it is still what the name says; else -1. */
static int lock_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat named, opened;

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &opened) || lstat(path, &named) ||
	    named.st_ino != opened.st_ino || opened.st_uid != geteuid()) {
		close(fd);
		return -1;
	}
	return fd;
}

static void remove_stale(const char *tmp)
{
	DIR *dir = opendir(tmp);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[512];
		int fd;

		if (strncmp(d->d_name, VIEW_NAME, strlen(VIEW_NAME)) != 0 ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", tmp, d->d_name) >= sizeof(path))
			continue;
		fd = lock_dir(path);
		if (fd < 0)
			continue;
		remove_tree(path, 0);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Makes and locks s->shown.root, which another session may take for stale before it is locked. */
static int make_root(struct session *s, const char *tmp)
{
	int err = -EIO;

	for (int i = 0; i < 100; i++) {
		snprintf(s->shown.root, sizeof(s->shown.root), "%s/" VIEW_NAME "XXXXXX", tmp);
		if (!mkdtemp(s->shown.root)) {
			err = -errno;
			break;
		}
		s->shown.lock = lock_dir(s->shown.root);
		if (s->shown.lock >= 0) {
			/* Guests may run as another user. */
			chmod(s->shown.root, 0755);
			return 0;
		}
		rmdir(s->shown.root);
	}
	s->shown.root[0] = 0;
	return err;
}

/*
 * Some sixty files for as long as the session lives: in memory if there is a place for that,
 * because making and removing them on a disk takes longer than starting everything else.
 */
static int find_place(struct session *s, char *why, size_t len)
{
	const char *const in[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
		if (!in[i] || in[i][0] != '/' || strlen(in[i]) > 150)
			continue;
		remove_stale(in[i]);
		err = make_root(s, in[i]);
		if (!err)
			return 0;
	}
	snprintf(
		why, len,
		"making a directory in /dev/shm or /tmp: %s; name a directory that can be written to "
		"in TMPDIR",
		strerror(-err));
	return err;
}

int view_make(struct session *s, char *why, size_t len)
{
	int err;

	if (s->shown.root[0])
		return 0;
	err = find_place(s, why, len);
	if (err)
		return err;
	err = make_dirs(s);
	for (struct pmu *pmu = pmu_next(s->core, NULL); pmu && !err; pmu = pmu_next(s->core, pmu))
		err = make_device(s, pmu);
	if (!err)
		err = link_host_devices(s);
	if (!err)
		err = make_sysctls(s);
	if (err) {
		snprintf(why, len, "writing what guests see into %s: %s", s->shown.root,
			 strerror(-err));
		view_remove(s);
		return err;
	}
	memcpy(s->shown.view->root, s->shown.root, sizeof(s->shown.view->root));
	__atomic_store_n(&s->shown.view->rooted, 1, __ATOMIC_RELEASE);
	return 0;
}

void view_remove(struct session *s)
{
	if (!s->shown.root[0])
		return;
	remove_tree(s->shown.root, 0);
	s->shown.root[0] = 0;
	close(s->shown.lock);
}
