#include "rt/task/modeled-tally.h"

#include "model/feed-tally.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/syscall/fd.h"
#include "rt/task/alloc-sites.h"
#include "rt/task/meter-page.h"
#include "rt/task/path-pages.h"
#include "rt/task/path-stream.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"

#define LISTED 4096u /* what is handed out at once */

struct thread_tally {
	struct feed_tally tally;
	struct feed_watching watching; /* of a thread that is not sampled */
	struct thread *thread;
	struct path_event list[]; /* LISTED, if what is executed is handed out */
};

bool modeled_tally_wanted(void)
{
	return run_config()->nr_profiled && (paths_wanted() || streams_wanted());
}

/* How much of it is used depends on whether there is a list. */
static u64 size_of_tally(void)
{
	return sizeof(struct thread_tally) +
	       (streams_wanted() ? LISTED * sizeof(struct path_event) : 0);
}

/* Without a place in the segment nobody reads it, and there is none. */
static struct modeled_profile *map(void)
{
	u32 *last = &counter_segment()->modeled_profiles;
	u32 index = __atomic_fetch_add(last, 1, __ATOMIC_RELAXED);
	struct modeled_profile *p;

	p = index < MODELED_PROFILES
		    ? region_map_file(sizeof(*p), fd_get(FD_SEGMENT), modeled_profile_offset(index))
		    : NULL;
	if (index >= MODELED_PROFILES)
		__atomic_store_n(last, MODELED_PROFILES, __ATOMIC_RELAXED);
	if (!p)
		__atomic_fetch_add(&counter_segment()->path_lost, 1, __ATOMIC_RELAXED);
	return p;
}

static void begin(struct thread *t, struct modeled_profile *p)
{
	p->space = paths_space_index();
	p->run = meter_run();
	perf_ids(t, &p->pid, &p->tid);
	p->start = sys_clock(CLOCK_MONOTONIC);
	p->stack = regs_sp(&t->dbt.regs);
	__atomic_store_n(&p->magic, MODELED_PROFILE_MAGIC, __ATOMIC_RELEASE);
}

static void hand_out(struct feed_tally *tally)
{
	struct thread_tally *own = container_of(tally, struct thread_tally, tally);

	stream_events(own->thread, tally->list, tally->nr_list);
	tally->nr_list = 0;
}

static struct thread_tally *make(struct thread *t)
{
	const struct run_config *run = run_config();
	struct thread_tally *own = region_map(size_of_tally());

	if (!own)
		die("no memory to attribute modeled events; raise the limit of addresses "
		    "(ulimit -v)\n");
	own->thread = t;
	if (streams_wanted()) {
		own->tally.list = own->list;
		own->tally.list_room = LISTED;
		own->tally.full = hand_out;
		stream_say_stack(t);
	} else {
		own->tally.to = map();
	}
	own->tally.data = run->flags & SEGMENT_DATA;
	own->tally.site_of = alloc_sites_wanted() ? alloc_site_of : NULL;
	for (u32 i = 0; i < run->nr_profiled && i < PROFILED_EVENTS; i++)
		if (run->profiled[i] < MODEL_COUNTERS)
			own->tally.counter[own->tally.nr++] = run->profiled[i];
	if (own->tally.to)
		begin(t, own->tally.to);
	return own;
}

struct feed_watching *modeled_tally_watch(struct thread *t, struct feed_watching *sampled,
					  const struct model_core *core)
{
	struct feed_watching *w = sampled;

	if (!modeled_tally_wanted())
		return w;
	if (!t->modeled.tally)
		t->modeled.tally = make(t);
	if (!t->modeled.tally->tally.to && !t->modeled.tally->tally.list)
		return w;
	w = w ? w : &t->modeled.tally->watching;
	w->tally = &t->modeled.tally->tally;
	feed_tally_begin(w->tally, core);
	return w;
}

u32 modeled_tally_take(struct thread *t, const struct path_event **list)
{
	struct feed_tally *tally = t->modeled.tally ? &t->modeled.tally->tally : NULL;
	u32 n = tally ? tally->nr_list : 0;

	if (tally) {
		*list = tally->list;
		tally->nr_list = tally->told = 0;
	}
	return n;
}

void modeled_tally_leave(struct thread *t)
{
	struct thread_tally *own = t->modeled.tally;

	t->modeled.tally = NULL;
	if (!own)
		return;
	if (own->tally.to)
		region_unmap_file(own->tally.to, sizeof(*own->tally.to));
	region_unmap(own, size_of_tally());
}
