/*
 * What is checked here and in which order follows the kernel: bprm_execve() opens the file and
 * looks at its permissions, then its format handlers look at its first 256 bytes. Where the running
 * kernel knows AT_EXECVE_CHECK (6.14), it is asked itself.
 */
#include "rt/load/execve.h"

#include "rt/load/images.h"

#include "rt/arch.h"
#include "rt/deterministic/deterministic-run.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mdwe.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/proc/proc-files.h"
#include "rt/sample/sample.h"
#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <linux/prctl.h>
#include <linux/stat.h>

/* Whether this kernel knows AT_EXECVE_CHECK: 0 not asked yet, 1 yes, -1 no. */
static int have_check;

static bool kernel_knows_check(void)
{
	static const char *const none[] = {NULL};

	/* An unknown flag is EINVAL before anything else; a known one finds no such file. */
	if (!have_check)
		have_check = sys_execveat(-1, "anyperf", (char *const *)none, (char *const *)none,
					  AT_EXECVE_CHECK) == -EINVAL
				     ? -1
				     : 1;
	return have_check > 0;
}

/* May this file be executed at all? As open_exec() and the permission checks around it. */
static int may_execute(int dir, const char *path, int flags)
{
	static const char *const argv[] = {"", NULL};
	struct statx st;
	long ret;

	if (kernel_knows_check())
		return (int)sys_execveat(dir, path, (char *const *)argv, (char *const *)argv + 1,
					 flags | AT_EXECVE_CHECK);
	ret = sys_statx(dir, path, flags, STATX_TYPE | STATX_MODE, &st);
	if (ret)
		return (int)ret;
	if ((st.stx_mode & S_IFMT) == S_IFLNK)
		return -ELOOP;
	if ((st.stx_mode & S_IFMT) != S_IFREG)
		return -EACCES;
	/* Also refuses what lies on a file system mounted noexec. */
	return (int)sys_faccessat2(dir, path, X_OK, flags | AT_EACCESS);
}

/*
 * Why running @fd natively would give its process rights that the runtime cannot hand on; NULL: it
 * would not.
 */
static const char *privileged(int fd)
{
	struct statx st;
	u8 caps[64];
	long euid = raw_call0(__NR_geteuid), egid = raw_call0(__NR_getegid);

	if (sys_prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return NULL;
	if (sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st))
		return NULL;
	if (st.stx_mode & S_ISUID && (long)st.stx_uid != euid)
		return "setuid program";
	if ((st.stx_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && (long)st.stx_gid != egid)
		return "setgid program";
	if (euid && raw_call4(__NR_fgetxattr, fd, (long)"security.capability", (long)caps,
			      sizeof(caps)) > 0)
		return "program with file capabilities";
	return NULL;
}

static bool is_runtime(int fd)
{
	struct statx a, b;

	if (sys_statx(fd, "", AT_EMPTY_PATH, STATX_INO, &a) ||
	    sys_statx(fd_get(FD_RT), "", AT_EMPTY_PATH, STATX_INO, &b))
		return false;
	return a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major &&
	       a.stx_dev_minor == b.stx_dev_minor;
}

/* The last part of the name that @fd has, or had when it was removed. */
static void name_of(int fd, char *name, size_t size)
{
	static const char removed[] = " (deleted)";
	char path[CONTROL_PATH];
	const char *base;
	struct statx st;
	size_t n;

	(void)fd_path(fd, path, sizeof(path));
	n = str_len(path);
	if (n >= sizeof(removed) && str_eq(path + n - (sizeof(removed) - 1), removed) &&
	    !sys_statx(fd, "", AT_EMPTY_PATH, STATX_NLINK, &st) && !st.stx_nlink)
		path[n - (sizeof(removed) - 1)] = '\0';
	base = str_rchr(path, '/');
	str_put(name, size, base ? base + 1 : path);
}

static char *keep_text(struct exec_plan *plan, const char *s)
{
	char *at = plan->text + plan->text_used;
	int n = str_put(at, sizeof(plan->text) - plan->text_used, s);

	if (n < 0)
		return NULL;
	plan->text_used += (size_t)n + 1;
	return at;
}

/* Puts @interp and @arg in front; what was argv[0] becomes @script. */
static int add_prefix(struct exec_plan *plan, const char *interp, const char *arg,
		      const char *script)
{
	u32 more = arg[0] ? 2 : 1;

	/* argv[0] is dropped, so its place in the prefix is what the next round replaces. */
	if (!plan->prefix) {
		plan->args[0] = keep_text(plan, script);
		plan->prefix = 1;
		if (!plan->args[0])
			return -ENOMEM;
	} else {
		plan->args[0] = keep_text(plan, script);
	}
	if (plan->prefix + more > EXEC_PREFIX)
		return -ELOOP;
	memmove(&plan->args[more], &plan->args[0], plan->prefix * sizeof(plan->args[0]));
	plan->prefix += more;
	plan->args[0] = keep_text(plan, interp);
	if (arg[0])
		plan->args[1] = keep_text(plan, arg);
	return plan->args[0] && plan->args[more - 1] ? 0 : -ENOMEM;
}

static int open_interp(struct exec_plan *plan)
{
	Elf64_Ehdr eh;
	long fd;
	int ret = may_execute(AT_FDCWD, plan->image.interp, 0);

	if (ret)
		return ret;
	fd = fd_open(AT_FDCWD, plan->image.interp, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (int)fd;
	ret = elf_read((int)fd, true, &eh, plan->phdrs, &plan->image);
	if (ret) {
		sys_close((int)fd);
		return ret;
	}
	if (plan->frugal)
		sys_close((int)fd);
	else
		plan->interp_fd = (int)fd;
	return 0;
}

static int plan_file(int *file, struct exec_plan *plan, const char *script, char *interp)
{
	u8 head[EXEC_HEAD] = {0};
	char arg[EXEC_HEAD];
	Elf64_Ehdr eh;
	int fd = *file;
	long n = sys_pread(fd, head, sizeof(head), 0);
	int ret;

	if (n < 0)
		return (int)n;
	switch (exec_classify(head, (size_t)n)) {
	case EXEC_SCRIPT:
		ret = script_parse(head, (size_t)n, interp, arg);
		if (ret < 0)
			return ret;
		ret = add_prefix(plan, interp, arg, script);
		return ret ? ret : 2;
	case EXEC_ELF: break;
	case EXEC_ELF32: plan->why = "32-bit program"; return 1;
	case EXEC_UNKNOWN:
		/* The kernel may have a handler (binfmt_misc), and knows the error if not. */
		plan->unknown = true;
		plan->why = "no ELF program and no script";
		return 1;
	}
	plan->why = privileged(fd);
	if (plan->why)
		return 1;
	if (fd_get(FD_RT) >= 0 && is_runtime(fd))
		return -EBUSY;
	ret = elf_read(fd, false, &eh, plan->phdrs, &plan->image);
	if (ret)
		return ret;
	(void)fd_path(fd, plan->exe, sizeof(plan->exe));
	/* The file is not read any more; whoever runs it can open it by its path. */
	if (plan->frugal) {
		sys_close(fd);
		*file = -1;
	}
	return plan->image.has_interp ? open_interp(plan) : 0;
}

static int make_plan(int dir, const char *path, int flags, const char *name, struct exec_plan *plan)
{
	char interp[EXEC_HEAD];
	const char *script;
	int ret;

	plan->exe_fd = plan->interp_fd = -1;
	plan->why = NULL;
	plan->unknown = false;
	plan->prefix = 0;
	plan->text_used = 0;
	plan->image.has_interp = false;

	if (flags & AT_EMPTY_PATH && !path[0]) {
		fmt(plan->execfn, sizeof(plan->execfn), "/dev/fd/%d", dir);
	} else if (dir == AT_FDCWD || path[0] == '/') {
		str_put(plan->execfn, sizeof(plan->execfn), name);
	} else {
		fmt(plan->execfn, sizeof(plan->execfn), "/dev/fd/%d/%s", dir, path);
	}
	ret = may_execute(dir, path, flags);
	if (ret)
		return ret;

	{
		const char *base = str_rchr(plan->execfn, '/');

		str_put(plan->comm, sizeof(plan->comm), base ? base + 1 : plan->execfn);
	}
	script = plan->execfn;
	for (u32 depth = 0;; depth++) {
		long fd;
		int file;

		if (depth > EXEC_DEPTH)
			return -ELOOP;
		if (!depth && !path[0]) {
			char again[40];

			/* Anew, since the descriptor may be O_PATH or at any offset. */
			fmt(again, sizeof(again), "/proc/self/fd/%d", dir);
			fd = fd_open(AT_FDCWD, again, O_RDONLY | O_CLOEXEC);
		} else if (!depth) {
			fd = fd_open(dir, path,
				     O_RDONLY | O_CLOEXEC |
					     (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
		} else {
			ret = may_execute(AT_FDCWD, interp, 0);
			if (ret)
				return ret;
			fd = fd_open(AT_FDCWD, interp, O_RDONLY | O_CLOEXEC);
		}
		if (fd == -EACCES) {
			/* It may be executed, but not read. */
			plan->why = "unreadable program";
			return 1;
		}
		if (fd < 0)
			return (int)fd;
		/* Kernels before the check (6.14) name the process by the descriptor. */
		if (!depth && !path[0] && kernel_knows_check())
			name_of((int)fd, plan->comm, sizeof(plan->comm));
		file = (int)fd;
		ret = plan_file(&file, plan, script, interp);
		if (!ret) {
			plan->exe_fd = file;
			return 0;
		}
		if (file >= 0)
			sys_close(file);
		if (ret != 2)
			return ret;
		/* The interpreter must be able to open the script by the name that it gets. */
		if (!depth && plan->execfn[0] && str_starts(plan->execfn, "/dev/fd/") && dir >= 0 &&
		    path[0] != '/' && sys_fcntl(dir, F_GETFD, 0) == FD_CLOEXEC) {
			return -ENOENT;
		}
		script = plan->args[0];
	}
}

int exec_plan(int dir, const char *path, int flags, const char *name, struct exec_plan *plan)
{
	int ret;

	plan->frugal = false;
	ret = make_plan(dir, path, flags, name, plan);
	if (ret == -EMFILE) {
		/* The kernel starts programs without a descriptor. Try again with one at a time. */
		plan->frugal = true;
		ret = make_plan(dir, path, flags, name, plan);
	}
	return ret;
}

void exec_plan_release(struct exec_plan *plan)
{
	if (plan->exe_fd >= 0)
		sys_close(plan->exe_fd);
	if (plan->interp_fd >= 0)
		sys_close(plan->interp_fd);
	plan->exe_fd = plan->interp_fd = -1;
}

/* The number of the descriptor with what the next runtime is told, or -errno. */
static long write_control(struct thread *t, const struct exec_plan *plan, struct rt_control *c)
{
	u8 *filters = (u8 *)(c + 1);

	memset(c, 0, sizeof(*c));
	c->magic = CONTROL_MAGIC;
	c->version = CONTROL_VERSION;
	c->segment_fd = fd_get(FD_SEGMENT);
	c->rt_fd = fd_get(FD_RT);
	c->session_fd = fd_get(FD_SESSION);
	images_exec(t, c);
	c->exe_fd = plan->exe_fd;
	c->interp_fd = plan->interp_fd;
	/* Who found none may find one now. */
	c->meter = t->meter < SEGMENT_SLOTS ? t->meter : ~0u;
	c->execs = t->proc->execs + 1;
	/* Who counts this program alone is to see it. */
	if (!__atomic_load_n(&dbt_meter(&t->dbt)->chosen, __ATOMIC_RELAXED))
		c->place = t->proc->place;
	c->run = meter_run();
	c->config = *run_config();
	c->seccomp_mode = t->seccomp_mode;
	c->seccomp_len = (u32)seccomp_save(t, filters, CONTROL_FILTERS);
	limits_save(t, c);
	signal_save(t, c);
	c->mdwe = mdwe_inherited();
	c->watch = perf_exec(t, c->perf_fds);
	c->form = sample_form();
	deterministic_exec(t, c);
	arch_save(c);
	memcpy(c->comm, plan->comm, sizeof(c->comm));
	str_put(c->exe, sizeof(c->exe), plan->exe);
	str_put(c->execfn, sizeof(c->execfn), plan->execfn);
	return fd_with("anyperf-control", c, sizeof(*c) + c->seccomp_len);
}

/*
 * The argument vector of anyperf-rt: its own two, the interpreters', the guest's. Mapped; *@size
 * is set for the caller to unmap. NULL and *@err on failure.
 */
static u64 *make_argv(const struct exec_plan *plan, u64 argv, const char *number, size_t *size,
		      long *err)
{
	u64 argc = 0, word;
	u64 *v;
	u32 n = 0;

	for (; argv; argc++) {
		if (guest_read(&word, argv + argc * 8, 8)) {
			*err = -EFAULT;
			return NULL;
		}
		if (!word)
			break;
		if (argc > 0x7fffffff / 8) {
			*err = -E2BIG;
			return NULL;
		}
	}
	*size = (argc + EXEC_PREFIX + CONTROL_ARGS + 2) * 8;
	v = region_map(*size);
	if (!v) {
		*err = -ENOMEM;
		return NULL;
	}
	v[n++] = (u64) "anyperf-rt";
	v[n++] = (u64)number;
	for (u32 i = 0; i < plan->prefix; i++)
		v[n++] = (u64)plan->args[i];
	for (u64 i = plan->prefix ? 1 : 0; i < argc; i++)
		if (guest_read(&v[n++], argv + i * 8, 8)) {
			*err = -EFAULT;
			region_unmap(v, *size);
			return NULL;
		}
	/* The kernel does not start a program without argv[0]. */
	if (!plan->prefix && !argc)
		v[n++] = (u64) "";
	v[n] = 0;
	return v;
}

/*
 * Made where guests' calls are made: a tracer may make another call of it (task/tracing.c).
 * @always: though a signal has come.
 */
static long execute(struct thread *t, bool always, int dir, const char *path, u64 argv, u64 envp,
		    int flags)
{
	static const u32 none;
	/* By the call that the program has made: filters may allow only that. */
	const u64 by_path[7] = {__NR_execve, (u64)path, argv, envp};
	const u64 at[7] = {__NR_execveat, (u64)dir, (u64)path, argv, envp, (u64)flags};
	struct sys_guest_ret r;

	do {
		t->call_restarts = false;
		r = guest_call(guest_nr(t) == __NR_execve ? by_path : at,
			       always ? &none : &t->pending_count);
	} while (r.redo && always);
	return r.redo ? CALL_REDO : r.val;
}

/* Under the program's own filters the runtime cannot go on: as the kernel, when it is too late. */
__attribute__((noreturn)) static void cannot_return(void)
{
	sys_tgkill(sys_getpid(), sys_gettid(), SIGKILL);
	__builtin_trap();
}

static long run_native(struct thread *t, const struct exec_plan *plan, int dir, const char *path,
		       u64 argv, u64 envp, int flags)
{
	const char *obstacle = seccomp_native_obstacle(t);
	u32 mdwe = mdwe_inherited();
	bool filters = t->filters;
	long ret;

	if (run_config()->flags & SEGMENT_STRICT)
		return -EPERM;
	if (obstacle) {
		say("anyperf: %s is not started: it would run natively (%s), and its seccomp "
		    "filters cannot be given to the kernel: %s\n",
		    plan->execfn, plan->why, obstacle);
		return -EPERM;
	}
	if (mdwe && (t->vfork_child || t->own_proc)) {
		say("anyperf: %s is not started: it would run natively (%s), and what its program has "
		    "forbidden itself (PR_SET_MDWE) would be forbidden to who shares its memory\n",
		    plan->execfn, plan->why);
		return -EPERM;
	}
	/* What would fail once the filters are there has to fail before. */
	if (filters && plan->unknown)
		return -ENOEXEC;
	if (filters && kernel_knows_check()) {
		ret = raw_call5(__NR_execveat, dir, (long)path, (long)argv, (long)envp,
				flags | AT_EXECVE_CHECK);
		if (ret)
			return ret;
	}
	fd_cloexec(true);
	sample_exec_prepare(t, NULL, NULL);
	signal_exec_prepare(t);
	limits_exec_prepare(t);
	meter_uncounted((u32)sys_getpid(), plan->execfn, plan->why);
	if (mdwe)
		sys_prctl(PR_SET_MDWE, mdwe, 0, 0, 0);
	if (filters && !seccomp_go_native(t))
		cannot_return();
	/* Under the filters it could not go back to have a signal first. */
	ret = execute(t, filters, dir, path, argv, envp, flags);
	if (filters)
		cannot_return();
	meter_not_uncounted((u32)sys_getpid());
	limits_exec_failed();
	signal_exec_failed(t);
	sample_exec_failed(t);
	fd_cloexec(false);
	return ret;
}

static long run(struct thread *t, struct exec_plan *plan, struct rt_control *c, u64 argv, u64 envp)
{
	char number[16];
	size_t size = 0;
	long ret = 0, fd;
	bool saved;
	u64 *v;

	fd = write_control(t, plan, c);
	if (fd == -EMFILE && !plan->frugal) {
		exec_plan_release(plan);
		plan->frugal = true;
		fd = write_control(t, plan, c);
	}
	if (fd < 0)
		return fd;
	fmt(number, sizeof(number), "%d", (int)fd);
	v = make_argv(plan, argv, number, &size, &ret);
	if (v) {
		t->exec_maps[1].at = v;
		t->exec_maps[1].size = size;
		sample_exec_prepare(t, plan->execfn, plan->prefix ? plan->args[0] : plan->execfn);
		signal_exec_prepare(t);
		if (plan->exe_fd >= 0)
			sys_fcntl(plan->exe_fd, F_SETFD, 0);
		if (plan->interp_fd >= 0)
			sys_fcntl(plan->interp_fd, F_SETFD, 0);
		images_complete(t);
		saved = images_save(t);
		t->execing = true;
		ret = call_kernel_with(t, __NR_execveat, (u64)fd_get(FD_RT), (u64) "", (u64)v, envp,
				       AT_EMPTY_PATH, 0);
		t->execing = false;
		if (saved)
			images_go_on(t);
		signal_exec_failed(t);
		sample_exec_failed(t);
		t->exec_maps[1].at = NULL;
		region_unmap(v, size);
	}
	sys_close((int)fd);
	return ret;
}

static long do_exec(struct thread *t, int dir, u64 path_at, u64 argv, u64 envp, int flags)
{
	/* One mapping for all that is too large for a stack. */
	struct scratch {
		char path[CONTROL_PATH], seen[CONTROL_PATH];
		struct exec_plan plan;
		struct rt_control control;
		u8 filters[CONTROL_FILTERS];
	} * s;
	const char *path;
	long ret;

	if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_EXECVE_CHECK))
		return -EINVAL;
	s = region_map(sizeof(*s));
	if (!s)
		return -ENOMEM;
	t->exec_maps[0].at = s;
	t->exec_maps[0].size = sizeof(*s);
	ret = guest_string(s->path, path_at, sizeof(s->path));
	if (ret < 0)
		goto out;
	path = s->path;
	ret = -ENOENT;
	if (!path[0] && !(flags & AT_EMPTY_PATH))
		goto out;
	if ((dir == AT_FDCWD || path[0] == '/') && proc_exe_path(t, s->path, s->seen))
		path = s->seen;
	/*
	 * The tracer is to see the program and not the runtime. This is about guests only: who
	 * traces from outside has chosen to trace anyperf.
	 */
	if (meter_traced(t) && !(flags & AT_EXECVE_CHECK)) {
		if (t->filters) {
			ret = exec_plan(dir, path, flags, s->path, &s->plan);
			if (ret < 0)
				goto out;
			exec_plan_release(&s->plan);
		}
		s->plan.exe_fd = s->plan.interp_fd = -1;
		s->plan.why = "program under a debugger";
		str_put(s->plan.execfn, sizeof(s->plan.execfn), path);
		/* By the program's own pointer, as the tracer may write another path there. */
		ret = run_native(t, &s->plan, dir, path == s->path ? (const char *)path_at : path,
				 argv, envp, flags);
		goto out;
	}
	ret = exec_plan(dir, path, flags, s->path, &s->plan);
	if (ret >= 0 && flags & AT_EXECVE_CHECK)
		ret = 0;
	else if (ret == 0)
		ret = run(t, &s->plan, &s->control, argv, envp);
	else if (ret == 1)
		ret = run_native(t, &s->plan, dir, path, argv, envp, flags);
	exec_plan_release(&s->plan);
out:
	t->exec_maps[0].at = NULL;
	region_unmap(s, sizeof(*s));
	return ret;
}

long guest_execve(struct thread *t)
{
	return do_exec(t, AT_FDCWD, guest_arg(t, 0), guest_arg(t, 1), guest_arg(t, 2), 0);
}

long guest_execveat(struct thread *t)
{
	return do_exec(t, (int)guest_arg(t, 0), guest_arg(t, 1), guest_arg(t, 2), guest_arg(t, 3),
		       (int)guest_arg(t, 4));
}
