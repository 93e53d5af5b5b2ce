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

static bool is_ours(const struct stat *st, uid_t stranger)
{
	return st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == stranger;
}

/*
 * Can only root and we give another meaning to a name in this directory? In a sticky one, whoever
 * made an entry can.
 */
static bool is_kept(const struct stat *st, uid_t stranger)
{
	return is_ours(st, stranger) &&
	       (!(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX);
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

/* A path on its way: what is resolved, and what is left to look up. */
struct resolved {
	char path[151], rest[1024];
	u32 links;
};

/* Takes the next name out of the rest; false: there is none. */
static bool next_name(struct resolved *r, char *name, size_t size)
{
	size_t at = strspn(r->rest, "/"), len = strcspn(r->rest + at, "/");

	if (!len)
		return false;
	snprintf(name, size, "%.*s", (int)len, r->rest + at);
	memmove(r->rest, r->rest + at + len, strlen(r->rest + at + len) + 1);
	return true;
}

/* Where link @fd leads comes first; true: from the root. */
static int follow(struct resolved *r, int fd, bool *from_root)
{
	char to[1024], rest[1024];
	ssize_t n = readlinkat(fd, "", to, sizeof(to) - 1);

	if (n <= 0 || ++r->links > 16)
		return n < 0 ? -errno : -ELOOP;
	to[n] = '\0';
	memcpy(rest, r->rest, sizeof(rest));
	if ((size_t)snprintf(r->rest, sizeof(r->rest), "%s/%s", to, rest) >= sizeof(r->rest))
		return -ENAMETOOLONG;
	*from_root = to[0] == '/';
	return 0;
}

/* The directory @name is what @r->path says now. */
static int enter(struct resolved *r, const char *name)
{
	size_t len = strlen(r->path);

	if (strcmp(name, "..") == 0) {
		char *slash = strrchr(r->path, '/');

		if (slash)
			*slash = '\0';
		return 0;
	}
	return (size_t)snprintf(r->path + len, sizeof(r->path) - len, "/%s", name) >=
			       sizeof(r->path) - len
		       ? -ENAMETOOLONG
		       : 0;
}

/*
 * What @r says, if the same holds for each directory in which a name is looked up on the way, and
 * nobody else has made a link there; else -errno.
 */
static int open_place(struct resolved *r)
{
	int fd = open("/", OPEN_DIR | O_PATH), err = fd < 0 ? -errno : 0;
	uid_t stranger = unknown_uid();
	char name[256];
	struct stat st;

	while (!err) {
		bool from_root = false;
		int next;

		if (fstat(fd, &st) || !is_kept(&st, stranger)) {
			err = -EPERM;
			break;
		}
		if (!next_name(r, name, sizeof(name)))
			return fd;
		if (strcmp(name, ".") == 0)
			continue;
		next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 || fstat(next, &st)) {
			err = -errno;
		} else if (S_ISLNK(st.st_mode)) {
			err = is_ours(&st, stranger) ? follow(r, next, &from_root) : -EPERM;
			close(next);
			next = from_root ? open("/", OPEN_DIR | O_PATH) : -1;
			r->path[0] = from_root ? '\0' : r->path[0];
		} else {
			err = S_ISDIR(st.st_mode) ? enter(r, name) : -ENOTDIR;
		}
		if (next >= 0) {
			close(fd);
			fd = next;
		}
	}
	if (fd >= 0)
		close(fd);
	return err;
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
		struct resolved r = {.links = 0};

		if (!in[i] || in[i][0] != '/' || strlen(in[i]) >= sizeof(r.rest))
			continue;
		memcpy(r.rest, in[i], strlen(in[i]) + 1);
		shown->place = open_place(&r);
		err = shown->place < 0 ? shown->place : 0;
		if (!err) {
			remove_stale(shown->place);
			err = make_dir(shown, r.path);
			if (err)
				close(shown->place);
		}
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
