/*
 * The files that guests see in place of the machine's: a directory of this session's own that looks
 * like a root, with
 *	sys/bus/event_source/devices	the host's entries, linked, and ours
 *	sys/devices/NAME		the same as the bus's NAME
 *	proc/sys/kernel/perf_event_*	what is in force
 * Runtimes redirect paths into it; what is not in it they take from the host. For the library,
 * which can be given another root, the rest of what it reads is linked.
 *
 * It is made when somebody first looks, and goes with the session; where, is view-place.c's. All
 * that is written goes by the directory's descriptor: its name could come to mean another one.
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

#include "session/host/view-place.h"
#include "session/session-priv.h"

#define DEVICES      "sys/bus/event_source/devices"
#define HOST_DEVICES "/" DEVICES

struct device_writer {
	int dir; /* the PMU's */
	int err;
};

/* Only root writes to settings, as in the kernel; nobody is to be told otherwise by the mode. */
static mode_t settings_mode(void)
{
	return geteuid() ? 0444 : 0644;
}

static int write_file(int dir, const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	size_t len = strlen(text);
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	err = n < 0 ? -errno : n != (ssize_t)len ? -ENOSPC : 0;
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

		snprintf(sub, sizeof(sub), "%.*s", (int)(slash - path), path);
		if (mkdirat(e->dir, sub, 0755) && errno != EEXIST) {
			e->err = -errno;
			return;
		}
	}
	e->err = write_file(e->dir, path, text, is_setting(path) ? settings_mode() : 0444);
}

/* The bus has links into sys/devices; here it is the other way round. */
static int link_by_name(struct session *s, const char *name)
{
	char from[300], to[300];

	snprintf(from, sizeof(from), "sys/devices/%s", name);
	snprintf(to, sizeof(to), "../bus/event_source/devices/%s", name);
	return symlinkat(to, s->shown.dir, from) ? -errno : 0;
}

static int make_device(struct session *s, struct pmu *pmu)
{
	struct device_writer e = {0};
	char path[400];

	snprintf(path, sizeof(path), DEVICES "/%s", pmu->name);
	if (mkdirat(s->shown.dir, path, 0755))
		return -errno;
	e.dir = openat(s->shown.dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (e.dir < 0)
		return -errno;
	pmu_files(pmu, emit_file, &e);
	close(e.dir);
	return e.err ? e.err : link_by_name(s, pmu->name);
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
		snprintf(from, sizeof(from), DEVICES "/%s", d->d_name);
		if (symlinkat(to, s->shown.dir, from) || link_by_name(s, d->d_name)) {
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
		err = write_file(s->shown.dir, path + 1, text, settings_mode());
	return err;
}

void view_change(struct session *s, const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd;

	if (!s->shown.root[0])
		return; /* nobody has looked, and who looks later will see it */
	fd = openat(s->shown.dir, path + 1, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	/* In this order no reader finds the file empty. */
	if (pwrite(fd, text, len, 0) != (ssize_t)len || ftruncate(fd, (off_t)len))
		unlinkat(s->shown.dir, path + 1, 0);
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
		{"sys/devices/system", "/sys/devices/system"},
		{"sys/kernel", "/sys/kernel"},
		{"sys/fs", "/sys/fs"},
		{"proc/self", "/proc/self"},
		{"proc/cpuinfo", "/proc/cpuinfo"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(s->shown.dir, dirs[i], 0755))
			return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i].to, s->shown.dir, links[i].name))
			return -errno;
	return 0;
}

static int fill(struct session *s)
{
	int err = make_dirs(s);

	for (struct pmu *pmu = pmu_next(s->core, NULL); pmu && !err; pmu = pmu_next(s->core, pmu))
		err = make_device(s, pmu);
	if (!err)
		err = link_host_devices(s);
	return err ? err : make_sysctls(s);
}

/* Where one place is full there may be room in the next. */
int view_make(struct session *s, char *why, size_t len)
{
	u32 from = 0;
	int err, full = 0;

	if (s->shown.root[0])
		return 0;
	while (!(err = view_place(&s->shown, &from, why, len))) {
		full = fill(s);
		if (!full)
			return 0;
		snprintf(why, len, "writing what guests see into %s: %s", s->shown.root,
			 strerror(-full));
		view_remove(s);
	}
	return full ? full : err;
}

void view_remove(struct session *s)
{
	if (s->shown.root[0])
		view_place_remove(&s->shown);
}
