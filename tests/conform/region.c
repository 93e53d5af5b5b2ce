/* Regions of known instructions: see region.h. */
#include "conform/region.h"

char region_buffer[4096] __attribute__((aligned(64)));

static int open_with(u64 config, u64 config1, int group)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, config);
	long fd;

	attr.disabled = group < 0;
	attr.config1 = config1;
	fd = ev_open(&attr, 0, -1, group, 0);
	NEED(fd >= 0);
	return (int)fd;
}

int pmu_open(u64 config, int group)
{
	return open_with(config, 0, group);
}

int pmu_open_readable(u64 config)
{
	return open_with(config, USER_ACCESS, -1);
}

void check_exact(const char *row, const char *text, u64 got, u64 want)
{
	/* Who knows that the PMU here counts nothing twice says so. */
	if (!virtual_world() && !getenv("CONFORM_EXACT") && got >= want &&
	    got <= want + want / 50 + 500)
		got = want;
	check_val(row, text, (long long)got, (long long)want);
}

bool no_pmu(const char *row, const char *text)
{
	if (have_pmu())
		return false;
	skip_row(row, text, "no PMU here");
	return true;
}

bool no_branches(const char *row, const char *text)
{
	if (no_pmu(row, text))
		return true;
	if (!try_self(ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS)))
		return false;
	skip_row(row, text, "the PMU here does not count branches");
	return true;
}

bool no_user_access(const char *row, const char *text)
{
	static const char sysctl[] =
		"/proc/sys/kernel/perf_user_access"; /* arm64 has it, x86-64 has not */
	char value = '1';
	int fd;

	if (no_pmu(row, text))
		return true;
	fd = open(sysctl, O_RDONLY);
	if (fd >= 0) {
		NEED(read(fd, &value, 1) == 1);
		close(fd);
	}
	if (value == '1')
		return false;
	skip_row(row, text, "kernel.perf_user_access is 0");
	return true;
}

const char *device_file(const char *device, const char *name)
{
	static char text[128];
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/%s", device, name);
	memset(text, 0, sizeof(text));
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return text;
}
