/*
 * PURPOSE: the inside of a list of specs while it is being parsed, and the parser's parts: parse.c
 * (grammar), terms.c (PMU/terms/), tracepoint.c, probe.c (mem:, kprobe:, uprobe:), pfm.c (libpfm4).
 *
 * Everything that specs point to is allocated from the list and freed with it, so no part of the
 * parser has anything to undo when it fails.
 */
#ifndef LIB_SPEC_SPEC_PRIV_H
#define LIB_SPEC_SPEC_PRIV_H

#include <anyperf/spec.h>

#include "abi/perf.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-priv.h"

struct ap__chunk;

struct ap__item {
	struct ap_spec pub; /* what callers see; pub.attr is &attr */
	struct pe_attr attr;
	bool host_guest; /* G or H was written: they build on each other */
};

struct ap_specs {
	struct ap__item **items; /* each in a chunk */
	unsigned int n, room;
	struct ap__chunk *chunks;
	struct ap_machine *own; /* ap__specs_alone() made it; freed with the list */
};

/* A parse under way. */
struct ap__parse {
	struct ap_machine *m;
	struct ap_specs *specs;
	struct ap_error *err; /* may be NULL */
	unsigned int next_group;
	bool in_braces;
	unsigned int depth; /* of events of a PMU that name other events */
};

/*
 * The specs of @text on a machine of their own, for who has a text and nothing else. Errors: those
 * of ap_specs_parse().
 */
int ap__specs_alone(struct ap_specs **out, const char *text, struct ap_error *err);

/* The most events one description may turn into (globs, PMUs by pattern). */
#define AP__MAX_SPECS 16384

/* Zeroed memory that lives as long as the list; NULL: none left. */
void *ap__specs_alloc(struct ap_specs *s, size_t size);
char *ap__specs_strdup(struct ap_specs *s, const char *text);
char *ap__specs_printf(struct ap_specs *s, const char *fmt, ...) printf_like(2, 3);

/*
 * Appends an event to the list, in a group of its own unless braces are open. Its attr says
 * exclude_guest, as perf's does, and nothing else. -E2BIG, -ENOMEM.
 */
int ap__parse_add(struct ap__parse *p, const char *name, struct ap__item **out);

/* Decimal or 0x number, all of @text. -EINVAL or -ERANGE. */
int ap__number(const char *text, u64 *out);

/*
 * PMU/TERMS/: one item per PMU that @pmu matches, all called @name. @pmu may be a pattern, or leave
 * out "uncore_" or a trailing "_<number>"; or be an event of a PMU, which then takes the terms.
 */
int ap__parse_pmu(struct ap__parse *p, const char *name, const char *pmu, const char *terms);

/* Applies terms that every event has to one that is no PMU's: cs/name=switches/. */
int ap__parse_terms(struct ap__parse *p, struct ap__item *it, const char *terms);

/*
 * Whether some PMU has an event of that name in its events directory; adds it, called @full, with
 * @terms ("" for none) for each.
 */
int ap__parse_alias(struct ap__parse *p, const char *full, const char *name, const char *terms,
		    bool *found);

/* Sets one term of @pmu's format directory in @attr: -ENOENT no such term, -EINVAL does not fit. */
int ap__format_set(struct ap__parse *p, const char *pmu, struct pe_attr *attr, const char *term,
		   u64 value);

/* The same without a parser: -ENOENT no such term. */
int ap__term_set(struct ap_machine *m, const char *pmu, struct pe_attr *attr, const char *term,
		 u64 value);

int ap__parse_tracepoint(struct ap__parse *p, const char *sys, const char *name);
int ap__parse_mem(struct ap__parse *p, const char *name, const char *text);
int ap__parse_probe(struct ap__parse *p, const char *name, const char *kind, const char *text);

/* libpfm4: *@found only if it is installed and knows @name. */
int ap__parse_pfm(struct ap__parse *p, const char *name, bool *found);

/* Calls @fn with the name and description of every event that libpfm4 knows for this CPU. */
int ap__pfm_each(struct ap_machine *m,
		 int (*fn)(const char *name, const char *desc, const char *pmu, void *data),
		 void *data);

#endif
