/*
 * Segments and traps: instructions with a GS prefix that have no ordinary operand, selectors in GS,
 * far branches and iret within the code segment, int1, int3, and a program that single-steps itself
 * with the trap flag.
 */
#include "say.h"

#include <asm/ldt.h>
#include <asm/prctl.h>
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* A far pointer of ten bytes, which clang's assembler has no word for. */
#define REX_W ".byte 0x48\n\t"

static unsigned char area[512], copy[512];

static void fill(void)
{
	for (int i = 0; i < 512; i++)
		area[i] = (unsigned char)(i * 7 + 1);
	memset(copy, 0, sizeof(copy));
}

static unsigned long sum(const unsigned char *p, int n)
{
	unsigned long s = 0;

	for (int i = 0; i < n; i++)
		s = s * 31 + p[i];
	return s;
}

static void strings(void)
{
	unsigned long rsi = 16, rdi = (unsigned long)copy, rcx = 100, rax, flags;
	unsigned char al = 5;

	fill();
	__asm__ volatile("rep movsb %%gs:(%%rsi), %%es:(%%rdi)"
			 : "+S"(rsi), "+D"(rdi), "+c"(rcx)
			 :
			 : "memory");
	SAY("movs %lu %ld %lu %lx", rsi, (long)(rdi - (unsigned long)copy), rcx, sum(copy, 512));
	rsi = 8;
	__asm__ volatile("lodsq %%gs:(%%rsi), %%rax" : "+S"(rsi), "=a"(rax) : : "memory");
	SAY("lods %lu %lx", rsi, rax);
	rsi = 16;
	rdi = (unsigned long)copy;
	rcx = 300;
	__asm__ volatile("repe cmpsb %%es:(%%rdi), %%gs:(%%rsi)\n\tpushfq\n\tpop %0"
			 : "=r"(flags), "+S"(rsi), "+D"(rdi), "+c"(rcx)
			 :
			 : "memory", "cc");
	SAY("cmps %lu %lu %lx", rsi, rcx, flags & 0x8d5);
	__asm__ volatile(".byte 0x65\n\txlatb" : "+a"(al) : "b"(32ul) : "memory");
	SAY("xlat %u", al);
	__asm__ volatile(
		"movdqu (%1), %%xmm1\n\tpcmpeqd %%xmm2, %%xmm2\n\t.byte 0x65\n\tmaskmovdqu %%xmm2, %%xmm1"
		:
		: "D"(64ul), "r"(copy)
		: "memory", "xmm1", "xmm2");
	SAY("maskmov %lx", sum(area, 512));
}

__attribute__((target("avx2"))) static void gathers(void)
{
	unsigned int out[8];

	if (!__builtin_cpu_supports("avx2"))
		return;
	fill();
	__asm__ volatile("vpcmpeqd %%ymm1, %%ymm1, %%ymm1\n\tvpxor %%ymm2, %%ymm2, %%ymm2\n"
			 "\tvpsubd %%ymm1, %%ymm2, %%ymm2\n\tvpslld $3, %%ymm2, %%ymm2\n"
			 "\tvpgatherdd %%ymm1, %%gs:4(%1,%%ymm2,2), %%ymm0\n\tvmovdqu %%ymm0, %0"
			 : "=m"(out)
			 : "r"(20ul)
			 : "memory", "xmm0", "xmm1", "xmm2");
	SAY("gather %x %x", out[0], out[7]);
}

__attribute__((target("avx512f"))) static void scatters(void)
{
	static const int idx[16] = {0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45};

	if (!__builtin_cpu_supports("avx512f"))
		return;
	fill();
	__asm__ volatile("vmovdqu32 %0, %%zmm17\n\tkxnorw %%k1, %%k1, %%k1\n"
			 "\tvpscatterdd %%zmm17, %%gs:0x40(,%%zmm17,4)%{%%k1%}"
			 :
			 : "m"(idx)
			 : "memory", "xmm17", "k1");
	SAY("scatter %lx", sum(area, 512));
}

static void tiles(void)
{
	static unsigned char config[64] __attribute__((aligned(64))) = {1};
	unsigned int a, b, c, d;

	__asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(7), "2"(0));
	if (!(d >> 24 & 1) || syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18))
		return;
	fill();
	config[16] = config[18] = 32; /* bytes in a row of tiles 0 and 1 */
	config[48] = config[49] = 4;  /* rows */
	__asm__ volatile("ldtilecfg %0\n"
			 "\t.byte 0x65\n\ttileloadd 16(%1,%2,1), %%tmm1\n"
			 "\ttilestored %%tmm1, (%3,%2,1)\n"
			 "\t.byte 0x65\n\ttilestored %%tmm1, 0x80(,%2,1)\n"
			 "\ttilerelease"
			 :
			 : "m"(config), "r"(8ul), "r"(40ul), "r"(copy)
			 : "memory");
	SAY("tiles %lx %lx", sum(area, 512), sum(copy, 512));
}

static void restore_gs(void)
{
	syscall(SYS_arch_prctl, ARCH_SET_GS, area);
}

static sig_atomic_t faults;
static unsigned long fault_skip;

/*
 * AMD's CPUs take 32 bits of a far pointer's offset in any case, and what follows for the selector.
 * That is then the middle of an address, which is another one in each run.
 */
static unsigned short address_as_selector;

static void on_fault(int sig, siginfo_t *si, void *u)
{
	ucontext_t *uc = u;
	unsigned long error = sig == SIGSEGV ? (unsigned long)uc->uc_mcontext.gregs[REG_ERR] : 0;

	if (error && error == (address_as_selector & ~3ul))
		error = 0x5e1ec;
	SAY("signal %d code %d addr %lx error %lx", sig, si->si_code,
	    sig == SIGSEGV ? (unsigned long)si->si_addr : 0, error);
	faults++;
	uc->uc_mcontext.gregs[REG_RIP] += (long)fault_skip;
	/*
	 * int1 is a trap, but some hypervisors on AMD return to it: without this it would never
	 * end.
	 */
	if (sig == SIGTRAP && *(unsigned char *)uc->uc_mcontext.gregs[REG_RIP] == 0xf1)
		uc->uc_mcontext.gregs[REG_RIP]++;
}

static void selectors(void)
{
	unsigned long base = 1, r = ~0ul;
	unsigned short mem = 0x2b;
	struct {
		unsigned int off;
		unsigned short sel;
	} __attribute__((packed)) far = {0x12345678, 0x2b};
	struct user_desc desc = {.entry_number = (unsigned int)-1,
				 .base_addr = 0x10004,
				 .limit = 0xfffff,
				 .seg_32bit = 1,
				 .limit_in_pages = 1,
				 .useable = 1};
	unsigned int *low = mmap((void *)0x10000, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	__asm__ volatile("mov %0, %%gs" : : "m"(mem));
	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	__asm__ volatile("mov %%gs, %0" : "=r"(r));
	SAY("gs 2b: base %lx reads %lx", base, r);
	restore_gs();
	__asm__ volatile("lgs %1, %k0" : "=r"(r) : "m"(far));
	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	SAY("lgs: base %lx value %lx", base, r);
	mem = 0xffff;
	__asm__ volatile("mov %%gs, %0" : "=m"(mem));
	SAY("gs in memory %x", mem);
	__asm__ volatile("mov %0, %%gs" : : "r"(0x33));
	__asm__ volatile("pushq %%gs\n\tpop %0" : "=r"(r));
	SAY("gs pushed %lx", r);
	__asm__ volatile("pushq $0\n\tpopq %%gs\n\tmov %%gs, %0" : "=r"(r));
	SAY("gs popped %lx", r);
	fault_skip = 2;
	__asm__ volatile("mov %0, %%gs" : : "a"(0x40f3)); /* beyond the table */
	__asm__ volatile("mov %0, %%gs" : : "a"(0x10));   /* the kernel's */
	if (syscall(SYS_set_thread_area, &desc) == 0 && low != MAP_FAILED) {
		low[5] = 0x55667788;
		__asm__ volatile("mov %1, %%gs\n\tmovl %%gs:16, %k0"
				 : "=r"(r)
				 : "a"(desc.entry_number << 3 | 3));
		SAY("through the thread's area %lx", r);
	}
	restore_gs();
}

static void far_branches(void)
{
	unsigned long r, flags;
	int faulted;

	__asm__ volatile(
		"pushq $0x33\n\tleaq 1f(%%rip), %0\n\tpushq %0\n\tlretq\n\tud2\n1:\tmovq $77, %0"
		: "=&r"(r));
	SAY("lretq %lu", r);
	__asm__ volatile(
		"pushq $9\n\tpushq $0x33\n\tleaq 1f(%%rip), %0\n\tpushq %0\n\tlretq $8\n\tud2\n1:\tmovq $78, %0"
		: "=&r"(r));
	SAY("lretq 8: %lu", r);
	{
		struct {
			void *off;
			unsigned short sel;
		} __attribute__((packed)) p = {0, 0x33};

		address_as_selector = (unsigned short)((unsigned long)far_branches >> 32);
		fault_skip = 5; /* with the ud2 */
		__asm__ volatile("leaq 1f(%%rip), %0\n\tmovq %0, (%1)\n\t" REX_W
				 "ljmp *(%1)\n\tud2\n1:\tmovq $79, %0"
				 : "=&r"(r)
				 : "b"(&p)
				 : "memory");
		SAY("ljmp %lu", r);
		fault_skip = 3;
		faulted = faults;
		__asm__ volatile("leaq 2f(%%rip), %0\n\tmovq %0, (%1)\n\t" REX_W
				 "lcall *(%1)\n\tjmp 3f\n2:\tmovq 8(%%rsp), %0\n\tlretq\n3:"
				 : "=&r"(r)
				 : "b"(&p)
				 : "memory");
		SAY("lcall pushed %lx", faults == faulted ? r : 0);
		address_as_selector = 0;
	}
	__asm__ volatile(
		"mov %%rsp, %%rax\n\tmov %%ss, %0\n\tpushq %0\n\tpushq %%rax\n\tpushfq\n\torq $0x8c5, (%%rsp)\n"
		"\tpushq $0x33\n\tleaq 1f(%%rip), %0\n\tpushq %0\n\tiretq\n\tud2\n"
		"1:\tpushfq\n\tpopq %1"
		: "=&r"(r), "=&r"(flags)
		:
		: "rax", "cc", "memory");
	SAY("iretq %lx", flags & 0x8d5);
	fault_skip = 2;
	/* The error code names the selector. */
	__asm__ volatile("mov %0, %%gs" : : "r"(0x53));
	__asm__ volatile("pushq $0x10\n\tpushq $1\n\tlretq\n\taddq $16, %%rsp"
			 :
			 :
			 : "memory", "cc");
	__asm__ volatile("mov %%rsp, %%rax\n\tmov $8, %%esp\n\tlretq\n\tmov %%rax, %%rsp"
			 :
			 :
			 : "rax", "memory");
	__asm__ volatile("mov %%rsp, %%rax\n\tmov $8, %%esp\n\tiretq\n\tmov %%rax, %%rsp"
			 :
			 :
			 : "rax", "memory");
	fault_skip = 3;
	__asm__ volatile(REX_W "lcall *(%0)" : : "a"(24ul) : "memory");
	fault_skip = 0;
	__asm__ volatile("int3");
	__asm__ volatile(".byte 0xf1");
	__asm__ volatile(".byte 0xcd, 3");
	fault_skip = 2;
	__asm__ volatile("int $0x21");
	/* AMD's CPUs have no transactions. Others commit or abort it, which comes to the same. */
	fault_skip = 9;
	__asm__ volatile(".byte 0xc7, 0xf8, 3, 0, 0, 0\n\t" /* xbegin, to behind xend */
			 ".byte 0x0f, 0x01, 0xd5"
			 :
			 :
			 : "rax", "memory");
}

static struct {
	unsigned long rip, flags;
	int code;
} traps[200];
static int nr_traps;
extern const char steps_begin[], steps_cpuid_end[];

static void on_trap(int sig, siginfo_t *si, void *u)
{
	ucontext_t *uc = u;

	(void)sig;
	/* Some virtual machines do not stop there, but an instruction later. */
	if ((const char *)uc->uc_mcontext.gregs[REG_RIP] == steps_cpuid_end)
		return;
	if (nr_traps < 200) {
		traps[nr_traps].rip = (unsigned long)uc->uc_mcontext.gregs[REG_RIP] -
				      (unsigned long)steps_begin;
		traps[nr_traps].flags = (unsigned long)uc->uc_mcontext.gregs[REG_EFL] & 0x100;
		traps[nr_traps].code = si->si_code;
		if ((unsigned long)si->si_addr != (unsigned long)uc->uc_mcontext.gregs[REG_RIP])
			traps[nr_traps].code += 1000;
	}
	nr_traps++;
}

static void steps(void)
{
	signal(SIGTRAP, SIG_DFL);
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	unsigned long n = 0;

	sigaction(SIGTRAP, &sa, NULL);
	/*
	 * Straight code, branches of each kind, a repeated string, a system call, cpuid, far code,
	 * and out again.
	 */
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n"
			 "	.globl steps_begin\nsteps_begin:\n"
			 "	popfq\n"
			 "	nop\n"
			 "	movl $3, %%ecx\n"
			 "1:	addq $5, %0\n"
			 "	decl %%ecx\n"
			 "	jnz 1b\n"
			 "	jmp 2f\n"
			 "	ud2\n"
			 "2:	jmp 3f\n"
			 "3:	call 4f\n"
			 "	jmp 5f\n"
			 "4:	movq (%%rsp), %%rax\n"
			 "	ret\n"
			 "5:	leaq 6f(%%rip), %%rax\n"
			 "	jmp *%%rax\n"
			 "6:	movl $39, %%eax\n"
			 "	syscall\n"
			 "	nop\n"
			 "	call 10f\n" /* flags are of no use there */
			 "	jmp 11f\n"
			 "10:	xorl %%edx, %%edx\n"
			 "	ret\n"
			 "11:	xorl %%eax, %%eax\n"
			 "	xorl %%ecx, %%ecx\n"
			 "	cpuid\n"
			 "	.globl steps_cpuid_end\nsteps_cpuid_end:\n"
			 "	leaq copy%=(%%rip), %%rdi\n"
			 "	movl $3, %%ecx\n"
			 "	rep stosb\n"
			 "	pushq $0x33\n"
			 "	leaq 7f(%%rip), %%rax\n"
			 "	pushq %%rax\n"
			 "	lretq\n"
			 "7:	movl %%gs:4, %%eax\n"
			 "	loop 8f\n"
			 "8:	pushfq\n"
			 "	andq $~0x100, (%%rsp)\n"
			 "	popfq\n"
			 "	nop\n"
			 "	.section .data\ncopy%=: .quad 0\n	.text\n"
			 : "+r"(n)
			 :
			 : "rax", "rbx", "rcx", "rdx", "rdi", "r11", "cc", "memory");
	SAY("%lu, %d traps", n, nr_traps);
	for (int i = 0; i < nr_traps && i < 200; i++)
		printf("%lx/%lx/%d ", traps[i].rip, traps[i].flags, traps[i].code);
	putchar('\n');
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t alt = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};

	sigaltstack(&alt, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGTRAP, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	restore_gs();
	strings();
	gathers();
	scatters();
	tiles();
	selectors();
	far_branches();
	steps();
	return 0;
}
