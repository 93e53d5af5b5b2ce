/* The conformance programs' harness: see conform.h. */
#include "conform/conform.h"

#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#if __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>
#endif
#include <sys/utsname.h>
#include <time.h>

extern const struct conform *const __start_conform_tests[];
extern const struct conform *const __stop_conform_tests[];

/* Not every program has any of these. */
extern const struct conform_exec *const __start_conform_execs[] __attribute__((weak));
extern const struct conform_exec *const __stop_conform_execs[] __attribute__((weak));

/* Shared by all processes of the program; a CONFORM's children count too. */
static struct tally {
	int passed, failed, skipped;
} * tally;

static const char *running; /* the name of this CONFORM */
static bool observe;

/* One write per line: several processes share the output. */
static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	size_t len, done = 0;
	ssize_t n;

	va_start(ap, fmt);
	len = (size_t)vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	while (done < len) {
		n = write(STDOUT_FILENO, line + done, len - done);
		if (n < 0 && errno != EINTR)
			_exit(1);
		if (n > 0)
			done += (size_t)n;
	}
}

/* Ends an observation that the matrix does not expect; tests/conform/compare looks for it. */
#define UNEXPECTED " (unexpected)"

static void count(bool ok)
{
	__atomic_add_fetch(ok ? &tally->passed : &tally->failed, 1, __ATOMIC_RELAXED);
}

void check_row(const char *row, bool ok, const char *text, const char *fmt, ...)
{
	char seen[512];
	va_list ap;

	count(ok);
	if (observe) {
		say("%s %s = %s%s", row, text, ok ? "yes" : "no", ok ? "" : UNEXPECTED);
		return;
	}
	va_start(ap, fmt);
	vsnprintf(seen, sizeof(seen), fmt, ap);
	va_end(ap);
	if (ok)
		say("ok %s %s", row, text);
	else
		say("not ok %s %s (observed %s)", row, text, seen);
}

void check_val(const char *row, const char *text, long long got, long long want)
{
	bool ok = got == want;

	count(ok);
	if (observe)
		say("%s %s = %lld%s", row, text, got, ok ? "" : UNEXPECTED);
	else if (ok)
		say("ok %s %s", row, text);
	else
		say("not ok %s %s (observed %lld, expected %lld)", row, text, got, want);
}

#define FAULTS_OF_THE_RUNTIME 12

bool faults_are(long long got, long long want)
{
	return got == want ||
	       (virtual_world() && got > want && got <= want + FAULTS_OF_THE_RUNTIME);
}

void check_faults(const char *row, const char *text, long long got, long long want)
{
	check_val(row, text, faults_are(got, want) ? want : got, want);
}

static const char *err_name(long result)
{
	const char *name = result >= 0 ? "success" : strerrorname_np((int)-result);

	return name ? name : "an unknown errno";
}

void check_err(const char *row, const char *text, long result, int want_errno)
{
	bool ok = want_errno ? result == -want_errno : result >= 0;

	count(ok);
	if (observe)
		say("%s %s = %s%s", row, text, err_name(result), ok ? "" : UNEXPECTED);
	else if (ok)
		say("ok %s %s", row, text);
	else
		say("not ok %s %s (observed %s, expected %s)", row, text, err_name(result),
		    err_name(-(long)want_errno));
}

void skip_row(const char *row, const char *text, const char *why)
{
	__atomic_add_fetch(&tally->skipped, 1, __ATOMIC_RELAXED);
	if (!observe)
		say("skip %s %s: %s", row, text, why);
}

void conform_broken(int line, const char *what)
{
	int err = errno;

	count(false);
	say("not ok SETUP %s line %d (observed that this does not hold: %s; errno %s)",
	    running ? running : "start", line, what, strerrorname_np(err));
	_exit(1);
}

int paranoid(void)
{
	char buf[32] = "";
	int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 2;
	if (read(fd, buf, sizeof(buf) - 1) <= 0)
		buf[0] = 0;
	close(fd);
	return buf[0] ? atoi(buf) : 2;
}

bool capable(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	return (data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) ||
	       (data[CAP_TO_INDEX(CAP_PERFMON)].effective & CAP_TO_MASK(CAP_PERFMON));
}

bool virtual_world(void)
{
	const char *world = getenv("CONFORM_WORLD");

	return world && strcmp(world, "virtual") == 0;
}

bool have_pmu(void)
{
	return virtual_world() ||
	       try_self(ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS)) == 0;
}

bool kernel_at_least(int major, int minor)
{
	struct utsname name;
	int has_major = 0, has_minor = 0;

	/* The virtual subsystem is that of Linux 6.18 on whatever kernel it runs. */
	if (virtual_world()) {
		has_major = 6;
		has_minor = 18;
	} else if (uname(&name) == 0) {
		sscanf(name.release, "%d.%d", &has_major, &has_minor);
	}
	return has_major > major || (has_major == major && has_minor >= minor);
}

struct pe_attr ev_attr(u32 type, u64 config)
{
	return (struct pe_attr){
		.type = type,
		.size = PE_ATTR_SIZE_VER7,
		.config = config,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
}

struct pe_attr sw_attr(u64 config)
{
	return ev_attr(PERF_TYPE_SOFTWARE, config);
}

static long result(long ret)
{
	return ret < 0 ? -errno : ret;
}

long ev_open(const struct pe_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	return result(syscall(SYS_perf_event_open, attr, pid, cpu, group, flags));
}

long ev_self(struct pe_attr attr)
{
	return ev_open(&attr, 0, -1, -1, 0);
}

long try_open(const struct pe_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	long fd = ev_open(attr, pid, cpu, group, flags);

	if (fd < 0)
		return fd;
	close((int)fd);
	return 0;
}

long try_self(struct pe_attr attr)
{
	return try_open(&attr, 0, -1, -1, 0);
}

long ev_read(int fd, void *buf, size_t len)
{
	return result(read(fd, buf, len));
}

long ev_ioctl(int fd, unsigned long request, unsigned long arg)
{
	return result(ioctl(fd, request, arg));
}

u64 ev_count(int fd)
{
	u64 buf[64] = {0};

	NEED(ev_read(fd, buf, sizeof(buf)) >= 8);
	return buf[0];
}

u64 ev_id(int fd)
{
	u64 id = 0;

	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)&id) == 0);
	return id;
}

void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
}

void touch_pages(int n)
{
	size_t len = (size_t)n * 4096;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(p != MAP_FAILED);
	/* A huge page would make one fault of all. */
	madvise(p, len, MADV_NOHUGEPAGE);
	for (int i = 0; i < n; i++)
		*(volatile char *)(p + (size_t)i * 4096) = 1;
	munmap(p, len);
}

/* Reaps a child that runs checks; its own failures it has counted itself. */
static void reap(pid_t pid, const char *who)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		NEED(errno == EINTR);
	if (WIFSIGNALED(status)) {
		count(false);
		say("not ok DIED %s (observed death by signal %s)", who,
		    sigabbrev_np(WTERMSIG(status)));
	} else if (WEXITSTATUS(status) > 1) {
		count(false);
		say("not ok DIED %s (observed exit status %d)", who, WEXITSTATUS(status));
	}
}

void in_child(void (*fn)(void))
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	reap(pid, running);
}

void as_nobody(void (*fn)(void))
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0)
			NEED(setresgid(65534, 65534, 65534) == 0 &&
			     setresuid(65534, 65534, 65534) == 0);
		fn();
		_exit(0);
	}
	reap(pid, running);
}

static void round_of(struct worker *w, char work)
{
	NEED(write(w->tell, &work, 1) == 1 && read(w->told, &work, 1) == 1);
}

void worker_start(struct worker *w, void (*fn)(void))
{
	int to[2], from[2];
	char c;

	NEED(pipe(to) == 0 && pipe(from) == 0);
	w->pid = fork();
	NEED(w->pid >= 0);
	if (w->pid == 0) {
		close(to[1]);
		close(from[0]);
		while (read(to[0], &c, 1) == 1) {
			if (c)
				fn();
			if (write(from[1], &c, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	w->tell = to[1];
	w->told = from[0];
	/*
	 * What it executes after an answer has been executed before the answer to the second round.
	 */
	round_of(w, 0);
	round_of(w, 0);
}

void worker_work(struct worker *w)
{
	round_of(w, 1);
}

void worker_end(struct worker *w)
{
	close(w->tell);
	close(w->told);
	reap(w->pid, running);
}

void sleep_ms(int ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000L};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

void spin_ms(int ms)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec <
		 ms * 1000000L);
}

void exec_self(const char *name, int arg)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", arg);
	execl("/proc/self/exe", "conform", "--exec", name, number, (char *)NULL);
	_exit(126);
}

static int run_exec(const char *name, const char *arg)
{
	const struct conform_exec *const *e;

	for (e = __start_conform_execs; e < __stop_conform_execs; e++)
		if (strcmp((*e)->name, name) == 0)
			return (*e)->run(atoi(arg));
	return 125;
}

/*
 * The kernel writes the CPU's number into a thread's rseq area when it was preempted. In a forked
 * child that copies the page, a fault more at a moment that nobody chose: it is copied here.
 */
static void copy_rseq_page(void)
{
#if __GLIBC_PREREQ(2, 35)
	volatile char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	*area = *area;
#endif
}

static void run_one(const struct conform *c)
{
	pid_t pid;

	running = c->name;
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		/* No CONFORM takes a second; a lost wakeup must not hang the suite. */
		alarm(60);
		c->run();
		_exit(0);
	}
	reap(pid, c->name);
}

int main(int argc, char **argv)
{
	const struct conform *const *c;
	const char *only = NULL;
	long err;

	if (argc == 4 && strcmp(argv[1], "--exec") == 0)
		return run_exec(argv[2], argv[3]);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--observe") == 0) {
			observe = true;
		} else if (strcmp(argv[i], "--list") == 0) {
			for (c = __start_conform_tests; c < __stop_conform_tests; c++)
				say("%s", (*c)->name);
			return 0;
		} else {
			only = argv[i];
		}
	}
	NEED(pthread_atfork(NULL, NULL, copy_rseq_page) == 0);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	NEED(tally != MAP_FAILED);

	err = try_self(sw_attr(PERF_COUNT_SW_DUMMY));
	if (err == -ENOSYS || err == -EACCES || err == -EPERM) {
		fprintf(stderr, "skipped: perf_event_open answers %s to everything here\n",
			err_name(err));
		return 77;
	}
	for (c = __start_conform_tests; c < __stop_conform_tests; c++)
		if (!only || strstr((*c)->name, only))
			run_one(*c);
	if (!observe && tally->skipped && !tally->passed && !tally->failed) {
		fprintf(stderr, "skipped: this machine has nothing of what is looked at\n");
		return 77;
	}
	if (!observe)
		say("# %d passed, %d failed, %d skipped", tally->passed, tally->failed,
		    tally->skipped);
	return tally->failed ? 1 : 0;
}
