/*
 * Tasks that say how far they are when they are stopped, killed or replaced: what is counted for
 * them must be what they did. Runs wherever instructions can be counted; exit 1 and a sentence when
 * a count is wrong.
 *
 *   mortal kill       children are killed at random points
 *   mortal stop       a child is stopped and continued: its count stands still and fits what it did
 *   mortal spawn FIXED    posix_spawn and vfork of a program of 200,005 instructions, many times
 *   mortal exec FIXED     it is counted from its exec, from outside: each time the same, in some
 *                         time
 *   mortal thread FIXED   one of four busy threads execs that program
 *
 * The work is a loop without a libc in it: a step of it is STEP instructions, and ends by adding
 * one to a word that everybody sees.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 1000
#define STEP  (2 * TURNS + 3) /* movl, the turns, incq, jmp */
#define LIBC  20000           /* what fork and threads need in the C library, at most */

extern char **environ;
static volatile unsigned long *progress; /* shared with the children */

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void steps(volatile unsigned long *word)
{
	asm volatile("1: movl %1, %%ecx\n"
		     "2: decl %%ecx\n\t"
		     "jnz 2b\n\t"
		     "incq (%0)\n\t"
		     "jmp 1b"
		     :
		     : "r"(word), "i"(TURNS)
		     : "ecx", "cc", "memory");
}

static int count_on(pid_t pid, int inherit)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.disabled = pid == 0,
		.inherit = inherit,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	need(fd >= 0, "perf_event_open");
	return fd;
}

static unsigned long value(int fd)
{
	unsigned long v;

	need(read(fd, &v, sizeof(v)) == sizeof(v), "read");
	return v;
}

/* DONE steps are finished, and at most one more is begun. */
static int fits(const char *what, unsigned long count, unsigned long done, unsigned long libc)
{
	if (count >= done * STEP && count <= (done + 1) * STEP + libc)
		return 1;
	fprintf(stderr, "%s: %lu instructions counted, but %lu steps are %lu\n", what, count, done,
		done * STEP);
	return 0;
}

static pid_t start_child(int *go)
{
	int pipefd[2], ready[2];
	pid_t pid;
	char c;

	need(pipe(pipefd) == 0 && pipe(ready) == 0, "pipe");
	*progress = 0;
	pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0) {
		close(pipefd[1]);
		need(write(ready[1], "x", 1) == 1, "write");
		if (read(pipefd[0], &c, 1) == 1)
			steps(progress);
		_exit(1);
	}
	/* What the C library does in a forked child is behind it. */
	need(read(ready[0], &c, 1) == 1, "read");
	close(ready[0]);
	close(ready[1]);
	close(pipefd[0]);
	*go = pipefd[1];
	return pid;
}

static int kill_children(void)
{
	int good = 1, total = count_on(0, 1), self = count_on(0, 0);

	for (int i = 0; i < 100 && good; i++) {
		unsigned long all = value(total), own = value(self), count;
		int go, fd, status;
		pid_t pid;

		prctl(PR_TASK_PERF_EVENTS_ENABLE);
		pid = start_child(&go);
		fd = count_on(pid, 0);
		need(write(go, "x", 1) == 1, "write");
		usleep((unsigned)rand() % 3000);
		kill(pid, SIGKILL);
		need(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL, "waitpid");
		prctl(PR_TASK_PERF_EVENTS_DISABLE);
		count = value(fd);
		good = fits("a killed child", count, *progress, 200);
		good &= fits("a killed child in its parent's event",
			     value(total) - all - (value(self) - own), *progress, LIBC);
		close(go);
		close(fd);
	}
	return good;
}

static int stop_child(void)
{
	int go, status, good = 1;
	pid_t pid = start_child(&go);
	int fd = count_on(pid, 0);
	unsigned long last = 0;

	need(write(go, "x", 1) == 1, "write");
	for (int i = 0; i < 200 && good; i++) {
		unsigned long count;

		usleep((unsigned)rand() % 1000);
		kill(pid, SIGSTOP);
		need(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "waitpid");
		count = value(fd);
		good = fits("a stopped child", count, *progress, 200);
		if (value(fd) != count || count < last) {
			fprintf(stderr, "a stopped child's count moves: %lu, %lu, %lu\n", last,
				count, value(fd));
			good = 0;
		}
		last = count;
		kill(pid, SIGCONT);
	}
	kill(pid, SIGKILL);
	need(waitpid(pid, &status, 0) == pid, "waitpid");
	return good & fits("a child killed after stops", value(fd), *progress, 200);
}

static int spawn_many(char *fixed)
{
	char *argv[] = {fixed, NULL};
	int good = 1, total = count_on(0, 1), self = count_on(0, 0), status;
	unsigned long each[2] = {0};

	for (int i = 0; i < 200 && good; i++) {
		unsigned long all = value(total), own = value(self), child;
		pid_t pid;

		prctl(PR_TASK_PERF_EVENTS_ENABLE);
		if (i % 2) {
			pid = vfork();
			if (pid == 0) {
				execve(fixed, argv, environ);
				_exit(127);
			}
		} else {
			need(posix_spawn(&pid, fixed, NULL, NULL, argv, environ) == 0,
			     "posix_spawn");
		}
		need(waitpid(pid, &status, 0) == pid && status == 0, "waitpid");
		prctl(PR_TASK_PERF_EVENTS_DISABLE);
		child = value(total) - all - (value(self) - own);
		/* The first round of each resolves symbols. */
		if (i > 1 && each[i % 2] && child != each[i % 2]) {
			fprintf(stderr, "%s %d: %lu instructions, the last had %lu\n",
				i % 2 ? "vfork" : "posix_spawn", i, child, each[i % 2]);
			good = 0;
		}
		if (child < 200005 || child > 200005 + LIBC) {
			fprintf(stderr, "%s: %lu instructions of a program of 200005\n",
				i % 2 ? "vfork" : "posix_spawn", child);
			good = 0;
		}
		if (i > 1)
			each[i % 2] = child;
	}
	printf("posix_spawn %lu, vfork %lu\n", each[0], each[1]);
	return good;
}

static int exec_many(char *fixed)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	char *argv[] = {fixed, NULL};
	unsigned long v[3];
	int go[2], fd, status;
	char c;

	for (int i = 0; i < 100; i++) {
		pid_t pid;

		need(pipe(go) == 0, "pipe");
		pid = fork();
		if (pid == 0) {
			close(go[1]);
			need(read(go[0], &c, 1) == 0, "read");
			execve(fixed, argv, environ);
			_exit(127);
		}
		close(go[0]);
		fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
		need(fd >= 0, "perf_event_open");
		close(go[1]);
		need(waitpid(pid, &status, 0) == pid && status == 0, "waitpid");
		need(read(fd, v, sizeof(v)) == sizeof(v), "read");
		close(fd);
		if (v[0] == 200005 && v[1] && v[1] == v[2])
			continue;
		fprintf(stderr,
			"exec %d: %lu instructions, expected 200005, enabled %lu, running %lu ns\n",
			i, v[0], v[1], v[2]);
		return 0;
	}
	return 1;
}

static void *busy(void *word)
{
	steps(word);
	return NULL;
}

static int exec_by_thread(char *fixed)
{
	char *argv[] = {fixed, NULL};
	int good = 1, total = count_on(0, 1), self = count_on(0, 0), status;

	for (int i = 0; i < 40 && good; i++) {
		unsigned long all = value(total), own = value(self), child, done = 0;
		pthread_t thread;
		pid_t pid;

		memset((void *)progress, 0, 4096);
		prctl(PR_TASK_PERF_EVENTS_ENABLE);
		pid = fork();
		if (pid == 0) {
			for (int k = 0; k < 3; k++)
				pthread_create(&thread, NULL, busy, (void *)&progress[k]);
			usleep((unsigned)rand() % 3000);
			execve(fixed, argv, environ);
			_exit(127);
		}
		need(waitpid(pid, &status, 0) == pid && status == 0, "waitpid");
		prctl(PR_TASK_PERF_EVENTS_DISABLE);
		child = value(total) - all - (value(self) - own) - 200005;
		for (int k = 0; k < 3; k++)
			done += progress[k];
		good = fits("threads of a process that execs", child, done, 2 * STEP + LIBC);
	}
	return good;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int good;

	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(progress != MAP_FAILED, "mmap");
	srand((unsigned)getpid());
	if (strcmp(what, "kill") == 0)
		good = kill_children();
	else if (strcmp(what, "stop") == 0)
		good = stop_child();
	else if (strcmp(what, "spawn") == 0 && argc == 3)
		good = spawn_many(argv[2]);
	else if (strcmp(what, "exec") == 0 && argc == 3)
		good = exec_many(argv[2]);
	else if (strcmp(what, "thread") == 0 && argc == 3)
		good = exec_by_thread(argv[2]);
	else
		good = 0;
	return !good;
}
