/*
 * PURPOSE: why something was refused: the errno, the cause and the remedy as numbers, with the
 * numbers and names that their sentences need. Whoever refuses fills one in; it travels as it is
 * (from the session to a process that asks it, to the library, to `anyperf run`), and becomes text
 * in one place, here.
 *
 * The causes and remedies are those of cause-table.h and remedy-table.h: a new one is a row there.
 * Nobody looks into a sentence; whoever wants to know the cause looks at the cause.
 *
 * Lifetime: a plain value without pointers. A refusal may come from memory that others write to:
 * any bytes make a sentence, and it is bounded.
 */
#ifndef BASE_REFUSAL_H
#define BASE_REFUSAL_H

#include "base/types.h"

enum refusal_cause {
	CAUSE_NONE, /* nothing was refused */
#define CAUSE(id, public, remedy, text) CAUSE_##id,
#define NOTE(id, text)
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
	CAUSE_COUNT
};

/* What stands behind a cause's sentence. */
enum refusal_note {
	NOTE_NONE,
#define CAUSE(id, public, remedy, text)
#define NOTE(id, text) NOTE_##id,
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
	NOTE_COUNT
};

enum refusal_remedy {
	REMEDY_NONE, /* nothing would help */
#define REMEDY(id, text) REMEDY_##id,
#include "base/remedy-table.h"
#undef REMEDY
	REMEDY_COUNT
};

#define REFUSAL_NUMBERS 4
#define REFUSAL_NAMES   2
#define REFUSAL_NAME    128 /* bytes of a name, with its NUL */

struct refusal {
	s32 err;       /* -errno */
	u16 cause;     /* enum refusal_cause */
	u16 note;      /* enum refusal_note */
	u16 remedy[2]; /* enum refusal_remedy: the one, or the other */
	u32 pad;
	u64 number[REFUSAL_NUMBERS];
	char name[REFUSAL_NAMES][REFUSAL_NAME];
};

/* What a refusal takes beside its cause; what is left out is 0. */
struct refusal_args {
	u16 note;      /* enum refusal_note */
	u16 remedy[2]; /* enum refusal_remedy; none: the cause's own */
	u64 number[REFUSAL_NUMBERS];
	const char *name[REFUSAL_NAMES]; /* copied; what is too long is cut */
};

/* Fills in all of @r. Returns @err. */
int refusal_set(struct refusal *r, int err, enum refusal_cause cause,
		const struct refusal_args *args);

/*
 * Writes "SUBJECT: SENTENCE" into @buf, or "SENTENCE" where @subject is NULL or empty, cut to @len
 * bytes with the closing NUL; @len is not 0. Returns how many bytes stand before the sentence.
 */
size_t refusal_why(const struct refusal *r, const char *subject, char *buf, size_t len);

/* The same for what would help: "" if nothing would. */
void refusal_remedy(const struct refusal *r, char *buf, size_t len);

#endif
