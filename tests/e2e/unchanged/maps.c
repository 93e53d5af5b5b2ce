/*
 * PROCMAP_QUERY (Linux 6.11) tells of each mapping what /proc/PID/maps says. What is said here is
 * whether it does, since addresses differ from run to run.
 */
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
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, id_size;
	uint64_t name, id;
};

#define QUERY         _IOWR('f', 17, struct query)
#define WRITABLE      0x02u
#define EXECUTABLE    0x04u
#define SHARED        0x08u
#define OR_NEXT       0x10u
#define FILE_BACKED   0x20u
#define UNKNOWN       0x40u
#define VSYSCALL_PAGE 0xffffffffff600000ul

int main(void);

static char name[PATH_MAX];
static unsigned char id[64];

static int ask(int fd, struct query *q, unsigned int flags, const void *addr)
{
	memset(q, 0, sizeof(*q));
	memset(name, 0, sizeof(name));
	q->size = sizeof(*q);
	q->flags = flags;
	q->addr = (uintptr_t)addr;
	q->name = (uintptr_t)name;
	q->name_size = sizeof(name);
	return ioctl(fd, QUERY, q) ? errno : 0;
}

/* The line that maps would have. */
static void line_of(const struct query *q, char *line, size_t size)
{
	int n = snprintf(line, size, "%08lx-%08lx %c%c%c%c %08lx %02x:%02x %lu ", q->start, q->end,
			 q->vma_flags & 1 ? 'r' : '-', q->vma_flags & 2 ? 'w' : '-',
			 q->vma_flags & 4 ? 'x' : '-', q->vma_flags & 8 ? 's' : 'p', q->offset,
			 q->major, q->minor, q->inode);

	if (q->name_size)
		snprintf(line + n, size - (size_t)n, "%*s%s", n < 73 ? 73 - n : 0, "", name);
}

/* Each line is told, in its order, by its address and by where the one before ends. */
static void agrees(const char *path)
{
	static char text[1 << 16];
	int fd = open(path, O_RDONLY), wrong = 0, lines = 0;
	const char *last = NULL;
	char told[8192], *end;
	struct query q;
	ssize_t n, at = 0;

	while ((n = read(fd, text + at, sizeof(text) - 1 - (size_t)at)) > 0)
		at += n;
	text[at] = 0;
	for (char *line = text; (end = strchr(line, '\n')); line = end + 1) {
		const char *start = (char *)strtoul(line, NULL, 16);

		*end = 0;
		if (start == (char *)VSYSCALL_PAGE) {
			SAY("vsyscall: %d", ask(fd, &q, OR_NEXT, start));
			continue;
		}
		lines++;
		for (int i = 0; i < 2; i++) {
			int no = i ? ask(fd, &q, OR_NEXT, last) : ask(fd, &q, 0, start);

			line_of(&q, told, sizeof(told));
			if ((no || strcmp(line, told)) && !wrong++)
				SAY("%d: '%s' is told as '%s'", no, line, told);
		}
		last = (char *)q.end;
	}
	SAY("behind all: %d", ask(fd, &q, OR_NEXT, last));
	close(fd);
	HOLDS(lines > 4 && !wrong);
}

static void say_found(int fd, const char *what, unsigned int flags, const void *addr)
{
	struct query q;
	int no = ask(fd, &q, flags, addr);

	if (no)
		SAY("%s: %s", what, strerror(no));
	else
		SAY("%s: %ld + %ld, flags %lx, pages of %ld, offset %lx, file %d, %u %s", what,
		    (long)(q.start - (uintptr_t)addr) / 4096, (long)(q.end - q.start) / 4096,
		    q.vma_flags, q.page_size, q.offset, q.inode != 0, q.name_size,
		    q.name_size ? strrchr(name, '/') ? strrchr(name, '/') : name : "none");
}

static void kinds(int fd)
{
	char *p = mmap(NULL, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int file = open("odd\nname", O_RDWR | O_CREAT, 0600);

	ftruncate(file, 8192);
	mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE);
	mprotect(p + 2 * 4096, 4096, PROT_READ | PROT_EXEC);
	mmap(p + 4 * 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 4096);
	mmap(p + 5 * 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
	munmap(p + 7 * 4096, 4096);
	say_found(fd, "no access", 0, p);
	say_found(fd, "data", 0, p + 4096 + 17);
	say_found(fd, "code", 0, p + 2 * 4096);
	say_found(fd, "code that is not writable", WRITABLE, p + 2 * 4096);
	say_found(fd, "the next that is writable", WRITABLE | OR_NEXT, p + 2 * 4096);
	say_found(fd, "the next that is executable", EXECUTABLE | OR_NEXT, p);
	say_found(fd, "the next of a file", FILE_BACKED | OR_NEXT, p);
	say_found(fd, "no file", FILE_BACKED, p);
	say_found(fd, "the next that is shared", SHARED | OR_NEXT, p);
	say_found(fd, "a file", 0, p + 4 * 4096);
	say_found(fd, "nothing", 0, p + 7 * 4096);
	say_found(fd, "null", 0, NULL);
	say_found(fd, "beyond all", OR_NEXT, (void *)-4096l);
	say_found(fd, "unknown", UNKNOWN, p);
	unlink("odd\nname");
	say_found(fd, "a file that is gone", 0, p + 4 * 4096);
	close(file);
	munmap(p, 7 * 4096);
	say_found(fd, "after munmap", 0, p + 4 * 4096);
}

static void errors(int fd)
{
	char *end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct query q, *at_end = (struct query *)(end + 4096 - 24);
	struct {
		struct query q;
		char more[64];
	} big;
	int length;

	munmap(end + 4096, 4096);
	ask(fd, &q, 0, main);
	length = (int)q.name_size;
	HOLDS(length == (int)strlen(name) + 1);
	q.name_size = (uint32_t)length;
	TRY("room for it", ioctl(fd, QUERY, &q));
	q.name_size = (uint32_t)length - 1;
	TRY("one too short", ioctl(fd, QUERY, &q));
	q.name_size = 0;
	TRY("no size", ioctl(fd, QUERY, &q));
	q.name = 0;
	TRY("no name", ioctl(fd, QUERY, &q));
	q.name_size = 5;
	TRY("no place", ioctl(fd, QUERY, &q));
	q.name = 8;
	q.name_size = sizeof(name);
	TRY("a bad place", ioctl(fd, QUERY, &q));
	q.name = q.name_size = 0;
	q.id_size = 20;
	TRY("no place for the build id", ioctl(fd, QUERY, &q));
	q.id = (uintptr_t)id;
	q.id_size = sizeof(id);
	TRY("build id", ioctl(fd, QUERY, &q));
	SAY("%u bytes", q.id_size);
	for (unsigned int i = 0; i < q.id_size; i++)
		printf("%02x", id[i]);
	SAY(" is it");
	if (q.id_size) {
		q.id_size--;
		TRY("one too short", ioctl(fd, QUERY, &q));
	}
	ask(fd, &q, 0, end);
	q.name = 0;
	q.id = (uintptr_t)id;
	q.id_size = sizeof(id);
	TRY("of no file", ioctl(fd, QUERY, &q));
	SAY("%u bytes", q.id_size);
	TRY("null", ioctl(fd, QUERY, NULL));
	q.size = 16;
	TRY("too small", ioctl(fd, QUERY, &q));
	q.size = 4097;
	TRY("too large", ioctl(fd, QUERY, &q));
	memset(&big, 0, sizeof(big));
	big.q.size = sizeof(big);
	big.q.addr = (uintptr_t)main;
	TRY("larger, zero", ioctl(fd, QUERY, &big));
	HOLDS(big.q.size == sizeof(big) && big.q.start <= (uintptr_t)main);
	big.more[63] = 1;
	TRY("larger, not zero", ioctl(fd, QUERY, &big));
	at_end->size = 24;
	at_end->flags = 0;
	at_end->addr = (uintptr_t)main;
	TRY("smallest", ioctl(fd, QUERY, at_end));
	at_end->size = 32;
	TRY("beyond the page", ioctl(fd, QUERY, at_end));
	munmap(end, 4096);
}

static void of_others(int fd)
{
	char path[64], *made = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int named[2];
	pid_t pid;

	pipe(named);
	pid = fork();
	if (!pid) {
		/* The descriptor is of the parent, who has not changed. */
		mprotect(made, 4096, PROT_READ | PROT_EXEC);
		say_found(fd, "the parent's", 0, made);
		write(named[1], "x", 1);
		pause();
		_exit(0);
	}
	read(named[0], path, 1);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	agrees(path);
	fd = open(path, O_RDONLY);
	say_found(fd, "the child's", 0, made);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	say_found(fd, "of nobody", 0, made);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%d/maps", getppid());
	fd = open(path, O_RDONLY);
	if (fd >= 0)
		say_found(fd, "of a stranger", FILE_BACKED | UNKNOWN, NULL);
	close(fd);
}

int main(void)
{
	int fd = open("/proc/self/maps", O_RDONLY), smaps = open("/proc/self/smaps", O_RDONLY);
	struct query q;

	setvbuf(stdout, NULL, _IONBF, 0);
	TRY("smaps", ioctl(smaps, QUERY, &q));
	if (ask(fd, &q, 0, main) == ENOTTY) {
		SAY("no queries");
		return 0;
	}
	agrees("/proc/self/maps");
	agrees("/proc/thread-self/maps");
	kinds(fd);
	errors(fd);
	of_others(fd);
	return 0;
}
