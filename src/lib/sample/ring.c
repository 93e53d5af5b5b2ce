/*
 * Reading a ring buffer [RING-01..08, PAGE-17, PAGE-18]. The writer is the kernel on another CPU:
 *
 *	writer                              reader
 *	load data_tail         (A)          load-acquire data_head     (C)
 *	store records                       load records
 *	store-release head     (B)          store-release data_tail    (D)
 *
 * B and C pair: who sees the head sees the records in front of it. D and A pair through the control
 * dependency in the kernel's __perf_output_begin(): it writes only where the tail that it has seen
 * allows it, and the tail is published after the records were copied out.
 */
#include "lib/sample/ring-priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"
#include "record/coding.h"

char *ap__ring_name(const struct ap_ring *r, char *buf, size_t len)
{
	const struct ap_event *e = r->event;

	if (e->cpu >= 0)
		snprintf(buf, len, "the buffer of %.80s on CPU %d", e->name, e->cpu);
	else
		snprintf(buf, len, "the buffer of %.80s", e->name);
	return buf;
}

void ap__ring_copy(const struct ap_ring *r, u64 pos, void *to, size_t len)
{
	size_t at = pos & (r->size - 1), first = r->size - at;

	if (first > len)
		first = len;
	memcpy(to, r->data + at, first);
	memcpy((u8 *)to + first, r->data, len - first);
}

static u64 load_head(const struct ap_ring *r)
{
	/* (C) */
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

bool ap_ring_ready(const struct ap_ring *r)
{
	return r->backward ? r->nstarts > 0 : load_head(r) != r->seen;
}

int ap__ring_explain(const struct ap_ring *r, struct ap_error *err)
{
	char name[128];

	ap__ring_name(r, name, sizeof(name));
	if (r->broken > r->size)
		return ap__fail(err, -EBADMSG, AP_CAUSE_OTHER,
				"%s: its head is not within it; what it held was passed over",
				name);
	return ap__fail(err, -EBADMSG, AP_CAUSE_OTHER,
			"%s: %llu bytes in it are no records and were passed over", name,
			(unsigned long long)r->broken);
}

int ap__ring_begin(struct ap_ring *r)
{
	u64 head;

	/* A snapshot is a pass of its own. */
	if (r->backward)
		return 0;
	head = load_head(r);
	/* It only grows, and what was not released is still there: at most what it holds. */
	if (head - r->tail > r->size || (s64)(head - r->end) < 0) {
		r->broken = UINT64_MAX;
		r->seen = r->end = head;
		ap__ring_release(r, head);
		return -EBADMSG;
	}
	r->end = head;
	return 0;
}

/* A snapshot was divided into records when it was made. */
static int step_back(struct ap_ring *r, struct ap__found *f)
{
	struct perf_event_header h;

	if (!r->nstarts)
		return 0;
	f->pos = r->starts[--r->nstarts];
	ap__ring_copy(r, f->pos, &h, sizeof(h));
	f->type = h.type;
	f->size = h.size;
	return 1;
}

int ap__ring_step(struct ap_ring *r, struct ap__found *f)
{
	struct perf_event_header h;
	u64 left;

	if (r->backward)
		return step_back(r, f);
	left = r->end - r->seen;
	if (!left)
		return 0;
	if (left >= sizeof(h)) {
		ap__ring_copy(r, r->seen, &h, sizeof(h));
		if (h.size >= sizeof(h) && h.size <= left && h.size <= RECORD_MAX) {
			*f = (struct ap__found){.pos = r->seen, .type = h.type, .size = h.size};
			r->seen += h.size;
			return 1;
		}
	}
	/* Where the next one begins cannot be known. */
	r->broken = left;
	r->seen = r->end;
	return -EBADMSG;
}

void ap__ring_release(struct ap_ring *r, u64 pos)
{
	if (r->backward || pos == r->tail)
		return;
	r->tail = pos;
	/* (D) */
	__atomic_store_n(&r->page->data_tail, pos, __ATOMIC_RELEASE);
}

/* How much of @len bytes is whole records; *@broken: what follows is none. */
static size_t whole(const u8 *bytes, size_t len, bool *broken)
{
	struct perf_event_header h;
	size_t at = 0;

	for (; len - at >= sizeof(h); at += h.size) {
		memcpy(&h, bytes + at, sizeof(h));
		*broken = h.size < sizeof(h) || h.size > RECORD_MAX;
		if (*broken || h.size > len - at)
			break;
	}
	return at;
}

int ap__ring_drain(struct ap_ring *r, ap_records_fn *fn, void *data)
{
	if (ap__ring_begin(r))
		return -EBADMSG;
	/* Not less: what a hostile writer says may go around the end of 64 bits. */
	while (r->seen != r->end) {
		size_t left = r->end - r->seen, n = left < RECORD_MAX ? left : RECORD_MAX;
		bool broken = false;
		int stop;

		/* What is looked at is the copy, which nobody changes any more. */
		ap__ring_copy(r, r->seen, r->bounce, n);
		n = whole((u8 *)r->bounce, n, &broken);
		r->seen += n;
		stop = n ? fn(r->bounce, n, data) : 0;
		ap__ring_release(r, r->seen);
		if (stop)
			return stop;
		if (broken || !n) {
			r->broken = left - n;
			r->seen = r->end;
			ap__ring_release(r, r->end);
			return -EBADMSG;
		}
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct ap__source *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Asks the kernel for the ids of the events; only where records of several must be told apart. */
static void find_ids(struct ap_ring *r)
{
	uint64_t id;

	if (r->ids_known)
		return;
	r->ids_known = true;
	for (unsigned int i = 0; i < r->nsources; i++)
		r->sources[i].id = ap_event_id(r->sources[i].event, &id) ? 0 : id;
	qsort(r->sources, r->nsources, sizeof(*r->sources), by_id);
}

static const struct ap__source *source_of(struct ap_ring *r, u64 id)
{
	struct ap__source key = {.id = id};

	find_ids(r);
	return id ? bsearch(&key, r->sources, r->nsources, sizeof(key), by_id) : NULL;
}

/* NULL: its id, *@id, is none of the events'. */
static const struct ap_layout *layout_of(struct ap_ring *r, const struct ap__found *f, u64 *id)
{
	const struct ap__source *s;
	size_t at;

	*id = 0;
	if (r->alike)
		return &r->sources[0].layout;
	at = ap__record_id_at(f->type, f->size);
	if (at)
		ap__ring_copy(r, f->pos + at, id, sizeof(*id));
	s = source_of(r, *id);
	return s ? &s->layout : NULL;
}

bool ap__ring_time(struct ap_ring *r, const struct ap__found *f, u64 *time)
{
	const struct ap_layout *layout;
	size_t at;
	u64 id;

	layout = layout_of(r, f, &id);
	at = layout ? ap__record_time_at(f->type, f->size, layout) : 0;
	if (at)
		ap__ring_copy(r, f->pos + at, time, sizeof(*time));
	return at;
}

int ap__ring_take(struct ap_ring *r, const struct ap__found *f, struct ap_record *rec,
		  struct ap_error *err)
{
	struct perf_event_header *h = (struct perf_event_header *)r->bounce;
	const char *why, *type = ap__record_name(f->type);
	const struct ap_layout *layout;
	char name[128];
	u64 id;
	int n;

	layout = layout_of(r, f, &id);
	if (!layout)
		return ap__fail(err, -EBADMSG, AP_CAUSE_OTHER,
				"%s: a record is of event %llu, which does not write into it",
				ap__ring_name(r, name, sizeof(name)), (unsigned long long)id);
	ap__ring_copy(r, f->pos, r->bounce, f->size);
	/* As they were when the record was found; in hostile memory they may have changed since. */
	h->type = f->type;
	h->size = (u16)f->size;
	n = ap__record_decode(rec, r->bounce, f->size, layout, &why);
	if (n < 0)
		return ap__fail(err, n, AP_CAUSE_OTHER, "%s: a %s record of %u bytes: %s",
				ap__ring_name(r, name, sizeof(name)), type ? type : "?", f->size,
				why);
	if (rec->type == PERF_RECORD_LOST)
		r->lost += rec->lost.lost;
	return 0;
}

int ap_ring_next(struct ap_ring *r, struct ap_record *rec, struct ap_error *err)
{
	struct ap__found f;
	int n;

	if (!r->in_pass) {
		if (ap__ring_begin(r))
			return ap__ring_explain(r, err);
		r->in_pass = true;
	}
	n = ap__ring_step(r, &f);
	if (n > 0) {
		n = ap__ring_take(r, &f, rec, err);
		if (!n)
			n = 1;
	} else {
		r->in_pass = false;
		if (n < 0)
			ap__ring_explain(r, err);
	}
	/* Seldom enough that the writer does not lose its cache line to us with each record. */
	if (!r->in_pass || r->seen - r->tail >= r->size / 8)
		ap__ring_release(r, r->seen);
	return n;
}

/* NULL: nobody knows. */
static const struct ap__source *writer_of(struct ap_ring *r, const struct ap_record *rec)
{
	return r->nsources == 1 ? &r->sources[0] : source_of(r, rec->id.id);
}

struct ap_event *ap_ring_event(struct ap_ring *r, const struct ap_record *rec)
{
	const struct ap__source *s = writer_of(r, rec);

	return s ? s->event : NULL;
}

int ap__ring_tag(struct ap_ring *r, const struct ap_record *rec)
{
	const struct ap__source *s = writer_of(r, rec);

	return s ? (int)s->tag : -1;
}

uint64_t ap_ring_lost(const struct ap_ring *r)
{
	return r->lost;
}

unsigned int ap_ring_pages(const struct ap_ring *r)
{
	return (unsigned int)(r->size / (r->map_len - r->size));
}

static bool tells_itself(const struct ap_layout *l)
{
	return l->sample_id_all && (l->sample_type & PERF_SAMPLE_IDENTIFIER);
}

int ap__ring_add(struct ap_ring *r, struct ap_event *e, unsigned int tag, struct ap_error *err)
{
	struct ap__source *more, s = {.event = e, .tag = tag};
	const struct ap_layout *first = r->nsources ? &r->sources[0].layout : &s.layout;
	bool alike;
	int n;

	ap_layout_init(&s.layout, ap_event_attr(e));
	alike = ap__layout_same(&s.layout, first);
	if (!alike && !(tells_itself(&s.layout) && tells_itself(first)))
		return ap__refuse(err, -EINVAL, e->name, BUFFER_LAYOUTS, .name = {r->event->name});
	more = realloc(r->sources, (r->nsources + 1) * sizeof(*more));
	if (!more)
		return ap__fail_memory(err);
	r->sources = more;
	n = e == r->event ? 0 : ap_event_set_output(e, r->event, err);
	if (n)
		return n;
	more[r->nsources++] = s;
	r->ids_known = false;
	r->alike = r->alike && alike;
	return 0;
}

int ap_ring_add(struct ap_ring *r, struct ap_event *e, struct ap_error *err)
{
	return ap__ring_add(r, e, 0, err);
}
