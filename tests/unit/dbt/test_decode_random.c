/*
 * Random byte strings, decoded by us and by Zydis: test_decode_random COUNT [SEED]. Half of them
 * begin like an instruction of one of the crowded maps, since few random strings would.
 */
#include "unit/dbt/decode_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64*: the same strings on every machine. */
static u64 next(u64 *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1d;
}

static void steer(u8 *b, u64 r)
{
	switch (r & 15) {
	case 0: b[0] = 0x0f; break;
	case 1:
		b[0] = (r >> 8) & 1 ? 0x66 : (r >> 9) & 1 ? 0xf2 : 0xf3;
		b[1] = 0x0f;
		break;
	case 2:
		b[0] = 0x0f;
		b[1] = (r >> 8) & 1 ? 0x38 : 0x3a;
		break;
	case 3: /* vex, vvvv mostly unused */
		b[0] = 0xc4;
		b[1] = (b[1] & 0xe0) | (1 + (r >> 8) % 3);
		if ((r >> 16) & 1)
			b[2] |= 0x78;
		break;
	case 4: b[0] = 0xc5; break;
	case 5:
	case 6: /* evex */
		b[0] = 0x62;
		b[1] = (b[1] & 0xf0) | (1 + (r >> 8) % 6);
		b[2] |= 4;
		if ((r >> 16) & 1) {
			b[2] |= 0x78;
			b[3] |= 8;
		}
		break;
	case 7:
		b[0] = 0x8f;
		b[1] = (b[1] & 0xe0) | (8 + (r >> 8) % 3);
		break;
	}
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000;
	u64 state = argc > 2 ? strtoul(argv[2], NULL, 0) : 0x616e7970657266;
	u8 b[16];

	for (unsigned long i = 0; i < count; i++) {
		u64 w[2] = {next(&state), next(&state)};

		memcpy(b, w, sizeof(b));
		steer(b, next(&state));
		(void)oracle_compare(b, INSN_MAX);
	}
	printf("%lu strings, %lu instructions, %lu explained, %lu differences\n", count,
	       oracle_compared, oracle_exceptions, oracle_differences);
	return oracle_differences || !oracle_compared;
}
