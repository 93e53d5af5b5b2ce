#include "rt/task/requests.h"

#include "rt/mm/guest-mem.h"
#include "rt/task/path-stream.h"
#include "sys/string.h"

/* Numbers of valgrind.h. */
enum request {
	RUNNING_ON_VALGRIND = 0x1001,
	DISCARD_TRANSLATIONS = 0x1002, /* code that changes is seen anyway */
	COUNT_ERRORS = 0x1201,
	STACK_REGISTER = 0x1501,
	STACK_DEREGISTER = 0x1502,
	STACK_CHANGE = 0x1503,
};

/* callgrind.h: 'C', 'T'. */
#define CALLGRIND 0x43540000u
enum callgrind_request {
	DUMP_STATS = CALLGRIND,
	ZERO_STATS,
	TOGGLE_COLLECT,
	DUMP_STATS_AT,
	START_INSTRUMENTATION,
	STOP_INSTRUMENTATION,
};

/* cachegrind.h: 'C', 'G'. */
#define CACHEGRIND 0x43470000u
enum cachegrind_request {
	CACHEGRIND_START = CACHEGRIND,
	CACHEGRIND_STOP,
};

/* The file is there when the program goes on. */
static void ask_dump(struct thread *t, u64 reason)
{
	u32 words[64] = {0};
	long n = reason ? guest_string((char *)words, reason, sizeof(words)) : 0;

	/* A longer one is cut. */
	if (n < 0)
		n = (long)str_len((char *)words);
	((char *)words)[sizeof(words) - 1] = 0;
	stream_note(t, PATH_NOTE_DUMP, words, reason ? (u32)(n + 4) / 4 : 0);
	stream_wait_read(t);
}

/* What threads do that are made afterwards is not to be forgotten as well. */
static void ask_zero(struct thread *t)
{
	stream_note(t, PATH_NOTE_ZERO, NULL, 0);
	stream_wait_read(t);
}

u64 request_answer(struct thread *t, const u64 args[6], u64 otherwise)
{
	static u32 stacks;

	switch (args[0]) {
	case DUMP_STATS: ask_dump(t, 0); return 0;
	case DUMP_STATS_AT: ask_dump(t, args[1]); return 0;
	case ZERO_STATS: ask_zero(t); return 0;
	case TOGGLE_COLLECT: stream_note(t, PATH_NOTE_TOGGLE, NULL, 0); return 0;
	case CACHEGRIND_START:
	case START_INSTRUMENTATION: stream_note(t, PATH_NOTE_START, NULL, 0); return 0;
	case CACHEGRIND_STOP:
	case STOP_INSTRUMENTATION: stream_note(t, PATH_NOTE_STOP, NULL, 0); return 0;
	default: break;
	}
	stream_note(t, PATH_NOTE_REQUEST, NULL, 0);
	switch (args[0]) {
	case RUNNING_ON_VALGRIND: return 1;
	case STACK_REGISTER: return __atomic_add_fetch(&stacks, 1, __ATOMIC_RELAXED);
	case DISCARD_TRANSLATIONS:
	case COUNT_ERRORS:
	case STACK_DEREGISTER:
	case STACK_CHANGE: return 0;
	default: return otherwise;
	}
}
