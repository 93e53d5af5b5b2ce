#include "cli/profile/call-tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/profile/profile.h"
#include "cli/put-name.h"

static bool is_at(const struct call_node *n, const struct sym_place *at, u64 addr)
{
	return n->addr == addr && n->object == at->object && n->symbol == at->symbol &&
	       n->kernel == at->kernel;
}

/* The node of @list for @at, which comes first then: the next way is likely to be the same. */
static struct call_node *node_of(struct call_node **list, const struct sym_place *at)
{
	u64 addr = at->symbol ? at->addr - at->offset : at->addr;
	struct call_node **from = list, *n;

	while (*from && !is_at(*from, at, addr))
		from = &(*from)->next;
	n = *from;
	if (n) {
		*from = n->next;
	} else {
		n = calloc(1, sizeof(*n));
		CHECK(n);
		n->object = at->object;
		n->symbol = at->symbol;
		n->addr = addr;
		n->kernel = at->kernel;
	}
	n->next = *list;
	*list = n;
	return n;
}

void call_tree_add(struct call_node **tree, const struct sym_place *way, u32 n, int step,
		   u64 period)
{
	for (; n; n--, way += step) {
		struct call_node *node = node_of(tree, way);

		node->period += period;
		tree = &node->child;
	}
}

static int by_period(const void *a, const void *b)
{
	const struct call_node *x = *(struct call_node *const *)a;
	const struct call_node *y = *(struct call_node *const *)b;
	int order;

	if (x->period != y->period)
		return x->period > y->period ? -1 : 1;
	order = strcmp(x->symbol ? x->symbol : "", y->symbol ? y->symbol : "");
	return order ? order : x->addr < y->addr ? -1 : x->addr > y->addr;
}

void call_tree_sort(struct call_node **tree)
{
	struct call_node **all, **to = tree;
	u32 n = 0;

	for (struct call_node *c = *tree; c; c = c->next)
		n++;
	if (!n)
		return;
	all = malloc(n * sizeof(struct call_node *));
	CHECK(all);
	n = 0;
	for (struct call_node *c = *tree; c; c = c->next)
		all[n++] = c;
	qsort(all, n, sizeof(struct call_node *), by_period);
	for (u32 i = 0; i < n; i++) {
		*to = all[i];
		to = &all[i]->next;
		call_tree_sort(&all[i]->child);
	}
	*to = NULL;
	free(all);
}

static bool is_shown(const struct call_node *n, u64 whole, double least)
{
	return n && profile_percent(n->period, whole) >= least;
}

/* What is printed, and what stands in front of it on each line. */
struct drawing {
	u64 whole;
	double least;
	FILE *out;
	size_t len;
	char before[4096]; /* of a tree that is deeper the rest is left out */
};

#define INDENT "            "
#define BRANCH "          " /* as wide as a share */

static void print_name(const struct drawing *d, const struct call_node *n)
{
	if (n->symbol)
		put_name(d->out, 0, n->symbol);
	else
		fprintf(d->out, "0x%016" PRIx64, n->addr);
	fputc('\n', d->out);
}

static bool push(struct drawing *d, const char *text)
{
	size_t len = strlen(text);

	if (d->len + len >= sizeof(d->before))
		return false;
	memcpy(d->before + d->len, text, len + 1);
	d->len += len;
	return true;
}

static void pop(struct drawing *d, size_t len)
{
	d->len = len;
	d->before[len] = 0;
}

/* All of @period goes on in one way: its functions stand under each other. */
static const struct call_node *print_line(const struct drawing *d, const struct call_node *n,
					  u64 period)
{
	while (n && n->period == period && is_shown(n, d->whole, d->least)) {
		fputs(d->before, d->out);
		print_name(d, n);
		n = n->child;
	}
	return n;
}

/* @list is sorted, so what is not shown comes last. */
static void print_branches(struct drawing *d, const struct call_node *list)
{
	size_t len = d->len;

	for (const struct call_node *n = list; is_shown(n, d->whole, d->least); n = n->next) {
		bool last = !is_shown(n->next, d->whole, d->least);

		fprintf(d->out, "%s|\n%s%s--%.2f%%--", d->before, d->before, last ? " " : "|",
			profile_percent(n->period, d->whole));
		print_name(d, n);
		if (push(d, last ? " " BRANCH : "|" BRANCH))
			print_branches(d, print_line(d, n->child, n->period));
		pop(d, len);
	}
}

void call_tree_print(const struct call_node *tree, u64 period, u64 whole, double least, FILE *out)
{
	struct drawing d = {.whole = whole, .least = least, .out = out};

	if (!is_shown(tree, whole, least))
		return;
	(void)push(&d, INDENT);
	if (tree->period == period) {
		fprintf(out, INDENT "|\n" INDENT "---");
		print_name(&d, tree);
		(void)push(&d, "   ");
		tree = print_line(&d, tree->child, period);
	}
	print_branches(&d, tree);
	fputc('\n', out);
}

/* A tree as the ways through it, whose depth a nested text could not have. */
struct ways {
	struct json *j;
	u64 whole;
	double least;
	const struct call_node *at[CALL_WAY_MAX];
};

static void put_function(struct json *j, const struct call_node *n)
{
	char text[24];

	json_object(j, NULL);
	json_str(j, "object", n->object);
	json_str(j, "mode", n->kernel ? "kernel" : "user");
	snprintf(text, sizeof(text), "%#" PRIx64, n->addr);
	json_str(j, n->symbol ? "symbol" : "address", n->symbol ? n->symbol : text);
	json_end(j);
}

static void put_way(const struct ways *w, u32 n, u64 period)
{
	json_object(w->j, NULL);
	json_double(w->j, "percent", profile_percent(period, w->whole), 2);
	json_u64(w->j, "period", period);
	json_array(w->j, "functions");
	for (u32 i = 0; i < n; i++)
		put_function(w->j, w->at[i]);
	json_end(w->j);
	json_end(w->j);
}

/* Those that begin with the first @n, and which have @period, less what is shown of them. */
static void put_ways(struct ways *w, u32 n, const struct call_node *list, u64 period)
{
	for (; is_shown(list, w->whole, w->least) && n < CALL_WAY_MAX; list = list->next) {
		w->at[n] = list;
		put_ways(w, n + 1, list->child, list->period);
		period -= list->period;
	}
	if (period)
		put_way(w, n, period);
}

void call_tree_json(struct json *j, const char *key, const struct call_node *tree, u64 period,
		    u64 whole, double least)
{
	struct ways w = {.j = j, .whole = whole, .least = least};

	json_array(j, key);
	put_ways(&w, 0, tree, period);
	json_end(j);
}

void call_tree_release(struct call_node *tree)
{
	while (tree) {
		struct call_node *next = tree->next;

		call_tree_release(tree->child);
		free(tree);
		tree = next;
	}
}
