#include "cli/run/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/control.h"
#include "abi/wire.h"
#include "session/session.h"

#ifndef ANYPERF_LIBEXECDIR
#define ANYPERF_LIBEXECDIR "/usr/local/libexec"
#endif

const char *const meter_names[METER_QUANTITIES] = {
	[METER_INSTRUCTIONS] = "instructions",
	[METER_BRANCHES] = "branches",
	[METER_CONDITIONAL] = "conditional",
	[METER_TAKEN] = "taken",
	[METER_CALLS] = "calls",
	[METER_RETURNS] = "returns",
	[METER_INDIRECT] = "indirect",
};

/* Bytes of the tree that stand for entries of the table of runs. Of this process: a fork does not have it. */
static int lock_run(int fd, u32 index, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};

	return fcntl(fd, F_SETLK, &lock) ? -errno : 0;
}

static int open_run(struct guest_tree *tree, bool keep, char *why, size_t size)
{
	struct meter_runs *runs = meter_runs(tree->head);
	int err = 0;
	u32 i;

	for (i = 0; i < METER_RUNS; i++) {
		err = lock_run(tree->fd, i, F_WRLCK);
		if (err != -EAGAIN && err != -EACCES)
			break;
	}
	if (i == METER_RUNS) {
		snprintf(
			why, size,
			"%u commands run in this session at this moment, and no more of them can be "
			"told apart",
			METER_RUNS);
		return err;
	}
	if (err) {
		snprintf(why, size, "cannot tell the commands of the session apart: %s",
			 strerror(-err));
		return err;
	}
	tree->run = &runs->run[i];
	do
		tree->number = __atomic_add_fetch(&runs->last, 1, __ATOMIC_RELAXED) &
			       ~METER_RUN_KEEP;
	while (!tree->number);
	if (keep)
		tree->number |= METER_RUN_KEEP;
	tree->run->uncounted = 0;
	tree->run->error = 0;
	__atomic_store_n(&tree->run->number, tree->number, __ATOMIC_RELEASE);
	return 0;
}

/* Pages that were kept for us are of use to who runs on, if anybody does. */
static void free_pages(const struct guest_tree *tree)
{
	u32 used = guest_tree_used(tree);

	for (u32 i = 0; i < used; i++) {
		const struct meter *seen = guest_tree_meter(tree, i);
		u32 exited = METER_EXITED;
		struct meter *m;

		if (!seen || __atomic_load_n(&seen->state, __ATOMIC_RELAXED) != METER_EXITED ||
		    __atomic_load_n(&seen->watch, __ATOMIC_SEQ_CST) & WIRE_WATCH_EXIT)
			continue;
		m = mmap(NULL, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, tree->fd,
			 (off_t)meter_tree_offset(i));
		if (m == MAP_FAILED)
			return;
		if (__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			meter_note_freed(tree->head, tree->number, i);
		munmap(m, METER_SIZE);
	}
}

static void close_run(struct guest_tree *tree)
{
	u32 i = (u32)(tree->run - meter_runs(tree->head)->run);

	__atomic_store_n(&tree->run->number, 0, __ATOMIC_SEQ_CST);
	if (tree->number & METER_RUN_KEEP)
		free_pages(tree);
	lock_run(tree->fd, i, F_UNLCK);
}

#define TREE_SIZE (((size_t)METER_TREE_SLOTS + 1) * METER_SIZE)

static int open_beside(const char *relative)
{
	char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	const char *name;
	char *slash;

	if (n > 0) {
		path[n] = '\0';
	} else {
		/* Without /proc there is the name by which we were executed. */
		name = (const char *)getauxval(AT_EXECFN);
		if (!name || !realpath(name, path))
			return -1;
	}
	slash = strrchr(path, '/');
	if (!slash)
		return -1;
	snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", relative);
	return open(path, O_PATH | O_CLOEXEC);
}

static int open_runtime(char *why, size_t size)
{
	const char *name = getenv("ANYPERF_RUNTIME");
	int fd;

	if (!ANYPERF_HAS_RUNTIME) {
		snprintf(why, size,
			 "the translator is for x86-64, and this machine has another CPU");
		return -ENOENT;
	}
	if (name && *name) {
		fd = open(name, O_PATH | O_CLOEXEC);
		if (fd < 0)
			snprintf(why, size, "ANYPERF_RUNTIME names '%s': %s", name,
				 strerror(errno));
		return fd < 0 ? -errno : fd;
	}
	fd = open_beside("../rt/anyperf-rt");
	if (fd < 0)
		fd = open_beside("../libexec/anyperf/anyperf-rt");
	if (fd < 0)
		fd = open(ANYPERF_LIBEXECDIR "/anyperf/anyperf-rt", O_PATH | O_CLOEXEC);
	if (fd < 0) {
		snprintf(why, size,
			 "the runtime anyperf-rt is neither beside this program nor in %s/anyperf; "
			 "install it, or name it in ANYPERF_RUNTIME",
			 ANYPERF_LIBEXECDIR);
		return -ENOENT;
	}
	return fd;
}

int guest_runtime(char *why, size_t size)
{
	int fd = open_runtime(why, size);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Maps the memory behind tree->fd; on failure both descriptors are closed. */
static int map_tree(struct guest_tree *tree, char *why, size_t size)
{
	u32 slots = session_tree_slots(tree->fd);
	void *map = mmap(NULL, meter_tree_offset(slots), PROT_READ, MAP_SHARED | MAP_NORESERVE,
			 tree->fd, 0);
	void *head = mmap(NULL, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, tree->fd, 0);
	int err = -errno;

	if (map != MAP_FAILED && head != MAP_FAILED) {
		tree->map = map;
		tree->head = head;
		tree->slots = slots;
		return 0;
	}
	snprintf(why, size, "cannot map the counters: %s%s", strerror(-err),
		 err == -ENOMEM ? "; raise the limit of addresses (ulimit -v)" : "");
	close(tree->fd);
	close(tree->rt_fd);
	*tree = (struct guest_tree){.fd = -1, .rt_fd = -1};
	return err;
}

int guest_tree_join(struct guest_tree *tree, int fd, bool keep, char *why, size_t size)
{
	int err;

	*tree = (struct guest_tree){.fd = fd};
	tree->rt_fd = open_runtime(why, size);
	if (tree->rt_fd < 0) {
		close(fd);
		tree->fd = -1;
		return tree->rt_fd;
	}
	err = map_tree(tree, why, size);
	if (err)
		return err;
	if (tree->head->magic == METER_TREE_MAGIC) {
		err = open_run(tree, keep, why, size);
	} else {
		snprintf(why, size, "the session was started by another version of anyperf");
		err = -EPROTO;
	}
	if (err)
		guest_tree_close(tree);
	return err;
}

/*
 * A limit on the size of files holds for memory in a file too, though most of it
 * is never written; and who goes over it is killed. The command has the limit as it was.
 */
static int make_size(int fd)
{
	struct rlimit limit, most;
	void (*handler)(int);
	int err = 0;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return ftruncate(fd, TREE_SIZE) ? -errno : 0;
	most = (struct rlimit){limit.rlim_max, limit.rlim_max};
	handler = signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &most);
	if (ftruncate(fd, TREE_SIZE))
		err = -errno;
	setrlimit(RLIMIT_FSIZE, &limit);
	signal(SIGXFSZ, handler);
	return err;
}

int guest_tree_open(struct guest_tree *tree, u32 flags, u32 cache_mb, bool keep, char *why,
		    size_t size)
{
	int err;

	*tree = (struct guest_tree){.fd = -1};
	tree->rt_fd = open_runtime(why, size);
	if (tree->rt_fd < 0)
		return tree->rt_fd;
	tree->fd = memfd_create("anyperf-meters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	err = tree->fd < 0 ? -errno : make_size(tree->fd);
	if (!err && fcntl(tree->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = -errno;
	if (err) {
		snprintf(why, size, "cannot make shared memory for the counters: %s%s",
			 strerror(-err),
			 err == -EFBIG ? "; raise the limit of file sizes (ulimit -f)" : "");
		goto out;
	}
	err = map_tree(tree, why, size);
	if (err)
		return err;
	tree->head->slots = tree->slots;
	tree->head->magic = METER_TREE_MAGIC;
	tree->head->flags = flags;
	tree->head->cache_mb = cache_mb;
	err = open_run(tree, keep, why, size);
	if (err)
		guest_tree_close(tree);
	return err;
out:
	if (tree->fd >= 0)
		close(tree->fd);
	close(tree->rt_fd);
	*tree = (struct guest_tree){.fd = -1, .rt_fd = -1};
	return err;
}

void guest_tree_close(struct guest_tree *tree)
{
	if (tree->fd < 0)
		return;
	if (tree->run)
		close_run(tree);
	munmap((void *)tree->map, meter_tree_offset(tree->slots));
	munmap(tree->head, METER_SIZE);
	close(tree->fd);
	close(tree->rt_fd);
	tree->fd = -1;
}

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

int guest_exec(const struct guest_tree *tree, char *const *argv, int session_fd)
{
	static struct rt_control c;
	char number[16], path[CONTROL_PATH];
	size_t argc = 0, n = 0;
	int fd, err;
	char **v;

	err = look_up(argv[0], path, sizeof(path));
	if (err)
		return err;
	while (argv[argc])
		argc++;
	v = calloc(argc + CONTROL_ARGS + 2, sizeof(*v));
	fd = memfd_create("anyperf-control", 0);
	if (!v || fd < 0) {
		err = errno;
		free(v);
		return err;
	}
	snprintf(number, sizeof(number), "%d", fd);
	v[n++] = (char *)"anyperf-rt";
	v[n++] = number;
	if (is_plain_text(path)) {
		v[n++] = (char *)"/bin/sh";
		v[n++] = path;
		argv++;
		snprintf(c.exe, sizeof(c.exe), "/bin/sh");
	} else {
		snprintf(c.exe, sizeof(c.exe), "%s", path);
	}
	while (*argv)
		v[n++] = *argv++;
	c.magic = CONTROL_MAGIC;
	c.version = CONTROL_VERSION;
	c.flags = CONTROL_LAUNCH;
	c.tree_fd = tree->fd;
	c.rt_fd = tree->rt_fd;
	c.exe_fd = c.interp_fd = -1;
	c.session_fd = session_fd;
	c.meter = ~0u;
	c.run = tree->number;
	if (write(fd, &c, sizeof(c)) != (ssize_t)sizeof(c)) {
		err = errno ? errno : EIO;
		free(v);
		return err;
	}
	fcntl(tree->fd, F_SETFD, 0);
	fcntl(tree->rt_fd, F_SETFD, 0);
	if (session_fd >= 0)
		fcntl(session_fd, F_SETFD, 0);
	/* Where that is forbidden the runtime finds out, and says so. */
	if (tree->head->flags & METER_TREE_DETERMINISTIC)
		(void)personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
	syscall(SYS_execveat, tree->rt_fd, "", v, environ, AT_EMPTY_PATH);
	err = errno;
	free(v);
	return err;
}

bool guest_are_we_one(void)
{
	enum { YES = 99 };
	char *const argv[] = {(char *)"anyperf-rt", NULL};
	char *const no_environment[] = {NULL};
	char why[300];
	int rt = open_runtime(why, sizeof(why)), status = 0;
	pid_t pid;

	if (rt < 0)
		return false;
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): as in cmd-run.c */
	/* NOLINTBEGIN(clang-analyzer-unix.Vfork): the child leaves nothing in our memory but errno */
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

int guest_tree_failure(const struct guest_tree *tree, const char **text)
{
	/* The guest may write here at any time; what is shown is a bounded copy. */
	struct meter_runs *runs = meter_runs(tree->head);
	static char copy[sizeof(runs->text)];
	s32 err = __atomic_exchange_n(&tree->run->error, 0, __ATOMIC_ACQUIRE);

	memcpy(copy, runs->text, sizeof(copy) - 1);
	/* Another's may have failed at the same moment. */
	if (__atomic_load_n(&runs->text_of, __ATOMIC_ACQUIRE) != tree->number)
		copy[0] = '\0';
	*text = copy;
	return err < 0 && err > -4096 ? -err : 0;
}

u32 guest_tree_used(const struct guest_tree *tree)
{
	u32 used = __atomic_load_n(&tree->head->used, __ATOMIC_ACQUIRE);

	return used < tree->slots ? used : tree->slots;
}

const struct meter *guest_tree_meter(const struct guest_tree *tree, u32 index)
{
	const struct meter *m = (const struct meter *)(tree->map + meter_tree_offset(index));

	return __atomic_load_n(&m->run, __ATOMIC_ACQUIRE) == tree->number ? m : NULL;
}

u32 guest_tree_uncounted(const struct guest_tree *tree)
{
	return __atomic_load_n(&tree->run->uncounted, __ATOMIC_RELAXED);
}

bool guest_tree_uncounted_at(const struct guest_tree *tree, u32 i, struct meter_uncounted *u)
{
	const struct meter_uncounted *entry = &tree->head->uncounted[i];

	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != METER_UNCOUNTED_READY)
		return false;
	*u = *entry;
	u->path[sizeof(u->path) - 1] = u->why[sizeof(u->why) - 1] = '\0';
	return u->run == tree->number;
}

void guest_tree_total(const struct guest_tree *tree, u64 total[METER_QUANTITIES])
{
	u32 used = guest_tree_used(tree);

	memset(total, 0, METER_QUANTITIES * sizeof(*total));
	for (u32 i = 0; i < used; i++) {
		const struct meter *m = guest_tree_meter(tree, i);

		for (u32 q = 0; m && q < METER_QUANTITIES; q++)
			total[q] += meter_sum(m, q) - m->run_base[q];
	}
}
