#include "pmu/tracepoint-format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The number behind @key, which stands before @end. */
static bool number(const char *line, const char *end, const char *key, u64 *value)
{
	const char *at = strstr(line, key);

	if (!at || at >= end)
		return false;
	*value = strtoull(at + strlen(key), NULL, 10);
	return true;
}

static bool is_of(const char *type, size_t len, const char *word)
{
	const char *at = strstr(type, word);

	return at && at < type + len;
}

/* `TYPE NAME` or `TYPE NAME[N]`, of @len bytes. */
static bool declaration(const char *text, size_t len, struct tp_field *f)
{
	size_t end = len, start;
	bool array = false;

	if (end && text[end - 1] == ']') {
		array = true;
		while (end && text[end - 1] != '[')
			end--;
		if (!end)
			return false;
		end--;
	}
	start = end;
	while (start && text[start - 1] != ' ' && text[start - 1] != '*')
		start--;
	if (!start || start == end || end - start >= sizeof(f->name))
		return false;
	memcpy(f->name, text + start, end - start);
	f->name[end - start] = '\0';
	if (is_of(text, start, "__data_loc") && is_of(text, start, "char[]"))
		f->kind = TP_DYNAMIC;
	else if (is_of(text, start, "__data_loc") || is_of(text, start, "__rel_loc"))
		f->kind = TP_OTHER;
	else if (array)
		f->kind = is_of(text, start, "char") ? TP_CHARS : TP_OTHER;
	else if (is_of(text, start, "char") && is_of(text, start, "*"))
		f->kind = TP_POINTER;
	else
		f->kind = TP_NUMBER;
	return true;
}

static bool is_number_size(u64 size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* A line `field:TYPE NAME; offset:N; size:N; signed:N;`. */
static int one_field(const char *line, const char *end, struct tp_format *format)
{
	const char *semicolon = memchr(line, ';', (size_t)(end - line));
	struct tp_field f = {0};
	u64 offset, size, is_signed;

	if (!semicolon || !declaration(line, (size_t)(semicolon - line), &f) ||
	    !number(semicolon, end, "offset:", &offset) ||
	    !number(semicolon, end, "size:", &size) ||
	    !number(semicolon, end, "signed:", &is_signed))
		return -EINVAL;
	if (format->nr == TP_FIELDS || offset > TP_SIZE_MAX || size > TP_SIZE_MAX - offset)
		return -EINVAL;
	f.offset = (u16)offset;
	f.size = (u16)size;
	f.is_signed = is_signed;
	if ((f.kind == TP_NUMBER && !is_number_size(size)) || (f.kind == TP_DYNAMIC && size != 4))
		f.kind = TP_OTHER;
	if (offset + size > format->size)
		format->size = (u32)(offset + size);
	format->field[format->nr++] = f;
	return 0;
}

int tp_format_parse(const char *text, struct tp_format *format)
{
	const char *end;
	int err;

	memset(format, 0, sizeof(*format));
	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		line += strspn(line, "\t ");
		if (strncmp(line, "field:", 6) != 0)
			continue;
		err = one_field(line + 6, end, format);
		if (err)
			return err;
	}
	return format->nr ? 0 : -EINVAL;
}

const struct tp_field *tp_field_find(const struct tp_format *format, const char *name, size_t len)
{
	for (u32 i = 0; i < format->nr; i++)
		if (strlen(format->field[i].name) == len &&
		    !memcmp(format->field[i].name, name, len))
			return &format->field[i];
	return NULL;
}
