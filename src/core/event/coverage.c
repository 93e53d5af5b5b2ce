/*
 * Counts that are estimated. What was seen of a program may stand for more or less than the program
 * has executed, by chance, and all that is counted of it with that. So what is told is
 *
 *	count * executed / covered
 *
 * over all that an event has counted, its copies included: a quotient of sums, as those who count
 * little say little of the proportion.
 */
#include "core/core-priv.h"

static void add(struct coverage *sum, const struct coverage *c)
{
	sum->executed += c->executed;
	sum->covered += c->covered;
}

void event_covered(struct event *event, struct coverage now)
{
	event->coverage.executed += now.executed - event->hw.measured.executed;
	event->coverage.covered += now.covered - event->hw.measured.covered;
	event->hw.measured = now;
}

void coverage_fold(struct event *child)
{
	add(&child->parent->child_coverage, &child->coverage);
}

/*
 * Who looks when next to nothing has been seen is not told much: it stays, as no count goes back.
 */
#define TIMES_MOST 8u

static u64 in_proportion(u64 count, const struct coverage *all)
{
	if (all->executed / all->covered >= TIMES_MOST)
		return count * TIMES_MOST;
	return (u64)((unsigned __int128)count * all->executed / all->covered);
}

u64 coverage_told(struct event *original, u64 count)
{
	struct coverage all = original->coverage;
	struct pmu *pmu = original->pmu;
	struct event *child;

	if (!original->hw.measure.covered || event_is_sampling(original))
		return count;
	add(&all, &original->child_coverage);
	list_for_each_entry (child, &original->children, child_link)
		add(&all, &child->coverage);
	/*
	 * While all is seen what is missing has just not been told yet. A difference of counters
	 * may be less than nothing for a moment.
	 */
	if (pmu->estimates(pmu) && all.covered && (s64)count > 0)
		count = in_proportion(count, &all);
	if ((s64)count > original->told_most)
		original->told_most = (s64)count;
	return (u64)original->told_most;
}
