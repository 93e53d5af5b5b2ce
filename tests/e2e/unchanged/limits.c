/*
 * Every limit of setrlimit(2): what is said of it, what it refuses, and what fork, threads and
 * execve make of it.
 */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static const struct {
	const char *name;
	int resource;
	rlim_t soft, hard; /* that programs live with */
} kinds[] = {
	{"AS", RLIMIT_AS, 64 << 20, 96 << 20},
	{"DATA", RLIMIT_DATA, 32 << 20, 48 << 20},
	{"STACK", RLIMIT_STACK, 256 << 10, 1 << 20},
	{"NPROC", RLIMIT_NPROC, 3000, 4000},
	{"NOFILE", RLIMIT_NOFILE, 20, 40},
	{"MEMLOCK", RLIMIT_MEMLOCK, 65536, 131072},
	{"CPU", RLIMIT_CPU, 100, 200},
	{"CORE", RLIMIT_CORE, 0, 0},
	{"FSIZE", RLIMIT_FSIZE, 0, 4096},
	{"SIGPENDING", RLIMIT_SIGPENDING, 0, 10},
	{"MSGQUEUE", RLIMIT_MSGQUEUE, 0, 1000},
	{"RTPRIO", RLIMIT_RTPRIO, 0, 0},
	{"RTTIME", RLIMIT_RTTIME, 100000, 200000},
	{"LOCKS", RLIMIT_LOCKS, 5, 6},
	{"NICE", RLIMIT_NICE, 0, 0},
	{"RSS", RLIMIT_RSS, 1 << 20, 1 << 21},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *nothing(void *arg)
{
	return arg;
}

static void thread(void)
{
	pthread_attr_t small;
	pthread_t th;
	int err;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	err = pthread_create(&th, &small, nothing, NULL);
	SAY("thread: %s", strerror(err));
	if (!err)
		pthread_join(th, NULL);
}

static void child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(7);
	SAY("fork: %d", pid > 0);
	if (pid > 0)
		waitpid(pid, &status, 0);
	SAY("child: %#x", status);
}

/* What the limits of this moment are, by all ways to ask. */
static void show(const char *name, int resource)
{
	struct rlimit a = {1, 1}, b = {2, 2};
	unsigned long raw[2] = {3, 3};

	TRY("getrlimit", getrlimit(resource, &a));
	TRY("prlimit", prlimit(getpid(), resource, NULL, &b));
	TRY("raw", syscall(SYS_getrlimit, resource, raw));
	SAY("%s: %ld %ld", name, (long)a.rlim_cur, (long)a.rlim_max);
	HOLDS(!memcmp(&a, &b, sizeof(a)) && !memcmp(&a, raw, sizeof(a)));
}

static void file(void)
{
	char line[200];
	FILE *f = fopen("/proc/self/limits", "r");

	while (f && fgets(line, sizeof(line), f))
		SAY("%.*s|", (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
}

static void one(size_t i)
{
	struct rlimit was, l = {kinds[i].soft, kinds[i].hard}, wrong = {2, 1}, old;
	int r = kinds[i].resource;

	getrlimit(r, &was);
	TRY("wrong", setrlimit(r, &wrong));
	TRY("set", setrlimit(r, &l));
	show(kinds[i].name, r);
	thread();
	child();
	l.rlim_cur /= 2;
	TRY("lower", prlimit(0, r, &l, &old));
	SAY("was %ld %ld", (long)old.rlim_cur, (long)old.rlim_max);
	l.rlim_cur = l.rlim_max;
	TRY("up to the hard one", setrlimit(r, &l));
	l.rlim_max = l.rlim_max ? l.rlim_max * 2 : 1;
	TRY("hard one up", setrlimit(r, &l));
	show(kinds[i].name, r);
	TRY("back", setrlimit(r, &was));
	TRY("no address", syscall(SYS_prlimit64, 0, r, NULL, (void *)8));
	TRY("no address", syscall(SYS_setrlimit, r, (void *)8));
	TRY("no such process", prlimit(0x7ffffff, r, NULL, &old));
	file();
}

/* How many pages can be had, one by one. */
static long pages(void)
{
	long n = 0;

	while (mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED)
		n++;
	return n;
}

static void in_child(const char *what, void (*fn)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fn();
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	SAY("%s ends with %#x", what, status);
}

static void as_is_exact(void)
{
	struct rlimit l = {48 << 20, 48 << 20};

	setrlimit(RLIMIT_AS, &l);
	SAY("addresses: %ld pieces", pages());
	TRY("sbrk", sbrk(1 << 20));
	child();
	thread();
	SAY("again: %ld", pages());
}

static void data_is_exact(void)
{
	struct rlimit l = {16 << 20, 16 << 20};

	setrlimit(RLIMIT_DATA, &l);
	SAY("data: %ld pieces", pages());
	HOLDS(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	TRY("sbrk", sbrk(1 << 20));
	child();
	thread();
}

/* A soft limit of 0 is the hard one for all but the heap: so valgrind has it. */
static void none_of_data(void)
{
	struct rlimit l = {0, 24 << 20};

	TRY("none", setrlimit(RLIMIT_DATA, &l));
	show("DATA", RLIMIT_DATA);
	SAY("sbrk: %d", sbrk(4096) == (void *)-1);
	SAY("back: %d", sbrk(-4096) == (void *)-1);
	child();
	thread();
	SAY("none of data: %ld pieces", pages());
	fflush(stdout);
	execl("/proc/self/exe", "limits", "again", NULL);
}

/* Less than is in use is no error, and what there is stays. */
static void less_than_there_is(void)
{
	struct rlimit l = {1 << 20, 1 << 20};
	char *p = malloc(300 << 20);

	memset(p, 1, 1 << 20);
	TRY("less", setrlimit(RLIMIT_AS, &l));
	TRY("data too", setrlimit(RLIMIT_DATA, &l));
	HOLDS(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	child();
	thread();
	child();
	HOLDS(p[5000] == 1);
	TRY("munmap", munmap(p - 16, 300 << 20));
}

static void many_threads(void)
{
	struct rlimit l = {64 << 20, 64 << 20};
	pthread_attr_t small;
	pthread_t th[32];
	int n = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	setrlimit(RLIMIT_AS, &l);
	while (n < 32 && !pthread_create(&th[n], &small, nothing, NULL))
		n++;
	SAY("threads: %d", n);
	for (int i = 0; i < n; i++)
		pthread_join(th[i], NULL);
	SAY("and pieces: %ld", pages());
}

static void stack_ends(void)
{
	struct rlimit l = {64 << 10, 64 << 10};

	setrlimit(RLIMIT_STACK, &l);
	child();
	(void)*(volatile char *)((char *)__builtin_frame_address(0) - (1 << 20));
}

static void descriptors(void)
{
	struct rlimit l = {12, 12};
	int n = 0;

	setrlimit(RLIMIT_NOFILE, &l);
	while (open("/dev/null", O_RDONLY) >= 0)
		n++;
	SAY("descriptors: %d %s", n, strerror(errno));
	child();
	thread();
}

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	SAY("signal with %d", si->si_value.sival_int);
}

static void queue(void)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct rlimit l = {0, 0};
	union sigval v = {.sival_int = 5};
	timer_t timer;

	sigaction(SIGRTMIN + 1, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	setrlimit(RLIMIT_SIGPENDING, &l);
	TRY("sigqueue", sigqueue(getpid(), SIGRTMIN + 1, v));
	TRY("sigqueue", sigqueue(getpid(), SIGUSR1, v));
	TRY("kill", kill(getpid(), SIGUSR1));
	TRY("timer", timer_create(CLOCK_REALTIME, NULL, &timer));
	child();
	thread();
}

/* What a process finds that another has given limits to. */
static void find(int in, int out)
{
	char c;

	if (read(in, &c, 1) != 1)
		return;
	show("AS", RLIMIT_AS);
	show("DATA", RLIMIT_DATA);
	SAY("pieces: %ld", pages());
	fflush(stdout);
	(void)!write(out, "x", 1);
	(void)!read(in, &c, 1);
}

/* What /proc says of them, of a process that is called so there. */
static void in_proc(pid_t number)
{
	char path[40], line[200];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", (int)number);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Max address", 11) || !strncmp(line, "Max data", 8))
			printf("%s", line);
	if (f)
		fclose(f);
}

static void of(pid_t pid, const char *what)
{
	static const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
	struct rlimit l = {0, 0};

	in_proc(pid);

	for (int i = 0; i < 2; i++) {
		TRY(what, prlimit(pid, resources[i], NULL, &l));
		SAY("%s: %ld %ld", what, (long)l.rlim_cur, (long)l.rlim_max);
	}
}

/* One that has limits already, or none, before and after it has taken notice. */
static void of_another(int limited)
{
	struct rlimit l = {100 << 20, 200 << 20}, wrong = {2, 1}, old = {0, 0};
	int go[2], gone[2], status = 0;
	pid_t pid;
	char c;

	if (pipe(go) || pipe(gone))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(go[1]);
		if (limited) {
			setrlimit(RLIMIT_AS, &l);
			setrlimit(RLIMIT_DATA, &l);
		}
		(void)!write(gone[1], "x", 1);
		find(go[0], gone[1]);
		_exit(0);
	}
	close(go[0]);
	(void)!read(gone[0], &c, 1);
	of(pid, "at first");
	l.rlim_cur = 60 << 20;
	l.rlim_max = 90 << 20;
	TRY("wrong", prlimit(pid, RLIMIT_AS, &wrong, NULL));
	TRY("addresses", prlimit(pid, RLIMIT_AS, &l, &old));
	SAY("was %ld %ld", (long)old.rlim_cur, (long)old.rlim_max);
	l.rlim_cur = 50 << 20;
	TRY("data", prlimit(pid, RLIMIT_DATA, &l, NULL));
	of(pid, "said");
	(void)!write(go[1], "x", 1);
	(void)!read(gone[0], &c, 1);
	of(pid, "taken notice of");
	l.rlim_cur = l.rlim_max = RLIM_INFINITY;
	TRY("none", prlimit(pid, RLIMIT_AS, &l, NULL));
	of(pid, "none");
	close(go[1]);
	waitpid(pid, &status, 0);
	SAY("the other ends with %#x", status);
}

static void another(void)
{
	of_another(0);
	of_another(1);
}

/* Of a child that has its parent's memory and limits of its own. */
static void vforked(void)
{
	struct rlimit l = {300 << 20, 400 << 20};
	int come[2], go[2];
	pid_t pid, asker;
	char c;

	l.rlim_cur *= 4;
	l.rlim_max *= 4;
	if (pipe(come) || pipe(go))
		return;
	fflush(stdout);
	asker = fork();
	if (!asker) {
		if (read(come[0], &pid, sizeof(pid)) == sizeof(pid)) {
			of(pid, "vforked");
			of(getppid(), "its parent");
			l.rlim_cur -= 4096;
			TRY("set", prlimit(pid, RLIMIT_AS, &l, NULL));
			of(pid, "vforked");
			of(getppid(), "its parent");
		}
		_exit(0);
	}
	close(go[1]);
	pid = vfork();
	if (!pid) {
		pid = getpid();
		setrlimit(RLIMIT_AS, &l);
		(void)!write(come[1], &pid, sizeof(pid));
		/* Nobody writes there, and the asker has the other end. */
		(void)!read(go[0], &c, 1);
		_exit(0);
	}
	waitpid(asker, NULL, 0);
	waitpid(pid, NULL, 0);
}

/* By the numbers of a pid namespace, while /proc has those of the one around it. */
static void first_of_a_namespace(int said, int go)
{
	struct rlimit l = {1l << 30, 2l << 30};
	pid_t other;
	int come[2];
	char c;

	if (pipe(come))
		return;
	other = fork();
	if (!other) {
		setrlimit(RLIMIT_AS, &l);
		(void)!write(come[1], "x", 1);
		pause();
	}
	(void)!read(come[0], &c, 1);
	SAY("another is %d", (int)other);
	of(other, "by our number");
	l.rlim_cur -= 4096;
	TRY("set", prlimit(other, RLIMIT_AS, &l, NULL));
	of(other, "by our number");
	setrlimit(RLIMIT_AS, &l);
	/* Those of another process, which /proc calls so. */
	in_proc(1);
	(void)!write(said, "x", 1);
	(void)!read(go, &c, 1);
}

static void in_a_namespace(void)
{
	int said[2], go[2], status = 0;
	pid_t pid;
	char c;

	if (pipe(said) || pipe(go) || unshare(CLONE_NEWPID)) {
		SAY("no namespace: %s", strerror(errno));
		return;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(go[1]);
		first_of_a_namespace(said[1], go[0]);
		_exit(0);
	}
	(void)!read(said[0], &c, 1);
	of(pid, "from around it");
	close(go[1]);
	waitpid(pid, &status, 0);
	SAY("ended %x", (unsigned int)status);
}

static char on_page[4096] __attribute__((aligned(4096)));

static void nobody(void)
{
	struct rlimit l = {0, 0};

	TRY("setuid", setuid(65534));
	TRY("nproc", setrlimit(RLIMIT_NPROC, &l));
	TRY("fork", fork());
	thread();
	l.rlim_cur = l.rlim_max = 40 << 20;
	TRY("as", setrlimit(RLIMIT_AS, &l));
	l.rlim_max++;
	TRY("as up", setrlimit(RLIMIT_AS, &l));
	l.rlim_cur = l.rlim_max = 1 << 20;
	TRY("memlock", setrlimit(RLIMIT_MEMLOCK, &l));
	TRY("mlock", mlock(on_page, 4096));
	TRY("lock much",
	    mlock(mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 2 << 20));
}

int main(int argc, char **argv)
{
	struct rlimit small = {40 << 20, 44 << 20};

	if (argc > 1 && !strcmp(argv[1], "again")) {
		show("AS", RLIMIT_AS);
		show("DATA", RLIMIT_DATA);
		SAY("pieces: %ld", pages());
		return 0;
	}
	if (argc > 1) {
		for (size_t i = 0; i < KINDS; i++)
			if (!strcmp(kinds[i].name, argv[1]))
				one(i);
		return 0;
	}
	in_child("addresses", as_is_exact);
	in_child("data", data_is_exact);
	in_child("none of data", none_of_data);
	in_child("less", less_than_there_is);
	in_child("threads", many_threads);
	in_child("stack", stack_ends);
	in_child("descriptors", descriptors);
	in_child("queue", queue);
	in_child("another", another);
	in_child("vforked", vforked);
	in_child("in a namespace", in_a_namespace);
	in_child("nobody", nobody);
	TRY("as", setrlimit(RLIMIT_AS, &small));
	TRY("data", setrlimit(RLIMIT_DATA, &small));
	execl("/proc/self/exe", "limits", "again", NULL);
	return 1;
}
