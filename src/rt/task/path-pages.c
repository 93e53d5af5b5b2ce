#include "rt/task/path-pages.h"

#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "rt/task/path-stream.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"
#include "sys/string.h"

static struct path_space *space;
static bool space_shared;
static u32 space_index;

bool paths_wanted(void)
{
	return run_config()->flags & SEGMENT_EXACT;
}

u64 paths_mask(void)
{
	return DBT_MASK_ALL | traces_mask() | windows_mask() |
	       (paths_wanted() ? DBT_MASK_PATHS : 0);
}

/* The next index of *@last; @most: there is none. */
static u32 take(u32 *last, u32 most)
{
	u32 index = __atomic_fetch_add(last, 1, __ATOMIC_RELAXED);

	if (index < most)
		return index;
	__atomic_store_n(last, most, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counter_segment()->path_lost, 1, __ATOMIC_RELAXED);
	return most;
}

u32 paths_take_thread(void)
{
	return take(&counter_segment()->path_threads, PATH_THREADS);
}

u32 paths_space_index(void)
{
	return space_index;
}

int paths_map(struct thread *t)
{
	u32 index = paths_take_thread();
	u64 at = t->area + AREA_PATHS_AT;
	long ret;

	/* Without a place in the segment nobody reads its words; a forked one has its parent's. */
	if (index == PATH_THREADS)
		ret = region_map_at(at, DBT_PATHS_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		ret = region_map_at(at, DBT_PATHS_SIZE, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, fd_get(FD_SEGMENT),
				    path_thread_offset(index));
	return ret == (long)at ? 0 : (int)ret;
}

static void unmap_space(void)
{
	if (space_shared)
		region_unmap_file(space, sizeof(*space));
	else
		region_unmap(space, sizeof(*space));
}

/*
 * Who uses traces looks up what he is told in the space that is in force, whoever described it. A
 * shared one may have been written to by anybody.
 */
static void copy_descriptions(struct path_space *to, const struct path_space *from)
{
	u32 paths = __atomic_load_n(&from->paths, __ATOMIC_RELAXED);
	u32 logged = __atomic_load_n(&from->logged, __ATOMIC_RELAXED);

	memcpy(to->path, from->path, min_u64(paths, PATH_WORDS) * sizeof(from->path[0]));
	memcpy(to->log, from->log, min_u64(logged, PATH_LOG));
}

void paths_new_space(struct thread *t)
{
	/* Nobody else reads descriptions of what has no words. */
	u32 index = paths_wanted() || streams_wanted()
			    ? take(&counter_segment()->path_spaces, PATH_SPACES)
			    : PATH_SPACES;
	bool shared = index < PATH_SPACES;
	struct path_space *new = shared ? region_map_file(sizeof(*new), fd_get(FD_SEGMENT),
							  path_space_offset(index))
					: region_map(sizeof(*new));

	if (!new)
		die("no memory to describe what is counted; raise the limit of addresses "
		    "(ulimit -v)\n");
	new->parent = space ? space_index + 1 : 0;
	new->run = meter_run();
	if (space && traces_mask())
		copy_descriptions(new, space);
	dbt_paths(&t->dbt, new);
	if (space)
		unmap_space();
	space = new;
	space_shared = shared;
	space_index = index;
}

void paths_need_space(struct thread *t)
{
	if (!space)
		paths_new_space(t);
}

void paths_mark(void)
{
	u32 n, logged;

	if (!space)
		return;
	n = space->marks;
	logged = __atomic_load_n(&space->logged, __ATOMIC_RELAXED);
	/* Of several with nothing in between the last one says it. */
	if (n && n <= PATH_MARKS && space->mark[n - 1].logged == logged)
		n--;
	if (n < PATH_MARKS)
		space->mark[n] = (struct path_mark){.time = sys_clock(CLOCK_MONOTONIC),
						    .logged = logged};
	__atomic_store_n(&space->marks, n <= PATH_MARKS ? n + 1 : n, __ATOMIC_RELEASE);
}

const struct path_space *paths_space(void)
{
	return space;
}

void paths_begin(struct thread *t)
{
	struct path_thread *p = (struct path_thread *)(t->area + AREA_PATHS_AT);

	if (!paths_wanted())
		return;
	p->space = space_index;
	p->run = meter_run();
	perf_ids(t, &p->pid, &p->tid);
	p->start = sys_clock(CLOCK_MONOTONIC);
	__atomic_store_n(&p->magic, PATH_MAGIC, __ATOMIC_RELEASE);
}
