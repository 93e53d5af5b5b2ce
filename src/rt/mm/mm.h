/*
 * PURPOSE: what the runtime knows of the guest's address space beyond what the kernel knows: which
 * ranges the guest may execute. In truth nothing of the guest is executable; PROT_EXEC is taken off
 * every mapping, so that code that escaped the translator would fault at once.
 *
 * One mm per address space, shared by everything that is CLONE_VM. Locking: mm's lock is taken
 * before the translator's and held over the kernel's call and its bookkeeping, so that two threads'
 * mmap and munmap of the same place cannot be recorded in the wrong order.
 */
#ifndef RT_MM_MM_H
#define RT_MM_MM_H

#include "rt/task/thread.h"

#define PAGE_SIZE 4096ul

struct mm_range {
	u64 start, end;
	u32 prot;   /* as the guest sees it, PROT_EXEC included */
	u32 shared; /* MAP_SHARED: may change without a write from this mapping */
	u32 grows;  /* MAP_GROWSDOWN: write-protecting its lowest page would keep it from growing */
	u32 sealed; /* mseal(2): its protection cannot be changed any more */
	u32 file;   /* mapped from one, and not mprotected since */
};

void mm_init(void);
/* lock-all.c. What mmap(2) is told besides, since the guest wants all to be locked (MCL_FUTURE). */
u64 mm_lock_flags(void);
/* In the child of a fork, which does not inherit that. */
void mm_lock_forked(void);

void mm_lock(struct thread *t);
void mm_unlock(struct thread *t);
bool mm_lock_held_by(u32 id);
/* In the child of a fork. */
void mm_reset_lock(void);

/*
 * Under the lock, as all of these: whether there is memory to note one change. If not, the guest
 * gets ENOMEM, as for too many mappings.
 */
must_check bool mm_exec_room(struct thread *t);

/* [start, end) is executable with @prot, or no longer. */
void mm_exec_add(struct thread *t, const struct mm_range *r);
void mm_exec_remove(struct thread *t, u64 start, u64 end);
/* mm_exec_add(), where @known says that the translator has an image of it. */
void mm_exec_add_known(struct thread *t, const struct mm_range *r, bool known);

/*
 * For a call that takes code away. Forgetting code touches the protection of its pages, so the
 * translator forgets it before the call: mm_exec_hide(). If the call fails it is told again:
 * mm_exec_show(). Otherwise mm_exec_remove() follows.
 */
void mm_exec_hide(struct thread *t, u64 start, u64 end);
void mm_exec_show(struct thread *t, u64 start, u64 end);

/* The protection of [start, end) cannot be changed any more; writes must be found without it. */
void mm_exec_seal(struct thread *t, u64 start, u64 end);

/* [start, end) gets protection @prot, with which it is executable. @grows: PROT_GROWSDOWN. */
void mm_exec_protect(struct thread *t, u64 start, u64 end, u32 prot, bool grows);

/* Under the lock: MAP_SHARED mappings, since mprotect may make code of them. */
void mm_shared_add(u64 start, u64 end);
void mm_shared_remove(u64 start, u64 end);
bool mm_shared_overlaps(u64 start, u64 end);
/* Where the shared mapping that begins at @start ends, or 0. */
u64 mm_shared_end(u64 start);

/*
 * The executable range that holds @addr, or the next one above; NULL if there is none. Valid under
 * the lock.
 */
const struct mm_range *mm_exec_find(u64 addr);

/* Reads what lies at @addr in process @pid; false if not all of it can be read. */
must_check bool mm_read_foreign(u32 pid, const void *addr, void *to, size_t len);

/* The same the other way round, for what belongs to a runtime. */
must_check bool mm_write_foreign(u32 pid, void *addr, const void *from, size_t len);

/*
 * The executable ranges of another guest, as they were a moment ago: its runtime is the same file
 * at the same place, so its tables are where ours are. NULL: they cannot be read, as nobody may
 * trace it.
 */
struct mm_foreign {
	u64 code_start, code_end; /* of its code cache */
	u32 n;
	u64 size; /* of all this */
	struct mm_range at[];
};
struct mm_foreign *mm_foreign_read(u32 pid);
void mm_foreign_free(struct mm_foreign *f);
/* As mm_exec_find(). */
const struct mm_range *mm_foreign_find(const struct mm_foreign *f, u64 addr);

/*
 * Whether @addr has become executable because a mapping above it has grown down to it; and whether
 * it is executable at all.
 */
bool mm_exec_grown(struct thread *t, u64 addr);
bool mm_executable(struct thread *t, u64 addr);

/* Any executable range that the guest may write, anywhere. */
bool mm_has_writable_code(void);

/*
 * Before a core is dumped: gives mappings the protection that the guest believes in. Nothing is
 * translated after that. Called in a signal handler; does nothing if the lock is held for long.
 */
void mm_expose(struct thread *t);

/*
 * The kernel's brk cannot be told where to begin (a kernel without PR_SET_MM): it is emulated with
 * mappings from @start on.
 */
void mm_emulate_brk(u64 start);

long guest_mmap(struct thread *t);
long guest_brk(struct thread *t);
long guest_munmap(struct thread *t);
long guest_mprotect(struct thread *t); /* and pkey_mprotect */
long guest_mremap(struct thread *t);
long guest_mlockall(struct thread *t);
long guest_munlockall(struct thread *t);
long guest_shmat(struct thread *t);
long guest_shmdt(struct thread *t);
long guest_madvise(struct thread *t);
long guest_mseal(struct thread *t);

/* dbt_ops.protect: pages are to be written to only through a fault, or freely again. */
int mm_protect(u64 start, u64 len, bool protect);

#endif
