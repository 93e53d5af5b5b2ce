#include "backend/translations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEED "seed"

/* Nobody else may have a say in what is in there. */
static int check(int dir, const char *path, char *why, size_t len)
{
	struct stat st;

	if (fstat(dir, &st))
		return -errno;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	snprintf(why, len, "'%s' is not this user's alone; make it so with chmod 700, or remove it",
		 path);
	return -EPERM;
}

static int make(char *path, char *why, size_t len)
{
	int dir;

	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	if (mkdir(path, 0700) && errno != EEXIST)
		dir = -1;
	else
		dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0)
		return dir;
	dir = -errno;
	snprintf(why, len,
		 "making '%s' for translations: %s; set XDG_CACHE_HOME, or use "
		 "--translations=off",
		 path, strerror(errno));
	return dir;
}

static bool read_seed(int dir, u64 *seed)
{
	/* Not to wait for who opens the other end, should it be a FIFO. */
	int fd = openat(dir, SEED, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	bool ok = fd >= 0 && read(fd, seed, sizeof(*seed)) == (ssize_t)sizeof(*seed) && *seed;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Of several who begin at once one is first. */
static bool make_seed(int dir, u64 *seed)
{
	char name[32];
	bool ok;
	int fd;

	if (getrandom(seed, sizeof(*seed), 0) != (ssize_t)sizeof(*seed))
		return false;
	*seed |= 1;
	snprintf(name, sizeof(name), SEED ".%d", getpid());
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	ok = write(fd, seed, sizeof(*seed)) == (ssize_t)sizeof(*seed);
	close(fd);
	/* One that is there and cannot be read is replaced. */
	if (ok && linkat(dir, name, dir, SEED, 0) && !read_seed(dir, seed))
		ok = !renameat(dir, name, dir, SEED);
	(void)unlinkat(dir, name, 0);
	return ok && read_seed(dir, seed);
}

/* Where it is; false: nowhere. */
static bool place(char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	if (cache && *cache == '/')
		n = snprintf(path, size, "%s/anyperf/translations", cache);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.cache/anyperf/translations", home);
	else
		return false;
	return n < (int)size;
}

int ap__translations_open(u64 *seed, char *why, size_t len)
{
	char path[4096];
	int dir, err;

	if (!place(path, sizeof(path))) {
		snprintf(why, len,
			 "there is no place for translations: set XDG_CACHE_HOME, or use "
			 "--translations=off");
		return -ENOENT;
	}
	dir = make(path, why, len);
	if (dir < 0)
		return dir;
	err = check(dir, path, why, len);
	if (!err && !read_seed(dir, seed) && !make_seed(dir, seed)) {
		snprintf(why, len, "'%s' cannot be written to; use --translations=off", path);
		err = -EROFS;
	}
	if (!err)
		return dir;
	close(dir);
	return err;
}

struct kept {
	char name[64];
	u64 bytes;
	time_t used;
};

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

/* What somebody who was killed has left behind. */
static bool is_left(const struct kept *k)
{
	return strchr(k->name, '.') && k->used + 3600 < time(NULL);
}

/* What is kept, least recently used first; to be freed. Returns how many, and *@bytes of all. */
static size_t list(int dir, struct kept **all, u64 *bytes)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	size_t n = 0, room = 0;
	struct dirent *e;

	*all = NULL;
	*bytes = 0;
	if (!d && copy >= 0)
		close(copy);
	while (d && (e = readdir(d))) {
		struct stat st;

		if (*e->d_name == '.' || !strcmp(e->d_name, SEED) ||
		    strlen(e->d_name) >= sizeof((*all)->name) ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (n == room) {
			struct kept *more = realloc(*all, (room = room * 2 + 64) * sizeof(**all));

			if (!more)
				break;
			*all = more;
		}
		snprintf((*all)[n].name, sizeof((*all)->name), "%s", e->d_name);
		(*all)[n].bytes = (u64)st.st_blocks * 512;
		(*all)[n].used = st.st_mtime;
		*bytes += (*all)[n++].bytes;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(*all, n, sizeof(**all), by_age);
	return n;
}

void ap__translations_trim(int dir, u64 most)
{
	struct kept *all;
	u64 sum;
	size_t n = list(dir, &all, &sum);

	for (size_t i = 0; i < n; i++) {
		if (sum <= most && !is_left(&all[i]))
			continue;
		if (!unlinkat(dir, all[i].name, 0))
			sum -= all[i].bytes;
	}
	free(all);
}

int ap__translations_find(struct translations_kept *kept)
{
	struct kept *all;
	char why[8];
	int dir, err;

	memset(kept, 0, sizeof(*kept));
	if (!place(kept->path, sizeof(kept->path)))
		return -ENOENT;
	dir = open(kept->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = check(dir, kept->path, why, sizeof(why));
	if (!err) {
		kept->files = list(dir, &all, &kept->bytes);
		free(all);
		return dir;
	}
	close(dir);
	return err;
}

int ap__translations_clear(struct translations_kept *kept)
{
	int dir = ap__translations_find(kept);

	if (dir < 0)
		return dir;
	ap__translations_trim(dir, 0);
	/* Addresses are drawn anew as well. */
	(void)unlinkat(dir, SEED, 0);
	close(dir);
	return 0;
}
