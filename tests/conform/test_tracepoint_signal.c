/*
 * Tracepoints of the kernel that send SIGTRAP [OVF-11, ATTR-40, IOC-07]: when it comes, what it
 * says, and to whom.
 */
#include "conform/renames.h"
#include "conform/tracefs.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#ifdef __x86_64__
/* What the last SIGTRAP of a tracepoint said, and where the program was. */
static volatile int traps, traps_right, traps_late;
static volatile u64 trapped_at;

static void on_trap(int sig, siginfo_t *si, void *context)
{
	const struct perf_siginfo *perf = (const struct perf_siginfo *)si;
	const ucontext_t *uc = context;

	(void)sig;
	traps++;
	traps_right += perf->code == TRAP_BY_PERF && perf->addr == 0 &&
		       perf->type == PERF_TYPE_TRACEPOINT && perf->data == 0x1234567890;
	traps_late += perf->flags != 0;
	trapped_at = (u64)uc->uc_mcontext.gregs[REG_RIP];
}

static struct pe_attr trapping(const char *name)
{
	struct pe_attr attr = tp_attr(name);

	attr.sample_period = 1;
	attr.sigtrap = attr.remove_on_exec = 1;
	attr.sig_data = 0x1234567890;
	return attr;
}

static int open_trapping(const char *name, u64 period)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct pe_attr attr = trapping(name);
	int fd;

	NEED(!sigaction(SIGTRAP, &sa, NULL));
	attr.sample_period = period;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	traps = traps_right = traps_late = 0;
	return fd;
}

static bool no_sigtrap(void)
{
	if (!try_self(trapping("task/task_rename")))
		return false;
	skip_row("OVF-11", "sigtrap of a tracepoint", "attr.sigtrap is of Linux 5.13");
	return true;
}

static int placed;

static void marked_renames(void)
{
	const u64 frame[2] = {0, RET};
	u64 sp;

	placed = 0;
	for (int i = 0; i < 10; i++)
		placed += marked_rename(frame, &sp) == trapped_at;
}

static void naps(void)
{
	for (int i = 0; i < 10; i++)
		sleep_ms(1);
}

/* The kernel's, with a signal: it comes when the thread is back from the system call. */
CONFORM(kernel_signals)
{
	sigset_t set;
	int fd;

	if (!tp_readable("TYPE-03") || no_sigtrap())
		return;
	fd = open_trapping("task/task_rename", 1);
	check_val("OVF-11", "changes of name that trap", (long)tp_counted(fd, marked_renames), 10);
	check_val("OVF-11", "a SIGTRAP for each change of name", traps, 10);
	check_val("OVF-11", "code, type and data of a tracepoint's, and no address", traps_right,
		  10);
	check_val("OVF-11", "it comes behind the system call", placed, 10);
	check_val("OVF-11", "and says nothing of being late", traps_late, 0);
	close(fd);

	fd = open_trapping("task/task_rename", 3);
	check_val("OVF-11", "the count, with a period", (long)tp_counted(fd, marked_renames), 10);
	check_val("OVF-11", "a SIGTRAP for every third", traps, 3);
	close(fd);

	fd = open_trapping("task/task_rename", 1);
	check_err("IOC-07", "a filter of one that traps",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"second\""),
		  0);
	check_val("OVF-11", "the filter lets one pass", (long)tp_counted(fd, rename_thrice), 1);
	check_val("OVF-11", "which traps", traps, 1);
	close(fd);

	fd = open_trapping("task/task_rename", 1);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	check_val("OVF-11", "changes of name while it is blocked",
		  (long)tp_counted(fd, rename_thrice), 3);
	check_val("OVF-11", "no SIGTRAP while it is blocked", traps, 0);
	NEED(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	check_val("OVF-11", "one SIGTRAP when it is not any more", traps, 1);
	check_val("OVF-11", "which says that it came late", traps_late, 1);
	close(fd);

	/* What the thread itself is switched off for. */
	fd = open_trapping("sched/sched_switch", 1);
	check_val("OVF-11", "ten sleeps are switches", (long)tp_counted(fd, naps) >= 10, 1);
	check_val("OVF-11", "each of which traps", traps >= 10, 1);
	close(fd);
}

static void rename_with_a_trap(void)
{
	int fd = (int)ev_self(trapping("task/task_rename"));

	NEED(fd >= 0 && ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	rename_thrice();
}

CONFORM_EXEC(after_traps)
{
	(void)arg;
	rename_thrice();
	return 0;
}

static void *rename_in_thread(void *arg)
{
	rename_thrice();
	return arg;
}

/* Children of other programs, threads, and who does not know of it. */
CONFORM(kernel_signals_of_others)
{
	struct pe_attr attr;
	pthread_t thread;
	pid_t child;
	int fd, status;

	if (!tp_readable("TYPE-03") || no_sigtrap())
		return;
	child = fork();
	if (!child) {
		signal(SIGTRAP, SIG_DFL);
		rename_with_a_trap();
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child);
	check_val("OVF-11", "by default a tracepoint's SIGTRAP ends the program",
		  WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP, 1);
	child = fork();
	if (!child) {
		fd = open_trapping("task/task_rename", 1);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		rename_thrice();
		if (traps != 3)
			_exit(7);
		NEED(execl("/nonexistent/program", "x", NULL) < 0);
		rename_thrice();
		if (traps != 6)
			_exit(8);
		exec_self("after_traps", 0);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child);
	check_val("ATTR-40", "a tracepoint that traps ends with execve, and goes on if that fails",
		  status, 0);

	fd = open_trapping("task/task_rename", 1);
	close(fd);
	attr = trapping("task/task_rename");
	attr.inherit = attr.inherit_thread = 1;
	fd = (int)ev_self(attr);
	NEED(fd >= 0 && ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	NEED(!pthread_create(&thread, NULL, rename_in_thread, NULL));
	NEED(!pthread_join(thread, NULL));
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	check_val("OVF-11", "with inherit_thread threads trap", traps, 3);
	check_val("OVF-11", "and are counted", (long)ev_count(fd), 3);
}
#endif
