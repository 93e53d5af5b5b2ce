/* dbt_run(): finds or makes the block to go on with, enters the cache, and sees why it was left. */
#include "dbt/cache-priv.h"

#define NO_EXIT 0xff

/* What must be known of an exit once the thread has left the cache, where a flush may drop it. */
struct taken_exit {
	struct dbt_exit *exit; /* NULL if the guest pc came from outside */
	u32 epoch;
	enum exit_kind kind;
};

/* With the lock: what has to be done before the thread may use the cache. */
static void catch_up(struct dbt_thread *t)
{
	/* Each look costs as much as there are blocks: look when a sixteenth of them is new. */
	if (cache.flags & DBT_CHECKS && cache.nr_blocks >= cache.verify_at) {
		cache_verify(t);
		cache.verify_at = cache.nr_blocks + cache.nr_blocks / 16 + 1;
	}
	if (!cache_has_room())
		flush_all(t->id);
	if (t->epoch != cache.epoch) {
		thread_tables_clear(t);
		t->epoch = cache.epoch;
	}
}

static struct dbt_block *block_for(u64 pc, enum exit_kind why, u64 *fault)
{
	struct dbt_block *b = block_find(pc);

	if (b && b->flags & BLOCK_CHECKED && !arch_block_current(b)) {
		block_kill(b);
		b = NULL;
	}
	return b ? b : arch_translate(pc, why, fault);
}

/* Where a lookup of @pc gets to without a block being made; NULL if there is no such place. */
static struct dbt_entry *known_entry(u64 pc)
{
	struct dbt_entry *e = entry_find(TABLE_JUMP, pc);

	if (e)
		return e;
	e = entry_find(TABLE_RET, pc);
	return e ? arch_return_entry(e) : NULL;
}

/*
 * Finds where to enter the cache for t->regs.rip, with the lock held, and remembers it for the next
 * time: links the exit that was taken, fills the thread's table if that had missed. False if there is
 * nothing executable.
 */
static bool prepare_entry(struct dbt_thread *t, const struct taken_exit *taken)
{
	u64 pc = t->regs.rip;
	struct dbt_block *b;
	struct dbt_entry *e = NULL;
	struct dbt_exit *exit;

	catch_up(t);
	exit = taken->epoch == cache.epoch ? taken->exit : NULL;
	if (taken->kind == EXIT_MISS && (e = known_entry(pc)) != NULL) {
		thread_table_fill(t, e);
		t->jump_pc = code_addr(e->resume);
		t->enter_pc = code_addr(cache.enter_code);
		return true;
	}
	b = block_for(pc, taken->kind, &t->stop_addr);
	if (!b)
		return false;
	if (exit && exit->patch)
		exit_link(exit, b);
	if (taken->kind == EXIT_MISS) {
		e = arch_entry(b);
		if (e)
			thread_table_fill(t, e);
	}
	t->enter_pc = code_addr(b->code);
	return true;
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
	switch (x->kind) {
	case EXIT_SYSCALL:
		t->regs.gpr[DBT_RCX] = t->regs.rip;
		t->regs.gpr[DBT_R11] = t->regs.rflags;
		return DBT_SYSCALL;
	case EXIT_INT80: return DBT_INT80;
	case EXIT_CPUID: return DBT_CPUID;
	case EXIT_RDPMC: return DBT_RDPMC;
	case EXIT_RDTSC: return DBT_RDTSC;
	case EXIT_RDTSCP: return DBT_RDTSCP;
	case EXIT_RDRAND: return DBT_RDRAND;
	default: return DBT_REFUSED;
	}
}

static void leave_cache(struct dbt_thread *t)
{
	__atomic_store_n(&t->in_cache, 0, __ATOMIC_SEQ_CST);
}

enum dbt_stop dbt_run(struct dbt_thread *t)
{
	struct taken_exit taken = {.kind = EXIT_JUMP};

	for (;;) {
		struct dbt_exit *x;
		int how;

		if (unlikely(t->traced == TRACE_LEFT)) {
			t->traced = TRACE_NONE;
			if (t->regs.rflags & FLAG_TF)
				return DBT_TRACED;
		}
		if (__atomic_load_n(&t->interrupt, __ATOMIC_SEQ_CST)) {
			__atomic_store_n(&t->interrupt, 0, __ATOMIC_SEQ_CST);
			return DBT_INTERRUPTED;
		}
		t->traced = t->regs.rflags & FLAG_TF ? TRACE_ENTERING : TRACE_NONE;
		cache_lock(t);
		if (!prepare_entry(t, &taken)) {
			cache_unlock(t);
			return DBT_NO_EXEC;
		}
		/* Under the lock, so that a flush either waits for us or has been done. */
		__atomic_store_n(&t->in_cache, 1, __ATOMIC_SEQ_CST);
		cache_unlock(t);
		how = dbt_enter(t);
		if (how) {
			leave_cache(t);
			taken = (struct taken_exit){.kind = EXIT_JUMP};
			if (t->handed == DBT_HANDED_RESUME) {
				t->handed = 0;
				continue;
			}
			t->handed = 0;
			__atomic_store_n(&t->interrupt, 0, __ATOMIC_SEQ_CST);
			return DBT_INTERRUPTED;
		}
		if (unlikely(t->traced >= TRACE_LEFT))
			t->regs.rflags |= FLAG_TF;
		x = find_taken_exit(t);
		taken = (struct taken_exit){
			.exit = x, .epoch = t->epoch, .kind = (enum exit_kind)x->kind};
		switch (x->kind) {
		case EXIT_MISS:
			t->regs.rip = t->miss_pc;
			taken.exit = NULL;
			leave_cache(t);
			break;
		case EXIT_JUMP:
			t->regs.rip = x->target;
			leave_cache(t);
			break;
		default: {
			struct dbt_exit copy = *x;

			t->regs.rip = x->target;
			leave_cache(t);
			if (copy.kind == EXIT_X87) {
				arch_mend_image(t, t->regs.rip - copy.len);
				taken = (struct taken_exit){.kind = EXIT_JUMP};
				break;
			}
			/* dbt_retire() says whether there is something to report. */
			t->traced = TRACE_NONE;
			if (copy.kind == EXIT_EMULATE) {
				enum dbt_stop stop = arch_emulate(t);

				if (stop != DBT_INTERRUPTED)
					return stop;
				taken = (struct taken_exit){.kind = EXIT_JUMP};
				break;
			}
			return stop_of(t, &copy);
		}
		}
	}
}

void dbt_retire(struct dbt_thread *t)
{
	t->regs.rip += t->stop_len;
	if (t->regs.rflags & FLAG_TF)
		t->traced = TRACE_LEFT;
	if (cache.mask & DBT_MASK_COUNT)
		dbt_meter(t)->count[0][METER_INSTRUCTIONS]++;
}

void dbt_interrupt(struct dbt_thread *t)
{
	__atomic_store_n(&t->interrupt, 1, __ATOMIC_SEQ_CST);
}
