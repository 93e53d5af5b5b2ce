/* Classes of instructions for the model's cycles, by their bytes. */
#include "dbt/arch/x86_64/insn-cost.h"
#include "unit/dbt/random_insn.h"
#include "unit/test.h"

TEST(classes)
{
	static const struct {
		const char *text;
		u8 bytes[INSN_MAX];
		enum cost_class class;
		u32 loads, stores;
	} cases[] = {
		{"add eax, ebx", {0x01, 0xd8}, COST_INT, 0, 0},
		{"add eax, [rdi]", {0x03, 0x07}, COST_INT, 1, 0},
		{"add [rdi], eax", {0x01, 0x07}, COST_INT, 1, 1},
		{"lock add [rdi], eax", {0xf0, 0x01, 0x07}, COST_ATOMIC, 1, 1},
		{"xchg [rdi], eax", {0x87, 0x07}, COST_ATOMIC, 1, 1},
		{"cmpxchg16b [rdi]", {0x48, 0x0f, 0xc7, 0x0f}, COST_ATOMIC, 1, 1},
		{"mov eax, ebx", {0x89, 0xd8}, COST_NOP, 0, 0},
		{"mov al, bl", {0x88, 0xd8}, COST_INT, 0, 0},
		{"mov eax, [rdi]", {0x8b, 0x07}, COST_LOAD, 1, 0},
		{"mov [rdi], eax", {0x89, 0x07}, COST_STORE, 0, 1},
		{"mov [rdi], 1", {0xc7, 0x07, 1, 0, 0, 0}, COST_STORE, 0, 1},
		{"movzx eax, byte [rdi]", {0x0f, 0xb6, 0x07}, COST_LOAD, 1, 0},
		{"movzx eax, bl", {0x0f, 0xb6, 0xc3}, COST_INT, 0, 0},
		{"push rax", {0x50}, COST_STORE, 0, 1},
		{"pop rax", {0x58}, COST_LOAD, 1, 0},
		{"lea rax, [rdi+rsi]", {0x48, 0x8d, 0x04, 0x37}, COST_INT, 0, 0},
		{"lea rax, [rdi+rsi+8]", {0x48, 0x8d, 0x44, 0x37, 8}, COST_LEA, 0, 0},
		{"nop", {0x90}, COST_NOP, 0, 0},
		{"nop dword [rax]", {0x0f, 0x1f, 0x00}, COST_NOP, 0, 0},
		{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, COST_NOP, 0, 0},
		{"pause", {0xf3, 0x90}, COST_FENCE, 0, 0},
		{"mfence", {0x0f, 0xae, 0xf0}, COST_FENCE, 0, 0},
		{"shl eax, 3", {0xc1, 0xe0, 3}, COST_SHIFT, 0, 0},
		{"popcnt eax, ebx", {0xf3, 0x0f, 0xb8, 0xc3}, COST_SHIFT, 0, 0},
		{"imul eax, ebx", {0x0f, 0xaf, 0xc3}, COST_INT_MUL, 0, 0},
		{"mul rbx", {0x48, 0xf7, 0xe3}, COST_INT_MUL, 0, 0},
		{"div rbx", {0x48, 0xf7, 0xf3}, COST_INT_DIV, 0, 0},
		{"idiv dword [rdi]", {0xf7, 0x3f}, COST_INT_DIV, 1, 0},
		{"not eax", {0xf7, 0xd0}, COST_INT, 0, 0},
		{"crc32 eax, ebx", {0xf2, 0x0f, 0x38, 0xf1, 0xc3}, COST_CRYPTO, 0, 0},
		{"movbe eax, [rdi]", {0x0f, 0x38, 0xf0, 0x07}, COST_LOAD, 1, 0},
		{"jmp +0", {0xeb, 0}, COST_BRANCH, 0, 0},
		{"je +0", {0x74, 0}, COST_BRANCH, 0, 0},
		{"jmp [rdi]", {0xff, 0x27}, COST_BRANCH, 1, 0},
		{"call +0", {0xe8, 0, 0, 0, 0}, COST_CALL, 0, 1},
		{"call [rdi]", {0xff, 0x17}, COST_CALL, 1, 1},
		{"ret", {0xc3}, COST_CALL, 1, 0},
		{"syscall", {0x0f, 0x05}, COST_SYSTEM, 0, 0},
		{"cpuid", {0x0f, 0xa2}, COST_SYSTEM, 0, 0},
		{"rdtsc", {0x0f, 0x31}, COST_SYSTEM, 0, 0},
		{"rep movsb", {0xf3, 0xa4}, COST_STRING, 1, 1},
		{"movaps xmm0, xmm1", {0x0f, 0x28, 0xc1}, COST_VEC, 0, 0},
		{"movaps xmm0, [rdi]", {0x0f, 0x28, 0x07}, COST_LOAD, 1, 0},
		{"movaps [rdi], xmm0", {0x0f, 0x29, 0x07}, COST_STORE, 0, 1},
		{"pxor xmm0, xmm1", {0x66, 0x0f, 0xef, 0xc1}, COST_VEC, 0, 0},
		{"movd xmm0, eax", {0x66, 0x0f, 0x6e, 0xc0}, COST_CONVERT, 0, 0},
		{"addsd xmm0, [rdi]", {0xf2, 0x0f, 0x58, 0x07}, COST_FP_ADD, 1, 0},
		{"mulsd xmm0, xmm1", {0xf2, 0x0f, 0x59, 0xc1}, COST_FP_MUL, 0, 0},
		{"divsd xmm0, xmm1", {0xf2, 0x0f, 0x5e, 0xc1}, COST_FP_DIV, 0, 0},
		{"sqrtpd xmm0, xmm1", {0x66, 0x0f, 0x51, 0xc1}, COST_FP_DIV, 0, 0},
		{"cvtsi2sd xmm0, eax", {0xf2, 0x0f, 0x2a, 0xc0}, COST_CONVERT, 0, 0},
		{"pshufd xmm0, xmm1, 0", {0x66, 0x0f, 0x70, 0xc1, 0}, COST_SHUFFLE, 0, 0},
		{"pshufb xmm0, xmm1", {0x66, 0x0f, 0x38, 0x00, 0xc1}, COST_SHUFFLE, 0, 0},
		{"aesenc xmm0, xmm1", {0x66, 0x0f, 0x38, 0xdc, 0xc1}, COST_CRYPTO, 0, 0},
		{"pclmulqdq xmm0, xmm1, 0", {0x66, 0x0f, 0x3a, 0x44, 0xc1, 0}, COST_CRYPTO, 0, 0},
		{"vfmadd231pd ymm0, ymm1, [rdi]",
		 {0xc4, 0xe2, 0xf5, 0xb8, 0x07},
		 COST_FP_MUL,
		 1,
		 0},
		{"vpgatherdd xmm0, [rdi+xmm1], xmm2",
		 {0xc4, 0xe2, 0x69, 0x90, 0x04, 0x0f},
		 COST_GATHER,
		 1,
		 0},
		{"vpaddd zmm0, zmm1, zmm2", {0x62, 0xf1, 0x75, 0x48, 0xfe, 0xc2}, COST_VEC, 0, 0},
		{"fld qword [rdi]", {0xdd, 0x07}, COST_X87, 1, 0},
		{"fdiv st0, st1", {0xd8, 0xf1}, COST_FP_DIV, 0, 0},
		{"fsqrt", {0xd9, 0xfa}, COST_FP_DIV, 0, 0},
		{"prefetcht0 [rdi]", {0x0f, 0x18, 0x0f}, COST_LOAD, 0, 0},
		{"mulx rax, rbx, rcx", {0xc4, 0xe2, 0xe3, 0xf6, 0xc1}, COST_INT_MUL, 0, 0},
		{"rorx eax, ebx, 3", {0xc4, 0xe3, 0x7b, 0xf0, 0xc3, 3}, COST_SHIFT, 0, 0},
	};
	struct machine m = {.core = {.width = 1}};

	/* Of one load and of one store, so that the cost tells how many there were. */
	m.class[COST_LOAD].throughput = 1;
	m.class[COST_STORE].throughput = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cost cost = {0};
		struct insn insn;

		if (insn_decode(&insn, cases[i].bytes, INSN_MAX) <= 0) {
			TEST_FAIL("%s is not decoded", cases[i].text);
			continue;
		}
		insn_cost_add(&cost, &m, &insn);
		if (insn_cost_class(&insn) != cases[i].class ||
		    cost.port[PORT_LOAD] != cases[i].loads ||
		    cost.port[PORT_STORE] != cases[i].stores)
			TEST_FAIL("%s: class %u, %u loads, %u stores, expected %u, %u, %u",
				  cases[i].text, insn_cost_class(&insn),
				  (unsigned int)cost.port[PORT_LOAD],
				  (unsigned int)cost.port[PORT_STORE], cases[i].class,
				  cases[i].loads, cases[i].stores);
	}
}

/* Whatever decodes has a class. */
TEST(any_bytes)
{
	u64 state = 4711;

	for (u32 i = 0; i < 1000000; i++) {
		struct insn insn;

		if (random_insn(&state, &insn))
			EXPECT(insn_cost_class(&insn) < COST_CLASSES);
	}
}
