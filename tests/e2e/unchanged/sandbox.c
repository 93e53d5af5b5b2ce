/* Programs that install seccomp filters, and what the filters then do. */
#include "say.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <ucontext.h>

#define LOAD(field)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(v)            BPF_STMT(BPF_RET | BPF_K, v)
#define IF_CALL(nr, verdict) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), RETURN(verdict)

static int install(const struct sock_filter *filter, unsigned short len)
{
	struct sock_fprog prog = {len, (struct sock_filter *)filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

#define INSTALL(...)                                                       \
	({                                                                 \
		static const struct sock_filter filter_[] = {__VA_ARGS__}; \
		install(filter_, sizeof(filter_) / sizeof(filter_[0]));    \
	})

static void on_sys(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;

	SAY("SIGSYS %d code %d call %d arch %x errno %d", sig, si->si_code, si->si_syscall,
	    si->si_arch, si->si_errno);
	uc->uc_mcontext.gregs[REG_RAX] = 4321;
}

static void child(const char *what, int (*body)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(body());
	waitpid(pid, &status, 0);
	SAY("%s: status %x", what, (unsigned int)status & ~0x80u);
}

static int errors(void)
{
	struct utsname u;

	SAY("install: %d",
	    INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 99),
		    IF_CALL(SYS_getppid, SECCOMP_RET_ERRNO | 1), RETURN(SECCOMP_RET_ALLOW)));
	TRY("uname", uname(&u));
	SAY("getppid: %ld", (long)getppid());
	SAY("mode %d", prctl(PR_GET_SECCOMP));
	/* A second filter: the stricter verdict counts; children inherit. */
	SAY("install: %d",
	    INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ALLOW),
		    IF_CALL(SYS_getuid, SECCOMP_RET_ERRNO | 7), RETURN(SECCOMP_RET_ALLOW)));
	SAY("uname: %d, getuid: %ld", uname(&u), (long)getuid());
	if (fork() == 0) {
		SAY("in a child: %d", uname(&u));
		execl("/bin/sh", "sh", "-c", "uname >/dev/null 2>&1; echo $?", NULL);
		_exit(1);
	}
	wait(NULL);
	return 0;
}

static int arguments(void)
{
	SAY("install: %d",
	    INSTALL(LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		    RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(nr),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3), LOAD(args[0]),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_GET_DUMPABLE, 0, 1),
		    RETURN(SECCOMP_RET_ERRNO | 42), RETURN(SECCOMP_RET_ALLOW)));
	TRY("prctl", prctl(PR_GET_DUMPABLE));
	SAY("prctl: %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	return 0;
}

static int traps(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};

	sa.sa_sigaction = on_sys;
	sigaction(SIGSYS, &sa, NULL);
	SAY("install: %d", INSTALL(LOAD(nr), IF_CALL(SYS_getpgrp, SECCOMP_RET_TRAP | 5),
				   RETURN(SECCOMP_RET_ALLOW)));
	SAY("getpgrp: %ld", syscall(SYS_getpgrp));
	return 0;
}

static int kills(void)
{
	INSTALL(LOAD(nr), IF_CALL(SYS_getpgrp, SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW));
	syscall(SYS_getpgrp);
	return 3;
}

static int strict(void)
{
	syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	syscall(SYS_write, 1, "strict\n", 7);
	syscall(SYS_getpid);
	return 4;
}

static int strict_exit(void)
{
	syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	syscall(SYS_exit, 6);
	return 4;
}

static int refused(void)
{
	static const struct sock_filter bad[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 1000),
						 RETURN(0)};

	TRY("a bad filter", install(bad, 2));
	TRY("an empty one", install(bad, 0));
	return 0;
}

/* A supervisor, which answers for the sandboxed process, lets calls go on, gives it descriptors. */
static void supervise(int listener, int calls)
{
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *req;
	struct seccomp_notif_resp *resp;

	syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
	req = malloc(sizes.seccomp_notif);
	resp = malloc(sizes.seccomp_notif_resp);
	while (calls--) {
		memset(req, 0, sizes.seccomp_notif);
		memset(resp, 0, sizes.seccomp_notif_resp);
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, req)) {
			SAY("receiving: %s", strerror(errno));
			return;
		}
		SAY("asked about %d arch %x args %lx", req->data.nr, req->data.arch,
		    (unsigned long)req->data.args[0]);
		resp->id = req->id;
		switch (req->data.args[0]) {
		case 1: resp->error = -ENOTTY; break;
		case 2: resp->val = 1234; break;
		default: resp->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, resp))
			SAY("answering: %s", strerror(errno));
	}
}

static int supervised(void)
{
	static const struct sock_filter filter[] = {
		LOAD(nr), IF_CALL(SYS_getpgid, SECCOMP_RET_USER_NOTIF),
		IF_CALL(SYS_tgkill, SECCOMP_RET_USER_NOTIF),
		IF_CALL(SYS_waitid, SECCOMP_RET_USER_NOTIF), RETURN(SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {sizeof(filter) / sizeof(filter[0]), (struct sock_filter *)filter};
	int listener, avail = SECCOMP_RET_USER_NOTIF;
	pid_t pid;

	SAY("available: %ld", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &avail));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	SAY("listener %d", listener);
	TRY("another",
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		usleep(10000);
		TRY("first", syscall(SYS_getpgid, 1));
		TRY("second", syscall(SYS_getpgid, 2));
		TRY("of a kind that is looked at here", syscall(SYS_tgkill, 2, 2, 0));
		HOLDS(syscall(SYS_getpgid, 0) == syscall(SYS_getpgrp));
		TRY("a wait", syscall(SYS_waitid, P_ALL, 0, NULL, WEXITED, NULL));
		execl("/usr/bin/python3", "python3", "-c", "import os; print(os.getpgid(2))", NULL);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	supervise(listener, 5);
	if (!access("/usr/bin/python3", X_OK))
		supervise(listener, 1);
	wait(NULL);
	return 0;
}

#define DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */

static volatile char selector;

static void dispatched(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;

	selector = 0;
	SAY("signal %d code %d call %d at its end %d, rax %lld", sig, si->si_code, si->si_syscall,
	    si->si_call_addr == (void *)uc->uc_mcontext.gregs[REG_RIP],
	    (long long)uc->uc_mcontext.gregs[REG_RAX]);
	uc->uc_mcontext.gregs[REG_RAX] = 4321;
}

static long bare_call(long nr)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr) : "rcx", "r11", "memory");
	return ret;
}

/* A program's own hand on its system calls, as wine has it. */
static int own_hand(void)
{
	struct sigaction sa = {.sa_sigaction = dispatched, .sa_flags = SA_SIGINFO};
	pid_t pid;

	sigaction(SIGSYS, &sa, NULL);
	TRY("a mode that is none", prctl(DISPATCH, 9, 0, 0, 0));
	TRY("off with a range", prctl(DISPATCH, 0, 1, 1, 0));
	TRY("a range that wraps", prctl(DISPATCH, 1, 4096, -1ul, 0));
	TRY("a selector that cannot be", prctl(DISPATCH, 1, 0, 0, -1ul));
	TRY("on", prctl(DISPATCH, 1, 0, 0, &selector));
	SAY("let through: %d", bare_call(SYS_getppid) == getppid());
	selector = 1;
	SAY("caught: %ld", bare_call(SYS_getppid));
	selector = 0;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		selector = 1;
		_exit(bare_call(SYS_getppid) == 4321);
	}
	{
		int status = -1;

		waitpid(pid, &status, 0);
		SAY("a child begins without: %d", status);
	}
	TRY("off", prctl(DISPATCH, 0, 0, 0, 0));
	selector = 1;
	SAY("off: %d", bare_call(SYS_getppid) == getppid());
	TRY("on again", prctl(DISPATCH, 1, 0, 0, &selector));
	selector = 7;
	bare_call(SYS_getppid);
	return 0;
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* As long as a filter may be, and shared with a thread. */
static void *filter_and_share(void *arg)
{
	static struct sock_filter all[BPF_MAXINSNS];
	pthread_t other;

	for (int i = 0; i < BPF_MAXINSNS; i++)
		all[i] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	if (install(all, BPF_MAXINSNS) || pthread_create(&other, NULL, do_nothing, NULL))
		return (void *)1;
	pthread_join(other, NULL);
	return arg;
}

static long resident_pages(void)
{
	long size, resident = -1;
	FILE *f = fopen("/proc/self/statm", "r");

	fscanf(f, "%ld %ld", &size, &resident);
	fclose(f);
	return resident;
}

/* Filters go with the last thread that has them: 1000 would be 8000 pages. */
static int given_back(void)
{
	void *failed = NULL;
	long before = 0;

	for (int i = 0; i < 1010 && !failed; i++) {
		pthread_t one;

		if (i == 10)
			before = resident_pages();
		pthread_create(&one, NULL, filter_and_share, NULL);
		pthread_join(one, &failed);
	}
	HOLDS(!failed);
	HOLDS(resident_pages() - before < 4000);
	return 0;
}

/* The program itself, to be executed and not to be read: that runs natively. */
static int unreadable_copy(void)
{
	int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("copy", 0);
	char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		write(to, buf, (size_t)n);
	close(from);
	fchmod(to, 0111);
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		SAY("still root: %s", strerror(errno));
	return to;
}

static void execute(int fd, const char *what)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fflush(stdout);
	execl(path, "sandbox", what, NULL);
	SAY("execl: %s", strerror(errno));
}

/* What two filters of ours leave of it. */
static void held(void)
{
	struct utsname u;
	char line[100];
	FILE *f = fopen("/proc/self/status", "r");

	TRY("uname", uname(&u));
	TRY("getuid", syscall(SYS_getuid) == 65534 ? 0 : syscall(SYS_getuid));
	SAY("mode %d", prctl(PR_GET_SECCOMP));
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Seccomp", 7))
			printf("%s", line);
	TRY("another", INSTALL(RETURN(SECCOMP_RET_ALLOW)));
}

static int kept_natively(void)
{
	int fd = unreadable_copy();

	INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 99), RETURN(SECCOMP_RET_ALLOW));
	INSTALL(LOAD(nr), IF_CALL(SYS_getuid, SECCOMP_RET_ERRNO | 7), RETURN(SECCOMP_RET_ALLOW));
	execute(fd, "held");
	return 1;
}

/* The first filter lets through only one of the two calls that install another. */
static int kept_by_prctl(void)
{
	static const struct sock_filter second[] = {
		LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 98), RETURN(SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {4, (struct sock_filter *)second};
	int fd = unreadable_copy();

	INSTALL(LOAD(nr), IF_CALL(SYS_seccomp, SECCOMP_RET_ERRNO | 97), RETURN(SECCOMP_RET_ALLOW));
	TRY("prctl", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	execute(fd, "held");
	return 1;
}

/* One that kills what a runtime could not do without. */
static int kept_and_strict(void)
{
	int fd = unreadable_copy();

	INSTALL(LOAD(nr), IF_CALL(SYS_getppid, SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW));
	execute(fd, "killed");
	return 1;
}

/* An execve that fails leaves the program as it was. */
static int kept_after_failure(void)
{
	static char large[1 << 20];
	char *argv[30] = {(char *)"sandbox"}, *none[] = {NULL}, path[40];
	int fd = unreadable_copy(), text = memfd_create("text", 0);
	struct utsname u;

	memset(large, 'x', sizeof(large) - 1);
	for (int i = 1; i < 29; i++)
		argv[i] = large;
	INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 99),
		IF_CALL(SYS_getrandom, SECCOMP_RET_KILL_PROCESS),
		IF_CALL(SYS_rt_tgsigqueueinfo, SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	TRY("too much", execve(path, argv, none));
	write(text, "no program\n", 11);
	fchmod(text, 0777);
	execute(text, "text");
	fchmod(text, 0111);
	TRY("uname", uname(&u));
	execute(fd, "held");
	return 1;
}

/* A child that shares its memory leaves its parent's sandbox to the runtime. */
static int kept_of_a_vfork_child(void)
{
	char path[40], *argv[] = {(char *)"sandbox", (char *)"held", NULL}, *none[] = {NULL};
	int fd = unreadable_copy(), status = 0;
	struct utsname u;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 99),
		IF_CALL(SYS_getpgrp, SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW));
	fflush(stdout);
	pid = vfork();
	if (!pid) {
		execve(path, argv, none);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	SAY("vforked: %x", (unsigned int)status);
	TRY("uname", uname(&u));
	fflush(stdout);
	if (fork() == 0) {
		execl("/bin/sh", "sh", "-c", "uname >/dev/null 2>&1; echo $?", NULL);
		_exit(1);
	}
	wait(NULL);
	return 0;
}

/* The filter is one thread's alone, and that executes. */
static void *filter_and_execute(void *fd)
{
	INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 96), RETURN(SECCOMP_RET_ALLOW));
	execute((int)(long)fd, "held");
	return NULL;
}

static int kept_of_a_thread(void)
{
	long fd = unreadable_copy();
	struct utsname u;
	pthread_t one;

	TRY("uname", uname(&u));
	if (!pthread_create(&one, NULL, filter_and_execute, (void *)fd))
		pthread_join(one, NULL);
	return 1;
}

/* Filters of root's, without PR_SET_NO_NEW_PRIVS, and a program of another user's. */
static int kept_with_its_user(void)
{
	static const struct sock_filter filter[] = {
		LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 95), RETURN(SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {4, (struct sock_filter *)filter};
	char name[] = "/tmp/sandbox-XXXXXX", buf[65536];
	int from = open("/proc/self/exe", O_RDONLY), to = mkstemp(name);
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		write(to, buf, (size_t)n);
	if (fchown(to, 65534, 65534) || fchmod(to, 04755)) {
		SAY("not root: %s", strerror(errno));
		unlink(name);
		return 1;
	}
	close(to);
	to = open(name, O_PATH);
	unlink(name);
	TRY("filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
	execute(to, "held");
	return 1;
}

/* More of them than fit into 64 KB. */
static int many_kept(void)
{
	static struct sock_filter long_one[4000];

	INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 99), RETURN(SECCOMP_RET_ALLOW));
	for (int i = 0; i < 4000; i++)
		long_one[i] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	for (int i = 0; i < 4; i++)
		SAY("long %d: %d", i, install(long_one, 4000));
	execl("/proc/self/exe", "sandbox", "held", NULL);
	return 1;
}

static int traced(void)
{
	int status, fd = open("/proc/self/exe", O_RDONLY);
	pid_t pid = fork();

	if (!pid) {
		INSTALL(LOAD(nr), IF_CALL(SYS_uname, SECCOMP_RET_ERRNO | 99),
			RETURN(SECCOMP_RET_ALLOW));
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl("/nowhere", "none", NULL);
		SAY("nowhere: %s", strerror(errno));
		execute(fd, "held");
		_exit(1);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	return status != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		if (!strcmp(argv[1], "killed"))
			syscall(SYS_getppid);
		held();
		return 0;
	}
	child("kept natively", kept_natively);
	child("kept by prctl", kept_by_prctl);
	child("kept and strict", kept_and_strict);
	child("kept after failure", kept_after_failure);
	child("kept of a vfork child", kept_of_a_vfork_child);
	child("kept of a thread", kept_of_a_thread);
	child("kept with its user", kept_with_its_user);
	child("many kept", many_kept);
	child("traced", traced);
	child("own hand", own_hand);
	child("errors", errors);
	child("arguments", arguments);
	child("traps", traps);
	child("kills", kills);
	child("supervised", supervised);
	child("strict", strict);
	child("strict, leaving", strict_exit);
	child("refused", refused);
	child("given back", given_back);
	return 0;
}
