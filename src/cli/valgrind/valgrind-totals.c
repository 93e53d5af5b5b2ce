/* What callgrind and cachegrind say at the end, in their words. */
#include <stdlib.h>
#include <string.h>

#include "cli/valgrind/valgrind-priv.h"

struct number_text {
	char text[32];
};

static struct number_text with_commas(u64 n)
{
	struct number_text to;
	char plain[32];
	size_t len, at = 0;

	snprintf(plain, sizeof(plain), "%llu", (unsigned long long)n);
	len = strlen(plain);
	for (size_t i = 0; i < len && at + 2 < sizeof(to.text); i++) {
		if (i && (len - i) % 3 == 0)
			to.text[at++] = ',';
		to.text[at++] = plain[i];
	}
	to.text[at] = 0;
	return to;
}

static double percent(u64 n, u64 of)
{
	return of ? 100.0 * (double)n / (double)of : 0;
}

/* "name:  1,234  (1,000 a + 234 b)" */
static void say_two(struct traced_program *p, const char *name, u64 a, const char *a_name, u64 b,
		    const char *b_name)
{
	valgrind_say(valgrind_job_of(p), p->pid, "%-13s %13s  (%s %s + %s %s)", name,
		     with_commas(a + b).text, with_commas(a).text, a_name, with_commas(b).text,
		     b_name);
}

static void say_rates(struct traced_program *p, const char *name, const u64 miss[2],
		      const u64 all[2])
{
	valgrind_say(valgrind_job_of(p), p->pid, "%-15s %11.1f%% (%.1f%% + %.1f%%)", name,
		     percent(miss[0] + miss[1], all[0] + all[1]), percent(miss[0], all[0]),
		     percent(miss[1], all[1]));
}

static void say_caches(struct traced_program *p)
{
	const u64(*n)[3] = p->total.events.n;
	const u64 *i1 = n[SIMULATED_FETCH], *r = n[SIMULATED_READ], *w = n[SIMULATED_WRITE];
	const u64 data[2] = {r[0], w[0]}, l1[2] = {r[1], w[1]}, last[2] = {r[2], w[2]};
	const u64 refs[2] = {i1[1] + r[1], w[1]}, misses[2] = {i1[2] + r[2], w[2]};
	const u64 all[2] = {p->total.instructions + r[0], w[0]};
	struct valgrind_job *job = valgrind_job_of(p);

	valgrind_say(job, p->pid, "%-13s %13s", "I1  misses:", with_commas(i1[1]).text);
	valgrind_say(job, p->pid, "%-13s %13s", "LLi misses:", with_commas(i1[2]).text);
	valgrind_say(job, p->pid, "%-15s %11.2f%%",
		     "I1  miss rate:", percent(i1[1], p->total.instructions));
	valgrind_say(job, p->pid, "%-15s %11.2f%%",
		     "LLi miss rate:", percent(i1[2], p->total.instructions));
	valgrind_say(job, p->pid, "%s", "");
	say_two(p, "D   refs:", data[0], "rd", data[1], "wr");
	say_two(p, "D1  misses:", l1[0], "rd", l1[1], "wr");
	say_two(p, "LLd misses:", last[0], "rd", last[1], "wr");
	say_rates(p, "D1  miss rate:", l1, data);
	say_rates(p, "LLd miss rate:", last, data);
	valgrind_say(job, p->pid, "%s", "");
	say_two(p, "LL refs:", refs[0], "rd", refs[1], "wr");
	say_two(p, "LL misses:", misses[0], "rd", misses[1], "wr");
	say_rates(p, "LL miss rate:", misses, all);
}

static void say_branches(struct traced_program *p)
{
	const u64(*n)[3] = p->total.events.n;
	const u64 all[2] = {n[SIMULATED_COND][0], n[SIMULATED_INDIRECT][0]};
	const u64 wrong[2] = {n[SIMULATED_COND][1], n[SIMULATED_INDIRECT][1]};

	valgrind_say(valgrind_job_of(p), p->pid, "%s", "");
	say_two(p, "Branches:", all[0], "cond", all[1], "ind");
	say_two(p, "Mispredicts:", wrong[0], "cond", wrong[1], "ind");
	say_rates(p, "Mispred rate:", wrong, all);
}

/* "Ir Dr Dw" with @e NULL, else their values. */
static void say_columns(struct traced_program *p, const char *head, const struct event_counts *e)
{
	const struct valgrind_opts *o = &valgrind_job_of(p)->opts;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	callgrind_columns(f, e, o->cache_sim, o->branch_sim);
	fclose(f);
	valgrind_say(valgrind_job_of(p), p->pid, "%s%s", head, text);
	free(text);
}

void valgrind_say_totals(struct traced_program *p)
{
	char head[48];

	valgrind_say(valgrind_job_of(p), p->pid, "%s", "");
	if (valgrind_job_of(p)->opts.tool == TOOL_CALLGRIND) {
		say_columns(p, "Events    : Ir", NULL);
		snprintf(head, sizeof(head), "Collected : %llu",
			 (unsigned long long)p->total.instructions);
		say_columns(p, head, &p->total.events);
		valgrind_say(valgrind_job_of(p), p->pid, "%s", "");
	}
	valgrind_say(valgrind_job_of(p), p->pid, "%-13s %13s",
		     "I   refs:", with_commas(p->total.instructions).text);
	if (valgrind_job_of(p)->opts.cache_sim)
		say_caches(p);
	if (valgrind_job_of(p)->opts.branch_sim)
		say_branches(p);
}
