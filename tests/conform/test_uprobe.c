/*
 * Probes of functions of a file, and of their returns [TYPE-08, ATTR-54, SAMP-12]: of the program
 * itself, of a library, of children and of new programs. They are root's.
 */
#include "conform/conform.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>

/* One place, that every call goes to. */
#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif

#define PAGE   4096
#define RETURN 1u

ALONE static int target(int x)
{
	__asm__ volatile("");
	return x + 1;
}

ALONE static int nested(int x)
{
	int below = x ? nested(x - 1) : 0;

	__asm__ volatile("");
	return below + 1;
}

static jmp_buf back;

ALONE static void leaves(int x)
{
	if (x)
		longjmp(back, 1);
	__asm__ volatile("");
}

/* The file that has @at, and where in it that is. */
static bool file_of(u64 at, char *path, u64 *offset)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, from;
	char line[PATH_MAX + 100];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &start, &end, &from, path) != 4)
			continue;
		found = at >= start && at < end;
		*offset = from + (at - start);
	}
	if (maps)
		fclose(maps);
	return found;
}

static u32 pmu_type(void)
{
	int fd = open("/sys/bus/event_source/devices/uprobe/type", O_RDONLY);
	char text[32] = "";

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			text[0] = '\0';
		close(fd);
	}
	return (u32)atoi(text);
}

static char own_path[PATH_MAX];

static struct pe_attr probe_at(u64 fn, u32 config)
{
	struct pe_attr attr = ev_attr(pmu_type(), config);
	u64 offset;

	NEED(file_of(fn, own_path, &offset));
	attr.exclude_kernel = 0;
	attr.uprobe_path = (u64)own_path;
	attr.probe_offset = offset;
	return attr;
}

static bool possible(void)
{
	if (pmu_type() && capable() && try_self(probe_at((u64)target, 0)) == 0)
		return true;
	skip_row("TYPE-08", "probes of functions", "this kernel has none, or not for us");
	return false;
}

static u64 counted(struct pe_attr attr, void (*fn)(void))
{
	long fd = ev_self(attr);
	u64 n;

	NEED(fd >= 0);
	fn();
	ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
	fn();
	ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0);
	fn();
	n = ev_count((int)fd);
	close((int)fd);
	return n;
}

ALONE static void ten(void)
{
	for (int i = 0; i < 10; i++)
		target(i);
}

static void six_deep(void)
{
	nested(5);
}

static void jumps(void)
{
	for (volatile int i = 0; i < 6; i++)
		if (!setjmp(back))
			leaves(i & 1);
}

static void calls_library(void)
{
	for (int i = 0; i < 7; i++)
		(void)getppid();
}

CONFORM(counts)
{
	if (!possible())
		return;
	check_val("TYPE-08", "calls of a function", (long)counted(probe_at((u64)target, 0), ten),
		  10);
	check_val("TYPE-08", "its returns", (long)counted(probe_at((u64)target, RETURN), ten), 10);
	check_val("TYPE-08", "calls of one that calls itself",
		  (long)counted(probe_at((u64)nested, 0), six_deep), 6);
	check_val("TYPE-08", "its returns, one in another",
		  (long)counted(probe_at((u64)nested, RETURN), six_deep), 6);
	check_val("TYPE-08", "calls of one that is left by longjmp",
		  (long)counted(probe_at((u64)leaves, 0), jumps), 6);
	check_val("TYPE-08", "its returns, half of them none",
		  (long)counted(probe_at((u64)leaves, RETURN), jumps), 3);
	check_val("TYPE-08", "calls into a library",
		  (long)counted(probe_at((u64)getppid, 0), calls_library), 7);
	check_val("TYPE-08", "returns from a library",
		  (long)counted(probe_at((u64)getppid, RETURN), calls_library), 7);
}

static void *thread(void *arg)
{
	ten();
	return arg;
}

static void family(void)
{
	pthread_t other;
	pid_t pid;

	NEED(!pthread_create(&other, NULL, thread, NULL));
	pthread_join(other, NULL);
	pid = fork();
	if (!pid) {
		ten();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ten();
}

CONFORM(inherited)
{
	struct pe_attr attr;

	if (!possible())
		return;
	attr = probe_at((u64)target, 0);
	check_val("TYPE-08", "calls of this thread alone", (long)counted(attr, family), 10);
	/* When a child ends 6.18 takes the probe from the others too, and a fork's is never set. */
	if (!virtual_world()) {
		skip_row("TYPE-08", "inherited probes", "the kernel loses them");
		return;
	}
	attr.inherit = 1;
	check_val("TYPE-08", "calls of threads and children", (long)counted(attr, family), 30);
	attr = probe_at((u64)target, RETURN);
	attr.inherit = 1;
	check_val("TYPE-08", "returns of threads and children", (long)counted(attr, family), 30);
}

/* Of all tasks of a CPU, those that are there and one that comes. */
CONFORM(whole_cpus)
{
	struct pe_attr attr;
	cpu_set_t set;
	int status, fd[2];
	pid_t pid;

	if (!possible())
		return;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set));
	for (int i = 0; i < 2; i++) {
		attr = probe_at((u64)target, (u32)i);
		fd[i] = (int)ev_open(&attr, -1, 0, -1, 0);
		NEED(fd[i] >= 0);
	}
	ten();
	ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0);
	ioctl(fd[1], PERF_EVENT_IOC_ENABLE, 0);
	ten();
	pid = fork();
	if (!pid) {
		ten();
		ten();
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	ioctl(fd[0], PERF_EVENT_IOC_DISABLE, 0);
	ioctl(fd[1], PERF_EVENT_IOC_DISABLE, 0);
	ten();
	check_val("TYPE-08", "calls on a CPU", (long)ev_count(fd[0]), 30);
	check_val("TYPE-08", "returns on a CPU", (long)ev_count(fd[1]), 30);
}

CONFORM_EXEC(ten_and_more)
{
	(void)arg;
	ten();
	calls_library();
	return 0;
}

/* Both the program and its library are mapped anew, elsewhere. */
CONFORM(programs)
{
	static const char *const texts[] = {"calls in a new program", "calls into its library"};
	const u64 fns[] = {(u64)target, (u64)getppid};
	static const long want[] = {10, 7};

	if (!possible())
		return;
	for (int i = 0; i < 2; i++) {
		struct pe_attr attr = probe_at(fns[i], 0);
		int p[2];
		pid_t pid;
		char c;
		long fd;

		NEED(pipe(p) == 0);
		pid = fork();
		if (!pid) {
			NEED(read(p[0], &c, 1) == 1);
			exec_self("ten_and_more", 0);
		}
		attr.enable_on_exec = 1;
		fd = ev_open(&attr, pid, -1, -1, 0);
		NEED(fd >= 0 && write(p[1], "x", 1) == 1);
		waitpid(pid, NULL, 0);
		check_val("TYPE-08", texts[i], (long)ev_count((int)fd), want[i]);
	}
}

struct raw_sample {
	struct perf_event_header header;
	u64 ip, addr;
	u32 size;
	u8 raw[28];
} __attribute__((packed));

static void first_sample(struct pe_attr attr, struct raw_sample *s)
{
	struct perf_event_mmap_page *page;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_RAW;
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	page = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	ten();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(page->data_head);
	memcpy(s, (u8 *)page + PAGE, sizeof(*s));
}

static u64 raw_word(const struct raw_sample *s, u32 at)
{
	u64 v;

	memcpy(&v, s->raw + at, sizeof(v));
	return v;
}

CONFORM(samples)
{
	struct raw_sample s;

	if (!possible())
		return;
	first_sample(probe_at((u64)target, 0), &s);
	check_val("SAMP-12", "the raw part of a call", s.size, 20);
	check_val("SAMP-12", "its address", raw_word(&s, 8) == (u64)target, 1);
	check_val("SAMP-02", "a call's instruction", s.ip == (u64)target, 1);
	check_val("SAMP-05", "a call has no address", (long)s.addr, 0);
	check_val("MISC-02", "a call is in user mode",
		  (s.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER, 1);
	first_sample(probe_at((u64)target, RETURN), &s);
	check_val("SAMP-12", "the raw part of a return", s.size, 28);
	check_val("SAMP-12", "the function that has returned", raw_word(&s, 8) == (u64)target, 1);
	check_val("SAMP-12", "where it has returned to", raw_word(&s, 16) == s.ip, 1);
	check_val("SAMP-02", "a return's instruction is in the caller",
		  s.ip > (u64)ten && s.ip < (u64)ten + 64, 1);
}

static struct pe_attr nobodys;

static void by_nobody(void)
{
	check_err("TYPE-08", "a probe without privilege", try_self(nobodys), EACCES);
}

CONFORM(refused)
{
	static char long_path[PATH_MAX + 100];
	struct pe_attr good, attr;

	if (!possible())
		return;
	attr = good = nobodys = probe_at((u64)target, 0);
	as_nobody(by_nobody);
	attr.uprobe_path = 0;
	check_err("ATTR-54", "no path", try_self(attr), EINVAL);
	attr.uprobe_path = (u64) "";
	check_err("ATTR-54", "an empty path", try_self(attr), EINVAL);
	attr.uprobe_path = 8;
	check_err("ATTR-54", "a path at no address", try_self(attr), EFAULT);
	attr.uprobe_path = (u64) "/nowhere/at/all";
	check_err("ATTR-54", "a file that is not there", try_self(attr), ENOENT);
	attr.uprobe_path = (u64) "/proc";
	check_err("ATTR-54", "a directory", try_self(attr), EINVAL);
	memset(long_path, '/', sizeof(long_path) - 1);
	attr.uprobe_path = (u64)long_path;
	check_err("ATTR-54", "a path too long", try_self(attr), E2BIG);
	attr = good;
	attr.probe_offset = 1ull << 40;
	check_err("ATTR-54", "an offset behind the file", try_self(attr), EINVAL);
	attr = good;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	check_err("BR-07", "branches of a probe", try_self(attr), EOPNOTSUPP);
}
