#include "rt/sandbox/bpf.h"

#include <linux/errno.h>

#include "base/types.h"
#include "sys/string.h"

int bpf_check(const struct sock_filter *code, u32 len)
{
	if (!len || len > BPF_MAXINSNS)
		return -EINVAL;
	for (u32 pc = 0; pc < len; pc++) {
		const struct sock_filter *f = &code[pc];

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (f->k >= sizeof(struct seccomp_data) || f->k & 3)
				return -EINVAL;
			break;
		case BPF_LD | BPF_W | BPF_LEN:
		case BPF_LDX | BPF_W | BPF_LEN:
		case BPF_LD | BPF_IMM:
		case BPF_LDX | BPF_IMM:
		case BPF_RET | BPF_K:
		case BPF_RET | BPF_A:
		case BPF_MISC | BPF_TAX:
		case BPF_MISC | BPF_TXA:
		case BPF_ALU | BPF_NEG:
		case BPF_ALU | BPF_ADD | BPF_K:
		case BPF_ALU | BPF_ADD | BPF_X:
		case BPF_ALU | BPF_SUB | BPF_K:
		case BPF_ALU | BPF_SUB | BPF_X:
		case BPF_ALU | BPF_MUL | BPF_K:
		case BPF_ALU | BPF_MUL | BPF_X:
		case BPF_ALU | BPF_DIV | BPF_X:
		case BPF_ALU | BPF_AND | BPF_K:
		case BPF_ALU | BPF_AND | BPF_X:
		case BPF_ALU | BPF_OR | BPF_K:
		case BPF_ALU | BPF_OR | BPF_X:
		case BPF_ALU | BPF_XOR | BPF_K:
		case BPF_ALU | BPF_XOR | BPF_X:
		case BPF_ALU | BPF_LSH | BPF_X:
		case BPF_ALU | BPF_RSH | BPF_X: break;
		case BPF_ALU | BPF_DIV | BPF_K:
			if (!f->k)
				return -EINVAL;
			break;
		case BPF_ALU | BPF_LSH | BPF_K:
		case BPF_ALU | BPF_RSH | BPF_K:
			if (f->k >= 32)
				return -EINVAL;
			break;
		case BPF_LD | BPF_MEM:
		case BPF_LDX | BPF_MEM:
		case BPF_ST:
		case BPF_STX:
			if (f->k >= BPF_MEMWORDS)
				return -EINVAL;
			break;
		case BPF_JMP | BPF_JA:
			if (f->k >= len - pc - 1)
				return -EINVAL;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JEQ | BPF_X:
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_X:
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_X:
		case BPF_JMP | BPF_JSET | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_X:
			if (pc + f->jt + 1 >= len || pc + f->jf + 1 >= len)
				return -EINVAL;
			break;
		default: return -EINVAL;
		}
	}
	if (BPF_CLASS(code[len - 1].code) != BPF_RET)
		return -EINVAL;

	/* No scratch word is read on a path on which it was not written. Jumps go forward only. */
	{
		static const u16 none = 0xffff;
		u16 known[BPF_MAXINSNS], valid = 0;

		for (u32 pc = 0; pc < len; pc++)
			known[pc] = none;
		for (u32 pc = 0; pc < len; pc++) {
			const struct sock_filter *f = &code[pc];

			valid &= known[pc];
			switch (f->code) {
			case BPF_ST:
			case BPF_STX: valid |= (u16)(1u << f->k); break;
			case BPF_LD | BPF_MEM:
			case BPF_LDX | BPF_MEM:
				if (!(valid & (1u << f->k)))
					return -EINVAL;
				break;
			case BPF_JMP | BPF_JA:
				known[pc + 1 + f->k] &= valid;
				valid = none;
				break;
			default:
				if (BPF_CLASS(f->code) != BPF_JMP)
					break;
				known[pc + 1 + f->jt] &= valid;
				known[pc + 1 + f->jf] &= valid;
				valid = none;
			}
		}
	}
	return 0;
}

u32 bpf_run(const struct sock_filter *code, u32 len, const struct seccomp_data *data)
{
	u32 a = 0, x = 0, mem[BPF_MEMWORDS] = {0};

	for (u32 pc = 0; pc < len; pc++) {
		const struct sock_filter *f = &code[pc];
		u32 k = f->k;

		if (BPF_CLASS(f->code) == BPF_ALU && BPF_SRC(f->code) == BPF_X)
			k = x;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS: memcpy(&a, (const u8 *)data + k, sizeof(a)); break;
		case BPF_LD | BPF_W | BPF_LEN: a = sizeof(*data); break;
		case BPF_LDX | BPF_W | BPF_LEN: x = sizeof(*data); break;
		case BPF_LD | BPF_IMM: a = k; break;
		case BPF_LDX | BPF_IMM: x = k; break;
		case BPF_LD | BPF_MEM: a = mem[k]; break;
		case BPF_LDX | BPF_MEM: x = mem[k]; break;
		case BPF_ST: mem[k] = a; break;
		case BPF_STX: mem[k] = x; break;
		case BPF_MISC | BPF_TAX: x = a; break;
		case BPF_MISC | BPF_TXA: a = x; break;
		case BPF_RET | BPF_K: return k;
		case BPF_RET | BPF_A: return a;
		case BPF_JMP | BPF_JA: pc += k; break;
		default:
			if (BPF_CLASS(f->code) == BPF_JMP) {
				u32 v = BPF_SRC(f->code) == BPF_X ? x : k;
				bool yes = false;

				switch (BPF_OP(f->code)) {
				case BPF_JEQ: yes = a == v; break;
				case BPF_JGE: yes = a >= v; break;
				case BPF_JGT: yes = a > v; break;
				case BPF_JSET: yes = a & v; break;
				}
				pc += yes ? f->jt : f->jf;
				break;
			}
			switch (BPF_OP(f->code)) {
			case BPF_ADD: a += k; break;
			case BPF_SUB: a -= k; break;
			case BPF_MUL: a *= k; break;
			case BPF_DIV: a = k ? a / k : 0; break;
			case BPF_AND: a &= k; break;
			case BPF_OR: a |= k; break;
			case BPF_XOR: a ^= k; break;
			case BPF_LSH: a <<= k & 31; break;
			case BPF_RSH: a >>= k & 31; break;
			case BPF_NEG: a = -a; break;
			}
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}
