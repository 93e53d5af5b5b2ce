/* PURPOSE: --by symbol: in which functions a count has changed. */
#ifndef CLI_COMPARE_COMPARE_SYMBOLS_H
#define CLI_COMPARE_COMPARE_SYMBOLS_H

#include "cli/compare/compare-priv.h"
#include "cli/json.h"

#define SYMBOLS_SHOWN   12
#define SYMBOLS_KEPT    500 /* of a baseline: the largest */
#define SYMBOL_NAME_MAX 200

struct symbol_row {
	char *name; /* of the function, or "[file]" where nobody knows it; owned */
	u64 count[COMPARE_SIDES_MAX + 1]; /* in periods */
	u64 again[COMPARE_SIDES_MAX + 1]; /* of a second run, if the side was profiled twice */
};

/* The row of that name, which is made if there is none. Good until the next call. */
struct symbol_row *symbol_find(struct symbol_table *t, const char *name);

/* Runs each command once more. 0, or -1 with job->status set, after saying what ended it. */
must_check int compare_symbols(struct compare_job *job);

/* Whether each number is to the last instruction. */
bool symbols_are_exact(const struct compare_job *job, u32 side);

/* By how many periods the change of a row may be off; 0: it is exact. */
double symbol_doubt(const struct compare_job *job, const struct symbol_row *row, u32 side);

/*
 * The functions whose change is beyond what it may be off by, the largest first, at most @most.
 * Returns how many.
 */
u32 symbols_changed(const struct compare_job *job, u32 side, const struct symbol_row **rows,
		    u32 most);

/*
 * The rows of the largest counts of @side, at most SYMBOLS_KEPT, by name; how many. *@left_out: the
 * largest count that is not among them, or 0.
 */
u32 symbols_to_keep(const struct compare_job *job, u32 side, const struct symbol_row **rows,
		    u64 *left_out);

void compare_symbols_text(const struct compare_job *job, FILE *out);
void compare_symbols_json(const struct compare_job *job, u32 side, struct json *j);
void compare_symbols_free(struct compare_job *job);

#endif
