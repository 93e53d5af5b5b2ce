/*
 * Asked once, when the translator starts.
 *
 * Flags that the SDM calls undefined after an instruction: a CPU either sets them to something or
 * leaves them as they were. Where AF after `test` is set, what it was before is dead, and that
 * matters, because `test` is what most conditional branches follow. So the CPU is asked about the
 * frequent instructions.
 */
#include "dbt/arch/x86_64/cpu-probe-priv.h"

enum flag_kind {
	KIND_LOGIC, /* and, or, xor, test: AF */
	KIND_SHIFT, /* shl, shr, sar by a constant: AF, and OF if that is not 1 */
	KIND_MUL,   /* mul, imul: all but CF and OF */
	KINDS,
	KIND_NONE = KINDS,
};

static u16 sets[KINDS]; /* undefined flags that are known to be set */

/* The flags after @op on rax = @a and rdx = @b; the stack pointer keeps off the red zone. */
#define FLAGS_AFTER(op, a, b, before)                                                \
	({                                                                           \
		u64 a_ = (a), b_ = (b), f_ = (before);                               \
		__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpush %2\n\tpopfq\n\t" op \
				 "\n\tpushfq\n\tpop %2\n\tlea 128(%%rsp), %%rsp"     \
				 : "+a"(a_), "+d"(b_), "+r"(f_)                      \
				 :                                                   \
				 : "cc", "memory");                                  \
		(u16) f_;                                                            \
	})

#define CLEAR 0x202ull

#define ASK(kind, op)                                                                             \
	for (u32 i_ = 0; i_ < ARRAY_SIZE(values); i_++)                                           \
	sets[kind] &=                                                                             \
		(u16) ~(FLAGS_AFTER(op, values[i_], values[ARRAY_SIZE(values) - 1 - i_], CLEAR) ^ \
			FLAGS_AFTER(op, values[i_], values[ARRAY_SIZE(values) - 1 - i_],          \
				    CLEAR | FL_ARITH))

static void probe_flags(void)
{
	static const u64 values[] = {0, ~0ull, 0x8000000080008081, 0x7ffe123400ff5678};

	sets[KIND_LOGIC] = FL_AF;
	sets[KIND_SHIFT] = FL_AF | FL_OF;
	sets[KIND_MUL] = FL_SF | FL_ZF | FL_AF | FL_PF;
	ASK(KIND_LOGIC, "test %%rdx, %%rax");
	ASK(KIND_LOGIC, "and %%edx, %%eax");
	ASK(KIND_LOGIC, "or %%dl, %%al");
	ASK(KIND_LOGIC, "xor %%rdx, %%rax");
	ASK(KIND_SHIFT, "shl $1, %%rax");
	ASK(KIND_SHIFT, "shl $5, %%eax");
	ASK(KIND_SHIFT, "shr $1, %%eax");
	ASK(KIND_SHIFT, "shr $7, %%rax");
	ASK(KIND_SHIFT, "sar $1, %%rax");
	ASK(KIND_SHIFT, "sar $3, %%eax");
	ASK(KIND_MUL, "imul %%rdx, %%rax");
	ASK(KIND_MUL, "imul $77, %%edx, %%eax");
	ASK(KIND_MUL, "mul %%rdx");
}

static enum flag_kind kind_of(const struct insn *d)
{
	u8 field = d->modrm >> 3 & 7;

	if (d->enc != ENC_LEGACY)
		return KIND_NONE;
	if (d->map == MAP_0F)
		return d->opcode == 0xaf ? KIND_MUL : KIND_NONE;
	if (d->map != MAP_1)
		return KIND_NONE;
	switch (d->opcode) {
	case 0x08 ... 0x0d:
	case 0x20 ... 0x25:
	case 0x30 ... 0x35:
	case 0x84:
	case 0x85:
	case 0xa8:
	case 0xa9: return KIND_LOGIC;
	case 0x80:
	case 0x81:
	case 0x83: return field == 1 || field == 4 || field == 6 ? KIND_LOGIC : KIND_NONE;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1: return field >= 4 ? KIND_SHIFT : KIND_NONE;
	case 0x69:
	case 0x6b: return KIND_MUL;
	case 0xf6:
	case 0xf7:
		if (field <= 1)
			return KIND_LOGIC;
		return field == 4 || field == 5 ? KIND_MUL : KIND_NONE;
	default: return KIND_NONE;
	}
}

static bool amd, fast_pext, near16, whole_jumps;

static void ask(void (*cpuid)(u32 leaf, u32 subleaf, u32 regs[4]), u32 leaf, u32 regs[4])
{
	regs[0] = leaf;
	regs[2] = 0;
	if (cpuid)
		cpuid(leaf, 0, regs);
	else
		__asm__("cpuid" : "+a"(regs[0]), "=b"(regs[1]), "+c"(regs[2]), "=d"(regs[3]));
}

/* The end of the vendor's name, which is in ebx, edx, ecx. */
#define AUTHENTIC_AMD 0x444d4163u /* cAMD */
#define HYGON_GENUINE 0x656e6975u /* uine */
#define GENUINE_INTEL 0x6c65746eu /* ntel */

#define LEAF7_EBX_BMI2 BIT(8)
#define FAMILY_ZEN3    0x19u

static u32 family_of(u32 signature)
{
	return (signature >> 8 & 15) + (signature >> 20 & 255);
}

/* Those that Intel names for the erratum of jumps: Skylake to Cascade Lake and Comet Lake. */
static bool is_skylake(u32 signature)
{
	u32 model = (signature >> 4 & 15) | (signature >> 12 & 0xf0);

	if (family_of(signature) != 6)
		return false;
	switch (model) {
	case 0x4e:
	case 0x55:
	case 0x5e:
	case 0x8e:
	case 0x9e:
	case 0xa5:
	case 0xa6: return true;
	default: return false;
	}
}

void cpu_probe(void (*cpuid)(u32 leaf, u32 subleaf, u32 regs[4]))
{
	u32 r[4];

	ask(cpuid, 0, r);
	amd = r[2] == AUTHENTIC_AMD || r[2] == HYGON_GENUINE;
	if (r[2] == GENUINE_INTEL) {
		ask(cpuid, 1, r);
		whole_jumps = is_skylake(r[0]);
	}
	ask(cpuid, 7, r);
	fast_pext = r[1] & LEAF7_EBX_BMI2;
	if (fast_pext && amd) {
		ask(cpuid, 1, r);
		fast_pext = family_of(r[0]) >= FAMILY_ZEN3;
	}
	probe_flags();
	near16 = insn_cpu_has_near16();
	insn_set_near16(near16);
}

u64 cpu_found(void)
{
	u64 sum = (u64)amd | (u64)fast_pext << 1 | (u64)near16 << 2 | (u64)whole_jumps << 3;

	for (u32 i = 0; i < KINDS; i++)
		sum = (sum ^ sets[i]) * 0x9e3779b97f4a7c15ull;
	return sum;
}

bool cpu_is_amd(void)
{
	return amd;
}

bool cpu_likes_whole_jumps(void)
{
	return whole_jumps;
}

bool cpu_has_fast_pext(void)
{
	return fast_pext;
}

u16 flags_set_besides(const struct insn *d)
{
	enum flag_kind kind = kind_of(d);

	return kind == KIND_NONE ? 0 : sets[kind];
}
