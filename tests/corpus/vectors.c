/*
 * What is copied verbatim: x87, SSE, AVX2, AVX-512 with masks, gathers, BMI; each with operands
 * relative to rip, on the stack and indexed. Without the CPU's support a part is left out, natively
 * as well.
 */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static float table[64];
static const double constants[4] = {1.5, 2.25, -3.0, 1e-3};

static long double x87(void)
{
	long double v = 1;
	double d;

	for (int i = 1; i < 12; i++) {
		__asm__ volatile("fldl %1\n	fmulp\n	fld1\n	faddp\n	fsqrt"
				 : "+t"(v)
				 : "m"(constants[i & 3 ? 1 : 0]));
		__asm__ volatile("fstl %0" : "=m"(d) : "t"(v));
	}
	return v;
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))) static uint64_t avx512(void)
{
	__m512 a = _mm512_loadu_ps(table), b = _mm512_set1_ps(1.25f);
	__mmask16 k = _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
	__m512i index = _mm512_set_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42,
					 45);
	__m512 g = _mm512_mask_i32gather_ps(a, k, index, table, 4);
	float out[16];
	uint64_t h;

	a = _mm512_maskz_fmadd_ps(k, a, g, b);
	_mm512_mask_storeu_ps(out, 0xffff, a);
	_mm512_mask_compressstoreu_ps(out, k, g);
	h = (uint64_t)_cvtmask16_u32(_kxor_mask16(k, 0x5a5a));
	for (int i = 0; i < 16; i++)
		h = h * 31 + (uint64_t)(out[i] * 64);
	return h;
}

__attribute__((target("avx2,bmi,bmi2,fma"))) static uint64_t avx2(void)
{
	__m256 a = _mm256_loadu_ps(table + 8);
	__m256i i = _mm256_cvtps_epi32(_mm256_fmadd_ps(a, a, _mm256_set1_ps(0.5f)));
	uint64_t v[4];

	_mm256_storeu_si256((__m256i *)v, i);
	return _pext_u64(v[0] ^ v[3], 0x00ff00ff00ff00ff) + _pdep_u64(v[1], 0xf0f0f0f0) +
	       _blsr_u64(v[2]) + _tzcnt_u64(v[3]);
}

int main(void)
{
	__m128d d = _mm_load_pd(constants);

	for (int i = 0; i < 64; i++)
		table[i] = (float)i * 0.37f + (float)constants[i & 3];
	printf("%.15Lg\n", x87());
	d = _mm_add_pd(_mm_sqrt_pd(d), _mm_loadu_pd(constants + 2));
	printf("%.15g\n", d[0] + d[1]);
	if (__builtin_cpu_supports("avx2"))
		printf("avx2 %llx\n", (unsigned long long)avx2());
	if (__builtin_cpu_supports("avx512f"))
		printf("avx512 %llx\n", (unsigned long long)avx512());
	return 0;
}
