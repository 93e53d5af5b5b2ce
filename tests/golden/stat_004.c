/*
 * The measurements of run 004 (doc/matrix.md), replayed: seven cycles events on CPU 1, first
 * multiplexed on six counters, then six that fit [SCAL-03..11]; at last the bytes that strace saw
 * read(2) return [SCAL-12..18]. The events are opened, enabled and read by the code of `anyperf
 * stat` in a backend that answers with what was recorded; what it prints is held against
 * stat-004.txt to the last blank [STAT-07, STAT-08, STAT-09, STAT-10].
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/stat/stat-priv.h"
#include "lib/machine/machine-priv.h"

#define EVENTS 7

/* A kernel that knows its answers. Handles are the events' numbers from 0. */
struct recorded {
	u8 reads[EVENTS][24];
	int opened, enabled, disabled, read;
};

static int fake_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	struct recorded *r = be;

	/* What the recorded strace shows of the call [STAT-02, STAT-03]. */
	CHECK(attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES);
	CHECK(attr->disabled && attr->inherit && attr->exclude_guest && !attr->precise_ip);
	CHECK(!attr->sample_period && attr->sample_type == PERF_SAMPLE_IDENTIFIER);
	CHECK(attr->read_format ==
	      (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
	CHECK(!attr->enable_on_exec);
	CHECK(pid == -1 && cpu == 1 && leader == -1 && flags == PERF_FLAG_FD_CLOEXEC);
	return r->opened++;
}

static int fake_close(void *be, int handle)
{
	struct recorded *r = be;

	(void)handle;
	/* Nothing is closed before all is read [STAT-13]. */
	CHECK(r->read == r->opened);
	return 0;
}

static ssize_t fake_read(void *be, int handle, void *buf, size_t len)
{
	struct recorded *r = be;

	/* All are disabled before the first is read [STAT-01]. */
	CHECK(r->disabled == r->opened && len >= sizeof(r->reads[0]));
	CHECK(handle == r->read++);
	memcpy(buf, r->reads[handle], sizeof(r->reads[0]));
	return sizeof(r->reads[0]);
}

static int fake_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	struct recorded *r = be;

	(void)arg;
	if (request == PERF_EVENT_IOC_ENABLE)
		CHECK(handle == r->enabled++);
	else if (request == PERF_EVENT_IOC_DISABLE)
		CHECK(handle == r->disabled++);
	else
		return -ENOTTY;
	return 0;
}

static const struct ap__backend_ops fake_ops = {
	.name = "recorded",
	.open = fake_open,
	.close = fake_close,
	.read = fake_read,
	.ioctl = fake_ioctl,
};

static void replay(struct recorded *recorded, int nr, double elapsed, const char *separator)
{
	char cycles[] = "cycles,cycles,cycles,cycles,cycles,cycles,cycles";
	char words[][8] = {"stat", "-C", "1", "-e", "perfbug"};
	char *argv[] = {words[0], words[1], words[2], words[3], cycles, words[4], NULL};
	struct stat_job st = {0};
	struct report r;

	cycles[strlen("cycles,") * (size_t)nr - 1] = 0;
	CHECK(!stat_opts_parse(&st.opts, 6, argv));
	CHECK(!stat_prepare(&st));
	ap__machine_set_backend(st.machine, &fake_ops, recorded);
	CHECK(!stat_open(&st));
	CHECK(!ap_counters_enable(st.counters));
	CHECK(!ap_counters_disable(st.counters));

	report_init(&r, st.opts.aggr, st.events, st.nr_events);
	r.runs = 1;
	r.target = st.target;
	series_add(&r.elapsed, elapsed);
	stat_read(&st, &r, false);
	st.style = (struct report_style){
		.out = stdout,
		.separator = separator,
		.numbers = {.separator = ",",
			    .point = ".",
			    .separator_columns = 1,
			    .grouping = "\3"},
		.width = 80,
		.pmu = "kernel",
		.pmu_why = "",
	};
	if (separator)
		report_print_csv(&r, &st.style);
	else
		report_print_text(&r, &st.style);
	report_release(&r);
	stat_release(&st);
}

static void record(struct recorded *r, int event, u64 value, u64 enabled, u64 running)
{
	u64 words[3] = {value, enabled, running};

	memcpy(r->reads[event], words, sizeof(words));
}

int main(void)
{
	static const u64 multiplexed[EVENTS][3] = {
		{65718555, 3358872543, 2878892162}, {65664243, 3358872543, 2878835926},
		{65534598, 3358873665, 2878904935}, {65742430, 3358874036, 2878867475},
		{65191034, 3358873485, 2878862949}, {64160428, 3358872053, 2879733186},
		{65568243, 3358868936, 2879142333},
	};
	static const u64 fitting[EVENTS - 1][2] = {
		{718763, 3356602112}, {722050, 3356604236}, {724352, 3356605579},
		{724794, 3356605869}, {724448, 3356605489}, {723444, 3356604036},
	};
	static const char straced[EVENTS][25] = {
		"\0024\330\3\0\0\0\0B$u\310\0\0\0\0}\267\312\253\0\0\0\0",
		"\355=\321\3\0\0\0\0\2>u\310\0\0\0\0\346\206\311\253\0\0\0\0",
		"\342\312\330\3\0\0\0\0\313[u\310\0\0\0\0\325\201\331\253\0\0\0\0",
		"\252\247\326\3\0\0\0\0\t0u\310\0\0\0\0]\377\326\253\0\0\0\0",
		"n\6\330\3\0\0\0\0\360\23u\310\0\0\0\0fd\333\253\0\0\0\0",
		"{\245\316\3\0\0\0\0\274\335t\310\0\0\0\0w/\327\253\0\0\0\0",
		"\26^\322\3\0\0\0\0\225{t\310\0\0\0\0\245\371\311\253\0\0\0\0",
	};
	struct recorded r = {0};

	for (int i = 0; i < EVENTS; i++)
		record(&r, i, multiplexed[i][0], multiplexed[i][1], multiplexed[i][2]);
	replay(&r, EVENTS, 3.358864023, NULL);

	r = (struct recorded){0};
	for (int i = 0; i < EVENTS - 1; i++)
		record(&r, i, fitting[i][0], fitting[i][1], fitting[i][1]);
	replay(&r, EVENTS - 1, 3.356604640, NULL);

	r = (struct recorded){0};
	for (int i = 0; i < EVENTS; i++)
		memcpy(r.reads[i], straced[i], sizeof(r.reads[0]));
	replay(&r, EVENTS, 3.363161, ",");
	return 0;
}
