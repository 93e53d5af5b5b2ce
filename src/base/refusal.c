/* From a refusal to its sentences: the only place where they are put together. */
#include "base/refusal.h"

/* Text as far as it fits; @at never passes @end, which is the closing NUL's place. */
struct text {
	char *at, *end;
};

static const char *const sentences[CAUSE_COUNT] = {
#define CAUSE(id, public, remedy, text) [CAUSE_##id] = (text),
#define NOTE(id, text)
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
};

static const char *const notes[NOTE_COUNT] = {
#define CAUSE(id, public, remedy, text)
#define NOTE(id, text) [NOTE_##id] = (text),
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
};

static const char *const remedies[REMEDY_COUNT] = {
#define REMEDY(id, text) [REMEDY_##id] = (text),
#include "base/remedy-table.h"
#undef REMEDY
};

static const u16 own_remedy[CAUSE_COUNT] = {
#define CAUSE(id, public, remedy, text) [CAUSE_##id] = REMEDY_##remedy,
#define NOTE(id, text)
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
};

static void put(struct text *t, char c)
{
	if (t->at < t->end)
		*t->at++ = c;
}

static void put_text(struct text *t, const char *s)
{
	while (*s)
		put(t, *s++);
}

/* Names may come from a guest: nothing in them reaches a terminal but what can be printed. */
static void put_name(struct text *t, const char *name)
{
	for (u32 i = 0; i < REFUSAL_NAME - 1 && name[i]; i++)
		put(t, (u8)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i]);
}

static void put_number(struct text *t, u64 value, char form)
{
	u64 base = form == 'x' ? 16 : 10;
	char digits[24];
	u32 n = 0;

	if (form == 'd' && (s64)value < 0) {
		put(t, '-');
		value = -value;
	}
	if (form == 'x')
		put_text(t, "0x");
	do {
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (n)
		put(t, digits[--n]);
}

/*
 * @template is a row of a table: its places are well-formed, which tests/unit/test_refusal.c
 * checks.
 */
static void put_template(struct text *t, const struct refusal *r, const char *template)
{
	for (const char *p = template; *p; p++) {
		u32 index;

		if (*p != '{') {
			put(t, *p);
			continue;
		}
		index = (u32)(p[2] - '0');
		if (p[1] == 's')
			put_name(t, r->name[index % REFUSAL_NAMES]);
		else
			put_number(t, r->number[index % REFUSAL_NUMBERS], p[1]);
		p += 3;
	}
}

static void set_name(char *to, const char *from)
{
	u32 n = 0;

	while (from && n < REFUSAL_NAME - 1 && from[n]) {
		to[n] = from[n];
		n++;
	}
	to[n] = '\0';
}

int refusal_set(struct refusal *r, int err, enum refusal_cause cause,
		const struct refusal_args *args)
{
	bool given = args->remedy[0] != REMEDY_NONE;

	r->err = err;
	r->cause = (u16)cause;
	r->note = args->note;
	r->remedy[0] = given ? args->remedy[0] : own_remedy[cause];
	r->remedy[1] = args->remedy[1];
	r->pad = 0;
	for (u32 i = 0; i < REFUSAL_NUMBERS; i++)
		r->number[i] = args->number[i];
	for (u32 i = 0; i < REFUSAL_NAMES; i++)
		set_name(r->name[i], args->name[i]);
	return err;
}

size_t refusal_why(const struct refusal *r, const char *subject, char *buf, size_t len)
{
	struct text t = {buf, buf + len - 1};
	size_t begins;

	if (subject && *subject) {
		put_text(&t, subject);
		put_text(&t, ": ");
	}
	begins = (size_t)(t.at - buf);
	if (r->cause > CAUSE_NONE && r->cause < CAUSE_COUNT)
		put_template(&t, r, sentences[r->cause]);
	if (r->note > NOTE_NONE && r->note < NOTE_COUNT)
		put_template(&t, r, notes[r->note]);
	*t.at = '\0';
	return begins;
}

void refusal_remedy(const struct refusal *r, char *buf, size_t len)
{
	struct text t = {buf, buf + len - 1};

	for (u32 i = 0; i < ARRAY_SIZE(r->remedy); i++) {
		if (r->remedy[i] == REMEDY_NONE || r->remedy[i] >= REMEDY_COUNT)
			continue;
		if (t.at > buf)
			put_text(&t, "; or ");
		put_template(&t, r, remedies[r->remedy[i]]);
	}
	*t.at = '\0';
}
