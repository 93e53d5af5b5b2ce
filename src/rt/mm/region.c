#include "rt/mm/region.h"

#include "rt/mm/mm.h"
#include "rt/task/limits.h"
#include "sys/kernel.h"

#include <linux/random.h>

/* A part of the region, of which @next is given out next. */
struct part {
	u64 start, end, next;
};

static struct part areas = {REGION_AREAS, REGION_OWN, REGION_AREAS};
static struct part own = {REGION_OWN, REGION_CODE, REGION_OWN};
static u64 tables = REGION_TABLES, code_write = REGION_CODE;

u64 region_code_start, region_code_end;

bool region_first(u64 start, u64 end, u64 *ours, u64 *ours_end)
{
	bool region = start < REGION_END && end > REGION_START;
	bool code = start < region_code_end && end > region_code_start;

	if (code && (!region || region_code_start < REGION_START)) {
		*ours = region_code_start;
		*ours_end = region_code_end;
		return true;
	}
	*ours = REGION_START;
	*ours_end = REGION_END;
	return region;
}

#define PIECE 0x10000ul

/* So many pieces may each be moved up and still have more room above than they need. */
#define TABLES_STEPS BIT(20)
#define AREAS_STEPS  BIT(22)
#define OWN_STEPS    BIT(21)
#define CODE_STEPS   BIT(22)

_Static_assert(REGION_TABLES + TABLES_STEPS * PIECE < REGION_AREAS - (1ul << 35),
	       "32 GB of tables");
_Static_assert(REGION_AREAS + AREAS_STEPS * PIECE < REGION_OWN - (1ul << 36), "64 GB for threads");
_Static_assert(REGION_OWN + OWN_STEPS * PIECE < REGION_CODE - (1ul << 35), "32 GB of our own");
_Static_assert(REGION_CODE + CODE_STEPS * PIECE < REGION_END - (1ul << 32), "4 GB of code");

void region_randomize(void)
{
	u64 drawn[4];

	if (raw_call3(__NR_getrandom, (long)drawn, sizeof(drawn), GRND_NONBLOCK) != sizeof(drawn))
		return;
	tables = REGION_TABLES + drawn[0] % TABLES_STEPS * PIECE;
	areas.next = REGION_AREAS + drawn[3] % AREAS_STEPS * PIECE;
	own.next = REGION_OWN + drawn[1] % OWN_STEPS * PIECE;
	code_write = REGION_CODE + drawn[2] % CODE_STEPS * PIECE;
}

void region_tables_at(u64 step)
{
	tables = REGION_TABLES + step % TABLES_STEPS * PIECE;
}

u64 region_tables(void)
{
	return tables;
}

u64 region_code_write(void)
{
	return code_write;
}

/* A mapping that fails when the guest has all that it may have is made all the same. */
static long insist(u64 at, u64 len, int prot, int flags, int fd, u64 offset)
{
	long ret = sys_mmap((void *)at, len, prot, flags, fd, offset);

	if (likely(ret != -ENOMEM && ret != -EAGAIN) || !limits_give_way())
		return ret;
	ret = sys_mmap((void *)at, len, prot, flags, fd, offset);
	limits_ours(0, 0);
	return ret;
}

long region_map_at(u64 at, u64 len, int prot, int flags, int fd, u64 offset)
{
	return insist(at, len, prot, flags, fd, offset);
}

static void *map(struct part *part, u64 room, u64 len, int prot, int flags, int fd, u64 offset)
{
	/* Whatever still lives is skipped with EEXIST, a second time round included. */
	for (u32 tries = 0; tries < 100000; tries++) {
		u64 at = __atomic_fetch_add(&part->next, room, __ATOMIC_RELAXED);
		long ret;

		/* Areas, of which not all is mapped, lie where others have lain. */
		if (at + room > part->end) {
			__atomic_store_n(&part->next, part->start + (at - part->start) % room,
					 __ATOMIC_RELAXED);
			continue;
		}
		ret = insist(at, len, prot, flags | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd,
			     offset);
		if (ret == (long)at)
			return (void *)at;
		if (ret != -EEXIST)
			return NULL;
	}
	return NULL;
}

static void *map_zeroed(struct part *part, u64 len, u64 room)
{
	void *at;

	len = ALIGN_UP(len, PAGE_SIZE);
	limits_ours((s64)len, (s64)len);
	at = map(part, ALIGN_UP(room, PIECE), len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!at)
		limits_ours(-(s64)len, -(s64)len);
	return at;
}

void *region_map(u64 len)
{
	return map_zeroed(&own, len, len);
}

void *region_map_area(u64 len, u64 room)
{
	return map_zeroed(&areas, len, room);
}

void region_unmap(void *at, u64 len)
{
	len = ALIGN_UP(len, PAGE_SIZE);
	sys_munmap(at, len);
	limits_ours(-(s64)len, -(s64)len);
}

void *region_map_file(u64 len, int fd, u64 offset)
{
	void *at;

	len = ALIGN_UP(len, PAGE_SIZE);
	limits_ours((s64)len, 0);
	at = fd < 0 ? map(&own, ALIGN_UP(len, PIECE), len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0)
		    : map(&own, ALIGN_UP(len, PIECE), len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  offset);
	if (!at)
		limits_ours(-(s64)len, 0);
	return at;
}

void *region_map_shared(u64 len)
{
	void *at;

	len = ALIGN_UP(len, PAGE_SIZE);
	limits_ours((s64)len, 0);
	at = map(&own, ALIGN_UP(len, PIECE), len, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!at)
		limits_ours(-(s64)len, 0);
	return at;
}

void region_unmap_file(void *at, u64 len)
{
	len = ALIGN_UP(len, PAGE_SIZE);
	sys_munmap(at, len);
	limits_ours(-(s64)len, 0);
}

long region_map_tables(u64 at, u64 len)
{
	long ret;

	limits_ours((s64)len, (s64)len);
	ret = insist(at, len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (ret != (long)at)
		limits_ours(-(s64)len, -(s64)len);
	return ret;
}

void region_takes(s64 bytes)
{
	limits_ours(bytes, 0);
}

extern char image_start[], image_data[], image_late[], image_end[], start_stack_top[];

#define AROUND 0x10000ul /* what the kernel maps of a file at a fault, if it has it in memory */

/*
 * One page of each 64 KB is asked for, since the others come with it: to look each of them up takes
 * the kernel longer than to map them.
 */
void region_populate_file(u64 at, u64 len)
{
	for (u64 p = at; p < at + len; p = ALIGN_DOWN(p, AROUND) + AROUND)
		sys_madvise((void *)p, PAGE_SIZE, MADV_POPULATE_READ);
}

void image_populate(void)
{
	const u64 image = (u64)image_start, data = (u64)image_data, top = (u64)start_stack_top;
	const u64 late = (u64)image_late, needed = 0x4000;

	region_populate_file(image, data - image);
	sys_madvise((void *)data, late - data, MADV_POPULATE_WRITE);
	sys_madvise((void *)(top - needed), needed, MADV_POPULATE_WRITE);
}

void region_count_image(void)
{
	limits_ours((u64)image_end - (u64)image_start, (u64)image_end - (u64)image_data);
}
