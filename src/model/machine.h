/*
 * PURPOSE: a machine as a model simulates it: geometry of caches and TLBs, predictors, widths,
 * penalties. A flat struct without pointers, so it can be copied through shared memory, and the
 * text that people write it in. doc/model.md describes the text and where the figures come from.
 *
 * Pure: no libc, no memory of its own; for both worlds. Who takes a struct machine from outside
 * asks machine_check() before it uses it.
 */
#ifndef MODEL_MACHINE_H
#define MODEL_MACHINE_H

#include "base/types.h"
#include "model/cost-class.h"

#define MACHINE_VERSION  1u         /* changes with the struct and with the text */
#define MACHINE_NAME     32u        /* bytes of a name, with its NUL */
#define MACHINE_ABOUT    160u       /* bytes of the description, with its NUL */
#define MACHINE_TEXT_MAX 65536u     /* bytes of a text */
#define MACHINE_LINE_MAX 256u       /* bytes of a line of it */
#define MACHINE_WAYS_MAX 1024u      /* of a set; with tree-PLRU 64 */
#define MACHINE_SIZE_MAX (1u << 30) /* bytes of a cache */
#define MACHINE_TICKS    100u       /* of a cycle: what costs are counted in */

enum machine_cache_id {
	MACHINE_L1I,
	MACHINE_L1D,
	MACHINE_L2, /* one for each core, for data and instructions; size 0: there is none */
	MACHINE_LL, /* shared by the cores */
	MACHINE_CACHES,
};

enum machine_policy {
	MACHINE_LRU,
	MACHINE_PLRU, /* a binary tree of bits */
};

/* What a cache holds of what those nearer to the core hold. */
enum machine_inclusion {
	MACHINE_NEITHER,   /* filled on the way, and evictions are its own affair */
	MACHINE_INCLUSIVE, /* what it evicts goes from the nearer ones, too */
	MACHINE_VICTIM,    /* holds only what the next nearer one has evicted */
};

enum machine_prefetch {
	MACHINE_NEXT_LINE = 1, /* on a miss, and when a line that was prefetched is used first */
	MACHINE_STRIDE = 2,    /* by the instruction's address; L1D only */
};

struct machine_cache {
	u64 size; /* bytes; 0: none */
	u32 ways;
	u32 latency; /* cycles from the load to its use */
	u8 policy;   /* enum machine_policy */
	u8 inclusion;
	u8 prefetch;    /* bits of enum machine_prefetch */
	u8 no_allocate; /* a store that misses writes past it */
	u32 reserved;
};

enum machine_tlb_id {
	MACHINE_ITLB,
	MACHINE_DTLB,
	MACHINE_TLB2, /* behind both; entries 0: none */
	MACHINE_TLBS,
};

struct machine_tlb {
	u32 entries, ways;           /* of small pages; of the second level: of all */
	u32 huge_entries, huge_ways; /* of huge pages; 0: they share those of small ones */
	u32 latency;                 /* cycles that a hit in it adds to one in L1 */
	u32 reserved;
};

enum machine_direction {
	MACHINE_BIMODAL,
	MACHINE_GSHARE,
	MACHINE_TAGE,
};

/* How targets of indirect branches are found, behind where they went last. */
enum machine_targets {
	MACHINE_BY_PATH, /* by the last targets of branches */
	MACHINE_ITTAGE,  /* by histories of growing lengths; with MACHINE_TAGE */
};

struct machine_branch {
	u8 direction; /* enum machine_direction */
	u8 targets;   /* enum machine_targets */
	u8 reserved[2];
	u32 entries; /* of the direction predictor; of each table of TAGE */
	u32 history; /* gshare: branches, at most 32; TAGE: of the longest table, at most 128 */
	u32 btb, btb_ways;
	u32 returns;  /* return stack */
	u32 indirect; /* entries of the predictor of indirect targets; of each table of ITTAGE */
	u32 reserved2;
};

struct machine_core {
	u32 width;      /* operations that it renames in a cycle */
	u32 window;     /* instructions within which misses overlap: the reorder buffer */
	u32 dependence; /* percent of the sum of latencies that lies on the critical path */
	u32 mhz, bus_mhz;
	u32 reserved;
};

/* An access to two lines. */
enum machine_crossing {
	MACHINE_EACH, /* each is looked up, and is a miss, by itself, as hardware does it */
	MACHINE_ONCE, /* one miss if either is, and then both are looked for in LL: cachegrind */
};

struct machine_memory {
	u32 line; /* bytes, of all caches */
	u32 page; /* bytes of a small page, and of a huge one */
	u32 huge;
	u32 latency; /* cycles */
	u32 snoop;   /* cycles until another core's modified line is here */
	u8 crossing; /* enum machine_crossing */
	u8 reserved[3];
};

/* What is lost to each event, in cycles, behind what the core hides by running ahead. */
struct machine_penalty {
	u32 mispredict, btb; /* a wrong prediction; a taken branch that the BTB did not know */
	u32 l2, ll, memory;  /* data that came from there */
	u32 fetch_l2, fetch_ll, fetch_memory; /* instructions */
	u32 overlap; /* percent of a miss to memory that is hidden behind one in the window */
	u32 tlb2, walk;
	u32 reserved;
};

struct machine_class {
	u32 uops;
	u32 throughput; /* ticks between two of them, independent ones */
	u32 latency;    /* ticks */
	u32 reserved;
};

struct machine {
	u32 version;
	u32 size; /* of this struct */
	char name[MACHINE_NAME];
	char about[MACHINE_ABOUT];
	struct machine_memory memory;
	struct machine_cache cache[MACHINE_CACHES];
	struct machine_tlb tlb[MACHINE_TLBS];
	struct machine_branch branch;
	struct machine_core core;
	struct machine_penalty penalty;
	struct machine_class class[COST_CLASSES];
};

enum machine_fault {
	MACHINE_FINE,
	MACHINE_TOO_LONG,      /* text or line; @max bytes */
	MACHINE_BAD_CHARACTER, /* @value */
	MACHINE_NO_VERSION,    /* the first line is not `anyperf-machine 1` */
	MACHINE_NO_SUBJECT,    /* a line begins with a word that is none */
	MACHINE_TWICE,         /* a subject or a field */
	MACHINE_NO_FIELD,
	MACHINE_NO_VALUE,
	MACHINE_NOT_A_NUMBER,
	MACHINE_OUT_OF_RANGE, /* not within @min to @max */
	MACHINE_NO_WORD,      /* none of those that the field can have */
	MACHINE_MISSING,      /* a subject or a field that there has to be */
	MACHINE_NOT_A_POWER,  /* of two */
	MACHINE_GEOMETRY,     /* @value entries or lines are no whole number of sets of @max ways */
	MACHINE_NOT_HERE,     /* this value is for another subject: see @text */
};

/* Where a machine is wrong, and how. Line 0: it is not about a line. */
struct machine_mistake {
	u32 line;
	enum machine_fault fault;
	u64 value, min, max;
	const char *subject, *field; /* of the tables, "" if none */
	char text[64];               /* what stands there, cut; "" if none */
};

/* What one field of a machine is called, and its value as text. */
struct machine_field {
	const char *subject, *of, *name; /* `of`: the class's name, else "" */
	char value[MACHINE_ABOUT];
	u64 number; /* that value times `scale` */
	u32 scale;  /* 0: it is none */
	bool ends;  /* the last of its line */
};

/*
 * Reads a text of @len bytes. 0; -EBADMSG with @why filled in. *out is written on success only.
 */
must_check int machine_parse(struct machine *out, const char *text, size_t len,
			     struct machine_mistake *why);

/* Holds every value against its limits, and those together that depend on each other. As above. */
must_check int machine_check(const struct machine *m, struct machine_mistake *why);

/* The fields in the order of the text; @at begins with 0. False when there is none left. */
bool machine_next_field(const struct machine *m, u32 *at, struct machine_field *field);

/* "l1i" and so on; "tage"; for texts about a machine. */
const char *machine_cache_name(enum machine_cache_id id);
const char *cost_class_name(enum cost_class class);

/* How many sets the cache has. The machine has been checked. */
static inline u32 machine_sets(const struct machine *m, enum machine_cache_id id)
{
	const struct machine_cache *c = &m->cache[id];

	return c->size ? (u32)(c->size / m->memory.line / c->ways) : 0;
}

#endif
