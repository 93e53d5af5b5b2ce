/*
 * A command. One socket is start pipe and messenger: the parent's byte lets the child go; the other
 * end is close-on-exec, so the parent hears nothing of a program that starts, and an errno of one
 * that does not. If the parent dies first the child reads the end of the stream and goes too.
 */
#include "lib/command-priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/session-process.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-pmu.h"
#include "lib/machine/machine-priv.h"

/*
 * Executes the program; returns an errno, or -errno if it is the runtime that cannot be executed.
 * Makes nothing but system calls.
 */
static int become(const struct ap_command *c, char *const *argv)
{
	int err;

	if (!c->launch) {
		execvp(argv[0], argv);
		return errno;
	}
	err = ap__guest_become(c->launch);
	/* That is how a translator around us refuses another one. */
	return err == EBUSY ? err : -err;
}

static void __attribute__((noreturn)) run_child(const struct ap_command *c, int start_pipe,
						char *const *argv, const struct ap_command_opts *o)
{
	int err;
	char go;

	if (o->in_child)
		o->in_child(o->data);
	if (c->launch)
		ap__guest_waits(c->launch);
	if (recv(start_pipe, &go, 1, 0) != 1)
		_exit(0);
	err = become(c, argv);
	/* A parent that has gone does not read it; then nobody needs it. */
	(void)!send(start_pipe, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(err == ENOENT ? 127 : 126);
}

/* A process that waits. 0 or -errno. */
static int fork_waiting(struct ap_command *c, char *const *argv, const struct ap_command_opts *o)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/*
	 * fork(2) itself: the C library's fork() prepares the child for more than reading a byte
	 * and executing a program, with a system call of its own.
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
		run_child(c, ends[1], argv, o);
	}
	c->start_pipe = ends[0];
	c->child_end = ends[1];
	return 0;
}

/*
 * By vfork(2): the child does nothing but execute the program, and copying a process for that takes
 * longer than all of it. What the child leaves in our memory is an errno.
 */
static int fork_at_once(struct ap_command *c, char *const *argv, const struct ap_command_opts *o)
{
	volatile int failure = 0;
	pid_t pid;

	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see above */
	if (pid < 0)
		return -errno;
	/*
	 * NOLINTBEGIN(clang-analyzer-unix.Vfork): the mask is the child's own, the errno ours to
	 * find
	 */
	if (!pid) {
		if (o->in_child)
			o->in_child(o->data);
		failure = become(c, argv);
		_exit(failure == ENOENT ? 127 : 126);
	}
	/* NOLINTEND(clang-analyzer-unix.Vfork) */
	c->pid = pid;
	c->exec_errno = failure;
	c->started = true;
	return 0;
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

/* Why its interpreter @script is not there. */
static void explain_script(char *script, char *why, size_t size)
{
	size_t len = strlen(script);

	if (len && script[len - 1] == '\r') {
		script[len - 1] = 0;
		snprintf(why, size,
			 "its first line names '%s' and a carriage return, which does not exist: "
			 "take them out of its lines (sed -i 's/\\r$//')",
			 script);
		return;
	}
	snprintf(why, size, "its first line names '%s', which does not exist", script);
}

/* Why program @name could not be executed with errno @e. Returns -@e. */
static int explain_exec(const char *name, int e, struct ap_error *err)
{
	struct stat st = {0};
	bool is_path = strchr(name, '/') != NULL, found = !stat(name, &st);
	char script[256], why[400];

	if (e == EBUSY) {
		ap__fail(
			err, -e, AP_CAUSE_BUSY,
			"this runs under `anyperf run` already, and one translator inside another is "
			"not supported");
		return -e;
	}
	if (e == ENOENT && !*name)
		snprintf(why, sizeof(why), "the name is empty");
	else if (e == ENOENT && !is_path)
		snprintf(why, sizeof(why), "no directory of PATH has it%s",
			 found ? "; there is one here, which would be './' and its name" : "");
	else if (e == ENOENT && found && interpreter(name, script, sizeof(script)))
		explain_script(script, why, sizeof(why));
	else if (e == ENOENT && found)
		snprintf(why, sizeof(why), "the file exists, but not the loader it was linked for");
	else if (e == EACCES && is_path && S_ISDIR(st.st_mode))
		snprintf(why, sizeof(why), "it is a directory");
	else if (e == EACCES && is_path && S_ISREG(st.st_mode) && !(st.st_mode & 0111))
		snprintf(why, sizeof(why), "it is not executable (chmod +x)");
	else
		snprintf(why, sizeof(why), "%s", strerror(e));
	return ap__fail(err, -e, AP_CAUSE_FILE, "cannot run '%.120s': %s", name, why);
}

/* Readies the virtual PMU for the program, if it is to count. */
static int prepare(struct ap_command *c, char *const *argv, unsigned int flags,
		   struct ap_error *err)
{
	char why[300];
	int r;

	if (c->m->ops != &ap__backend_virtual)
		return 0;
	c->virtual_pmu = c->m->virtual_pmu;
	r = ap__virtual_launch(c->virtual_pmu, argv, &c->launch, why, sizeof(why));
	if (!r && !(flags & AP__COMMAND_SERVED))
		r = ap__virtual_make_session(c->virtual_pmu, why, sizeof(why));
	if (!r && !(flags & AP__COMMAND_SERVED))
		ap__virtual_keep(c->virtual_pmu);
	if (r && *why)
		return ap__pmu_fail(err, r, why);
	return r ? explain_exec(argv[0], -r, err) : 0;
}

int ap__command_new(struct ap_command **out, struct ap_machine *m, char *const *argv,
		    const struct ap_command_opts *opts, unsigned int flags, struct ap_error *err)
{
	struct ap_command_opts o = {.size = sizeof(o)};
	struct ap_command *c = calloc(1, sizeof(*c));
	int r;

	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	if (!c)
		return ap__fail_memory(err);
	c->m = m;
	c->start_pipe = c->child_end = -1;
	c->name = strdup(argv[0] ? argv[0] : "");
	if (!c->name || !argv[0]) {
		r = c->name ? ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "there is no command")
			    : ap__fail_memory(err);
		goto fail;
	}
	r = prepare(c, argv, flags, err);
	if (r)
		goto fail;
	r = flags & AP__COMMAND_AT_ONCE ? fork_at_once(c, argv, &o) : fork_waiting(c, argv, &o);
	if (!r && c->virtual_pmu && !c->started)
		r = ap__virtual_made(c->virtual_pmu, c->pid);
	if (!r) {
		*out = c;
		return 0;
	}
	ap__fail(err, r, AP_CAUSE_OTHER, "cannot make a process: %s", ap__no_process(r));
fail:
	ap_command_free(c);
	return r;
}

int ap_command_new(struct ap_command **out, struct ap_machine *m, char *const *argv,
		   const struct ap_command_opts *opts, struct ap_error *err)
{
	return ap__command_new(out, m, argv, opts, 0, err);
}

pid_t ap_command_pid(const struct ap_command *c)
{
	return c->pid;
}

void ap_command_start(struct ap_command *c)
{
	if (c->started)
		return;
	c->started = true;
	if (c->virtual_pmu)
		ap__virtual_started(c->virtual_pmu, c->pid);
	/* If the child was killed while it waited, the wait for it tells. */
	(void)!send(c->start_pipe, "", 1, MSG_NOSIGNAL);
	close(c->child_end);
	c->child_end = -1;
}

/* 1: it has ended and has been waited for; 0: it has not ended; -errno. */
static int reap(struct ap_command *c, int options)
{
	siginfo_t info = {0};
	pid_t got;

	/* Before the command is waited for, with which its /proc goes. */
	if (c->virtual_pmu) {
		while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT | options) < 0)
			if (errno != EINTR)
				return -errno;
		if (!info.si_pid)
			return 0;
		ap__virtual_ended(c->virtual_pmu);
	}
	do
		got = wait4(c->pid, &c->status, options, &c->usage);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got > 0;
}

/* What the child, or the runtime in its place, has left to say. */
static void learn_failure(struct ap_command *c)
{
	int e;

	if (c->start_pipe < 0)
		return;
	if (recv(c->start_pipe, &e, sizeof(e), MSG_DONTWAIT) == sizeof(e))
		c->exec_errno = e;
	close(c->start_pipe);
	c->start_pipe = -1;
}

/* With what a runtime ends that could not begin the command: meter_no_launch(). */
#define NO_LAUNCH 127

static int failure(struct ap_command *c, struct ap_error *err)
{
	const char *text = "";
	int e = c->exec_errno;

	/* Guests can write there as well; but how it has ended the kernel says. */
	if (!e && c->virtual_pmu && WIFEXITED(c->status) && WEXITSTATUS(c->status) == NO_LAUNCH)
		e = ap__segment_failure(ap__virtual_segment(c->virtual_pmu), &text);
	if (!e)
		return 0;
	if (e < 0)
		return ap__fail(err, e, AP_CAUSE_SESSION,
				"cannot run anyperf's own runtime, anyperf-rt: %s", strerror(-e));
	if (!*text)
		return explain_exec(c->name, e, err);
	/* A program that only the kernel can run. */
	if (e == EPERM)
		return ap__fail(err, -e, AP_CAUSE_UNSUPPORTED, "cannot run '%.120s': %s", c->name,
				text);
	/* That the runtime cannot be run by the runtime is not that we run in it. */
	return ap__fail(err, e == EBUSY ? -EPERM : -e, AP_CAUSE_FILE, "cannot run '%.120s': %s",
			c->name, text);
}

int ap_command_wait(struct ap_command *c, unsigned int flags, struct ap_command_end *end,
		    struct ap_error *err)
{
	const struct rusage *usage = &c->usage;
	int r = ap__flags_known(err, "flags of ap_command_wait()", flags, AP_COMMAND_NOHANG);

	if (r)
		return r;
	if (!c->pid)
		return ap__fail(err, -ECHILD, AP_CAUSE_NO_TASK,
				"the command has been waited for already");
	ap_command_start(c);
	r = reap(c, flags & AP_COMMAND_NOHANG ? WNOHANG : 0);
	if (!r)
		return 0;
	c->pid = 0;
	if (r == -ECHILD) {
		ap__fail(
			err, r, AP_CAUSE_NO_TASK,
			"the command's status is lost: another wait took it, or SIGCHLD is ignored, with "
			"which the kernel keeps none");
		return ap__remedy(err, r, "before the command is made: signal(SIGCHLD, SIG_DFL)");
	}
	if (r < 0)
		return ap__fail(err, r, AP_CAUSE_NO_TASK, "waiting for the command: %s",
				strerror(-r));
	learn_failure(c);
	if (end)
		*end = (struct ap_command_end){
			.status = c->status,
			.user_ns = (u64)usage->ru_utime.tv_sec * 1000000000 +
				   (u64)usage->ru_utime.tv_usec * 1000,
			.system_ns = (u64)usage->ru_stime.tv_sec * 1000000000 +
				     (u64)usage->ru_stime.tv_usec * 1000,
		};
	r = failure(c, err);
	return r ? r : 1;
}

void ap_command_free(struct ap_command *c)
{
	if (!c)
		return;
	if (c->child_end >= 0)
		close(c->child_end);
	if (c->start_pipe >= 0)
		close(c->start_pipe);
	/* One that waits reads the end of the stream. */
	if (c->pid && !c->started) {
		if (c->virtual_pmu)
			ap__virtual_started(c->virtual_pmu, c->pid);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	ap__guest_free(c->launch);
	free(c->name);
	free(c);
}

const struct rusage *ap__command_usage(const struct ap_command *c)
{
	return &c->usage;
}

struct virtual_pmu *ap__machine_virtual(const struct ap_machine *m)
{
	return m->virtual_pmu;
}

const struct guest_segment *ap__machine_segment(const struct ap_machine *m)
{
	return m->virtual_pmu ? ap__virtual_segment(m->virtual_pmu) : NULL;
}

int ap_machine_uncounted(struct ap_machine *m, ap_uncounted_fn *fn, void *data, unsigned int *n)
{
	const struct guest_segment *segment = ap__machine_segment(m);
	struct meter_uncounted u;
	int r = 0;

	*n = segment ? ap__segment_uncounted(segment) : 0;
	for (u32 i = 0; segment && fn && !r && i < SEGMENT_UNCOUNTED; i++)
		if (ap__segment_uncounted_at(segment, i, &u))
			r = fn(&(struct ap_uncounted){.pid = (pid_t)u.pid,
						      .path = u.path,
						      .why = u.why},
			       data);
	return r;
}
