/* PURPOSE: --by symbol: in which functions a count has changed. */
#ifndef CLI_COMPARE_COMPARE_SYMBOLS_H
#define CLI_COMPARE_COMPARE_SYMBOLS_H

#include "cli/compare/compare-priv.h"
#include "cli/json.h"

#define SYMBOLS_SHOWN 12

struct symbol_row {
	char *name; /* of the function, or "[file]" where nobody knows it; owned */
	u64 samples[COMPARE_SIDES_MAX];
};

/* Runs each command once more. 0, or -1 with job->status set, after saying what ended it. */
must_check int compare_symbols(struct compare_job *job);

/* By how many samples the change of a row may be off. */
double symbol_doubt(const struct symbol_row *row, u32 side);

/*
 * The functions whose change is beyond what it may be off by, the largest first, at most @most.
 * Returns how many.
 */
u32 symbols_changed(const struct compare_job *job, u32 side, const struct symbol_row **rows,
		    u32 most);

void compare_symbols_text(const struct compare_job *job, FILE *out);
void compare_symbols_json(const struct compare_job *job, u32 side, struct json *j);
void compare_symbols_free(struct compare_job *job);

#endif
