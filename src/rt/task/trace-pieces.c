#include "rt/task/trace-pieces.h"

#include "sys/fill.h"
#include "sys/string.h"

#define ALIGN 64u

_Static_assert(offsetof(struct trace_piece, thread) + sizeof(void *) <= ALIGN, "as what fills");
_Static_assert(!(PIECES_ROOM & (PIECES_ROOM - 1)), "a ring");

static struct trace_piece *piece_at(const struct trace_pieces *q, u64 at)
{
	return (struct trace_piece *)(q->room + (at & (PIECES_ROOM - 1)));
}

/* Moves *@at over what fills the end. */
static struct trace_piece *real_piece(const struct trace_pieces *q, u64 *at, u64 end)
{
	struct trace_piece *p;

	if (*at >= end)
		return NULL;
	p = piece_at(q, *at);
	if (p->thread)
		return p;
	*at += p->size;
	return *at < end ? piece_at(q, *at) : NULL;
}

/* Nothing waits: the next one goes where memory is, and most likely in a cache. */
static void begin_again(struct trace_pieces *q)
{
	q->end = ALIGN_UP(q->end, (u64)PIECES_ROOM);
	q->first = q->end;
	for (u32 h = 0; h < MODEL_HALVES; h++)
		q->at[h] = q->end;
}

bool pieces_put(struct trace_pieces *q, const struct trace_piece *p)
{
	u64 words = p->nr_words * sizeof(u32), left, fill;
	u32 size = (u32)ALIGN_UP(sizeof(*p) + p->nr_memory + words, ALIGN);
	struct trace_piece *to;

	if (q->end == q->first)
		begin_again(q);
	left = PIECES_ROOM - (q->end & (PIECES_ROOM - 1));
	fill = left < size ? left : 0;
	if (q->end - q->first + fill + size > PIECES_ROOM ||
	    (q->end != q->first && q->end - q->first + size > q->most))
		return false;
	q->most = min_u64(q->most + size / 4, PIECES_ROOM);
	if (fill) {
		to = piece_at(q, q->end);
		to->size = (u32)fill;
		to->thread = NULL;
		q->end += fill;
	}
	fill_ahead(q->room, PIECES_ROOM, &q->filled, (q->end & (PIECES_ROOM - 1)) + size);
	to = piece_at(q, q->end);
	*to = *p;
	to->size = size;
	to->memory = (u8 *)(to + 1);
	to->words = (u32 *)(to->memory + p->nr_memory);
	memcpy((u8 *)to->memory, p->memory, p->nr_memory);
	memcpy((u32 *)to->words, p->words, words);
	q->end += size;
	return true;
}

void pieces_hurry(struct trace_pieces *q)
{
	q->most = PIECES_FEW;
}

struct trace_piece *pieces_next(struct trace_pieces *q, u32 half, u64 end)
{
	return real_piece(q, &q->at[half], min_u64(end, q->end));
}

void pieces_past(struct trace_pieces *q, u32 half, const struct trace_piece *p)
{
	q->at[half] += p->size;
}

const struct trace_piece *pieces_done(struct trace_pieces *q)
{
	u64 past = q->end;

	for (u32 h = 0; h < q->halves; h++)
		past = min_u64(past, q->at[h]);
	return real_piece(q, &q->first, past);
}

void pieces_drop(struct trace_pieces *q, const struct trace_piece *p)
{
	q->first += p->size;
}

void pieces_forget(struct trace_pieces *q)
{
	q->first = q->end;
	q->most = PIECES_ROOM;
	for (u32 h = 0; h < MODEL_HALVES; h++)
		q->at[h] = q->end;
}
