/* Exact counts of instructions and branches in known code [HW-01, HW-04, READ-11, DES-02]. */
#include "conform/region.h"

#include <sys/prctl.h>

CONFORM(straight)
{
	int fd;

	if (no_pmu("HW-01", "straight code"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	check_exact("HW-01", "an empty region", REGION_COUNT(fd, ""), REGION_REST);
	check_exact("HW-01", "one nop", REGION_COUNT(fd, "nop"), REGION_REST + 1);
	check_exact("HW-01", "1,000 nops", REGION_COUNT(fd, ".rept 1000; nop; .endr"),
		    REGION_REST + 1000);
	check_exact("HW-01", "1,000 nops of nine bytes",
		    REGION_COUNT(fd, ".rept 1000; nopw 0x0(%%rax,%%rax,1); .endr"),
		    REGION_REST + 1000);
	check_exact("HW-01", "prefixes are no instructions",
		    REGION_COUNT(fd, ".rept 10; lock; incl (%%rbx); .endr"), REGION_REST + 10);
	check_exact(
		"HW-01", "vector code",
		REGION_COUNT(fd, ".rept 100; paddd %%xmm1, %%xmm0; mulps %%xmm1, %%xmm0; .endr"),
		REGION_REST + 200);
	check_exact("HW-01", "loads and stores",
		    REGION_COUNT(fd, ".rept 100; movq (%%rbx), %%r8; movq %%r8, 8(%%rbx); .endr"),
		    REGION_REST + 200);
	check_exact("HW-01", "pushes and pops",
		    REGION_COUNT(fd, "leaq -128(%%rsp), %%rsp\n"
				     ".rept 50; pushq %%r8; popq %%r9; .endr\n"
				     "leaq 128(%%rsp), %%rsp"),
		    REGION_REST + 102);
	check_exact("HW-01", "code that refers to itself by rip",
		    REGION_COUNT(fd, ".rept 20; leaq region_buffer(%%rip), %%r8; "
				     "movq region_buffer(%%rip), %%r9; .endr"),
		    REGION_REST + 40);
}

CONFORM(loops)
{
	int fd;

	if (no_pmu("HW-01", "loops"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	check_exact("HW-01", "a loop of 1,000 turns",
		    REGION_COUNT(fd, "movl $1000, %%ecx\n1: decl %%ecx\njnz 1b"),
		    REGION_REST + 2001);
	check_exact("HW-01", "a loop of 20,000 turns",
		    REGION_COUNT(fd, "movl $20000, %%ecx\n1: decl %%ecx\njnz 1b"),
		    REGION_REST + 40001);
	check_exact("HW-01", "two nested loops",
		    REGION_COUNT(
			    fd, "movl $100, %%r8d\n1: movl $50, %%ecx\n2: nop\ndecl %%ecx\njnz 2b\n"
				"decl %%r8d\njnz 1b"),
		    REGION_REST + 1 + 100 * (1 + 150 + 2));
	check_exact("HW-01", "the loop instruction",
		    REGION_COUNT(fd, "movl $77, %%ecx\n1: loop 1b"), REGION_REST + 78);
	check_exact("HW-01", "a loop left from its middle",
		    REGION_COUNT(fd, "movl $10, %%ecx\n1: decl %%ecx\njz 2f\nnop\njmp 1b\n2:"),
		    REGION_REST + 1 + 9 * 4 + 2);
}

CONFORM(strings)
{
	int fd;

	if (no_pmu("HW-01", "string instructions"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	/* rdi is the region's descriptor, so it is put aside: 2 instructions. */
	check_exact("HW-01", "rep stosb of 50 is one",
		    REGION_COUNT(fd, "movq %%rdi, %%r8\nmovq %%rbx, %%rdi\nmovl $50, %%ecx\n"
				     "xorl %%eax, %%eax\nrep stosb\nmovq %%r8, %%rdi"),
		    REGION_REST + 6);
	check_exact("HW-01", "rep stosb of 4,000 is one",
		    REGION_COUNT(fd, "movq %%rdi, %%r8\nmovq %%rbx, %%rdi\nmovl $4000, %%ecx\n"
				     "xorl %%eax, %%eax\nrep stosb\nmovq %%r8, %%rdi"),
		    REGION_REST + 6);
	check_exact("HW-01", "rep stosb of nothing is one",
		    REGION_COUNT(fd, "movq %%rdi, %%r8\nmovq %%rbx, %%rdi\nxorl %%ecx, %%ecx\n"
				     "xorl %%eax, %%eax\nrep stosb\nmovq %%r8, %%rdi"),
		    REGION_REST + 6);
	check_exact("HW-01", "rep movsb of 1,000 is one",
		    REGION_COUNT(fd,
				 "movq %%rdi, %%r8\nmovq %%rbx, %%rsi\nleaq 2000(%%rbx), %%rdi\n"
				 "movl $1000, %%ecx\nrep movsb\nmovq %%r8, %%rdi"),
		    REGION_REST + 6);
	check_exact("HW-01", "repne scasb that ends early is one",
		    REGION_COUNT(fd, "movq %%rdi, %%r8\nmovq %%rbx, %%rdi\nmovl $1000, %%ecx\n"
				     "xorl %%eax, %%eax\nrepne scasb\nmovq %%r8, %%rdi"),
		    REGION_REST + 6);
	check_exact("HW-01", "stosb without rep is one each",
		    REGION_COUNT(fd, "movq %%rdi, %%r8\nmovq %%rbx, %%rdi\nxorl %%eax, %%eax\n"
				     ".rept 10; stosb; .endr\nmovq %%r8, %%rdi"),
		    REGION_REST + 14);
}

CONFORM(calls)
{
	int fd;

	if (no_pmu("HW-01", "calls"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	check_exact("HW-01", "ten direct calls",
		    REGION_COUNT(fd, "leaq -128(%%rsp), %%rsp\nmovl $10, %%ecx\n"
				     "1: call 2f\ndecl %%ecx\njnz 1b\njmp 3f\n2: nop\nret\n"
				     "3: leaq 128(%%rsp), %%rsp"),
		    REGION_REST + 2 + 10 * 5 + 2);
	check_exact("HW-01", "ten indirect calls",
		    REGION_COUNT(fd,
				 "leaq -128(%%rsp), %%rsp\nmovl $10, %%ecx\nleaq 2f(%%rip), %%r8\n"
				 "1: call *%%r8\ndecl %%ecx\njnz 1b\njmp 3f\n2: nop\nret\n"
				 "3: leaq 128(%%rsp), %%rsp"),
		    REGION_REST + 3 + 10 * 5 + 2);
	check_exact("HW-01", "a jump through a register",
		    REGION_COUNT(fd, "leaq 2f(%%rip), %%r8\njmp *%%r8\nnop\nnop\n2: nop"),
		    REGION_REST + 3);
	check_exact("HW-01", "a return to a pushed address",
		    REGION_COUNT(fd,
				 "leaq -128(%%rsp), %%rsp\nleaq 2f(%%rip), %%r8\npushq %%r8\nret\n"
				 "nop\n2: leaq 128(%%rsp), %%rsp"),
		    REGION_REST + 5);
}

/* What leaves user mode and comes back is one instruction. */
CONFORM(kernel)
{
	char *fresh;
	int fd;

	if (no_pmu("HW-01", "system calls and faults"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	check_exact("HW-01", "100 system calls",
		    REGION_COUNT(fd, ".rept 100; movl $110, %%eax; syscall; .endr"),
		    REGION_REST + 200);
	check_exact("HW-01", "cpuid",
		    REGION_COUNT(fd, "movq %%rbx, %%r8\nmovq %%rdx, %%r9\nxorl %%eax, %%eax\n"
				     "cpuid\nmovq %%r9, %%rdx\nmovq %%r8, %%rbx"),
		    REGION_REST + 6);
	check_exact("HW-01", "rdtsc", REGION_COUNT(fd, "movq %%rdx, %%r9\nrdtsc\nmovq %%r9, %%rdx"),
		    REGION_REST + 3);
	fresh = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(fresh != MAP_FAILED && madvise(fresh, 64 * 4096, MADV_NOHUGEPAGE) == 0);
	*(char **)region_buffer = fresh;
	check_exact("HW-01", "stores that fault count once",
		    REGION_COUNT(fd, "movq (%%rbx), %%r8\nmovl $64, %%ecx\n"
				     "1: movb $1, (%%r8)\naddq $4096, %%r8\ndecl %%ecx\njnz 1b"),
		    REGION_REST + 2 + 64 * 4);
}

asm(".globl conform_handler\n"
    "conform_handler: nop; nop; nop; ret\n"
    ".globl conform_restorer\n"
    "conform_restorer: movl $15, %eax; syscall\n");
extern char conform_handler[], conform_restorer[];

/* A handler's instructions are the thread's, and its return is two more. */
CONFORM(signals)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		u64 mask;
	} act = {conform_handler, 0x04000000 /* SA_RESTORER */, conform_restorer, 0};
	u64 none, one;
	int fd;

	if (no_pmu("HW-01", "signal handlers"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	*(u64 *)region_buffer = (u64)getpid();
	*(u64 *)(region_buffer + 8) = (u64)fd;
	/* kill(getpid(), 0), then with SIGUSR1: the handler runs before the next instruction. */
	none = REGION_COUNT(fd, "movq (%%rbx), %%rdi\nxorl %%esi, %%esi\nmovl $62, %%eax\nsyscall\n"
				"movq 8(%%rbx), %%rdi");
	check_exact("HW-01", "kill that sends nothing", none, REGION_REST + 5);
	NEED(syscall(SYS_rt_sigaction, SIGUSR1, &act, NULL, 8) == 0);
	one = REGION_COUNT(fd, "movq (%%rbx), %%rdi\nmovl $10, %%esi\nmovl $62, %%eax\nsyscall\n"
			       "movq 8(%%rbx), %%rdi");
	check_exact("HW-01", "a signal handler of 4 instructions and its return", one,
		    REGION_REST + 5 + 6);
}

/* Code that is written while the region runs. */
CONFORM(written_code)
{
	unsigned char *code;
	int fd;

	if (no_pmu("HW-01", "code that is written"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	NEED(code != MAP_FAILED);
	memset(code, 0x90, 100);
	code[100] = 0xc3;
	*(void **)region_buffer = code;
	check_exact("HW-01", "a function of 100 nops",
		    REGION_COUNT(fd, "leaq -128(%%rsp), %%rsp\nmovq (%%rbx), %%r8\ncall *%%r8\n"
				     "leaq 128(%%rsp), %%rsp"),
		    REGION_REST + 4 + 101);
	check_exact("HW-01", "the same, cut to 10 within the region",
		    REGION_COUNT(fd, "leaq -128(%%rsp), %%rsp\nmovq (%%rbx), %%r8\n"
				     "movb $0xc3, 10(%%r8)\ncall *%%r8\nleaq 128(%%rsp), %%rsp"),
		    REGION_REST + 5 + 11);
}

/* Branches of a body: what a region with it has more than one without. */
static u64 empty_branches;

#define BRANCHES(fd, body) (REGION_COUNT(fd, body) - empty_branches)

CONFORM(branches)
{
	int fd;

	if (no_pmu("HW-04", "branches"))
		return;
	fd = pmu_open(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, -1);
	empty_branches = REGION_COUNT(fd, "");
	CHECK_ROW("HW-04", empty_branches <= (virtual_world() ? 1 : 100),
		  "an empty region has no branch but the system call", "%lu", empty_branches);
	check_exact("HW-04", "1,000 nops", BRANCHES(fd, ".rept 1000; nop; .endr"), 0);
	check_exact("HW-04", "a jump", BRANCHES(fd, "jmp 1f\nnop\n1:"), 1);
	check_exact("HW-04", "a conditional branch that is taken",
		    BRANCHES(fd, "xorl %%eax, %%eax\njz 1f\nnop\n1:"), 1);
	check_exact("HW-04", "a conditional branch that is not",
		    BRANCHES(fd, "xorl %%eax, %%eax\njnz 1f\nnop\n1:"), 1);
	check_exact("HW-04", "a loop of 1,000 turns",
		    BRANCHES(fd, "movl $1000, %%ecx\n1: decl %%ecx\njnz 1b"), 1000);
	check_exact("HW-04", "the loop instruction", BRANCHES(fd, "movl $77, %%ecx\n1: loop 1b"),
		    77);
	check_exact("HW-04", "jrcxz", BRANCHES(fd, "xorl %%ecx, %%ecx\njrcxz 1f\nnop\n1:"), 1);
	check_exact("HW-04", "ten calls and returns",
		    BRANCHES(fd, "leaq -128(%%rsp), %%rsp\nmovl $10, %%ecx\n"
				 "1: call 2f\ndecl %%ecx\njnz 1b\njmp 3f\n2: nop\nret\n"
				 "3: leaq 128(%%rsp), %%rsp"),
		    31);
	check_exact("HW-04", "ten indirect calls and returns",
		    BRANCHES(fd, "leaq -128(%%rsp), %%rsp\nmovl $10, %%ecx\nleaq 2f(%%rip), %%r8\n"
				 "1: call *%%r8\ndecl %%ecx\njnz 1b\njmp 3f\n2: nop\nret\n"
				 "3: leaq 128(%%rsp), %%rsp"),
		    31);
	check_exact("HW-04", "an indirect jump",
		    BRANCHES(fd, "leaq 2f(%%rip), %%r8\njmp *%%r8\nnop\n2: nop"), 1);
	check_exact("HW-04", "rep stosb is none",
		    BRANCHES(fd, "movq %%rdi, %%r8\nmovq %%rbx, %%rdi\nmovl $50, %%ecx\n"
				 "xorl %%eax, %%eax\nrep stosb\nmovq %%r8, %%rdi"),
		    0);
	check_exact("HW-04", "cmov and setcc are none",
		    BRANCHES(fd, "xorl %%eax, %%eax\ncmovzl %%eax, %%ecx\nsetz %%cl"), 0);
}

CONFORM(repeated)
{
	u64 first, v[2];
	bool same = true;
	int fd;

	if (no_pmu("IOC-01", "a region counted again"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	first = REGION_COUNT(fd, ".rept 100; nop; .endr");
	for (int i = 0; i < 50; i++)
		same &= REGION_COUNT(fd, ".rept 100; nop; .endr") == first || !virtual_world();
	CHECK_ROW("IOC-04", same, "50 times the same region, the same count", "first %lu", first);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0);
	for (int i = 0; i < 10; i++)
		REGION(fd, ".rept 100; nop; .endr");
	check_exact("IOC-01", "ENABLE and DISABLE ten times: the sum", ev_count(fd),
		    10 * (REGION_REST + 100));
	v[0] = ev_count(fd);
	for (volatile int i = 0; i < 100000; i++)
		;
	v[1] = ev_count(fd);
	check_val("IOC-02", "outside the region nothing counts", (long long)(v[1] - v[0]), 0);
}

CONFORM(reads)
{
	u64 a, b, c, d;
	int fd;

	if (no_pmu("READ-11", "reading while it counts"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	/* The second pair of reads differs from the first by 1,000 nops and nothing else. */
	for (int i = 0; i < 3; i++) {
		asm volatile("syscall"
			     : "=a"(a)
			     : "a"(0L), "D"((long)fd), "S"(region_buffer), "d"(8L)
			     : "rcx", "r11", "memory");
		asm volatile("syscall"
			     : "=a"(b)
			     : "a"(0L), "D"((long)fd), "S"(region_buffer + 8), "d"(8L)
			     : "rcx", "r11", "memory");
		asm volatile(".rept 1000; nop; .endr" ::: "memory");
		asm volatile("syscall"
			     : "=a"(c)
			     : "a"(0L), "D"((long)fd), "S"(region_buffer + 16), "d"(8L)
			     : "rcx", "r11", "memory");
	}
	NEED(a == 8 && b == 8 && c == 8);
	a = ((u64 *)region_buffer)[0];
	b = ((u64 *)region_buffer)[1];
	c = ((u64 *)region_buffer)[2];
	d = (c - b) - (b - a);
	CHECK_ROW("READ-11", d >= 990 && d <= (virtual_world() ? 1010 : 1600),
		  "1,000 nops between two reads", "%lu", d);
	CHECK_ROW("READ-11", b > a && b - a < (virtual_world() ? 20 : 600),
		  "reading counts no instructions of its own but the caller's", "%lu", b - a);
}

/* A user-mode event sees no kernel instruction: system calls of different length count the same. */
CONFORM(user_only)
{
	u64 cheap, dear;
	int fd;

	if (no_pmu("ATTR-12", "exclude_kernel"))
		return;
	fd = pmu_open(PERF_COUNT_HW_INSTRUCTIONS, -1);
	cheap = REGION_COUNT(fd, "movl $110, %%eax\nsyscall"); /* getppid */
	*(u64 *)region_buffer = 0;
	dear = REGION_COUNT(fd, "movl $24, %%eax\nsyscall"); /* sched_yield */
	check_exact("ATTR-12", "a cheap system call", cheap, REGION_REST + 2);
	check_exact("ATTR-12", "a dear one", dear, REGION_REST + 2);
}
