/*
 * PURPOSE: paths as they are told to the model: feed-path.c works them out, feed.c tells of them,
 * feed-kept.c of those that are mostly taken.
 */
#ifndef MODEL_FEED_PATH_H
#define MODEL_FEED_PATH_H

#include "model/feed.h"
#include "model/path-branches.h"

enum feed_op_kind {
	OP_FETCH,
	OP_BRANCH,
	OP_OPEN, /* a branch whose target is the next path; the last one */
	OP_LOAD, /* of slot[base] + target */
	OP_STORE,
	OP_ACCESS,   /* any other; `access` says which */
	OP_STRING,   /* likewise; with a second one behind it, which goes along, if `and_next` */
	OP_FLOATS,   /* `size` instructions that do floats_work() `base` */
	OP_RECORDED, /* an access that may have records; `base` is its number; likewise */
};

struct feed_op {
	u8 kind;   /* enum feed_op_kind */
	u8 len;    /* bytes of the instruction; of OP_FETCH where in its line it begins */
	u8 branch; /* enum model_branch_kind; of OP_ACCESS enum path_access_kind */
	u8 taken;  /* of OP_ACCESS enum path_access_flags, | scale << 4 */
	u16 size;  /* of an access */
	u16 base, index;
	u16 and_next;
	u32 near; /* of OP_FETCH: the way of the line, the last time */
	/* `target` is an access's displacement; of OP_FETCH both are lines, first and last. */
	u64 pc, target;
};

/* An access that may have records. */
struct feed_access {
	u64 pc;
	u16 number; /* of the block's accesses */
	u16 size;
	u16 before; /* comes before this fetch */
	u8 kind;    /* enum path_access_kind */
	u8 flags;   /* enum path_access_flags */
};

/* A fetch of a plain path. */
struct feed_fetch {
	u64 line;
	u32 near;  /* as of OP_FETCH */
	u16 more;  /* lines behind this one */
	u16 begin; /* where in its line the instruction begins */
};

/* What `times` instructions calculate. */
struct feed_floats {
	u16 work; /* floats_work() */
	u16 times;
};

/*
 * What the model is told when a path is taken. It is made with an op for each branch; what is kept
 * has none, and an open one in its head. One whose accesses have records, or that has none, is kept
 * as a plain one, if nobody wants its ops one by one: it has no ops and no slots, but fetches.
 */
struct feed_path {
	u64 pc;
	u64 open_pc;
	u64 open_in_btb; /* the open branch is, while this is what btb_lost was */
	u32 ticks;
	u16 nr_ops; /* of a plain one, fetches */
	u16 nr_slots;
	u8 insns;
	u8 open; /* enum model_branch_kind; 0: none */
	u8 open_len;
	bool plain;
	u16 first_op; /* behind the head, in units of 8 bytes */
	u16 nr_accesses, nr_floats;
	u16 loads, stores; /* that may have records */
	u32 block;         /* where it is described: from instruction `from` of it on */
	u32 from;
	struct path_branches branches;
	/*
	 * Then what goes with these; struct feed_op op[nr_ops]. Or, of a plain one, struct
	 * feed_fetch fetch[nr_ops]; struct feed_access[nr_accesses], which are ops when it is made;
	 * struct feed_floats[nr_floats], likewise.
	 */
};

static inline struct feed_op *ops_of(struct feed_path *p)
{
	return (struct feed_op *)((u8 *)(p + 1) + p->first_op * 8);
}

static inline struct feed_fetch *fetches_of(struct feed_path *p)
{
	return (struct feed_fetch *)ops_of(p);
}

/* The path of that number as it is kept; NULL: it is not. */
static inline struct feed_path *feed_path_kept(struct feed *f, u32 number)
{
	u32 at = f->at[number];

	return likely(at) ? (struct feed_path *)(f->room + (at - 1) * 8ull) : NULL;
}

/* Below 0: the record is of a word before the one that is looked at; 0: of that one. */
static inline s32 feed_ahead(const struct feed_thread *t, const struct path_record *r)
{
	_Static_assert(PATH_RECORD_COUNTED >> 16 == sizeof(u32), "by so much it is a word before");
	return (s32)(r->at - (r->what >> 16 & sizeof(u32)) - (u32)t->trace - 4 * (u32)t->word);
}

/* Whether accesses and fetches are simulated. */
static inline bool has_memory(const struct feed *f)
{
	return f->parts & (MODEL_CACHES | MODEL_TLBS);
}

/* Instructions, and what they cost by themselves. */
static inline void feed_work(const struct feed *f, struct model_core *core, u32 insns, u64 ticks)
{
	if (f->counts)
		model_work(core, insns, f->parts & MODEL_CYCLES ? ticks : 0);
}

static inline struct feed_access access_of(const struct feed_op *op)
{
	return (struct feed_access){.pc = op->pc,
				    .number = op->base,
				    .size = op->size,
				    .kind = op->branch,
				    .flags = op->taken};
}

/*
 * A path of a block, from instruction @from up to @upto, as it is made; NULL: it is not described.
 * Valid until the next one is made.
 */
struct feed_path *feed_path_make(struct feed *f, u32 block, u32 from, u32 upto, bool taken);

/* Where its instruction @insn begins; 0: it is not described any more. */
u64 feed_path_pc(const struct feed *f, const struct feed_path *p, u32 insn);

/* Whether its instruction at @pc is atomic. */
bool feed_path_is_atomic(const struct feed *f, const struct feed_path *p, u64 pc);

/* The path of that number, likewise. */
struct feed_path *feed_path_of(struct feed *f, u32 number);

/* Keeps @made, of which the model has been told and the predictor has learned, if there is room. */
void feed_path_keep(struct feed *f, const struct model_core *core, u32 number,
		    struct feed_path *made);

/* Branches of @site have gone both ways: paths that leave them out are made again. */
void feed_path_take_in(struct feed *f, u32 site);

/*
 * feed.c. An access that may have records, which are the next ones of the thread's word. @next goes
 * along with it, or is NULL. Moves past them.
 */
void feed_recorded(struct feed_thread *t, struct model_core *core, const struct feed_access *a,
		   const struct feed_access *next);

/*
 * feed-kept.c. Of @n words those of kept paths that come one after the other, but for the last one,
 * which something may be said of; returns how many. Nobody watches.
 */
u32 feed_take_kept(struct feed *f, struct feed_thread *t, struct model_core *core, const u32 *words,
		   u32 n);

/* What a plain path fetches, accesses and calculates. */
void feed_tell_plain(struct feed_thread *t, struct model_core *core, struct feed_path *p);

/*
 * feed-watch.c. Something has been told of a thread that watches: a branch, an access of enum
 * path_access_kind, a fetch, an instruction's cost. Of a path's cost it does that itself.
 */
void feed_watch_branch(struct feed_thread *t, const struct model_core *core, u64 ip, u64 target);
/* The branch at @ip, which an earlier path has ended with, has gone to @target. */
void feed_watch_target(struct feed_thread *t, const struct model_core *core, u64 ip, u64 target);
/* All of a path, part or instruction has been told, as far as it is known. */
void feed_watch_told(struct feed_thread *t);
void feed_watch_access(struct feed_thread *t, const struct model_core *core, u8 kind, u64 ip,
		       u64 addr, struct model_access access);
void feed_watch_fetch(struct feed_thread *t, const struct model_core *core, u64 pc);
void feed_watch_insn(struct feed_thread *t, const struct model_core *core, u64 pc);
void feed_watch_work(const struct feed *f, struct feed_thread *t, struct model_core *core,
		     const struct feed_path *p);

#endif
