/* PURPOSE: two cores of models that should have counted the same. */
#ifndef UNIT_MODEL_SAME_COUNTS_H
#define UNIT_MODEL_SAME_COUNTS_H

#include "model/model.h"
#include "unit/test.h"

static inline void expect_same(const struct model_core *a, const struct model_core *b,
			       const char *what)
{
	for (u32 i = 0; i < MODEL_COUNTERS; i++) {
		u64 one = model_count(a, (enum model_counter)i);
		u64 other = model_count(b, (enum model_counter)i);

		if (one != other)
			TEST_FAIL("%s: counter %u is %llu for one core, %llu for the other", what,
				  i, (unsigned long long)one, (unsigned long long)other);
	}
}

#endif
