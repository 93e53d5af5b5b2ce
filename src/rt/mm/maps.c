#include "rt/mm/maps.h"

#include "rt/mm/region.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/mman.h>

void maps_end(struct maps_filter *f)
{
	char head[80];

	if (!f->end)
		return;
	f->put(f->to, head,
	       fmt(head, sizeof(head), "%08lx-%08lx %s %08lx", f->start, f->end, f->perm,
		   f->offset));
	f->put(f->to, f->rest, str_len(f->rest));
	f->put(f->to, "\n", 1);
	f->end = 0;
}

static void piece(struct maps_filter *f, u64 start, u64 end, const char *perm, u64 offset,
		  const char *rest, bool joinable)
{
	bool file = offset || !str_starts(rest, " 00:00 0");

	if (f->end == start && joinable && f->joinable && str_eq(perm, f->perm) &&
	    str_eq(rest, f->rest) && (!file || f->offset + (f->end - f->start) == offset)) {
		f->end = end;
		return;
	}
	maps_end(f);
	f->start = start;
	f->end = end;
	f->offset = offset;
	f->joinable = joinable;
	str_put(f->perm, sizeof(f->perm), perm);
	str_put(f->rest, sizeof(f->rest), rest);
}

/* A perf event's pages are a memfd of the session's, which its name tells. */
static const char *event_pages(const char *rest, char *out, size_t len)
{
	static const char name[] = "/memfd:anon_inode:[perf_event] (deleted)";
	static const char shown[] = "anon_inode:[perf_event]";
	size_t n = str_len(rest), at = n - (sizeof(name) - 1);

	if (n < sizeof(name) || !str_eq(rest + at, name) || at + sizeof(shown) > len)
		return rest;
	memcpy(out, rest, at);
	memcpy(out + at, shown, sizeof(shown));
	return out;
}

void maps_line(struct maps_filter *f, const char *line)
{
	u64 start, end, offset;
	const char *p = line;
	char perm[5], event[160];
	int n = str_u64(p, 16, &start);

	if (!n || p[n] != '-') {
		/* An attribute of the mapping before. */
		if (f->hidden)
			return;
		maps_end(f);
		f->put(f->to, line, str_len(line));
		f->put(f->to, "\n", 1);
		return;
	}
	p += n + 1;
	n = str_u64(p, 16, &end);
	if (!n || p[n] != ' ' || str_len(p + n) < 7)
		return;
	p += n + 1;
	memcpy(perm, p, 4);
	perm[4] = '\0';
	p += 4;
	if (*p++ != ' ')
		return;
	p += str_u64(p, 16, &offset);
	p = event_pages(p, event, sizeof(event));

	f->hidden = (start < REGION_END && end > REGION_START) ||
		    (start < f->code_end && end > f->code_start);
	if (f->hidden)
		return;
	if (f->whole || !f->prot_of || start >= TASK_SIZE + 0x1000) {
		if (f->prot_of && start < TASK_SIZE) {
			u64 until = end;
			int prot = f->prot_of(f->of, start, &until);

			if (prot >= 0 && prot & PROT_EXEC)
				perm[2] = 'x';
		}
		piece(f, start, end, perm, offset, p, false);
		if (f->whole)
			maps_end(f);
		return;
	}
	while (start < end) {
		u64 until = end;
		int prot = f->prot_of(f->of, start, &until);
		char own[5];

		memcpy(own, perm, sizeof(own));
		if (prot >= 0) {
			own[0] = prot & PROT_READ ? 'r' : '-';
			own[1] = prot & PROT_WRITE ? 'w' : '-';
			own[2] = prot & PROT_EXEC ? 'x' : '-';
		}
		piece(f, start, until, own, offset, p, prot >= 0 && prot & PROT_WRITE);
		offset += offset || !str_starts(p, " 00:00 0") ? until - start : 0;
		start = until;
	}
}
