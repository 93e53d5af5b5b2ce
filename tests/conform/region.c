/* Regions of known instructions: see region.h. */
#include "conform/region.h"

char region_buffer[4096] __attribute__((aligned(64)));

int pmu_open(u64 config, int group)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, config);
	long fd;

	attr.disabled = group < 0;
	fd = ev_open(&attr, 0, -1, group, 0);
	NEED(fd >= 0);
	return (int)fd;
}

void check_exact(const char *row, const char *text, u64 got, u64 want)
{
	if (!virtual_world() && got >= want && got <= want + want / 50 + 500)
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
