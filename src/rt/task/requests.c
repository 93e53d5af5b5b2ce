#include "rt/task/requests.h"

#include "rt/mm/guest-mem.h"
#include "rt/task/path-stream.h"
#include "rt/task/request-print.h"
#include "sys/string.h"

/* Numbers of valgrind.h. */
enum request {
	RUNNING_ON_VALGRIND = 0x1001,
	DISCARD_TRANSLATIONS = 0x1002, /* code that changes is seen anyway */
	COUNT_ERRORS = 0x1201,
	GDB_MONITOR_COMMAND = 0x1202,
	CLO_CHANGE = 0x1203,
	MALLOCLIKE_BLOCK = 0x1301,
	FREELIKE_BLOCK = 0x1302,
	RESIZEINPLACE_BLOCK = 0x130b,
	PRINTF_VALIST_BY_REF = 0x1403,
	PRINTF_BACKTRACE_VALIST_BY_REF = 0x1404,
	STACK_REGISTER = 0x1501,
	STACK_DEREGISTER = 0x1502,
	STACK_CHANGE = 0x1503,
	LOAD_PDB_DEBUGINFO = 0x1601,
	MAP_IP_TO_SRCLOC = 0x1701,
	CHANGE_ERR_DISABLEMENT = 0x1801,
	VEX_INIT_FOR_IRI = 0x1901,
	INNER_THREADS = 0x1902,
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

#define NOTE_WORDS 64u /* of a note, at most */

/* @text, of @n bytes, is cut if it is longer than a note. */
static void note_text(struct thread *t, enum path_note kind, const char *text, size_t n)
{
	u32 words[NOTE_WORDS] = {0};

	n = min_u64(n, sizeof(words) - 1);
	memcpy(words, text, n);
	stream_note(t, kind, words, (u32)(n + 4) / 4);
}

/* It is there when the program goes on. */
static void print(struct thread *t, enum path_note kind, const char *text, size_t n)
{
	for (size_t part; n; text += part, n -= part) {
		part = min_u64(n, NOTE_WORDS * 4 - 1);
		note_text(t, kind, text, part);
	}
	stream_wait_read(t);
}

/* The file is there when the program goes on. */
static void dump(struct thread *t, const char *trigger)
{
	note_text(t, PATH_NOTE_DUMP, trigger, str_len(trigger));
	stream_wait_read(t);
}

static void ask_dump(struct thread *t, u64 reason)
{
	char text[NOTE_WORDS * 4] = "Client Request: ";
	size_t n = str_len(text);

	/* A longer one is cut. */
	if (reason)
		(void)!guest_string(text + n, reason, sizeof(text) - n);
	else
		text[n - 2] = '\0';
	text[sizeof(text) - 1] = '\0';
	dump(t, text);
}

/* What threads do that are made afterwards is not to be forgotten as well. */
static void ask_zero(struct thread *t)
{
	stream_note(t, PATH_NOTE_ZERO, NULL, 0);
	stream_wait_read(t);
}

static u64 ask_print(struct thread *t, u64 format, u64 list)
{
	char text[4096];
	size_t n = request_print(text, sizeof(text), format, list);

	print(t, PATH_NOTE_PRINT, text, n);
	return n;
}

static const char help[] = "monitor commands that anyperf knows:\n"
			   "  help                    : print this\n"
			   "  dump [<dump_hint>]      : write a part of the profile\n"
			   "  zero                    : set costs to zero\n"
			   "  instrumentation on|off  : go on, or pause\n"
			   "  v.info n_errs_found     : say that there are no errors\n";
static const char no_errors[] = "n_errs_found 0 n_errs_shown 0\n";

/* Of VALGRIND_MONITOR_COMMAND. 1: that is none. */
static u64 ask_monitor(struct thread *t, u64 command)
{
	char text[NOTE_WORDS * 4];

	if (guest_string(text, command, sizeof(text)) < 0)
		str_put(text, sizeof(text), "what cannot be read");
	if (str_eq(text, "dump") || str_starts(text, "dump ")) {
		dump(t, text);
		return 0;
	}
	if (str_eq(text, "zero")) {
		ask_zero(t);
		return 0;
	}
	if (str_eq(text, "instrumentation on")) {
		stream_note(t, PATH_NOTE_START, NULL, 0);
		return 0;
	}
	if (str_eq(text, "instrumentation off")) {
		stream_note(t, PATH_NOTE_STOP, NULL, 0);
		return 0;
	}
	stream_note(t, PATH_NOTE_REQUEST, NULL, 0);
	if (str_eq(text, "help"))
		print(t, PATH_NOTE_ANSWER, help, sizeof(help) - 1);
	else if (str_eq(text, "v.info n_errs_found"))
		print(t, PATH_NOTE_ANSWER, no_errors, sizeof(no_errors) - 1);
	else if (text[0])
		return 1;
	return 0;
}

/* Nobody here knows files and lines: an empty text. */
static u64 ask_line(struct thread *t, u64 to)
{
	return guest_write(t, to, "", 1) ? 1 : 0;
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
	case GDB_MONITOR_COMMAND: return ask_monitor(t, args[1]);
	default: break;
	}
	stream_note(t, PATH_NOTE_REQUEST, NULL, 0);
	switch (args[0]) {
	case RUNNING_ON_VALGRIND: return 1;
	case STACK_REGISTER: return __atomic_add_fetch(&stacks, 1, __ATOMIC_RELAXED);
	case PRINTF_VALIST_BY_REF:
	case PRINTF_BACKTRACE_VALIST_BY_REF: return ask_print(t, args[1], args[2]);
	case MAP_IP_TO_SRCLOC: return ask_line(t, args[2]);
	/* A tool that does not know these is not asked for an address of 0. */
	case MALLOCLIKE_BLOCK:
	case FREELIKE_BLOCK:
	case RESIZEINPLACE_BLOCK: return args[1] ? otherwise : 0;
	case DISCARD_TRANSLATIONS:
	case COUNT_ERRORS:
	case CLO_CHANGE:
	case STACK_DEREGISTER:
	case STACK_CHANGE:
	case LOAD_PDB_DEBUGINFO:
	case CHANGE_ERR_DISABLEMENT:
	case VEX_INIT_FOR_IRI:
	case INNER_THREADS: return 0;
	default: return otherwise;
	}
}
