#include "session/host/view-place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define VIEW_NAME "anyperf-view-"
#define OPEN_DIR  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A few levels deep. Takes @fd. */
static void empty_dir(int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		close(fd);
		return;
	}
	while ((d = readdir(dir))) {
		int sub;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		sub = depth < 8 ? openat(fd, d->d_name, OPEN_DIR) : -1;
		if (sub >= 0)
			empty_dir(sub, depth + 1);
		unlinkat(fd, d->d_name, sub >= 0 ? AT_REMOVEDIR : 0);
	}
	closedir(dir);
}

/* @name in @place, which is @dir. */
static void remove_dir(int place, const char *name, int dir)
{
	int fd = openat(dir, ".", OPEN_DIR);

	if (fd >= 0)
		empty_dir(fd, 0);
	unlinkat(place, name, AT_REMOVEDIR);
}

/* @name in @place, opened and locked, if it is ours and still what the name says; else -1. */
static int lock_dir(int place, const char *name)
{
	int fd = openat(place, name, OPEN_DIR);
	struct stat named, opened;

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &opened) ||
	    fstatat(place, name, &named, AT_SYMLINK_NOFOLLOW) || named.st_ino != opened.st_ino ||
	    named.st_dev != opened.st_dev || opened.st_uid != geteuid()) {
		close(fd);
		return -1;
	}
	return fd;
}

static void remove_stale(int place)
{
	int fd = openat(place, ".", OPEN_DIR);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *d;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir))) {
		if (strncmp(d->d_name, VIEW_NAME, strlen(VIEW_NAME)) != 0)
			continue;
		fd = lock_dir(place, d->d_name);
		if (fd < 0)
			continue;
		remove_dir(place, d->d_name, fd);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

/*
 * Can only root and we give another meaning to a name in this directory? In a sticky one, whoever
 * made an entry can.
 */
static bool is_kept(const struct stat *st, uid_t stranger)
{
	if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != stranger)
		return false;
	return !(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX;
}

/*
 * The uid that stands for all which a user namespace has not: there, that of the machine's root
 * too, whose directories a sandbox may see. 0: every uid is known.
 */
static uid_t unknown_uid(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned int first, outside, n, overflow = 65534;
	int fields;

	if (!f)
		return 0;
	fields = fscanf(f, "%u %u %u", &first, &outside, &n);
	fclose(f);
	if (fields == 3 && first == 0 && outside == 0 && n == (uid_t)-1)
		return 0;
	f = fopen("/proc/sys/kernel/overflowuid", "re");
	if (f) {
		if (fscanf(f, "%u", &overflow) != 1)
			overflow = 65534;
		fclose(f);
	}
	return overflow;
}

/*
 * @path, which has no links in it, if that holds for it and for all directories above it; else -1.
 */
static int open_place(const char *path)
{
	int fd = open("/", OPEN_DIR | O_PATH), next;
	uid_t stranger = unknown_uid();
	char name[256];
	struct stat st;

	while (fd >= 0 && fstat(fd, &st) == 0 && is_kept(&st, stranger)) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (!len)
			return fd;
		if (len >= sizeof(name))
			break;
		memcpy(name, path, len);
		name[len] = '\0';
		next = openat(fd, name, OPEN_DIR | O_PATH);
		close(fd);
		fd = next;
		path += len;
	}
	if (fd >= 0)
		close(fd);
	errno = EPERM;
	return -1;
}

/* In @tmp. Before it is locked, another session may take it for stale. */
static int make_dir(struct shown *shown, const char *tmp)
{
	int err = -EIO;

	for (int i = 0; i < 100; i++) {
		char *name;

		snprintf(shown->root, sizeof(shown->root), "%s/" VIEW_NAME "XXXXXX", tmp);
		if (!mkdtemp(shown->root)) {
			err = -errno;
			break;
		}
		name = strrchr(shown->root, '/') + 1;
		shown->dir = lock_dir(shown->place, name);
		if (shown->dir >= 0) {
			/* Guests may run as another user. */
			fchmod(shown->dir, 0755);
			return 0;
		}
		unlinkat(shown->place, name, AT_REMOVEDIR);
	}
	shown->root[0] = '\0';
	return err;
}

int view_place(struct shown *shown, u32 *from, char *why, size_t len)
{
	const char *const in[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
	int err = -ENOENT;

	for (u32 i = *from; i < ARRAY_SIZE(in); i++) {
		char *path = in[i] && in[i][0] == '/' ? realpath(in[i], NULL) : NULL;

		if (!path)
			continue;
		shown->place = strlen(path) <= 150 ? open_place(path) : -1;
		if (shown->place >= 0) {
			remove_stale(shown->place);
			err = make_dir(shown, path);
			if (err)
				close(shown->place);
		} else {
			err = -errno;
		}
		free(path);
		if (!err) {
			*from = i + 1;
			return 0;
		}
	}
	snprintf(why, len,
		 "making a directory in /dev/shm or /tmp: %s; name a directory in TMPDIR that only "
		 "you can write to",
		 strerror(-err));
	return err;
}

void view_place_remove(struct shown *shown)
{
	remove_dir(shown->place, strrchr(shown->root, '/') + 1, shown->dir);
	shown->root[0] = '\0';
	close(shown->dir);
	close(shown->place);
}
