/*
 * PURPOSE: instructions of random bytes, for tests of what is said of any instruction.
 */
#ifndef UNIT_DBT_RANDOM_INSN_H
#define UNIT_DBT_RANDOM_INSN_H

#include <string.h>

#include "dbt/arch/x86_64/decode.h"

/* The next one, from @state, which is not 0. False: the bytes are none. */
static inline bool random_insn(u64 *state, struct insn *insn)
{
	u8 bytes[16];

	_Static_assert(sizeof(bytes) > INSN_MAX, "an instruction fits");
	for (u32 i = 0; i < sizeof(bytes); i += 8) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		memcpy(bytes + i, state, 8);
	}
	return insn_decode(insn, bytes, INSN_MAX) > 0;
}

#endif
