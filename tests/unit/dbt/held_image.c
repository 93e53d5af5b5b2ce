#include "unit/dbt/held_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool put(void *ctx, const void *from, u64 len)
{
	struct held_image *image = ctx;

	if (image->used + len > image->room) {
		image->room = (image->used + len) * 2;
		image->bytes = realloc(image->bytes, image->room);
	}
	memcpy(image->bytes + image->used, from, len);
	image->used += len;
	return true;
}

/* Pages of it, which begin at a page's beginning. */
static bool put_pages(void *ctx, const void *from, u64 len)
{
	static const u8 zeroes[4096];
	struct held_image *image = ctx;

	return put(ctx, zeroes, -image->used & 4095) && put(ctx, from, len);
}

static bool get(void *ctx, void *to, u64 len)
{
	struct held_image *image = ctx;

	if (image->at + len > image->used)
		return false;
	memcpy(to, image->bytes + image->at, len);
	image->at += len;
	return true;
}

static bool get_pages(void *ctx, void *at, u64 len, int prot)
{
	struct held_image *image = ctx;
	void *p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		       0);

	if (len && p != at)
		return false;
	image->at += -image->at & 4095;
	image->mapped[image->nr_mapped].at = at;
	image->mapped[image->nr_mapped].len = len;
	image->mapped[image->nr_mapped++].from = image->at;
	return get(ctx, at, len) && !mprotect(at, len, prot);
}

static bool whole(void *ctx)
{
	struct held_image *image = ctx;

	return image->at == image->used && !image->damaged;
}

bool held_image_save(struct held_image *image, struct dbt_thread *t, u64 version,
		     const struct dbt_image_range *ranges, u32 n)
{
	u64 start, end;
	u8 *scratch;
	bool ok;

	dbt_code_range(&start, &end);
	scratch = calloc(1, end - start);
	image->used = image->at = 0;
	ok = dbt_image_save(t, version, ranges, n,
			    &(struct dbt_image_target){put, put_pages, image, scratch});
	dbt_forget(t);
	free(scratch);
	return ok;
}

bool held_image_load(struct held_image *image, struct dbt_thread *t, u64 version)
{
	image->nr_mapped = 0;
	return dbt_image_load(t, version, &(struct dbt_image_source){get, get_pages, whole, image});
}
