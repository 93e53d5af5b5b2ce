/*
 * Breakpoints on execution, wherever it comes from [TYPE-06, ATTR-43..45, IOC-12, SAMP-05, OVF-11].
 */
#include "breakpoints-fire.h"
#include "conform/conform.h"

#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

/* One place, that every call goes to. */
#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif

#define PAGE 4096

static volatile int word;

ALONE static void target(void)
{
	word++;
	__asm__ volatile("");
}

ALONE static void other(void)
{
	word--;
	__asm__ volatile("");
}

static struct pe_attr exec_at(u64 fn)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_BREAKPOINT, 0);

	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_addr = fn;
	attr.bp_len = sizeof(long);
	return attr;
}

/* All of a machine's debug registers may be somebody else's. */
static bool possible(void)
{
	bool some = try_self(exec_at((u64)target)) == 0;

	if (some && breakpoints_fire(HW_BREAKPOINT_X))
		return true;
	skip_row("TYPE-06", "breakpoints",
		 some ? BREAKPOINTS_NEVER_FIRE : "this machine has no breakpoint free");
	return false;
}

static void times(int n)
{
	for (int i = 0; i < n; i++) {
		target();
		other();
		other();
	}
}

static u64 counted(int fd, int n)
{
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	times(n);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return ev_count(fd);
}

static int must_open(struct pe_attr attr)
{
	long fd = ev_self(attr);

	NEED(fd >= 0);
	return (int)fd;
}

CONFORM(counts)
{
	struct pe_attr attr;
	int fd;

	if (!possible())
		return;
	times(3);
	fd = must_open(exec_at((u64)target));
	check_val("TYPE-06", "executions of a function", (long)counted(fd, 10), 10);
	check_val("TYPE-06", "again", (long)counted(fd, 1000), 1000);
	check_val("TYPE-06", "of another one beside it",
		  (long)counted(must_open(exec_at((u64)other)), 10), 20);
	attr = exec_at((u64)target);
	attr.exclude_user = 1;
	if (ev_self(attr) >= 0)
		check_val("TYPE-06", "without user mode", (long)counted((int)ev_self(attr), 10), 0);
	else
		skip_row("TYPE-06", "without user mode", "not for us");
}

static void *thread(void *arg)
{
	times((int)(long)arg);
	return NULL;
}

CONFORM(whose)
{
	struct pe_attr attr = exec_at((u64)target);
	pthread_t other_thread;
	pid_t pid;
	int fd, own;

	if (!possible())
		return;
	own = must_open(attr);
	attr.inherit = 1;
	fd = must_open(attr);
	ioctl(own, PERF_EVENT_IOC_ENABLE, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	times(1);
	NEED(!pthread_create(&other_thread, NULL, thread, (void *)10));
	pthread_join(other_thread, NULL);
	pid = fork();
	if (!pid) {
		times(100);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(own, PERF_EVENT_IOC_DISABLE, 0);
	check_val("INH-01", "executions of threads and children", (long)ev_count(fd), 111);
	check_val("TYPE-06", "of the thread alone", (long)ev_count(own), 1);
}

#define MANY 30000

/*
 * The thread runs on while somebody outside brings it to another CPU and has its events put on the
 * counters anew.
 */
CONFORM(moved)
{
	struct pe_attr attr = exec_at((u64)target);
	struct perf_event_mmap_page *page;
	long fd, samples = 0, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int go[2], status;
	pid_t pid;
	char c;

	if (!possible())
		return;
	NEED(pipe(go) == 0);
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &c, 1) == 1);
		times(MANY);
		_exit(0);
	}
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_CPU;
	fd = ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0);
	page = mmap(NULL, 129 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	NEED(page != MAP_FAILED);
	ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0);
	NEED(write(go[1], "x", 1) == 1);
	for (int i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(i % cpus, &set);
		sched_setaffinity(pid, sizeof(set), &set);
		for (int n = 0; n < 20; n++) {
			struct pe_attr beside = exec_at((u64)other);
			long fd2 = ev_open(&beside, pid, -1, -1, 0);

			if (fd2 >= 0)
				close((int)fd2);
		}
	}
	check_val("TYPE-06", "executions of one who is moved", (long)ev_count((int)fd), MANY);
	for (u64 at = 0; at < page->data_head; samples++)
		at += ((const struct perf_event_header *)((u8 *)page + PAGE + at))->size;
	check_val("OVF-11", "samples of one who is moved", samples, MANY);
}

CONFORM(samples)
{
	struct pe_attr attr = exec_at((u64)target);
	struct perf_event_mmap_page *page;
	struct {
		struct perf_event_header header;
		u64 ip, addr;
	} s;
	int fd;

	if (!possible())
		return;
	attr.sample_period = 3;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
	fd = must_open(attr);
	page = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	check_val("OVF-01", "executions that are sampled", (long)counted(fd, 10), 10);
	check_val("OVF-01", "samples with a period of 3", (long)page->data_head / 24, 3);
	memcpy(&s, (u8 *)page + PAGE, sizeof(s));
	check_val("SAMP-02", "the instruction is where the breakpoint is", s.ip == (u64)target, 1);
	check_val("SAMP-05", "the address is the breakpoint's", s.addr == (u64)target, 1);
	check_val("MISC-02", "it was in user mode",
		  (s.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER, 1);
}

#ifdef __x86_64__
__attribute__((naked, noinline)) static void faulting(char *at __attribute__((unused)))
{
	__asm__("movl (%rdi), %eax\n"
		"ret");
}

static char *page;

static void repair(int sig)
{
	(void)sig;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* The instruction is executed again, but was told of. */
CONFORM(pages)
{
	struct pe_attr attr = exec_at((u64)target);
	struct {
		struct perf_event_header header;
		u64 addr, page;
	} r;
	struct perf_event_mmap_page *ring;
	int fd;

	if (!possible())
		return;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	fd = (int)ev_self(attr);
	ring = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(ring != MAP_FAILED && !ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	times(1);
	NEED(!ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	memcpy(&r, (u8 *)ring + PAGE, sizeof(r));
	check_val("SAMP-05", "ADDR is the code", r.addr == (u64)target, 1);
	check_val("SAMP-22", "DATA_PAGE_SIZE is of its page", (long long)r.page, PAGE);
	munmap(ring, 9 * PAGE);
	close(fd);
}

CONFORM(faults)
{
	int fd;

	if (!possible())
		return;
	page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(page != MAP_FAILED);
	signal(SIGSEGV, repair);
	fd = must_open(exec_at((u64)faulting));
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	faulting(page);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	check_val("TYPE-06", "an instruction that faults and is executed again", (long)ev_count(fd),
		  1);
}
#endif

#ifdef __x86_64__
static volatile int traps, right_traps, late_traps, before;

static void on_trap(int sig, siginfo_t *si, void *context)
{
	const struct perf_siginfo *perf = (const struct perf_siginfo *)si;
	const ucontext_t *uc = context;

	(void)sig;
	traps++;
	right_traps += perf->code == TRAP_BY_PERF && perf->type == PERF_TYPE_BREAKPOINT &&
		       perf->data == 0xfedcba9876543210 && perf->addr == (u64)target;
	before += (u64)uc->uc_mcontext.gregs[REG_RIP] == (u64)target && word == traps - 1;
	late_traps += (int)perf->flags;
}

CONFORM(sigtrap)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct pe_attr attr = exec_at((u64)target);
	sigset_t set;
	int fd;

	if (!possible())
		return;
	attr.sample_period = 1;
	attr.sigtrap = attr.remove_on_exec = 1;
	attr.sig_data = 0xfedcba9876543210;
	if (try_self(attr)) {
		skip_row("OVF-11", "sigtrap", "attr.sigtrap is of Linux 5.13");
		return;
	}
	NEED(!sigaction(SIGTRAP, &sa, NULL));
	fd = must_open(attr);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 20; i++)
		target();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	check_val("OVF-11", "executions", (long)ev_count(fd), 20);
	check_val("OVF-11", "a SIGTRAP for each", traps, 20);
	check_val("OVF-11", "with code, address, data and type", right_traps, 20);
	check_val("OVF-11", "before the instruction", before, 20);
	check_val("OVF-11", "and no flag", late_traps, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 20; i++)
		target();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	check_val("OVF-11", "none while it is blocked", traps, 20);
	NEED(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	check_val("OVF-11", "one when it is not any more", traps, 21);
	check_val("OVF-11", "which says that it is late", late_traps, 1);
}
#endif

static long modify(int fd, const struct pe_attr *attr)
{
	return ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)attr);
}

CONFORM(modified)
{
	struct pe_attr attr = exec_at((u64)target), wrong;
	int fd;

	if (!possible())
		return;
	fd = must_open(attr);
	check_val("IOC-12", "before it is moved", (long)counted(fd, 10), 10);
	attr.bp_addr = (u64)other;
	check_err("IOC-12", "moving a breakpoint", modify(fd, &attr), 0);
	check_val("IOC-12", "where it was moved to", (long)counted(fd, 10), 20);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	check_err("IOC-12", "the same again, disabled", modify(fd, &attr), 0);
	times(5);
	check_val("IOC-12", "leaves it off", (long)ev_count(fd), 20);
	attr.disabled = 0;
	check_err("IOC-12", "the same again, enabled", modify(fd, &attr), 0);
	times(5);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	check_val("IOC-12", "leaves it on", (long)ev_count(fd), 30);
	wrong = attr;
	wrong.exclude_user = 1;
	check_err("IOC-12", "another field", modify(fd, &wrong), EINVAL);
	wrong = attr;
	wrong.bp_len = 1;
	check_err("IOC-12", "a length that is none", modify(fd, &wrong), EINVAL);
	wrong = attr;
	wrong.type = PERF_TYPE_SOFTWARE;
	check_err("IOC-12", "another type of event", modify(fd, &wrong), EINVAL);
}
