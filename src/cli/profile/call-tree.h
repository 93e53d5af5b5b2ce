/*
 * PURPOSE: the ways to a function, or on from it, as a tree of functions with how much went through
 * each.
 *
 * Lifetime: an empty tree is NULL; call_tree_release() frees one. Names are of the reading's, which
 * must live as long.
 */
#ifndef CLI_PROFILE_CALL_TREE_H
#define CLI_PROFILE_CALL_TREE_H

#include <stdio.h>

#include "cli/json.h"
#include "sym/symbol-view.h"

enum call_order {
	CALL_ORDER_NONE,   /* no trees */
	CALL_ORDER_CALLEE, /* from a function to who has called it */
	CALL_ORDER_CALLER, /* from who calls to what it has called */
};

#define CALL_WAY_MAX 256u /* functions of a chain; more are not looked at */

struct call_node {
	const char *object, *symbol; /* without a symbol `addr` is its name */
	u64 addr;                    /* in the object; the symbol's beginning, if there is one */
	bool kernel;
	u64 period;
	struct call_node *child, *next; /* owned */
};

/* A way with @period: @n functions, the first at the tree's root, each of @step from the last. */
void call_tree_add(struct call_node **tree, const struct sym_place *way, u32 n, int step,
		   u64 period);

/* At each place what has most comes first. */
void call_tree_sort(struct call_node **tree);

/*
 * Below the row of a function that has @period of @whole, whatever has @least percent of that. A
 * line is empty behind it, if there is anything.
 */
void call_tree_print(const struct call_node *tree, u64 period, u64 whole, double least, FILE *out);

/*
 * As an array @key of the ways, each with what part of @period went it and no further way that has
 * @least.
 */
void call_tree_json(struct json *j, const char *key, const struct call_node *tree, u64 period,
		    u64 whole, double least);

void call_tree_release(struct call_node *tree);

#endif
