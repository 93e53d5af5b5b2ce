/*
 * Tracepoints [TYPE-03, IOC-07, SAMP-12, FILE-18]: of system calls, which calls they see, what
 * their records say, and what filters let pass; of the rest of the kernel, that a thread has its
 * own. They need tracefs, which is root's as a rule.
 */
#include "conform/conform.h"

#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#define PAGE  4096
#define PAGES 16

static long id_of(const char *name)
{
	char path[128], text[32];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return strtol(text, NULL, 10);
}

static bool readable(void)
{
	if (id_of("raw_syscalls/sys_enter") >= 0 && capable())
		return true;
	skip_row("TYPE-03", "tracepoints of system calls", "tracefs is not there, or not for us");
	return false;
}

static struct pe_attr tp_attr(const char *name)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_TRACEPOINT, (u64)id_of(name));

	attr.exclude_kernel = 0;
	return attr;
}

static int tp_open(const char *name)
{
	long fd = ev_self(tp_attr(name));

	NEED(fd >= 0);
	return (int)fd;
}

static void calls(int n)
{
	for (int i = 0; i < n; i++)
		syscall(SYS_getppid, i, 1);
}

static u64 counted(int fd, void (*fn)(void))
{
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	fn();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return ev_count(fd);
}

static void ten(void)
{
	calls(10);
}

CONFORM(counts)
{
	struct pe_attr attr;
	long fd;

	if (!readable())
		return;
	/* Of the two ioctls one ends while the event is on, and the other begins. */
	check_val("TYPE-03", "sys_enter of ten calls and DISABLE",
		  (long)counted(tp_open("raw_syscalls/sys_enter"), ten), 11);
	check_val("TYPE-03", "sys_exit of ten calls and ENABLE",
		  (long)counted(tp_open("raw_syscalls/sys_exit"), ten), 11);
	check_val("TYPE-03", "one call's sys_enter",
		  (long)counted(tp_open("syscalls/sys_enter_getppid"), ten), 10);
	check_val("TYPE-03", "one call's sys_exit",
		  (long)counted(tp_open("syscalls/sys_exit_getppid"), ten), 10);
	check_val("TYPE-03", "another call's sys_enter",
		  (long)counted(tp_open("syscalls/sys_enter_getpgid"), ten), 0);
	attr = tp_attr("raw_syscalls/sys_enter");
	attr.exclude_kernel = 1;
	fd = ev_self(attr);
	check_val("TYPE-03", "sys_enter without the kernel", (long)counted((int)fd, ten), 0);
	attr = tp_attr("syscalls/sys_enter_getppid");
	attr.exclude_kernel = 1;
	fd = ev_self(attr);
	check_val("TYPE-03", "one call's sys_enter without the kernel", (long)counted((int)fd, ten),
		  10);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void one_signal(void)
{
	raise(SIGUSR1);
}

static void many_kinds(void)
{
	char c;
	int p[2];

	NEED(pipe(p) == 0);
	NEED(write(p[1], "x", 1) == 1);
	NEED(read(p[0], &c, 1) == 1);
	close(p[0]);
	close(p[1]);
}

CONFORM(which)
{
	if (!readable())
		return;
	signal(SIGUSR1, on_signal);
	check_val("TYPE-03", "a signal's return is a call",
		  (long)counted(tp_open("syscalls/sys_enter_rt_sigreturn"), one_signal), 1);
	check_val("TYPE-03", "that does not return",
		  (long)counted(tp_open("syscalls/sys_exit_rt_sigreturn"), one_signal), 0);
	check_val("TYPE-03", "calls that have descriptors",
		  (long)counted(tp_open("raw_syscalls/sys_enter"), many_kinds), 6);
	check_val("TYPE-03", "a call of another kind",
		  (long)counted(tp_open("syscalls/sys_exit_pipe2"), many_kinds) +
			  (long)counted(tp_open("syscalls/sys_exit_pipe"), many_kinds),
		  1);
}

static void forked(void)
{
	pid_t pid = fork();

	if (!pid) {
		calls(5);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

CONFORM(children)
{
	struct pe_attr attr;

	if (!readable())
		return;
	attr = tp_attr("syscalls/sys_enter_getppid");
	attr.inherit = 1;
	check_val("INH-01", "calls of a child", (long)counted((int)ev_self(attr), forked), 5);
	attr = tp_attr("syscalls/sys_exit_clone");
	attr.inherit = 1;
	check_val("TYPE-03", "fork returns twice", (long)counted((int)ev_self(attr), forked), 2);
}

CONFORM_EXEC(three_calls)
{
	(void)arg;
	calls(3);
	return 0;
}

CONFORM(programs)
{
	static const char *const names[] = {"syscalls/sys_exit_execve",
					    "syscalls/sys_enter_getppid"};
	static const char *const texts[] = {"execve returns in the new program",
					    "calls of a new program"};
	static const long want[] = {1, 3};

	if (!readable())
		return;
	for (int i = 0; i < 2; i++) {
		struct pe_attr attr = tp_attr(names[i]);
		int p[2];
		char c;
		pid_t pid;
		long fd;

		NEED(pipe(p) == 0);
		pid = fork();
		if (!pid) {
			NEED(read(p[0], &c, 1) == 1);
			exec_self("three_calls", 0);
		}
		attr.enable_on_exec = 1;
		fd = ev_open(&attr, pid, -1, -1, 0);
		NEED(fd >= 0 && write(p[1], "x", 1) == 1);
		waitpid(pid, NULL, 0);
		check_val("TYPE-03", texts[i], (long)ev_count((int)fd), want[i]);
	}
}

/* What is said of an execve: the name as the program has given it. */
CONFORM(kernel_execs)
{
	struct pe_attr attr;
	const struct {
		struct perf_event_header header;
		u32 size, common[2], where, pids[2];
		char name[];
	} __attribute__((packed)) * s;
	struct perf_event_mmap_page *page;
	int go[2], status;
	pid_t pid;
	long fd;
	char c;

	if (!readable())
		return;
	NEED(pipe(go) == 0);
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &c, 1) == 1);
		exec_self("three_calls", 0);
	}
	attr = tp_attr("sched/sched_process_exec");
	attr.enable_on_exec = 1;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	fd = ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	NEED(page != MAP_FAILED && write(go[1], "x", 1) == 1);
	NEED(waitpid(pid, &status, 0) == pid && !status);
	check_val("TYPE-03", "an execve", (long)ev_count((int)fd), 1);
	s = (const void *)((u8 *)page + PAGE);
	NEED(page->data_head > sizeof(*s));
	check_val("SAMP-12", "its record", s->header.size == page->data_head, 1);
	check_val("SAMP-12", "where the name stands and how long it is", s->where, 20 | 15 << 16);
	check_val("SAMP-12", "the program's name", strcmp(s->name, "/proc/self/exe"), 0);
	check_val("SAMP-12", "its raw part, padded", s->size, 36);
}

struct raw_sample {
	struct perf_event_header header;
	u32 tid[2];
	u64 period;
	u32 size;
	u8 raw[76];
} __attribute__((packed));

static u64 raw_word(const struct raw_sample *s, u32 at, u32 size)
{
	u64 v = 0;

	memcpy(&v, s->raw + at, size);
	return v;
}

/* The first record of @name while the call is made; NULL: none. */
static const struct raw_sample *first(const char *name)
{
	struct pe_attr attr = tp_attr(name);
	struct perf_event_mmap_page *page;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	syscall(SYS_getppid, 11L, 12L, 13L, 14L, 15L, 16L);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return page->data_head ? (const struct raw_sample *)((u8 *)page + PAGE) : NULL;
}

CONFORM(records)
{
	const struct raw_sample *s;

	if (!readable())
		return;
	s = first("raw_syscalls/sys_enter");
	NEED(s);
	check_val("SAMP-12", "sys_enter's record", s->header.size, 8 + 16 + 4 + 68);
	check_val("SAMP-12", "its raw part, padded", s->size, 68);
	check_val("SAMP-12", "the tracepoint's number in it",
		  (long)raw_word(s, 0, 2) == id_of("raw_syscalls/sys_enter"), 1);
	check_val("SAMP-12", "the thread in it",
		  virtual_world() || (pid_t)raw_word(s, 4, 4) == getpid(), 1);
	check_val("SAMP-12", "the call's number", (long)raw_word(s, 8, 8), SYS_getppid);
	check_val("SAMP-12", "its first argument", (long)raw_word(s, 16, 8), 11);
	check_val("SAMP-12", "its last argument", (long)raw_word(s, 56, 8), 16);
	s = first("syscalls/sys_enter_getppid");
	NEED(s);
	check_val("SAMP-12", "the raw part of a call without arguments", s->size, 20);
	check_val("SAMP-12", "the call's number in four bytes", (long)raw_word(s, 8, 4),
		  SYS_getppid);
	s = first("syscalls/sys_exit_getppid");
	NEED(s);
	check_val("SAMP-12", "the raw part of a result", s->size, 28);
	check_val("SAMP-12", "the result", (long)raw_word(s, 16, 8) == getppid(), 1);
	s = first("raw_syscalls/sys_exit");
	NEED(s);
	/* ENABLE's own comes first. */
	check_val("SAMP-12", "the result of any call", (long)raw_word(s, 16, 8), 0);
}

/* Whoever has mapped the ring finds a sample there when the call returns. */
CONFORM(read_at_once)
{
	struct pe_attr attr;
	struct perf_event_mmap_page *page;
	int fd, late = 0;

	if (!readable())
		return;
	attr = tp_attr("syscalls/sys_enter_getppid");
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID;
	attr.disabled = 0;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	/* It is on when the ring comes. */
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	for (u64 i = 1; i <= 1000; i++) {
		calls(1);
		late += page->data_head != i * 16;
	}
	check_val("RING-03", "samples that come later than their call returns", late, 0);
}

CONFORM(filters)
{
	static const struct {
		const char *text, *what;
		int err;
		long count;
	} cases[] = {
		{"id == 110", "a comparison", 0, 10},
		{"id != 110", "another one", 0, 1},
		{"id < 110 || id > 110", "either of two", 0, 1},
		{"id>=110&&id<=110", "both of two", 0, 10},
		{"!(id == 110)", "not", 0, 1},
		{"!!(id == 110)", "not not", 0, 10},
		{"id & 2", "a bit", 0, 10},
		{"id == 0x6e", "a hexadecimal number", 0, 10},
		{"id == -1", "a negative number of a signed field", 0, 0},
		{"common_pid == 0", "a common field", 0, 0},
		{"comm ~ \"conform_*\"", "a pattern", 0, 11},
		{"COMM == \"nobody\"", "a name", 0, 0},
		{"comm != 'nobody'", "another name", 0, 11},
		{"CPU >= 0", "the CPU", 0, 11},
		{"args == 1", "an array", 0, 0},
		{"id == 110 &&", "nothing behind and", 0, 10},
		{"id = 110", "an operator that is none", EINVAL, 0},
		{"id ~ 110", "a pattern of a number", EINVAL, 0},
		{"id == \"110\"", "a string for a number", EINVAL, 0},
		{"id", "a field alone", EINVAL, 0},
		{"nosuch == 1", "a field that is none", EINVAL, 0},
		{"", "an empty text", EINVAL, 0},
		{"id == 99999999999999999999", "a number too great", EINVAL, 0},
		{"(id == 110", "a parenthesis that stays open", ENOENT, 0},
		{"id == 110)", "one that was not opened", EPERM, 0},
		{"id == 110 id == 5", "two without an operator", EPERM, 0},
		{"comm == \"x", "a quote that stays open", ESRCH, 0},
		{"comm > \"x\"", "an order of strings", EINVAL, 0},
	};
	int fd;

	if (!readable())
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[64];

		fd = tp_open("raw_syscalls/sys_enter");
		snprintf(text, sizeof(text), "filter: %s", cases[i].what);
		check_err("IOC-07", text,
			  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)cases[i].text),
			  cases[i].err);
		snprintf(text, sizeof(text), "filter: %s, count", cases[i].what);
		if (!cases[i].err)
			check_val("IOC-07", text, (long)counted(fd, ten), cases[i].count);
		close(fd);
	}
	fd = tp_open("raw_syscalls/sys_enter");
	NEED(!ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"id == 110"));
	check_err("IOC-07", "a second filter",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"id == 1"), EEXIST);
	check_err("IOC-07", "a filter at no address", ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, 8),
		  EFAULT);
}

static struct pe_attr nobodys;

static void raw_by_nobody(void)
{
	check_err("TYPE-03", "one's own calls, raw, without privilege", try_self(nobodys), 0);
}

CONFORM(rights)
{
	if (!readable())
		return;
	check_val("FILE-18", "a tracepoint has a number",
		  id_of("raw_syscalls/sys_enter") != id_of("raw_syscalls/sys_exit"), 1);
	nobodys = ev_attr(PERF_TYPE_TRACEPOINT, (u64)id_of("syscalls/sys_enter_getppid"));
	nobodys.sample_period = 1;
	nobodys.sample_type = PERF_SAMPLE_RAW;
	as_nobody(raw_by_nobody);
	nobodys.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	nobodys.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	check_err("BR-07", "branches of a tracepoint", try_self(nobodys), EOPNOTSUPP);
}

CONFORM(no_programs)
{
	u32 query[8] = {4, 77}, many[2] = {65, 77};
	int fd;

	if (!readable())
		return;
	fd = tp_open("raw_syscalls/sys_enter");
	check_err("IOC-11", "asking for BPF programs",
		  ev_ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, (unsigned long)query), 0);
	check_val("IOC-11", "there are none", query[1], 0);
	check_err("IOC-11", "asking for too many",
		  ev_ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, (unsigned long)many), E2BIG);
	check_err("IOC-11", "asking at no address", ev_ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, 8),
		  EFAULT);
	check_err("IOC-09", "a program that is none",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)fd), EINVAL);
}

static void rename_thrice(void)
{
	for (int i = 0; i < 3; i++)
		prctl(PR_SET_NAME, i == 1 ? "second" : "other");
}

static void fork_twice(void)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (!pid) {
			rename_thrice();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* Of the kernel alone. */
CONFORM(kernel_counts)
{
	struct pe_attr attr;
	u64 both[3];
	int fd, other;

	if (!readable())
		return;
	fd = tp_open("task/task_rename");
	check_val("TYPE-03", "changes of name", (long)counted(fd, rename_thrice), 3);
	check_val("TYPE-03", "those again", (long)counted(fd, rename_thrice), 3);
	check_val("TYPE-03", "forks",
		  (long)counted(tp_open("sched/sched_process_fork"), fork_twice), 2);
	check_val("TYPE-03", "children's changes of name are theirs", (long)counted(fd, fork_twice),
		  0);
	attr = tp_attr("task/task_rename");
	attr.inherit = 1;
	check_val("TYPE-03", "with inherit they are counted",
		  (long)counted((int)ev_self(attr), fork_twice), 6);
	attr.inherit = 0;
	attr.exclude_kernel = 1;
	check_val("TYPE-03", "what fires in the kernel, without the kernel",
		  (long)counted((int)ev_self(attr), rename_thrice), 0);
	attr.exclude_kernel = 0;
	attr.read_format = PERF_FORMAT_GROUP;
	fd = (int)ev_self(attr);
	attr = tp_attr("sched/sched_process_fork");
	attr.disabled = 0;
	other = (int)ev_open(&attr, 0, -1, fd, 0);
	NEED(fd >= 0 && other >= 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	rename_thrice();
	fork_twice();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(read(fd, both, sizeof(both)) == sizeof(both));
	check_val("TYPE-03", "two of them in a group",
		  (long)(both[0] * 100 + both[1] * 10 + both[2]), 232);
}

CONFORM(kernel_filters)
{
	int fd;

	if (!readable())
		return;
	fd = tp_open("task/task_rename");
	check_err("IOC-07", "a filter of the kernel's with a string",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"second\""),
		  0);
	check_val("IOC-07", "it lets one pass", (long)counted(fd, rename_thrice), 1);
	check_err("IOC-07", "a second one of the kernel's",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"x\""),
		  EEXIST);
	fd = tp_open("task/task_rename");
	check_err("IOC-07", "one with a field that is none",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"nosuch == 1"), EINVAL);
	check_val("IOC-07", "all pass then", (long)counted(fd, rename_thrice), 3);
	check_err("IOC-07", "one when it has been on",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"other\""),
		  0);
	check_val("IOC-07", "two pass", (long)counted(fd, rename_thrice), 2);
}

#define MANY 3000

/* The kernel's, of one who runs on while somebody outside brings him to another CPU. */
CONFORM(kernel_moved)
{
	struct pe_attr attr;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), any, sum = 0, one[64];
	int go[2], status;
	pid_t pid;
	char c;

	if (!readable())
		return;
	NEED(cpus > 0 && cpus <= 64 && pipe(go) == 0);
	attr = tp_attr("task/task_rename");
	attr.disabled = 0;
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &c, 1) == 1);
		for (int i = 0; i < MANY; i++)
			prctl(PR_SET_NAME, "moved");
		_exit(0);
	}
	any = ev_open(&attr, pid, -1, -1, 0);
	for (int i = 0; i < cpus; i++)
		one[i] = ev_open(&attr, pid, i, -1, 0);
	NEED(any >= 0 && one[0] >= 0 && one[cpus - 1] >= 0);
	NEED(write(go[1], "x", 1) == 1);
	for (int i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(i % cpus, &set);
		sched_setaffinity(pid, sizeof(set), &set);
		(void)ev_count((int)any);
	}
	check_val("TYPE-03", "renames of one who is moved", (long)ev_count((int)any), MANY);
	for (int i = 0; i < cpus; i++)
		sum += (long)ev_count((int)one[i]);
	check_val("TYPE-03", "those on all CPUs", sum, MANY);
}

/* A filter that comes when the event has been on, on one CPU after the other. */
CONFORM(kernel_filters_by_cpu)
{
	struct pe_attr attr;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), sum = 0, one[64];
	cpu_set_t set;

	if (!readable())
		return;
	NEED(cpus > 0 && cpus <= 64);
	attr = tp_attr("task/task_rename");
	attr.disabled = 0;
	for (int i = 0; i < cpus; i++) {
		one[i] = ev_open(&attr, 0, i, -1, 0);
		NEED(one[i] >= 0);
	}
	/* Others beside them. */
	rename_thrice();
	attr.config = (u64)id_of("sched/sched_process_fork");
	NEED(ev_self(attr) >= 0);
	for (int i = 0; i < cpus; i++)
		ioctl((int)one[i], PERF_EVENT_IOC_RESET, 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < cpus; i++) {
			CPU_ZERO(&set);
			CPU_SET(i, &set);
			NEED(!sched_setaffinity(0, sizeof(set), &set));
			rename_thrice();
		}
		for (long i = cpus - 1; i >= 0 && !round; i--)
			NEED(!ev_ioctl((int)one[i], PERF_EVENT_IOC_SET_FILTER,
				       (unsigned long)(i ? "newcomm == \"other\""
							 : "newcomm == \"second\"")));
	}
	for (int i = 0; i < cpus; i++)
		sum += (long)ev_count((int)one[i]);
	check_val("IOC-07", "what each CPU's filter lets pass", sum, 3 * cpus + 1 + 2 * (cpus - 1));
}

/* Nobody else on the machine does just that. */
#define ODD_PID 123456789

static void odd(int n)
{
	for (int i = 0; i < n; i++) {
		prctl(PR_SET_NAME, "odd name");
		prctl(PR_SET_NAME, "other");
		syscall(SYS_getpgid, ODD_PID);
	}
}

static int cpu_open(const char *name, const char *filter, struct perf_event_mmap_page **page)
{
	struct pe_attr attr = tp_attr(name);
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CPU;
	fd = (int)ev_open(&attr, -1, 0, -1, 0);
	NEED(fd >= 0);
	NEED(!ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter));
	*page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(*page != MAP_FAILED);
	return fd;
}

static long records_in(const struct perf_event_mmap_page *page)
{
	long n = 0;

	for (u64 at = 0; at < page->data_head; n++)
		at += ((const struct perf_event_header *)((u8 *)page + PAGE + at))->size;
	return n;
}

/* All tasks of a CPU, those that are there and one that comes. */
CONFORM(whole_cpus)
{
	struct perf_event_mmap_page *pages[2];
	cpu_set_t set;
	int kernel, calling;
	pid_t pid;

	if (!readable())
		return;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set));
	kernel = cpu_open("task/task_rename", "newcomm == \"odd name\"", &pages[0]);
	calling = cpu_open("syscalls/sys_enter_getpgid", "pid == 123456789", &pages[1]);
	odd(5);
	ioctl(kernel, PERF_EVENT_IOC_ENABLE, 0);
	ioctl(calling, PERF_EVENT_IOC_ENABLE, 0);
	odd(10);
	pid = fork();
	if (!pid) {
		odd(100);
		_exit(0);
	}
	NEED(waitpid(pid, NULL, 0) == pid);
	check_val("TYPE-03", "the kernel's of a CPU", (long)ev_count(kernel), 110);
	check_val("TYPE-03", "system calls of a CPU", (long)ev_count(calling), 110);
	ioctl(kernel, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(calling, PERF_EVENT_IOC_DISABLE, 0);
	odd(5);
	check_val("TYPE-03", "the kernel's of a CPU when they are off", (long)ev_count(kernel),
		  110);
	check_val("TYPE-03", "system calls of a CPU when they are off", (long)ev_count(calling),
		  110);
	check_val("TYPE-03", "samples of the kernel's", records_in(pages[0]), 110);
	check_val("TYPE-03", "samples of system calls", records_in(pages[1]), 110);
}

struct kernel_sample {
	struct perf_event_header header;
	u64 ip;
	u32 pid, tid;
	u64 time, period, nr, marker, first;
};

static long samples_of(u64 period, const struct kernel_sample **sample)
{
	struct pe_attr attr = tp_attr("task/task_rename");
	struct perf_event_mmap_page *page;
	long n = 0;
	int fd;

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_CALLCHAIN;
	if (period == 1)
		attr.sample_type |= PERF_SAMPLE_PERIOD;
	attr.exclude_callchain_user = 1;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	rename_thrice();
	rename_thrice();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	*sample = (const struct kernel_sample *)((u8 *)page + PAGE);
	for (u64 at = 0; at < page->data_head; n++) {
		const struct perf_event_header *h = (const void *)((u8 *)page + PAGE + at);

		NEED(h->type == PERF_RECORD_SAMPLE);
		at += h->size;
	}
	return n;
}

CONFORM(kernel_samples)
{
	const struct kernel_sample *s;

	if (!readable())
		return;
	check_val("SAMP-02", "a sample of each", samples_of(1, &s), 6);
	check_val("MISC-01", "it was in the kernel", s->header.misc & PERF_RECORD_MISC_CPUMODE_MASK,
		  PERF_RECORD_MISC_KERNEL);
	check_val("SAMP-02", "its address is there", s->ip >> 63, 1);
	check_val("SAMP-03", "its thread", s->pid == (u32)getpid() && s->tid == (u32)getpid(), 1);
	check_val("SAMP-09", "its period", (long)s->period, 1);
	check_val("SAMP-11", "the call chain begins with the kernel's part",
		  s->marker == PERF_CONTEXT_KERNEL && s->nr > 1, 1);
	check_val("SAMP-11", "which begins there", s->first == s->ip, 1);
	check_val("SAMP-02", "every second one", samples_of(2, &s), 3);
}

static struct pe_attr nobodys_kernel;

static void kernel_raw_by_nobody(void)
{
	check_err("TYPE-03", "one's own of the kernel's, raw, without privilege",
		  try_self(nobodys_kernel), EPERM);
}

CONFORM(kernel_rights)
{
	if (!readable())
		return;
	nobodys_kernel = ev_attr(PERF_TYPE_TRACEPOINT, (u64)id_of("task/task_rename"));
	nobodys_kernel.sample_period = 1;
	nobodys_kernel.sample_type = PERF_SAMPLE_RAW;
	as_nobody(kernel_raw_by_nobody);
}

/* A BPF program for tracepoints that answers @value; its descriptor, or -1. */
static int bpf_program(int value)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = value},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_TRACEPOINT;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

CONFORM(kernel_programs)
{
	int fd, none = bpf_program(0);

	if (!readable())
		return;
	if (none < 0) {
		skip_row("IOC-09", "BPF programs", "none can be loaded here");
		return;
	}
	fd = tp_open("task/task_rename");
	check_err("IOC-09", "a program that lets nothing pass",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)none), 0);
	check_val("IOC-09", "nothing passes", (long)counted(fd, rename_thrice), 0);
	check_err("IOC-09", "the same once more",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)none), EEXIST);
	close(fd);
	fd = tp_open("task/task_rename");
	check_val("IOC-09", "it is gone with its event", (long)counted(fd, rename_thrice), 3);
	check_err("IOC-09", "no descriptor of a program",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)fd), EINVAL);
	check_err("IOC-09", "no descriptor", ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, 999), EBADF);
}

#ifdef __x86_64__
#define MARK 0x4d41524b
#define RET  0x123456

struct place_sample {
	struct perf_event_header header;
	u64 nr, chain[3];
	u64 abi, ax, bp, sp, ip; /* in the order of perf's numbers */
	u64 size, stack[8], dyn_size;
	u64 intr_abi, intr_ip;
};

/* Renames the thread with MARK on top of the stack and a last frame of its own; where that was. */
static u64 marked_rename(const u64 *frame, u64 *sp)
{
	long ret = SYS_prctl;
	u64 ip;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "push %%rbp\n\t"
			 "mov %[frame], %%rbp\n\t"
			 "push %[mark]\n\t"
			 "mov %%rsp, %[sp]\n\t"
			 "syscall\n"
			 "1:\tlea 1b(%%rip), %[ip]\n\t"
			 "pop %%rbp\n\t"
			 "pop %%rbp\n\t"
			 "lea 128(%%rsp), %%rsp"
			 : "+a"(ret), [sp] "=&r"(*sp), [ip] "=&r"(ip)
			 : "D"((long)PR_SET_NAME),
			   "S"("marked"), [frame] "r"(frame), [mark] "i"(MARK)
			 : "rcx", "r11", "memory");
	NEED(!ret);
	return ip;
}

static struct pe_attr place_attr(const char *name)
{
	struct pe_attr attr = tp_attr(name);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
			   PERF_SAMPLE_REGS_INTR;
	attr.exclude_callchain_kernel = 1;
	attr.sample_regs_user = 0x1c1;
	attr.sample_regs_intr = 0x100;
	attr.sample_stack_user = 64;
	return attr;
}

/* The kernel's, of a system call: what the program had in its registers and on its stack. */
CONFORM(kernel_places)
{
	const u64 frame[2] = {0, RET};
	struct pe_attr attr;
	const struct place_sample *s;
	struct perf_event_mmap_page *page;
	u64 ip, sp;
	int fd;

	if (!readable())
		return;
	attr = place_attr("task/task_rename");
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	ip = marked_rename(frame, &sp);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	s = (const struct place_sample *)((u8 *)page + PAGE);
	NEED(page->data_head == s->header.size);
	check_val("SAMP-11", "the program's part of the call chain", (long)s->nr, 3);
	check_val("SAMP-11", "begins with its marker", s->chain[0] == PERF_CONTEXT_USER, 1);
	check_val("SAMP-11", "then where the call returns to", s->chain[1] == ip, 1);
	check_val("SAMP-11", "then its frames", (long)s->chain[2], RET);
	NEED(s->nr == 3);
	check_val("SAMP-14", "registers of the program", (long)s->abi, PERF_SAMPLE_REGS_ABI_64);
	NEED(s->abi == PERF_SAMPLE_REGS_ABI_64);
	check_val("SAMP-14", "the result that is still to come", (long)s->ax, -ENOSYS);
	check_val("SAMP-14", "the frame pointer", s->bp == (uintptr_t)frame, 1);
	check_val("SAMP-14", "the stack pointer", s->sp == sp, 1);
	check_val("SAMP-14", "the program counter", s->ip == ip, 1);
	check_val("SAMP-15", "the program's stack", (long)s->size, 64);
	check_val("SAMP-15", "all of it", (long)s->dyn_size, 64);
	check_val("SAMP-15", "what is on it", (long)s->stack[0], MARK);
	check_val("SAMP-14", "registers of the kernel", (long)s->intr_ip >> 63, -1);
}

/* Of a child's end, where it has asked for it; and of many calls that take turns. */
CONFORM(kernel_places_of_others)
{
	struct pe_attr attr;
	const struct place_sample *s;
	struct perf_event_mmap_page *page;
	const u64 frame[2] = {0, RET};
	long right = 0, n = 0;
	u64 ip = 0, sp;
	pid_t pid;
	int fd, go[2];
	char c;

	if (!readable())
		return;
	NEED(pipe(go) == 0);
	attr = place_attr("task/task_rename");
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &c, 1) == 1);
		for (int i = 0; i < 100; i++) {
			calls(1);
			(void)marked_rename(frame, &sp);
		}
		_exit(0);
	}
	fd = (int)ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	NEED(write(go[1], "x", 1) == 1);
	waitpid(pid, NULL, 0);
	for (u64 at = 0; at < page->data_head; at += s->header.size, n++) {
		s = (const struct place_sample *)((u8 *)page + PAGE + at);
		NEED(s->header.type == PERF_RECORD_SAMPLE);
		ip = ip ? ip : s->ip;
		right += s->nr == 3 && s->chain[2] == RET && s->ax == (u64)-ENOSYS && s->ip == ip &&
			 s->stack[0] == MARK;
	}
	check_val("SAMP-14", "samples of another's calls", n, 100);
	check_val("SAMP-14", "that say where it was", right, 100);
}

/* Two calls of 32-bit code: getppid(2), which is 64 there, and one that is none. */
static void old_calls(void)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "0"(64l), "b"(11l), "c"(12l) : "memory");
	__asm__ volatile("int $0x80" : "=a"(ret) : "0"(5000l), "b"(11l) : "memory");
}

/* The nth record of @name in old_calls(), from 0. */
static const struct raw_sample *old_sample(const char *name, int nr)
{
	struct pe_attr attr = tp_attr(name);
	struct perf_event_mmap_page *page;
	u64 at = 0;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	old_calls();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	while (at < page->data_head) {
		const struct raw_sample *s = (const void *)((u8 *)page + PAGE + at);

		if (!nr--)
			return s;
		at += s->header.size;
	}
	return NULL;
}

CONFORM(old_calls)
{
	const struct raw_sample *s;

	if (!readable())
		return;
	check_val("TYPE-03", "sys_enter of two calls by int $0x80, and DISABLE",
		  (long)counted(tp_open("raw_syscalls/sys_enter"), old_calls), 3);
	check_val("TYPE-03", "sys_exit of them, and ENABLE",
		  (long)counted(tp_open("raw_syscalls/sys_exit"), old_calls), 3);
	check_val("TYPE-03", "a call's own does not see them",
		  (long)counted(tp_open("syscalls/sys_enter_getppid"), old_calls), 0);
	check_val("TYPE-03", "nor does the one of the number's other meaning",
		  (long)counted(tp_open("syscalls/sys_enter_setsid"), old_calls), 0);
	s = old_sample("raw_syscalls/sys_enter", 0);
	NEED(s);
	check_val("SAMP-12", "the number of 32-bit code", (long)raw_word(s, 8, 8), 64);
	check_val("SAMP-12", "its arguments", (long)(raw_word(s, 16, 8) * 100 + raw_word(s, 24, 8)),
		  1112);
	s = old_sample("raw_syscalls/sys_exit", 1);
	NEED(s);
	check_val("SAMP-12", "its result", (long)raw_word(s, 16, 8) == getppid(), 1);
	s = old_sample("raw_syscalls/sys_exit", 2);
	NEED(s);
	check_val("SAMP-12", "that of a call that is none", (long)raw_word(s, 16, 8), -ENOSYS);
}
#endif
