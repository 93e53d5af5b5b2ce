/* What instructions do with floating-point numbers, by their bytes; and what is counted of that. */
#include "dbt/arch/x86_64/insn-floats.h"
#include "unit/dbt/random_insn.h"
#include "unit/model/machines.h"
#include "unit/test.h"

#define WORK(op, type, width)                                          \
	{                                                              \
		FLOATS_##op, FLOATS_##type, FLOATS_##width, FLOATS_SSE \
	}
#define SET(set)                                                        \
	{                                                               \
		FLOATS_NONE, FLOATS_SINGLE, FLOATS_SCALAR, FLOATS_##set \
	}

TEST(instructions)
{
	static const struct {
		const char *text;
		u8 bytes[INSN_MAX];
		u32 op, type, width, set;
	} cases[] = {
		{"add eax, ebx", {0x01, 0xd8}, 0, 0, 0, 0},
		{"prefetcht0 [rdi]", {0x0f, 0x18, 0x0f}, 0, 0, 0, 0},
		{"fxsave [rdi]", {0x0f, 0xae, 0x07}, 0, 0, 0, 0},
		{"ldmxcsr [rdi]", {0x0f, 0xae, 0x17}, 0, 0, 0, FLOATS_SSE},
		{"fld1", {0xd9, 0xe8}, 0, 0, 0, FLOATS_X87},
		{"fadd st0, st1", {0xd8, 0xc1}, 0, 0, 0, FLOATS_X87},
		{"fld qword [rdi]", {0xdd, 0x07}, 0, 0, 0, FLOATS_X87},
		{"emms", {0x0f, 0x77}, 0, 0, 0, FLOATS_MMX},
		{"paddb mm0, mm1", {0x0f, 0xfc, 0xc1}, 0, 0, 0, FLOATS_MMX},
		{"pshufb mm0, mm1", {0x0f, 0x38, 0x00, 0xc1}, 0, 0, 0, FLOATS_MMX},
		{"palignr mm0, mm1, 1", {0x0f, 0x3a, 0x0f, 0xc1, 1}, 0, 0, 0, FLOATS_MMX},
		{"paddb xmm0, xmm1", {0x66, 0x0f, 0xfc, 0xc1}, 0, 0, 0, FLOATS_SSE},
		{"movaps xmm0, xmm1", {0x0f, 0x28, 0xc1}, 0, 0, 0, FLOATS_SSE},
		{"ucomisd xmm0, xmm1", {0x66, 0x0f, 0x2e, 0xc1}, 0, 0, 0, FLOATS_SSE},
		{"cvtsi2sd xmm0, eax", {0xf2, 0x0f, 0x2a, 0xc0}, 0, 0, 0, FLOATS_SSE},
		{"sha1rnds4 xmm0, xmm1, 0", {0x0f, 0x3a, 0xcc, 0xc1, 0}, 0, 0, 0, FLOATS_SSE},
		{"addss", {0xf3, 0x0f, 0x58, 0xc1}, FLOATS_ADD, FLOATS_SINGLE, 0, FLOATS_SSE},
		{"addsd", {0xf2, 0x0f, 0x58, 0xc1}, FLOATS_ADD, FLOATS_DOUBLE, 0, FLOATS_SSE},
		{"subps", {0x0f, 0x5c, 0xc1}, FLOATS_ADD, FLOATS_SINGLE, FLOATS_128, FLOATS_SSE},
		{"mulpd",
		 {0x66, 0x0f, 0x59, 0xc1},
		 FLOATS_MUL,
		 FLOATS_DOUBLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"divsd", {0xf2, 0x0f, 0x5e, 0xc1}, FLOATS_DIV, FLOATS_DOUBLE, 0, FLOATS_SSE},
		{"sqrtps", {0x0f, 0x51, 0xc1}, FLOATS_DIV, FLOATS_SINGLE, FLOATS_128, FLOATS_SSE},
		{"rcpss", {0xf3, 0x0f, 0x53, 0xc1}, FLOATS_OTHER, FLOATS_SINGLE, 0, FLOATS_SSE},
		{"minpd",
		 {0x66, 0x0f, 0x5d, 0xc1},
		 FLOATS_OTHER,
		 FLOATS_DOUBLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"haddps",
		 {0xf2, 0x0f, 0x7c, 0xc1},
		 FLOATS_ADD,
		 FLOATS_SINGLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"hsubpd",
		 {0x66, 0x0f, 0x7d, 0xc1},
		 FLOATS_ADD,
		 FLOATS_DOUBLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"addsubps",
		 {0xf2, 0x0f, 0xd0, 0xc1},
		 FLOATS_ADD,
		 FLOATS_SINGLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"dpps",
		 {0x66, 0x0f, 0x3a, 0x40, 0xc1, 0xff},
		 FLOATS_DOT,
		 FLOATS_SINGLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"dppd",
		 {0x66, 0x0f, 0x3a, 0x41, 0xc1, 0xff},
		 FLOATS_DOT,
		 FLOATS_DOUBLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"vaddpd ymm0, ymm1, [rdi]",
		 {0xc5, 0xf5, 0x58, 0x07},
		 FLOATS_ADD,
		 FLOATS_DOUBLE,
		 FLOATS_256,
		 FLOATS_SSE},
		{"vfmadd231pd ymm0, ymm1, [rdi]",
		 {0xc4, 0xe2, 0xf5, 0xb8, 0x07},
		 FLOATS_FUSED,
		 FLOATS_DOUBLE,
		 FLOATS_256,
		 FLOATS_SSE},
		{"vfmadd231ss xmm0, xmm1, xmm2",
		 {0xc4, 0xe2, 0x71, 0xb9, 0xc2},
		 FLOATS_FUSED,
		 FLOATS_SINGLE,
		 0,
		 FLOATS_SSE},
		{"vfnmadd213sd xmm0, xmm1, xmm2",
		 {0xc4, 0xe2, 0xf1, 0xad, 0xc2},
		 FLOATS_FUSED,
		 FLOATS_DOUBLE,
		 0,
		 FLOATS_SSE},
		{"vfmaddsub132ps xmm0, xmm1, xmm2",
		 {0xc4, 0xe2, 0x71, 0x96, 0xc2},
		 FLOATS_FUSED,
		 FLOATS_SINGLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"vpdpbusd xmm0, xmm1, xmm2", {0xc4, 0xe2, 0x71, 0x50, 0xc2}, 0, 0, 0, FLOATS_SSE},
		{"vaddps zmm0{k1}, zmm1, zmm2",
		 {0x62, 0xf1, 0x74, 0x49, 0x58, 0xc2},
		 FLOATS_ADD,
		 FLOATS_SINGLE,
		 FLOATS_512,
		 FLOATS_SSE},
		{"vmulpd xmm0, xmm1, xmm2 of EVEX",
		 {0x62, 0xf1, 0xf5, 0x08, 0x59, 0xc2},
		 FLOATS_MUL,
		 FLOATS_DOUBLE,
		 FLOATS_128,
		 FLOATS_SSE},
		{"vmulps ymm0, ymm1, [rdi]{1to8}",
		 {0x62, 0xf1, 0x74, 0x38, 0x59, 0x07},
		 FLOATS_MUL,
		 FLOATS_SINGLE,
		 FLOATS_256,
		 FLOATS_SSE},
		{"vaddps zmm0, zmm1, zmm2, {rn}",
		 {0x62, 0xf1, 0x74, 0x18, 0x58, 0xc2},
		 FLOATS_ADD,
		 FLOATS_SINGLE,
		 FLOATS_512,
		 FLOATS_SSE},
		{"vrcp14pd zmm0, zmm1",
		 {0x62, 0xf2, 0xfd, 0x48, 0x4c, 0xc1},
		 FLOATS_OTHER,
		 FLOATS_DOUBLE,
		 FLOATS_512,
		 FLOATS_SSE},
		{"vrsqrt14ss xmm0, xmm1, xmm2",
		 {0x62, 0xf2, 0x75, 0x08, 0x4f, 0xc2},
		 FLOATS_OTHER,
		 FLOATS_SINGLE,
		 0,
		 FLOATS_SSE},
		{"vdpbf16ps zmm0, zmm1, zmm2",
		 {0x62, 0xf2, 0x76, 0x48, 0x52, 0xc2},
		 FLOATS_FUSED,
		 FLOATS_BF16,
		 FLOATS_512,
		 FLOATS_SSE},
		{"vaddph zmm0, zmm1, zmm2",
		 {0x62, 0xf5, 0x74, 0x48, 0x58, 0xc2},
		 FLOATS_ADD,
		 FLOATS_HALF,
		 FLOATS_512,
		 FLOATS_SSE},
		{"kmovw k1, eax", {0xc5, 0xf8, 0x92, 0xc8}, 0, 0, 0, FLOATS_SSE},
		{"tilezero tmm0", {0xc4, 0xe2, 0x7b, 0x49, 0xc0}, 0, 0, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct insn insn;
		u16 want = floats_work(cases[i].op, cases[i].type, cases[i].width, cases[i].set);

		if (insn_decode(&insn, cases[i].bytes, INSN_MAX) <= 0)
			TEST_FAIL("%s is not decoded", cases[i].text);
		else if (insn_floats(&insn) != want)
			TEST_FAIL("%s: %#x, not %#x", cases[i].text, insn_floats(&insn), want);
	}
}

TEST(what_is_counted)
{
	static const struct {
		u8 work[4];
		u64 times;
		u32 counter[3];
		u64 value[3];
	} cases[] = {
		{WORK(ADD, SINGLE, SCALAR),
		 3,
		 {MODEL_FLOPS, MODEL_FLOAT_INSNS, MODEL_INSNS_SSE},
		 {3, 3, 3}},
		{WORK(MUL, DOUBLE, 128),
		 1,
		 {MODEL_FLOPS + 3, MODEL_FLOAT_INSNS + 3, MODEL_INSNS_SSE},
		 {2, 1, 1}},
		{WORK(DIV, SINGLE, 256),
		 2,
		 {MODEL_FLOPS + 4, MODEL_FLOAT_INSNS + 4, MODEL_INSNS_SSE},
		 {16, 2, 2}},
		{WORK(FUSED, DOUBLE, 512),
		 5,
		 {MODEL_FLOPS + 7, MODEL_FLOAT_INSNS + 7, MODEL_INSNS_SSE},
		 {80, 10, 5}},
		{WORK(OTHER, SINGLE, 512), 1, {MODEL_FLOAT_INSNS + 6, MODEL_INSNS_SSE}, {1, 1}},
		{WORK(FUSED, BF16, 512), 1, {MODEL_FLOPS_BF16, MODEL_INSNS_SSE}, {64, 1}},
		{WORK(ADD, HALF, 512), 1, {MODEL_INSNS_SSE}, {1}},
		{SET(X87), 7, {MODEL_INSNS_X87}, {7}},
		{SET(MMX), 1, {MODEL_INSNS_MMX}, {1}},
	};
	struct machine m = small_machine();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct model *model = model_new(&m, 1, MODEL_FLOATS);
		struct model_core *core = model_core(model, 0);
		const u8 *w = cases[i].work;
		u16 work = floats_work(w[0], w[1], w[2], w[3]);
		u64 sum = 0, all = 0;

		model_floats(core, work, cases[i].times);
		for (u32 k = 0; k < 3; k++) {
			u64 value = model_count(core, (enum model_counter)cases[i].counter[k]);

			all += cases[i].value[k];
			if (cases[i].value[k])
				EXPECT_EQ(value, cases[i].value[k]);
		}
		/* The others are sums of these. */
		for (u32 k = 0; k < MODEL_INSNS_FLOAT; k++)
			sum += model_count(core, (enum model_counter)k);
		EXPECT_EQ(sum, all);
		model_free(model);
	}
}

/* A dot product is a multiplication and an addition of each element, and two calculations. */
TEST(dot_products)
{
	struct machine m = small_machine();
	struct model *model = model_new(&m, 1, MODEL_FLOATS);
	struct model_core *core = model_core(model, 0);

	model_floats(core, floats_work(FLOATS_DOT, FLOATS_SINGLE, FLOATS_128, FLOATS_SSE), 1);
	EXPECT_EQ(model_count(core, MODEL_FLOPS), 4);
	EXPECT_EQ(model_count(core, MODEL_FLOPS + 2), 4);
	EXPECT_EQ(model_count(core, MODEL_FLOAT_INSNS + 2), 2);
	EXPECT_EQ(model_count(core, MODEL_FLOPS_OF), 4);
	EXPECT_EQ(model_count(core, MODEL_FLOPS_OF + MODEL_MUL), 4);
	EXPECT_EQ(model_count(core, MODEL_FLOPS_ALL), 8);
	EXPECT_EQ(model_count(core, MODEL_INSNS_FLOAT), 1);
	model_free(model);
}

/* Whatever decodes says something that fits its place. */
TEST(any_bytes)
{
	u64 state = 815;

	for (u32 i = 0; i < 1000000; i++) {
		struct insn insn;

		if (random_insn(&state, &insn))
			EXPECT(insn_floats(&insn) < FLOATS_WORK_MAX);
	}
}
