/*
 * PURPOSE: an image of the cache that the test program holds in its own memory: what is translated
 * goes into it, and from there into an empty cache, at the same place in the same process.
 */
#ifndef UNIT_DBT_HELD_IMAGE_H
#define UNIT_DBT_HELD_IMAGE_H

#include "dbt/dbt.h"

struct held_image {
	u8 *bytes;
	u64 used, room, at;
	bool damaged; /* its end will say so */
	struct {
		const u8 *at;
		u64 len, from;
	} mapped[5]; /* code, more of it, the bookkeeping, and two of descriptions of paths */
	u32 nr_mapped;
};

/* In place of what @image held. False: none can be made now. The cache is empty in both cases. */
bool held_image_save(struct held_image *image, struct dbt_thread *t, u64 version,
		     const struct dbt_image_range *ranges, u32 n);
/* From image->at. */
bool held_image_load(struct held_image *image, struct dbt_thread *t, u64 version);

#endif
