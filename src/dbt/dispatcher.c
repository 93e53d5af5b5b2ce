/* dbt_run(): finds or makes the block to go on with, enters the cache, and sees why it was left. */
#include "dbt/arch-priv.h"

/* What is known of an exit when the thread has left the cache, where a flush may free the exit. */
struct taken_exit {
	struct dbt_exit *exit; /* NULL if the guest pc came from outside */
	u32 epoch;
	enum exit_kind kind;
	u32 form; /* of its block */
};

/* What becomes of an attempt to enter the cache. */
enum entering {
	ENTERED,
	ENTER_NO_EXEC, /* nothing is executable there */
	ENTER_DUE,     /* a deadline has been reached */
};

/* Does what has to be done before the thread may use the cache. With the lock. */
static void catch_up(struct dbt_thread *t)
{
	/* Each time costs as much as there are blocks: when a sixteenth of them is new. */
	if (cache.flags & DBT_CHECKS && cache.nr_blocks >= cache.verify_at) {
		cache_verify(t);
		cache.verify_at = cache.nr_blocks + cache.nr_blocks / 16 + 1;
	}
	if (!cache_has_room())
		flush_all(t->id);
	branch_rings_catch_up(t);
	path_trace_begin(t);
	if (t->epoch != cache.epoch) {
		thread_tables_clear(t);
		t->epoch = cache.epoch;
		deadline_no_resume(t);
		t->deadline.state = DEADLINE_STALE;
		/* Other code may have counted since, which knows no grants. */
		t->deadline.at_rest = false;
	}
	thread_ring_fit(t, guest_sp(t));
}

static struct dbt_block *block_for(u64 pc, enum exit_kind why, u32 form, struct dbt_exit *from,
				   u64 *fault)
{
	struct dbt_block *b = block_find(pc, form);

	if (b && b->flags & BLOCK_CHECKED && !arch_block_current(b)) {
		block_kill(b);
		b = NULL;
	}
	return b ? b : arch_translate(pc, why, form, from, fault);
}

struct dbt_entry *entry_known(u64 pc, u32 form)
{
	struct dbt_entry *e = entry_find(TABLE_JUMP, pc, form);

	if (e)
		return e;
	e = entry_find(TABLE_RET, pc, form);
	return e ? arch_return_entry(e) : NULL;
}

/*
 * Finds where to enter the cache for the guest's pc, and shortens the way for the next time: links
 * the exit that was taken, or fills the thread's table if a lookup had missed. With the lock.
 */
static enum entering prepare_entry(struct dbt_thread *t, const struct taken_exit *taken)
{
	u64 pc = guest_pc(t);
	struct dbt_block *b;
	struct dbt_entry *e = NULL;
	struct dbt_exit *exit;
	u32 form = 0, special, before, hot;

	catch_up(t);
	if (cache_has_deadlines()) {
		if (!deadline_settle(t))
			return ENTER_DUE;
		if (t->deadline.resuming) {
			t->enter_pc = code_addr(t->deadline.resume_code);
			return ENTERED;
		}
		form = t->deadline.state == DEADLINE_EXACT ? BLOCK_EXACT : 0;
	}
	form = place_form(t, form) | form_of_thread(t);
	special = form & ~BLOCK_PLAIN;
	exit = taken->epoch == cache.epoch ? taken->exit : NULL;
	hot = cache.hot;
	if (taken->kind == EXIT_MISS && !special && (e = entry_known(pc, form)) != NULL) {
		if (unlikely(cache.telling) && cache.hot != hot)
			relatives_tell(pc, entry_block(e)->flags, EXIT_MISS);
		entry_missed(e);
		thread_table_fill(t, e);
		t->jump_pc = code_addr(e->code + e->resume);
		t->enter_pc = code_addr(cache.enter_code);
		return ENTERED;
	}
	if (exit && (!exit->patch || taken->form != form))
		exit = NULL;
	before = cache.nr_blocks;
	b = block_for(pc, taken->kind, form, exit, &t->stop_addr);
	if (!b)
		return ENTER_NO_EXEC;
	if (unlikely(cache.telling) && (cache.nr_blocks != before || taken->kind == EXIT_MISS))
		relatives_tell(pc, b->flags, taken->kind);
	if (b->flags & BLOCK_DEAD) {
		/* It is for this time only. */
		t->enter_pc = code_addr(b->code);
		return ENTERED;
	}
	if (exit)
		exit_link(exit, b);
	if (taken->kind == EXIT_MISS && !special) {
		e = arch_entry(b);
		if (e)
			thread_table_fill(t, e);
	}
	t->enter_pc = code_addr(b->code);
	return ENTERED;
}

/* The exit that dbt_exit() left by; t->in_cache is still set, so it is still there. */
static struct dbt_exit *find_taken_exit(struct dbt_thread *t)
{
	if (t->exit_id == EXIT_ID_MISS)
		return &cache.miss;
	return meta_at((meta_ref)t->exit_id);
}

static enum dbt_stop stop_of(struct dbt_thread *t, const struct dbt_exit *x)
{
	t->stop_len = x->len;
	t->stop_reg = x->reg;
	t->stop_size = x->size;
	arch_stopped(t, x->stop);
	return (enum dbt_stop)x->stop;
}

static void leave_cache(struct dbt_thread *t)
{
	__atomic_store_n(&t->in_cache, 0, __ATOMIC_SEQ_CST);
}

/*
 * Out of the cache by @x, which is a copy: does what the exit is for. DBT_INTERRUPTED: that is
 * done, go on; else why dbt_run() comes back.
 */
static enum dbt_stop serve_exit(struct dbt_thread *t, const struct dbt_exit *x)
{
	if (x->kind == EXIT_MEND) {
		arch_mend(t, guest_pc(t) - x->len);
		return DBT_INTERRUPTED;
	}
	/* dbt_retire(), or arch_emulate(), says whether there is something to report. */
	t->traced = TRACE_NONE;
	return x->kind == EXIT_EMULATE ? arch_emulate(t) : stop_of(t, x);
}

/*
 * A handler has taken the thread out of the cache (redirect() in recover.c), t->regs being exact.
 * Whether it is to go on by itself.
 */
static bool was_handed_back(struct dbt_thread *t)
{
	bool resume = t->handed == DBT_HANDED_RESUME;

	leave_cache(t);
	t->handed = 0;
	if (!resume)
		__atomic_store_n(&t->interrupt, 0, __ATOMIC_SEQ_CST);
	return resume;
}

/* Enters the cache at the guest's pc, if that is possible. *@how it was left by dbt_enter(). */
static enum entering enter_cache(struct dbt_thread *t, const struct taken_exit *taken, int *how)
{
	enum entering e;

	cache_lock(t);
	e = prepare_entry(t, taken);
	if (e != ENTERED) {
		cache_unlock(t);
		return e;
	}
	/* Under the lock, so that a flush either waits for us or has been done. */
	__atomic_store_n(&t->in_cache, 1, __ATOMIC_SEQ_CST);
	cache_unlock(t);
	*how = dbt_enter(t);
	return ENTERED;
}

bool dbt_take_trace(struct dbt_thread *t)
{
	if (likely(t->traced != TRACE_LEFT))
		return false;
	t->traced = TRACE_NONE;
	return true;
}

enum dbt_stop dbt_run(struct dbt_thread *t)
{
	struct taken_exit taken = {.kind = EXIT_JUMP};

	t->filter.is_stale = true;
	for (;;) {
		struct dbt_exit *x, copy;
		enum dbt_stop stop;
		enum entering entering;
		u32 form;
		int how;

		if (unlikely(cache_has_deadlines()))
			deadline_tell(t);
		/* A signal's handler, which may have begun meanwhile, is not stepped. */
		if (dbt_take_trace(t) && guest_is_traced(t)) {
			deadline_no_resume(t);
			return DBT_TRACED;
		}
		if (__atomic_load_n(&t->interrupt, __ATOMIC_SEQ_CST)) {
			__atomic_store_n(&t->interrupt, 0, __ATOMIC_SEQ_CST);
			deadline_no_resume(t);
			return DBT_INTERRUPTED;
		}
		t->traced = guest_is_traced(t) ? TRACE_ENTERING : TRACE_NONE;
		entering = enter_cache(t, &taken, &how);
		if (entering == ENTER_NO_EXEC)
			return DBT_NO_EXEC;
		if (entering == ENTER_DUE)
			continue;
		if (how) {
			t->filter.is_stale = true;
			place_left(t);
			deadline_no_resume(t);
			t->deadline.state = DEADLINE_STALE;
			if (!was_handed_back(t))
				return DBT_INTERRUPTED;
			taken = (struct taken_exit){.kind = EXIT_JUMP};
			continue;
		}
		if (unlikely(t->traced >= TRACE_LEFT))
			guest_set_traced(t);
		if (unlikely(t->exit_id >= EXIT_ID_POOL)) {
			deadline_left(t);
			place_left(t);
			leave_cache(t);
			taken = (struct taken_exit){.kind = EXIT_JUMP};
			continue;
		}
		t->pass_pc = 0;
		x = find_taken_exit(t);
		copy = *x;
		guest_set_pc(t, copy.kind == EXIT_MISS ? t->miss_pc : copy.target);
		form = cache_has_deadlines() && t->deadline.state == DEADLINE_EXACT ? BLOCK_EXACT
										    : 0;
		taken = (struct taken_exit){.exit = copy.kind == EXIT_JUMP ? x : NULL,
					    .epoch = t->epoch,
					    .kind = copy.kind == EXIT_MISS ? EXIT_MISS : EXIT_JUMP,
					    .form = form | form_of_thread(t)};
		leave_cache(t);
		if (copy.kind == EXIT_JUMP || copy.kind == EXIT_MISS)
			continue;
		t->filter.is_stale = true;
		if (form)
			t->deadline.state = DEADLINE_STALE;
		if (copy.kind == EXIT_STOP && copy.stop == DBT_PLACE) {
			place_reached(t);
			continue;
		}
		stop = serve_exit(t, &copy);
		if (stop != DBT_INTERRUPTED) {
			if (form)
				deadline_tell(t);
			return stop;
		}
	}
}

void dbt_retire(struct dbt_thread *t)
{
	deadline_retired(t, guest_pc(t));
	path_retired(t, guest_pc(t), 1);
	guest_set_pc(t, guest_pc(t) + t->stop_len);
	if (guest_is_traced(t))
		t->traced = TRACE_LEFT;
	if (cache.mask & DBT_MASK_COUNT) {
		meter_unpark(dbt_meter(t));
		dbt_meter(t)->count[0][METER_INSTRUCTIONS]++;
	}
}

void dbt_interrupt(struct dbt_thread *t)
{
	__atomic_store_n(&t->interrupt, 1, __ATOMIC_SEQ_CST);
}
