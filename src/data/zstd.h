/*
 * PURPOSE: records that are compressed with zstd. libzstd is loaded when it is needed for the first
 * time: no start of the command line waits for it.
 *
 * Lifetime: open .. close. All records of a file are one stream: what has been compressed must be
 * decompressed in the same order by one object.
 */
#ifndef DATA_ZSTD_H
#define DATA_ZSTD_H

#include <anyperf/error.h>

#include "base/types.h"

struct data_zstd;

/* @level 1 to 22 compresses, 0 decompresses. -ENOENT if libzstd is not installed, -ENOMEM. */
int data_zstd_open(struct data_zstd **out, int level, struct ap_error *err) must_check;
void data_zstd_close(struct data_zstd *z);

/* The bytes at *@in, *@len of them; both are moved on by what was taken. */
struct data_zstd_input {
	const void *bytes;
	size_t len;
};

/*
 * Takes input and writes what comes of it to @out, at most @room bytes. Compressing, all that was
 * taken can be decompressed from what has been written once the input is empty and less than @room
 * bytes came. Returns the bytes written, or -EBADMSG: this is not zstd's.
 */
long data_zstd_step(struct data_zstd *z, struct data_zstd_input *in, void *out,
		    size_t room) must_check;

#endif
