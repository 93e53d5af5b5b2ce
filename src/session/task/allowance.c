#include "session/task/allowance.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#define FREE_TO_ALL 64u /* nobody is told that he has many below this */

struct allowance {
	u32 refs;
	u32 held;
};

static u32 limit_of_all(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 0x7fffffff)
		return 0x7fffffff;
	return (u32)limit.rlim_cur;
}

/*
 * The kernel gives the lowest number that is free, so about as many as that are in use. One guest
 * alone can have half of them, each of two a third, and some are left whoever comes.
 */
int allowance_take(struct allowance **of, struct allowance **taken, u32 n, int fd, u32 *held,
		   u32 *left)
{
	struct allowance *a = *of;
	u32 limit = limit_of_all();

	if (!a) {
		a = *of = calloc(1, sizeof(*a));
		if (!a)
			return -ENOMEM;
		a->refs = 1;
	}
	*held = a->held;
	*left = (u32)fd < limit ? limit - (u32)fd : 0;
	if (a->held + n > FREE_TO_ALL && a->held + n > *left)
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

void allowance_put(struct allowance *of)
{
	if (of && !--of->refs)
		free(of);
}
