/*
 * PURPOSE: what a tracepoint's record looks like: the fields that tracefs lists in the event's
 * `format` file. Pure: text in, a table out.
 *
 * Lifetime: a plain value.
 */
#ifndef PMU_TRACEPOINT_FORMAT_H
#define PMU_TRACEPOINT_FORMAT_H

#include "base/types.h"

#define TP_FIELDS     32u
#define TP_FIELD_NAME 40u
#define TP_SIZE_MAX   256u /* bytes of a record that are known by fields of fixed places */

enum tp_field_kind {
	TP_NUMBER,
	TP_CHARS,   /* an array of chars, ended by a NUL or by its size */
	TP_POINTER, /* the address of a string */
	TP_DYNAMIC, /* a string behind the fields: where (16 bits), and its size */
	TP_OTHER,   /* an array, or what has its place in the record */
};

struct tp_field {
	char name[TP_FIELD_NAME];
	u16 offset, size;
	bool is_signed;
	u8 kind; /* enum tp_field_kind */
};

struct tp_format {
	u32 nr;
	u32 size; /* of a record, as far as its fields say */
	struct tp_field field[TP_FIELDS];
};

/* 0, or -EINVAL: no such file's text, or more than there is room for. */
int must_check tp_format_parse(const char *text, struct tp_format *format);

/* NULL: there is none of that name. */
const struct tp_field *tp_field_find(const struct tp_format *format, const char *name, size_t len);

#endif
