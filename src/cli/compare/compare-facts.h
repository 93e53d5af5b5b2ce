/*
 * PURPOSE: what a count of a deterministic run depends on beside the program: what a baseline of
 * another day or machine must have in common with a run of today.
 */
#ifndef CLI_COMPARE_COMPARE_FACTS_H
#define CLI_COMPARE_COMPARE_FACTS_H

#include "cli/compare/compare-priv.h"

#define FACT_SIZE 160

struct compare_facts {
	char build_id[41]; /* of the program; "": it has none. It may differ: that is the point */
	char vendor[FACT_SIZE];   /* of the CPU */
	char features[FACT_SIZE]; /* the level of --cpu-features, or "host" and which CPU that is */
	char libc[FACT_SIZE];     /* name, version and build id */
	u64 seed;
	/* What only some programs look at: it may differ, and that it does is said. */
	char directory[17]; /* where they run, as a hash */
	u64 user;
	char kernel[24]; /* "6.1": where it puts mappings, say */
	u64 stack;       /* its limit in bytes, 0: none; mappings lie below */
	/* Whose model has counted; "": no event depends on one. Known when they have run, as is: */
	char machine[FACT_SIZE];
	u32 cpus; /* how many programs were shown; 0: nobody has asked */
};

/* Of @side's runs, which have ended for @facts->cpus to be known. */
void compare_facts_of(const struct compare_job *job, const struct compare_side *side,
		      struct compare_facts *facts);

/* The program's file, as execvp(3) finds it in the environment that it gets; false: nowhere. */
must_check bool compare_find_program(const struct compare_job *job, const char *name, char *path,
				     size_t size);

/* Of a variable's value, in hexadecimal: enough to see that it is another, and not what it is. */
void compare_hash(const char *text, char hex[17]);

#define COMPARE_HASH 0xcbf29ce484222325ull /* of nothing: Fowler, Noll and Vo, 1a */
/* That of what @hash is of, with @bytes behind it. */
u64 compare_hash_more(u64 hash, const char *bytes, size_t n);

#endif
