/* Memory that is locked, and the limit for it: of the program's own alone. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

#define MB (1ul << 20)

static bool is_locked(void)
{
	char line[200];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmLck:", 6))
			kb = atol(line + 6);
	if (f)
		fclose(f);
	return kb > 0;
}

static void limit(rlim_t bytes)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r))
		return;
	r.rlim_cur = bytes < r.rlim_max ? bytes : r.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &r);
}

static void all(rlim_t bytes, int flags)
{
	int err;

	limit(bytes);
	err = mlockall(flags) ? errno : 0;
	limit(8 * MB);
	SAY("limit %lu, flags %d: %s, %d", (unsigned long)bytes, flags, strerror(err), is_locked());
	err = munlockall() ? errno : 0;
	SAY("none: %s, %d", strerror(err), is_locked());
}

static void *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* What is mapped later is locked too, as far as the limit goes; a child begins anew. */
static void future(void)
{
	void *at;

	limit(MB);
	SAY("future: %d", mlockall(MCL_FUTURE));
	at = map(MB / 2);
	SAY("half: %d %d", at != MAP_FAILED, is_locked());
	at = map(MB);
	SAY("more: %d %s", at != MAP_FAILED, strerror(at == MAP_FAILED ? errno : 0));
	SAY("heap: %d", sbrk(MB) != (void *)-1);
	if (fork() == 0) {
		at = map(4 * MB);
		SAY("child: %d %d", at != MAP_FAILED, is_locked());
		_exit(0);
	}
	wait(NULL);
	SAY("no more: %d", munlockall());
	at = map(4 * MB);
	SAY("after: %d %d", at != MAP_FAILED, is_locked());
}

int main(void)
{
	/* For root there is no limit. */
	if (!getuid() && (setgid(65534) || setuid(65534)))
		return 1;
	all(0, MCL_CURRENT);
	all(0, MCL_FUTURE);
	all(65536, MCL_CURRENT);
	all(8 * MB, MCL_CURRENT);
	all(8 * MB, MCL_CURRENT | MCL_FUTURE);
	all(8 * MB, MCL_CURRENT | MCL_ONFAULT);
	all(8 * MB, MCL_ONFAULT);
	all(8 * MB, 8 | MCL_CURRENT);
	all(8 * MB, 0);
	future();
	return 0;
}
