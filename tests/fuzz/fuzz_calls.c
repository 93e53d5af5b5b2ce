/*
 * Traces that a guest may have made up, of paths that call and return as they like: run by run they
 * give what they give path by path, and nothing outside of the memory is touched. So do records of
 * accesses that there may be or not.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "calls/calls-priv.h"

const char *const fuzz_samples[] = {
	/* recursions, whether it is a tree or simulates, paths, then what comes in order */
	"\x01\x04\x10\x1a\x20\x12\x30\x06\x11\x02\x01\x02\x03\x04\x01\x02\x03\x04\xf7\x09\xf4\x01\xf7"
	"\x05",
	"\x09\x04\x10\x1a\x20\x12\x30\x06\x11\x02\x01\x02\x03\x04\x01\x02\x03\x04\xf7\x19\x01\xf7"
	"\x05",
	"\x02\x06\x10\x02\x20\x1a\x22\x06\x60\x15\x30\x06\x31\x0c\x01\x02\x04\x03\x05\x06\x01\x02\xf7"
	"\x20\xf0\x01\xf1\x02\xf7\x07",
	NULL};
const char *const fuzz_words[] = {"\xf0", "\xf1",     "\xf2",     "\xf3",     "\xf4",     "\xf5",
				  "\xf6", "\xf7\x10", "\xf7\x20", "\x01\x02", "\x02\x03", NULL};

enum { PATHS = 24, BATCH = 4096 };

#define CODE 0x10000ull /* nothing is ever executed at 0, where nobody returns to */

/* A function for each 16 bytes; every fourth region has what is not told of. */
static void find(void *data, struct calls_graph *g, u64 pc, struct calls_code *code)
{
	char name[20];
	bool made;

	(void)data;
	snprintf(name, sizeof(name), "%llx", (unsigned long long)pc >> 4);
	*code = (struct calls_code){.address = pc, .region = (u32)(pc >> 6)};
	code->fn = calls_fn_of(g, "/prog", "p.c", name, &made);
	code->fn->symbol = pc & 0x20 ? 0 : pc & ~15ull;
	code->fn->skip = (code->region & 3) == 1;
	code->fn->pop_on_jump = (pc >> 4 & 15) == 15;
	code->fn->toggle = (pc >> 4 & 15) == 14;
	code->fn->twice = (pc >> 4 & 15) == 13;
	code->entry = !code->fn->skip && !(pc & 15);
}

struct side {
	struct calls_graph *graph;
	struct calls_thread *thread;
	struct event_simulation *simulation; /* NULL: nothing is simulated */
	struct calls_span *span[1 + PATHS];  /* [0]: one that is not known */
};

static struct event_simulation *new_simulation(void)
{
	struct machine m = {.memory = {.line = 64}};

	m.cache[MACHINE_L1I] = m.cache[MACHINE_L1D] = (struct machine_cache){1 << 9, .ways = 2};
	m.cache[MACHINE_LL] = (struct machine_cache){1 << 11, .ways = 4};
	return simulation_new(
		&(struct simulation_opts){.machine = &m, .caches = true, .branches = true});
}

static void begin(struct side *s, const uint8_t *data, u32 paths, u32 how)
{
	struct calls_opts opts = {
		.recursions = 1 + how % 3, .collect = true, .tree = how & 4, .find = find};
	static const struct path_access access[] = {
		{.size = 8}, {.size = 4, .kind = PATH_STORE}, {.size = 1, .kind = PATH_LOADS}};

	if ((how & 12) == 8)
		opts.simulation = new_simulation();
	*s = (struct side){.graph = calls_graph_new(&opts), .simulation = opts.simulation};
	s->thread = calls_thread_new(s->graph, 1);
	s->graph->runs.most = 20000;
	for (u32 i = 0; i < paths; i++) {
		struct path_step step[4];
		u32 n = 1 + (data[2 * i + 1] >> 3 & 3);

		for (u32 k = 0; k < n; k++)
			step[k] = (struct path_step){.pc = CODE + data[2 * i] + k * 4,
						     .len = 4,
						     .nr_accesses = 1,
						     .first_access = k + (data[2 * i] & 1),
						     .access = &access[data[2 * i] % 16 / 6],
						     .kind = k + 1 < n ? PATH_COND
								       : data[2 * i + 1] & 7};
		s->span[1 + i] = calls_span_new(s->graph, step, n);
	}
}

/* By the paths alone, so that it is the same for both sides. */
static struct path_records make_records(const u32 *path, u32 n)
{
	static struct path_record record[2 * BATCH];
	u32 nr = 0, x = n;

	for (u32 i = 0; i < n; i++) {
		x = (x ^ path[i]) * 0x9e3779b1u;
		for (u32 k = x >> 30; k < 2; k++)
			record[nr++] = (struct path_record){.addr = (x >> 8 & 0xffff) + 32ull * k,
							    .at = i,
							    .what = (x >> 4 & 7) + k};
	}
	return (struct path_records){record, record + nr, 0};
}

static void run(struct side *slow, struct side *quick, const u32 *path, u32 n)
{
	struct path_records records = make_records(path, n), all = records;

	for (u32 i = 0; i < n; i++) {
		if (!slow->simulation) {
			calls_run(slow->thread, slow->span[path[i]]);
			continue;
		}
		calls_run_simulated(slow->thread, slow->span[path[i]], &records, false);
		path_records_pass(&records, 1);
	}
	CHECK(calls_run_paths(quick->thread, quick->span, path, n,
			      quick->simulation ? &all : NULL) == n);
}

static int add_piece(const struct calls_piece *piece, void *data)
{
	u64 *all = data, sum = piece->pc[0] * 31 + piece->n;

	for (u32 i = 0; i < piece->nr_callers; i++)
		sum = sum * 31 + piece->callers[i];
	*all += (sum ^ sum >> 17) * piece->count;
	return 0;
}

static void compare(struct side *slow, struct side *quick, bool tree)
{
	struct calls_profile x, y;
	u64 a = 0, b = 0;

	if (tree) {
		CHECK(!calls_tree(slow->graph, add_piece, &a));
		CHECK(!calls_tree(quick->graph, add_piece, &b));
		CHECK(a == b);
		return;
	}
	calls_take(slow->graph, &x);
	calls_take(quick->graph, &y);
	CHECK(!memcmp(&x.summary_events, &y.summary_events, sizeof(x.summary_events)));
	CHECK(x.summary == y.summary && x.nr_costs == y.nr_costs && x.nr_calls == y.nr_calls);
	for (u32 i = 0; i < x.nr_costs; i++)
		CHECK(x.cost[i].pc == y.cost[i].pc && x.cost[i].level == y.cost[i].level &&
		      x.cost[i].count == y.cost[i].count);
	for (u32 i = 0; i < x.nr_calls; i++)
		CHECK(x.call[i].site == y.call[i].site && x.call[i].target == y.call[i].target &&
		      x.call[i].count == y.call[i].count && x.call[i].cost == y.call[i].cost);
	calls_profile_release(&x);
	calls_profile_release(&y);
}

/* What is not a path. */
static void obey(struct side *s, u8 what)
{
	switch (what) {
	case 0xf0: calls_signal(s->thread); break;
	case 0xf1: calls_signal_return(s->thread); break;
	case 0xf2: calls_toggle_collect(s->thread); break;
	case 0xf3:
		calls_uncount(s->thread);
		calls_recount(s->thread);
		break;
	case 0xf5: calls_zero(s->graph); break;
	case 0xf6: calls_forget(s->graph); break;
	default: break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static u32 path[BATCH];
	struct side slow, quick;
	u32 n = 0, paths = len > 2 ? 1 + data[1] % PATHS : 0, signals = 0;
	size_t at = 2 + 2 * (size_t)paths;
	bool tree = len && data[0] & 4;

	if (!paths || at > len)
		return 0;
	begin(&slow, data + 2, paths, data[0]);
	begin(&quick, data + 2, paths, data[0]);
	for (; at < len; at++) {
		if (data[at] < 0xf0 || n + 64 * 16 > BATCH) {
			path[n++] = 1 + data[at] % paths;
			continue;
		}
		if (data[at] == 0xf7) {
			/* The last ones again and again: what runs are made of. */
			u32 back = n < 16 ? n : 16, times = at + 1 < len ? data[++at] & 31 : 0;

			for (u32 k = 0; back && k < times * back; k++, n++)
				path[n] = path[n - back];
			continue;
		}
		run(&slow, &quick, path, n);
		n = 0;
		if (data[at] == 0xf4)
			compare(&slow, &quick, tree);
		if (data[at] == 0xf0 && signals++ > 20)
			continue;
		obey(&slow, data[at]);
		obey(&quick, data[at]);
	}
	run(&slow, &quick, path, n);
	calls_finish(slow.graph);
	calls_finish(quick.graph);
	compare(&slow, &quick, tree);
	calls_graph_free(slow.graph);
	calls_graph_free(quick.graph);
	simulation_free(slow.simulation);
	simulation_free(quick.simulation);
	return 0;
}
