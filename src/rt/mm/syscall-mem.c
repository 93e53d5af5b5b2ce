/*
 * mmap and its relatives. The kernel maps; what is executable to the guest is recorded in
 * rt/mm/mm.h and really mapped without PROT_EXEC. Code that goes away is forgotten by the
 * translator *before* the kernel's call, because forgetting touches the protection of its pages.
 */
#include "rt/load/images.h"
#include "rt/mm/mdwe.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/syscall/syscall.h"
#include "rt/task/alloc-sites.h"
#include "rt/task/path-pages.h"

#include <linux/shm.h>

static bool page_aligned(u64 x)
{
	return !(x & (PAGE_SIZE - 1));
}

/* What is really mapped for @prot: code must be readable by the translator. */
static u64 strip(u64 prot)
{
	if (!(prot & PROT_EXEC))
		return prot;
	return (prot & ~(u64)PROT_EXEC) | PROT_READ;
}

/* The guest runs under READ_IMPLIES_EXEC: what it may read it may execute. */
static u64 implied(const struct thread *t, u64 prot)
{
	return t->proc->read_implies_exec && prot & PROT_READ ? prot | PROT_EXEC : prot;
}

/*
 * The guest bars addresses to itself, as ThreadSanitizer and MemorySanitizer do with all that is
 * neither shadow nor the program's: around what is ours, which it cannot reach anyway. What has
 * been barred when the kernel refuses a piece stays so; who does this gives up then.
 */
static long bar_around(struct thread *t, u64 addr, u64 size, u64 flags)
{
	u64 end = addr + size, ours, ours_end;
	long ret = 0;

	mm_lock(t);
	if (!mm_exec_room(t)) {
		mm_unlock(t);
		return -ENOMEM;
	}
	mm_exec_hide(t, addr, end);
	mm_exec_remove(t, addr, end);
	mm_shared_remove(addr, end);
	for (u64 at = addr; at < end && !sys_failed(ret); at = ours_end) {
		if (!region_first(at, end, &ours, &ours_end))
			ours = ours_end = end;
		if (at < ours)
			ret = raw_call6(__NR_mmap, (long)at, (long)(ours - at), PROT_NONE,
					(long)flags, -1, 0);
	}
	mm_unlock(t);
	return sys_failed(ret) ? ret : (long)addr;
}

/* A mapping at a fixed place that holds nothing and keeps everybody out. */
static bool bars(u64 addr, u64 size, u64 prot, u64 flags)
{
	return flags & MAP_FIXED && prot == PROT_NONE && flags & MAP_ANONYMOUS &&
	       flags & MAP_PRIVATE && page_aligned(addr) && size && addr < TASK_SIZE &&
	       size <= TASK_SIZE - addr;
}

/* Whether the file that the guest maps may be executed: 0 or -errno. */
static long may_execute(struct thread *t, u64 len, u64 flags)
{
	long ret = raw_call6(__NR_mmap, 0, (long)len, PROT_READ | PROT_EXEC,
			     (long)(flags & ~(u64)(MAP_FIXED | MAP_FIXED_NOREPLACE)),
			     (long)guest_arg(t, 4), (long)guest_arg(t, 5));

	if (sys_failed(ret))
		return ret;
	sys_munmap((void *)ret, ALIGN_UP(len, PAGE_SIZE));
	return 0;
}

/* The session has told of it, if anybody wants to know. */
static void code_mapped(struct thread *t)
{
	if (!paths_wanted())
		return;
	mm_lock(t);
	paths_mark();
	mm_unlock(t);
}

long guest_mmap(struct thread *t)
{
	u64 addr = guest_arg(t, 0), len = guest_arg(t, 1);
	u64 flags = guest_arg(t, 3) | mm_lock_flags();
	u64 prot = implied(t, guest_arg(t, 2)), size = ALIGN_UP(len, PAGE_SIZE);
	bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE), shared = !(flags & MAP_PRIVATE);
	bool file = !(flags & MAP_ANONYMOUS), asked;
	struct image_file of;
	u64 gone;
	long ret;

	limits_settle();
	if (region_overlaps(addr, size ? size : 1)) {
		if (bars(addr, size, prot, flags))
			return bar_around(t, addr, size, flags);
		if (fixed)
			return -ENOMEM;
		addr = 0;
	}
	/* As glibc's loader begins a library; the other pieces go by that. */
	if (!addr && !fixed && flags & MAP_DENYWRITE && file && !shared && !guest_arg(t, 5) &&
	    images_file((int)guest_arg(t, 4), 0, &of))
		addr = images_place(&of, size, false);
	if (!(prot & PROT_EXEC) && !(flags & MAP_FIXED) && !shared) {
		ret = call_kernel_with(t, __NR_mmap, addr, len, prot, flags, guest_arg(t, 4),
				       guest_arg(t, 5));
		if (!sys_failed(ret) && ret != CALL_REDO)
			perf_mapped(t, (u64)ret, size, (u32)prot & 7);
		return ret;
	}

	if (mdwe_denies(prot))
		return mdwe_refusal(t, prot);
	mm_lock(t);
	gone = flags & MAP_FIXED && page_aligned(addr) ? size : 0;
	if ((gone || prot & PROT_EXEC) && !mm_exec_room(t)) {
		mm_unlock(t);
		return -ENOMEM;
	}
	mm_exec_hide(t, addr, addr + gone);
	/*
	 * Mapped executable first, or elsewhere where it is to be writable, too: the kernel decides
	 * whether the file may be executed (noexec, modes).
	 */
	asked = file && prot & PROT_EXEC && !(prot & PROT_WRITE);
	ret = file && prot & PROT_EXEC && !asked ? may_execute(t, len, flags) : 0;
	if (!ret)
		ret = raw_call6(__NR_mmap, (long)addr, (long)len,
				(long)(asked ? prot | PROT_READ : strip(prot)), (long)flags,
				(long)guest_arg(t, 4), (long)guest_arg(t, 5));
	if (sys_failed(ret)) {
		mm_exec_show(t, addr, addr + gone);
	} else {
		u64 at = (u64)ret;

		mm_exec_remove(t, addr, addr + gone);
		if (asked)
			sys_mprotect((void *)at, size, (int)strip(prot));
		if (shared)
			mm_shared_add(at, at + size);
		else
			mm_shared_remove(at, at + size);
		if (prot & PROT_EXEC) {
			struct mm_range r = {
				.start = at,
				.end = at + size,
				.prot = (u32)prot & 7,
				.shared = shared,
				.grows = !!(flags & MAP_GROWSDOWN),
				.file = file,
			};

			images_add(t, &r,
				   file && images_file((int)guest_arg(t, 4), guest_arg(t, 5), &of)
					   ? &of
					   : NULL);
		}
	}
	mm_unlock(t);
	if (!sys_failed(ret)) {
		if (file && prot & PROT_EXEC && unlikely(alloc_sites_wanted()))
			alloc_sites_mapped(t, (int)guest_arg(t, 4), (u64)ret, size,
					   guest_arg(t, 5));
		perf_mapped(t, (u64)ret, size, (u32)prot & 7);
		if (prot & PROT_EXEC)
			code_mapped(t);
	}
	return ret;
}

static u64 brk_start, brk_now;

void mm_emulate_brk(u64 start)
{
	brk_start = brk_now = start;
}

/* The kernel's heap, whose new part is to be locked, or is not to be had. */
static long locked_brk(u64 want)
{
	u64 before = (u64)raw_call1(__NR_brk, 0), now = (u64)raw_call1(__NR_brk, (long)want);
	u64 from = ALIGN_UP(before, PAGE_SIZE), to = ALIGN_UP(now, PAGE_SIZE);

	if (to > from && sys_failed(raw_call3(__NR_mlock2, (long)from, (long)(to - from), 0)))
		now = (u64)raw_call1(__NR_brk, (long)before);
	return (long)now;
}

/* The kernel's heap: as natively its growth is told as a mapping. */
static long kernel_brk(struct thread *t)
{
	static u64 known; /* up to where the heap has been seen */
	long ret = mm_lock_flags() ? locked_brk(guest_arg(t, 0)) : call_kernel(t);
	u64 to = ALIGN_UP((u64)ret, PAGE_SIZE),
	    from = __atomic_exchange_n(&known, to, __ATOMIC_RELAXED);

	if (from && to > from && !sys_failed(ret))
		perf_mapped(t, from, to - from, PROT_READ | PROT_WRITE);
	return ret;
}

long guest_brk(struct thread *t)
{
	u64 want = guest_arg(t, 0), have, need, from;

	limits_settle();
	if (limits_forbid_heap(t))
		return brk_start ? (long)brk_now : raw_call1(__NR_brk, 0);
	if (!brk_start)
		return kernel_brk(t);
	mm_lock(t);
	have = from = ALIGN_UP(brk_now, PAGE_SIZE);
	need = ALIGN_UP(want, PAGE_SIZE);
	if (want >= brk_start && want < REGION_START) {
		if (need > have &&
		    sys_failed(sys_mmap((void *)have, need - have, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
						(int)mm_lock_flags(),
					-1, 0)))
			need = 0;
		else if (need < have)
			sys_munmap((void *)need, have - need);
		if (need)
			brk_now = want;
	}
	want = brk_now;
	mm_unlock(t);
	if (ALIGN_UP(want, PAGE_SIZE) > from)
		perf_mapped(t, from, ALIGN_UP(want, PAGE_SIZE) - from, PROT_READ | PROT_WRITE);
	return (long)want;
}

long guest_munmap(struct thread *t)
{
	u64 addr = guest_arg(t, 0), len = guest_arg(t, 1), size = ALIGN_UP(len, PAGE_SIZE);
	u64 ours, ours_end;
	long ret = 0;

	if (!page_aligned(addr) || !len || addr > TASK_SIZE || size > TASK_SIZE - addr)
		return -EINVAL;
	mm_lock(t);
	if (!mm_exec_room(t)) {
		mm_unlock(t);
		return -ENOMEM;
	}
	mm_exec_hide(t, addr, addr + size);
	/* Around what is ours. */
	for (u64 at = addr, end = addr + size; at < end && !ret; at = ours_end) {
		if (!region_first(at, end, &ours, &ours_end))
			ours = ours_end = end;
		if (at < ours)
			ret = sys_munmap((void *)at, ours - at);
	}
	if (ret) {
		mm_exec_show(t, addr, addr + size);
	} else {
		mm_exec_remove(t, addr, addr + size);
		mm_shared_remove(addr, addr + size);
	}
	mm_unlock(t);
	return ret;
}

static bool is_mapped(u64 page)
{
	u8 resident;

	return !raw_call3(__NR_mincore, (long)page, PAGE_SIZE, (long)&resident);
}

/*
 * [start, end) becomes executable with @prot: really for a moment, as the kernel decides whether it
 * may (files of a noexec mount, SELinux), then only in what we know. In that moment it is not
 * writable; the translator, which knows of the range, has a thread that writes try again.
 */
static long make_executable(struct thread *t, u64 start, u64 end, u64 prot)
{
	long nr = (long)guest_nr(t), len = (long)(end - start), pkey = (long)guest_arg(t, 3);
	long ret = 0;

	if (!mdwe_of_kernel())
		ret = raw_call4(nr, (long)start, len, (long)((prot & ~(u64)PROT_WRITE) | PROT_READ),
				pkey);
	return ret ? ret : raw_call4(nr, (long)start, len, (long)strip(prot), pkey);
}

/*
 * The kernel has refused that in the middle of [start, end), and has changed what is below: where
 * that ends.
 */
static u64 refused_at(struct thread *t, u64 start, u64 end, u64 prot)
{
	u64 good = 0, bad = (end - start) / PAGE_SIZE;

	while (bad - good > 1) {
		u64 mid = (good + bad) / 2;

		if (make_executable(t, start + good * PAGE_SIZE, start + mid * PAGE_SIZE, prot))
			bad = mid;
		else
			good = mid;
	}
	return start + good * PAGE_SIZE;
}

long guest_mprotect(struct thread *t)
{
	u64 nr = guest_nr(t), addr = guest_arg(t, 0), len = guest_arg(t, 1);
	u64 prot = implied(t, guest_arg(t, 2)), size = ALIGN_UP(len, PAGE_SIZE);
	u64 start = addr, end = addr + size;
	bool grows = prot & PROT_GROWSDOWN;
	const struct mm_range *r;
	long ret;

	if (region_overlaps(addr, size ? size : 1))
		return -ENOMEM;
	/* Which is refused. */
	if (!page_aligned(addr) || end < addr)
		return raw_call4((long)nr, (long)addr, (long)len, (long)strip(prot),
				 (long)guest_arg(t, 3));
	mm_lock(t);
	if (!mm_exec_room(t)) {
		mm_unlock(t);
		return -ENOMEM;
	}
	r = mm_exec_find(addr);
	/*
	 * PROT_GROWSDOWN is about all of the mapping below too, which mm_exec_grown() finds when it
	 * is executed.
	 */
	if (r && r->start <= addr && r->grows) {
		start = grows ? r->start : addr;
		grows = true;
	}
	if (prot & PROT_EXEC && size) {
		u64 may = mdwe_end(addr, end, prot);

		/*
		 * Known to the translator only once the kernel has agreed; but if it is writable,
		 * see there.
		 */
		if (may > addr && prot & PROT_WRITE)
			mm_exec_protect(t, addr, may, (u32)prot & 7, grows);
		ret = may > addr ? make_executable(t, addr, may, prot) : 0;
		if (ret)
			end = grows ? start : refused_at(t, addr, may, prot);
		else if (may < end) {
			ret = is_mapped(may) ? -EACCES : -ENOMEM;
			end = may;
		}
		if (ret && prot & PROT_WRITE && may > end)
			mm_exec_remove(t, end, may);
		if (end > start)
			mm_exec_protect(t, start, end, (u32)prot & 7, grows);
	} else {
		mm_exec_hide(t, start, end);
		ret = raw_call4((long)nr, (long)addr, (long)len, (long)prot, (long)guest_arg(t, 3));
		if (ret)
			mm_exec_show(t, start, end);
		else
			mm_exec_remove(t, start, end);
	}
	mm_unlock(t);
	if (!ret && prot & PROT_EXEC && size) {
		perf_mapped(t, addr, size, (u32)prot & 7);
		code_mapped(t);
	}
	return ret;
}

long guest_mremap(struct thread *t)
{
	u64 old = guest_arg(t, 0), old_len = ALIGN_UP(guest_arg(t, 1), PAGE_SIZE);
	u64 new_len = ALIGN_UP(guest_arg(t, 2), PAGE_SIZE), flags = guest_arg(t, 3);
	u64 to = guest_arg(t, 4), over;
	const struct mm_range *found;
	struct mm_range code = {0};
	bool shared;
	long ret;

	limits_settle();
	if (region_overlaps(old, old_len ? old_len : 1))
		return -EFAULT;
	if (flags & MREMAP_FIXED && region_overlaps(to, new_len ? new_len : 1))
		return -ENOMEM;
	mm_lock(t);
	found = mm_exec_find(old);
	if (found && found->start <= old)
		code = *found;
	shared = mm_shared_overlaps(old, old + (old_len ? old_len : PAGE_SIZE));
	if (!mm_exec_room(t)) {
		mm_unlock(t);
		return -ENOMEM;
	}
	over = flags & MREMAP_FIXED && page_aligned(to) ? new_len : 0;
	mm_exec_hide(t, to, to + over);
	if (code.end && page_aligned(old)) {
		/* Pages keep their protection as they move, and two kinds do not move together. */
		dbt_unprotect(&t->dbt, old, old_len);
		mm_exec_hide(t, old, old + old_len);
	}
	ret = raw_call5(__NR_mremap, (long)old, (long)guest_arg(t, 1), (long)guest_arg(t, 2),
			(long)flags, (long)to);
	if (sys_failed(ret)) {
		mm_exec_show(t, to, to + over);
		mm_exec_show(t, old, old + old_len);
	} else {
		u64 at = (u64)ret;

		mm_exec_remove(t, to, to + over);
		mm_shared_remove(to, to + over);
		/* With DONTUNMAP it stays, with nothing in it. */
		if (flags & MREMAP_DONTUNMAP)
			mm_exec_show(t, old, old + old_len);
		else
			mm_exec_remove(t, old, old + old_len);
		if (code.end) {
			code.start = at;
			code.end = at + new_len;
			mm_exec_add(t, &code);
		}
		if (shared) {
			if (old_len && !(flags & MREMAP_DONTUNMAP))
				mm_shared_remove(old, old + old_len);
			mm_shared_add(at, at + new_len);
		}
	}
	mm_unlock(t);
	return ret;
}

long guest_madvise(struct thread *t)
{
	u64 addr = guest_arg(t, 0), size = ALIGN_UP(guest_arg(t, 1), PAGE_SIZE);
	const struct mm_range *r;
	long ret;

	if (region_overlaps(addr, size ? size : 1))
		return -ENOMEM;
	ret = call_kernel(t);
	mm_lock(t);
	r = mm_exec_find(addr);
	if (r && r->start < addr + size && ret != CALL_REDO)
		dbt_invalidate(&t->dbt, addr, size);
	mm_unlock(t);
	return ret;
}

long guest_mseal(struct thread *t)
{
	u64 addr = guest_arg(t, 0), size = ALIGN_UP(guest_arg(t, 1), PAGE_SIZE);
	long ret;

	if (region_overlaps(addr, size ? size : 1))
		return -ENOMEM;
	mm_lock(t);
	if (page_aligned(addr) && addr + size > addr)
		mm_exec_seal(t, addr, addr + size);
	ret = raw_call3(__NR_mseal, (long)addr, (long)guest_arg(t, 1), (long)guest_arg(t, 2));
	mm_unlock(t);
	return ret;
}

long guest_shmat(struct thread *t)
{
	u64 flags = guest_arg(t, 2);
	struct shmid64_ds ds;
	u64 size, over;
	long ret;

	if (raw_call3(__NR_shmctl, (long)guest_arg(t, 0), IPC_STAT, (long)&ds))
		return call_kernel(t);
	size = ALIGN_UP(ds.shm_segsz, PAGE_SIZE);
	if (guest_arg(t, 1) && region_overlaps(guest_arg(t, 1), size))
		return -EINVAL;
	if (mdwe_denies(flags & SHM_EXEC ? PROT_EXEC | (flags & SHM_RDONLY ? 0 : PROT_WRITE) : 0))
		return -EACCES;
	mm_lock(t);
	if (!mm_exec_room(t)) {
		mm_unlock(t);
		return -ENOMEM;
	}
	over = flags & SHM_REMAP ? guest_arg(t, 1) : 0;
	if (over)
		mm_exec_hide(t, over, over + size);
	ret = raw_call3(__NR_shmat, (long)guest_arg(t, 0), (long)guest_arg(t, 1),
			(long)(flags & ~(u64)SHM_EXEC));
	if (sys_failed(ret)) {
		if (over)
			mm_exec_show(t, over, over + size);
	} else {
		mm_exec_remove(t, (u64)ret, (u64)ret + size);
		mm_shared_add((u64)ret, (u64)ret + size);
		if (flags & SHM_EXEC) {
			struct mm_range r = {
				.start = (u64)ret,
				.end = (u64)ret + size,
				.prot = PROT_READ | PROT_EXEC |
					(flags & SHM_RDONLY ? 0 : PROT_WRITE),
				.shared = 1,
			};

			mm_exec_add(t, &r);
		}
	}
	mm_unlock(t);
	return ret;
}

long guest_shmdt(struct thread *t)
{
	u64 addr = guest_arg(t, 0), end;
	long ret;

	mm_lock(t);
	end = mm_shared_end(addr);
	if (end)
		mm_exec_remove(t, addr, end);
	ret = sys_failed(raw_call1(__NR_shmdt, (long)addr)) ? -EINVAL : 0;
	if (!ret && end)
		mm_shared_remove(addr, end);
	mm_unlock(t);
	return ret;
}
