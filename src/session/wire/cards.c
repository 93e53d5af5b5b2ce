/*
 * Cards: an event of a process that the thread it counts may read without asking the session. That
 * is exact as long as every change of the event's state is on the card before the thread can look.
 * A thread that is in the call which changes something finds the cards published when it returns;
 * others run on, so their cards are held before the change: who looks meanwhile has to ask, and is
 * answered after it.
 *
 * No card for what is not the thread's own doing: groups, events with living children, software
 * events and events bound to a CPU.
 */
#include <string.h>

#include "base/bitmap.h"
#include "session/session-priv.h"

void card_take(struct carrier *c, struct proc *opener)
{
	u64 used[BITMAP_WORDS(WIRE_CARDS)] = {0};
	struct carrier *other;
	u32 card;

	if (!opener->page)
		return;
	list_for_each_entry (other, &c->s->carriers, link)
		if (other->opener == opener && other->card)
			bitmap_set(used, other->card - 1);
	for (card = 0; card < WIRE_CARDS && bitmap_test(used, card); card++)
		;
	if (card == WIRE_CARDS)
		return;
	c->opener = opener;
	c->card = card + 1;
	c->card_stale = true;
}

static void write_card(struct carrier *c, const struct wire_card *card)
{
	struct wire_card *to = &c->opener->page->cards[c->card - 1];
	u32 seq = c->card_seq;

	__atomic_store_n(&to->seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* mate: perf_card_read() in rt/perf/perf-open.c */
	memcpy((u8 *)to + sizeof(to->seq), (const u8 *)card + sizeof(card->seq),
	       sizeof(*to) - sizeof(to->seq));
	__atomic_store_n(&to->seq, seq + 2, __ATOMIC_RELEASE);
	c->card_seq = seq + 2;
	c->card_held = false;
}

static struct thread *counted(const struct carrier *c)
{
	return c->event->target ? task_host(c->event->target) : NULL;
}

/* Before events are changed; cards_publish() follows. */
void cards_hold(struct session *s)
{
	const struct thread *caller = s->call ? s->call->thread : NULL;
	struct carrier *c;
	bool any = false;

	list_for_each_entry (c, &s->carriers, link) {
		if (!c->card || c->card_held || (caller && counted(c) == caller))
			continue;
		__atomic_store_n(&c->opener->page->cards[c->card - 1].seq, c->card_seq + 1,
				 __ATOMIC_RELAXED);
		c->card_held = any = true;
	}
	/* Before its meter and clock are read; mate: perf_card_read() in rt/perf/perf-open.c. */
	if (any)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Nothing of it changed but the time, of which all cards of a thread say the same. */
static void let_go(struct carrier *c)
{
	const struct thread *th = counted(c);

	if (th)
		__atomic_store_n(&c->opener->page->cards[c->card - 1].clock, th->cpu_time,
				 __ATOMIC_RELAXED);
	if (!c->card_held)
		return;
	c->card_seq += 2;
	__atomic_store_n(&c->opener->page->cards[c->card - 1].seq, c->card_seq, __ATOMIC_RELEASE);
	c->card_held = false;
}

void card_drop(struct carrier *c)
{
	static const struct wire_card none;

	if (c->opener && c->opener->page)
		write_card(c, &none);
	c->opener = NULL;
	c->card = 0;
}

/* kind stays WIRE_CARD_NONE where the session must be asked. */
static void fill(struct carrier *c, struct wire_card *card)
{
	static u64 words[EVENT_READ_MAX / 8];
	struct event *e = c->event;
	struct thread *th = counted(c);
	u64 now;
	u32 i = 0;

	memset(card, 0, sizeof(*card));
	if (!th || th->proc != c->opener || th->task != e->target || e->pmu != c->s->cpu_pmu ||
	    e->cpu >= 0 || e->attr.read_format & PERF_FORMAT_GROUP || !list_empty(&e->children) ||
	    e->state < EVENT_OFF || th->meter >= c->s->slots || e->hw.what >= CPU_WHAT_MAX)
		return;
	(void)clock_read(th);
	if (event_read(e, words, sizeof(words)) <= 0)
		return;
	/* The one that the event's times were brought up to. */
	now = th->cpu_time;
	card->clock = now;
	card->kind = WIRE_CARD_METER;
	card->meter = th->meter;
	card->quantity = meters_quantity(e->hw.what);
	card->handle = c->handle;
	card->id = event_id(e);
	card->lost = e->lost_samples;
	card->read_format = e->attr.read_format;
	card->base = words[i++];
	if (e->attr.read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		card->enabled_base = words[i++];
	if (e->attr.read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		card->running_base = words[i];
	if (e->leader->state >= EVENT_INACTIVE && e->state >= EVENT_INACTIVE) {
		card->flags |= WIRE_CARD_ENABLED;
		card->enabled_base -= now;
	}
	if (e->state == EVENT_ACTIVE) {
		card->flags |= WIRE_CARD_RUNNING;
		card->running_base -= now;
		card->base -= thread_sum(th, card->quantity);
	}
}

/* What a card depends on besides what the guest can see for itself. */
static struct card_state state_of(const struct event *e)
{
	return (struct card_state){
		.state = e->state,
		.leader = e->leader->state,
		.child_count = e->child_count,
		.lost = e->lost_samples,
		.has_children = !list_empty(&e->children),
	};
}

/* Brings the cards of events that changed up to date, and lets their readers look again. */
void cards_publish(struct session *s)
{
	bool frozen = session_freeze(s);
	struct carrier *c;

	list_for_each_entry (c, &s->carriers, link) {
		struct card_state now;
		struct wire_card card;

		if (!c->card)
			continue;
		now = state_of(c->event);
		if (!c->card_stale && memcmp(&now, &c->card_state, sizeof(now)) == 0) {
			let_go(c);
			continue;
		}
		fill(c, &card);
		write_card(c, &card);
		c->card_state = now;
		c->card_stale = false;
	}
	session_thaw(s, frozen);
}

/* An ioctl changed what no state shows: a count, a period. */
void cards_stale(struct session *s, const struct event *event)
{
	struct carrier *c;

	list_for_each_entry (c, &s->carriers, link)
		if (c->event->leader == event->leader)
			c->card_stale = true;
}
