/*
 * Reads the text of a machine: `anyperf-machine 1`, then lines of a subject and of fields with
 * their values, in any order; `#` begins a comment.
 */
#include <asm/errno.h>

#include "model/machine-table-priv.h"

static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static bool same(const char *word, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word[i] != s[i] || !word[i])
			return false;
	return !word[n];
}

static void store(struct machine *m, const struct subject *s, const struct field *f, u64 value)
{
	void *p = (u8 *)m + s->offset + f->offset;

	if (f->bytes == 1)
		*(u8 *)p = (u8)value;
	else if (f->bytes == 4)
		*(u32 *)p = (u32)value;
	else
		*(u64 *)p = value;
}

/* The text being read, a line of it, and where in it. */
struct reader {
	struct machine m;
	const char *at, *end; /* what is left of the line */
	u32 line;
	u32 lines[SUBJECTS]; /* where each subject stands; 0: nowhere */
	struct machine_mistake *why;
};

/* The same of the text, with what stands there. */
static int wrong_text(struct reader *r, enum machine_fault fault, const struct subject *s,
		      const struct field *f, const char *text, size_t n)
{
	machine_wrong(r->why, fault, s, f);
	r->why->line = r->line;
	if (n >= sizeof(r->why->text))
		n = sizeof(r->why->text) - 1;
	for (size_t i = 0; i < n; i++)
		r->why->text[i] = text[i];
	return -EBADMSG;
}

/* The next word of the line; its length, 0 at the end. */
static size_t word(struct reader *r, const char **start)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
		r->at++;
	*start = r->at;
	while (r->at < r->end && *r->at != ' ' && *r->at != '\t')
		r->at++;
	return (size_t)(r->at - *start);
}

/* Digits at *s. False if there are none or too many. */
static bool digits(const char **s, const char *end, u64 *value)
{
	const char *start = *s;

	*value = 0;
	while (*s < end && **s >= '0' && **s <= '9' && *s - start < 12)
		*value = *value * 10 + (u64)(*(*s)++ - '0');
	return *s > start && (*s == end || **s < '0' || **s > '9');
}

static bool number(const struct field *f, const char *s, size_t n, u64 *value)
{
	const char *end = s + n;
	u64 part;

	if (!digits(&s, end, value))
		return false;
	if (f->kind == FIELD_TICKS) {
		const char *point = s;

		*value *= MACHINE_TICKS;
		if (s == end || *s++ != '.')
			return point == end;
		if (!digits(&s, end, &part) || s != end || s - point > 3)
			return false;
		*value += s - point == 2 ? part * 10 : part;
		return true;
	}
	if (f->kind == FIELD_SIZE && s < end) {
		u32 shift = *s == 'K' ? 10 : *s == 'M' ? 20 : *s == 'G' ? 30 : 0;

		if (!shift || *value >> 30)
			return false;
		*value <<= shift;
		s++;
	}
	return s == end;
}

static bool find_word(const struct field *f, const char *s, size_t n, u64 *value)
{
	for (*value = 0; f->words[*value]; ++*value)
		if (same(f->words[*value], s, n))
			return true;
	return false;
}

static bool find_set(const struct field *f, const char *s, size_t n, u64 *value)
{
	u64 one;

	*value = 0;
	if (same("none", s, n))
		return true;
	for (;;) {
		size_t part = 0;

		while (part < n && s[part] != ',')
			part++;
		if (!find_word(f, s, part, &one) || *value & BIT(one))
			return false;
		*value |= BIT(one);
		if (part == n)
			return true;
		s += part + 1;
		n -= part + 1;
	}
}

static int read_value(struct reader *r, const struct subject *s, const struct field *f)
{
	const char *text;
	size_t n = word(r, &text);
	u64 value = 0;

	if (!n)
		return wrong_text(r, MACHINE_NO_VALUE, s, f, f->name, length(f->name));
	if (f->kind == FIELD_WORD || f->kind == FIELD_SET) {
		if (!(f->kind == FIELD_WORD ? find_word : find_set)(f, text, n, &value))
			return wrong_text(r, MACHINE_NO_WORD, s, f, text, n);
	} else if (!number(f, text, n, &value)) {
		return wrong_text(r, MACHINE_NOT_A_NUMBER, s, f, text, n);
	}
	if (value < f->min || value > f->max)
		return wrong_text(r, MACHINE_OUT_OF_RANGE, s, f, text, n);
	store(&r->m, s, f, value);
	return 0;
}

/* A name or a description: what is left of the line. */
static int read_text(struct reader *r, const struct subject *s, const struct field *f)
{
	char *to = (char *)&r->m + s->offset + f->offset;
	size_t n;

	while (r->at < r->end && *r->at == ' ')
		r->at++;
	n = (size_t)(r->end - r->at);
	if (!n)
		return wrong_text(r, MACHINE_NO_VALUE, s, f, s->name, length(s->name));
	if (n >= f->bytes) {
		wrong_text(r, MACHINE_TOO_LONG, s, f, r->at, n);
		r->why->max = f->bytes - 1u;
		return -EBADMSG;
	}
	for (size_t i = 0; i < n; i++)
		to[i] = r->at[i];
	to[n] = '\0';
	r->at = r->end;
	return 0;
}

static int read_fields(struct reader *r, const struct subject *s)
{
	u32 seen = 0;
	const char *text;
	size_t n;
	int rc;

	if (s->fields->kind == FIELD_TEXT)
		return read_text(r, s, s->fields);
	for (const struct field *f = s->fields; f->name; f++)
		store(&r->m, s, f, f->preset);
	while ((n = word(r, &text))) {
		const struct field *f = s->fields;

		while (f->name && !same(f->name, text, n))
			f++;
		if (!f->name)
			return wrong_text(r, MACHINE_NO_FIELD, s, NULL, text, n);
		if (seen & BIT(f - s->fields))
			return wrong_text(r, MACHINE_TWICE, s, f, text, n);
		seen |= BIT(f - s->fields);
		rc = read_value(r, s, f);
		if (rc)
			return rc;
	}
	for (const struct field *f = s->fields; f->name; f++)
		if (f->must && !(seen & BIT(f - s->fields)))
			return wrong_text(r, MACHINE_MISSING, s, f, f->name, length(f->name));
	return 0;
}

static int read_line(struct reader *r)
{
	const char *text, *of = "";
	size_t n = word(r, &text), n_of = 0, i = 0;

	if (same("class", text, n))
		n_of = word(r, &of);
	while (i < SUBJECTS &&
	       !(same(machine_subjects[i].name, text, n) && same(machine_subjects[i].of, of, n_of)))
		i++;
	if (i == SUBJECTS)
		return wrong_text(r, MACHINE_NO_SUBJECT, NULL, NULL, n_of ? of : text,
				  n_of ? n_of : n);
	if (r->lines[i])
		return wrong_text(r, MACHINE_TWICE, &machine_subjects[i], NULL, text, n);
	r->lines[i] = r->line;
	return read_fields(r, &machine_subjects[i]);
}

/* Cuts the next line off, without its comment and the blanks at its end. */
static int next_line(struct reader *r, const char **text, const char *end)
{
	const char *s = *text, *stop;

	r->line++;
	r->at = s;
	while (s < end && *s != '\n') {
		if ((*s < ' ' && *s != '\t') || *s > '~') {
			wrong_text(r, MACHINE_BAD_CHARACTER, NULL, NULL, "", 0);
			r->why->value = (u8)*s;
			return -EBADMSG;
		}
		s++;
	}
	if (s - *text >= MACHINE_LINE_MAX) {
		wrong_text(r, MACHINE_TOO_LONG, NULL, NULL, "", 0);
		r->why->max = MACHINE_LINE_MAX - 1;
		return -EBADMSG;
	}
	*text = s + (s < end);
	for (stop = r->at; stop < s && *stop != '#'; stop++)
		;
	while (stop > r->at && (stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	while (r->at < stop && (*r->at == ' ' || *r->at == '\t'))
		r->at++;
	r->end = stop;
	return 0;
}

static int read_all(struct reader *r, const char *text, const char *end)
{
	static const char head[] = "anyperf-machine 1";
	bool begun = false;

	while (text < end) {
		int rc = next_line(r, &text, end);

		if (rc)
			return rc;
		if (r->at == r->end)
			continue;
		if (!begun) {
			begun = true;
			if (!same(head, r->at, (size_t)(r->end - r->at)))
				return wrong_text(r, MACHINE_NO_VERSION, NULL, NULL, r->at,
						  (size_t)(r->end - r->at));
			continue;
		}
		rc = read_line(r);
		if (rc)
			return rc;
	}
	if (!begun)
		return wrong_text(r, MACHINE_NO_VERSION, NULL, NULL, "", 0);
	for (size_t i = 0; i < SUBJECTS; i++)
		if (!r->lines[i] && machine_subjects[i].must) {
			r->line = 0;
			return wrong_text(r, MACHINE_MISSING, &machine_subjects[i], NULL, "", 0);
		}
	return 0;
}

/* What is not in the text. */
static void preset(struct machine *m)
{
	for (size_t i = 0; i < SUBJECTS; i++)
		for (const struct field *f = machine_subjects[i].fields; f->name; f++)
			if (f->kind != FIELD_TEXT)
				store(m, &machine_subjects[i], f, f->preset);
}

int machine_parse(struct machine *out, const char *text, size_t len, struct machine_mistake *why)
{
	struct reader r = {.why = why};
	int rc;

	if (len > MACHINE_TEXT_MAX) {
		machine_wrong(why, MACHINE_TOO_LONG, NULL, NULL);
		why->max = MACHINE_TEXT_MAX;
		return -EBADMSG;
	}
	r.m.version = MACHINE_VERSION;
	r.m.size = sizeof(r.m);
	preset(&r.m);
	rc = read_all(&r, text, text + len);
	if (rc)
		return rc;
	rc = machine_check(&r.m, why);
	for (size_t i = 0; rc && i < SUBJECTS; i++)
		if (same(machine_subjects[i].name, why->subject, length(why->subject)) &&
		    !*machine_subjects[i].of)
			why->line = r.lines[i];
	if (!rc)
		*out = r.m;
	return rc;
}
