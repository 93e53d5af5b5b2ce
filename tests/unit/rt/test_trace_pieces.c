/* The ring of pieces that wait for the model: order, room, and room while somebody waits. */
#include "rt/task/trace-pieces.h"

#include <stdlib.h>

#include "unit/test.h"

#define WORDS 4096u

static u32 words[WORDS];

static struct trace_pieces ring(u32 halves)
{
	struct trace_pieces q = {.room = malloc(PIECES_ROOM), .halves = halves};

	EXPECT(q.room);
	pieces_forget(&q);
	return q;
}

static bool put(struct trace_pieces *q, u32 number)
{
	/* Any but NULL, which says that a piece only fills. */
	const struct trace_piece p = {.thread = (struct thread *)&words[0],
				      .words = words,
				      .nr_words = WORDS,
				      .trace = number};

	return pieces_put(q, &p);
}

static u32 fill(struct trace_pieces *q, u32 number)
{
	u32 n = 0;

	while (put(q, number + n))
		n++;
	return n;
}

/* The next piece of @half, which is number @number. */
static void take(struct trace_pieces *q, u32 half, u32 number)
{
	const struct trace_piece *done;
	struct trace_piece *p = pieces_next(q, half, ~0ull);

	EXPECT(p && p->trace == number && p->nr_words == WORDS);
	pieces_past(q, half, p);
	while ((done = pieces_done(q)))
		pieces_drop(q, done);
}

TEST(order)
{
	struct trace_pieces q = ring(2);
	u32 n = fill(&q, 0), more = 0;

	EXPECT(n > 400);
	for (u32 i = 0; i < n; i++)
		take(&q, 0, i);
	EXPECT(!put(&q, n));
	/* It leaves when both halves are past it; the ring goes round several times. */
	for (u32 i = 0; i < 3 * n; i++) {
		take(&q, 1, i);
		if (put(&q, n + more))
			take(&q, 0, n + more++);
	}
	EXPECT(more > 2 * n);
	free(q.room);
}

/* If nothing waits the memory at the beginning is used, and no other is needed. */
TEST(empty)
{
	struct trace_pieces q = ring(2);

	for (u32 i = 0; i < 2000; i++) {
		u32 n = 1 + i % 3;

		for (u32 k = 0; k < n; k++)
			EXPECT(put(&q, k));
		for (u32 h = 0; h < 2; h++)
			for (u32 k = 0; k < n; k++)
				take(&q, h, k);
	}
	EXPECT(q.filled < PIECES_ROOM / 4);
	free(q.room);
}

/* Who waits again and again finds little to wait for; if nobody does there is all the room. */
TEST(hurry)
{
	struct trace_pieces q = ring(1);
	u32 all = fill(&q, 0), few, taken = 0, made = all;

	while (taken < made)
		take(&q, 0, taken++);
	pieces_hurry(&q);
	few = fill(&q, made);
	EXPECT(few >= 1 && few < all / 20);
	made += few;
	for (u32 i = 0; i < 20 * all; i++) {
		take(&q, 0, taken++);
		made += fill(&q, made);
	}
	EXPECT(made - taken >= all - 1);
	free(q.room);
}

/* One that is larger than what may wait is taken if nothing waits. */
TEST(large)
{
	struct trace_pieces q = ring(1);
	const struct trace_piece p = {.thread = (struct thread *)&words[0],
				      .memory = calloc(2, PIECES_FEW),
				      .nr_memory = 2 * PIECES_FEW};

	pieces_hurry(&q);
	EXPECT(pieces_put(&q, &p));
	EXPECT(!put(&q, 1));
	free((void *)p.memory);
	free(q.room);
}
