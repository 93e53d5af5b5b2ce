/*
 * PURPOSE: translations that processes of one tree have in common. What a process has translated is
 * kept as an image (dbt_image_save()) where the tree has been told (rt/load/image-store.h), and the
 * next process that begins the same program takes it. For that files are at the same addresses in
 * all processes of the tree, and the translator too: drawn once for the tree, or the user, and not
 * for each process.
 *
 * A range of an image is used only if the same file, unchanged, is mapped at the same place. Only
 * files of the user who runs are believed. doc/translator.md says what it gives.
 *
 * Locking: mm's lock, but for what is called while there is one thread.
 */
#ifndef RT_LOAD_IMAGES_H
#define RT_LOAD_IMAGES_H

#include "rt/mm/mm.h"

struct rt_control;

/* What a range was mapped from. */
struct image_file {
	u64 device, inode, size, changed, offset;
};

/* Before all else that asks here. Unless @control tells where, nothing is shared. */
void images_init(const struct rt_control *control, bool wanted);
/* There is soon another process, or program: a tree gets memory for images, if it has none yet. */
void images_share(struct thread *t);
/* This is the child of a fork. */
void images_forked(void);
/* What the next program of the process of @t is told. */
void images_exec(struct thread *t, struct rt_control *control);
bool images_shared(void);

/* Where the translator's tables and its cache of @size bytes are; 0: anywhere. */
u64 images_tables_step(void);
u64 images_cache_place(u64 size);
/*
 * Where @file, whole, belongs with @size bytes of addresses; 0: anywhere. @program: below the
 * others.
 */
u64 images_place(const struct image_file *file, u64 size, bool program);

/* The identity of @fd, with @offset; false: unknown, or nothing is shared. */
bool images_file(int fd, u64 offset, struct image_file *file);

/*
 * Takes the image of the program @exe, or the one that small programs have in common; of no inode:
 * it is not known. @dynamic: it has a loader.
 */
void images_load(struct thread *t, const struct image_file *exe, bool dynamic);
/* @r is executable, and of @file; NULL: of none. As mm_exec_add(), under its lock. */
void images_add(struct thread *t, const struct mm_range *r, const struct image_file *file);
/* [start, end) is no longer what it was. */
void images_forget(u64 start, u64 end);

/*
 * The process ends soon, or becomes another program: decides whether what it has translated is to
 * be kept, and has it complete then. While it counts still, as it may translate.
 */
void images_complete(struct thread *t);
/*
 * Now it does: keeps what it has translated, if that was decided. True:
 * the translator rests, and other threads with it; who goes on after all says so, and all that was
 * translated is forgotten.
 */
bool images_save(struct thread *t);
void images_go_on(struct thread *t);

/*
 * What @t may do is no longer what the others of the tree may: it has another user, or a sandbox.
 * They must not execute what it, or who breaks into it, could write: it and its children keep their
 * translations for themselves.
 */
void images_leave(struct thread *t);
/* A call that has this effect if it succeeds. */
long guest_confine(struct thread *t);
/* And one that has it if ids of users or groups are others afterwards. */
long guest_set_ids(struct thread *t);

#endif
