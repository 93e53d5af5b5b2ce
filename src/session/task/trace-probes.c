#include "session/task/trace-probes.h"

#include <string.h>

#include "abi/trace.h"
#include "session/session-priv.h"
#include "session/task/probe-places.h"

/* What is to be told of an occurrence is what any of its events wants. */
static void add_wants(const struct event *event, u32 *wants, u32 *stack_size, u32 *chain_max)
{
	const struct pe_attr *attr = event_attr(event);

	if (!event_is_sampling(event))
		return;
	*wants |= trace_parts(event) | TRACE_WANT_SAMPLE;
	if (attr->sample_stack_user > *stack_size)
		*stack_size = attr->sample_stack_user;
	if (attr->sample_max_stack > *chain_max)
		*chain_max = attr->sample_max_stack;
}

static void tell_call(const struct probe *probe, struct trace_calls *calls)
{
	u64 *bits = probe->kind == PROBE_CALL_ENTER ? calls->enter : calls->exit;

	if (probe->nr == PROBE_ANY_CALL) {
		memset(bits, 0xff, sizeof(calls->enter));
		calls->any |= probe->kind == PROBE_CALL_ENTER ? TRACE_ANY_ENTER : TRACE_ANY_EXIT;
	} else if ((u32)probe->nr < TRACE_CALLS)
		bits[probe->nr / 64] |= BIT(probe->nr % 64);
	add_wants(probe->event, &calls->wants, &calls->stack_size, &calls->chain_max);
}

void probe_tell_watch(const struct event *event, struct trace_watch *watch)
{
	watch->on = 1;
	add_wants(event, &watch->wants, &watch->stack_size, &watch->chain_max);
	if (event_attr(event)->sample_type & PERF_SAMPLE_READ)
		watch->wants |= TRACE_WANT_SUMS;
}

void probes_tell_fired(const struct list *probes, struct trace_watch *fired)
{
	const struct probe *probe;

	memset(fired, 0, sizeof(*fired));
	list_for_each_entry (probe, probes, armed)
		if (probe->kind == PROBE_KERNEL && event_attr(probe->event)->sigtrap) {
			fired->on = 1;
			fired->wants = TRACE_WANT_ANSWER;
		}
}

/* All of them, for what the kernel records in them; the session looks when it likes. */
static void tell_calls(const struct probe *probe, struct trace_calls *calls)
{
	memset(calls->enter, 0xff, sizeof(calls->enter));
	memset(calls->exit, 0xff, sizeof(calls->exit));
	calls->any = TRACE_ANY_ENTER | TRACE_ANY_EXIT;
	add_wants(probe->event, &calls->wants, &calls->stack_size, &calls->chain_max);
	calls->wants &= ~(u32)TRACE_WANT_ANSWER;
}

static void tell_place(const struct event *event, u64 addr, u32 kind, struct trace_place *place)
{
	u32 i = 0;

	while (i < TRACE_PLACES && place[i].addr && place[i].addr != addr)
		i++;
	if (i == TRACE_PLACES)
		return;
	place[i].addr = addr;
	place[i].kinds |= kind;
	add_wants(event, &place[i].wants, &place[i].stack_size, &place[i].chain_max);
}

static bool is_call(const struct probe *probe)
{
	return probe->kind == PROBE_CALL_ENTER || probe->kind == PROBE_CALL_EXIT;
}

void probes_tell(struct guest_process *p, const struct list *probes, struct trace *trace)
{
	const struct probe *probe;

	memset(&trace->calls, 0, sizeof(trace->calls));
	memset(trace->place, 0, sizeof(trace->place));
	probes_find_places(p, probes);
	list_for_each_entry (probe, probes, armed) {
		if (kernel_probe_wants_calls(probe))
			tell_calls(probe, &trace->calls);
	}
	list_for_each_entry (probe, probes, armed) {
		u32 kind = probe->kind == PROBE_RETURN ? TRACE_PLACE_RETURN : TRACE_PLACE_EXECUTED;

		if (is_call(probe))
			tell_call(probe, &trace->calls);
		for (u32 i = 0; probe->kind != PROBE_ACCESSED && i < probe->nr_at; i++)
			tell_place(probe->event, probe->at[i], kind, trace->place);
	}
}

bool probes_are_sampled(const struct list *probes, const struct trace *trace)
{
	const struct probe *probe;

	/* The kernel's are looked at now and then. */
	list_for_each_entry (probe, probes, armed)
		if (is_call(probe) && event_is_sampling(probe->event))
			return true;
	for (u32 i = 0; i < TRACE_PLACES; i++)
		if (trace->place[i].wants & TRACE_WANT_SAMPLE)
			return true;
	return trace->watch.wants & TRACE_WANT_SAMPLE;
}

static bool hit_from(const struct guest_thread *th, const struct trace_hit *h,
		     struct probe_hit *hit)
{
	static const enum probe_kind kinds[] = {
		[TRACE_CALL_ENTER] = PROBE_CALL_ENTER,  [TRACE_CALL_EXIT] = PROBE_CALL_EXIT,
		[TRACE_EXECUTED] = PROBE_EXECUTED,      [TRACE_RETURNED] = PROBE_RETURN,
		[TRACE_OTHER_ENTER] = PROBE_CALL_ENTER, [TRACE_OTHER_EXIT] = PROBE_CALL_EXIT,
	};

	if (!h->kind || h->kind >= ARRAY_SIZE(kinds))
		return false;
	*hit = (struct probe_hit){
		.kind = kinds[h->kind],
		.other_mode = h->kind == TRACE_OTHER_ENTER || h->kind == TRACE_OTHER_EXIT,
		.nr = h->nr,
		.addr = h->addr,
		.ret = h->args[0],
		.tid = (u32)th->tid,
		.cpu = h->cpu,
	};
	memcpy(hit->args, h->args, sizeof(hit->args));
	return true;
}

static struct probe *next_match(const struct list *probes, const struct probe_hit *hit, u64 serial)
{
	struct probe *probe;

	list_for_each_entry (probe, probes, armed)
		if (probe->told != serial && probe_matches(probe, hit))
			return probe;
	return NULL;
}

bool probes_happened(struct guest_thread *th, const struct list *probes,
		     const struct probe_hit *hit, struct sample_facts *facts)
{
	static u64 serial;
	bool any = false;
	struct probe *probe;

	serial++;
	/* One may take itself or another off the list. */
	while ((probe = next_match(probes, hit, serial))) {
		const struct pe_attr *attr = event_attr(probe->event);

		any = true;
		probe->told = serial;
		facts->time = !attr->use_clockid || attr->clockid == 1
				      ? th->process->s->instant.wall_time
				      : 0;
		probe_happened(probe, hit, facts);
	}
	return any;
}

void probes_hit(struct guest_thread *th, const struct list *probes, const struct trace_hit *h)
{
	const struct trace_sample *s = (const struct trace_sample *)(h + 1);
	const struct meter *m = guest_thread_meter(th);
	struct sample_facts facts = {.task = th->task, .cpumode = PERF_RECORD_MISC_USER};
	u32 rest = h->entry.size - (u32)sizeof(*h);
	struct probe_hit hit;
	char comm[17] = "";

	if (!th->task || !m || !hit_from(th, h, &hit))
		return;
	if (hit.kind == PROBE_CALL_ENTER)
		records_call(th, rest >= sizeof(*s) && s->entry.size == rest ? s : NULL);
	if (hit.kind == PROBE_CALL_EXIT)
		records_call(th, NULL);
	guest_thread_told_cpu(th, h->cpu);
	if (rest >= sizeof(*s) && s->entry.size == rest && trace_sample_facts(th, s, &facts))
		facts.sample.ip = s->pc;
	for (u32 i = 0; i < 16; i++)
		comm[i] = __atomic_load_n(&m->comm[i], __ATOMIC_RELAXED);
	hit.comm = comm;
	(void)probes_happened(th, probes, &hit, &facts);
	core_settle(th->process->s->core);
}
