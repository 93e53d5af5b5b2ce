#include "session/task/cpu-switches.h"

#include <stdlib.h>

#include "record/coding.h"
#include "session/session-priv.h"
#include "session/task/thread-records-priv.h"

/* More than a CPU does between two looks of the session's. */
#define KEPT 4096u
/* What several events are told of one switch they are told within this, ns; mostly at once. */
#define APART 1000000u

struct cpu_switch {
	u64 time;
	u32 tid, pid, other;
	bool out;
};

struct cpu_switches {
	struct kernel_stops kernel;
	u64 nr; /* those that were ever kept; the last KEPT are there */
	struct cpu_switch kept[KEPT];
};

void cpu_switches_watch(struct session *s, u32 cpu)
{
	struct pe_attr attr = recorder_attr();
	struct cpu_switches *cs;

	if (!s->cpu_switches)
		s->cpu_switches = calloc(s->nr_cpus, sizeof(*s->cpu_switches));
	if (!s->cpu_switches || cpu >= s->nr_cpus || s->cpu_switches[cpu])
		return;
	cs = calloc(1, sizeof(*cs));
	if (!cs)
		return;
	kernel_stops_init(&cs->kernel);
	attr.context_switch = 1;
	if (kernel_cpu_buffer_open(&cs->kernel, &attr, (int)cpu)) {
		free(cs);
		return;
	}
	s->cpu_switches[cpu] = cs;
}

static void take_all(struct cpu_switches *cs)
{
	static u8 bytes[KERNEL_RECORD_MAX] __attribute__((aligned(8)));
	const struct ap_layout layout = {.sample_type = RECORD_COMMON, .sample_id_all = true};
	struct kernel_record k = {.bytes = bytes};
	struct ap_record rec;
	const char *why;

	while (kernel_record_next(&cs->kernel, RECORD_COMMON, ~0ull, &k)) {
		if (k.header.type != PERF_RECORD_SWITCH_CPU_WIDE ||
		    ap__record_decode(&rec, k.bytes, k.header.size, &layout, &why) < 0)
			continue;
		cs->kept[cs->nr++ % KEPT] = (struct cpu_switch){
			.time = rec.id.time,
			.tid = rec.id.tid,
			.pid = rec.context_switch.next_prev_pid,
			.other = rec.context_switch.next_prev_tid,
			.out = rec.misc & PERF_RECORD_MISC_SWITCH_OUT,
		};
	}
}

/* The first one after @time. */
static u64 after(const struct cpu_switches *cs, u64 time)
{
	u64 low = cs->nr > KEPT ? cs->nr - KEPT : 0, high = cs->nr;

	while (low < high) {
		u64 middle = low + (high - low) / 2;

		if (cs->kept[middle % KEPT].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void cpu_switches_find(struct session *s, u32 cpu, u32 tid, bool out, u64 time, u32 *pid,
		       u32 *other)
{
	struct cpu_switches *cs = s->cpu_switches && cpu < s->nr_cpus ? s->cpu_switches[cpu] : NULL;

	*pid = *other = 0;
	if (!cs)
		return;
	take_all(cs);
	/* The kernel tells the events of a CPU before those of the task. */
	for (u64 i = after(cs, time); i && cs->nr - (i - 1) <= KEPT; i--) {
		const struct cpu_switch *at = &cs->kept[(i - 1) % KEPT];

		if (time - at->time > APART)
			break;
		if (at->tid != tid || at->out != out)
			continue;
		*pid = at->pid;
		*other = at->other;
		break;
	}
}

void cpu_switches_free(struct session *s)
{
	for (u32 cpu = 0; s->cpu_switches && cpu < s->nr_cpus; cpu++) {
		if (s->cpu_switches[cpu])
			kernel_stops_release(&s->cpu_switches[cpu]->kernel);
		free(s->cpu_switches[cpu]);
	}
	free(s->cpu_switches);
}
