#include "rt/sample/trace-hits.h"

#include "rt/sample/thread-sampler-priv.h"
#include "rt/syscall/syscall.h"
#include "sys/string.h"

/* What tools see in place of a result while the call is under way. */
#define NO_RESULT ((u64)-38)
/* The kernel's own number for "interrupted, to be made again"; no program sees it. */
#define RESTARTS (-512l)

static bool wanted(const u64 *bits, u64 nr)
{
	return nr < TRACE_CALLS && bits[nr / 64] & BIT(nr % 64);
}

/* @result: what the result's register is shown as; NULL: as it is. */
static void tell(struct thread *t, struct trace_hit *hit, const struct trace_event *wants,
		 const u64 *result)
{
	struct sampler *s = sampler_of(t);
	struct trace_sample *sample = (struct trace_sample *)(s->entry + sizeof(*hit));
	u64 sums[METER_QUANTITIES];
	u32 size = sizeof(*hit);

	hit->entry.kind = TRACE_HIT;
	raw_call3(__NR_getcpu, (long)&hit->cpu, 0, 0);
	sample_own_begin(t);
	if (wants->wants & TRACE_WANT_SAMPLE) {
		meter_sums(dbt_meter(&t->dbt), METER_QUANTITIES, sums);
		sample_make(t, sample, wants, sums);
		sample->entry.kind = TRACE_SAMPLE;
		sample->periods = 1;
		hit->entry.time = sample->entry.time;
		if (result)
			sample->regs[0] = *result;
		size += sample->entry.size;
	}
	hit->entry.size = size;
	memcpy(s->entry, hit, sizeof(*hit));
	/* What it has read of the guest's is no access of the guest's. */
	sample_own_end(t);
	sample_tell(t, (const struct trace_entry *)s->entry, wants->wants & TRACE_WANT_ANSWER);
	trace_wait_room(t, trace_of(t));
}

static void tell_call(struct thread *t, struct trace_hit *hit, u64 result)
{
	const struct trace_calls *calls = &sampler_of(t)->calls;
	const struct trace_event wants = {
		.wants = calls->wants,
		.chain_max = calls->chain_max,
		.stack_size = calls->stack_size,
	};

	tell(t, hit, &wants, &result);
}

/* It was told when it was not made, and is made now. */
static bool is_again(struct thread *t)
{
	u64 pc = regs_pc(&t->dbt.regs);
	bool again = t->sampling.unmade && t->sampling.call_pc == pc;

	t->sampling.unmade = false;
	t->sampling.call_pc = pc;
	return again;
}

void probe_call_enter(struct thread *t, u64 nr)
{
	struct trace_hit hit = {.kind = TRACE_CALL_ENTER, .nr = (s64)nr};

	if (is_again(t) || !wanted(sampler_of(t)->calls.enter, nr))
		return;
	for (u32 i = 0; i < 6; i++)
		hit.args[i] = guest_arg(t, i);
	tell_call(t, &hit, NO_RESULT);
}

void probe_other_enter(struct thread *t, u64 nr, const u64 args[6])
{
	struct trace_hit hit = {.kind = TRACE_OTHER_ENTER, .nr = (s64)nr};

	if (is_again(t) || !(sampler_of(t)->calls.any & TRACE_ANY_ENTER))
		return;
	memcpy(hit.args, args, sizeof(hit.args));
	tell_call(t, &hit, NO_RESULT);
}

static void tell_exit(struct thread *t, u32 kind, u64 nr, long ret)
{
	struct trace_hit hit = {.kind = kind, .nr = (s64)nr, .args = {(u64)ret}};

	/* Its registers are those of before the signal, and so is what they say of a call. */
	if (kind == TRACE_CALL_EXIT && nr == __NR_rt_sigreturn)
		hit.nr = -1;
	tell_call(t, &hit, (u64)ret);
}

/* False: nobody wants to know, or it is still to be made. */
static bool is_over(struct thread *t, long ret, bool restarts)
{
	sample_look(t);
	if (!t->sampling.calls)
		return false;
	/* When it is made it has been told already. */
	t->sampling.unmade |= ret == CALL_REDO && !restarts;
	return ret != CALL_REDO || restarts;
}

static long result_of(struct thread *t, long ret)
{
	return ret == CALL_REDO ? RESTARTS : ret == CALL_SET ? regs_result(&t->dbt.regs) : ret;
}

void probe_call_exit(struct thread *t, u64 nr, long ret, bool restarts)
{
	if (is_over(t, ret, restarts) && wanted(sampler_of(t)->calls.exit, nr))
		tell_exit(t, TRACE_CALL_EXIT, nr, result_of(t, ret));
}

void probe_other_exit(struct thread *t, u64 nr, long ret, bool restarts)
{
	if (is_over(t, ret, restarts) && sampler_of(t)->calls.any & TRACE_ANY_EXIT)
		tell_exit(t, TRACE_OTHER_EXIT, nr, result_of(t, ret));
}

void probe_begun(struct thread *t, u64 nr)
{
	sample_look(t);
	if (t->sampling.calls && wanted(sampler_of(t)->calls.exit, nr))
		tell_exit(t, TRACE_CALL_EXIT, nr, 0);
}

static void hit_place(struct thread *t, const struct trace_place *place, struct trace_hit *hit)
{
	const struct trace_event wants = {
		.wants = place->wants,
		.chain_max = place->chain_max,
		.stack_size = place->stack_size,
	};

	hit->addr = place->addr;
	tell(t, hit, &wants, NULL);
}

void hit_executed(struct thread *t, const struct trace_place *place)
{
	hit_place(t, place, &(struct trace_hit){.kind = TRACE_EXECUTED});
}

void hit_returned(struct thread *t, const struct trace_place *place)
{
	hit_place(t, place,
		  &(struct trace_hit){.kind = TRACE_RETURNED, .args = {regs_pc(&t->dbt.regs)}});
}
