/*
 * PURPOSE: where images are kept (rt/load/images.h): in a folder of the user's, a file each, or in
 * a memfd that the programs of one run have in common, and that who has started the run writes to
 * (abi/tree-images.h). Of several who write an image of one name at once one wins, and who reads
 * has a whole one.
 *
 * Locking: the caller is the only thread that asks.
 */
#ifndef RT_LOAD_IMAGE_STORE_H
#define RT_LOAD_IMAGE_STORE_H

#include "sys/kernel.h"

/* An image that is read or written, from @at on in @fd; one that is made begins at 0. */
struct stored_image {
	int fd;
	struct store_pieces *pieces; /* of a tree's that is made, in place of a file */
	u64 at;
	u64 size; /* for who writes the most that there is room for */
	u64 name;
	bool proven; /* its sum was right, and nobody has written to it since */
};

/* Both are taken. @fd: a directory; or, with @keeper, the run's memory; -1: there is none yet. */
void store_begin(int fd, int keeper);
/* Makes the run's memory if there is none. */
void store_need(void);
/* It is no longer this process's. */
void store_end(void);
/* Nor that of the program that the process becomes. */
void store_close_on_exec(void);
bool store_is_tree(void);

/* False: there is none. */
bool store_open(u64 name, struct stored_image *image);
/*
 * Whether somebody of the tree has asked for @name here before: most run a large program once.
 * Of a folder it is not known.
 */
bool store_asked(u64 name);
/*
 * False: there is no room for @bytes of it, nor may there be. At most STORE_HEADS of them do not
 * stay where they are.
 */
#define STORE_HEADS (64ull << 10)

bool store_make(u64 name, u64 bytes, struct stored_image *image);
/*
 * @len bytes of one that is made, at its `at`. @stays: what is at @from is there, and as it is,
 * until the image is published. False: there is no room.
 */
bool store_write(struct stored_image *image, const void *from, u64 len, bool stays);
/* The sum of one that is read is right. */
void store_prove(const struct stored_image *image);
/*
 * Of a made one: what is written, up to where it is now, is what others find from now on; @whole
 * false: nothing of it. Of a tree's the last word is the sum, which is made here.
 */
void store_publish(struct stored_image *image, bool whole);
void store_close(struct stored_image *image);

#endif
