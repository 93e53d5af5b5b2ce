/*
 * State that the translator must leave to the program: vector registers across signals and calls,
 * the x87 stack, MXCSR, FS and GS bases, the red zone, flags with AC and DF, the stack pointer used
 * as an ordinary register.
 */
#include "say.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

static volatile int signals;

__attribute__((target("avx512f"))) static void clobber512(void)
{
	__asm__ volatile("vpternlogd $0xff, %%zmm0, %%zmm0, %%zmm0\n"
			 "	vmovdqa64 %%zmm0, %%zmm31\n"
			 "	kxnorw %%k1, %%k1, %%k1\n"
			 :
			 :
			 : "memory");
}

static void on_signal(int sig)
{
	(void)sig;
	signals++;
	if (__builtin_cpu_supports("avx512f"))
		clobber512();
	__asm__ volatile("fninit; fldpi; fldl2e; stc; std; cld" : : : "cc");
}

static void vectors(void)
{
	unsigned char in[64], out[64], high[64];
	unsigned int k = 0x5a5a, kout = 0;
	double st0 = 0;

	if (!__builtin_cpu_supports("avx512f")) {
		SAY("no AVX-512");
		return;
	}
	for (int i = 0; i < 64; i++)
		in[i] = (unsigned char)(i * 3);
	__asm__ volatile(
		"vmovdqu64 %[in], %%zmm0\n"
		"	vmovdqu64 %[in], %%zmm31\n"
		"	kmovw %[k], %%k1\n"
		"	fninit\n	fld1\n	fldl2t\n	faddp\n"
		"	movl $39, %%eax\n	syscall\n"
		"	movl %%eax, %%edi\n	movl $10, %%esi\n	movl $62, %%eax\n	syscall\n"
		"	movl $2000000, %%ecx\n"
		"1:	decl %%ecx\n	jnz 1b\n"
		"	vmovdqu64 %%zmm0, %[out]\n"
		"	vmovdqu64 %%zmm31, %[high]\n"
		"	kmovw %%k1, %[kout]\n"
		"	fstpl %[st]\n"
		: [out] "=m"(out), [high] "=m"(high), [kout] "=r"(kout), [st] "=m"(st0)
		: [in] "m"(in), [k] "r"(k)
		: "rax", "rcx", "rdi", "rsi", "r11", "memory", "cc");
	HOLDS(!memcmp(in, out, 64));
	HOLDS(!memcmp(in, high, 64));
	HOLDS(kout == 0x5a5a);
	SAY("x87 %.12g, signals %d", st0, signals > 0);
}

static void segment_bases(void)
{
	static uint64_t area[4] = {0x1111, 0x2222, 0x3333, 0x4444};
	uint64_t v, base = 0, fs = 0;

	HOLDS(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs) == 0 && fs != 0);
	__asm__ volatile("movq %%fs:0, %0" : "=r"(v));
	HOLDS(v == fs);
	HOLDS(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
	SAY("gs at start %lx", (unsigned long)base);
	HOLDS(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
	HOLDS(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == (uint64_t)area);
	__asm__ volatile("movq %%gs:8, %0" : "=r"(v));
	SAY("gs:8 is %lx", (unsigned long)v);
	__asm__ volatile("movq %0, %%gs:(%1)" : : "r"(0x7777ul), "r"(16ul) : "memory");
	SAY("written through gs: %lx", (unsigned long)area[2]);
	__asm__ volatile("addq $1, %%gs:(%1,%2,8)\n	movq %%gs:(%1,%2,8), %0"
			 : "=r"(v)
			 : "r"(8ul), "r"(2ul)
			 : "memory", "cc");
	SAY("indexed: %lx", (unsigned long)v);
	__asm__ volatile("movq %%gs:0x0, %%rax\n	movq %%rax, %0" : "=r"(v) : : "rax");
	__asm__ volatile("xorl %%ecx, %%ecx\n	lock xaddq %%rcx, %%gs:24\n	movq %%rcx, %0"
			 : "=r"(v)
			 :
			 : "rcx", "cc", "memory");
	SAY("lock xadd: %lx", (unsigned long)v);
	if (getauxval(AT_HWCAP2) & 2) { /* FSGSBASE */
		__asm__ volatile("rdgsbase %0" : "=r"(v));
		HOLDS(v == (uint64_t)area);
		__asm__ volatile("wrgsbase %0" : : "r"((uint64_t)area + 8));
		__asm__ volatile("movq %%gs:0, %0" : "=r"(v));
		SAY("after wrgsbase: %lx", (unsigned long)v);
		__asm__ volatile("rdfsbase %0" : "=r"(v));
		HOLDS(v == fs);
	}
	raise(SIGUSR1);
	HOLDS(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base != 0);
	{
		unsigned int sel = 99;

		__asm__ volatile("mov %%gs, %0" : "=r"(sel));
		SAY("gs selector %x", sel);
		__asm__ volatile("mov %%fs, %0" : "=r"(sel));
		SAY("fs selector %x", sel);
		__asm__ volatile("mov %%cs, %0" : "=r"(sel));
		SAY("cs selector %x", sel);
	}
}

static volatile int alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void red_zone(void)
{
	struct itimerval t = {{0, 500}, {0, 500}};
	uint64_t bad;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &t, NULL);
	/* A leaf that keeps its values below rsp while branches and signals come and go. */
	__asm__ volatile("	xorl %%eax, %%eax\n"
			 "	movl $3000000, %%ecx\n"
			 "1:	movq %%rcx, -8(%%rsp)\n"
			 "	movq %%rcx, -128(%%rsp)\n"
			 "	leaq 2f(%%rip), %%rdx\n"
			 "	jmp *%%rdx\n"
			 "2:	cmpq %%rcx, -8(%%rsp)\n"
			 "	je 3f\n"
			 "	incl %%eax\n"
			 "3:	cmpq %%rcx, -128(%%rsp)\n"
			 "	je 4f\n"
			 "	incl %%eax\n"
			 "4:	decl %%ecx\n"
			 "	jnz 1b\n"
			 : "=a"(bad)
			 :
			 : "rcx", "rdx", "memory", "cc");
	memset(&t, 0, sizeof(t));
	setitimer(ITIMER_REAL, &t, NULL);
	SAY("red zone damaged %lu times", (unsigned long)bad);
}

static void flags(void)
{
	uint64_t f;

	/* AC, ID and DF set by the program, over a call, a system call and an indirect jump. */
	__asm__ volatile("pushfq\n	orq $0x240400, (%%rsp)\n	popfq\n"
			 "	leaq 1f(%%rip), %%rax\n	jmp *%%rax\n"
			 "1:	movl $39, %%eax\n	syscall\n"
			 "	pushfq\n	popq %0\n"
			 "	pushfq\n	andq $~0x240400, (%%rsp)\n	popfq\n"
			 : "=r"(f)
			 :
			 : "rax", "rcx", "r11", "memory", "cc");
	SAY("flags %lx", (unsigned long)(f & 0x240400));
}

static void odd_stack(void)
{
	uint64_t v;

	/* rsp as a scratch register between calls of nothing. */
	__asm__ volatile("movq %%rsp, %%r12\n"
			 "	movl $1000, %%esp\n"
			 "1:	decq %%rsp\n	jnz 1b\n"
			 "	movq $0x123456789abcdef0, %%rsp\n"
			 "	movq %%rsp, %0\n"
			 "	movq %%r12, %%rsp\n"
			 : "=r"(v)
			 :
			 : "r12", "cc");
	SAY("rsp held %lx", (unsigned long)v);
}

static void identity(void)
{
	unsigned int a, b, c, d;

	__cpuid(0, a, b, c, d);
	SAY("cpuid 0: %x %x %x %x", a, b, c, d);
	__cpuid(1, a, b, c, d);
	/*
	 * Family and model in eax are those of the virtual PMU, by which tools choose their event
	 * tables.
	 */
	SAY("cpuid 1: %x %x", c, d);
	__cpuid_count(7, 0, a, b, c, d);
	SAY("cpuid 7: %x %x %x %x", a, b, c, d);
	__cpuid_count(13, 0, a, b, c, d);
	SAY("cpuid 13: %x %x %x %x", a, b, c, d);
	/* Twice: some of it is remembered. */
	for (int again = 0; again < 2; again++) {
		__cpuid(2, a, b, c, d);
		SAY("cpuid 2: %x %x %x %x", a, b, c, d);
		for (unsigned int level = 0; level < 5; level++) {
			__cpuid_count(4, level, a, b, c, d);
			SAY("cpuid 4: %x %x %x %x", a, b, c, d);
		}
		__cpuid_count(13, 1, a, b, c, d);
		SAY("cpuid 13: %x %x %x %x", a, b, c, d);
		__cpuid(0x80000001, a, b, c, d);
		SAY("cpuid 80000001: %x %x", c, d);
	}
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	SAY("xcr0 %x %x", a, d);
}

static volatile unsigned long frame_pc;

static void on_frame(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)si;
	/* struct _fpstate, whatever the C library calls it. */
	memcpy((void *)&frame_pc, (char *)((ucontext_t *)context)->uc_mcontext.fpregs + 8, 8);
}

/* Where the last x87 instruction was: in every kind of image, and in the frame of a signal. */
static void x87_addresses(void)
{
	static unsigned char image[8192] __attribute__((aligned(64)));
	struct sigaction sa = {.sa_sigaction = on_frame, .sa_flags = SA_SIGINFO};
	unsigned long here, in64;
	unsigned int in32;

	__asm__ volatile("fninit\n1:	fld1\n	fnstenv %1\n	lea 1b(%%rip), %0"
			 : "=r"(here), "=m"(image));
	memcpy(&in32, image + 12, 4);
	SAY("fnstenv %d", in32 == (unsigned int)here);
	__asm__ volatile("fninit\n1:	fldpi\n	fxsave64 %1\n	lea 1b(%%rip), %0"
			 : "=r"(here), "=m"(image));
	memcpy(&in64, image + 8, 8);
	SAY("fxsave64 %d", in64 == here);
	__asm__ volatile("fninit\n1:	fldl2e\n	fxsave %1\n	lea 1b(%%rip), %0"
			 : "=r"(here), "=m"(image));
	memcpy(&in32, image + 8, 4);
	SAY("fxsave %d", in32 == (unsigned int)here);
	__asm__ volatile("fninit\n1:	fldz\n	xsave64 %1\n	lea 1b(%%rip), %0"
			 : "=r"(here), "=m"(image)
			 : "a"(1), "d"(0));
	memcpy(&in64, image + 8, 8);
	SAY("xsave64 %d", in64 == here);
	__asm__ volatile("fninit\n1:	fldz\n	fnsave %1\n	lea 1b(%%rip), %0"
			 : "=r"(here), "=m"(image));
	memcpy(&in32, image + 12, 4);
	SAY("fnsave %d", in32 == (unsigned int)here);
	sigaction(SIGUSR1, &sa, NULL);
	__asm__ volatile("fninit\n1:	fld1\n	lea 1b(%%rip), %0" : "=r"(here));
	raise(SIGUSR1);
	SAY("frame %d", frame_pc == here);
	__asm__ volatile("fninit");
}

#define GET_CPUID 0x1011 /* of arch_prctl */
#define SET_CPUID 0x1012

static sigjmp_buf no_cpuid;

static void on_cpuid(int sig)
{
	siglongjmp(no_cpuid, sig);
}

static void try_cpuid(const char *when)
{
	unsigned int a = 0, b, c = 0, d;

	if (sigsetjmp(no_cpuid, 1)) {
		SAY("%s: SIGSEGV", when);
		return;
	}
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	SAY("%s: %.4s", when, (char *)&b);
}

/* A thread may ask for cpuid to fault, where the CPU has that. */
static void cpuid_faulting(void)
{
	pid_t pid;

	signal(SIGSEGV, on_cpuid);
	TRY("is there cpuid", syscall(SYS_arch_prctl, GET_CPUID, 0));
	TRY("off", syscall(SYS_arch_prctl, SET_CPUID, 0));
	TRY("is there cpuid", syscall(SYS_arch_prctl, GET_CPUID, 0));
	try_cpuid("off");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		try_cpuid("in a child");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	TRY("on", syscall(SYS_arch_prctl, SET_CPUID, 1));
	try_cpuid("on");
	TRY("a base beyond user space", syscall(SYS_arch_prctl, ARCH_SET_GS, 0x7ffffffff000));
	TRY("the last page", syscall(SYS_arch_prctl, ARCH_SET_GS, 0x7fffffffefff));
	signal(SIGSEGV, SIG_DFL);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc > 1) {
		x87_addresses();
		identity();
		return 0;
	}
	signal(SIGUSR1, on_signal);
	vectors();
	segment_bases();
	red_zone();
	flags();
	odd_stack();
	identity();
	cpuid_faulting();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return 0;
}
