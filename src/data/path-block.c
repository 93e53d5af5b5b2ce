/* Descriptions of paths that a guest has written, seen within their bounds. */
#include <string.h>

#include "data/path-reader-priv.h"

#define INSNS_MAX 255u

/* The space that @number of @index is described in, going up to parents; NULL: none. */
static const struct path_space *space_of(const struct path_source *source, u32 index, u32 number,
					 bool log)
{
	for (;;) {
		const struct path_space *s = source->space(index, source->data);
		u32 from, end, parent;

		if (!s || s->magic != PATH_MAGIC)
			return NULL;
		from = log ? s->from_log : s->from_path;
		end = __atomic_load_n(log ? &s->logged : &s->paths, __ATOMIC_ACQUIRE);
		if (number >= from)
			return number < end && end <= (log ? PATH_LOG : PATH_WORDS) ? s : NULL;
		parent = s->parent;
		/* A parent was there before. */
		if (!parent || parent - 1 >= index)
			return NULL;
		index = parent - 1;
	}
}

/* What comes behind the instructions: costs, and then accesses. */
static bool see_accesses(const struct path_space *s, struct seen_block *b)
{
	u64 end = (u64)(b->insns - s->log) + path_costs_end(b->nr_insns);
	struct path_accesses head;

	end = ALIGN_UP(end, 8ull);
	if (end > PATH_LOG - sizeof(head))
		return false;
	memcpy(&head, s->log + end, sizeof(head));
	end += sizeof(head);
	end += ALIGN_UP((u32)head.nr_slots, 8u);
	b->accesses = s->log + end;
	b->nr_accesses = head.nr_accesses;
	return end + head.nr_accesses * sizeof(struct path_access) <= PATH_LOG;
}

bool path_block_access(struct seen_block *b, u32 insn, struct path_access *a)
{
	for (; b->access < b->nr_accesses; b->access++) {
		memcpy(a, b->accesses + b->access * sizeof(*a), sizeof(*a));
		if (a->insn > insn)
			return false;
		if (a->insn == insn) {
			b->access++;
			return true;
		}
	}
	return false;
}

bool path_block_see(const struct path_source *source, u32 index, u32 at, struct seen_block *b)
{
	const struct path_space *s;
	struct path_block head;
	struct path_frag f;
	u64 place = (u64)at * 8, end;

	if (!at || place > PATH_LOG - sizeof(head))
		return false;
	s = space_of(source, index, (u32)place, true);
	if (!s)
		return false;
	memcpy(&head, s->log + place, sizeof(head));
	if (!head.nr_frags || head.nr_frags > INSNS_MAX || !head.nr_insns ||
	    head.nr_insns > INSNS_MAX || head.nr_targets > INSNS_MAX)
		return false;
	end = place + sizeof(head) + head.nr_frags * sizeof(struct path_frag) +
	      head.nr_targets * sizeof(u64) + head.nr_insns;
	if (end > PATH_LOG)
		return false;
	*b = (struct seen_block){.nr_frags = head.nr_frags,
				 .nr_insns = head.nr_insns,
				 .nr_targets = head.nr_targets};
	b->frags = s->log + place + sizeof(head);
	b->targets = b->frags + head.nr_frags * sizeof(struct path_frag);
	b->insns = b->targets + head.nr_targets * sizeof(u64);
	memcpy(&f, b->frags, sizeof(f));
	b->pc = f.pc;
	return head.traced != PATH_TRACED_RECORDS || see_accesses(s, b);
}

u64 path_block_since(const struct path_source *source, u32 index, u32 at)
{
	const struct path_space *s = space_of(source, index, at * 8, true);
	u32 n = s ? __atomic_load_n(&s->marks, __ATOMIC_ACQUIRE) : ~0u, from = 0;

	if (n > PATH_MARKS)
		return ~0ull;
	while (from < n) {
		u32 middle = (from + n) / 2;

		if (s->mark[middle].logged <= at * 8)
			from = middle + 1;
		else
			n = middle;
	}
	return from ? s->mark[from - 1].time : 0;
}

bool path_entry_see(const struct path_source *source, u32 index, u32 number, struct path_entry *e)
{
	const struct path_space *s = space_of(source, index, number, false);

	if (!s)
		return false;
	*e = s->path[number];
	return e->known && e->from < e->upto;
}

bool path_block_next(struct seen_block *b, struct seen_insn *i)
{
	struct path_frag f;

	/* Several may begin with the same instruction, all but the last being empty. */
	while (b->frag + 1 < b->nr_frags) {
		memcpy(&f, b->frags + (b->frag + 1) * sizeof(f), sizeof(f));
		if (f.first != b->next)
			break;
		b->pc = f.pc;
		b->frag++;
	}
	*i = (struct seen_insn){.pc = b->pc, .insn = b->insns[b->next++]};
	b->pc += i->insn & 15;
	if (!path_insn_is_direct(i->insn >> 4))
		return true;
	if (b->target == b->nr_targets)
		return false;
	memcpy(&i->target, b->targets + b->target++ * sizeof(i->target), sizeof(i->target));
	return true;
}
