#include "session/task/allowance.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHARE          3u           /* times as many descriptors as are left */
#define FREE_TO_ALL    64u          /* nobody is told that he has many below this */
#define MEMORY_FOR_ALL (1ull << 20) /* bytes, likewise */

struct allowance {
	u32 refs;
	u32 held;   /* descriptors */
	u64 memory; /* bytes */
};

static struct allowance *made(struct allowance **of)
{
	if (!*of) {
		*of = calloc(1, sizeof(**of));
		if (*of)
			(*of)->refs = 1;
	}
	return *of;
}

static u32 limit_of_all(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 0x7fffffff)
		return 0x7fffffff;
	return (u32)limit.rlim_cur;
}

/*
 * The kernel gives the lowest number that is free, so about as many as that are in use. One guest
 * alone can have three quarters of them, each of two three sevenths, and some are left whoever
 * comes.
 */
int allowance_take(struct allowance **of, struct allowance **taken, u32 n, int fd, u32 *held,
		   u32 *left)
{
	struct allowance *a = made(of);
	u32 limit = limit_of_all();

	if (!a)
		return -ENOMEM;
	*held = a->held;
	*left = (u32)fd < limit ? limit - (u32)fd : 0;
	if (a->held + n > FREE_TO_ALL && a->held + n > (u64)SHARE * *left)
		return -EMFILE;
	a->held += n;
	a->refs++;
	*taken = a;
	return 0;
}

void allowance_give(struct allowance **taken, u32 n)
{
	struct allowance *a = *taken;

	if (!a)
		return;
	*taken = NULL;
	a->held -= n;
	allowance_put(a);
}

/* A quarter of the machine's, and half of what the session itself may have: it has other needs. */
void allowance_pool_init(struct allowance_pool *pool)
{
	u64 machine = (u64)sysconf(_SC_PHYS_PAGES) * (u64)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	*pool = (struct allowance_pool){.limit = machine / 4};
	if (!getrlimit(RLIMIT_DATA, &limit) && limit.rlim_cur / 2 < pool->limit)
		pool->limit = limit.rlim_cur / 2;
}

int allowance_take_memory(struct allowance_pool *pool, struct allowance **of,
			  struct allowance_memory *taken, u64 bytes, u64 *held, u64 *left)
{
	struct allowance *a = made(of);

	*held = *left = 0;
	if (!a)
		return -ENOMEM;
	*held = a->memory;
	*left = pool->held < pool->limit ? pool->limit - pool->held : 0;
	if (a->memory + bytes > MEMORY_FOR_ALL && a->memory + bytes > *left)
		return -ENOMEM;
	a->memory += bytes;
	a->refs++;
	pool->held += bytes;
	*taken = (struct allowance_memory){.by = a, .bytes = bytes};
	return 0;
}

void allowance_give_memory(struct allowance_pool *pool, struct allowance_memory *taken)
{
	struct allowance *a = taken->by;

	if (!a)
		return;
	a->memory -= taken->bytes;
	pool->held -= taken->bytes;
	*taken = (struct allowance_memory){0};
	allowance_put(a);
}

void allowance_put(struct allowance *of)
{
	if (of && !--of->refs)
		free(of);
}
