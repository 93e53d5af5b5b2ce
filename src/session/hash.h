/*
 * PURPOSE: finding an object by a number in constant time: a hash whose links live inside the
 * objects. Several objects may have the same number.
 *
 * Lifetime: hash_init() to hash_release(), at one address. Nothing fails: without memory to grow
 * the hash only gets slower. Locking: none.
 */
#ifndef SESSION_HASH_H
#define SESSION_HASH_H

#include "base/types.h"

#define HASH_FIRST_BITS 4u

struct hash_link {
	struct hash_link *next;
	struct hash_link **at; /* what points here; NULL: it is in no hash */
	u64 key;
};

struct hash {
	struct hash_link **buckets;
	u32 bits; /* log2 of how many */
	u32 n;    /* links in it */
	struct hash_link *first[1u << HASH_FIRST_BITS];
};

void hash_init(struct hash *h);
void hash_release(struct hash *h);

/* @l is in no hash, and is found under @key from now on. */
void hash_add(struct hash *h, struct hash_link *l, u64 key);
/* Does nothing if @l is in no hash. */
void hash_del(struct hash *h, struct hash_link *l);

/* One of those with @key, and the next of them; NULL: there is none. */
struct hash_link *hash_find(const struct hash *h, u64 key);
struct hash_link *hash_next(const struct hash_link *l);

/* The length of the longest chain, for tests. */
u32 hash_longest(const struct hash *h);

#endif
