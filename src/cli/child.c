#include "cli/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * One socket is gate and messenger: the parent's byte opens it; the other end is close-on-exec, so
 * the parent hears nothing of a program that starts, and an errno of one that does not. If the parent
 * dies first the child reads the end of the stream and goes too.
 */
static void __attribute__((noreturn))
run_child(int gate, char *const *argv, const struct signals *signals,
	  int (*become)(void *arg, char *const *argv), void *arg)
{
	int err;
	char go;

	signals_restore(signals);
	if (recv(gate, &go, 1, 0) != 1)
		_exit(0);
	err = become(arg, argv);
	/* A parent that has gone does not read it; then nobody needs it. */
	(void)!send(gate, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(err == ENOENT ? 127 : 126);
}

static int become_program(void *arg, char *const *argv)
{
	(void)arg;
	execvp(argv[0], argv);
	return errno;
}

int child_make(struct child *c, char *const *argv, const struct signals *signals)
{
	return child_make_as(c, argv, signals, become_program, NULL);
}

int child_make_as(struct child *c, char *const *argv, const struct signals *signals,
		  int (*become)(void *arg, char *const *argv), void *arg)
{
	int ends[2];

	*c = (struct child){.gate = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/*
	 * fork(2) itself: the C library's fork() prepares the child for more than reading a byte and
	 * executing a program, with a system call of its own.
	 */
	c->pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (c->pid < 0) {
		int err = -errno;

		c->pid = 0;
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	if (!c->pid) {
		/* Our copy of the parent's end would keep the stream open when the parent dies. */
		close(ends[0]);
		run_child(ends[1], argv, signals, become, arg);
	}
	c->gate = ends[0];
	c->other = ends[1];
	return 0;
}

void child_release(struct child *c)
{
	/* If the child was killed at the gate, reaping tells. */
	(void)!send(c->gate, "", 1, MSG_NOSIGNAL);
	close(c->other);
}

void child_abandon(struct child *c)
{
	if (!c->pid)
		return;
	close(c->other);
	close(c->gate);
	c->gate = -1;
	child_reap(c, true);
}

int child_reap(struct child *c, bool block)
{
	pid_t got;

	do
		got = wait4(c->pid, &c->status, block ? 0 : WNOHANG, &c->usage);
	while (got < 0 && errno == EINTR);
	if (got == 0)
		return 0;
	if (c->gate >= 0) {
		if (recv(c->gate, &c->exec_errno, sizeof(c->exec_errno), MSG_DONTWAIT) !=
		    sizeof(c->exec_errno))
			c->exec_errno = 0;
		close(c->gate);
		c->gate = -1;
	}
	c->pid = 0;
	return 1;
}

void child_cpu_time(const struct child *c, u64 *user, u64 *system)
{
	unsigned long own_user, own_system;
	long others_user, others_system;
	u64 tick = 1000000000ull / (u64)sysconf(_SC_CLK_TCK);
	char path[32], line[512], *fields;
	FILE *f;

	*user = (u64)c->usage.ru_utime.tv_sec * 1000000000ull +
		(u64)c->usage.ru_utime.tv_usec * 1000;
	*system = (u64)c->usage.ru_stime.tv_sec * 1000000000ull +
		  (u64)c->usage.ru_stime.tv_usec * 1000;
	if (!c->pid)
		return;
	*user = *system = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)c->pid);
	f = fopen(path, "re");
	/* The name, in parentheses, may hold anything. */
	fields = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (fields &&
	    sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
		   &own_user, &own_system, &others_user, &others_system) == 4) {
		*user = (own_user + (u64)others_user) * tick;
		*system = (own_system + (u64)others_system) * tick;
	}
	if (f)
		fclose(f);
}

int child_exit_status(const struct child *c)
{
	if (c->exec_errno)
		return c->exec_errno == ENOENT ? 127 : 126;
	if (WIFSIGNALED(c->status))
		return 128 + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}

/* "/bin/nosuch" out of a script's first line "#! /bin/nosuch -x"; false if it has none. */
static bool interpreter(const char *path, char *buf, size_t size)
{
	char line[256];
	size_t len;
	char *name;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	len = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[len] = 0;
	if (strncmp(line, "#!", 2) != 0)
		return false;
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\n")] = 0;
	snprintf(buf, size, "%s", name);
	return true;
}

void child_explain(const struct child *c, const char *who, char *const *argv)
{
	const char *name = argv[0];
	bool is_path = strchr(name, '/') != NULL;
	struct stat st;
	char script[256];

	fprintf(stderr, "anyperf %s: cannot run '%s': ", who, name);
	if (c->exec_errno == ENOENT && !*name)
		fprintf(stderr, "the name is empty\n");
	else if (c->exec_errno == ENOENT && !is_path)
		fprintf(stderr, "no directory of PATH has it%s\n",
			stat(name, &st) ? ""
					: "; there is one here, which would be './' and its name");
	else if (c->exec_errno == ENOENT && !stat(name, &st) &&
		 interpreter(name, script, sizeof(script)))
		fprintf(stderr, "its first line names '%s', which does not exist\n", script);
	else if (c->exec_errno == ENOENT && !stat(name, &st))
		fprintf(stderr, "the file exists, but not the loader it was linked for\n");
	else if (c->exec_errno == EACCES && is_path && !stat(name, &st) && S_ISDIR(st.st_mode))
		fprintf(stderr, "it is a directory\n");
	else if (c->exec_errno == EACCES && is_path && !stat(name, &st) && S_ISREG(st.st_mode) &&
		 !(st.st_mode & 0111))
		fprintf(stderr, "it is not executable (chmod +x)\n");
	else
		fprintf(stderr, "%s\n", strerror(c->exec_errno));
}
