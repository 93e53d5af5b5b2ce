/* Arithmetic in nested loops, with carries, shifts by variable counts, divisions. */
#include "corpus.h"

int run(void)
{
	uint64_t a = 0x9e3779b97f4a7c15, b = 1, c = 0;

	for (unsigned int i = 1; i < 100; i++) {
		for (unsigned int j = 0; j < 8; j++) {
			a ^= a << (j + 7);
			a ^= a >> 9;
			b += a / (i + j);
			c = (c << (i & 63)) | (c >> (64 - (i & 63 ? i & 63 : 1)));
			c += b % 1000;
			if ((a & 3) == 1)
				c ^= 0x5555;
			else if ((a & 3) == 2)
				c *= 3;
		}
	}
	say(a);
	say(b);
	say(c);
	return 0;
}
