/*
 * From the streams of threads (abi/path-trace.h) to the call graphs of their programs. All threads
 * are read in turn; each waits while its stream is full, so what one has asked for is done before
 * it goes on.
 */
#include "cli/call-trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "base/check.h"
#include "data/path-walk.h"
#include "lib/command.h"

/* Places looked at in one go where a stream may begin: guests say how many there are. */
#define LOOK_AT_ONCE 4096u

/* Who ran on when all others had ended, or has somebody write for it, is read no more often. */
#define READS_AT_END 1024u

/* Records that wait for what they are of: several times as many as a thread hands over at once. */
#define RECORDS_MOST (1u << 18)

/* Modeled events that wait for what has caused them, and what one can count. */
#define EVENTS_MOST (1u << 22)
#define EVENT_MOST  (1ull << 40)

struct trace_thread {
	struct path_stream *stream; /* mapped; NULL: done */
	struct traced_program *program;
	struct calls_thread *calls;
	struct path_walk walk;
	struct path_step *step; /* those of the path that is being told; owned */
	u32 nr_steps, step_room;
	/* What comes next of accesses, if they are simulated: of what is not told yet. */
	struct path_record *record; /* owned */
	u32 nr_records, record_room, records_taken;
	bool passes; /* the instruction that comes next is not to be told */
	bool read;   /* it is its words that are being told */
	u32 which;   /* of the program's thread[] */
	/* Likewise of modeled events; `path` is as path_walk.told. */
	struct path_event *event; /* owned */
	u32 nr_events, event_room, events_taken;
};

struct trace_reader {
	struct call_trace *trace;
	const struct guest_segment *segment;
	struct trace_thread **thread; /* by index, once its stream has begun; owned */
	u32 nr_threads;
	u32 looked;                      /* where it is to be looked next for streams that begin */
	u32 nr_begun, first_space;       /* streams so far; the space of the first one */
	const struct path_space **space; /* by index, mapped when they are asked for; owned */
	u32 nr_spaces;
	u32 *words;       /* of a stream, and of one that is caught up with meanwhile; owned */
	bool catching_up; /* the latter are told */
	u64 pause;
	u64 bad;
};

static void catch_up(const struct trace_thread *asks);

static const struct path_space *space_at(u32 index, void *data)
{
	struct trace_reader *r = data;
	void *map;

	if (index >= __atomic_load_n(&r->segment->head->path_spaces, __ATOMIC_ACQUIRE) ||
	    index >= PATH_SPACES)
		return NULL;
	if (index >= r->nr_spaces) {
		u32 n = r->nr_spaces;

		r->nr_spaces = index * 2 + 16;
		r->space = realloc(r->space, r->nr_spaces * sizeof(const struct path_space *));
		CHECK(r->space);
		memset(r->space + n, 0, (r->nr_spaces - n) * sizeof(const struct path_space *));
	}
	if (!r->space[index]) {
		map = mmap(NULL, sizeof(struct path_space), PROT_READ, MAP_SHARED | MAP_NORESERVE,
			   r->segment->fd, (off_t)path_space_offset(index));
		r->space[index] = map == MAP_FAILED ? NULL : map;
	}
	return r->space[index];
}

static bool is_setjmp(const char *name)
{
	size_t n;

	name += strspn(name, "_");
	n = strcspn(name, "@");
	return (n == 6 && !strncmp(name, "setjmp", n)) ||
	       (n == 9 && !strncmp(name, "sigsetjmp", n));
}

static void find(void *data, struct calls_graph *g, u64 pc, struct calls_code *code)
{
	const struct traced_program *p = data;
	struct call_trace *trace = p->trace;
	struct code_place place;
	struct calls_fn *fn;
	char text[48];
	bool made;

	if (!code_view_find(trace->code, p->pid, pc, &place)) {
		trace->take_records(trace->data);
		(void)code_view_find(trace->code, p->pid, pc, &place);
	}
	code_view_line(trace->code, p->pid, pc, &place);
	if (!place.function)
		snprintf(text, sizeof(text), "0x%016llx%s", (unsigned long long)place.address,
			 place.section == SECTION_PLT ? " [PLT]" : "");
	fn = calls_fn_of(g, place.object, place.file ? place.file : "???",
			 place.function ? place.function : text, &made);
	if (made) {
		fn->symbol = place.symbol;
		fn->pop_on_jump = !strncmp(fn->name, "_dl_runtime_resolve", 19);
		fn->unwinds = !strcmp(fn->name, "_Unwind_Resume");
		fn->twice = is_setjmp(fn->name);
		trace->describe(trace->data, fn, place.section == SECTION_PLT);
	}
	*code = (struct calls_code){fn, place.region, place.entry, place.address};
}

static void dump(void *data, struct calls_graph *g, const char *trigger)
{
	struct traced_program *p = data;

	(void)g;
	if (p->trace->dump)
		p->trace->dump(p, trigger);
}

static struct traced_program *program_of(struct call_trace *trace, u32 space, u32 pid, u32 number)
{
	struct traced_program *p;
	struct calls_opts opts = {.recursions = trace->recursions,
				  .collect = trace->collect,
				  .no_calls = trace->no_calls,
				  .tree = trace->tree,
				  .find = find,
				  .dump = dump};

	for (p = trace->programs; p; p = p->next)
		if (p->space == space && p->pid == pid && p->number == number)
			return p;
	p = calloc(1, sizeof(*p));
	CHECK(p);
	p->trace = trace;
	p->space = space;
	p->pid = pid;
	p->number = number;
	p->instrumented = trace->instrument;
	/* Of most numbers nothing is ever touched. */
	p->span = calloc(PATH_WORDS, sizeof(struct calls_span *));
	CHECK(p->span);
	opts.data = p;
	if (trace->simulates)
		p->simulation = opts.simulation = simulation_new(trace->simulates);
	p->graph = calls_graph_new(&opts);
	p->next = trace->programs;
	trace->programs = p;
	return p;
}

/* Those that are not told yet, from word @word on. */
static struct path_records records_from(const struct trace_thread *t, u32 word)
{
	struct path_records r = {
		.next = t->record + t->records_taken,
		.end = t->record + t->nr_records,
		.word = word,
		.simulation = t->program->simulation,
	};

	path_records_pass(&r, 0);
	return r;
}

static void have_told(struct trace_thread *t, const struct path_records *r)
{
	t->records_taken = (u32)(r->next - t->record);
}

static void take_records(const u32 *words, u32 n, u32 word, u32 at, void *data)
{
	struct trace_thread *t = data;
	struct path_records have;
	struct path_record *r;
	u32 left;

	if (!t->program->simulation)
		return;
	have = records_from(t, t->walk.pending_word);
	left = (u32)(have.end - have.next);
	if (left + n > RECORDS_MOST) {
		t->program->trace->bad += n;
		return;
	}
	if (left)
		memmove(t->record, have.next, left * sizeof(*r));
	t->records_taken = 0;
	t->nr_records = left + n;
	if (t->nr_records > t->record_room) {
		t->record_room = t->nr_records * 2;
		t->record = realloc(t->record, t->record_room * sizeof(*r));
		CHECK(t->record);
	}
	r = memcpy(t->record + left, words, n * sizeof(*r));
	for (; n; n--, r++)
		r->at = word + (u32)path_record_word(r, at);
}

static void take_events(const u32 *words, u32 n, u32 first, void *data)
{
	struct trace_thread *t = data;
	u32 left = t->nr_events - t->events_taken;

	if (left + n > EVENTS_MOST) {
		t->program->trace->bad += n;
		return;
	}
	if (t->events_taken)
		memmove(t->event, t->event + t->events_taken, left * sizeof(*t->event));
	t->events_taken = 0;
	t->nr_events = left;
	if (left + n > t->event_room) {
		t->event_room = (left + n) * 2;
		t->event = realloc(t->event, t->event_room * sizeof(*t->event));
		CHECK(t->event);
	}
	for (u32 i = 0; i < n; i++) {
		struct path_event *e = &t->event[t->nr_events];

		memcpy(e, words + (size_t)i * PATH_EVENT_WORDS, sizeof(*e));
		e->path += first;
		if (e->event < PROFILED_EVENTS && e->count <= EVENT_MOST)
			t->nr_events++;
		else
			t->program->trace->bad++;
	}
}

/* @s was executed, and is number @told of what is told. NULL: what there is belongs to nothing. */
static void execute_modeled(struct trace_thread *t, struct calls_span *s, u32 told)
{
	const struct path_event *e = t->event + t->events_taken;
	u32 n = 0, most = t->nr_events - t->events_taken;

	while (n < most && (s32)(e[n].path - told) <= 0)
		n++;
	t->events_taken += n;
	calls_run_modeled(t->calls, s, e, n);
}

/* How many of @n paths that come next from number @told on have caused nothing. */
static size_t eventless(const struct trace_thread *t, u32 told, size_t n)
{
	s32 first = t->events_taken < t->nr_events ? (s32)(t->event[t->events_taken].path - told)
						   : INT32_MAX;

	return first < 0 ? 0 : n < (u32)first ? n : (u32)first;
}

static size_t known_modeled(struct trace_thread *t, const u32 *number, size_t n)
{
	const struct traced_program *p = t->program;
	size_t i, quick, done;

	for (i = 0; i < n; i++) {
		u32 told = t->walk.told + (u32)i;

		quick = eventless(t, told, n - i);
		done = quick ? calls_run_paths(t->calls, p->span, number + i, quick, NULL) : 0;
		i += done;
		if (done < quick || i == n || !p->span[number[i]])
			break;
		execute_modeled(t, p->span[number[i]], told + (u32)done);
	}
	return i;
}

/* The thread has executed it; @keep as calls_run_simulated() has it. */
static void execute(struct trace_thread *t, struct calls_span *s, bool keep)
{
	struct path_records records;

	if (t->program->trace->modeled) {
		execute_modeled(t, s, t->walk.told);
		return;
	}
	if (!t->program->simulation) {
		calls_run(t->calls, s);
		return;
	}
	records = records_from(t, t->walk.word);
	calls_run_simulated(t->calls, s, &records, keep);
	have_told(t, &records);
}

static size_t known(const u32 *number, size_t n, void *data)
{
	struct trace_thread *t = data;
	const struct traced_program *p = t->program;
	struct path_records records;
	size_t i;

	if (p->trace->modeled)
		return known_modeled(t, number, n);
	if (!p->instrumented)
		return n;
	if (!p->simulation)
		return calls_run_paths(t->calls, p->span, number, n, NULL);
	records = records_from(t, t->walk.word);
	i = calls_run_paths(t->calls, p->span, number, n, &records);
	have_told(t, &records);
	return i;
}

static void on_step(const struct path_step *s, void *data)
{
	struct trace_thread *t = data;

	if (t->nr_steps == t->step_room) {
		t->step_room = t->step_room ? t->step_room * 2 : 256;
		t->step = realloc(t->step, t->step_room * sizeof(*t->step));
		CHECK(t->step);
	}
	t->step[t->nr_steps++] = *s;
}

/* Parts of paths are told time and again where a program asks something of us. */
static struct calls_span *part_of(struct traced_program *p, const struct path_step *step, u32 n)
{
	u64 hash = (step[0].pc * 31 + step[n - 1].pc) * 31 + n;
	/* One that has not retired has no length: nothing is fetched. */
	u64 accesses = step[0].first_access * 16ull + step[0].len;
	struct traced_part *part = &p->part[(hash * 0x9e3779b97f4a7c15ull) >> 54];

	_Static_assert(TRACED_PARTS == 1u << (64 - 54), "as many as the hash has values");
	/* Code that was translated anew may have others, or other numbers. */
	for (u32 i = 0; i < n; i++)
		accesses = accesses * 31 + step[i].nr_accesses;
	if (part->span && part->first == step[0].pc && part->last == step[n - 1].pc &&
	    part->n == n && part->accesses == accesses)
		return part->span;
	*part = (struct traced_part){step[0].pc, step[n - 1].pc, accesses, n,
				     calls_span_new(p->graph, step, n)};
	return part->span;
}

static void done(u32 number, void *data)
{
	struct trace_thread *t = data;
	struct traced_program *p = t->program;
	struct calls_span *s;
	u32 n = t->nr_steps;

	t->nr_steps = 0;
	if (t->passes) {
		t->passes = false;
		return;
	}
	/* What was told to the model, and is to be executed again. */
	if (!n && p->trace->modeled)
		execute_modeled(t, NULL, t->walk.told);
	if (!n || !p->instrumented)
		return;
	if (!number) {
		execute(t, part_of(p, t->step, n), true);
		return;
	}
	s = calls_span_new(p->graph, t->step, n);
	p->span[number] = s;
	execute(t, s, false);
}

/* Records of its strings, as it has them where it retires. */
static void on_interrupted(const struct path_step *s, const u64 *ends, void *data)
{
	struct trace_thread *t = data;
	struct traced_program *p = t->program;
	struct path_record strings[4];
	struct path_records records;

	if (!p->simulation || !p->instrumented)
		return;
	/* What is said of the order before. */
	records = records_from(t, t->walk.next_word);
	have_told(t, &records);
	for (u32 i = 0; i < 2 * s->nr_accesses; i++)
		strings[i] = (struct path_record){ends[i], records.word,
						  path_record_what(i / 2, 0, false, 0)};
	records.next = strings;
	records.end = strings + (size_t)2 * s->nr_accesses;
	calls_run_interrupted(t->calls, part_of(p, s, 1), &records);
}

static void on_gap(u32 n, void *data)
{
	struct trace_thread *t = data;

	if (!t->program->instrumented)
		return;
	t->program->trace->unknown += n;
	if (t->program->trace->modeled)
		execute_modeled(t, NULL, t->walk.told);
	else if (!t->program->trace->tree)
		calls_run_unknown(t->calls, n);
}

static void set_instrumented(struct traced_program *p, bool on)
{
	if (p->instrumented == on)
		return;
	p->instrumented = on;
	calls_forget(p->graph);
}

static void obey(struct trace_thread *t, enum path_note kind, const u32 *words, u32 n)
{
	struct call_trace *trace = t->program->trace;
	char text[300];

	snprintf(text, sizeof(text), "%.*s", (int)(n * sizeof(*words)), (const char *)words);
	switch (kind) {
	case PATH_NOTE_SIGNAL: calls_signal(t->calls); break;
	case PATH_NOTE_RETURN: calls_signal_return(t->calls); break;
	case PATH_NOTE_PRINT:
	case PATH_NOTE_ANSWER:
		if (trace->print)
			trace->print(t->program, text, kind == PATH_NOTE_PRINT);
		break;
	case PATH_NOTE_REQUEST: break;
	case PATH_NOTE_START: set_instrumented(t->program, true); break;
	case PATH_NOTE_STOP: set_instrumented(t->program, false); break;
	case PATH_NOTE_TOGGLE: calls_toggle_collect(t->calls); break;
	case PATH_NOTE_ZERO: calls_zero(t->program->graph); break;
	case PATH_NOTE_DUMP: dump(t->program, NULL, text); break;
	}
}

/* As with callgrind, the basic block that asks for something is counted when it is done. */
static void on_note(u32 kind, const u32 *words, u32 n, void *data)
{
	struct trace_thread *t = data;

	if (kind < PATH_NOTE_REQUEST) {
		obey(t, (enum path_note)kind, words, n);
		return;
	}
	if (kind == PATH_NOTE_DUMP || kind == PATH_NOTE_ZERO)
		catch_up(t);
	calls_uncount(t->calls);
	obey(t, (enum path_note)kind, words, n);
	calls_recount(t->calls);
	t->passes = true;
}

/* The thread whose stream has that index; NULL: it has not begun. */
static struct trace_thread *thread_at(const struct trace_reader *r, u32 index)
{
	return index < r->nr_threads ? r->thread[index] : NULL;
}

static struct trace_thread *new_thread(struct trace_reader *r, u32 index)
{
	struct trace_thread *t = calloc(1, sizeof(*t));

	CHECK(t);
	if (index >= r->nr_threads) {
		u32 n = r->nr_threads;

		r->nr_threads = index * 2 + 16;
		r->thread = realloc(r->thread, r->nr_threads * sizeof(struct trace_thread *));
		CHECK(r->thread);
		memset(r->thread + n, 0, (r->nr_threads - n) * sizeof(struct trace_thread *));
	}
	t->walk = (struct path_walk){.source = {space_at, r},
				     .known = known,
				     .done = done,
				     .note = on_note,
				     .records = take_records,
				     .events = r->trace->modeled ? take_events : NULL,
				     .interrupted = r->trace->simulates ? on_interrupted : NULL,
				     .step = on_step,
				     .gap = on_gap,
				     .data = t};
	r->thread[index] = t;
	return t;
}

/* What the stream says of it, which a guest may have written to. */
static char *command_of(const struct path_stream *s)
{
	u32 size = s->command_size, n = 0;
	char *text, *command, **argv;

	if (!size || size > sizeof(s->command))
		return NULL;
	text = calloc(1, size + 1);
	argv = calloc(size + 1, sizeof(char *));
	CHECK(text && argv);
	memcpy(text, s->command, size);
	for (u32 at = 0; at < size; at += (u32)strlen(text + at) + 1)
		argv[n++] = text + at;
	command = callgrind_command(argv);
	free(argv);
	free(text);
	return command;
}

/* Returns its index. */
static u32 add_thread(struct traced_program *p, const struct path_stream *s)
{
	if (!(p->nr_threads & (p->nr_threads - 1))) {
		p->thread = realloc(p->thread, (p->nr_threads * 2 + 1) * sizeof(*p->thread));
		CHECK(p->thread);
	}
	p->thread[p->nr_threads] = (struct traced_thread){.tid = s->tid, .start = s->start};
	return p->nr_threads++;
}

/* Whether a stream of our run is there. Pages that nobody has written are not made by looking. */
static bool has_begun(const struct trace_reader *r, u32 index)
{
	struct {
		u64 magic;
		u32 space, run;
	} head;

	_Static_assert(offsetof(struct path_stream, run) == offsetof(__typeof__(head), run),
		       "how a stream begins");
	return pread(r->segment->fd, &head, sizeof(head), (off_t)path_stream_offset(index)) ==
		       sizeof(head) &&
	       head.magic == PATH_STREAM_MAGIC && head.run == r->segment->number;
}

static void begin(struct trace_reader *r, u32 index)
{
	struct path_stream *s;
	struct trace_thread *t;

	if (!has_begun(r, index))
		return;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, r->segment->fd,
		 (off_t)path_stream_offset(index));
	if (s == MAP_FAILED)
		return;
	/* Mate: stream_begin() of the runtime, which sets it last. */
	if (__atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != PATH_STREAM_MAGIC) {
		munmap(s, sizeof(*s));
		return;
	}
	t = new_thread(r, index);
	t->walk.space = s->space;
	t->program = program_of(r->trace, s->space, s->pid, r->trace->by_thread ? s->number : 0);
	/* Who begins first is what was asked for, and its user knows how. */
	if (!r->nr_begun++)
		r->first_space = s->space;
	if (!t->program->command && s->space != r->first_space)
		t->program->command = command_of(s);
	t->stream = s;
	t->which = add_thread(t->program, s);
	t->calls = calls_thread_new(t->program->graph, s->tid);
}

/* Looks at @most of the places where no stream has begun. */
static void look_for_streams(struct trace_reader *r, u32 most)
{
	u32 n = __atomic_load_n(&r->segment->head->path_threads, __ATOMIC_ACQUIRE);

	n = n < PATH_THREADS ? n : PATH_THREADS;
	for (u32 i = 0; i < most && i < n; i++) {
		u32 index = r->looked++ % n;

		if (!thread_at(r, index))
			begin(r, index);
	}
}

/* Nothing more comes of it: whoever runs on is not to wait for us. */
static void end_stream(struct trace_thread *t)
{
	path_walk_end(&t->walk);
	if (t->program->trace->modeled) {
		execute_modeled(t, NULL, t->walk.told + INT32_MAX);
		t->program->thread[t->which].stack = t->stream->stack;
	}
	munmap(t->stream, sizeof(*t->stream));
	free(t->step);
	free(t->record);
	free(t->event);
	t->stream = NULL;
	t->step = NULL;
	t->record = NULL;
	t->event = NULL;
}

/* Words up to @read have been taken. */
static void have_read(struct path_stream *s, u32 read)
{
	__atomic_store_n(&s->read, read, __ATOMIC_SEQ_CST);
	/* Mate: wait_room() of the runtime. */
	if (__atomic_exchange_n(&s->waits, 0, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &s->read, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/*
 * What is there; an end that somebody else has written is not believed. The thread has room as soon
 * as its words are copied, but for one: who waits until all is read wants it to be done.
 */
static u32 read_stream(struct trace_reader *r, struct trace_thread *t)
{
	struct path_stream *s = t->stream;
	u32 *words = r->words + (r->catching_up ? PATH_STREAM_WORDS : 0);
	bool ended = __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE);
	u32 read = s->read, n = __atomic_load_n(&s->written, __ATOMIC_ACQUIRE) - read;
	u32 at = read % PATH_STREAM_WORDS, first;

	if (n > PATH_STREAM_WORDS) {
		r->bad++;
		n = 0;
		ended = true;
	}
	if (n) {
		first = n < PATH_STREAM_WORDS - at ? n : PATH_STREAM_WORDS - at;
		memcpy(words, s->word + at, first * sizeof(u32));
		memcpy(words + first, s->word, (n - first) * sizeof(u32));
		if (n > PATH_STREAM_WORDS / 4)
			have_read(s, read + n - 1);
		t->read = true;
		path_walk_feed(&t->walk, words, n);
		t->read = false;
		have_read(s, read + n);
	} else if (ended) {
		end_stream(t);
		r->bad += t->walk.bad;
	}
	return n;
}

/*
 * A part, and a new beginning, are of all threads: also what others have handed over by now counts
 * as executed before. Those that have ended have handed over all. Mate: request_answer() of the
 * runtime; @asks waits, so what it does afterwards, as to make threads, is not there yet.
 */
static void catch_up(const struct trace_thread *asks)
{
	struct trace_reader *r = asks->program->trace->reader;

	if (r->catching_up)
		return;
	r->catching_up = true;
	look_for_streams(r, PATH_THREADS);
	for (u32 i = 0; i < r->nr_threads; i++) {
		struct trace_thread *t = r->thread[i];

		if (t && t->stream && !t->read && t->program == asks->program)
			read_stream(r, t);
	}
	r->catching_up = false;
}

/* Reads what there is, and first looks for so many more. The most words that a thread had. */
static u32 read_all(struct call_trace *trace, u32 look_at)
{
	struct trace_reader *r = trace->reader;
	u32 most = 0;

	if (!r) {
		r = trace->reader = calloc(1, sizeof(*r));
		CHECK(r);
		r->trace = trace;
		r->words = malloc(2 * PATH_STREAM_WORDS * sizeof(u32));
		CHECK(r->words);
		r->pause = TRACE_PAUSE_MOST;
	}
	r->segment = ap__machine_segment(trace->machine);
	if (!r->segment)
		return 0;
	look_for_streams(r, look_at);
	for (u32 i = 0; i < r->nr_threads; i++)
		if (r->thread[i] && r->thread[i]->stream) {
			u32 n = read_stream(r, r->thread[i]);

			most = n > most ? n : most;
		}
	return most;
}

u64 call_trace_read(struct call_trace *trace)
{
	u32 most = read_all(trace, LOOK_AT_ONCE);
	u64 *pause = &trace->reader->pause;

	*pause = call_trace_pause(*pause, most);
	return most > PATH_STREAM_WORDS / 2 ? 0 : *pause;
}

void call_trace_end(struct call_trace *trace)
{
	struct trace_reader *r;

	for (u32 i = 0; i < READS_AT_END; i++)
		if (!read_all(trace, PATH_THREADS))
			break;
	r = trace->reader;
	if (r->segment)
		trace->lost = __atomic_load_n(&r->segment->head->path_lost, __ATOMIC_RELAXED);
	for (u32 i = 0; i < r->nr_threads; i++) {
		struct trace_thread *t = r->thread[i];

		if (!t)
			continue;
		if (t->stream)
			end_stream(t);
		free(t);
	}
	for (u32 i = 0; i < r->nr_spaces; i++)
		if (r->space[i])
			munmap((void *)r->space[i], sizeof(struct path_space));
	trace->bad += r->bad;
	free(r->thread);
	free(r->space);
	free(r->words);
	free(r);
	trace->reader = NULL;
}

void call_trace_release(struct call_trace *trace)
{
	if (trace->reader)
		call_trace_end(trace);
	while (trace->programs) {
		struct traced_program *p = trace->programs;

		trace->programs = p->next;
		calls_graph_free(p->graph);
		simulation_free(p->simulation);
		free(p->span);
		free(p->thread);
		free(p->command);
		free(p);
	}
}
