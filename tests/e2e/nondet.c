/*
 * Makes use of one thing that a deterministic run cannot fix, or of what it does: argv[1]. Written
 * so that the C library does not make use of another by the way.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *nothing(void *arg)
{
	return arg;
}

static volatile sig_atomic_t caught;

static void catch (int sig)
{
	caught = sig;
}

static int threads(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL);
}

/* A child that exits at once, waited for by @how. */
static int children(int n, int options)
{
	for (int i = 0; i < n; i++)
		if (!fork())
			_exit(0);
	for (int i = 0; i < n;)
		i += waitpid(-1, NULL, options) > 0;
	return 0;
}

static int ask_pipe(size_t want)
{
	char buf[8];
	int p[2];

	if (pipe(p) || write(p[1], "abcd", 4) != 4)
		return 1;
	return read(p[0], buf, want) != 4;
}

static int ask_socket(void)
{
	char buf[4];
	int s[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || write(s[1], "abcd", 4) != 4)
		return 1;
	return recv(s[0], buf, 4, 0) != 4;
}

static int alarmed(void)
{
	struct itimerval soon = {.it_value.tv_usec = 1000};

	signal(SIGALRM, catch);
	if (setitimer(ITIMER_REAL, &soon, NULL))
		return 1;
	while (!caught)
		;
	return 0;
}

static int by_itself(void)
{
	signal(SIGUSR1, catch);
	/* raise() would ask for its process id. */
	if (pthread_kill(pthread_self(), SIGUSR1) || caught != SIGUSR1)
		return 1;
	caught = 0;
	return kill(getpid(), SIGUSR1) || caught != SIGUSR1;
}

static void show(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)bytes)[i]);
	putchar('\n');
}

/* Everything random that a program can come by without a library of its own. */
static int randoms(void)
{
	unsigned char buf[24];
	struct iovec iov[2] = {{buf, 5}, {buf + 5, 19}};
	int fd = open("/dev/random", O_RDONLY), on_heap, status;

	if (fd < 0 || dup2(fd, 100) != 100 || readv(100, iov, 2) != 24)
		return 1;
	show(buf, 24);
	if (getrandom(buf, 24, 0) != 24)
		return 1;
	show(buf, 24);
	show((void *)getauxval(AT_RANDOM), 16);
	printf("%p %p %p\n", (void *)&fd, (void *)randoms, malloc(100));
	printf("%p %p\n", mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	       sbrk(0));
	printf("%lu %d\n", getauxval(AT_SYSINFO_EHDR), sched_getcpu());
	fflush(stdout);
	/* A child has its own; its parent's do not depend on what it draws. */
	if (!fork()) {
		on_heap = getrandom(buf, 24, 0) != 24;
		show(buf, 24);
		exit(on_heap);
	}
	wait(&status);
	if (getrandom(buf, 24, 0) != 24 || getrandom(buf, 1, 0x80) != -1)
		return 1;
	show(buf, 24);
	return status;
}

/* Which levels of the psABI the CPU seems to have, and where it says we are. */
static int features(void)
{
	unsigned a, b, c, d;

	__asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
	if (c & 1u << 20 && c & 1u << 23)
		puts("v2");
	printf("%u\n", b >> 24);
	__asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
	if (b & 1u << 5 && b & 1u << 8)
		puts("v3");
	if (b & 1u << 16)
		puts("v4");
	__asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(11), "c"(0));
	printf("%u\n", d);
	return 0;
}

static void show_file(const char *path)
{
	char buf[256];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));

	printf("%s: %.*s", path, n > 0 ? (int)n : 0, buf);
	close(fd);
}

/* How many lines of @path begin with @word and a digit, or with what is like it. */
static int lines(const char *path, const char *word)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t size;
	int n = 0;

	while (f && getline(&line, &size, f) > 0)
		n += !strncmp(line, word, strlen(word)) && line[strlen(word)] != ' ';
	free(line);
	fclose(f);
	return n;
}

static void *lowest(void *arg)
{
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		printf("%d of them in a thread, on %d\n", CPU_COUNT(&set), sched_getcpu());
	return arg;
}

/* Everything that tells how many CPUs there are, @files included or not. */
static int cpus(int files)
{
	cpu_set_t set, one;
	unsigned long many[128];
	pthread_t t;
	FILE *f;
	char line[256];

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	printf("%d of %ld of %ld, %ld bytes\n", CPU_COUNT(&set), sysconf(_SC_NPROCESSORS_ONLN),
	       sysconf(_SC_NPROCESSORS_CONF),
	       syscall(SYS_sched_getaffinity, 0, sizeof(many), many));
	if (syscall(SYS_sched_getaffinity, 0, 7, many) != -1 || errno != EINVAL ||
	    syscall(SYS_sched_getaffinity, 0x3fffffff, 128, many) != -1 || errno != ESRCH)
		return 2;
	if (!files)
		return 0;
	show_file("/sys/devices/system/cpu/online");
	show_file("/sys/devices/system/cpu/possible");
	show_file("/sys/devices/system/cpu/present");
	printf("%d %d\n", lines("/proc/cpuinfo", "processor"), lines("/proc/stat", "cpu"));
	/* What a program sets for itself holds, and its threads and programs have it too. */
	CPU_ZERO(&one);
	if (!sched_setaffinity(0, sizeof(one), &one) || errno != EINVAL)
		return 3;
	CPU_SET(2, &one);
	CPU_SET(3, &one);
	CPU_SET(1000, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_getaffinity(0, sizeof(set), &set))
		return 4;
	printf("%d, on %d\n", CPU_COUNT(&set), sched_getcpu());
	if (pthread_create(&t, NULL, lowest, NULL) || pthread_join(t, NULL))
		return 5;
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Cpus_allowed", 12))
			fputs(line, stdout);
	fclose(f);
	fflush(stdout);
	execlp("nproc", "nproc", NULL);
	return 6;
}

/*
 * What an instruction that draws leaves of a register with something in it, and of the flags that
 * it defines.
 */
#define DRAWN(op, reg, operand)                                                                 \
	({                                                                                      \
		unsigned long v_ = 0x1122334455667788, f_;                                      \
		__asm__ volatile("mov %0, %%" reg "\n\tcmp %0, %0\n\t" op " %%" operand         \
				 "\n\tlea -128(%%rsp), %%rsp\n\tpushfq\n\tpop %1\n\t"           \
				 "lea 128(%%rsp), %%rsp\n\tmov %%" reg ", %0"                   \
				 : "+r"(v_), "=&r"(f_)                                          \
				 :                                                              \
				 : reg, "cc", "memory");                                        \
		drawn_well(v_, f_, sizeof(operand) - 1 == 2 ? 2 : (operand)[0] == 'e' ? 4 : 8); \
	})

/*
 * 16 bits keep the rest of the register, 32 clear it. CF says that it worked, the others are 0; a
 * CPU that has no number just then gives 0.
 */
static int drawn_well(unsigned long v, unsigned long flags, int size)
{
	unsigned long number = size == 2 ? v & 0xffff : v;

	printf("%lx\n", v);
	if (size == 2 && v >> 16 != 0x112233445566)
		return 0;
	return (size != 4 || v <= 0xffffffff) && (flags & 0x8d4) == 0 && (flags & 1 || number == 0);
}

/* The instructions that a deterministic run answers itself. */
static int instructions(void)
{
	unsigned a, b, c, d, low, high, more, id;
	int good = 1;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	__asm__ volatile("rdtscp" : "=a"(more), "=d"(d), "=c"(id) : : "memory");
	good &= ((unsigned long)d << 32 | more) > ((unsigned long)high << 32 | low);
	__asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
	if (c & 1u << 30) {
		good &= DRAWN("rdrand", "rax", "rax") & DRAWN("rdrand", "rbx", "ebx");
		good &= DRAWN("rdrand", "r12", "r12") & DRAWN("rdrand", "rcx", "cx");
	}
	__asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
	if (b & 1u << 18) {
		good &= DRAWN("rdseed", "rsi", "rsi") & DRAWN("rdseed", "rdi", "edi");
		good &= DRAWN("rdseed", "rdx", "dx") & DRAWN("rdseed", "r15", "r15");
	}
	return !good;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct timespec ts;
	struct rusage usage;

	if (!strcmp(what, "nothing"))
		return 0;
	if (!strcmp(what, "pids"))
		return getpid() == 1;
	if (!strcmp(what, "wall time"))
		return clock_gettime(CLOCK_MONOTONIC, &ts);
	if (!strcmp(what, "CPU time"))
		return getrusage(RUSAGE_SELF, &usage);
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "processes"))
		return children(2, 0);
	if (!strcmp(what, "polled processes"))
		return children(1, WNOHANG);
	if (!strcmp(what, "one process"))
		return children(1, 0);
	if (!strcmp(what, "one after the other"))
		return children(1, 0) || children(1, 0);
	if (!strcmp(what, "I/O"))
		return ask_socket();
	if (!strcmp(what, "half a pipe"))
		return ask_pipe(8);
	if (!strcmp(what, "a pipe"))
		return ask_pipe(4);
	if (!strcmp(what, "signals"))
		return alarmed();
	if (!strcmp(what, "signal to itself"))
		return by_itself();
	if (!strcmp(what, "machine's state"))
		return open("/proc/loadavg", O_RDONLY) < 0;
	if (!strcmp(what, "CPUs"))
		return cpus(0);
	if (!strcmp(what, "CPUs everywhere"))
		return cpus(1);
	if (!strcmp(what, "randoms"))
		return randoms();
	if (!strcmp(what, "instructions"))
		return instructions();
	if (!strcmp(what, "features"))
		return features();
	return 2;
}
