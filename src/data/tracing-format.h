/*
 * PURPOSE: the fields of a tracepoint, out of the formats that a recording carries (the feature
 * TRACING_DATA). The text is the kernel's, and is not believed.
 */
#ifndef DATA_TRACING_FORMAT_H
#define DATA_TRACING_FORMAT_H

#include "base/types.h"

/* A field of the raw data of a sample. */
struct data_field {
	char name[64];
	u32 offset, size;
	bool is_signed;
	bool text;    /* characters up to a NUL */
	bool dynamic; /* four bytes that say where it is: offset, and length above 16 bits */
};

/* The format of the event whose attr.config is @id, *@size bytes of it; NULL: there is none. */
const char *data_tracing_find(const void *tracing, size_t len, u64 id, size_t *size);

/* Takes the next field at *@at, 0 at first. False at the end. Common fields are left out. */
bool data_tracing_field(const char *format, size_t size, size_t *at, struct data_field *field);

#endif
