/* What the files on the text of machines share: the table of subjects and fields. */
#ifndef MODEL_MACHINE_TABLE_PRIV_H
#define MODEL_MACHINE_TABLE_PRIV_H

#include "model/machine.h"

enum field_kind {
	FIELD_NUMBER,
	FIELD_SIZE,  /* bytes: 32K, 1M */
	FIELD_TICKS, /* cycles with two decimals */
	FIELD_WORD,  /* one of the words; the value is its place */
	FIELD_SET,   /* some of the words, with commas; bits. "none" */
	FIELD_TEXT,  /* the rest of the line */
};

struct field {
	const char *name;
	u8 kind; /* enum field_kind */
	u8 bytes;
	u16 offset; /* within the subject's struct */
	bool must;
	u64 preset, min, max;
	const char *const *words; /* NULL-ended */
};

struct subject {
	const char *name, *of; /* `of`: the second word, of classes */
	u32 offset;            /* within struct machine */
	const struct field *fields;
	bool must;
};

/* Places in machine_subjects[]. */
enum {
	SUBJECT_NAME,
	SUBJECT_ABOUT,
	SUBJECT_MEMORY,
	SUBJECT_CACHE,
	SUBJECT_TLB = SUBJECT_CACHE + MACHINE_CACHES,
	SUBJECT_BRANCH = SUBJECT_TLB + MACHINE_TLBS,
	SUBJECT_CORE,
	SUBJECT_PENALTY,
	SUBJECT_CLASS,
	SUBJECTS = SUBJECT_CLASS + COST_CLASSES,
};

extern const struct subject machine_subjects[SUBJECTS];

static inline u64 machine_value(const struct machine *m, const struct subject *s,
				const struct field *f)
{
	const void *p = (const u8 *)m + s->offset + f->offset;

	return f->bytes == 1 ? *(const u8 *)p : f->bytes == 4 ? *(const u32 *)p : *(const u64 *)p;
}

/* A subject that may be absent, and is. */
bool machine_lacks(const struct machine *m, const struct subject *s);

/* Fills in @why; -EBADMSG. @s and @f may be NULL. */
int machine_wrong(struct machine_mistake *why, enum machine_fault fault, const struct subject *s,
		  const struct field *f);

#endif
