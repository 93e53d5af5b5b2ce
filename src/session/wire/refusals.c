/* Refusals, from a call to the list in the counter segment. */
#include <stdlib.h>
#include <string.h>

#include "session/session-priv.h"

/* The event that the call is about, if it is about one that is known; false: it is about none. */
static bool event_of(const struct call *c, struct pe_attr *attr)
{
	const struct perf_file *file;

	memset(attr, 0, sizeof(*attr));
	if (c->op == WIRE_OP_OPEN) {
		memcpy(attr, c->in, min_u64(c->len, sizeof(*attr)));
		return c->len >= PE_ATTR_SIZE_VER0;
	}
	if (c->op == WIRE_OP_SYSCTL || c->op == WIRE_OP_VIEW || c->op == WIRE_OP_FORK)
		return false;
	/* The handle comes first in the arguments of the others. */
	file = perf_file_by_handle(c->s, c->args.event.handle);
	if (file)
		*attr = *event_attr(file->event);
	return file != NULL;
}

static bool is_told(u32 op)
{
	return op == WIRE_OP_OPEN || op == WIRE_OP_READ || op == WIRE_OP_IOCTL ||
	       op == WIRE_OP_MMAP || op == WIRE_OP_SYSCTL || op == WIRE_OP_VIEW ||
	       op == WIRE_OP_FORK;
}

/* As ps(1) shows it: the name of the first thread, or of the caller where that has no meter. */
static void name_process(const struct call *c, char comm[16])
{
	const struct meter *m = guest_thread_meter(c->thread);
	struct guest_thread *th;

	list_for_each_entry (th, &c->process->threads, link)
		if (th->tid == c->process->pid && guest_thread_meter(th))
			m = guest_thread_meter(th);
	if (m)
		memcpy(comm, m->comm, 15);
	comm[15] = '\0';
}

/* What the names of events are made of (ap_attr_describe()). */
static bool same_event(const struct meter_refusal *a, const struct meter_refusal *b)
{
	const struct pe_attr *x = &a->attr, *y = &b->attr;

	return a->has_event == b->has_event && x->type == y->type && x->config == y->config &&
	       x->config1 == y->config1 && x->config2 == y->config2 && x->bp_type == y->bp_type &&
	       x->exclude_user == y->exclude_user && x->exclude_kernel == y->exclude_kernel &&
	       x->exclude_hv == y->exclude_hv && x->precise_ip == y->precise_ip;
}

static bool same_refusal(const struct meter_refusal *a, const struct meter_refusal *b)
{
	return a->run == b->run && a->refusal.cause == b->refusal.cause &&
	       a->refusal.err == b->refusal.err && !memcmp(a->comm, b->comm, sizeof(a->comm)) &&
	       same_event(a, b);
}

/* The entry for @new: that of the same refusal, or one that is free or whose run has ended. */
static s32 entry_for(struct session *s, const struct meter_refusal *new)
{
	s32 free_one = -1;

	for (u32 i = 0; i < METER_REFUSALS; i++) {
		const struct meter_refusal *r = &s->refusals.entry[i];

		if (r->run && same_refusal(r, new))
			return (s32)i;
		if (free_one < 0 && (!r->run || !meter_run_open(s->meters.segment, r->run)))
			free_one = (s32)i;
	}
	return free_one;
}

static void publish(struct session *s, u32 index)
{
	struct meter_refusal *shown = meter_refusals(s->meters.segment) + index;
	const struct meter_refusal *r = &s->refusals.entry[index];

	if (r->count > 1) {
		__atomic_store_n(&shown->count, r->count, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&shown->run, 0, __ATOMIC_RELEASE);
	memcpy((u8 *)shown + sizeof(shown->run), (const u8 *)r + sizeof(r->run),
	       sizeof(*r) - sizeof(r->run));
	__atomic_store_n(&shown->run, r->run, __ATOMIC_RELEASE);
}

void refusals_note(struct call *c)
{
	const struct meter *m = c->thread ? guest_thread_meter(c->thread) : NULL;
	const struct refusal *refusal = core_refusal(c->s->core);
	struct session *s = c->s;
	struct meter_refusal new = {.count = 1};
	struct meter_run *run;
	s32 index;

	if (!m || !is_told(c->op) || refusal->cause == CAUSE_NONE || c->ask_kernel ||
	    (c->ask_again && c->op == WIRE_OP_OPEN && c->args.open.patient))
		return;
	new.run = __atomic_load_n(&m->run, __ATOMIC_RELAXED);
	run = meter_run_open(s->meters.segment, new.run);
	if (!run)
		return;
	__atomic_add_fetch(&run->refused, 1, __ATOMIC_RELAXED);
	if (!s->refusals.entry)
		s->refusals.entry = calloc(METER_REFUSALS, sizeof(*s->refusals.entry));
	if (!s->refusals.entry)
		return;
	new.pid = (u32)c->process->pid;
	new.has_event = event_of(c, &new.attr);
	new.refusal = *refusal;
	name_process(c, new.comm);
	index = entry_for(s, &new);
	if (index < 0)
		return;
	if (same_refusal(&s->refusals.entry[index], &new))
		s->refusals.entry[index].count++;
	else
		s->refusals.entry[index] = new;
	publish(s, (u32)index);
}

void refusals_release(struct refusals *refusals)
{
	free(refusals->entry);
	refusals->entry = NULL;
}
