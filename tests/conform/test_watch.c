/*
 * Breakpoints on data: which accesses count, by which instructions and from where, and what samples
 * and signals of them say [TYPE-06, ATTR-43..45, IOC-12, SAMP-02, SAMP-05, OVF-11].
 */
#include "breakpoints-fire.h"
#include "conform/conform.h"

#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <ucontext.h>

#define PAGE 4096

static _Alignas(64) volatile u8 bytes[64];

static struct pe_attr watch(volatile const void *at, u32 type, u64 len)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_BREAKPOINT, 0);

	attr.bp_type = type;
	attr.bp_addr = (u64)at;
	attr.bp_len = len;
	return attr;
}

/* All of a machine's debug registers may be somebody else's. */
static bool possible(void)
{
	bool some = try_self(watch(bytes, HW_BREAKPOINT_W, 1)) == 0;

	if (some && breakpoints_fire(HW_BREAKPOINT_W))
		return true;
	skip_row("TYPE-06", "breakpoints on data",
		 some ? BREAKPOINTS_NEVER_FIRE : "this machine has none free");
	return false;
}

static int must_open(struct pe_attr attr)
{
	long fd = ev_self(attr);

	NEED(fd >= 0);
	return (int)fd;
}

static void on(int fd)
{
	NEED(!ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) && !ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
}

static u64 off(int fd)
{
	NEED(!ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	return ev_count(fd);
}

static volatile u8 sink;

static __attribute__((noinline)) void each_byte(void)
{
	for (int i = 0; i < 64; i++)
		bytes[i] = 1;
	for (int i = 0; i < 64; i++)
		sink = bytes[i];
}

static long touched(u32 type, u64 len, int at)
{
	int fd = must_open(watch(bytes + at, type, len));
	u64 n;

	on(fd);
	each_byte();
	n = off(fd);
	close(fd);
	return (long)n;
}

CONFORM(lengths)
{
	struct pe_attr attr;

	if (!possible())
		return;
	check_val("ATTR-45", "writes to 1 byte", touched(HW_BREAKPOINT_W, 1, 5), 1);
	check_val("ATTR-45", "writes to 2 bytes", touched(HW_BREAKPOINT_W, 2, 6), 2);
	check_val("ATTR-45", "writes to 4 bytes", touched(HW_BREAKPOINT_W, 4, 12), 4);
	check_val("ATTR-45", "writes to 8 bytes", touched(HW_BREAKPOINT_W, 8, 32), 8);
	check_val("ATTR-43", "accesses to 1 byte", touched(HW_BREAKPOINT_RW, 1, 63), 2);
	check_val("ATTR-43", "accesses to 2 bytes", touched(HW_BREAKPOINT_RW, 2, 62), 4);
	check_val("ATTR-43", "accesses to 4 bytes", touched(HW_BREAKPOINT_RW, 4, 0), 8);
	check_val("ATTR-43", "accesses to 8 bytes", touched(HW_BREAKPOINT_RW, 8, 0), 16);
	check_err("ATTR-43", "reads alone", try_self(watch(bytes, HW_BREAKPOINT_R, 1)), EINVAL);
	check_err("ATTR-45", "3 bytes", try_self(watch(bytes, HW_BREAKPOINT_W, 3)), EINVAL);
	check_err("ATTR-44", "2 bytes at an odd address",
		  try_self(watch(bytes + 1, HW_BREAKPOINT_W, 2)), EINVAL);
	attr = watch((void *)0xffffffff81000000, HW_BREAKPOINT_W, 8);
	check_err("TYPE-06", "in the kernel, without the kernel", try_self(attr), EINVAL);
}

#ifdef __x86_64__
/* What an instruction does, or a few, of which one has to do with the eight bytes at @at. */
#define INSNS(name, text)                                                          \
	__attribute__((naked, noinline)) static void name(volatile void *at        \
							  __attribute__((unused))) \
	{                                                                          \
		__asm__(text "\nret");                                             \
	}

INSNS(store, "movq %rdi, (%rdi)")
INSNS(load, "movq (%rdi), %rax")
INSNS(store_beside, "movb $1, 8(%rdi)\nmovb $1, -1(%rdi)")
INSNS(store_across, "movq %rdi, 7(%rdi)")
INSNS(store_vector, "pxor %xmm0, %xmm0\nmovups %xmm0, -8(%rdi)")
INSNS(add, "incq (%rdi)")
INSNS(locked, "lock incq (%rdi)")
INSNS(exchange, "xchgq %rax, (%rdi)")
INSNS(pushed, "movq %rsp, %rax\nleaq 8(%rdi), %rsp\npushq %rax\npopq %rsp")
INSNS(pushed_constant, "movq %rsp, %rax\nleaq 8(%rdi), %rsp\npushq $7\nmovq %rax, %rsp")
INSNS(called, "movq %rsp, %rsi\nleaq 8(%rdi), %rsp\ncall 1f\n"
	      "1: movq %rsi, %rsp")
INSNS(called_and_returned, "movq %rsp, %rsi\nleaq 8(%rdi), %rsp\ncall 2f\n"
			   "movq %rsi, %rsp\njmp 1f\n2: ret\n1:")
INSNS(called_indirectly, "leaq 2f(%rip), %rax\nmovq %rax, (%rdi)\ncall *(%rdi)\njmp 1f\n2: ret\n1:")
INSNS(jumped_indirectly, "leaq 1f(%rip), %rax\nmovq %rax, (%rdi)\njmp *(%rdi)\n1:")
INSNS(returned_only,
      "movq %rsp, %rsi\nleaq 1f(%rip), %rax\nmovq %rax, 8(%rdi)\nleaq 8(%rdi), %rsp\n"
      "movq 8(%rdi), %rax\nmovq %rax, (%rdi)\nmovq %rdi, %rsp\nret\n1: movq %rsi, %rsp")
INSNS(moved, "movq %rdi, %rsi\nmovsq")
INSNS(prefetched, "prefetcht0 (%rdi)")
INSNS(flushed, "clflush (%rdi)")
INSNS(nothing, "nopl (%rdi)\nleaq (%rdi), %rax")
INSNS(by_its_end, "movb $1, 7(%rdi)")

static const struct {
	const char *written, *accessed;
	void (*fn)(volatile void *at);
	int writes, accesses;
} kinds[] = {
	{"a store", "a store, accessed", store, 1, 1},
	{"a load", "a load, accessed", load, 0, 1},
	{"stores beside", "stores beside, accessed", store_beside, 0, 0},
	{"a store across the end", "a store across the end, accessed", store_across, 1, 1},
	{"a vector's store", "a vector's store, accessed", store_vector, 1, 1},
	{"an addition", "an addition, accessed", add, 1, 1},
	{"a locked one", "a locked one, accessed", locked, 1, 1},
	{"an exchange", "an exchange, accessed", exchange, 1, 1},
	{"push and pop", "push and pop, accessed", pushed, 1, 2},
	{"push of a constant", "push of a constant, accessed", pushed_constant, 1, 1},
	{"a call", "a call, accessed", called, 1, 1},
	{"a call and its return", "a call and its return, accessed", called_and_returned, 1, 2},
	{"an indirect call", "an indirect call, accessed", called_indirectly, 1, 2},
	{"an indirect jump", "an indirect jump, accessed", jumped_indirectly, 1, 2},
	{"a return without a call", "a return without a call, accessed", returned_only, 1, 2},
	{"a string instruction", "a string instruction, accessed", moved, 1, 1},
	{"a prefetch", "a prefetch, accessed", prefetched, 0, 0},
	{"a flush", "a flush, accessed", flushed, 0, 1},
	{"a nop", "a nop, accessed", nothing, 0, 0},
	{"the last byte", "the last byte, accessed", by_its_end, 1, 1},
};

CONFORM(instructions)
{
	int w, rw;

	if (!possible())
		return;
	w = must_open(watch(bytes + 32, HW_BREAKPOINT_W, 8));
	rw = must_open(watch(bytes + 32, HW_BREAKPOINT_RW, 8));
	for (u32 i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		on(w);
		on(rw);
		for (int k = 0; k < 10; k++)
			kinds[i].fn(bytes + 32);
		check_val("TYPE-06", kinds[i].accessed, (long)off(rw), 10 * kinds[i].accesses);
		check_val("TYPE-06", kinds[i].written, (long)off(w), 10 * kinds[i].writes);
	}
}

struct sample {
	u64 ip, addr, abi, rax, rdi, pc;
};

/* The instruction behind the one that has accessed. */
extern const char watch_next[];
INSNS(marked, "movl $0x1234, %eax\nmovl %eax, (%rdi)\n.globl watch_next\nwatch_next: movl $1, %eax")

static struct pe_attr sampled(volatile const void *at, u64 period)
{
	struct pe_attr attr = watch(at, HW_BREAKPOINT_W, 4);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER;
	attr.sample_regs_user = BIT(0) | BIT(5) | BIT(8); /* rax, rdi, rip */
	return attr;
}

CONFORM(samples)
{
	struct perf_event_mmap_page *page;
	struct {
		struct perf_event_header header;
		struct sample s;
	} r;
	int fd;

	if (!possible())
		return;
	fd = must_open(sampled(bytes + 8, 3));
	page = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	on(fd);
	for (int i = 0; i < 10; i++)
		marked(bytes + 8);
	check_val("OVF-01", "accesses that are sampled", (long)off(fd), 10);
	check_val("OVF-01", "samples with a period of 3", (long)(page->data_head / sizeof(r)), 3);
	memcpy(&r, (u8 *)page + PAGE, sizeof(r));
	check_val("SAMP-02", "the instruction is the next one", r.s.ip == (u64)watch_next, 1);
	check_val("SAMP-05", "the address is the breakpoint's", r.s.addr == (u64)(bytes + 8), 1);
	check_val("SAMP-14", "the registers are those behind the access",
		  r.s.rax == 0x1234 && r.s.rdi == (u64)(bytes + 8) && r.s.pc == (u64)watch_next, 1);
	check_val("MISC-02", "it was in user mode",
		  (r.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER, 1);
	NEED(!ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	for (int i = 0; i < 20; i++)
		marked(bytes + 8);
	check_val("DES-05", "after two more it is off", (long)(page->data_head / sizeof(r)), 5);
}

static volatile int traps, right_traps, late_traps, code_right;
static volatile u64 trapped_at;

static void on_trap(int sig, siginfo_t *si, void *context)
{
	const struct perf_siginfo *perf = (const struct perf_siginfo *)si;
	const ucontext_t *uc = context;

	(void)sig;
	traps++;
	code_right += perf->code == TRAP_BY_PERF && perf->type == PERF_TYPE_BREAKPOINT &&
		      perf->data == 0xfedcba9876543210 && perf->addr == trapped_at;
	right_traps += (u64)uc->uc_mcontext.gregs[REG_RIP] == (u64)watch_next &&
		       uc->uc_mcontext.gregs[REG_RAX] == 0x1234;
	late_traps += perf->flags;
}

static struct pe_attr trapping(volatile const void *at)
{
	struct pe_attr attr = watch(at, HW_BREAKPOINT_W, 4);

	attr.sample_period = 1;
	attr.sigtrap = attr.remove_on_exec = 1;
	attr.sig_data = 0xfedcba9876543210;
	return attr;
}

/* What is watched is there, and in a page of the usual size. */
CONFORM(pages)
{
	struct {
		struct perf_event_header header;
		u64 addr, phys, page;
	} r;
	struct pe_attr attr = watch(bytes, HW_BREAKPOINT_W, 1);
	struct perf_event_mmap_page *page;
	int fd;

	if (!possible())
		return;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	if (try_self(attr) == -EACCES) {
		skip_row("SAMP-20", "PHYS_ADDR", "it takes the right to see the kernel");
		return;
	}
	fd = must_open(attr);
	page = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	on(fd);
	bytes[0] = 1;
	off(fd);
	memcpy(&r, (u8 *)page + PAGE, sizeof(r));
	check_val("SAMP-05", "the address", r.addr == (u64)bytes, 1);
	check_val("SAMP-20", "and PHYS_ADDR are at one place of their pages",
		  r.phys && r.phys % PAGE == (u64)bytes % PAGE, 1);
	check_val("SAMP-22", "DATA_PAGE_SIZE of what is watched", (long long)r.page, PAGE);
	munmap(page, 9 * PAGE);
	close(fd);
}

CONFORM(sigtrap)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	sigset_t set;
	int fd;

	if (!possible())
		return;
	if (try_self(trapping(bytes))) {
		skip_row("OVF-11", "sigtrap", "attr.sigtrap is of Linux 5.13");
		return;
	}
	NEED(!sigaction(SIGTRAP, &sa, NULL));
	trapped_at = (u64)(bytes + 16);
	fd = must_open(trapping(bytes + 16));
	on(fd);
	for (int i = 0; i < 50; i++)
		marked(bytes + 16);
	check_val("OVF-11", "the count", (long)off(fd), 50);
	check_val("OVF-11", "a SIGTRAP for each access", traps, 50);
	check_val("OVF-11", "with code, address, data and type", code_right, 50);
	check_val("OVF-11", "behind the instruction", right_traps, 50);
	check_val("OVF-11", "and no flag", late_traps, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	on(fd);
	for (int i = 0; i < 20; i++)
		marked(bytes + 16);
	check_val("OVF-11", "the count while it is blocked", (long)off(fd), 20);
	check_val("OVF-11", "no signal while it is blocked", traps, 50);
	NEED(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	check_val("OVF-11", "one when it is not any more", traps, 51);
	check_val("OVF-11", "which says that it is late", late_traps, 1);
}

CONFORM_EXEC(after_exec)
{
	(void)arg;
	each_byte();
	return 0;
}

CONFORM(sigtrap_and_exec)
{
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	pid_t child;
	int status;

	if (!possible() || try_self(trapping(bytes)))
		return;
	for (int execs = 0; execs < 2; execs++) {
		child = fork();
		if (!child) {
			int fd = must_open(trapping(bytes));

			if (execs)
				NEED(!sigaction(SIGTRAP, &sa, NULL));
			on(fd);
			if (!execs)
				each_byte();
			exec_self("after_exec", 0);
		}
		NEED(child > 0 && waitpid(child, &status, 0) == child);
		if (!execs)
			check_val("OVF-11", "by default it ends the program",
				  WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP, 1);
		else
			check_val("ATTR-40", "another program gets none", status, 0);
	}
}

/* Code beside the data, which is written again and again. */
CONFORM(changing_code)
{
	static const u8 code[] = {0x89, 0x37, 0xc3}; /* mov %esi, (%rdi); ret */
	u8 *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	int w, rw, on_code;

	if (!possible() || at == MAP_FAILED)
		return;
	w = must_open(watch(at + 64, HW_BREAKPOINT_W, 4));
	rw = must_open(watch(at + 64, HW_BREAKPOINT_RW, 4));
	on_code = must_open(watch(at, HW_BREAKPOINT_RW, 2));
	on(w);
	on(rw);
	on(on_code);
	for (int i = 0; i < 200; i++) {
		for (u32 k = 0; k < sizeof(code); k++)
			((volatile u8 *)at)[k] = code[k];
		((void (*)(void *, int))at)(at + 64, i);
		sink = ((volatile u8 *)at)[64];
	}
	check_val("TYPE-06", "writes beside code that changes", (long)off(w), 200);
	check_val("TYPE-06", "accesses beside code that changes", (long)off(rw), 400);
	check_val("TYPE-06", "accesses to the code, which are not its execution",
		  (long)off(on_code), 400);
}
#endif

/* What a system call does to it is the kernel's. */
CONFORM(system_calls)
{
	struct pe_attr attr = watch(bytes, HW_BREAKPOINT_W, 8);
	int user, both = -1, fds[2];

	if (!possible())
		return;
	user = must_open(attr);
	attr.exclude_kernel = 0;
	both = (int)ev_self(attr);
	NEED(!pipe(fds));
	on(user);
	if (both >= 0)
		on(both);
	for (int i = 0; i < 10; i++) {
		NEED(write(fds[1], "1", 1) == 1);
		NEED(read(fds[0], (void *)bytes, 1) == 1);
		bytes[0] = 0;
	}
	if (both >= 0)
		check_val("TYPE-06", "writes of the program's and the kernel's", (long)off(both),
			  20);
	else
		skip_row("TYPE-06", "writes of the program's and the kernel's", "not for us");
	check_val("TYPE-06", "of the program's alone", (long)off(user), 10);
}

static pthread_barrier_t barrier;
static long of_thread[4];

/* All on one page, each its own. */
static void *with_its_own(void *arg)
{
	long n = (long)arg;
	int fd = must_open(watch(bytes + 8 * n, HW_BREAKPOINT_W, 8));

	on(fd);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 1000; i++)
		for (int k = 0; k < 4; k++)
			bytes[8 * k + n] = 1;
	of_thread[n] = (long)off(fd);
	pthread_barrier_wait(&barrier);
	return NULL;
}

CONFORM(threads)
{
	pthread_t t[4];
	int right = 0;

	if (!possible())
		return;
	NEED(!pthread_barrier_init(&barrier, NULL, 4));
	for (long i = 0; i < 4; i++)
		NEED(!pthread_create(&t[i], NULL, with_its_own, (void *)i));
	for (int i = 0; i < 4; i++)
		NEED(!pthread_join(t[i], NULL));
	for (int i = 0; i < 4; i++)
		right += of_thread[i] == 1000;
	check_val("TYPE-06", "threads that write to one page, each watching its own", right, 4);
}

static void *writes(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		bytes[0] = 1;
	return NULL;
}

CONFORM(inherited)
{
	struct pe_attr attr = watch(bytes, HW_BREAKPOINT_W, 1);
	pthread_t t;
	pid_t pid;
	int fd, own;

	if (!possible())
		return;
	own = must_open(attr);
	attr.inherit = 1;
	fd = must_open(attr);
	on(own);
	on(fd);
	writes((void *)1);
	NEED(!pthread_create(&t, NULL, writes, (void *)10));
	NEED(!pthread_join(t, NULL));
	pid = fork();
	if (!pid) {
		writes((void *)100);
		_exit(0);
	}
	NEED(waitpid(pid, NULL, 0) == pid);
	/* A task that is not there any more when its parent's are read. */
	pid = vfork();
	if (!pid) {
		bytes[0] = 2;
		_exit(0);
	}
	NEED(waitpid(pid, NULL, 0) == pid);
	check_val("INH-01", "writes of threads and children", (long)off(fd), 112);
	check_val("TYPE-06", "of the thread alone", (long)off(own), 1);
}

/* Each begins on another CPU than its parent. */
CONFORM(children_at_once)
{
	struct pe_attr attr = watch(bytes, HW_BREAKPOINT_W, 1);
	int fd;

	if (!possible())
		return;
	attr.inherit = 1;
	fd = must_open(attr);
	on(fd);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (!pid) {
			bytes[0] = 1;
			bytes[0] = 2;
			_exit(0);
		}
		NEED(pid > 0);
	}
	while (wait(NULL) > 0)
		;
	check_val("INH-01", "writes of 40 children at once", (long)off(fd), 80);
}

/* Where every program may map something. */
#define EVERYWHERE ((u8 *)0x20000000)

CONFORM_EXEC(writes_everywhere)
{
	volatile u8 *at = mmap(EVERYWHERE, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (at == MAP_FAILED)
		return 1;
	for (int i = 0; i < 100; i++)
		at[8] = 1;
	if (arg)
		exec_self("writes_everywhere", arg - 1);
	return 0;
}

CONFORM(programs)
{
	struct pe_attr attr = watch(EVERYWHERE + 8, HW_BREAKPOINT_W, 8);
	int go[2], status;
	pid_t pid;
	long fd;
	u8 byte;

	if (!possible())
		return;
	NEED(!pipe(go));
	pid = fork();
	if (!pid) {
		NEED(read(go[0], &byte, 1) == 1);
		exec_self("writes_everywhere", 2);
	}
	attr.enable_on_exec = 1;
	fd = ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0);
	NEED(write(go[1], "x", 1) == 1 && waitpid(pid, &status, 0) == pid && !status);
	check_val("ATTR-19", "writes of three programs, one after the other",
		  (long)ev_count((int)fd), 300);
}

CONFORM(moved_about)
{
	struct pe_attr attr = watch(bytes, HW_BREAKPOINT_W, 1), wrong;
	int fd;

	if (!possible())
		return;
	fd = must_open(attr);
	on(fd);
	writes((void *)5);
	check_val("IOC-12", "before it is moved", (long)ev_count(fd), 5);
	attr.bp_addr = (u64)(bytes + 32);
	attr.bp_len = 4;
	attr.disabled = 0;
	check_err("IOC-12", "moving it, with another length",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), 0);
	writes((void *)5);
	each_byte();
	check_val("IOC-12", "where it was moved to", (long)ev_count(fd), 9);
	attr.bp_type = HW_BREAKPOINT_RW;
	check_err("IOC-12", "reads as well",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), 0);
	each_byte();
	check_val("IOC-12", "counts them", (long)ev_count(fd), 17);
	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_addr = (u64)each_byte;
	attr.bp_len = sizeof(long);
	check_err("IOC-12", "to a function",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), 0);
	each_byte();
	check_val("IOC-12", "counts its execution", (long)ev_count(fd), 18);
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (u64)bytes;
	attr.bp_len = 1;
	check_err("IOC-12", "and back",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), 0);
	writes((void *)5);
	check_val("IOC-12", "counts writes again", (long)off(fd), 23);
	wrong = attr;
	wrong.bp_len = 3;
	check_err("IOC-12", "to a length that is none",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&wrong), EINVAL);
}

CONFORM(registers)
{
	int fds[5], n = 0;
	long err = 0;

	if (!possible())
		return;
	while (n < 5) {
		fds[n] = (int)(err = ev_self(watch(bytes + 8 * n, HW_BREAKPOINT_W, 8)));
		if (err < 0)
			break;
		n++;
	}
#ifdef __x86_64__
	check_val("TYPE-06", "breakpoints on data that there are", n, 4);
	check_err("ERR-10", "one more", err, ENOSPC);
#endif
	for (int i = 0; i < n; i++)
		on(fds[i]);
	each_byte();
	for (int i = 0; i < n; i++)
		if (off(fds[i]) != 8)
			n = -1;
	CHECK_ROW("TYPE-06", n > 0, "each counts its own", "%d", n);
}

/* Those of a CPU see each task there. */
CONFORM(of_cpus)
{
	struct pe_attr attr = watch(bytes, HW_BREAKPOINT_W, 1);
	cpu_set_t set;
	long fd = ev_open(&attr, -1, 0, -1, 0);
	pid_t pid;

	if (fd < 0) {
		skip_row("TYPE-06", "writes on a CPU", "not for us");
		return;
	}
	if (!possible())
		return;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set));
	on((int)fd);
	writes((void *)10);
	pid = fork();
	if (!pid) {
		writes((void *)100);
		_exit(0);
	}
	NEED(waitpid(pid, NULL, 0) == pid);
	check_val("TYPE-06", "writes on a CPU", (long)off((int)fd), 110);
}

/* On the stack, below which signal frames are written and to which calls return. */
static volatile int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static __attribute__((noinline)) void deep(int n)
{
	volatile u64 here[4] = {0};

	if (n)
		deep(n - 1);
	sink = (u8)(here[0] + (u64)n);
}

CONFORM(stack)
{
	volatile u64 word = 0;
	int fd;

	if (!possible())
		return;
	signal(SIGUSR1, on_signal);
	fd = must_open(watch(&word, HW_BREAKPOINT_RW, 8));
	on(fd);
	for (int i = 0; i < 20; i++) {
		word = (u64)i;
		deep(10);
		raise(SIGUSR1);
		sink = (u8)word;
	}
	check_val("TYPE-06", "accesses to a word on the stack", (long)off(fd), 40);
}
