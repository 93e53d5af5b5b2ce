/*
 * PURPOSE: what the files of the translator share: blocks, their exits and entries, the code cache
 * and its maps. doc/translator.md explains the whole; dbt_check() verifies what is claimed here.
 *
 * cache.lock guards everything below, except what is said to be read without it. The memory of
 * blocks, exits, entries and code is not reused before flush_all(), which waits until no thread is
 * in the cache. So a thread in the cache, or a signal handler that interrupted one there, may
 * follow any pointer that it finds.
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
#define CODE_SLACK (128u << 10)
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

/* A pointer to what meta_alloc() gave, in units of 16 bytes from the beginning; 0 is NULL. */
typedef u32 meta_ref;

/* One guest instruction of a block, in order of execution. */
struct block_insn {
	u16 native; /* length of its native form; 0: an elided jump */
	u8 guest;   /* length, and enum insn_class << 4 */
} __attribute__((packed));

/* A contiguous run of guest instructions. */
struct block_frag {
	u64 pc;
	u16 len;  /* guest bytes */
	u8 first; /* index of its first instruction */
	u8 flags;
} __attribute__((packed, aligned(4)));

/* Counting starts again here: the fragment is entered from outside, when a call returns. */
#define FRAG_RESTART BIT(0)

_Static_assert(BLOCK_INSNS_MAX < 0xff, "spill_range.insn has a byte");

/*
 * A range of a block's code in which the guest's registers in @mask are in dbt_thread.spill. What
 * @moved and certain bits of @mask mean is the CPU's (x86-64: rewind_to_insn() in recover.c).
 */
struct spill_range {
	u16 begin, end; /* offsets from block->code */
	u16 mask, moved;
	u8 insn; /* 1 + the index of the instruction it is of; 0: the one whose code this is */
	/* A string instruction that is traced begins here, and may be left between iterations. */
	u8 repeats;
};

/*
 * From this offset of the code on, the meter includes the current path's instructions before @upto.
 */
struct block_count {
	u16 offset;
	u16 upto;
};

enum exit_kind {
	EXIT_JUMP,    /* to a known guest pc; linkable */
	EXIT_STOP,    /* for the runtime: enum dbt_stop says why */
	EXIT_EMULATE, /* an instruction that arch_emulate() does */
	EXIT_MEND,    /* after an instruction behind which arch_mend() puts something right */
	EXIT_MISS,    /* not of a block: a lookup failed; t->miss_pc */
};

#define EXIT_ID_MISS 1u /* dbt_thread.exit_id of EXIT_MISS; no exit has this meta_ref */
/* Nor these: the pool is used up; exact code has executed what it was to. See deadline.c. */
#define EXIT_ID_POOL        0x7ffffff1u
#define EXIT_ID_EXACT       0x7ffffff2u
#define EXIT_ID_POOL_TARGET 0x7ffffff3u /* likewise, and code goes on with deadline.target */

struct dbt_exit {
	u64 target;        /* guest pc that follows; for virtualized instructions their own */
	meta_ref to;       /* block it is linked to; 0 while it goes to its stub */
	meta_ref next;     /* exit in to->in */
	u32 patch;         /* cache offset of what arch_patch() changes; 0 not linkable */
	u32 stub;          /* cache offset of the code that leaves the cache for this exit */
	u8 kind;           /* enum exit_kind */
	u8 stop;           /* EXIT_STOP: enum dbt_stop */
	u8 len, reg, size; /* of the virtualized instruction */
	u8 counts;         /* bytes of code at stub that count the path; 0: it is counted before */
};

/*
 * Code that indirect branches go to before it is known to be the right place. It compares the
 * guest pc that they want with its own. To kill an entry is to overwrite the branch that is taken
 * if they are equal.
 *
 * TABLE_JUMP: what a pc is looked up to. If it is another pc, the entry goes on to the next one of
 * the same chain, and the last one goes to the miss path.
 *
 * TABLE_RET: where the native call of a call site returns to. If it is another pc, the entry goes
 * on to a lookup in TABLE_JUMP.
 */
struct dbt_entry {
	u64 pc;
	meta_ref block;
	meta_ref next;    /* same table, same bucket */
	meta_ref sibling; /* next entry of the same block */
	u32 code;         /* cache offset */
	union {
		u32 link; /* TABLE_JUMP: the jump to the next entry, for arch_patch() */
		u32 call; /* TABLE_RET: cache offset of the call sequence; 0: there is none */
	};
	u8 resume;       /* from `code` on, what is behind the comparison */
	u8 kill;         /* and what arch_entry_kill() overwrites */
	u8 call_len : 4; /* of the guest's call instruction */
	u8 table : 2;    /* enum entry_table */
	u8 dead : 1;
	u8 dormant : 1; /* in a map of an image, as its block was when it was made */
};

_Static_assert(sizeof(struct dbt_entry) == 32, "as many as calls, and as indirect targets");

enum entry_table {
	TABLE_JUMP,
	TABLE_RET,
	TABLES,
};

/*
 * A thread's tables. The jump table has native addresses of entries, by guest pc. The number of a
 * slot is the pc's bits from index_shift up, as many as the table has slots for: it begins small
 * and grows as it fills (thread_table_fill()).
 *
 * The ring has native return addresses, by the bits of the stack pointer that say where the guest's
 * return address lies. A call puts its own there and the return to it finds it, unless stacks have
 * been switched or many frames have come and gone in between. What is found is right unless the
 * guest has changed the return address. It begins small as well: most threads use little stack.
 *
 * Free slots of both tables lead to the code that looks a pc up properly.
 *
 * Where the CPU has no fast way to extract bits, numbers of slots have 16 bits and the tables their
 * full size.
 *
 * A thread that traces in windows executes blocks of another form in them, which may not meet: so
 * it has a second pair of tables for windows, and finds each as it was left. There are thousands of
 * windows, and to empty one pair each time takes longer than what is looked up in them. Where
 * tables have their full size there is one pair, which is emptied.
 */
#define TABLE_SIZE    65536u /* at most, of both */
#define TABLE_FIRST   256u   /* times a power of 4 is TABLE_SIZE */
#define RING_SIZE     4096u  /* at most, of 8 bytes of stack */
#define RING_FIRST    1024u
#define TABLE_WINDOWS 16384u /* at most, the jump table of windows */

_Static_assert(TABLE_SIZE * 8 <= DBT_JUMPS_SIZE && RING_SIZE * 8 <= DBT_RING_SIZE &&
		       TABLE_WINDOWS * 8 <= DBT_WINDOW_JUMPS_SIZE &&
		       DBT_WINDOW_JUMPS_AT + DBT_WINDOW_JUMPS_SIZE <= DBT_LOG_AT,
	       "the tables of a thread have room");

/* A page that blocks were made from. */
struct code_page {
	u64 number;    /* address >> PAGE_SHIFT */
	meta_ref next; /* same hash bucket */
	u16 flags;
	u16 churn;  /* how often it was written after having been translated */
	u32 blocks; /* those that depend on it: page_ref_at() */
};

#define PAGE_PROTECTED BIT(0) /* ops->protect() took its write permission */
#define PAGE_CHECKED   BIT(1) /* its blocks compare the guest's bytes before each execution */

struct page_ref {
	meta_ref block;
	u32 next; /* page_ref_at() */
};

/* Its exits lie behind it, in the order in which they were made. */
struct dbt_block {
	u64 pc;
	/* In one piece, each in order of execution; block_frags() and the like. */
	const u8 *lists;
	meta_ref next;    /* same hash bucket */
	meta_ref in;      /* exits linked to this block */
	meta_ref entries; /* the first */
	meta_ref bytes;   /* BLOCK_CHECKED: nr_bytes of the guest that it was made from, at pc */
	u32 path_block;   /* where it is described, for the words of its paths; 0: nowhere */
	u32 code;         /* cache offset of the entry with all registers in place */
	u32 code_end;     /* one past its last byte of hot code */
	u32 start;        /* first byte of its hot code, <= code: entries that fall into it */
	u16 first;        /* from code to the clean start of the first instruction */
	u16 nr_exits, nr_spill_ranges, nr_counts, nr_bytes;
	u16 flags;
	u8 nr_frags, nr_insns;
};

_Static_assert(sizeof(struct dbt_block) == 64, "a meta_ref names an exit behind it, too");
_Static_assert(sizeof(struct block_frag) == 12 && sizeof(struct block_insn) == 3 &&
		       sizeof(struct page_ref) == 8,
	       "most of what a block takes beside its exits");

static inline struct dbt_exit *block_exits(const struct dbt_block *b)
{
	return (struct dbt_exit *)(b + 1);
}

static inline const struct block_frag *block_frags(const struct dbt_block *b)
{
	return (const struct block_frag *)b->lists;
}

static inline const struct block_insn *block_insns(const struct dbt_block *b)
{
	return (const struct block_insn *)(block_frags(b) + b->nr_frags);
}

static inline const struct spill_range *block_spill_ranges(const struct dbt_block *b)
{
	return (const struct spill_range *)ALIGN_UP((u64)(block_insns(b) + b->nr_insns), 2);
}

static inline const struct block_count *block_counts(const struct dbt_block *b)
{
	return (const struct block_count *)(block_spill_ranges(b) + b->nr_spill_ranges);
}

#define BLOCK_DEAD    BIT(0) /* in no map; a thread that is inside goes on to the next exit */
#define BLOCK_CHECKED BIT(1) /* the bytes are compared, by its first code and by the dispatcher */
#define BLOCK_FALLS   BIT(2) /* control may get past its last instruction */
#define BLOCK_EXACT   BIT(3) /* counts down before each instruction; found as such only */
#define BLOCK_PASSES  BIT(4) /* the instruction at a place that was told of; likewise */
#define BLOCK_DORMANT BIT(5) /* of an image, and in its maps only; image.c */
#define BLOCK_PLAIN   BIT(6) /* for threads that trace nothing though others may; likewise */
#define BLOCK_FRONT   BIT(7) /* what is in front of its code counts for an exit, and is no entry */
#define BLOCK_LEARNT  BIT(8) /* for children of forks; found as such only, relatives.c */
#define BLOCK_FORMS   (BLOCK_EXACT | BLOCK_PASSES | BLOCK_PLAIN | BLOCK_LEARNT)

struct exec_range {
	u64 start, end;
	u32 flags; /* DBT_EXEC_* */
};

/* The guest does not write there, as far as it is asked. */
static inline bool exec_is_constant(const struct exec_range *r)
{
	return !(r->flags & (DBT_EXEC_WRITABLE | DBT_EXEC_CHECKED));
}

/*
 * A hash table with chains. It grows with what it holds, so that a small program touches little
 * memory. Its array comes from meta_alloc(), and so does each larger one that replaces it.
 */
struct hash_map {
	meta_ref *heads; /* size of them, a power of two */
	u32 size, count;
};

/* The cache has at most so many pieces of which each becomes writable again by itself. */
#define CODE_PIECES 16384

/* Where copies of frozen code go. */
enum code_copies {
	COPIES_NONE,   /* there are none yet */
	COPIES_WHOLE,  /* into a file for all of them */
	COPIES_SINGLE, /* each into one of its own */
};

/* An entry that sleeps, or an exit of shared code, and how often since another had this place. */
struct sought {
	const void *what;
	u64 times;
};

#define SOUGHT  256u
#define TOUCHED 1024u /* of 64 KB: cc1 executes some 300, with its libraries */

#define META_OWN 32768u /* pages of an image's bookkeeping at most */

struct dbt_cache {
	const u8 *code; /* code-memory.c: code_size bytes to execute; a constant pointer */
	u32 code_size;
	u32 hot;   /* next free byte of hot code, growing up */
	u32 cold;  /* first used byte of cold code and constants, growing down */
	u32 floor; /* `cold` after the cache's own stubs */
	u8 *meta;  /* bump allocator of everything else */
	u64 meta_size, meta_used;

	struct hash_map by_pc;          /* struct dbt_block */
	struct hash_map pages;          /* struct code_page */
	struct hash_map tables[TABLES]; /* struct dbt_entry */
	/* The same of blocks that an image has brought and that are not woken. */
	struct {
		struct hash_map by_pc, tables[TABLES], plain_tables[TABLES];
	} dormant;
	/*
	 * All blocks in order of their code. Read without the lock, the number first: a larger
	 * array is published before the number that needs it.
	 */
	meta_ref *by_code;
	u32 nr_blocks, max_blocks;

	u32 flags;
	u64 mask;
	u32 lane; /* the next lane of the meter to use, in turn */
	u32 full; /* an entry found no room: flush before the next block */

	struct path_space *paths; /* descriptions of paths; NULL: there are none */
	u32 nr_paths;             /* numbers that were given away; they outlive flushes */
	u32 path_log;             /* bytes of its log, likewise */
	u64 path_filled;          /* of the log, as fill_ahead() has it */

	u32 nr_classes; /* of paths; they outlive flushes */
	u64 class_weight[METER_CLASSES];
	u16 class_next[METER_CLASSES];  /* + 1: another word of the same weight; 0 none */
	u16 class_hash[METER_CLASSES];  /* + 1: first word of the weights that hash there */
	u16 class_chain[METER_CLASSES]; /* + 1: first word of the next weight that hashes there */
	u32 class_turn;

	struct dbt_exit miss;
	u32 exit_code; /* cache offset of the jump to dbt_exit() */
	u8 index_shift;
	/* The filter of accesses; cache offsets of its code and constants: arch/.../filter.c. */
	u8 filter_shift;
	u8 filter_plain;
	u32 filter_sets;
	u32 record_load, record_store, record_only;
	u32 record_dead_load, record_dead_store; /* where flags are dead */
	u32 record_string, record_far_string;    /* the latter of one with a segment */
	u32 filter_set_bits, filter_line_bits;
	bool whole_jumps;  /* no jump crosses or ends a line of 32 bytes */
	bool fixed_tables; /* no fast extraction of bits: threads' tables have TABLE_SIZE slots */
	/* Cache offsets of stubs. */
	u32 miss_code;        /* for lookups that find nothing */
	u32 ret_miss_code[2]; /* for returns that came to the wrong place, by either jump table */
	u32 enter_code;       /* from C to the entry at t->jump_pc */
	/* With deadlines (deadline.c): the pool is used up, rcx being spilled or not; back. */
	u32 pool_code, pool_spilled_code, resume_code;
	u32 pool_target_code, resume_target_code; /* where a target was loaded */
	u32 exact_code;                           /* out of exact code, rcx being spilled */

	/*
	 * What is above, whole words, goes into an image and comes from one; what follows is the
	 * process's.
	 */
	struct {
	} process __attribute__((aligned(8)));

	struct lock lock;
	/* Entries of BLOCK_PLAIN: no chain leads from one kind of blocks to the other. */
	struct hash_map plain_tables[TABLES];
	/* Entries of BLOCK_LEARNT, likewise. */
	struct hash_map learnt_tables[TABLES];
	u64 form_mask; /* `mask` for the block that is being translated */
	/* code-memory.c: where the code is written, constant, and not mapped while `frozen`. */
	u8 *write;
	bool frozen;
	u8 copies;            /* enum code_copies */
	u32 left;             /* how often by exits that are not linked for it, while `frozen` */
	u32 own_from, own_to; /* of what is not frozen; and pieces that were copied: */
	u32 piece;            /* bytes of one */
	u64 copied[CODE_PIECES / 64];
	u64 taken;       /* bytes of address space, beside those at `code` */
	u64 meta_mapped; /* so much of it is mapped; all of it if the kernel chose the place */
	u64 meta_image;  /* and so much from the image */
	u64 image_used;  /* dbt_image_used() when that was taken, and what of it is hot code */
	u32 image_hot;
	u32 touched[TOUCHED];        /* what exec_touch() has read of late: numbers of 64 KB */
	u64 meta_own[META_OWN / 64]; /* pages of that which are copied already */
	/* To count in an image's bookkeeping would copy it. */
	struct sought sought[SOUGHT], taken_exits[SOUGHT];

	struct exec_range *ranges; /* sorted, disjoint; address space for RANGES_MAX */
	u32 nr_ranges, max_ranges; /* max_ranges of them are mapped */

	struct dbt_told *told; /* relatives.c: shared with forks; NULL: there were none */
	u32 learnt;            /* how much of it is known here */
	u32 inherited;         /* blocks of BLOCK_LEARNT below this offset are for this process */
	bool told_ready;       /* its pages are present */
	bool telling;          /* what is translated is told */
	bool learning;         /* and this is for others */

	struct dbt_thread threads; /* list head; only next and prev are used */
	struct dbt_ops ops;
	u32 epoch;    /* of flush_all(); threads compare theirs before they enter */
	u32 flushing; /* flush_all() waits for the threads to leave the cache */

	u32 large_pages; /* code below this offset is in such, if they can be had */
	u32 hot_filled;  /* code below this offset has memory behind it */
	u32 cold_filled; /* and from here on */
	u64 meta_filled;
	u32 verify_at; /* with DBT_CHECKS: how many blocks there are at the next verification */
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

/* References to these are in units of 8 bytes. */
static inline struct page_ref *page_ref_at(u32 ref)
{
	return ref ? (struct page_ref *)(cache.meta + (u64)ref * sizeof(struct page_ref)) : NULL;
}

/* Where the byte of the cache is written; not while it is frozen. */
static inline u8 *code_at(u32 offset)
{
	return cache.write + offset;
}

static inline struct dbt_block *entry_block(const struct dbt_entry *e)
{
	return meta_at(e->block);
}

/* What leads to the next entry of its chain; 0: nothing, as none goes on to another. */
static inline u32 entry_link(const struct dbt_entry *e)
{
	return e->table == TABLE_JUMP ? e->link : 0;
}

#define block_for_each_entry(b, e) \
	for ((e) = meta_at((b)->entries); (e); (e) = meta_at((e)->sibling))

/* Where it is executed, and can be read. */
static inline u64 code_addr(u32 offset)
{
	return (u64)cache.code + offset;
}

/* How many pairs of tables a thread has. */
static inline u32 table_sets(void)
{
	return cache.mask & DBT_MASK_WINDOWS && !cache.fixed_tables ? 2 : 1;
}

/* Which of them blocks of @form use. */
static inline u32 table_set(u32 form)
{
	return table_sets() == 2 && !(form & BLOCK_PLAIN);
}

/* Where the jump table is from a thread's base; u64 addresses of code. */
static inline u32 jumps_at(u32 set)
{
	return set ? DBT_WINDOW_JUMPS_AT : DBT_JUMPS_AT;
}

/* The same of the ring. */
static inline u32 ring_at(u32 set)
{
	return cache.fixed_tables || set ? DBT_WIDE_RING_AT : DBT_RING_AT;
}

/* The most slots of a jump table. */
static inline u32 table_most(u32 set)
{
	return set ? TABLE_WINDOWS : TABLE_SIZE;
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

/* Most of what is looked up is not there, so most chains should be empty and not only short. */
static inline bool map_is_crowded(const struct hash_map *m)
{
	return m->count >= m->size / 2;
}

/* cache.c */
void cache_lock(struct dbt_thread *t);
void cache_lock_as(u32 me); /* by the thread with this id */
void cache_unlock(struct dbt_thread *t);
void *meta_alloc(u64 size); /* zeroed; the caller has made sure that META_SLACK is there */
/* A fork is about to share what is filled: who writes there first asks for copies in pieces. */
void meta_shared(void);
/*
 * *@p will be written to. A page of an image is copied then, without the fault that would count as
 * the program's.
 */
void meta_own(const void *p);
void *meta_try(u64 size);  /* likewise, of any size; NULL if there is no room */
bool cache_has_room(void); /* for one more block */
void cache_fill(void);     /* gets memory for the next block from the kernel, in larger pieces */
void flush_all(u32 me);
/* Makes the pages of [p, p + size) present: of our own memory that is used_late. */
void populate_own(void *p, u64 size);
/* Has @upto bytes of the bookkeeping mapped, if there is room. */
bool meta_map(u64 upto);
/* Memory is behind the next of it. */
void meta_ready(void);
/* Makes the cache an empty one, with only its own stubs; false without memory. */
bool cache_reset(void);
void thread_tables_clear(struct dbt_thread *t);
/* Whether @t's area has memory up to @upto from its base, more being mapped if need be. */
bool thread_reaches(struct dbt_thread *t, u32 upto);
/* With the lock: the ring is as large as what the thread uses of its stack asks for. */
void thread_ring_fit(struct dbt_thread *t, u64 sp);
/* The thread's next lookup of e->pc finds it. */
void thread_table_fill(struct dbt_thread *t, const struct dbt_entry *e);

/* How often @what was asked for in @table since another one had its place. */
static inline u64 sought_again(struct sought *table, const void *what)
{
	struct sought *s = &table[((u64)what >> 4) % SOUGHT];

	if (s->what != what)
		*s = (struct sought){.what = what};
	return ++s->times;
}

/* Whether @what was asked for there, if no other has had its place since. */
static inline bool was_sought(const struct sought *table, const void *what)
{
	return table[((u64)what >> 4) % SOUGHT].what == what;
}

/* block-maps.c */
/* Makes all maps, with nothing in them; false without memory. */
bool maps_begin(void);
/* Empty maps of awake blocks and entries. */
bool maps_init(void);
/* Room for one more block in the order of code; false: there is none. */
bool by_code_room(void);
/* The one of @n ranges that @pc is in, or NULL; image.c. */
const struct dbt_image_range *image_range(const struct dbt_image_range *r, u32 n, u64 pc);
/*
 * All blocks that live become dormant, and are found in the maps for such. Code leads from one
 * entry to the next of its chain if both are of one of @ranges. False: there is no room for the
 * maps.
 */
bool maps_sleep(const struct dbt_image_range *ranges, u32 n);
/* Bytes that maps_sleep() takes at most. */
u64 maps_sleep_most(void);
/* A thread has looked for @e, of a map, and not found it in its own table. */
void entry_missed(struct dbt_entry *e);
/* The block at @pc that has @form, of BLOCK_FORMS; NULL: there is none. */
struct dbt_block *block_find(u64 pc, u32 form);
/* The same among those that are awake, or asleep, without waking any. */
struct dbt_block *block_find_awake(u64 pc, u32 form);
/* And among those that were made for children, whoever is to execute them. */
struct dbt_block *block_find_learnt(u64 pc, u32 form);
struct dbt_block *block_find_dormant(u64 pc, u32 form);
/* @refs: memory for as many. */
void block_insert(struct dbt_block *b, const u64 *pages, u32 nr_pages, struct page_ref *refs);
void block_kill(struct dbt_block *b);
struct dbt_block *block_by_code(u64 pc); /* async-signal-safe, for a thread in the cache */
struct code_page *page_find(u64 number);
struct code_page *page_get(u64 number);
void entry_add(struct dbt_entry *e);
/* Of blocks with BLOCK_PLAIN, if @form has it, or without. */
struct dbt_entry *entry_find(enum entry_table table, u64 pc, u32 form);
u32 entry_hash(const struct hash_map *m, u64 pc);
/* The entry that a lookup of @pc finds without a block being made; NULL if there is none. */
struct dbt_entry *entry_known(u64 pc, u32 form);

/* code-memory.c */
int code_map(const struct dbt_config *config, u32 size);
/*
 * What is free of the cache can be written to again. False: there is no memory. Called before
 * anything is emitted, like cache_fill().
 */
must_check bool code_thaw(void);
/* Nobody writes to the cache any more, this process or another. */
void code_freeze(void);
/* @offset is used and is to be changed: it can be, and in this process only. */
void code_own(u32 offset);
/* Maps at @at, over what is there; also other memory of the cache. */
bool code_map_at(const u8 *at, u64 len, int prot, int flags, int fd, u64 offset);
/* Whether code_own() has yet to be called for it. */
bool code_is_shared(u32 offset);
/* Empties the cache; false without memory. */
must_check bool code_drop(void);

/* exec-memory.c */
const struct exec_range *exec_find(u64 pc);
/* Code at @pc will be read: before dbt_fetch() of what the program executes, or will. */
void exec_touch(u64 pc);

/*
 * The executable ranges are mapped in pieces, up to more than the kernel lets a process have
 * mappings.
 */
#define RANGES_MAX   (1u << 20)
#define RANGES_PIECE (RANGES_MAX / 128)

/* Makes room for @n of them; false without memory, or beyond RANGES_MAX. */
bool ranges_map(u32 n);
/* Memory of ours at @at: @at or -errno. */
long tables_map(void *at, u64 len);
/*
 * Repairs the ranges when a thread was killed while it changed them. They are sorted even then, but
 * some may be there twice and one may be torn.
 */
void exec_repair(void);
/* [start, end) may be executed, and was not known. */
void exec_range_add(u64 start, u64 end, u32 flags);
/*
 * For a write to @addr that was refused. True if we had protected the page, which is undone then.
 * @own: the block that writes was made from this page, so translating it again must not protect it
 * again.
 */
bool page_written(u64 addr, bool own);

/* link.c */
void exit_link(struct dbt_exit *x, struct dbt_block *to);
/* The same, by the code at cache offset @code, which leads there. */
void exit_link_by(struct dbt_exit *x, struct dbt_block *to, u32 code);

/* relatives.c */
void relatives_forked(void);
/*
 * A block at @pc with @flags has been made, or an entry, since @why led there. With the lock, while
 * cache.telling.
 */
void relatives_tell(u64 pc, u32 flags, enum exit_kind why);

/* cache-verify.c */
/* CHECK()s every invariant; of the threads' tables only @t's, since others write theirs. */
void cache_verify(const struct dbt_thread *t);

#endif
