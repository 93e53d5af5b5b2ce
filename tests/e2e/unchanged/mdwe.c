/* Memory that may not become executable: PR_SET_MDWE, and files of a mount with noexec. */
#include "say.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SET 65
#define GET 66
#define RX  (PROT_READ | PROT_EXEC)
#define RW  (PROT_READ | PROT_WRITE)
#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)

static void *at_page(void *p, int n)
{
	return (char *)p + n * 4096;
}

static void *map(int prot, int pages)
{
	return mmap(NULL, (size_t)pages * 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int run(void *p)
{
	return ((int (*)(void))p)();
}

static void put(void *p)
{
	memcpy(p, "\xb8\x07\x00\x00\x00\xc3", 6);
}

/* Which of the pages can be executed, as /proc/self/maps tells. */
static void show(const char *what, void *p, int pages)
{
	char line[300], text[20] = "";
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char prot[5];

	memset(text, '.', (size_t)pages);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %4s", &from, &to, prot) == 3)
			for (int i = 0; i < pages; i++)
				if ((unsigned long)at_page(p, i) >= from &&
				    (unsigned long)at_page(p, i) < to)
					text[i] = prot[2] == 'x' ? prot[1] == 'w' ? 'W' : 'x'
								 : prot[1];
	if (f)
		fclose(f);
	SAY("%s: %s", what, text);
}

static void tries(void)
{
	void *code, *p;
	int id;

	HOLDS(map(RWX, 1) == MAP_FAILED && errno == EACCES);
	code = map(RX, 4);
	HOLDS(code != MAP_FAILED);
	p = map(RW, 4);
	TRY("gain", mprotect(p, 4096, RX));
	TRY("gain both", mprotect(p, 4096, RWX));
	TRY("keep", mprotect(code, 8192, RX));
	TRY("keep and write", mprotect(code, 8192, RWX));
	TRY("lose", mprotect(code, 4096, RW));
	TRY("get back", mprotect(code, 4096, RX));
	put(code);
	show("first", code, 4);
	TRY("some are", mprotect(at_page(code, 1), 4 * 4096, PROT_EXEC));
	TRY("one is not", mprotect(code, 4 * 4096, RX));
	show("then", code, 4);
	TRY("write", mprotect(at_page(code, 2), 4096, PROT_READ));
	TRY("up to there", mprotect(at_page(code, 1), 3 * 4096, RX));
	show("then", code, 4);
	munmap(at_page(code, 2), 4096);
	TRY("a hole", mprotect(at_page(code, 1), 3 * 4096, RX));
	TRY("badly aligned", mprotect((char *)code + 1, 4096, RX));
	TRY("nothing", mprotect(p, 0, RX));
	HOLDS(mmap(p, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
	show("fixed", p, 4);
	HOLDS(mmap(p, 4096, RX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	show("fixed", p, 4);
	TRY("no such file", mmap(NULL, 4096, RWX, MAP_PRIVATE, 99, 0) == MAP_FAILED ? -1 : 0);
	id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	TRY("shm", shmat(id, NULL, SHM_EXEC) == (void *)-1 ? -1 : 0);
	TRY("shm to read", shmat(id, NULL, SHM_EXEC | SHM_RDONLY) == (void *)-1 ? -1 : 0);
	shmctl(id, IPC_RMID, NULL);
}

static void in_child(const char *what, void (*fn)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fn();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	SAY("%s: %x", what, status);
}

static void next_program(void)
{
	execl("/proc/self/exe", "mdwe", "tell", NULL);
}

static void tell(void)
{
	SAY("now %d", prctl(GET, 0, 0, 0, 0));
	HOLDS(map(RWX, 1) != MAP_FAILED);
}

static void forbidden(void)
{
	TRY("unknown bits", prctl(SET, 4, 0, 0, 0));
	TRY("no inherit alone", prctl(SET, 2, 0, 0, 0));
	TRY("more arguments", prctl(SET, 1, 1, 0, 0));
	TRY("get with one", prctl(GET, 1, 0, 0, 0));
	TRY("get", prctl(GET, 0, 0, 0, 0));
	TRY("set", prctl(SET, 1, 0, 0, 0));
	TRY("set again", prctl(SET, 1, 0, 0, 0));
	TRY("other bits", prctl(SET, 3, 0, 0, 0));
	TRY("off", prctl(SET, 0, 0, 0, 0));
	tries();
	in_child("child", tell);
	in_child("next", next_program);
	if (!vfork()) {
		execl("/proc/self/exe", "mdwe", "tell", NULL);
		_exit(1);
	}
	wait(NULL);
}

static void not_inherited(void)
{
	TRY("set", prctl(SET, 3, 0, 0, 0));
	TRY("get", prctl(GET, 0, 0, 0, 0));
	in_child("child", tell);
	in_child("next", next_program);
	next_program();
}

static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n = write(fd, text, strlen(text));

	close(fd);
	return n < 0;
}

/* In namespaces of its own, where that is allowed. */
static int apart(void)
{
	char map[40];

	if (!unshare(CLONE_NEWNS))
		return 0;
	snprintf(map, sizeof(map), "0 %u 1", getuid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) || write_to("/proc/self/uid_map", map);
}

static void noexec(void)
{
	int fd;
	void *p, *q;

	if (apart() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/mnt", "tmpfs", MS_NOEXEC | MS_NOSUID, NULL)) {
		SAY("no mounts");
		return;
	}
	fd = open("/mnt/code", O_RDWR | O_CREAT, 0755);
	ftruncate(fd, 4 * 4096);
	HOLDS(mmap(NULL, 4096, RX, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EPERM);
	p = mmap(NULL, 4 * 4096, RW, MAP_PRIVATE, fd, 0);
	TRY("mprotect", mprotect(p, 4096, RX));
	TRY("mprotect", mprotect(p, 4096, RWX));
	/* Memory in front of it may be executed. */
	q = map(RW, 4);
	HOLDS(mmap(at_page(q, 2), 8192, RW, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	put(q);
	TRY("both", mprotect(q, 4 * 4096, RX));
	show("of which", q, 4);
	SAY("runs: %d", run(q));
}

/* What is below a hole changes although the call fails. */
static void hole(void)
{
	void *p = map(RW, 8);

	munmap(at_page(p, 5), 4096);
	put(p);
	TRY("over a hole", mprotect(p, 8 * 4096, RX));
	show("below it", p, 5);
	SAY("runs: %d", run(p));
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		tell();
		return 0;
	}
	in_child("hole", hole);
	in_child("noexec", noexec);
	if (prctl(GET, 0, 0, 0, 0) < 0)
		return 0;
	in_child("forbidden", forbidden);
	in_child("not inherited", not_inherited);
	return 0;
}
