#include "rt/task/windows.h"

#include "abi/modeled.h"
#include "model/model.h"
#include "rt/sample/modeled-samples.h"
#include "rt/sample/sample.h"
#include "rt/task/meter-page.h"
#include "rt/task/path-pages.h"
#include "rt/task/path-stream.h"
#include "rt/task/simulate.h"
#include "rt/task/traces.h"
#include "rt/task/windows-draw.h"

/* A shorter gap is not worth the edges. */
#define GAP_MIN 20000u

enum windows_phase {
	WINDOWS_NONE,     /* all is seen and counts once */
	WINDOWS_COMPLETE, /* the same, for a while */
	WINDOWS_GAP,
	WINDOWS_EARLY, /* predictors warm up */
	WINDOWS_WARM,  /* all does */
	WINDOWS_MEASURED,
};

u32 windows_turn;

/* What the model sees of the process. */
static enum {
	SEES_ALL,
	SEES_WINDOWS,
	SEES_NOTHING,
} sees;
static bool used;        /* it was not always all */
static bool predicts;    /* there are predictors, in a half or a model of their own */
static bool sampled;     /* a process that is not seen would have no samples */
static bool passed_over; /* of the beginning of its threads nothing is seen */
/*
 * And none has got behind that: there is no model yet, and code is translated as for counting
 * alone, so that it may come from an image.
 */
static bool off;

/* With windows of a given length all processes have the same. */
static bool is_passed_over(const struct model_place *place)
{
	return windows_possible() && !run_config()->window_every && !sampled && place->unseen;
}

void windows_start(const struct model_place *place)
{
	passed_over = off = is_passed_over(place);
}

bool windows_pass_over(const struct model_place *place)
{
	return sees == SEES_WINDOWS && is_passed_over(place);
}

void windows_forked(struct thread *t, bool modeled)
{
	passed_over = is_passed_over(&t->proc->place);
	off |= !modeled && sees == SEES_WINDOWS;
	t->windows.turn = 0;
	t->windows.begun = 0;
	t->windows.nth = 0;
}

bool windows_put_off(void)
{
	return off && sees != SEES_ALL;
}

bool windows_possible(void)
{
	return run_config()->window && !paths_wanted() && !streams_wanted();
}

void windows_anew(void)
{
	if (used)
		__atomic_store_n(&windows_turn, windows_turn + 1, __ATOMIC_RELEASE);
}

bool windows_decide(u32 parts, bool all, bool samples)
{
	u32 before = sees;
	bool first;

	sampled = samples;
	if (sampled)
		passed_over = off = false;
	if (!windows_possible() || (parts && (all || parts & MODEL_FLOATS)))
		sees = SEES_ALL;
	else
		sees = parts ? SEES_WINDOWS : SEES_NOTHING;
	/* Who samples has the model in one piece, which cannot learn of branches alone. */
	predicts = parts & MODEL_BRANCHES && !(sampled && parts & (MODEL_CACHES | MODEL_TLBS));
	first = !used && sees != SEES_ALL;
	used |= first;
	if (sees != before)
		windows_anew();
	return first;
}

u64 windows_mask(void)
{
	u64 mask = DBT_MASK_DEADLINES(METER_INSTRUCTIONS);

	if (!used)
		return 0;
	return traces_mask() ? mask | DBT_MASK_WINDOWS : mask;
}

static void say_estimated(void)
{
	u32 *lacks = segment_model_lacks(counter_segment());

	if (!(__atomic_load_n(lacks, __ATOMIC_RELAXED) & MODEL_ESTIMATED))
		__atomic_or_fetch(lacks, MODEL_ESTIMATED, __ATOMIC_RELAXED);
}

static void enter(struct thread *t, enum windows_phase phase, u64 length)
{
	t->windows.phase = (u8)phase;
	t->windows.next += length;
	if (phase != WINDOWS_GAP)
		return;
	t->windows.apart = true;
	say_estimated();
}

/* For how many processes of its session @t stands. */
static u32 times_of(const struct thread *t)
{
	return run_config()->window_every || sampled ? 1 : draw_times(&t->proc->place);
}

/* Of many processes each needs few windows, unless its samples are to say where it was. */
static u64 part_of(const struct thread *t)
{
	if (sampled)
		return MODEL_WINDOWS_PART;
	return max_u64(MODEL_WINDOWS_PART / (1 + t->proc->place.behind), MODEL_WINDOWS_FEW);
}

/* So that what is at the beginning is not lost among the rest it begins with short ones. */
static u64 length_of_period(const struct thread *t)
{
	const struct run_config *run = run_config();
	u64 every = run->window_every;

	if (!every)
		every = max_u64(min_u64(t->windows.done / part_of(t),
					sampled ? MODEL_WINDOWS_SAMPLED : WINDOW_MOST),
				MODEL_WINDOWS_LEAST);
	every -= every % run->window;
	return max_u64(every, run->window);
}

/*
 * A period begins, behind the rest of the last one, in which nothing is seen either. Windows lie
 * anywhere in theirs: what the program does again and again does not fall in with them, and where
 * the program ends in a period is what is to be expected.
 */
static void next_period(struct thread *t)
{
	u64 window = run_config()->window, every = length_of_period(t), before;
	u64 warm = min_u64(MODEL_WINDOW_WARM * window, every - window);
	u64 gap = every - window - warm, rest = t->windows.rest, early;

	t->windows.rest = 0;
	t->windows.window = 0;
	/* All processes have these. */
	t->windows.times = 1;
	if (gap < GAP_MIN && rest) {
		enter(t, WINDOWS_GAP, rest);
		return;
	}
	t->windows.done += every;
	if (gap < GAP_MIN) {
		t->windows.weight = 1;
		enter(t, WINDOWS_COMPLETE, every);
		return;
	}
	early = predicts ? min_u64(MODEL_WINDOW_EARLY * window, gap / 2) : 0;
	gap -= early;
	before = draw_number(++t->windows.number, gap);
	t->windows.window = window;
	t->windows.early = early;
	t->windows.warm = warm;
	t->windows.weight_of = (u32)(every / window);
	t->windows.rest = gap - before;
	enter(t, WINDOWS_GAP, rest + before);
}

static void next_phase(struct thread *t)
{
	switch ((enum windows_phase)t->windows.phase) {
	case WINDOWS_GAP:
		if (t->windows.window) {
			t->windows.weight = 0;
			enter(t, WINDOWS_EARLY, t->windows.early);
			return;
		}
		break;
	case WINDOWS_EARLY:
		/* As model_window() wants it. */
		dbt_filter_forget(&t->dbt);
		t->windows.apart = true;
		enter(t, WINDOWS_WARM, t->windows.warm);
		return;
	case WINDOWS_WARM:
		t->windows.weight = t->windows.weight_of;
		enter(t, WINDOWS_MEASURED, t->windows.window);
		return;
	default: break;
	}
	next_period(t);
}

/*
 * Others can write where the sum stands, and so it may be anything: who is further behind than
 * these, which no thread is by itself, goes on where it is.
 */
#define PHASES_MOST 16u

static void trace_as_said(struct thread *t)
{
	bool seen = sees != SEES_NOTHING && t->windows.phase != WINDOWS_GAP;

	/* There is one form of code only as long as nothing can be traced. */
	dbt_trace_on(&t->dbt, seen || !traces_mask());
}

static void pass(struct thread *t, u64 sum)
{
	for (u32 i = 0; (s64)(sum - t->windows.next) >= 0; i++) {
		if (i == PHASES_MOST)
			t->windows.next = sum;
		next_phase(t);
	}
	trace_as_said(t);
	modeled_pace_anew(t);
}

bool windows_early(const struct thread *t)
{
	return t->windows.phase == WINDOWS_EARLY;
}

static void begin_first(struct thread *t, u64 sum)
{
	/* A process that shares the memory of another has a place of its own. */
	bool seen = !is_passed_over(&t->proc->place);

	if (seen && !passed_over && !off) {
		t->windows.times = times_of(t);
		if (t->windows.times > 1)
			say_estimated();
		enter(t, WINDOWS_COMPLETE, MODEL_WINDOWS_FIRST);
		return;
	}
	/* A process of many threads may do all that it does in short ones. */
	if (!t->windows.begun)
		t->windows.begun = sum + (seen && off ? MODEL_WINDOWS_FORKED
						      : MODEL_WINDOWS_FIRST / (1 + t->windows.nth));
	if ((s64)(sum - t->windows.begun) < 0)
		enter(t, WINDOWS_GAP, t->windows.begun - sum);
	else
		next_period(t);
}

/* From here on there is a model, as soon as the thread is out of the translator. */
static void turn_on(struct thread *t)
{
	off = false;
	__atomic_store_n(&simulate_wanted, SIMULATE_ANEW, __ATOMIC_RELEASE);
	dbt_interrupt(&t->dbt);
}

/* It is to be seen as one that is alone, and counts for no others. */
static void be_one(struct thread *t)
{
	struct model_place *place = &t->proc->place;

	place->unseen = place->more = place->behind = 0;
	passed_over = false;
	if (off)
		turn_on(t);
	windows_anew();
}

void windows_begin(struct thread *t)
{
	u64 sum = meter_sum(dbt_meter(&t->dbt), METER_INSTRUCTIONS);

	traces_flush(t);
	if (windows_are_of_one(t))
		be_one(t);
	t->windows.turn = __atomic_load_n(&windows_turn, __ATOMIC_ACQUIRE);
	t->windows.rest = 0;
	t->windows.number = 0;
	t->windows.weight = 1;
	t->windows.done = MODEL_WINDOWS_FIRST;
	t->windows.next = sum;
	t->windows.phase = WINDOWS_NONE;
	t->windows.times = 1;
	t->windows.window = 0;
	t->windows.apart |= sees == SEES_NOTHING;
	if (sees == SEES_WINDOWS)
		begin_first(t, sum);
	trace_as_said(t);
	sample_set_deadlines(t);
}

void windows_reached(struct thread *t)
{
	u64 sum;

	if (!t->windows.phase)
		return;
	sum = dbt_deadline_sum(&t->dbt, METER_INSTRUCTIONS);
	if ((s64)(sum - t->windows.next) < 0)
		return;
	traces_flush(t);
	if (!off) {
		pass(t, sum);
		return;
	}
	t->windows.phase = WINDOWS_NONE;
	turn_on(t);
}
