/* PURPOSE: numbers at random, for fuzzers that make up requests instead of changing inputs. */
#ifndef FUZZ_ANY_H
#define FUZZ_ANY_H

#include "abi/wire.h"

/* Not 0; each thread has its own. */
static __thread u64 any_state;

static inline u64 any(void)
{
	any_state ^= any_state << 13;
	any_state ^= any_state >> 7;
	any_state ^= any_state << 17;
	return any_state;
}

static inline u64 below(u64 n)
{
	return any() % n;
}

/* Numbers that limits and errors are made of; now and then any. */
static inline u64 odd(void)
{
	static const u64 values[] = {0,
				     1,
				     2,
				     3,
				     4,
				     7,
				     8,
				     9,
				     15,
				     16,
				     23,
				     24,
				     63,
				     64,
				     255,
				     256,
				     257,
				     4095,
				     4096,
				     4097,
				     16384,
				     WIRE_DATA,
				     WIRE_SLOTS,
				     0x7fff,
				     0x7fffffff,
				     ~0u,
				     0x80000000,
				     WIRE_DATA + 1,
				     ~0ull,
				     1ull << 63,
				     ~0ull >> 1,
				     -4095ull,
				     -2ull,
				     -4096ull,
				     -22ull,
				     -110ull,
				     WIRE_NO_METER};

	return below(4) ? values[below(ARRAY_SIZE(values))] : any();
}

#endif
