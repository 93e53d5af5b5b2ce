/*
 * The guest's executable ranges: a sorted array, since there are few (a node process has some
 * hundreds) and they are looked up only when translating, mapping and showing /proc/self/maps.
 */
#include "rt/mm/mm.h"

#include "rt/load/images.h"

#include "rt/mm/region.h"
#include "rt/task/shared-mm.h"
#include "sys/fmt.h"
#include "sys/string.h"

#define RANGES_FIRST (0x10000u / (u32)sizeof(struct mm_range))
/*
 * The translator takes no more. The kernel's limit (vm.max_map_count) is lower nearly everywhere.
 */
#define RANGES_MAX (1u << 20)
/* What one change adds at most: a range, and one more that it has divided. */
#define RANGES_MORE 2

/* Sorted, disjoint. */
struct ranges {
	u32 n, max;
	struct mm_range *at;
};

static struct {
	struct lock lock;
	struct ranges code;
	struct ranges shared; /* every MAP_SHARED mapping; only start and end mean something */
	u32 writable;         /* how many of code are */
} mm;

/* Whether one more change fits; makes the array larger if need be. */
static bool room(struct ranges *set)
{
	u32 max = set->max ? set->max * 2 : RANGES_FIRST, old_max;
	struct mm_range *at, *old;

	if (set->n + RANGES_MORE <= set->max)
		return true;
	if (max > RANGES_MAX)
		return false;
	at = region_map(max * sizeof(*at));
	if (!at)
		return false;
	old = set->at;
	old_max = set->max;
	if (old)
		memcpy(at, old, set->n * sizeof(*at));
	__atomic_store_n(&set->at, at, __ATOMIC_RELEASE);
	__atomic_store_n(&set->max, max, __ATOMIC_RELEASE);
	if (old)
		region_unmap(old, old_max * sizeof(*at));
	return true;
}

void mm_init(void)
{
	if (!room(&mm.code) || !room(&mm.shared))
		die("no memory for the runtime's tables\n");
}

bool mm_exec_room(struct thread *t)
{
	return room(&mm.code) && dbt_exec_room(&t->dbt);
}

/*
 * Repairs a set whose changer was killed in the middle. Changes keep a set sorted at every moment,
 * but may leave doubles and one torn range.
 */
static void repair_set(struct ranges *set)
{
	u64 end = 0;
	u32 n = 0;

	for (u32 i = 0; i < set->n; i++) {
		struct mm_range r = set->at[i];

		if (r.start < end || r.start >= r.end)
			continue;
		end = r.end;
		set->at[n++] = r;
	}
	set->n = n;
}

/* The translator has been told of what was changed, or not yet. */
static void repair(struct thread *t)
{
	repair_set(&mm.code);
	repair_set(&mm.shared);
	mm.writable = 0;
	for (u32 i = 0; i < mm.code.n; i++)
		mm.writable += mm.code.at[i].prot & PROT_WRITE ? 1 : 0;
	dbt_exec_remove(&t->dbt, 0, TASK_SIZE);
	mm_exec_show(t, 0, TASK_SIZE);
}

void mm_lock(struct thread *t)
{
	if (unlikely(lock_acquire(&mm.lock, t->id, thread_gone)))
		repair(t);
}

void mm_unlock(struct thread *t)
{
	lock_release(&mm.lock, t->id);
}

bool mm_lock_held_by(u32 id)
{
	return lock_held_by(&mm.lock, id);
}

void mm_reset_lock(void)
{
	lock_reset(&mm.lock);
}

/* Index of the first range that ends above @addr. */
static u32 index_of(const struct ranges *set, u64 addr)
{
	u32 lo = 0, hi = set->n;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (set->at[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool overlaps(const struct ranges *set, u64 start, u64 end)
{
	u32 i = index_of(set, start);

	return i < set->n && set->at[i].start < end;
}

const struct mm_range *mm_exec_find(u64 addr)
{
	u32 i = index_of(&mm.code, addr);

	return i < mm.code.n ? &mm.code.at[i] : NULL;
}

bool mm_read_foreign(u32 pid, const void *addr, void *to, size_t len)
{
	struct iovec here = {to, len}, there = {(void *)addr, len};

	return raw_call6(__NR_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) ==
	       (long)len;
}

bool mm_write_foreign(u32 pid, void *addr, const void *from, size_t len)
{
	struct iovec here = {(void *)from, len}, there = {addr, len};

	return raw_call6(__NR_process_vm_writev, pid, (long)&here, 1, (long)&there, 1, 0) ==
	       (long)len;
}

/* It changes its tables under way; one that grows puts them elsewhere. */
struct mm_foreign *mm_foreign_read(u32 pid)
{
	struct ranges set, again;
	struct mm_foreign *f;
	u64 size;

	for (u32 i = 0; i < 8; i++) {
		if (!mm_read_foreign(pid, &mm.code, &set, sizeof(set)) || set.n > RANGES_MAX)
			return NULL;
		size = sizeof(*f) + set.n * sizeof(*set.at);
		f = region_map(size);
		if (!f)
			return NULL;
		f->n = set.n;
		f->size = size;
		if (mm_read_foreign(pid, &region_code_start, &f->code_start, sizeof(u64)) &&
		    mm_read_foreign(pid, &region_code_end, &f->code_end, sizeof(u64)) &&
		    (!set.n || mm_read_foreign(pid, set.at, f->at, set.n * sizeof(*set.at))) &&
		    mm_read_foreign(pid, &mm.code, &again, sizeof(again)) &&
		    !memcmp(&again, &set, sizeof(set)))
			return f;
		mm_foreign_free(f);
	}
	return NULL;
}

void mm_foreign_free(struct mm_foreign *f)
{
	if (f)
		region_unmap(f, f->size);
}

const struct mm_range *mm_foreign_find(const struct mm_foreign *f, u64 addr)
{
	const struct ranges set = {.n = f->n, .at = (struct mm_range *)f->at};
	u32 i = index_of(&set, addr);

	return i < f->n ? &f->at[i] : NULL;
}

bool mm_has_writable_code(void)
{
	return __atomic_load_n(&mm.writable, __ATOMIC_RELAXED);
}

static void count_writable(const struct ranges *set, const struct mm_range *r, u32 by)
{
	if (set == &mm.code && r->prot & PROT_WRITE)
		__atomic_store_n(&mm.writable, mm.writable + by, __ATOMIC_RELAXED);
}

static void insert(struct ranges *set, const struct mm_range *r)
{
	u32 i = index_of(set, r->start), n = set->n;

	set->at[n] = i == n ? *r : set->at[n - 1];
	/* Copied before the others move, so that repair_set() finds the last one. */
	__atomic_store_n(&set->n, n + 1, __ATOMIC_RELEASE);
	memmove(&set->at[i + 1], &set->at[i], (n - i) * sizeof(*set->at));
	set->at[i] = *r;
	count_writable(set, r, 1);
}

/* Takes [start, end) out of the set; true if anything of it was there. */
static bool carve(struct ranges *set, u64 start, u64 end)
{
	u32 i = index_of(set, start), after = i, n = 0, left;
	struct mm_range rest[2];

	while (after < set->n && set->at[after].start < end)
		count_writable(set, &set->at[after++], -1u);
	if (after == i)
		return false;
	if (set->at[i].start < start) {
		rest[n] = set->at[i];
		rest[n++].end = start;
	}
	if (set->at[after - 1].end > end) {
		rest[n] = set->at[after - 1];
		rest[n++].start = end;
	}
	/* One becomes two; copied first, so that repair_set() finds the last one. */
	if (n > after - i)
		set->at[set->n] = after == set->n ? rest[1] : set->at[set->n - 1];
	left = set->n - after;
	if (n > after - i)
		__atomic_store_n(&set->n, set->n + 1, __ATOMIC_RELEASE);
	memmove(&set->at[i + n], &set->at[after], left * sizeof(*set->at));
	if (n <= after - i)
		__atomic_store_n(&set->n, set->n - (after - i - n), __ATOMIC_RELEASE);
	for (u32 k = 0; k < n; k++) {
		set->at[i + k] = rest[k];
		count_writable(set, &rest[k], 1);
	}
	return true;
}

void mm_shared_add(u64 start, u64 end)
{
	struct mm_range r = {.start = start, .end = end};

	/*
	 * Without room it is not known as shared, which matters only for code that others write to.
	 */
	if (!room(&mm.shared))
		return;
	carve(&mm.shared, start, end);
	insert(&mm.shared, &r);
}

void mm_shared_remove(u64 start, u64 end)
{
	if (room(&mm.shared))
		carve(&mm.shared, start, end);
}

bool mm_shared_overlaps(u64 start, u64 end)
{
	return overlaps(&mm.shared, start, end);
}

u64 mm_shared_end(u64 start)
{
	u32 i = index_of(&mm.shared, start);

	return i < mm.shared.n && mm.shared.at[i].start == start ? mm.shared.at[i].end : 0;
}

static u32 dbt_flags(const struct mm_range *r)
{
	u32 flags = 0;

	if (r->prot & PROT_WRITE)
		flags |= DBT_EXEC_WRITABLE;
	/* Someone else's write to a shared page raises no fault here. */
	if (r->shared || r->grows || r->sealed)
		flags |= DBT_EXEC_CHECKED;
	if (r->file && !flags)
		flags |= DBT_EXEC_FILE;
	return flags;
}

void mm_exec_add(struct thread *t, const struct mm_range *r)
{
	/* Callers that can fail have asked already. */
	if (!mm_exec_room(t))
		return;
	images_forget(r->start, r->end);
	carve(&mm.code, r->start, r->end);
	insert(&mm.code, r);
	dbt_exec_add(&t->dbt, r->start, r->end - r->start, dbt_flags(r));
}

void mm_exec_add_known(struct thread *t, const struct mm_range *r, bool known)
{
	if (!known || overlaps(&mm.code, r->start, r->end) || !mm_exec_room(t)) {
		mm_exec_add(t, r);
		return;
	}
	insert(&mm.code, r);
	dbt_exec_adopt(&t->dbt, r->start, r->end - r->start, dbt_flags(r));
}

void mm_exec_remove(struct thread *t, u64 start, u64 end)
{
	if (!carve(&mm.code, start, end))
		return;
	images_forget(start, end);
	dbt_exec_remove(&t->dbt, start, end - start);
}

void mm_exec_hide(struct thread *t, u64 start, u64 end)
{
	if (overlaps(&mm.code, start, end))
		dbt_exec_remove(&t->dbt, start, end - start);
}

void mm_exec_show(struct thread *t, u64 start, u64 end)
{
	for (u32 i = index_of(&mm.code, start); i < mm.code.n && mm.code.at[i].start < end; i++) {
		const struct mm_range *r = &mm.code.at[i];
		u64 from = max_u64(r->start, start), to = min_u64(r->end, end);

		/* Pages that were write-protected are so still, and nobody knows which. */
		if (r->prot & PROT_WRITE && !(dbt_flags(r) & DBT_EXEC_CHECKED))
			mm_protect(from, to - from, false);
		dbt_exec_add(&t->dbt, from, to - from, dbt_flags(r));
	}
}

void mm_exec_seal(struct thread *t, u64 start, u64 end)
{
	for (u32 i = index_of(&mm.code, start); i < mm.code.n && mm.code.at[i].start < end;
	     i = index_of(&mm.code, start)) {
		struct mm_range r = mm.code.at[i];

		r.start = max_u64(r.start, start);
		r.end = min_u64(r.end, end);
		r.sealed = 1;
		start = r.end;
		dbt_unprotect(&t->dbt, r.start, r.end - r.start);
		mm_exec_add(t, &r);
	}
}

void mm_exec_protect(struct thread *t, u64 start, u64 end, u32 prot, bool grows)
{
	/* Parts that are shared mappings and parts that are not are different ranges. */
	while (start < end) {
		u32 i = index_of(&mm.shared, start);
		struct mm_range r = {.start = start, .end = end, .prot = prot, .grows = grows};

		if (i < mm.shared.n && mm.shared.at[i].start <= start) {
			r.shared = 1;
			r.end = min_u64(end, mm.shared.at[i].end);
		} else if (i < mm.shared.n) {
			r.end = min_u64(end, mm.shared.at[i].start);
		}
		mm_exec_add(t, &r);
		start = r.end;
	}
}

bool mm_exec_grown(struct thread *t, u64 addr)
{
	u64 page = ALIGN_DOWN(addr, PAGE_SIZE);
	const struct mm_range *found;
	struct mm_range r;
	bool grown = false;
	u8 resident;

	mm_lock(t);
	found = mm_exec_find(addr);
	if (found && found->grows && found->start > addr) {
		u64 at = page;

		r = *found;
		while (at < r.start &&
		       !raw_call3(__NR_mincore, (long)at, PAGE_SIZE, (long)&resident))
			at += PAGE_SIZE;
		grown = at == r.start;
		r.start = page;
		if (grown)
			mm_exec_add(t, &r);
	}
	mm_unlock(t);
	return grown;
}

bool mm_executable(struct thread *t, u64 addr)
{
	const struct mm_range *found;
	bool yes;

	mm_lock(t);
	found = mm_exec_find(addr);
	yes = found && found->start <= addr;
	mm_unlock(t);
	return yes;
}

void mm_expose(struct thread *t)
{
	for (u32 tries = 0; !lock_try(&mm.lock, t->id); tries++) {
		if (tries == 100)
			return;
		sys_sched_yield();
	}
	for (u32 i = 0; i < mm.code.n; i++) {
		const struct mm_range *r = &mm.code.at[i];

		/* Nothing is writable and executable at once, not even now: other threads run. */
		if (!(r->prot & PROT_WRITE))
			sys_mprotect((void *)r->start, r->end - r->start, (int)r->prot);
	}
	lock_release(&mm.lock, t->id);
}

int mm_protect(u64 start, u64 len, bool protect)
{
	return (int)sys_mprotect((void *)start, len, protect ? PROT_READ : PROT_READ | PROT_WRITE);
}
