#include "backend/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/control.h"
#include "backend/runtime.h"

/* As execvp(3): the first file of that name in PATH that may be executed. 0 or an errno. */
static int look_up(const char *name, char *path, size_t size)
{
	const char *dir = getenv("PATH");
	int err = ENOENT;

	if (strchr(name, '/')) {
		if ((size_t)snprintf(path, size, "%s", name) >= size)
			return ENAMETOOLONG;
		return access(path, X_OK) ? errno : 0;
	}
	if (!*name)
		return ENOENT;
	for (dir = dir ? dir : "/bin:/usr/bin";; dir++) {
		size_t len = strcspn(dir, ":");
		struct stat st;

		if ((size_t)snprintf(path, size, "%.*s%s%s", (int)len, dir, len ? "/" : "", name) <
		    size) {
			if (!access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode))
				return 0;
			if (errno == EACCES)
				err = EACCES;
		}
		dir += len;
		if (!*dir)
			return err;
	}
}

/* A text without "#!" is the shell's, as for execvp(3). */
static bool is_plain_text(const char *path)
{
	unsigned char head[256];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n < 1 || (n >= 4 && !memcmp(head, "\177ELF", 4)) || (n >= 2 && !memcmp(head, "#!", 2)))
		return false;
	return !memchr(head, 0, (size_t)n);
}

/* What the child passes on; the descriptors lose CLOEXEC there. */
struct guest_launch {
	int fds[6]; /* as below; borrowed but for FD_CONTROL */
	int inside; /* the session's end of the fourth, or -1; borrowed */
	bool fixed_addresses;
	struct rlimit files; /* RLIMIT_NOFILE that the child is to have, if it was lifted */
	char **argv; /* of the runtime; owned, as are the two strings in it that are not borrowed */
	char number[16]; /* of the control memfd */
	char path[CONTROL_PATH];
};

enum { FD_RUNTIME, FD_CONTROL, FD_SEGMENT, FD_BOOTSTRAP, FD_IMAGES, FD_KEEPER };

/*
 * Out of it the runtime reads what it is told. Where our limit for files (RLIMIT_FSIZE), which
 * holds for a memfd too, is below that, it is a pipe. -errno.
 */
static int fd_with(const struct rt_control *c)
{
	struct rlimit limit;
	int ends[2], fd;
	ssize_t n;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(*c)) {
		if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
			return -errno;
		n = write(ends[1], c, sizeof(*c));
		close(ends[1]);
		fd = ends[0];
	} else {
		fd = memfd_create("anyperf-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0)
			return -errno;
		n = pwrite(fd, c, sizeof(*c), 0);
		if (n > 0 && fcntl(fd, F_ADD_SEALS,
				   F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
			n = -1;
	}
	if (n == (ssize_t)sizeof(*c))
		return fd;
	close(fd);
	return -ENOMEM;
}

/* The runtime's arguments and what it is told. */
static int prepare(struct guest_launch *l, const struct guest_segment *segment,
		   const struct guest_images *images, char *const *argv)
{
	struct rt_control *c = calloc(1, sizeof(*c));
	size_t argc = 0, n = 0;

	while (argv[argc])
		argc++;
	l->argv = calloc(argc + CONTROL_ARGS + 2, sizeof(*l->argv));
	if (!c || !l->argv) {
		free(c);
		return -ENOMEM;
	}
	l->argv[n++] = (char *)"anyperf-rt";
	l->argv[n++] = l->number;
	if (is_plain_text(l->path)) {
		l->argv[n++] = (char *)"/bin/sh";
		l->argv[n++] = l->path;
		argv++;
		snprintf(c->exe, sizeof(c->exe), "/bin/sh");
	} else {
		snprintf(c->exe, sizeof(c->exe), "%s", l->path);
	}
	while (*argv)
		l->argv[n++] = *argv++;
	c->magic = CONTROL_MAGIC;
	c->version = CONTROL_VERSION;
	c->flags = CONTROL_LAUNCH | CONTROL_LIMITS;
	for (size_t i = 0; i < ARRAY_SIZE(c->limits); i++) {
		c->limits[i].cur = segment->limits[i].rlim_cur;
		c->limits[i].max = segment->limits[i].rlim_max;
	}
	c->segment_fd = l->fds[FD_SEGMENT];
	c->rt_fd = l->fds[FD_RUNTIME];
	c->exe_fd = c->interp_fd = -1;
	c->images_fd = l->fds[FD_IMAGES] = images->fd;
	c->keeper_fd = l->fds[FD_KEEPER] = images->keeper;
	c->images_seed = images->seed;
	c->session_fd = l->fds[FD_BOOTSTRAP];
	c->meter = ~0u;
	c->run = segment->number;
	c->config = segment->config;
	l->fds[FD_CONTROL] = fd_with(c);
	free(c);
	snprintf(l->number, sizeof(l->number), "%d", l->fds[FD_CONTROL]);
	return l->fds[FD_CONTROL] < 0 ? l->fds[FD_CONTROL] : 0;
}

int ap__guest_prepare(struct guest_launch **out, const struct guest_segment *segment,
		      const struct guest_images *images, int runtime, int bootstrap, int inside,
		      char *const *argv)
{
	struct guest_launch *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->fds[FD_RUNTIME] = runtime;
	l->fds[FD_CONTROL] = -1;
	l->fds[FD_SEGMENT] = segment->fd;
	l->fds[FD_BOOTSTRAP] = bootstrap;
	l->fds[FD_IMAGES] = l->fds[FD_KEEPER] = -1;
	l->inside = inside;
	l->fixed_addresses = segment->config.flags & SEGMENT_DETERMINISTIC;
	l->files = segment->limits[LIFTED_FILES];
	err = -look_up(argv[0], l->path, sizeof(l->path));
	if (!err)
		err = prepare(l, segment, images, argv);
	if (err)
		ap__guest_free(l);
	else
		*out = l;
	return err;
}

void ap__guest_waits(const struct guest_launch *l)
{
	if (l->inside >= 0)
		close(l->inside);
}

int ap__guest_become(const struct guest_launch *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->fds); i++)
		if (l->fds[i] >= 0)
			fcntl(l->fds[i], F_SETFD, 0);
	/* Where that is forbidden the runtime finds out, and says so. */
	if (l->fixed_addresses)
		(void)personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
	if (l->files.rlim_cur != l->files.rlim_max)
		setrlimit(RLIMIT_NOFILE, &l->files);
	syscall(SYS_execveat, l->fds[FD_RUNTIME], "", l->argv, environ, AT_EMPTY_PATH);
	return errno;
}

void ap__guest_free(struct guest_launch *l)
{
	if (!l)
		return;
	if (l->fds[FD_CONTROL] >= 0)
		close(l->fds[FD_CONTROL]);
	free(l->argv);
	free(l);
}

bool ap__guest_are_we_one(void)
{
	enum { YES = 99 };
	char *const argv[] = {(char *)"anyperf-rt", NULL};
	char *const no_environment[] = {NULL};
	char why[300];
	int rt = ap__runtime_open("rt", "anyperf-rt", why, sizeof(why)), status = 0;
	pid_t pid;

	if (rt < 0)
		return false;
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): it executes or goes */
	/*
	 * NOLINTBEGIN(clang-analyzer-unix.Vfork): the child leaves nothing in our memory but errno
	 */
	if (!pid) {
		/* Started for nothing it would complain. */
		syscall(SYS_close, 2);
		syscall(SYS_execveat, rt, "", argv, no_environment, AT_EMPTY_PATH);
		_exit(errno == EBUSY ? YES : 0);
	}
	/* NOLINTEND(clang-analyzer-unix.Vfork) */
	close(rt);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == YES;
}
