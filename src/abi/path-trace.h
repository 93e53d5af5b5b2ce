/*
 * PURPOSE: the trace of a thread: which paths through translated code it has taken, one after the
 * other. With the descriptions of paths (path-profile.h) it says every instruction that was
 * executed, in order, and with it what each branch did: the next instruction is where it went.
 * Shapes only.
 *
 * A trace is words of 32 bits. A word below PATH_WORDS is a path that was taken, all of it unless a
 * part of it is taken back. Others begin an entry of several words, of which the first says what it
 * is; such an entry is never torn by a hand-over.
 *
 * Where accesses of memory are traced as well there is a second list, of slots: for each path or
 * part of one, in order, the slots of its instructions (struct path_accesses). What BACK says has
 * not retired has none, and other entries have none.
 */
#ifndef ABI_PATH_TRACE_H
#define ABI_PATH_TRACE_H

#include "abi/path-profile.h"

#define PATH_TRACE_SIZE (128u << 10) /* bytes of a thread's buffer; to hand it over is a fault */
/* And of that of slots: for as many paths as fit there, and one that is going on. */
#define PATH_SLOTS_SIZE (((u64)PATH_TRACE_SIZE / 4 + 1) * PATH_SLOTS_MAX * 8)

/*
 * With a filter records take the place of slots: of each access that changes something in the first
 * level of a cache, or may (model/model.h, model_filter_sets()), where it was, in order. They may
 * be made when an access before them is: those that do not retire are taken back. Of a string
 * instruction that repeats there are two for each string, where it began and where it stopped. One
 * with PATH_RECORD_AGAIN is no access. It says that a line which has been told of has been accessed
 * again since, behind all others of its set. In front of one with PATH_RECORD_SWAPPED the last line
 * of its set and the last but one have changed places.
 */
struct path_record {
	u64 addr;
	u32 at;   /* the lower half of the address of the next word of the trace then */
	u32 what; /* path_record_what() */
};

#define PATH_RECORDS_SIZE   (512u << 10)
#define PATH_RECORD_COUNTED BIT(18)
#define PATH_RECORD_MORE_AT 19u
#define PATH_RECORD_AGAIN   (~0u << PATH_RECORD_MORE_AT | 0x3ffu) /* no access has that number */
#define PATH_RECORD_SWAPPED BIT(31)

/*
 * Access @access of a block, by instruction @insn, of @more + 1 bytes. @counted: its path is the
 * word before `at`, else the one there.
 */
static inline u32 path_record_what(u32 access, u32 insn, bool counted, u32 more)
{
	return access | insn << 10 | (counted ? PATH_RECORD_COUNTED : 0) |
	       more << PATH_RECORD_MORE_AT;
}

static inline u32 path_record_access(const struct path_record *r)
{
	return r->what & 0x3ff;
}

static inline u32 path_record_insn(const struct path_record *r)
{
	return r->what >> 10 & 0xff;
}

static inline bool path_record_is_again(const struct path_record *r)
{
	return (r->what & PATH_RECORD_AGAIN) == PATH_RECORD_AGAIN;
}

/* The index of the word that it is of, of a trace that begins at @start; -1: one that has gone. */
static inline s32 path_record_word(const struct path_record *r, u64 start)
{
	return (s32)(r->at - (u32)start) / 4 - !!(r->what & PATH_RECORD_COUNTED);
}

#define PATH_TRACE_KIND (0xffu << 24)
/*
 * Instructions [from, upto) of a block have retired: | from << 8 | upto; then path_entry.block. The
 * thread has left a path early, and goes on somewhere else.
 */
#define PATH_TRACE_PART (0x81u << 24)
/*
 * The same, but they have not, though the path that was told last has them as its end: it ends
 * before. Comes right behind the path.
 */
#define PATH_TRACE_BACK (0x82u << 24)
/* One instruction, of no path; then its pc, the lower half first. */
#define PATH_TRACE_INSN (0x83u << 24)
/* That instruction has not retired, and is to be executed again: a system call. As INSN. */
#define PATH_TRACE_AGAIN (0x84u << 24)

/*
 * The instruction at a pc, which comes next, is a gather or scatter, or one that C code has
 * executed; then an entry of each of its elements, or words: | enum path_access_kind << 16 |
 * bytes; then the address. Both as INSN.
 *
 * Or it is a string instruction that has been interrupted, and what it has done until then: | ends
 * << 8 | enum path_access_flags; then as many elements, of one string or both, each where that
 * began and where it is now, by its register. Only the first one has a segment.
 */
#define PATH_TRACE_ELEMENTS (0x87u << 24)
#define PATH_TRACE_ELEMENT  (0x88u << 24)

#define PATH_TRACE_ENTRY 3u /* words of the longest */

/*
 * The runtime's, between what code traces: | enum path_note; then how many words follow, and they.
 */
#define PATH_TRACE_NOTE (0x85u << 24)

enum path_note {
	PATH_NOTE_SIGNAL, /* the handler of a signal comes next */
	PATH_NOTE_RETURN, /* it is done */
	/* A part of a text that ends with NUL, the program's or ours, to be printed. */
	PATH_NOTE_PRINT,
	PATH_NOTE_ANSWER,
	/*
	 * What the program asks for by a client request of Valgrind's. That is to be told as one
	 * instruction: the last PATH_REQUEST_INSNS of the path and what comes behind this are not.
	 */
	PATH_NOTE_REQUEST, /* nothing of ours */
	PATH_NOTE_START,
	PATH_NOTE_STOP,
	PATH_NOTE_TOGGLE,
	PATH_NOTE_ZERO,
	PATH_NOTE_DUMP, /* then the reason, a text that ends with NUL */
};

#define PATH_REQUEST_INSNS 3u

/*
 * In a stream only, by a filter of caches as Valgrind has them: records of the words that come
 * next, in their order, or of the one before. | how many; then the number of the next word, of
 * those that the thread has traced, from 0 on, modulo 2^32; then where that was, as path_record.at
 * has it; then they, each a struct path_record. Entries of a stream only, and notes, have no
 * number. Says nothing of the path before it.
 */
#define PATH_TRACE_RECORDS (0x86u << 24)
#define PATH_RECORDS_HEAD  3u /* words before the records */
#define PATH_RECORD_WORDS  ((u32)(sizeof(struct path_record) / sizeof(u32)))

/*
 * Likewise, where modeled events are attributed: what the paths and parts behind this one, and the
 * one before it that may still be taken back, have caused. | how many; then they, each a struct
 * path_event. With PATH_EVENTS_SETTLED the model has been told of the one before as it is.
 */
#define PATH_TRACE_EVENTS   (0x89u << 24)
#define PATH_EVENTS_SETTLED BIT(23)

struct path_event {
	u64 pc;   /* of the instruction; 0: what the path costs, which is all of theirs */
	u64 addr; /* of the data; 0: not wanted, or none */
	u64 count;
	u32 path;  /* which path, part or instruction, of those of which the model is told next */
	u16 event; /* which of run_config.profiled[] */
	u16 flags; /* enum path_event_flags */
};

enum path_event_flags {
	PATH_EVENT_BRANCH = 1, /* of the branch that has gone there: the one before has caused it */
	PATH_EVENT_UNKNOWN = 2, /* nobody knows where */
};

#define PATH_EVENT_WORDS ((u32)(sizeof(struct path_event) / sizeof(u32)))

/*
 * Where a thread's trace is handed to somebody outside: a ring of words in the counter segment
 * (SEGMENT_TRACED), with a space of the program's that describes its paths. What is between `read`
 * and `written` ends with a whole entry. Who writes waits for room at `read`, a futex.
 */
#define PATH_STREAM_MAGIC   0x364d525453504e41ull /* "ANPSTRM6": changes with the shape */
#define PATH_STREAM_WORDS   (128u << 10)
#define PATH_STREAM_COMMAND 3072u       /* bytes */
#define PATH_STREAM_AT      (12u << 20) /* within the room of a thread; its words come before */

struct path_stream {
	u64 magic;
	u32 space; /* its index */
	u32 run;   /* as in struct meter */
	u32 pid, tid;
	u32 written; /* words so far, modulo 2^32 */
	u32 read;    /* likewise, the reader's */
	u32 waits;   /* the writer waits for it */
	u32 ended;   /* nothing more comes */
	u64 start;   /* CLOCK_MONOTONIC, ns */
	u64 stack;   /* of who has modeled events: where its stack pointer was; 0: not known yet */
	u32 number;  /* of the thread: 1 is the first of its process, others as they were made */
	/* What its program was started with, each argument with its NUL; may be cut off. */
	u32 command_size;
	char command[PATH_STREAM_COMMAND];
	u8 pad[4096 - 64 - PATH_STREAM_COMMAND];
	u32 word[PATH_STREAM_WORDS];
};

_Static_assert(offsetof(struct path_stream, word) == 4096, "the head of a stream");
_Static_assert(sizeof(struct path_thread) <= PATH_STREAM_AT, "words come before");
_Static_assert(PATH_STREAM_AT + sizeof(struct path_stream) <= PATH_THREAD_ROOM, "its place");

static inline u64 path_stream_offset(u32 index)
{
	return path_thread_offset(index) + PATH_STREAM_AT;
}

#endif
