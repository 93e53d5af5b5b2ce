#include "session/hash.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Fibonacci hashing: pids, inodes and indexes count up, and their low bits are alike. */
static u32 bucket_of(const struct hash *h, u64 key)
{
	return (u32)(key * 0x9e3779b97f4a7c15ull >> (64 - h->bits));
}

static void push(struct hash_link **bucket, struct hash_link *l)
{
	l->next = *bucket;
	if (l->next)
		l->next->at = &l->next;
	l->at = bucket;
	*bucket = l;
}

static void grow(struct hash *h)
{
	struct hash_link **old = h->buckets, *l;
	u32 n = 1u << h->bits;

	h->buckets = calloc(2ul * n, sizeof(*h->buckets));
	if (!h->buckets) {
		h->buckets = old;
		return;
	}
	h->bits++;
	for (u32 i = 0; i < n; i++) {
		while ((l = old[i])) {
			old[i] = l->next;
			push(&h->buckets[bucket_of(h, l->key)], l);
		}
	}
	if (old != h->first)
		free(old);
}

void hash_init(struct hash *h)
{
	memset(h, 0, sizeof(*h));
	h->buckets = h->first;
	h->bits = HASH_FIRST_BITS;
}

void hash_release(struct hash *h)
{
	if (h->buckets != h->first)
		free(h->buckets);
	hash_init(h);
}

void hash_add(struct hash *h, struct hash_link *l, u64 key)
{
	CHECK(!l->at);
	if (h->n >= 1u << h->bits && h->bits < 31)
		grow(h);
	l->key = key;
	push(&h->buckets[bucket_of(h, key)], l);
	h->n++;
}

void hash_del(struct hash *h, struct hash_link *l)
{
	if (!l->at)
		return;
	*l->at = l->next;
	if (l->next)
		l->next->at = l->at;
	l->next = NULL;
	l->at = NULL;
	h->n--;
}

struct hash_link *hash_find(const struct hash *h, u64 key)
{
	struct hash_link *l = h->buckets[bucket_of(h, key)];

	while (l && l->key != key)
		l = l->next;
	return l;
}

struct hash_link *hash_next(const struct hash_link *l)
{
	const u64 key = l->key;

	do
		l = l->next;
	while (l && l->key != key);
	return (struct hash_link *)l;
}

u32 hash_longest(const struct hash *h)
{
	u32 longest = 0;

	for (u32 i = 0; i < 1u << h->bits; i++) {
		u32 n = 0;

		for (const struct hash_link *l = h->buckets[i]; l; l = l->next)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}
