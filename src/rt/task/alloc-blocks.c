#include "rt/task/alloc-blocks.h"

#include "base/check.h"
#include "sys/string.h"

static u64 priority(const struct alloc_blocks *b, u32 i)
{
	u64 x = b->block[i].start * 0x9e3779b97f4a7c15ull;

	return (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
}

/* Those of @tree that begin before @at, and the rest. */
static void split(struct alloc_blocks *b, u32 tree, u64 at, u32 *before, u32 *rest)
{
	while (tree) {
		struct alloc_block *n = &b->block[tree];

		if (n->start < at) {
			*before = tree;
			before = &n->right;
			tree = n->right;
		} else {
			*rest = tree;
			rest = &n->left;
			tree = n->left;
		}
	}
	*before = *rest = 0;
}

/* All of @x begin before all of @y. */
static u32 join(struct alloc_blocks *b, u32 x, u32 y)
{
	u32 tree = 0, *to = &tree;

	while (x && y) {
		if (priority(b, x) > priority(b, y)) {
			*to = x;
			to = &b->block[x].right;
			x = *to;
		} else {
			*to = y;
			to = &b->block[y].left;
			y = *to;
		}
	}
	*to = x ? x : y;
	return tree;
}

static void give_back(struct alloc_blocks *b, u32 tree)
{
	/* Depth first, without a stack: what hangs left is hung below the rightmost of it. */
	while (tree) {
		struct alloc_block *n = &b->block[tree];
		u32 next = n->right;

		if (n->left) {
			u32 last = n->left;

			while (b->block[last].right)
				last = b->block[last].right;
			b->block[last].right = n->right;
			next = n->left;
		}
		n->right = b->unused;
		b->unused = tree;
		tree = next;
	}
}

static u32 take(struct alloc_blocks *b)
{
	u32 i = b->unused;

	if (i) {
		b->unused = b->block[i].right;
		return i;
	}
	if (!b->used)
		b->used = 1;
	return b->used < b->room ? b->used++ : 0;
}

bool alloc_blocks_add(struct alloc_blocks *b, u64 start, u64 size, u64 site)
{
	const struct alloc_block *over;
	u32 before, within, behind, i;

	if (!size)
		size = 1;
	if (size > UINT64_MAX - start)
		return false;
	over = alloc_blocks_find(b, start);
	if (over)
		alloc_blocks_remove(b, over->start, 0);
	split(b, b->root, start, &before, &within);
	split(b, within, start + size, &within, &behind);
	give_back(b, within);
	i = take(b);
	if (i) {
		if (!++b->numbers)
			b->numbers = 1;
		b->block[i] = (struct alloc_block){
			.start = start, .size = size, .site = site, .number = b->numbers};
	}
	b->root = join(b, join(b, before, i), behind);
	return i;
}

const struct alloc_block *alloc_blocks_find(const struct alloc_blocks *b, u64 addr)
{
	const struct alloc_block *found = NULL;

	for (u32 i = b->root; i;) {
		const struct alloc_block *n = &b->block[i];

		if (n->start <= addr)
			found = n;
		i = n->start <= addr ? n->right : n->left;
	}
	return found && addr - found->start < found->size ? found : NULL;
}

void alloc_blocks_remove(struct alloc_blocks *b, u64 start, u32 number)
{
	const struct alloc_block *n = alloc_blocks_find(b, start);
	u32 before, it, behind;

	if (!n || n->start != start || (number && n->number != number))
		return;
	split(b, b->root, start, &before, &it);
	split(b, it, start + 1, &it, &behind);
	give_back(b, it);
	b->root = join(b, before, behind);
}

void alloc_blocks_move(struct alloc_blocks *b, struct alloc_block *to, u32 room)
{
	CHECK(room >= b->used);
	if (b->used)
		memcpy(to, b->block, b->used * sizeof(*to));
	b->block = to;
	b->room = room;
}
