/* PURPOSE: what the printers of `anyperf compare` have in common: values and verdicts in words. */
#ifndef CLI_COMPARE_COMPARE_TEXT_H
#define CLI_COMPARE_COMPARE_TEXT_H

#include "cli/compare/compare-priv.h"

/* "12.30 ms", "3.20 MB", "104"; 32 bytes are enough. */
void compare_quantity_text(enum timed_quantity q, double value, char *buf, size_t size);

/* What an interval says of a quantity, a few words. */
const char *compare_verdict(enum timed_quantity q, const struct ratio *r);

/*
 * That @side's command line is longer or shorter than the first one's, a sentence, if it may be why
 * counts differ; false: it is not.
 */
bool compare_lengths_text(const struct compare_job *job, const struct compare_side *side, char *buf,
			  size_t size);

const char *compare_result_name(enum gate_result result);

/* A sentence without a full stop: "time>+5%: held: B is +1.0 %, between ...". */
void compare_judged_text(const struct compare_judged *j, char *buf, size_t size);

/* The part about times; @width is the terminal's, for boxes, 0: there is none. */
void compare_times_text(const struct compare_job *job, FILE *out, int width);

#endif
