/*
 * PURPOSE: descriptions of paths, seen within their bounds: what path-reader.c and path-walk.c have
 * in common.
 */
#ifndef DATA_PATH_READER_PRIV_H
#define DATA_PATH_READER_PRIV_H

#include "data/path-reader.h"

/* A block's description, checked; then its instructions one after the other. */
struct seen_block {
	const u8 *frags, *targets, *insns;
	u32 nr_frags, nr_insns, nr_targets;
	u32 next, frag, target; /* how far one has come */
	u64 pc;
	const u8 *accesses; /* NULL: they have no records */
	u32 nr_accesses, access;
};

struct seen_insn {
	u64 pc, target; /* of a direct branch; else 0 */
	u8 insn;        /* length and kind, as in the description */
};

/* False: there is none, or it makes no sense. */
bool path_block_see(const struct path_source *s, u32 index, u32 at, struct seen_block *b);
/* The last time at which code was mapped before that; 0: there is none, ~0: nobody knows. */
u64 path_block_since(const struct path_source *s, u32 index, u32 at);
bool path_entry_see(const struct path_source *s, u32 index, u32 number, struct path_entry *e);

/* The next instruction, which there is: b->next < b->nr_insns. False: it lacks its target. */
bool path_block_next(struct seen_block *b, struct seen_insn *i);

/* The next access of instruction @insn, asked for in their order; false: it has none left. */
bool path_block_access(struct seen_block *b, u32 insn, struct path_access *a);

#endif
