/*
 * PURPOSE: how the programs of a run share what they have translated (rt/load/images.h) with the
 * help of who has started the run, the *keeper* (backend/image-keeper.h). Shapes only.
 *
 * Every runtime of the run inherits a socket of the type SEQPACKET. Whoever first starts another
 * program makes a memfd of TREE_IMAGES_SIZE and sends it there; the keeper seals it, so that it
 * alone can write to it from then on (F_SEAL_FUTURE_WRITE), and it is inherited as well. Its first
 * page is a struct tree_images, which says where the images are that follow it. A runtime that has
 * an image for others says where in its memory that is, and changes nothing there until the keeper
 * has read it. Where the keeper may not do that (an ancestor mostly may), the runtime sends a
 * memfd, sealed against all change, that is the image and ends with its sum (base/image-sum.h).
 *
 * A message is a struct tree_image_message. With it may come, behind the memfd, the writing end of
 * a pipe, which the keeper closes when it has made up its mind.
 */
#ifndef ABI_TREE_IMAGES_H
#define ABI_TREE_IMAGES_H

#include "base/types.h"

#define TREE_IMAGES_MOST  (256ull << 20) /* of memory that a run's images take */
#define TREE_IMAGES_PAGE  4096u
#define TREE_IMAGES_SIZE  (TREE_IMAGES_PAGE + TREE_IMAGES_MOST)
#define TREE_IMAGES_SLOTS 255u

struct tree_images {
	u64 taken;      /* bytes of images */
	u64 unreadable; /* not 0: the keeper may not read the memory of one who has asked it to */
	struct {
		u64 name;  /* 0: free */
		u64 place; /* first page, << 32, and number of pages; 0: there is no image yet */
	} slot[TREE_IMAGES_SLOTS];
};

_Static_assert(sizeof(struct tree_images) == TREE_IMAGES_PAGE, "the head is a page");

enum tree_image_what {
	TREE_IMAGE_BEGIN = 0x474b4d49, /* the memory for all is sent */
	TREE_IMAGE_KEEP = 0x504b4d49,  /* the image @name is sent */
	TREE_IMAGE_READ = 0x524b4d49,  /* it is in the sender's memory: @pieces */
	TREE_IMAGE_ASK = 0x534b4d49,   /* it is to have a slot: somebody has looked for it */
};

struct tree_image_message {
	u32 what; /* enum tree_image_what */
	u32 reserved;
	u64 name;   /* not 0 */
	u64 pieces; /* the address of a struct tree_image_pieces */
};

#define TREE_IMAGE_PIECES 12u

/* In the memory of who has an image. What lies between pieces is not looked at. */
struct tree_image_pieces {
	u64 name; /* as long as nothing of it changes */
	u64 size; /* of the image: whole words */
	u64 n;
	struct tree_image_piece {
		u64 from, len;
		u64 at; /* in the image */
	} piece[TREE_IMAGE_PIECES];
};

/* Where @name is, or has its place if there is none; TREE_IMAGES_SLOTS: there is no room. */
static inline u32 tree_images_slot(const struct tree_images *head, u64 name)
{
	u32 at = (u32)(name % TREE_IMAGES_SLOTS);

	for (u32 i = 0; i < TREE_IMAGES_SLOTS; i++) {
		if (head->slot[at].name == name || !head->slot[at].name)
			return at;
		at = at + 1 == TREE_IMAGES_SLOTS ? 0 : at + 1;
	}
	return TREE_IMAGES_SLOTS;
}

#endif
