/* Programs that look at themselves: /proc/self and its relations, the auxiliary vector. */
#include "say.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

static char text[1 << 20];

static const char *slurp(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n, at = 0;

	if (fd < 0) {
		snprintf(text, sizeof(text), "(%s)", strerror(errno));
		return text;
	}
	/* In small pieces, as stdio of old did. */
	while ((n = read(fd, text + at, 777)) > 0)
		at += n;
	text[at] = 0;
	close(fd);
	return text;
}

/* Permissions of the mapping of @file that holds an address, and its file's last component. */
static void where_in(const char *file, const char *what, const void *p)
{
	uintptr_t a = (uintptr_t)p;
	char *line, *save = NULL, perms[8], path[512];
	unsigned long lo, hi;

	slurp(file);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %511[^\n]", &lo, &hi, perms, path) >= 3 &&
		    a >= lo && a < hi) {
			char *slash = strrchr(path, '/');

			SAY("%s: %s %s", what, perms, slash ? slash + 1 : path);
			return;
		}
	}
	SAY("%s: in no mapping", what);
}

static void where(const char *what, const void *p)
{
	where_in("/proc/self/maps", what, p);
}

static void link_of(const char *path)
{
	char to[4096];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	to[n < 0 ? 0 : n] = 0;
	SAY("%s -> %s", path, n < 0 ? strerror(errno) : to);
}

/* Of the number of a call the kernel looks at the lower half of rax, since Linux 5.14. */
static void number_with_more(void)
{
	long nr = SYS_readlink | 0x5aL << 32, n;
	char to[4096];

	__asm__ volatile("syscall"
			 : "=a"(n)
			 : "0"(nr), "D"("/proc/self/exe"), "S"(to), "d"(sizeof(to) - 1)
			 : "rcx", "r11", "memory");
	to[n < 0 ? 0 : n] = 0;
	SAY("with bits above the number: %ld %s", n, to);
}

static void field(const char *file, const char *name)
{
	const char *at = strstr(slurp(file), name);

	SAY("%s %.*s", file, at ? (int)strcspn(at, "\n") : 4, at ? at : "none");
}

static int counts_objects(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	++*(int *)data;
	return 0;
}

static void strings(const char *file)
{
	int fd = open(file, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text));

	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(text + i) + 1)
		SAY("%s: %s", file, text + i);
	close(fd);
}

static int fork_exec_fd(int fd, char **args)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		syscall(SYS_execveat, fd, "", args, environ, AT_EMPTY_PATH);
		_exit(98);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* The file by all names that lead to it; in a mount namespace of its own also bound elsewhere. */
static void other_names(const struct stat *exe)
{
	char *again[] = {(char *)"again", (char *)"execfn", NULL};
	struct stat st;
	char to[4096] = "";
	int fd, dir;

	fd = open("/proc/self/exe", O_PATH);
	HOLDS(fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == exe->st_ino);
	SAY("open by it: %d", fork_exec_fd(fd, again));
	close(fd);
	fd = open("/proc/self/exe", O_PATH | O_NOFOLLOW);
	HOLDS(fd >= 0 && readlinkat(fd, "", to, sizeof(to) - 1) > 0);
	SAY("the link itself: %s", to);
	close(fd);
	dir = open("/proc/self", O_PATH | O_DIRECTORY);
	HOLDS(fstatat(dir, "exe", &st, 0) == 0 && st.st_ino == exe->st_ino);
	close(dir);
	fd = open(".", O_RDONLY | O_DIRECTORY);
	HOLDS(chdir("/proc/self") == 0 && stat("exe", &st) == 0 && st.st_ino == exe->st_ino);
	HOLDS(chdir("/proc") == 0 && stat("self/exe", &st) == 0 && st.st_ino == exe->st_ino);
	HOLDS(fchdir(fd) == 0);
	close(fd);
	if (!fork()) {
		char name[] = "/tmp/unchanged-self-XXXXXX";

		close(mkstemp(name));
		if (unshare(CLONE_NEWNS) == 0 && mount("", "/", "", MS_REC | MS_PRIVATE, "") == 0) {
			HOLDS(mount("/proc/self/exe", name, "", MS_BIND, "") == 0);
			HOLDS(stat(name, &st) == 0 && st.st_ino == exe->st_ino);
			umount(name);
			SAY("bound");
		}
		unlink(name);
		_exit(0);
	}
	wait(NULL);
	if (!fork()) {
		execv("/proc/self/exe", again);
		_exit(1);
	}
	wait(NULL);
}

int main(int argc, char **argv)
{
	static const unsigned long tags[] = {AT_PAGESZ, AT_CLKTCK, AT_PHENT, AT_PHNUM, AT_FLAGS,
					     AT_UID,    AT_SECURE, AT_HWCAP, AT_HWCAP2};
	static int data = 1, bss;
	char path[64], *heap = malloc(100);
	struct stat a, b;
	int objects = 0, named[2], fd;
	Elf64_Ehdr e;
	pid_t pid;
	void *later;

	if (argc > 1 && !strcmp(argv[1], "execfn")) {
		const char *name = (const char *)getauxval(AT_EXECFN);

		SAY("started as %s", strncmp(name, "/dev/fd/", 8) ? name : "a descriptor");
		return 7;
	}
	SAY("%d %s", argc, argv[0]);
	link_of("/proc/self/exe");
	number_with_more();
	link_of("/proc/thread-self/exe");
	snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
	HOLDS(stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_ino == b.st_ino);
	fd = open("/proc/self/exe", O_RDONLY);
	HOLDS(fd >= 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino);
	HOLDS(read(fd, &e, sizeof(e)) == sizeof(e) && e.e_phnum == getauxval(AT_PHNUM));
	close(fd);
	other_names(&a);
	link_of("/proc/self/cwd");
	link_of("/proc/self/root");
	strings("/proc/self/cmdline");
	strings("/proc/self/environ");
	SAY("comm %s", slurp("/proc/self/comm"));
	{
		const char *stat_line = slurp("/proc/self/stat"), *paren = strchr(stat_line, '('),
			   *end = strrchr(stat_line, ')');

		SAY("stat %.*s %c", (int)(end - paren), paren + 1, end[2]);
	}
	field("/proc/self/status", "Name:");
	field("/proc/self/status", "Threads:");
	field("/proc/self/status", "SigBlk:");
	field("/proc/self/status", "SigIgn:");
	field("/proc/self/status", "SigCgt:");
	field("/proc/self/status", "TracerPid:");
	field("/proc/self/status", "Seccomp:");
	where("main", (void *)main);
	where("data", &data);
	where("bss", &bss);
	where("heap", heap);
	where("stack", path);
	where("libc", dlsym(RTLD_DEFAULT, "qsort"));
	where("vdso", (void *)getauxval(AT_SYSINFO_EHDR));
	where("entry", (void *)getauxval(AT_ENTRY));
	where("ld.so", (void *)getauxval(AT_BASE));
	where("nothing", (void *)8);
	{
		void *rwx = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		void *shared = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS,
				    -1, 0);

		*(char *)rwx = (char)0xc3;
		((void (*)(void))rwx)();
		where("rwx after it ran", rwx);
		where("shared code", shared);
		mprotect(rwx, 4096, PROT_READ | PROT_EXEC);
		where("then r-x", rwx);
		where("its other half", (char *)rwx + 4096);
	}
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		SAY("auxv %lu: %lx", tags[i], getauxval(tags[i]));
	SAY("platform %s", (char *)getauxval(AT_PLATFORM));
	SAY("execfn %s", (char *)getauxval(AT_EXECFN));
	{
		unsigned long v[64];
		int n;

		fd = open("/proc/self/auxv", O_RDONLY);
		n = (int)(read(fd, v, sizeof(v)) / 16);
		close(fd);
		for (int i = 0; i < n; i++)
			if (v[2 * i] && v[2 * i] != AT_EXECFN &&
			    getauxval(v[2 * i]) != v[2 * i + 1])
				SAY("auxv %lu differs", v[2 * i]);
	}
	dl_iterate_phdr(counts_objects, &objects);
	SAY("%d objects", objects);
	{
		struct dirent *d;
		DIR *tasks = opendir("/proc/self/task");
		int n = 0;

		while ((d = readdir(tasks)))
			n += d->d_name[0] != '.';
		closedir(tasks);
		SAY("%d tasks", n);
	}
	/* A child is seen by its parent as it would be. */
	pipe(named);
	later = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "the child");
		mprotect(later, 4096, PROT_READ | PROT_EXEC);
		write(named[1], "x", 1);
		pause();
		_exit(0);
	}
	HOLDS(read(named[0], path, 1) == 1);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	SAY("child's comm %s", slurp(path));
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	link_of("/proc/self/exe");
	HOLDS(stat(path, &a) == 0 && stat("/proc/self/exe", &b) == 0 && a.st_ino == b.st_ino);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	SAY("child's cmdline %s", slurp(path));
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	where_in(path, "child's main", (void *)main);
	where_in(path, "child's data", &data);
	where_in(path, "child's libc", dlsym(RTLD_DEFAULT, "qsort"));
	where_in(path, "child's vdso", (void *)getauxval(AT_SYSINFO_EHDR));
	where_in(path, "the child's own code", later);
	where_in(path, "what lies behind it", (char *)later + 4096);
	where("which is the child's alone", later);
	kill(pid, 9);
	waitpid(pid, NULL, 0);
	/* The lowest number that is free, whatever has to be done to show the file. */
	HOLDS(open("/dev/null", O_RDONLY) + 1 == open("/proc/self/maps", O_RDONLY));
	/* Reading and writing one's own memory through the file. */
	fd = open("/proc/self/mem", O_RDWR);
	HOLDS(fd >= 0 && pread(fd, &data, 4, (off_t)(uintptr_t)&bss) == 4 && data == 0);
	data = 99;
	HOLDS(pwrite(fd, &data, 4, (off_t)(uintptr_t)&bss) == 4 && *(volatile int *)&bss == 99);
	return 0;
}
