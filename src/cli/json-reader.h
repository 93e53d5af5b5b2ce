/*
 * PURPOSE: reads one JSON text into values that can be asked for their members. The text is
 * somebody else's: its size, its depth and every byte of it are bounded or checked, and what is no
 * JSON is refused with the line.
 *
 * Lifetime: json_read() to json_release(). Values and their strings live as long.
 */
#ifndef CLI_JSON_READER_H
#define CLI_JSON_READER_H

#include "base/types.h"

enum json_kind {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json_value {
	enum json_kind kind;
	const char *key;  /* of a member of an object; NULL: of an array, or the whole */
	const char *text; /* of a string, decoded; of a number, as written */
	u32 first, next;  /* numbers of the first member, of the next of the same parent; 0: none */
};

struct json_text {
	char *strings;             /* owned; what keys and texts point into */
	struct json_value *values; /* owned; the whole is the first */
	u32 nr_values, room;
};

/* 0, or -EINVAL with a sentence in @why; then there is nothing to release. */
must_check int json_read(struct json_text *t, const char *bytes, size_t len, char *why,
			 size_t size);
void json_release(struct json_text *t);

/* The first member, and the one after @v; NULL: there is none. */
const struct json_value *json_first(const struct json_text *t, const struct json_value *v);
const struct json_value *json_next(const struct json_text *t, const struct json_value *v);

/* The member @key of @object, if it is of @kind; NULL: there is none, or @object is none. */
const struct json_value *json_member(const struct json_text *t, const struct json_value *object,
				     const char *key, enum json_kind kind);

/* Its text; NULL if there is no such string. */
const char *json_member_text(const struct json_text *t, const struct json_value *object,
			     const char *key);

/* A whole number of 64 bits; false if there is none. */
must_check bool json_member_u64(const struct json_text *t, const struct json_value *object,
				const char *key, u64 *value);

#endif
