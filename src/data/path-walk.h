/*
 * PURPOSE: from a thread's trace (abi/path-trace.h) to the instructions that it has executed, in
 * order: what a model of a machine is fed with. Pure, without memory of its own.
 *
 * Words are fed as they are handed over. What a path has executed is told when the next entry has
 * come, since that may take its end back; path_walk_end() tells the last one.
 *
 * The words may be anybody's; what makes no sense is counted and left out.
 */
#ifndef DATA_PATH_WALK_H
#define DATA_PATH_WALK_H

#include "abi/path-trace.h"
#include "data/path-reader.h"

/* An instruction that has retired. */
struct path_step {
	u64 pc;
	u64 target; /* of a direct branch, whether it was taken or not; else 0 */
	u8 len;     /* 0: not known */
	u8 kind;    /* enum path_insn; of those that C code has executed PATH_PLAIN */
	bool taken; /* of a conditional branch */
	/* What it accesses, if that is traced, in order, until done(). */
	u32 nr_accesses;
	u32 first_access; /* the number of the first one, or the next one, among its block's */
	const struct path_access *access;
};

#define PATH_WALK_ACCESSES 1024u /* of a path, at most */

struct path_walk {
	struct path_source source;
	u32 space; /* of the thread */
	/*
	 * For who knows paths by their numbers, each may be NULL. Paths @number were taken one
	 * after the other, each of them all of it. Returns how many, from the first on, are known;
	 * of the next one the instructions are to be told, which are done then. @number 0: what was
	 * told is a part of some path.
	 */
	size_t (*known)(const u32 *number, size_t n, void *data);
	void (*done)(u32 number, void *data);
	/*
	 * @n records more, as PATH_TRACE_RECORDS has them, not aligned: the next word is number
	 * @word, and was at @at. May be NULL.
	 */
	void (*records)(const u32 *words, u32 n, u32 word, u32 at, void *data);
	/*
	 * @n events as PATH_TRACE_EVENTS has them, not aligned, of what is told from number @first
	 * on. May be NULL.
	 */
	void (*events)(const u32 *words, u32 n, u32 first, void *data);
	/* What the runtime says in between: PATH_TRACE_NOTE. */
	void (*note)(u32 kind, const u32 *words, u32 n, void *data);
	/*
	 * A string instruction has been interrupted, at @s: its one or two accesses are strings,
	 * for which there are two @ends each, where it began and where it stopped. It has not
	 * retired. May be NULL.
	 */
	void (*interrupted)(const struct path_step *s, const u64 *ends, void *data);
	void (*step)(const struct path_step *s, void *data);
	void (*gap)(u32 n, void *data); /* @n instructions that nobody knows */
	void *data;
	u64 bad;     /* entries that make no sense */
	u32 pending; /* a path that was taken and is not told yet; 0: none */
	/*
	 * The number of what is told, modulo 2^32: of the first one within known(), and within
	 * step(), done() and gap(). One of which nothing is left counts if a model was told of it.
	 */
	u32 told;
	bool settled; /* it was, of the one that is pending */
	/*
	 * Words have numbers, as PATH_TRACE_RECORDS has it: of the next one, of the one that is
	 * pending, and, within the functions, of the first one or of what is told.
	 */
	u32 next_word, pending_word, word;
	u64 string_pc; /* of a string instruction that has been interrupted: */
	u64 ends[4];
	u32 nr_ends, string_ends; /* how many have come, and how many there are */
	u32 nr_accesses;          /* of what is being told, for done() */
	struct path_access access[PATH_WALK_ACCESSES];
};

void path_walk_feed(struct path_walk *w, const u32 *words, size_t n);
void path_walk_end(struct path_walk *w);

#endif
