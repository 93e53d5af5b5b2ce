/*
 * Tracepoints of system calls [TYPE-03, IOC-07, SAMP-12, FILE-18]: which calls they see, what their
 * records say, and what filters let pass.
 */
#include "conform/tracefs.h"

#include <signal.h>
#include <sys/wait.h>

#define PAGE  4096
#define PAGES 16

static void calls(int n)
{
	for (int i = 0; i < n; i++)
		syscall(SYS_getppid, i, 1);
}

static void ten(void)
{
	calls(10);
}

CONFORM(counts)
{
	struct pe_attr attr;
	long fd;

	if (!tp_readable("TYPE-03"))
		return;
	/* Of the two ioctls one ends while the event is on, and the other begins. */
	check_val("TYPE-03", "sys_enter of ten calls and DISABLE",
		  (long)tp_counted(tp_open("raw_syscalls/sys_enter"), ten), 11);
	check_val("TYPE-03", "sys_exit of ten calls and ENABLE",
		  (long)tp_counted(tp_open("raw_syscalls/sys_exit"), ten), 11);
	check_val("TYPE-03", "one call's sys_enter",
		  (long)tp_counted(tp_open("syscalls/sys_enter_getppid"), ten), 10);
	check_val("TYPE-03", "one call's sys_exit",
		  (long)tp_counted(tp_open("syscalls/sys_exit_getppid"), ten), 10);
	check_val("TYPE-03", "another call's sys_enter",
		  (long)tp_counted(tp_open("syscalls/sys_enter_getpgid"), ten), 0);
	attr = tp_attr("raw_syscalls/sys_enter");
	attr.exclude_kernel = 1;
	fd = ev_self(attr);
	check_val("TYPE-03", "sys_enter without the kernel", (long)tp_counted((int)fd, ten), 0);
	attr = tp_attr("syscalls/sys_enter_getppid");
	attr.exclude_kernel = 1;
	fd = ev_self(attr);
	check_val("TYPE-03", "one call's sys_enter without the kernel",
		  (long)tp_counted((int)fd, ten), 10);
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
	if (!tp_readable("TYPE-03"))
		return;
	signal(SIGUSR1, on_signal);
	check_val("TYPE-03", "a signal's return is a call",
		  (long)tp_counted(tp_open("syscalls/sys_enter_rt_sigreturn"), one_signal), 1);
	check_val("TYPE-03", "that does not return",
		  (long)tp_counted(tp_open("syscalls/sys_exit_rt_sigreturn"), one_signal), 0);
	check_val("TYPE-03", "calls that have descriptors",
		  (long)tp_counted(tp_open("raw_syscalls/sys_enter"), many_kinds), 6);
	check_val("TYPE-03", "a call of another kind",
		  (long)tp_counted(tp_open("syscalls/sys_exit_pipe2"), many_kinds) +
			  (long)tp_counted(tp_open("syscalls/sys_exit_pipe"), many_kinds),
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

	if (!tp_readable("TYPE-03"))
		return;
	attr = tp_attr("syscalls/sys_enter_getppid");
	attr.inherit = 1;
	check_val("INH-01", "calls of a child", (long)tp_counted((int)ev_self(attr), forked), 5);
	attr = tp_attr("syscalls/sys_exit_clone");
	attr.inherit = 1;
	check_val("TYPE-03", "fork returns twice", (long)tp_counted((int)ev_self(attr), forked), 2);
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

	if (!tp_readable("TYPE-03"))
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

	if (!tp_readable("TYPE-03"))
		return;
	s = first("raw_syscalls/sys_enter");
	NEED(s);
	check_val("SAMP-12", "sys_enter's record", s->header.size, 8 + 16 + 4 + 68);
	check_val("SAMP-12", "its raw part, padded", s->size, 68);
	check_val("SAMP-12", "the tracepoint's number in it",
		  (long)raw_word(s, 0, 2) == tp_id("raw_syscalls/sys_enter"), 1);
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

	if (!tp_readable("TYPE-03"))
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

	if (!tp_readable("TYPE-03"))
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
			check_val("IOC-07", text, (long)tp_counted(fd, ten), cases[i].count);
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
	if (!tp_readable("TYPE-03"))
		return;
	check_val("FILE-18", "a tracepoint has a number",
		  tp_id("raw_syscalls/sys_enter") != tp_id("raw_syscalls/sys_exit"), 1);
	nobodys = ev_attr(PERF_TYPE_TRACEPOINT, (u64)tp_id("syscalls/sys_enter_getppid"));
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

	if (!tp_readable("TYPE-03"))
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

#ifdef __x86_64__
/* Two calls of 32-bit code: getppid(2), which is 64 there, and one that is none. */
static void old_calls(void)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "0"(64l), "b"(11l), "c"(12l) : "memory");
	__asm__ volatile("int $0x80" : "=a"(ret) : "0"(5000l), "b"(11l) : "memory");
}

/* Some kernels are built without them, and some virtual machines let none through. */
static bool has_old_calls(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		old_calls();
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
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

	if (!tp_readable("TYPE-03"))
		return;
	if (!has_old_calls()) {
		skip_row("TYPE-03", "int $0x80", "this machine's kernel has no such calls");
		return;
	}
	check_val("TYPE-03", "sys_enter of two calls by int $0x80, and DISABLE",
		  (long)tp_counted(tp_open("raw_syscalls/sys_enter"), old_calls), 3);
	check_val("TYPE-03", "sys_exit of them, and ENABLE",
		  (long)tp_counted(tp_open("raw_syscalls/sys_exit"), old_calls), 3);
	check_val("TYPE-03", "a call's own does not see them",
		  (long)tp_counted(tp_open("syscalls/sys_enter_getppid"), old_calls), 0);
	check_val("TYPE-03", "nor does the one of the number's other meaning",
		  (long)tp_counted(tp_open("syscalls/sys_enter_setsid"), old_calls), 0);
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
