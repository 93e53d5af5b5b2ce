/*
 * PURPOSE: the ring of an event in which nothing goes round the end, for programs that look at each
 * of its records.
 */
#ifndef CONFORM_RECORDS_H
#define CONFORM_RECORDS_H

#include "conform/conform.h"

#define PAGE  4096
#define PAGES 64

/* Each page fault is a sample. */
static inline struct pe_attr fault_attr(u64 sample_type)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return attr;
}

struct buffer {
	int fd;
	struct perf_event_mmap_page *page;
	const u8 *data;
	u64 at; /* of the next record */
};

static inline struct buffer map(long fd)
{
	struct buffer b = {.fd = (int)fd};

	NEED(fd >= 0);
	b.page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	b.data = (const u8 *)b.page + PAGE;
	return b;
}

static inline void unmap(struct buffer *b)
{
	munmap(b->page, (1 + PAGES) * PAGE);
	close(b->fd);
}

/* The next record, or NULL. */
static inline const struct perf_event_header *next(struct buffer *b)
{
	u64 head = __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *h = (const void *)(b->data + b->at);

	NEED(head <= PAGES * PAGE);
	if (b->at >= head)
		return NULL;
	NEED(h->size >= sizeof(*h) && h->size <= head - b->at);
	b->at += h->size;
	return h;
}

/* What stands behind a record's head. */
static inline const u64 *words_of(const struct perf_event_header *h)
{
	return (const u64 *)(h + 1);
}

/* The next sample's fields, or NULL. */
static inline const u64 *next_sample(struct buffer *b)
{
	const struct perf_event_header *h;

	while ((h = next(b)))
		if (h->type == PERF_RECORD_SAMPLE)
			return words_of(h);
	return NULL;
}

/* How many there are, from the first one on. */
static inline u64 samples(struct buffer *b)
{
	u64 n = 0;

	b->at = 0;
	while (next_sample(b))
		n++;
	return n;
}

#endif
