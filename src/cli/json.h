/*
 * PURPOSE: writes one JSON text to a stream, member by member. Commas, quoting and nesting are the
 * writer's business; the order and the names are the caller's. Every text ends with a newline and
 * stands on one line, so that several make a JSON Lines file; but see json_begin_lines().
 *
 *   json_begin(&j, out);
 *   json_object(&j, NULL);
 *   json_u64(&j, "count", 12);
 *   json_end(&j);
 *   json_finish(&j);
 *
 * In an array the key is NULL.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdio.h>

#include "base/types.h"

struct json {
	FILE *out; /* borrowed */
	u32 depth;
	u64 array;  /* bit d: what is open at depth d is an array */
	u64 some;   /* bit d: it has a member already */
	bool lines; /* each member stands on a line of its own */
};

void json_begin(struct json *j, FILE *out);

/* The same with a line for each member, for a file that is kept under version control. */
void json_begin_lines(struct json *j, FILE *out);

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);

/* Closes the innermost object or array. */
void json_end(struct json *j);

/* Ends the text; everything that was opened must be closed. */
void json_finish(struct json *j);

/* NULL is written as null. Bytes that are not UTF-8 become U+FFFD. */
void json_str(struct json *j, const char *key, const char *value);
void json_u64(struct json *j, const char *key, u64 value);
void json_s64(struct json *j, const char *key, s64 value);
void json_bool(struct json *j, const char *key, bool value);

/* @digits after the point; what is no number (NaN, infinity) is written as null. */
void json_double(struct json *j, const char *key, double value, int digits);

#endif
