/*
 * A program changes and names itself by /proc/self/exe, by calls that take a path and by many a way
 * to write that path. It works on a copy of itself, "copy" in the working directory.
 */
#include "say.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define EXE "/proc/self/exe"

static struct stat own;
static char home[4096];

static long open_how(int dir, const char *path, unsigned long flags, unsigned long resolve)
{
	struct open_how how = {.flags = flags, .resolve = resolve};

	return syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int is_own(const struct stat *st)
{
	return st->st_ino == own.st_ino && st->st_dev == own.st_dev;
}

/* 0: the descriptor is of ourselves; else why not. */
static int fd_is_own(long fd)
{
	struct stat st;
	int no = fd < 0 ? errno : fstat((int)fd, &st) ? errno : is_own(&st) ? 0 : -1;

	if (fd >= 0)
		close((int)fd);
	return no;
}

static int stat_is_own(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, 0) ? errno : is_own(&st) ? 0 : -1;
}

/* What leads to ourselves by @path from the working directory @from. */
static void by_name(const char *from, const char *path)
{
	char to[4096] = "";
	int dir = open(from, O_PATH | O_DIRECTORY);
	ssize_t n = readlinkat(dir, path, to, sizeof(to) - 1);

	SAY("%s from %s: stat %d, open %d, link to %s", path, from, stat_is_own(dir, path),
	    fd_is_own(openat(dir, path, O_RDONLY)), n > 0 ? strrchr(to, '/') : strerror(errno));
	close(dir);
	if (chdir(from))
		SAY("chdir: %d", errno);
	SAY("  there: stat %d, access %d, openat2 %d", stat_is_own(AT_FDCWD, path),
	    access(path, X_OK), fd_is_own(open_how(AT_FDCWD, path, O_RDONLY, 0)));
	if (!fork()) {
		execl(path, "again", "again", NULL);
		_exit(98);
	}
	wait(NULL);
	if (chdir(home))
		_exit(1);
}

/* No mapping of a file that is not the program's. */
static void mappings(const char *what, long fd)
{
	static char text[1 << 16];
	ssize_t n, at = 0;

	while (fd >= 0 && (n = read((int)fd, text + at, sizeof(text) - 1 - (size_t)at)) > 0)
		at += n;
	text[at] = 0;
	SAY("%s: %s, %s%s", what, fd < 0 ? strerror(errno) : "open",
	    strstr(text, "/copy") ? "" : "not ",
	    strstr(text, "anyperf-rt") ? "with the runtime" : "the program");
	if (fd >= 0)
		close((int)fd);
}

static void opens(void)
{
	int dir = open("/proc/self", O_PATH | O_DIRECTORY);

	HOLDS(fd_is_own(open_how(AT_FDCWD, EXE, O_RDONLY, 0)) == 0);
	HOLDS(fd_is_own(open_how(dir, "exe", O_PATH, 0)) == 0);
	SAY("no links: %d", fd_is_own(open_how(AT_FDCWD, EXE, O_RDONLY, RESOLVE_NO_SYMLINKS)));
	SAY("no magic: %d", fd_is_own(open_how(AT_FDCWD, EXE, O_RDONLY, RESOLVE_NO_MAGICLINKS)));
	SAY("beneath: %d", fd_is_own(open_how(dir, "exe", O_RDONLY, RESOLVE_BENEATH)));
	SAY("in root: %d", fd_is_own(open_how(dir, "exe", O_RDONLY, RESOLVE_IN_ROOT)));
	SAY("to write: %d, %d", fd_is_own(open(EXE, O_WRONLY)),
	    fd_is_own(open_how(dir, "exe", O_RDONLY | O_TRUNC, 0)));
	SAY("itself: %d", fd_is_own(open_how(dir, "exe", O_RDONLY | O_NOFOLLOW, 0)));
	mappings("maps", open_how(AT_FDCWD, "/proc/self/maps", O_RDONLY, 0));
	mappings("maps beneath", open_how(dir, "maps", O_RDONLY, RESOLVE_BENEATH));
	mappings("maps without links",
		 open_how(AT_FDCWD, "/proc/self/maps", O_RDONLY, RESOLVE_NO_SYMLINKS));
	mappings("maps, no such call", syscall(SYS_openat2, dir, "maps", (void *)8, 24));
	mappings("maps by dots", open("/proc/self/task/../maps", O_RDONLY));
	close(dir);
}

static void changes(void)
{
	struct timespec times[2] = {{1000, 0}, {2000, 0}};
	struct timeval old[2] = {{3000, 0}, {4000, 0}};
	struct {
		struct file_handle h;
		unsigned char bytes[128];
	} a, b;
	char value[16] = "", list[256];
	struct statfs fs, own_fs;
	struct stat st;
	struct pollfd p;
	int mount_a, mount_b, r;

	TRY("link", linkat(AT_FDCWD, EXE, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
	SAY("linked: %d", stat_is_own(AT_FDCWD, "linked"));
	unlink("linked");
	TRY("chmod", chmod(EXE, 0711));
	SAY("%o", stat("copy", &st) ? 0u : st.st_mode);
	TRY("fchmodat", fchmodat(AT_FDCWD, "/proc/self/../self/exe", 0755, 0));
	SAY("%o", stat("copy", &st) ? 0u : st.st_mode);
	TRY("chown", chown(EXE, getuid(), getgid()));
	TRY("fchownat", fchownat(AT_FDCWD, EXE, getuid(), getgid(), 0));
	TRY("utimensat", utimensat(AT_FDCWD, EXE, times, 0));
	SAY("%ld", stat("copy", &st) ? 0 : (long)st.st_atime);
	TRY("utimes", utimes(EXE, old));
	SAY("%ld %ld", stat("copy", &st) ? 0 : (long)st.st_atime, (long)st.st_mtime);
	TRY("truncate", truncate(EXE, 0));
	HOLDS(statfs(EXE, &fs) == 0 && statfs("copy", &own_fs) == 0 && fs.f_type == own_fs.f_type &&
	      !memcmp(&fs.f_fsid, &own_fs.f_fsid, sizeof(fs.f_fsid)));
	r = setxattr(EXE, "user.name", "value", 5, 0);
	SAY("setxattr %d %s", r, r ? strerror(errno) : "");
	r = (int)getxattr("copy", "user.name", value, sizeof(value));
	SAY("getxattr %d %s", r, value);
	memset(value, 0, sizeof(value));
	SAY("by it: %d %s", (int)getxattr(EXE, "user.name", value, sizeof(value)), value);
	SAY("list: %d", (int)listxattr(EXE, list, sizeof(list)));
	SAY("remove: %d, %d left", removexattr(EXE, "user.name"),
	    (int)listxattr("copy", list, sizeof(list)));
	a.h.handle_bytes = b.h.handle_bytes = 128;
	r = name_to_handle_at(AT_FDCWD, EXE, &a.h, &mount_a, AT_SYMLINK_FOLLOW);
	SAY("handle: %d", r);
	HOLDS(r || (!name_to_handle_at(AT_FDCWD, "copy", &b.h, &mount_b, 0) && mount_a == mount_b &&
		    a.h.handle_bytes == b.h.handle_bytes &&
		    !memcmp(a.h.f_handle, b.h.f_handle, a.h.handle_bytes)));
	p.fd = inotify_init1(IN_NONBLOCK);
	p.events = POLLIN;
	HOLDS(inotify_add_watch(p.fd, EXE, IN_OPEN) >= 0);
	close(open("copy", O_RDONLY));
	SAY("watched: %d", poll(&p, 1, 0));
	close(p.fd);
}

static void link_itself(int dir, const char *path)
{
	char to[4096] = "";
	ssize_t n = readlinkat(dir, path, to, sizeof(to) - 1);

	SAY("%s: %s", path, n > 0 ? strrchr(to, '/') : strerror(errno));
}

/* Below a root that has no /proc. */
static void without_proc(void)
{
	int here = open(".", O_PATH | O_DIRECTORY);
	char path[64];

	if (chroot(".") && (unshare(CLONE_NEWUSER) || chroot("."))) {
		SAY("chroot: %s", strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
	TRY("by number", readlink(path, home, sizeof(home)));
	link_itself(AT_FDCWD, EXE);
	link_itself(AT_FDCWD, "proc/self/exe");
	link_itself(AT_FDCWD, "/proc/thread-self/exe");
	link_itself(here, "proc/self/exe");
	SAY("stat %d, open %d, access %d", stat_is_own(AT_FDCWD, EXE),
	    fd_is_own(open(EXE, O_RDONLY)), access(EXE, X_OK));
}

/* The program is copied and the copy run: what it changes is its own. */
static int copied(void)
{
	static char buf[1 << 16];
	int from = open(EXE, O_RDONLY), to = open("copy", O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ssize_t n;
	pid_t pid;
	int status;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return 1;
	close(from);
	close(to);
	pid = fork();
	if (!pid) {
		execl("./copy", "copy", "here", NULL);
		_exit(97);
	}
	waitpid(pid, &status, 0);
	unlink("copy");
	return status;
}

int main(int argc, char **argv)
{
	static const char *const names[][2] = {
		{"/proc", "./self/../self/exe"},
		{"/proc", "self//exe"},
		{"/proc", "thread-self/../../exe"},
		{"/proc/self", "./exe"},
		{"/proc/self", "task/../exe"},
		{"/proc/self/task", "../exe"},
		{"/proc/self/fd", "../../self/exe"},
		{"/", "proc/self/exe"},
		{"/tmp", "../proc/self/exe"},
		{"/", "/proc/./self/exe"},
		{"/", "/proc/self/../self/exe"},
		{"/", "//proc//self//exe"},
		{"/", "/./proc/self/exe"},
		{"/", "/../proc/self/exe"},
		{"/", "/proc/self/root/proc/self/exe"},
	};

	if (argc < 2)
		return copied();
	if (!strcmp(argv[1], "again")) {
		char to[4096] = "";

		HOLDS(readlink(EXE, to, sizeof(to) - 1) > 0 && !strcmp(strrchr(to, '/'), "/copy"));
		return 0;
	}
	if (!getcwd(home, sizeof(home)) || stat("copy", &own))
		return 1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		by_name(names[i][0], names[i][1]);
	opens();
	changes();
	if (!fork()) {
		without_proc();
		return 0;
	}
	wait(NULL);
	return 0;
}
