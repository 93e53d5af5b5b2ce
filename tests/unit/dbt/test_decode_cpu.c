/* Where the decoder and Zydis tell different stories, the CPU is asked. */
/* Under _GNU_SOURCE <signal.h> names registers as decode.h does, with other numbers. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "dbt/arch/x86_64/decode.h"
#include "unit/test.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define STATUS (FL_ARITH | FL_DF)

static u8 *code;
static sigjmp_buf fault;

static void on_fault(int sig)
{
	siglongjmp(fault, sig);
}

static void setup(void)
{
	struct sigaction sa = {.sa_flags = SA_NODEFER};

	if (code)
		return;
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	sa.sa_handler = on_fault;
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
}

/*
 * flags(in, value, count): runs the instruction with these flags, rax = r8 = value, rcx = count,
 * and returns the flags; *rax is what rax became.
 */
static u64 run(const u8 *insn, int len, u64 in, u64 value, u64 count, u64 *rax)
{
	static const u8 before[] = {
		0x49, 0x89, 0xc9,             /* mov r9, rcx: the pointer */
		0x48, 0x89, 0xf0,             /* mov rax, rsi */
		0x49, 0xc7, 0xc0, 3, 0, 0, 0, /* mov r8, 3 */
		0x48, 0x89, 0xd1,             /* mov rcx, rdx */
		0x57, 0x9d,                   /* push rdi; popfq */
	};
	static const u8 after[] = {
		0x9c,             /* pushfq */
		0x49, 0x89, 0x01, /* mov [r9], rax */
		0x58, 0xfc, 0xc3, /* pop rax; cld; ret */
	};
	u8 *p;

	setup();
	p = code;
	memcpy(p, before, sizeof(before));
	memcpy(p + sizeof(before), insn, (size_t)len);
	memcpy(p + sizeof(before) + len, after, sizeof(after));
	return ((u64(*)(u64, u64, u64, u64 *))(void *)code)(in | 0x202, value, count, rax) & STATUS;
}

/* Flags that the decoder says are written come out the same whatever they were; others are kept. */
static void check_flags(const u8 *bytes, int len, u64 value, u64 count)
{
	u64 clear, set, carry_in = 0, rax, rax_set;
	struct insn insn;

	EXPECT_EQ(insn_decode(&insn, bytes, (size_t)len), len);
	if (insn.fl_read & FL_CF)
		carry_in = FL_CF; /* keep what it reads the same in both runs */
	clear = run(bytes, len, carry_in, value, count, &rax);
	set = run(bytes, len, STATUS & ~FL_DF, value, count, &rax_set);
	if (((clear ^ set) & insn.fl_written) || rax != rax_set ||
	    (clear & ~(u64)insn_fl_clobbered(&insn) & ~carry_in) ||
	    (~set & ~(u64)insn_fl_clobbered(&insn) & FL_ARITH))
		TEST_FAIL(
			"%02x %02x %02x %02x count %llu: flags %llx and %llx, written %x, may change %x",
			bytes[0], bytes[1], bytes[2], bytes[3], (unsigned long long)count,
			(unsigned long long)clear, (unsigned long long)set, insn.fl_written,
			insn_fl_clobbered(&insn));
}

TEST(flags_of_shifts)
{
	static const u8 counts[] = {0, 1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65};
	static const u64 values[] = {0, 1, 0x8000000000000000, 0x8181818181818181,
				     0x123456789abcdef0};

	for (size_t v = 0; v < ARRAY_SIZE(values); v++)
		for (size_t c = 0; c < ARRAY_SIZE(counts); c++)
			for (u8 op = 0; op < 8; op++) {
				u8 m = (u8)(0xc0 | op << 3);
				const u8 forms[][5] = {
					{0xc0, m, counts[c]},
					{0x66, 0xc1, m, counts[c]},
					{0xc1, m, counts[c]},
					{0x48, 0xc1, m, counts[c]},
					{0xd2, m},
					{0x66, 0xd3, m},
					{0xd3, m},
					{0x48, 0xd3, m},
					{0xd0, m},
					{0x48, 0xd1, m},
				};
				static const u8 lens[] = {3, 4, 3, 4, 2, 3, 2, 3, 2, 3};

				for (size_t f = 0; f < ARRAY_SIZE(lens); f++)
					check_flags(forms[f], lens[f], values[v], counts[c]);
			}
}

TEST(flags_of_double_shifts_and_others)
{
	static const u8 forms[][5] = {
		{0x0f, 0xa4, 0xc0, 0},
		{0x0f, 0xa4, 0xc0, 1},
		{0x48, 0x0f, 0xac, 0xc0, 40},
		{0x0f, 0xad, 0xc0},
		{0x48, 0x0f, 0xa5, 0xc0},
		{0x48, 0x19, 0xc0},
		{0x48, 0x0f, 0xaf, 0xc0},
		{0x48, 0x0f, 0xba, 0xe0, 5},
		{0x48, 0x0f, 0xbc, 0xc0},
		{0xf3, 0x0f, 0xbc, 0xc0},
		{0x48, 0xff, 0xc0},
		{0x48, 0x21, 0xc0},
		{0xf7, 0xd8},
		{0xf7, 0xd0},
		{0x0f, 0xc8},
		{0xf9},
		{0xf5},
		{0x48, 0x85, 0xc0},
	};
	static const u8 lens[] = {4, 4, 5, 3, 4, 3, 4, 5, 4, 4, 3, 3, 2, 2, 2, 1, 1, 3};

	for (size_t f = 0; f < ARRAY_SIZE(lens); f++)
		for (u64 count = 0; count < 70; count += 3)
			check_flags(forms[f], lens[f], 0x8000000180000001 + count, count);
}

/*
 * f3 41 90 is pause on Intel's CPUs and xchg r8, rax on AMD's, as it is on all without the f3. So
 * the decoder says that both registers may be written.
 */
TEST(pause_with_rex_b)
{
	static const u8 bytes[] = {0xf3, 0x41, 0x90};
	const u16 both = BIT(REG_RAX) | BIT(REG_R8);
	struct insn insn;
	u64 rax = 0;

	EXPECT_EQ(insn_decode(&insn, bytes, 3), 3);
	run(bytes, 3, 0, 77, 0, &rax);
	EXPECT(rax == 77 || rax == 3);
	EXPECT_EQ(insn.gpr_written & insn.gpr_read, both);
	EXPECT_EQ(insn_decode(&insn, bytes + 1, 2), 2);
	run(bytes + 1, 2, 0, 77, 0, &rax);
	EXPECT_EQ(rax, 3);
	EXPECT_EQ(insn.gpr_written, both);
}

/*
 * 66 63: how many bytes movsxd r16 reads, seen at the end of a page. Intel's CPUs read 2 and AMD's
 * 4, so the decoder says 4 and that they may be fewer.
 */
TEST(movsxd_16)
{
	static const u8 bytes[] = {0x66, 0x63, 0x01}; /* movsxd ax, [rcx] */
	u8 *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int bytes_read = 4;
	struct insn insn;
	u64 rax;

	ASSERT(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE));
	EXPECT_EQ(insn_decode(&insn, bytes, 3), 3);
	setup();
	if (!sigsetjmp(fault, 1)) {
		run(bytes, 3, 0, 0, (u64)(pages + 4094), &rax);
		bytes_read = 2;
	}
	EXPECT(bytes_read == insn.mem_read ||
	       (bytes_read < insn.mem_read && insn.attr & INSN_MEM_COND));
}

/* 67, REX.B and a SIB byte with base 5 and mod 0: disp32 and no base. */
TEST(sib_without_base)
{
	static const u8 bytes[] = {0x67, 0x41, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0x35};
	u64 *low = mmap((void *)0x35000000, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	struct insn insn;
	u64 rax = 0;

	ASSERT(low != MAP_FAILED);
	low[2] = 4711;
	EXPECT_EQ(insn_decode(&insn, bytes, sizeof(bytes)), sizeof(bytes));
	EXPECT_EQ(insn.mem.base, REG_NONE);
	EXPECT_EQ(insn.mem.disp, 0x35000010);
	setup();
	if (sigsetjmp(fault, 1))
		TEST_FAIL("the CPU finds another address");
	else
		run(bytes, sizeof(bytes), 0, 0, 0, &rax);
	EXPECT_EQ(rax, 4711);
}
