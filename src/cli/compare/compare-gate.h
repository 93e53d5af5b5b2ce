/*
 * PURPOSE: --fail-if: a limit for how much more, or less, a command may do than the first, and
 * whether it was kept.
 */
#ifndef CLI_COMPARE_COMPARE_GATE_H
#define CLI_COMPARE_COMPARE_GATE_H

#include "base/types.h"

#define GATE_NAME_MAX 120

/* "NAME>+0.1%", "NAME>+5000", "time>+5ms", "NAME<-1%". */
struct gate {
	const char *text;             /* as written; borrowed */
	char name[GATE_NAME_MAX + 1]; /* of an event, or a quantity of the time pass */
	bool below;                   /* '<': broken by less, not by more */
	bool percent;                 /* else in the unit of what is named */
	char unit;                    /* 's' seconds, 'b' bytes, 0: none was written */
	double limit;
};

/* False, with a sentence in @why, if @text is none. */
must_check bool gate_parse(struct gate *g, const char *text, char *why, size_t size);

enum gate_result {
	GATE_HELD,
	GATE_BROKEN,       /* all that the change may be lies beyond the limit */
	GATE_INCONCLUSIVE, /* what it most likely is lies beyond, but not all that it may be */
};

/* A change, in the unit of the limit, and between what bounds it lies. */
struct gate_change {
	double value, low, high;
};

enum gate_result gate_judge(const struct gate *g, const struct gate_change *c);

#endif
