#include "data/tracing-format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

/* A text that ends with a NUL within what is left. */
static const char *take_text(struct cursor *c)
{
	const void *end = memchr(c->pos, 0, cursor_left(c));

	if (!end) {
		c->torn = true;
		return NULL;
	}
	return cursor_bytes(c, (size_t)((const u8 *)end - c->pos) + 1);
}

static bool has_id(const char *format, size_t size, u64 id)
{
	static const char key[] = "\nID: ";
	const char *p = memmem(format, size, key, strlen(key));
	char number[24] = "";

	if (!p)
		return false;
	p += strlen(key);
	snprintf(number, sizeof(number), "%.*s",
		 (int)min_u64((u64)(format + size - p), sizeof(number) - 1), p);
	return strtoull(number, NULL, 10) == id;
}

/* The parts as src/data/tracing-data.c has them. */
const char *data_tracing_find(const void *tracing, size_t len, u64 id, size_t *size)
{
	struct cursor c = cursor_over(tracing, len);
	u32 ftrace, systems;

	cursor_bytes(&c, 10);        /* magic */
	(void)take_text(&c);         /* version */
	cursor_bytes(&c, 1 + 1 + 4); /* byte order, long, page */
	cursor_bytes(&c, 12);        /* "header_page" */
	cursor_bytes(&c, cursor_u64(&c));
	cursor_bytes(&c, 13); /* "header_event" */
	cursor_bytes(&c, cursor_u64(&c));
	ftrace = cursor_u32(&c);
	for (u32 i = 0; i < ftrace && !c.torn; i++)
		cursor_bytes(&c, cursor_u64(&c));
	systems = cursor_u32(&c);
	for (u32 i = 0; i < systems && !c.torn; i++) {
		u32 n;

		(void)take_text(&c);
		n = cursor_u32(&c);
		for (u32 k = 0; k < n && !c.torn; k++) {
			u64 bytes = cursor_u64(&c);
			const char *format = cursor_bytes(&c, bytes);

			if (format && has_id(format, bytes, id)) {
				*size = bytes;
				return format;
			}
		}
	}
	return NULL;
}

/* The number behind @key in a line. */
static u32 number_behind(const char *line, const char *key)
{
	const char *p = strstr(line, key);

	return p ? (u32)strtoul(p + strlen(key), NULL, 10) : 0;
}

/* "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;" */
static bool take_line(char *line, struct data_field *f)
{
	char *decl = strstr(line, "field:"), *end, *name;
	size_t len;

	if (!decl)
		return false;
	decl += strlen("field:");
	end = strchr(decl, ';');
	if (!end)
		return false;
	*f = (struct data_field){.offset = number_behind(end, "offset:"),
				 .size = number_behind(end, "size:"),
				 .is_signed = number_behind(end, "signed:")};
	*end = 0;
	f->dynamic = strstr(decl, "__data_loc") || strstr(decl, "__rel_loc");
	f->text = strstr(decl, "char") && (strchr(decl, '[') || f->dynamic);
	/* The name is the last word, in front of its brackets; `__data_loc`'s stand before it. */
	if (!f->dynamic && strchr(decl, '['))
		*strchr(decl, '[') = 0;
	name = strrchr(decl, ' ');
	name = name ? name + 1 : decl;
	while (*name == '*')
		name++;
	len = strlen(name);
	if (!len || !strncmp(name, "common_", 7))
		return false;
	snprintf(f->name, sizeof(f->name), "%s", name);
	return true;
}

bool data_tracing_field(const char *format, size_t size, size_t *at, struct data_field *field)
{
	while (*at < size) {
		const char *end = memchr(format + *at, '\n', size - *at);
		size_t len = end ? (size_t)(end - format) - *at : size - *at;
		char line[512];

		snprintf(line, sizeof(line), "%.*s", (int)(len < 500 ? len : 500), format + *at);
		*at += len + 1;
		if (take_line(line, field))
			return true;
	}
	return false;
}
