/*
 * PURPOSE: what the files of the translator share: blocks, their exits and entries, the code cache and
 * its maps. doc/translator.md explains the whole; dbt_check() verifies what is claimed here.
 *
 * Everything below is guarded by cache.lock but for what is said to be read without it. Memory of
 * blocks, exits, entries and code is never reused until flush_all(), which waits until no thread is in
 * the cache; so a thread in the cache, or a signal handler that interrupted one there, may follow
 * any pointer it finds.
 */
#ifndef DBT_CACHE_PRIV_H
#define DBT_CACHE_PRIV_H

#include "base/check.h"
#include "base/types.h"
#include "dbt/arch/x86_64/guest-priv.h"
#include "dbt/dbt.h"
#include "sys/lock.h"

#define PAGE_SIZE (1ull << PAGE_SHIFT)

/* Room that must be left before a block is made; no block with its stubs is larger. */
#define CODE_SLACK (64u << 10)
#define META_SLACK (64u << 10)

#define BLOCK_INSNS_MAX 128 /* guest instructions in a superblock */
#define BLOCK_FRAGS_MAX 20  /* contiguous guest ranges in a superblock */
#define BLOCK_PAGES_MAX 8   /* pages a superblock depends on */

/* What counts of a guest instruction; four bits in struct block_insn. */
enum insn_class {
	CLASS_PLAIN,
	CLASS_COND, /* conditional, here not taken: a taken one leaves the superblock */
	CLASS_JUMP,
	CLASS_CALL,
	CLASS_CALL_IND,
	CLASS_JUMP_IND,
	CLASS_RET,
	CLASS_BRANCH, /* any other instruction that retires as a branch */
};

/* What meta_alloc() gave, as a number of its 16 bytes from the beginning; 0 is nothing. */
typedef u32 meta_ref;

/* One guest instruction of a block, in order of execution. */
struct block_insn {
	u16 native; /* bytes from its clean start to the next one's; 0: an elided jmp */
	u8 guest;   /* length, and enum insn_class << 4 */
};

/* A contiguous run of guest instructions. */
struct block_frag {
	u64 pc;
	u16 first; /* index of its first instruction */
	u16 len;   /* guest bytes */
	u32 flags;
};

/* Counting starts again at this fragment: it is entered from outside, after a call returned. */
#define FRAG_RESTART BIT(0)

/*
 * Between these offsets of the code the registers in @mask are in dbt_thread.spill, and those in @moved
 * have had the guest's GS base added to them. In @mask rsp means that the native one is 8 less than the
 * guest's.
 */
struct spill_range {
	u16 begin, end; /* from block->code */
	u16 mask, moved;
	u16 insn; /* 0: of the instruction whose code this is; else 1 + the index of its own */
};

/* From this offset of the code on, the instructions [restart, upto) have been added to the meter. */
struct block_count {
	u16 offset;
	u16 upto;
};

enum exit_kind {
	EXIT_JUMP,    /* to a known guest pc; linkable */
	EXIT_STOP,    /* for the runtime: enum dbt_stop says why */
	EXIT_EMULATE, /* an instruction that arch_emulate() does */
	EXIT_MEND,    /* an instruction after which arch_mend() has something to put right */
	EXIT_MISS,    /* not of a block: a lookup failed; t->miss_pc */
};

#define EXIT_ID_MISS 1u /* what is there in the bookkeeping is no exit */

struct dbt_exit {
	u64 target;        /* guest pc that follows; for virtualized instructions their own */
	meta_ref to;       /* block it is linked to; 0 while it goes to its stub */
	meta_ref next;     /* exit in to->in */
	u32 patch;         /* cache offset of what arch_patch() changes; 0 not linkable */
	u32 stub;          /* cache offset of the code that leaves the cache for this exit */
	u8 kind;           /* enum exit_kind */
	u8 stop;           /* EXIT_STOP: enum dbt_stop */
	u8 len, reg, size; /* of the virtualized instruction */
};

/*
 * A place that indirect branches go to without knowing that it is the right one. It compares the guest pc that
 * they want with its own. To kill it is to overwrite the branch that is taken if they are equal.
 *
 * TABLE_JUMP: what a pc is looked up to. If the pc is another one it goes on to the next entry of the same
 * chain, at last to the miss path.
 *
 * TABLE_RET: where the native call of a call site returns to. Wrong ones go on to a lookup in TABLE_JUMP.
 */
struct dbt_entry {
	u64 pc;
	struct dbt_block *block;
	meta_ref next; /* same table, same bucket */
	u32 code;      /* cache offset */
	u32 resume;    /* cache offset behind the comparison */
	u32 kill;      /* cache offset of what arch_entry_kill() overwrites */
	u32 link;    /* TABLE_JUMP: what arch_patch() makes lead to the next entry's code; else 0 */
	u32 call;    /* TABLE_RET: cache offset of the call sequence; else 0 */
	u8 call_len; /* of the guest's call instruction */
	u8 table;    /* enum entry_table */
	bool dead;
	struct dbt_entry *sibling; /* next entry of the same block */
};

enum entry_table {
	TABLE_JUMP,
	TABLE_RET,
	TABLES,
};

/*
 * A thread's tables. A slot of the jump table is numbered by the guest pc's bits from index_shift up, as
 * many as the table has need of: it begins small and grows as it fills (thread_table_fill).
 *
 * The ring holds native return addresses, each by the bits of the stack pointer that say where the guest's return
 * address lies: a call puts its own there and the return to it finds it, unless stacks have been
 * switched or many frames have come and gone; and it is right unless the guest has changed the
 * address. Free slots of both lead to where things are looked up properly.
 *
 * Where the CPU cannot extract bits fast the numbers have 16 bits, and the tables their full size.
 */
#define TABLE_SIZE    65536u        /* at most, of both */
#define TABLE_FIRST   256u          /* times a power of 4 is TABLE_SIZE */
#define RING_SIZE     4096u         /* of 8 bytes of stack */
#define TABLE_JUMP_AT DBT_TABLES_AT /* u64 code addresses */
#define TABLE_RING_AT (DBT_TABLES_AT + TABLE_SIZE * 8)

_Static_assert(TABLE_RING_AT - DBT_TABLES_AT + TABLE_SIZE * 8 <= DBT_TABLES_SIZE,
	       "the tables of a thread have room");

/* A page that blocks were made from. */
struct code_page {
	u64 number;    /* address >> PAGE_SHIFT */
	meta_ref next; /* same hash bucket */
	u16 flags;
	u16 churn;               /* how often it was translated, then written */
	struct page_ref *blocks; /* those that depend on it */
};

#define PAGE_PROTECTED BIT(0) /* ops->protect() took its write permission */
#define PAGE_CHECKED   BIT(1) /* its blocks compare the guest's bytes before each execution */

struct page_ref {
	struct dbt_block *block;
	struct page_ref *next;
};

struct dbt_block {
	u64 pc;
	meta_ref next;          /* same hash bucket */
	meta_ref in;            /* exits linked to this block */
	struct dbt_exit *exits; /* array of nr_exits */
	struct dbt_entry *entries;
	struct block_frag *frags; /* array of nr_frags, in order of execution */
	struct block_insn *insns; /* array of nr_insns */
	struct spill_range *spill_ranges;
	struct block_count *counts;
	const u8 *bytes; /* BLOCK_CHECKED: the nr_bytes of the guest that it was made from, at pc */
	u32 code;        /* cache offset of the entry with all registers in place */
	u32 code_end;    /* one past its last byte of hot code */
	u32 start;       /* first byte of its hot code, <= code: entries that fall into it */
	u16 first;       /* from code to the clean start of the first instruction */
	u16 nr_insns, nr_frags, nr_exits, nr_spill_ranges, nr_counts, nr_bytes;
	u16 flags;
};

#define BLOCK_DEAD    BIT(0) /* in no map; whoever is inside goes on to its next exit */
#define BLOCK_CHECKED BIT(1) /* begins with code that compares the bytes; so does the dispatcher */
#define BLOCK_FALLS   BIT(2) /* control may get past its last instruction */

struct exec_range {
	u64 start, end;
	u32 flags; /* DBT_EXEC_* */
};

/*
 * A hash of chains that grows with what it holds, so that a small program touches little memory. Its
 * array comes from meta_alloc(), as larger ones do that replace it.
 */
struct hash_map {
	meta_ref *heads; /* size of them, a power of two */
	u32 size, count;
};

struct dbt_cache {
	struct lock lock;
	u8 *code; /* mapping of code_size bytes, RWX; constant after dbt_init() */
	u32 code_size;
	u32 hot;   /* next free byte of hot code, growing up */
	u32 cold;  /* first used byte of cold code and constants, growing down */
	u32 floor; /* `cold` after the cache's own stubs */
	u8 *meta;  /* bump allocator of everything else */
	u64 meta_size, meta_used;
	u64 meta_mapped; /* where its place is our choice it is mapped bit by bit: this much */

	struct hash_map by_pc;          /* struct dbt_block */
	struct hash_map pages;          /* struct code_page */
	struct hash_map tables[TABLES]; /* struct dbt_entry */
	/*
	 * All blocks in order of their code; read without the lock, the number first. A larger array is
	 * published before the number that needs it.
	 */
	meta_ref *by_code;
	u32 nr_blocks, max_blocks;

	struct exec_range *ranges; /* sorted, disjoint; RANGES_MAX of address space */
	u32 nr_ranges, max_ranges; /* that many are mapped */

	struct dbt_thread threads; /* list head; only next and prev are used */
	struct dbt_ops ops;
	u32 flags, mask;
	u32 epoch;    /* of flush_all(); threads compare theirs before they enter */
	u32 flushing; /* somebody waits for the threads to leave the cache */
	u32 lane;     /* rotates over the meter's lanes */
	u32 full;     /* a stub found no room: flush before the next block */

	u32 nr_classes; /* of the meters; they outlive flushes */
	u64 class_weight[METER_CLASSES];
	u16 class_next[METER_CLASSES];  /* + 1: another word of the same weight; 0 none */
	u16 class_hash[METER_CLASSES];  /* + 1: first word of the weights that hash there */
	u16 class_chain[METER_CLASSES]; /* + 1: first word of the next weight that hashes there */
	u32 class_turn;
	bool large_pages; /* asked for; see cache_fill() */
	u32 hot_filled;   /* code below this offset has memory behind it */
	u32 cold_filled;  /* and from here on */
	u64 meta_filled;

	struct dbt_exit miss;
	u32 exit_code; /* cache offset of the jump to dbt_exit() */
	u32 verify_at; /* with DBT_CHECKS: how many blocks there are at the next verification */
	u8 index_shift;
	bool fixed_tables; /* no fast extraction of bits: threads' tables have TABLE_SIZE slots */
	u32 miss_code;     /* cache offset of where lookups go that find nothing */
	u32 ret_miss_code; /* of where returns go that came to the wrong place */
	u32 enter_code;    /* from C to t->jump_pc, with what is spilled there */
	struct dbt_stats stats;
};

extern struct dbt_cache cache;

static inline void *meta_at(meta_ref ref)
{
	return ref ? cache.meta + (u64)ref * 16 : NULL;
}

static inline meta_ref meta_ref_of(const void *p)
{
	return p ? (meta_ref)(((u64)p - (u64)cache.meta) / 16) : 0;
}

static inline u8 *code_at(u32 offset)
{
	return cache.code + offset;
}

static inline u64 code_addr(u32 offset)
{
	return (u64)cache.code + offset;
}

static inline u64 *thread_table(const struct dbt_thread *t, u32 at)
{
	return (u64 *)((u64)t + at);
}

static inline u8 insn_len_of(const struct block_insn *i)
{
	return i->guest & 15;
}

static inline enum insn_class insn_class_of(const struct block_insn *i)
{
	return (enum insn_class)(i->guest >> 4);
}

/* Most of what is asked for is not there: then a short chain is not enough, it should be empty. */
static inline bool map_is_crowded(const struct hash_map *m)
{
	return m->count >= m->size / 2;
}

/* cache.c */
void cache_lock(struct dbt_thread *t);
void cache_lock_as(u32 me); /* by its id */
void cache_unlock(struct dbt_thread *t);
void *meta_alloc(u64 size); /* zeroed; the caller has made sure of META_SLACK */
void *meta_try(u64 size);   /* likewise, of any size; NULL if there is no room */
bool cache_has_room(void);
void cache_fill(void);
void flush_all(u32 me);
/* An empty cache, with nothing but its own stubs; false without memory. */
bool cache_reset(void);
struct dbt_block *block_find(u64 pc);
void block_insert(struct dbt_block *b, const u64 *pages, u32 nr_pages);
void block_kill(struct dbt_block *b);
struct dbt_block *block_by_code(u64 pc); /* async-signal-safe, for a thread in the cache */
struct code_page *page_find(u64 number);
struct code_page *page_get(u64 number);
void entry_add(struct dbt_entry *e);
struct dbt_entry *entry_find(enum entry_table table, u64 pc);
u32 entry_hash(const struct hash_map *m, u64 pc);
void thread_tables_clear(struct dbt_thread *t);
/* The thread's next lookup of e->pc finds it. */
void thread_table_fill(struct dbt_thread *t, const struct dbt_entry *e);

/* exec-memory.c */
const struct exec_range *exec_find(u64 pc);

/* The executable ranges are mapped in pieces, up to more than the kernel lets a process have mappings. */
#define RANGES_MAX   (1u << 20)
#define RANGES_PIECE (RANGES_MAX / 128)

/* Sees to it that @n of them have their place; false without memory, or beyond RANGES_MAX. */
bool ranges_map(u32 n);
/*
 * After one that was killed while it changed them: changes leave the ranges sorted at every moment, with
 * doubles and perhaps one torn range among them.
 */
void exec_repair(void);
/*
 * A write to @addr was refused: true if that was our doing, which then is undone. @own: the block that
 * writes was made from this page, so translating it again must not protect the page again.
 */
bool page_written(u64 addr, bool own);

/* link.c */
void exit_link(struct dbt_exit *x, struct dbt_block *to);

/* path-class.c */
/*
 * A word of the meters for paths that add byte q of @weight to quantity q; ~0u if all are taken. The
 * same weight has up to four words, given in turn, so that paths in a row rarely share one. @part: it
 * is one of two that a path adds, because there is no word left for their sum.
 */
u32 meter_class(u64 weight, bool part);
void meter_attach(struct dbt_thread *t);

/* cache-verify.c */
void cache_verify(
	const struct dbt_thread *t); /* of threads' tables only @t's: others write theirs */

/* Values of dbt_thread.handed: dbt_run() goes on by itself. */
#define DBT_HANDED_RESUME 1u

/* Values of dbt_thread.traced. The trap flag is set in the CPU in TRACE_ENTERING and TRACE_INSIDE. */
enum trace_state {
	TRACE_NONE,
	TRACE_ENTERING, /* no instruction has begun since the flag was set */
	TRACE_INSIDE,   /* one has: the next boundary is to be reported */
	TRACE_LEFT,     /* out of the cache, an instruction has retired and has not been reported */
	TRACE_SILENT,   /* out of the cache, with nothing to report */
};

#endif
