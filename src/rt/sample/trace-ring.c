#include "rt/sample/trace-ring.h"

#include "rt/perf/wire-call.h"
#include "rt/sample/sample.h"
#include "sys/string.h"

#include <linux/futex.h>

#define PATIENCE_NS 100000000

static u64 tail_of(struct trace *trace)
{
	return __atomic_load_n(&trace->tail, __ATOMIC_ACQUIRE);
}

/* Tells the session that there is something, unless it knows. False: it is gone. */
static bool ring_bell(struct thread *t, struct trace *trace, bool again)
{
	if (__atomic_exchange_n(&trace->bell, 1, __ATOMIC_SEQ_CST) && !again)
		return true;
	return wire_tell_trace(t);
}

/* Until *@word is no longer @value; true: a long time has passed. */
static bool sleep_until(u32 *word, u32 value)
{
	const struct __kernel_timespec patience = {0, PATIENCE_NS};

	return sys_futex(word, FUTEX_WAIT, value, &patience, NULL, 0) == -ETIMEDOUT;
}

/* Until entries before @upto are drained; false: the session is gone. */
static bool wait_drained(struct thread *t, struct trace *trace, u64 upto)
{
	bool again = false;

	while ((s64)(tail_of(trace) - upto) < 0) {
		u32 drained = __atomic_load_n(&trace->drained, __ATOMIC_ACQUIRE);

		__atomic_store_n(&trace->waiting, 1, __ATOMIC_SEQ_CST);
		if ((s64)(tail_of(trace) - upto) >= 0)
			break;
		if (!ring_bell(t, trace, again))
			return false;
		again = sleep_until(&trace->drained, drained);
		if (again && wire_is_lost(t))
			return false;
	}
	__atomic_store_n(&trace->waiting, 0, __ATOMIC_RELAXED);
	return true;
}

static void copy_in(struct trace *trace, u64 at, const void *from, u64 len)
{
	u8 *ring = (u8 *)trace + TRACE_HEAD;
	u64 off = at % TRACE_RING, first = min_u64(len, TRACE_RING - off);

	memcpy(ring + off, from, first);
	memcpy(ring, (const u8 *)from + first, len - first);
}

void trace_put(struct thread *t, struct trace *trace, const struct trace_entry *entry, bool answer)
{
	u64 head = trace->head, end = head + entry->size;

	if (t->sampling.lost)
		return;
	if (end - tail_of(trace) > TRACE_RING && !wait_drained(t, trace, end - TRACE_RING)) {
		t->sampling.lost = true;
		return;
	}
	copy_in(trace, head, entry, entry->size);
	/* Pairs with trace_drain() of the session. */
	__atomic_store_n(&trace->head, end, __ATOMIC_RELEASE);
	/* Telling of the runtime's own doings would be another of them, and nobody waits for it. */
	if (entry->kind == TRACE_OWN)
		return;
	if (answer)
		t->sampling.lost = !wait_drained(t, trace, end);
	else if (end - tail_of(trace) >= __atomic_load_n(&trace->wake_at, __ATOMIC_RELAXED))
		t->sampling.lost = !ring_bell(t, trace, false);
}

void trace_wait_room(struct thread *t, struct trace *trace)
{
	u64 before;

	if (likely(!__atomic_load_n(&trace->hold, __ATOMIC_RELAXED)))
		return;
	sample_own_begin(t);
	before = perf_switches();
	while (!t->sampling.lost && !t->pending_count) {
		u32 drained = __atomic_load_n(&trace->drained, __ATOMIC_ACQUIRE);

		__atomic_store_n(&trace->waiting, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&trace->hold, __ATOMIC_SEQ_CST))
			break;
		if (sleep_until(&trace->drained, drained) && wire_is_lost(t))
			t->sampling.lost = true;
	}
	__atomic_store_n(&trace->waiting, 0, __ATOMIC_RELAXED);
	perf_own_switches(t, before);
}

void trace_flush(struct thread *t, struct trace *trace)
{
	if (!t->sampling.lost)
		t->sampling.lost = !wait_drained(t, trace, trace->head);
}
