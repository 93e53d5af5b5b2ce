/*
 * PURPOSE: the features of a perf.data file: where, with what and of what it was recorded, each a
 * piece of bytes by its number (enum data_feature). Making the pieces as perf makes them, and
 * reading them again.
 *
 * Lifetime: a struct data_features that is all zero is empty; data_features_release() frees what
 * was put into it.
 */
#ifndef DATA_FEATURE_H
#define DATA_FEATURE_H

#include "data/perf-data.h"

/* An event of a file. Name and ids are of whoever made it; those of a reader's are the reader's. */
struct data_event {
	struct pe_attr attr; /* attr.size bytes of it are the file's */
	const char *name;    /* NULL: unknown; of a reader's never, as the attr stands in then */
	u64 *ids;            /* that its records carry, one for each place */
	u32 nr_ids;
	u32 members; /* of its group if it leads one, else 0 or 1 */
};

struct data_piece {
	u8 *bytes; /* owned */
	size_t len;
};

struct data_features {
	struct data_piece of[DATA_FEATURES]; /* NULL bytes: there is none */
};

void data_features_release(struct data_features *f);

/* Adds @len bytes to the end of a piece. False: no memory; the piece is as it was. */
bool data_piece_add(struct data_piece *p, const void *bytes, size_t len);

/* A text as features have it: its length, itself, zeros up to a multiple of DATA_NAME_ALIGN. */
bool data_piece_add_text(struct data_piece *p, const char *text);

/*
 * What is known when recording begins: host, kernel, CPUs, memory, command line, events, PMUs, and
 * with tracepoints among @events their formats. What cannot be found out is left out.
 */
void data_features_gather(struct data_features *f, const struct data_event *events, u32 nr_events,
			  int argc, char *const *argv);

/*
 * Adds what the PMU can, as perf has it from sysfs: that it models the machine @name, and in which
 * @windows it has seen what was sampled (NULL: all).
 */
bool data_features_add_machine(struct data_features *f, const char *name, const char *windows);

/* Adds a file's build id, @size bytes of it. @misc is PERF_RECORD_MISC_USER or _KERNEL. */
bool data_features_add_build_id(struct data_features *f, const char *path, u16 misc, const u8 *id,
				size_t size);

/* The text of a feature that is one text, to be freed; NULL: it is none. */
char *data_feature_text(const void *bytes, size_t len);

/*
 * The texts of a feature that is a number and so many texts, as the command line is. Calls @fn for
 * each.
 */
void data_feature_texts(const void *bytes, size_t len, void (*fn)(const char *text, void *data),
			void *data);

/* The value of @name among the names and values of what a PMU can, to be freed; NULL: none. */
char *data_feature_value(const void *bytes, size_t len, const char *name);

/* In tracing-data.c: the formats of the tracepoints among @events, as perf reads them. */
bool data_tracing_gather(struct data_piece *p, const struct data_event *events, u32 nr_events);

#endif
