/*
 * Writing perf's settings [FILE-01..07, GRP-11]. On the kernel nothing is changed: what is written
 * there is what is there already, or refused.
 */
#include "conform/conform.h"

#include <limits.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#define KERNEL "/proc/sys/kernel/"

static const char *const names[] = {
	KERNEL "perf_event_paranoid",       KERNEL "perf_event_max_sample_rate",
	KERNEL "perf_cpu_time_max_percent", KERNEL "perf_event_max_stack",
	KERNEL "perf_event_mlock_kb",       KERNEL "perf_event_max_contexts_per_stack",
};

static int value_of(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	NEED(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return atoi(text);
}

static long put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	long n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	n = n < 0 ? -errno : n;
	close(fd);
	return n;
}

static long put_value(const char *path, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", value);
	return put(path, text) == (long)strlen(text) ? 0 : -errno;
}

static bool not_root(const char *text)
{
	if (geteuid() == 0 && put_value(names[0], value_of(names[0])) == 0)
		return false;
	skip_row("FILE-01", text, "the settings cannot be written to here");
	return true;
}

static void nobody_writes(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[80];

		if (access(names[i], F_OK))
			continue;
		snprintf(text, sizeof(text), "%s: written by nobody", names[i] + strlen(KERNEL));
		check_err("FILE-01", text, put(names[i], "1"), EACCES);
	}
	check_val("FILE-01", "access(W_OK) says so", access(names[0], W_OK), -1);
}

CONFORM(unprivileged)
{
	as_nobody(nobody_writes);
}

CONFORM(refused)
{
	static const struct {
		const char *text;
		int name, err;
		const char *written;
	} bad[] = {
		{"no number", 0, EINVAL, "x"},
		{"a number and more", 0, EINVAL, "1x"},
		{"nothing but blanks", 0, EINVAL, " \n"},
		{"two signs", 0, EINVAL, "--1"},
		{"beyond an int", 0, EINVAL, "2147483648"},
		{"sample rate 0", 1, EINVAL, "0"},
		{"sample rate -1", 1, EINVAL, "-1"},
		{"percent -1", 2, EINVAL, "-1"},
		{"percent 101", 2, EINVAL, "101"},
		{"stack -1", 3, EINVAL, "-1"},
		{"stack 655361", 3, EINVAL, "655361"},
		{"contexts 1001", 5, EINVAL, "1001"},
	};
	int before[6];

	if (not_root("settings that are refused"))
		return;
	for (int i = 0; i < 6; i++)
		before[i] = value_of(names[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_err("FILE-01", bad[i].text, put(names[bad[i].name], bad[i].written),
			  bad[i].err);
	for (int i = 0; i < 6; i++)
		NEED(value_of(names[i]) == before[i]);
}

/* What write(2) answers, and where it leaves the descriptor. */
CONFORM(writing)
{
	char text[64];
	struct iovec v[2];
	int value, fd, len;

	if (not_root("writing a setting"))
		return;
	value = value_of(names[4]);
	len = snprintf(text, sizeof(text), " 0x%x\n", (unsigned)value);
	check_val("FILE-01", "blanks and hexadecimal are taken", put(names[4], text), len);
	len = snprintf(text, sizeof(text), "%d %d\n", value, value);
	check_val("FILE-01", "of two numbers one is taken", put(names[4], text) < len, 1);
	fd = open(names[4], O_RDWR | O_CLOEXEC);
	NEED(fd >= 0);
	len = snprintf(text, sizeof(text), "%d", value);
	v[0] = (struct iovec){text, (size_t)len};
	v[1] = (struct iovec){text + len, 1};
	text[len] = '\n';
	check_val("FILE-01", "writev", writev(fd, v, 2), len + 1);
	check_val("FILE-01", "the offset goes on", lseek(fd, 0, SEEK_CUR), len + 1);
	if (value_of("/proc/sys/kernel/sysctl_writes_strict") == 1)
		check_val("FILE-01", "what comes later is ignored", write(fd, "77", 2), 2);
	lseek(fd, 0, SEEK_SET);
	memset(text, 0, sizeof(text));
	check_val("FILE-01", "and can be read",
		  read(fd, text, sizeof(text)) > 0 && atoi(text) == value, 1);
	check_val("FILE-01", "writing nothing", write(fd, "", 0), 0);
	close(fd);
	fd = open(names[4], O_RDONLY | O_CLOEXEC);
	NEED(fd >= 0);
	check_val("FILE-01", "not open for writing", write(fd, "1", 1) < 0 ? errno : 0, EBADF);
	close(fd);
	check_val("FILE-01", "truncate(2) changes nothing", truncate(names[4], 0), 0);
	check_val("FILE-01", "it is as it was", value_of(names[4]), value);
}

static bool kernel_world(const char *text)
{
	if (virtual_world() && geteuid() == 0)
		return false;
	skip_row("FILE-01", text, "it would change the machine");
	return true;
}

static void nobody_counts_a_cpu(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	check_err("FILE-02", "paranoid -1: anybody counts a CPU", try_open(&attr, -1, 0, -1, 0), 0);
}

static void nobody_is_refused(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	check_err("FILE-02", "paranoid 2: nobody may", try_open(&attr, -1, 0, -1, 0), EACCES);
}

/* Writes to a descriptor that was opened by another program. */
CONFORM_EXEC(write_3)
{
	return write(arg, "3\n", 2) == 2 ? 0 : 1;
}

static void exec_writer(void)
{
	int fd = open(names[0], O_WRONLY);

	NEED(fd >= 0);
	exec_self("write_3", fd);
}

static long in_program(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(1);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

CONFORM(changed)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	int copy, fd;

	if (kernel_world("settings that are changed"))
		return;
	NEED(put_value(names[0], 2) == 0);
	as_nobody(nobody_is_refused);
	check_err("FILE-02", "paranoid -1 can be set", put_value(names[0], -1), 0);
	check_val("FILE-02", "and is shown", value_of(names[0]), -1);
	as_nobody(nobody_counts_a_cpu);
	fd = open(names[0], O_WRONLY);
	copy = dup(fd);
	NEED(copy >= 0 && close(fd) == 0);
	check_val("FILE-02", "through a copy of the descriptor", write(copy, "1", 1), 1);
	close(copy);
	check_val("FILE-02", "shown as well", value_of(names[0]), 1);
	check_val("FILE-02", "by another program, on a descriptor that it got",
		  in_program(exec_writer), 0);
	check_val("FILE-02", "shown too", value_of(names[0]), 3);
	NEED(put_value(names[0], 2) == 0);

	check_err("FILE-03", "a limit of the frequency", put_value(names[1], 500), 0);
	attr.freq = 1;
	attr.sample_freq = 501;
	check_err("FILE-03", "a higher frequency", try_self(attr), EINVAL);
	check_err("FILE-03", "percent 0", put_value(names[2], 0), 0);
	check_err("FILE-03", "then the limit cannot be set", put(names[1], "1000"), EINVAL);
	check_err("FILE-03", "percent 25", put_value(names[2], 25), 0);
	check_err("FILE-03", "and then it can", put_value(names[1], 100000), 0);
	check_val("FILE-03", "shown", value_of(names[1]), 100000);
}

/* What a file of a PMU says, its path put together from @pmu and @name; "-" if it is not there. */
static const char *pmu_file(const char *pmu, const char *name)
{
	static char text[128];
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/%s", pmu, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return "-";
	text[n] = 0;
	return text;
}

/* The PMUs that every kernel has [FILE-13, FILE-16]. */
CONFORM(devices)
{
	static const char *const pmus[] = {"software", "breakpoint", "tracepoint"};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(pmus); i++) {
		check_val("FILE-13", "uevent of software, breakpoint, tracepoint: empty",
			  strcmp(pmu_file(pmus[i], "uevent"), ""), 0);
		check_val("FILE-16", "perf_event_mux_interval_ms of the same: 1 or more",
			  atoi(pmu_file(pmus[i], "perf_event_mux_interval_ms")) >= 1, 1);
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s", pmus[i]);
		check_err("FILE-16", "there is no extended attribute that could not be asked for",
			  listxattr(path, NULL, 0) < 0 ? -errno : 0, 0);
	}
	if (access("/sys/bus/event_source/devices/uprobe", F_OK)) {
		skip_row("FILE-11", "formats of uprobe", "no uprobe PMU here");
		return;
	}
	check_val("FILE-11", "uprobe: retprobe",
		  strcmp(pmu_file("uprobe", "format/retprobe"), "config:0\n"), 0);
	check_val("FILE-11", "uprobe: ref_ctr_offset",
		  strcmp(pmu_file("uprobe", "format/ref_ctr_offset"), "config:32-63\n"), 0);
	check_val("FILE-13", "uprobe: uevent", strcmp(pmu_file("uprobe", "uevent"), ""), 0);
}

CONFORM(mux_interval)
{
	const char *path = "/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms";

	if (kernel_world("the rotation interval") || access(path, F_OK))
		return;
	check_err("GRP-11", "an interval of 0", put(path, "0"), EINVAL);
	check_err("GRP-11", "an interval of 9 ms", put_value(path, 9), 0);
	check_val("GRP-11", "is shown", value_of(path), 9);
	path = "/sys/bus/event_source/devices/software/perf_event_mux_interval_ms";
	check_err("GRP-11", "an interval of 7 ms for software events", put_value(path, 7), 0);
	check_val("GRP-11", "is shown there", value_of(path), 7);
	path = "/sys/devices/cpu/perf_event_mux_interval_ms";
	check_val("GRP-11", "and not for the cpu PMU, by another path", value_of(path), 9);
	check_err("GRP-11", "which may be written by", put_value(path, 4), 0);
	check_err("GRP-11", "another file of a PMU",
		  put("/sys/bus/event_source/devices/cpu/type", "4"), EACCES);
}
