/*
 * The kernel's own tracepoints [TYPE-03, IOC-07, IOC-09]: whose they are when a thread or a CPU has
 * them, what filters and BPF programs let pass, and what their records say of the program.
 */
#include "conform/renames.h"
#include "conform/tracefs.h"

#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#define PAGE  4096
#define PAGES 16

CONFORM_EXEC(nothing)
{
	return arg;
}

/* What is said of an execve: the name as the program has given it. */
CONFORM(an_exec)
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

	if (!tp_readable("TYPE-03"))
		return;
	NEED(pipe(go) == 0);
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &c, 1) == 1);
		exec_self("nothing", 0);
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

/* How many of @n execs @filter lets pass; with @period sampled, and how many samples there are. */
static long passing_of(const char *name, const char *filter, int n, u64 period, long *samples)
{
	struct pe_attr attr = tp_attr(name);
	struct perf_event_mmap_page *page;
	int status;
	long fd;

	attr.inherit = 1;
	attr.sample_period = period;
	attr.sample_type = period ? PERF_SAMPLE_IP : 0;
	/* Of one CPU each, so that it has a buffer. */
	fd = period ? ev_open(&attr, 0, sched_getcpu(), -1, 0) : ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	if (filter)
		NEED(!ev_ioctl((int)fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)filter));
	NEED(!ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0));
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid && i % 2)
			execl("/bin/true", "true", NULL);
		if (!pid)
			exec_self("nothing", 0);
		NEED(waitpid(pid, &status, 0) == pid && !status);
	}
	NEED(!ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0));
	*samples = 0;
	for (u64 where = 0; period && where < page->data_head; (*samples)++)
		where += ((const struct perf_event_header *)((u8 *)page + PAGE + where))->size;
	n = (int)ev_count((int)fd);
	if (page != MAP_FAILED)
		munmap(page, (1 + PAGES) * PAGE);
	close((int)fd);
	return n;
}

static long passing(const char *filter, int n, u64 period, long *samples)
{
	return passing_of("sched/sched_process_exec", filter, n, period, samples);
}

/* Filters see the name that a sample says. */
CONFORM(filtered_execs)
{
	cpu_set_t set, was;
	long samples;

	if (!tp_readable("TYPE-03"))
		return;
	check_val("IOC-07", "execs without a filter", passing(NULL, 4, 0, &samples), 4);
	check_val("IOC-07", "by a program's name",
		  passing("filename == \"/bin/true\"", 4, 0, &samples), 2);
	check_val("IOC-07", "by another", passing("filename == \"/proc/self/exe\"", 5, 0, &samples),
		  3);
	check_val("IOC-07", "by a pattern", passing("filename ~ \"*/tru?\"", 4, 0, &samples), 2);
	check_val("IOC-07", "by any but one", passing("filename != \"/bin/true\"", 5, 0, &samples),
		  3);
	check_val("IOC-07", "by a name and a number",
		  passing("filename ~ \"*true\" && pid == 1", 4, 0, &samples), 0);
	NEED(!sched_getaffinity(0, sizeof(was), &was));
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set));
	check_val("IOC-07", "those that are sampled",
		  passing("filename ~ \"*true\"", 8, 1, &samples), 4);
	check_val("IOC-07", "have a sample each", samples, 4);
	check_val("IOC-07", "by a pattern, of which every second one is sampled",
		  passing("filename ~ \"*true\"", 8, 2, &samples), 4);
	check_val("IOC-07", "so many samples", samples <= 2, 1);
	NEED(!sched_setaffinity(0, sizeof(was), &was));
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

/* Of an execve that is about to succeed, in which the task has its old name. */
CONFORM(prepared_execs)
{
	const char *name = "sched/sched_prepare_exec";
	long samples;

	if (!tp_readable("TYPE-03"))
		return;
	if (tp_id(name) < 0) {
		skip_row("IOC-07", name, "this kernel does not have it");
		return;
	}
	check_val("IOC-07", "execs that are prepared, by a program's name",
		  passing_of(name, "filename == \"/bin/true\"", 4, 0, &samples), 2);
	check_val("IOC-07", "by who interprets it, which is the same",
		  passing_of(name, "interp ~ \"/proc/*/exe\"", 5, 0, &samples), 3);
	check_val("IOC-07", "by both and the name of the task",
		  passing_of(name, "interp ~ \"*true\" && filename ~ \"*true\" && comm != \"true\"",
			     4, 0, &samples),
		  2);
}

CONFORM(counts)
{
	struct pe_attr attr;
	u64 both[3];
	int fd, other;

	if (!tp_readable("TYPE-03"))
		return;
	fd = tp_open("task/task_rename");
	check_val("TYPE-03", "changes of name", (long)tp_counted(fd, rename_thrice), 3);
	check_val("TYPE-03", "those again", (long)tp_counted(fd, rename_thrice), 3);
	check_val("TYPE-03", "forks",
		  (long)tp_counted(tp_open("sched/sched_process_fork"), fork_twice), 2);
	check_val("TYPE-03", "children's changes of name are theirs",
		  (long)tp_counted(fd, fork_twice), 0);
	attr = tp_attr("task/task_rename");
	attr.inherit = 1;
	check_val("TYPE-03", "with inherit they are counted",
		  (long)tp_counted((int)ev_self(attr), fork_twice), 6);
	attr.inherit = 0;
	attr.exclude_kernel = 1;
	check_val("TYPE-03", "what fires in the kernel, without the kernel",
		  (long)tp_counted((int)ev_self(attr), rename_thrice), 0);
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

CONFORM(filters)
{
	int fd;

	if (!tp_readable("TYPE-03"))
		return;
	fd = tp_open("task/task_rename");
	check_err("IOC-07", "a filter of the kernel's with a string",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"second\""),
		  0);
	check_val("IOC-07", "it lets one pass", (long)tp_counted(fd, rename_thrice), 1);
	check_err("IOC-07", "a second one of the kernel's",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"x\""),
		  EEXIST);
	fd = tp_open("task/task_rename");
	check_err("IOC-07", "one with a field that is none",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"nosuch == 1"), EINVAL);
	check_val("IOC-07", "all pass then", (long)tp_counted(fd, rename_thrice), 3);
	check_err("IOC-07", "one when it has been on",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"newcomm == \"other\""),
		  0);
	check_val("IOC-07", "two pass", (long)tp_counted(fd, rename_thrice), 2);
}

#define MANY 3000

/* The kernel's, of one who runs on while somebody outside brings him to another CPU. */
CONFORM(moved)
{
	struct pe_attr attr;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), any, sum = 0, one[64];
	int go[2], status;
	pid_t pid;
	char c;

	if (!tp_readable("TYPE-03"))
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
CONFORM(filters_by_cpu)
{
	struct pe_attr attr;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), sum = 0, one[64];
	cpu_set_t set;

	if (!tp_readable("TYPE-03"))
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
	attr.config = (u64)tp_id("sched/sched_process_fork");
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

	if (!tp_readable("TYPE-03"))
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

CONFORM(samples)
{
	const struct kernel_sample *s;

	if (!tp_readable("TYPE-03"))
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

/* How deep a call chain may be is said of the kernel's part and the program's together. */
CONFORM(chain_limit)
{
	struct pe_attr attr = tp_attr("task/task_rename");
	struct perf_event_mmap_page *page;
	const u64 *s;
	int fd;

	if (!tp_readable("SAMP-11"))
		return;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = 2;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	rename_thrice();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	s = (const u64 *)((const u8 *)page + PAGE) + 1;
	NEED(page->data_head);
	check_val("SAMP-11", "two addresses and two markers", (long)s[0], 4);
	check_val("SAMP-11", "which are the kernel's", s[1] == PERF_CONTEXT_KERNEL && s[2] >> 63,
		  1);
	check_val("SAMP-11", "so of the program there is the marker alone",
		  s[4] == PERF_CONTEXT_USER, 1);
}

static struct pe_attr nobodys_kernel;

static void kernel_raw_by_nobody(void)
{
	check_err("TYPE-03", "one's own of the kernel's, raw, without privilege",
		  try_self(nobodys_kernel), EPERM);
}

CONFORM(rights)
{
	if (!tp_readable("TYPE-03"))
		return;
	nobodys_kernel = ev_attr(PERF_TYPE_TRACEPOINT, (u64)tp_id("task/task_rename"));
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

/*
 * A kernel keeps what one event's program lets not pass from all events of the tracepoint, also
 * those of other tests that run at the same time: so it is one that no other test has.
 */
CONFORM(programs)
{
	int fd, none = bpf_program(0);

	if (!tp_readable("TYPE-03"))
		return;
	if (none < 0) {
		skip_row("IOC-09", "BPF programs", "none can be loaded here");
		return;
	}
	fd = tp_open("task/task_newtask");
	check_err("IOC-09", "a program that lets nothing pass",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)none), 0);
	check_val("IOC-09", "nothing passes", (long)tp_counted(fd, fork_twice), 0);
	check_err("IOC-09", "the same once more",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)none), EEXIST);
	close(fd);
	fd = tp_open("task/task_newtask");
	check_val("IOC-09", "it is gone with its event", (long)tp_counted(fd, fork_twice), 2);
	check_err("IOC-09", "no descriptor of a program",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)fd), EINVAL);
	check_err("IOC-09", "no descriptor", ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, 999), EBADF);
}

#ifdef __x86_64__
struct place_sample {
	struct perf_event_header header;
	u64 nr, chain[3];
	u64 abi, ax, bp, sp, ip; /* in the order of perf's numbers */
	u64 size, stack[8], dyn_size;
	u64 intr_abi, intr_ip;
};

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
CONFORM(places)
{
	const u64 frame[2] = {0, RET};
	struct pe_attr attr;
	const struct place_sample *s;
	struct perf_event_mmap_page *page;
	u64 ip, sp;
	int fd;

	if (!tp_readable("TYPE-03"))
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
CONFORM(places_of_others)
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

	if (!tp_readable("TYPE-03"))
		return;
	NEED(pipe(go) == 0);
	attr = place_attr("task/task_rename");
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &c, 1) == 1);
		for (int i = 0; i < 100; i++) {
			syscall(SYS_getppid);
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
#endif
