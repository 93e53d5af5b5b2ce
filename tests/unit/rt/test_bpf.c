/*
 * seccomp's classic BPF, with the running kernel as the oracle: what it installs and what it
 * answers.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt/sandbox/bpf.h"
#include "unit/test.h"

#define PROGRAM 24
#define NR      SYS_getppid

struct answer {
	int installed; /* 0 or errno */
	long result;
};

static struct answer *shared;
static u64 seed = 1;

static u32 any(u32 below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(seed >> 33) % below;
}

/* Installs the program in a child, makes the call there, and tells. */
static struct answer ask_kernel(const struct sock_filter *code, u32 len, const u64 *args)
{
	struct sock_fprog prog = {(u16)len, (struct sock_filter *)code};
	int status;
	pid_t pid;

	shared->installed = -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
			shared->installed = errno;
			_exit(0);
		}
		shared->installed = 0;
		shared->result = syscall(NR, args[0], args[1], args[2], args[3], args[4], args[5]);
		if (shared->result < 0)
			shared->result = -errno;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return *shared;
}

static struct sock_filter random_insn(u32 pc, u32 len)
{
	static const u16 plain[] = {
		BPF_LD | BPF_IMM,          BPF_LDX | BPF_IMM,         BPF_MISC | BPF_TAX,
		BPF_MISC | BPF_TXA,        BPF_ALU | BPF_ADD | BPF_K, BPF_ALU | BPF_SUB | BPF_X,
		BPF_ALU | BPF_MUL | BPF_K, BPF_ALU | BPF_AND | BPF_X, BPF_ALU | BPF_OR | BPF_K,
		BPF_ALU | BPF_XOR | BPF_X, BPF_ALU | BPF_NEG,         BPF_ALU | BPF_LSH | BPF_X,
		BPF_ALU | BPF_RSH | BPF_X, BPF_ALU | BPF_DIV | BPF_K, BPF_LD | BPF_W | BPF_LEN,
		BPF_ALU | BPF_LSH | BPF_K,
	};
	static const u16 jumps[] = {
		BPF_JMP | BPF_JEQ | BPF_K,
		BPF_JMP | BPF_JGT | BPF_K,
		BPF_JMP | BPF_JGE | BPF_X,
		BPF_JMP | BPF_JSET | BPF_K,
	};
	struct sock_filter f = {0};
	u32 left = len - pc - 1;

	switch (any(8)) {
	case 0: f = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, any(17) * 4); break;
	case 1: f = (struct sock_filter)BPF_STMT(any(2) ? BPF_ST : BPF_STX, any(17)); break;
	case 2:
		f = (struct sock_filter)BPF_STMT((any(2) ? BPF_LD : BPF_LDX) | BPF_MEM, any(3));
		break;
	case 3:
		f = (struct sock_filter)BPF_JUMP(jumps[any(ARRAY_SIZE(jumps))], any(4),
						 (u8)any(left + 1), (u8)any(left + 1));
		break;
	case 4: f = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, any(left + 1)); break;
	default:
		f = (struct sock_filter)BPF_STMT(plain[any(ARRAY_SIZE(plain))],
						 any(4) ? any(40) : any(0x7fffffff) * 2u);
	}
	if (!any(60))
		f.code = (u16)any(256);
	return f;
}

TEST(random_programs)
{
	static const struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	u64 args[6] = {0};
	u32 accepted = 0;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT(shared != MAP_FAILED);
	/* A sandbox may forbid filters; then there is no oracle. */
	if (ask_kernel(allow, 1, args).installed)
		return;
	for (u32 round = 0; round < 1200; round++) {
		struct sock_filter code[PROGRAM + 5];
		struct seccomp_data data = {.nr = NR, .arch = AUDIT_ARCH_X86_64};
		u32 len = 1 + any(PROGRAM - 1), n = 0;
		struct answer kernel;
		int ours;

		/* Only our call is judged by the random part: its low bits become an errno. */
		code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR, 1, 0);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		for (u32 pc = 0; pc < len; pc++)
			code[n++] = random_insn(pc, len + 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7ff);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K,
							 SECCOMP_RET_ERRNO | 0x800);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
		if (n > ARRAY_SIZE(code))
			continue;
		for (u32 i = 0; i < 6; i++)
			data.args[i] = args[i] = ((u64)any(0x7fffffff) << 32) | any(16);
		ours = bpf_check(code, n);
		kernel = ask_kernel(code, n, args);
		EXPECT_EQ(ours, -kernel.installed);
		if (ours || kernel.installed)
			continue;
		accepted++;
		/*
		 * The pc is the kernel's business; no test program depends on its value being
		 * right.
		 */
		for (u32 i = 0; i < n; i++)
			if (code[i].code == (BPF_LD | BPF_W | BPF_ABS) &&
			    (code[i].k == 8 || code[i].k == 12))
				goto next;
		{
			u32 v = bpf_run(code, n, &data);

			/* The kernel passes on no errno above 4095. */
			if ((v & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
				EXPECT_EQ(-(long)((v & 0xffff) > 4095 ? 4095 : v & 0xffff),
					  kernel.result);
		}
next:;
	}
	EXPECT(accepted > 100);
}

TEST(limits)
{
	struct sock_filter ret = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_filter bad[2] = {BPF_STMT(BPF_LD | BPF_MEM, 0), BPF_STMT(BPF_RET | BPF_A, 0)};

	EXPECT_EQ(bpf_check(&ret, 0), -EINVAL);
	EXPECT_EQ(bpf_check(&ret, BPF_MAXINSNS + 1), -EINVAL);
	EXPECT_EQ(bpf_check(bad, 2), -EINVAL);
	bad[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      sizeof(struct seccomp_data));
	EXPECT_EQ(bpf_check(bad, 2), -EINVAL);
	EXPECT_EQ(bpf_check(bad, 1), -EINVAL);
}
