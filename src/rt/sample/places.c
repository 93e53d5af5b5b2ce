/*
 * Places: instructions of which each execution is to be told. The translator has one set of them
 * for the memory that threads share, so it has those of all; a thread tells of its own alone.
 */
#include "rt/sample/trace-hits.h"

#include "rt/mm/guest-mem.h"
#include "rt/sample/thread-sampler-priv.h"
#include "rt/task/alloc-sites.h"
#include "rt/task/shared-mm.h"
#include "sys/string.h"

#define NO_PLACE (~0ull)    /* for which there was no room */
#define KEPT     (1u << 31) /* of users[]: it is a place for good */

/* Those of all threads, ascending, and how many threads have each. */
static struct {
	struct lock lock;
	u32 nr;
	u64 addr[DBT_PLACES];
	u32 users[DBT_PLACES];
} shared;

static u32 position(u64 addr)
{
	u32 i = 0;

	while (i < shared.nr && shared.addr[i] < addr)
		i++;
	return i;
}

static bool add(u64 addr)
{
	u32 i = position(addr);

	if (i < shared.nr && shared.addr[i] == addr) {
		shared.users[i]++;
		return true;
	}
	if (shared.nr == DBT_PLACES)
		return false;
	for (u32 k = shared.nr++; k > i; k--) {
		shared.addr[k] = shared.addr[k - 1];
		shared.users[k] = shared.users[k - 1];
	}
	shared.addr[i] = addr;
	shared.users[i] = 1;
	return true;
}

static void drop(u64 addr)
{
	u32 i = position(addr);

	if (--shared.users[i])
		return; /* others have it, or it is kept */
	shared.nr--;
	for (; i < shared.nr; i++) {
		shared.addr[i] = shared.addr[i + 1];
		shared.users[i] = shared.users[i + 1];
	}
}

static bool is_current(const struct sampler *s, u32 nr)
{
	if (s->nr_places != nr)
		return false;
	for (u32 i = 0; i < nr; i++)
		if (s->places[i] != s->place[i].addr)
			return false;
	return true;
}

static bool tells_returns(const struct sampler *s, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		if (s->place[i].kinds & TRACE_PLACE_RETURN)
			return true;
	return false;
}

void places_take_over(struct thread *t, bool gone)
{
	struct sampler *s = sampler_of(t);
	u32 nr = 0;

	if (!s)
		return;
	while (!gone && nr < TRACE_PLACES && s->place[nr].addr)
		nr++;
	if (is_current(s, nr) && (!s->nr_returns || tells_returns(s, nr)))
		return;
	lock_acquire(&shared.lock, t->id, thread_gone);
	for (u32 i = 0; i < s->nr_places; i++)
		if (s->places[i] != NO_PLACE)
			drop(s->places[i]);
	for (u32 i = 0; i < nr; i++)
		s->places[i] = add(s->place[i].addr) ? s->place[i].addr : NO_PLACE;
	s->nr_places = nr;
	if (!tells_returns(s, nr)) {
		s->nr_frames = 0;
		while (s->nr_returns)
			drop(s->returns[--s->nr_returns]);
	}
	dbt_set_places(&t->dbt, shared.addr, shared.nr);
	lock_release(&shared.lock, t->id);
}

u32 places_trade(struct thread *t, u64 *held, u32 nr, const u64 *wanted, u32 n)
{
	u32 kept = 0;

	if (!nr && !n)
		return 0;
	lock_acquire(&shared.lock, t->id, thread_gone);
	for (u32 i = 0; i < nr; i++)
		drop(held[i]);
	for (u32 i = 0; i < n; i++)
		if (add(wanted[i]))
			held[kept++] = wanted[i];
	dbt_set_places(&t->dbt, shared.addr, shared.nr);
	lock_release(&shared.lock, t->id);
	return kept;
}

/* False: there is no room, and no return to there is told. */
static bool add_return(struct thread *t, u64 ret)
{
	struct sampler *s = sampler_of(t);
	bool ok = true;

	for (u32 i = 0; i < s->nr_returns; i++)
		if (s->returns[i] == ret)
			return true;
	if (s->nr_returns == RETURN_PLACES)
		return false;
	lock_acquire(&shared.lock, t->id, thread_gone);
	ok = add(ret);
	if (ok) {
		s->returns[s->nr_returns++] = ret;
		dbt_set_places(&t->dbt, shared.addr, shared.nr);
	}
	lock_release(&shared.lock, t->id);
	return ok;
}

/* Frames that were left otherwise than by a return, by longjmp(), are below the stack pointer. */
static void drop_frames(struct sampler *s, u64 sp)
{
	while (s->nr_frames && s->frame[s->nr_frames - 1].sp < sp)
		s->nr_frames--;
}

static void called(struct thread *t, u64 addr)
{
	struct sampler *s = sampler_of(t);
	u64 sp = regs_sp(&t->dbt.regs), ret;

	drop_frames(s, sp);
	/* That was left by longjmp() as well; another function that begins there was jumped to. */
	if (s->nr_frames && s->frame[s->nr_frames - 1].sp == sp &&
	    s->frame[s->nr_frames - 1].addr == addr)
		s->nr_frames--;
	if (s->nr_frames == RETURN_DEPTH || guest_read(&ret, sp, sizeof(ret)) ||
	    !add_return(t, ret))
		return;
	s->frame[s->nr_frames].ret = ret;
	s->frame[s->nr_frames].sp = sp;
	s->frame[s->nr_frames++].addr = addr;
}

static const struct trace_place *place_of(const struct sampler *s, u64 addr)
{
	for (u32 i = 0; i < s->nr_places; i++)
		if (s->places[i] == addr)
			return &s->place[i];
	return NULL;
}

static void returned(struct thread *t, u64 pc)
{
	struct sampler *s = sampler_of(t);
	u64 sp = regs_sp(&t->dbt.regs) - sizeof(u64);

	drop_frames(s, sp);
	while (s->nr_frames && s->frame[s->nr_frames - 1].sp == sp &&
	       s->frame[s->nr_frames - 1].ret == pc) {
		const struct trace_place *place = place_of(s, s->frame[--s->nr_frames].addr);

		if (place)
			hit_returned(t, place);
	}
}

bool places_keep(struct thread *t, u64 addr)
{
	u32 i, before;

	lock_acquire(&shared.lock, t->id, thread_gone);
	i = position(addr);
	before = shared.nr;
	if ((i < before && shared.addr[i] == addr) || add(addr)) {
		if (shared.nr > before) {
			shared.users[i] = 0;
			dbt_add_place(&t->dbt, addr);
		}
		shared.users[i] |= KEPT;
	}
	lock_release(&shared.lock, t->id);
	return i < shared.nr && shared.addr[i] == addr;
}

/* Of an array that another thread was about to change, what is there is sorted all the same. */
void places_forked(struct thread *t)
{
	u32 kept = 0;

	lock_reset(&shared.lock);
	if (!shared.nr)
		return;
	for (u32 i = 0; i < shared.nr; i++) {
		if (!(shared.users[i] & KEPT))
			continue;
		shared.addr[kept] = shared.addr[i];
		shared.users[kept++] = KEPT;
	}
	shared.nr = kept;
	dbt_set_places(&t->dbt, shared.addr, shared.nr);
}

static void tell_place(struct thread *t, const struct sampler *s, u64 pc)
{
	const struct trace_place *place;

	returned(t, pc);
	place = place_of(s, pc);
	if (!place)
		return;
	if (place->kinds & TRACE_PLACE_EXECUTED)
		hit_executed(t, place);
	if (place->kinds & TRACE_PLACE_RETURN)
		called(t, pc);
}

void place_hit(struct dbt_thread *dbt)
{
	struct thread *t = (struct thread *)dbt;
	const struct sampler *s = sampler_of(t);
	u64 pc = regs_pc(&t->dbt.regs);

	if (unlikely(alloc_sites_wanted()))
		alloc_sites_place(t, pc);
	if (s)
		tell_place(t, s, pc);
	if (unlikely(t->debug.execution))
		debug_place(t, pc);
}
