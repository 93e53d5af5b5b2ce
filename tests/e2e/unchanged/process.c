/*
 * Making processes and becoming other programs: fork, vfork, clone, posix_spawn, every way to exec,
 * what an exec keeps and what it refuses. Run as `process KIND ...` it is the child that reports.
 */
#include "say.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

extern char **environ;

static void reap(const char *what, pid_t pid)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	SAY("%s: waited %d, status %x", what, got == pid, (unsigned int)status);
}

static int report(int argc, char **argv)
{
	char name[32] = "";
	int n = 0;

	prctl(PR_GET_NAME, name);
	SAY("  name %s", name);
	for (int i = 0; i < argc; i++)
		SAY("  argument %d: %s", i, argv[i]);
	for (char **e = environ; *e; e++, n++)
		if (!strncmp(*e, "UNCHANGED", 9))
			SAY("  environment: %s", *e);
	SAY("  descriptor 33 is %s", fcntl(33, F_GETFD) >= 0 ? "open" : "closed");
	SAY("  descriptor 34 is %s", fcntl(34, F_GETFD) >= 0 ? "open" : "closed");
	return 40 + argc;
}

static void forks(void)
{
	volatile int stack_value = 1;
	int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (pid == 0) {
			stack_value = 2;
			__atomic_fetch_add(shared, 1, __ATOMIC_RELAXED);
			_exit(getppid() > 0 ? i : 99);
		}
		reap("fork", pid);
	}
	SAY("stack %d shared %d", stack_value, *shared);
	pid = vfork();
	if (pid == 0) {
		stack_value = 3;
		_exit(9);
	}
	reap("vfork", pid);
	SAY("stack after vfork %d", stack_value);
	pid = vfork();
	if (pid == 0) {
		execl("/does/not/exist", "x", NULL);
		_exit(errno);
	}
	reap("vfork and no exec", pid);
	/* A tree of sixteen, all at once; each waits for its own. */
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		for (int depth = 0; depth < 4; depth++)
			fork();
		__atomic_fetch_add(shared, 100, __ATOMIC_RELAXED);
		while (wait(NULL) > 0)
			;
		_exit(0);
	}
	reap("tree", pid);
	SAY("grown to %d", *shared);
}

static int clone_child(void *arg)
{
	*(int *)arg = 77;
	return 13;
}

static void clones(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int value = 0;
	pid_t pid = clone(clone_child, stack + sizeof(stack), SIGCHLD, &value);

	reap("clone", pid);
	SAY("value %d", value);
	pid = clone(clone_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &value);
	reap("clone with CLONE_VM", pid);
	SAY("value %d", value);
	pid = clone(clone_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &value);
	reap("clone as vfork", pid);
}

/* Where both sides write the child's number, by the call itself. */
static void clone_numbers(void)
{
	pid_t parents = -1, childs = -1, pid;

	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0,
			     &parents, &childs, 0);
	if (!pid)
		_exit(childs == getpid() ? 21 : 22);
	SAY("the parent's number is right %d, the child's untouched %d", parents == pid,
	    childs == -1);
	reap("clone that writes numbers", pid);
}

static void clone3s(void)
{
	struct clone_args args = {.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
	struct sigaction usr1, usr2, segv;
	pid_t pid;

	signal(SIGUSR1, (void (*)(int))(void *)reap);
	signal(SIGSEGV, (void (*)(int))(void *)reap);
	signal(SIGUSR2, SIG_IGN);
	fflush(stdout);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		sigaction(SIGUSR1, NULL, &usr1);
		sigaction(SIGUSR2, NULL, &usr2);
		sigaction(SIGSEGV, NULL, &segv);
		SAY("handlers cleared: %d %d, still ignored: %d", usr1.sa_handler == SIG_DFL,
		    segv.sa_handler == SIG_DFL, usr2.sa_handler == SIG_IGN);
		*(volatile int *)8 = 1;
	}
	reap("clone3 without handlers", pid);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	args.flags = CLONE_NEWTIME; /* where CSIGNAL is, in clone(2) */
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(3);
	SAY("in a time namespace: %s", pid > 0 ? "yes" : strerror(errno));
	if (pid > 0)
		reap("of another time", pid);
}

static volatile sig_atomic_t faults;

static void on_fault(int sig)
{
	(void)sig;
	faults++;
}

/* What the kernel was given for the program that did not begin is the old one's no more. */
static void after_failed_exec(const char *path, char **args)
{
	/* mov $7, %eax; ret */
	static const unsigned char seven[] = {0xb8, 7, 0, 0, 0, 0xc3};
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*volatile run)(void) = (int (*)(void))code;
	char *none[] = {NULL};
	sigset_t set;
	int sum;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	signal(SIGSEGV, on_fault);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGSEGV);
	TRY("refused", execve(path, args, none));
	memcpy(code, seven, sizeof(seven));
	sum = run();
	/* Who translates it is told by a fault that it has changed. */
	code[1] = 8;
	sum += run();
	SAY("15 is %d, %d handled", sum, (int)faults);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	SAY("%d handled", (int)faults);
	_exit(0);
}

/* A copy of it. */
static int memfd_of(const char *path)
{
	int to = memfd_create("copied", MFD_CLOEXEC), from = open(path, O_RDONLY);
	struct stat st;

	fstat(from, &st);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(to, from, NULL, (size_t)left);

		if (n <= 0)
			break;
		left -= n;
	}
	close(from);
	return to;
}

static void execs(const char *self)
{
	void *volatile bad = (void *)8;
	char path[4096],
		*args[] = {(char *)"zero", (char *)"one", (char *)"", (char *)"three four", NULL};
	char *env[] = {(char *)"UNCHANGED=yes", (char *)"UNCHANGED_2=a=b", NULL};
	char *none[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int spawned;
	sigset_t set;
	pid_t pid;
	int fd;

	dup2(1, 33);
	dup2(1, 34);
	fcntl(34, F_SETFD, FD_CLOEXEC);
#define CHILD(what, ...)                    \
	do {                                \
		pid = fork();               \
		if (pid == 0) {             \
			__VA_ARGS__;        \
			_exit(100 + errno); \
		}                           \
		reap(what, pid);            \
	} while (0)
	snprintf(path, sizeof(path), "%s", self);
	CHILD("execve", execve(path, args, env));
	CHILD("execve without environment", execve(path, args, none));
	CHILD("execve of /proc/self/exe", execve("/proc/self/exe", args, env));
	CHILD("execve without arguments", execve(path, none, env));
	symlink(path, "link");
	CHILD("a link", execve("link", args, env));
	CHILD("a relative path", execve("./link", args, env));
	mkdir("sub", 0700);
	CHILD("from another directory", chdir("sub"), execve("../link", args, env));
	CHILD("PATH", setenv("PATH", "/nonexistent:.", 1), execvp("link", args));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHILD("fexecve", fexecve(fd, args, env));
	CHILD("execveat", syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH));
	fd = memfd_of(path);
	CHILD("fexecve of memory", fexecve(fd, args, env));
	fd = open("sub", O_RDONLY | O_DIRECTORY);
	CHILD("execveat of a directory's", syscall(SYS_execveat, fd, "../link", args, env, 0));
	CHILD("execveat, links refused",
	      syscall(SYS_execveat, fd, "../link", args, env, AT_SYMLINK_NOFOLLOW));
	CHILD("script", execve("script", args, env));
	CHILD("script of a script", execve("script2", args, env));
	CHILD("script through PATH", setenv("PATH", ".", 1), execvp("script", args));
	CHILD("script with a missing interpreter", execve("script3", args, env));
	CHILD("text without #!", execve("plain", args, env));
	CHILD("text without #! through the shell", execvp("./plain", args));
	CHILD("a directory", execve("sub", args, env));
	CHILD("not executable", execve("data", args, env));
	CHILD("nothing there", execve("nothing", args, env));
	CHILD("an empty name", execve("", args, env));
	CHILD("a bad pointer", execve(bad, args, env));
	CHILD("bad arguments", execve(path, bad, env));
	CHILD("a broken ELF", execve("broken", args, env));
	CHILD("too long", {
		char *huge = malloc(200000), *many[3] = {(char *)"x", huge, NULL};

		memset(huge, 'a', 199999);
		huge[199999] = 0;
		execve(path, many, env);
	});
	CHILD("signals after text without #!", after_failed_exec("plain", args));
	CHILD("signals after too long", {
		char *huge = malloc(200000), *many[3] = {(char *)"x", huge, NULL};

		memset(huge, 'a', 199999);
		huge[199999] = 0;
		after_failed_exec(path, many);
	});
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 35, "spawned", O_WRONLY | O_CREAT, 0644);
	posix_spawn_file_actions_adddup2(&actions, 35, 34);
	posix_spawn_file_actions_addclose(&actions, 33);
	posix_spawnattr_init(&attr);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attr, &set);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	spawned = posix_spawn(&pid, path, &actions, &attr, args, env);
	reap("posix_spawn", pid);
	SAY("posix_spawn: %d", spawned); /* not before: the child says things too */
	SAY("posix_spawnp of nothing: %d",
	    posix_spawnp(&pid, "nothing-there", NULL, NULL, args, env));
	/* A thread that execs takes the others with it. */
	CHILD("exec of self, 20 times over", {
		char left[] = "20", *chain[] = {(char *)"chain", left, NULL};

		execve(path, chain, env);
	});
	SAY("system: %x", (unsigned int)system("exit 3"));
	{
		FILE *f = popen("echo from a pipe; exit 4", "r");
		char line[100] = "";

		fgets(line, sizeof(line), f);
		SAY("popen: %.11s, %x", line, (unsigned int)pclose(f));
	}
}

static void attributes(void)
{
	char name[32] = "";
	struct rlimit rl;
	mode_t mask;

	prctl(PR_SET_NAME, "new-name");
	prctl(PR_GET_NAME, name);
	SAY("name %s", name);
	mask = umask(027);
	close(open("masked", O_CREAT | O_WRONLY, 0666));
	umask(mask);
	getrlimit(RLIMIT_NOFILE, &rl);
	SAY("nofile %lu", (unsigned long)rl.rlim_cur);
	getrlimit(RLIMIT_STACK, &rl);
	SAY("stack %lu", (unsigned long)rl.rlim_cur);
	getrlimit(RLIMIT_AS, &rl);
	SAY("as %lu", (unsigned long)rl.rlim_cur);
	SAY("nice %d", getpriority(PRIO_PROCESS, 0));
	SAY("dumpable %d", prctl(PR_GET_DUMPABLE));
	SAY("pdeathsig %d", prctl(PR_SET_PDEATHSIG, SIGKILL) | prctl(PR_SET_PDEATHSIG, 0));
	SAY("no new privs %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static void daemonize(void)
{
	pid_t pid = fork();
	int fd, tries = 0;

	if (pid == 0) {
		setsid();
		if (fork())
			_exit(0);
		close(0);
		close(1);
		close(2);
		usleep(30000);
		fd = open("daemon.tmp", O_CREAT | O_WRONLY, 0644);
		dprintf(fd, "I am %d with parent %d\n", getsid(0) != getpid(), getppid() >= 1);
		close(fd);
		rename("daemon.tmp", "daemon");
		_exit(0);
	}
	reap("daemon's father", pid);
	while (access("daemon", F_OK) && tries++ < 1000)
		usleep(10000);
	SAY("the daemon wrote: %d", tries < 1000);
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = 0;
	if (argc == 0 || !strcmp(argv[0], "zero") || strcmp(part, "-all")) {
		if (argc == 2 && !strcmp(argv[0], "chain") && atoi(argv[1]) > 0) {
			snprintf(argv[1], 3, "%u", (unsigned char)(atoi(argv[1]) - 1) % 100u);
			execve(self, argv, environ);
		}
		return report(argc, argv);
	}
	clones();
	clone_numbers();
	clone3s();
	execs(self);
	attributes();
	daemonize();
	forks();
	return 0;
}
