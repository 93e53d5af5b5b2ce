/* PROCMAP_QUERY: one mapping of an open /proc/PID/maps, and how it agrees with the text. */
#include "say.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, prot, page_size, offset, inode;
	uint32_t major, minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY       _IOWR(0x66, 17, struct query)
#define OR_NEXT     0x10
#define FILE_BACKED 0x20

static char name[PATH_MAX];

static long ask(int fd, struct query *q)
{
	memset(name, 0, sizeof(name));
	return ioctl(fd, QUERY, q);
}

static void say(const char *what, int fd, struct query q)
{
	long ret = ask(fd, &q);

	SAY("%s: %ld %s, prot %llx, page %llu, name %u", what, ret, ret ? strerror(errno) : "",
	    (long long)q.prot, (long long)q.page_size, q.name_size);
}

/* Each line of the text is what is told of its mapping. */
static void all_lines(const char *path)
{
	int fd = open(path, O_RDONLY), lines = 0, alike = 0;
	FILE *f = fdopen(fd, "r");
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	char line[PATH_MAX + 100], prot[8];

	while (fgets(line, sizeof(line), f)) {
		int at = 0;
		struct query q = {
			.size = sizeof(q), .name = (uint64_t)name, .name_size = sizeof(name)};

		sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, prot, &offset, &major,
		       &minor, &inode, &at);
		line[strcspn(line, "\n")] = '\0';
		if (strstr(line, "[vsyscall]"))
			continue;
		lines++;
		q.addr = start + (end - start) / 2;
		if (ask(fd, &q)) {
			SAY("%s: %s", line, strerror(errno));
			continue;
		}
		alike += q.start == start && q.end == end && q.inode == inode && q.major == major &&
			 q.minor == minor && (!inode || q.offset == offset) &&
			 (q.prot & 1) == (prot[0] == 'r') &&
			 (q.prot >> 1 & 1) == (prot[1] == 'w') &&
			 (q.prot >> 2 & 1) == (prot[2] == 'x') &&
			 (q.prot >> 3) == (prot[3] == 's') && !strcmp(name, line + at) &&
			 q.name_size == (line[at] ? strlen(name) + 1 : 0);
	}
	HOLDS(lines > 5 && alike == lines);
	fclose(f);
}

static void flags(int fd, const char *hole)
{
	struct query q = {.size = sizeof(q), .addr = (uint64_t)hole};

	say("a hole", fd, q);
	q.flags = OR_NEXT;
	HOLDS(!ask(fd, &q) && q.start == (uint64_t)hole + 4096);
	q.flags = 0;
	q.addr += 4096;
	say("what follows", fd, q);
	q.flags = 2;
	say("writable", fd, q);
	q.flags = 4;
	say("executable", fd, q);
	q.flags = OR_NEXT | 2;
	HOLDS(!ask(fd, &q) && q.start == (uint64_t)hole + 3 * 4096);
	q.flags = FILE_BACKED;
	say("of a file", fd, q);
	q.flags = FILE_BACKED | OR_NEXT | 4;
	q.addr = (uint64_t)flags & ~4095ull;
	HOLDS(!ask(fd, &q) && q.inode && q.end > (uint64_t)flags);
	q.flags = 8;
	say("shared", fd, q);
	q.flags = 0x40;
	say("not known", fd, q);
	q.flags = OR_NEXT;
	q.addr = ~0ull;
	say("the end", fd, q);
}

static void sizes(int fd)
{
	struct {
		struct query q;
		uint64_t more[4];
	} x = {.q = {.size = sizeof(x), .addr = (uint64_t)sizes}};
	struct query q = x.q;

	TRY("larger", ask(fd, &x.q));
	x.more[1] = 1;
	TRY("with what nobody knows", ask(fd, &x.q));
	q.size = 8;
	say("smaller", fd, q);
	q.size = 24;
	say("the least", fd, q);
	q.size = 48;
	say("a half", fd, q);
	q.size = 4097;
	say("too large", fd, q);
	q.size = sizeof(q);
	q.name_size = 10;
	say("a size without a name", fd, q);
	q.name = (uint64_t)name;
	q.name_size = 3;
	say("a name without room", fd, q);
	q.name_size = 0;
	say("a name without a size", fd, q);
	q.name = 8;
	q.name_size = 500;
	say("a name that leads nowhere", fd, q);
	q = (struct query){.size = sizeof(q), .addr = (uint64_t)sizes, .build_id_size = 20};
	say("a build id that leads nowhere", fd, q);
	TRY("nowhere", ioctl(fd, QUERY, (void *)8));
}

int main(void)
{
	char *p = mmap(NULL, 6 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[40];
	int fd;
	pid_t pid;

	munmap(p, 4096);
	mprotect(p + 3 * 4096, 4096, PROT_READ | PROT_WRITE);
	mmap(p + 5 * 4096, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	fd = open("/proc/self/maps", O_RDONLY);
	{
		struct query q = {.size = 0};

		TRY("no size", ask(fd, &q));
		/* On a kernel that does not know it nothing else is of interest. */
		if (errno == ENOTTY)
			return 0;
	}
	all_lines("/proc/self/maps");
	flags(fd, p);
	sizes(fd);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	all_lines(path);
	kill(pid, 9);
	waitpid(pid, NULL, 0);
	TRY("another file", ioctl(open("/dev/null", O_RDONLY), QUERY, NULL));
	TRY("smaps", ioctl(open("/proc/self/smaps", O_RDONLY), QUERY, NULL));
	return 0;
}
