/*
 * The guest's executable ranges: a sorted array, since there are few (a node process has some
 * hundreds) and they are looked up only when translating, mapping and showing /proc/self/maps.
 */
#include "rt/mm.h"

#include "rt/window.h"
#include "sys/fmt.h"
#include "sys/string.h"

#define RANGES_MAX 65536u

/* Sorted, disjoint. RANGES_MAX of address space, touched as it fills. */
struct ranges {
	u32 n;
	struct mm_range *at;
};

static struct {
	struct lock lock;
	struct ranges code;
	struct ranges shared; /* every MAP_SHARED mapping; only start and end mean something */
	u32 writable;         /* how many of code are */
} mm;

void mm_init(void)
{
	mm.code.at = window_map(RANGES_MAX * sizeof(*mm.code.at), PROT_READ | PROT_WRITE);
	mm.shared.at = window_map(RANGES_MAX * sizeof(*mm.shared.at), PROT_READ | PROT_WRITE);
	if (!mm.code.at || !mm.shared.at)
		die("no memory for the runtime's tables\n");
}

void mm_lock(struct thread *t)
{
	lock_acquire(&mm.lock, t->id);
}

void mm_unlock(struct thread *t)
{
	lock_release(&mm.lock, t->id);
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

const struct mm_range *mm_exec_find(u64 addr)
{
	u32 i = index_of(&mm.code, addr);

	return i < mm.code.n ? &mm.code.at[i] : NULL;
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

static void insert(struct ranges *set, u32 i, const struct mm_range *r)
{
	/* Out of room only for a program with 65,536 separate ranges: the rest stays unknown. */
	if (set->n == RANGES_MAX)
		return;
	memmove(&set->at[i + 1], &set->at[i], (set->n - i) * sizeof(*set->at));
	set->at[i] = *r;
	set->n++;
	count_writable(set, r, 1);
}

static void drop(struct ranges *set, u32 i)
{
	count_writable(set, &set->at[i], -1u);
	set->n--;
	memmove(&set->at[i], &set->at[i + 1], (set->n - i) * sizeof(*set->at));
}

/* Takes [start, end) out of the set; true if anything of it was there. */
static bool carve(struct ranges *set, u64 start, u64 end)
{
	bool any = false;
	u32 i = index_of(set, start);

	while (i < set->n && set->at[i].start < end) {
		struct mm_range r = set->at[i];

		any = true;
		drop(set, i);
		if (r.start < start) {
			struct mm_range left = r;

			left.end = start;
			insert(set, i++, &left);
		}
		if (r.end > end) {
			struct mm_range right = r;

			right.start = end;
			insert(set, i++, &right);
		}
	}
	return any;
}

void mm_shared_add(u64 start, u64 end)
{
	struct mm_range r = {.start = start, .end = end};

	carve(&mm.shared, start, end);
	insert(&mm.shared, index_of(&mm.shared, start), &r);
}

void mm_shared_remove(u64 start, u64 end)
{
	carve(&mm.shared, start, end);
}

bool mm_shared_overlaps(u64 start, u64 end)
{
	u32 i = index_of(&mm.shared, start);

	return i < mm.shared.n && mm.shared.at[i].start < end;
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
	if (r->shared || r->grows)
		flags |= DBT_EXEC_CHECKED;
	return flags;
}

void mm_exec_add(struct thread *t, const struct mm_range *r)
{
	carve(&mm.code, r->start, r->end);
	insert(&mm.code, index_of(&mm.code, r->start), r);
	dbt_exec_add(&t->dbt, r->start, r->end - r->start, dbt_flags(r));
}

void mm_exec_remove(struct thread *t, u64 start, u64 end)
{
	if (carve(&mm.code, start, end))
		dbt_exec_remove(&t->dbt, start, end - start);
}

void mm_exec_protect(struct thread *t, u64 start, u64 end, u32 prot)
{
	/* Parts that are shared mappings and parts that are not are different ranges. */
	while (start < end) {
		u32 i = index_of(&mm.shared, start);
		struct mm_range r = {.start = start, .end = end, .prot = prot};

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
	for (u32 i = 0; i < mm.code.n; i++)
		sys_mprotect((void *)mm.code.at[i].start, mm.code.at[i].end - mm.code.at[i].start,
			     (int)mm.code.at[i].prot);
	lock_release(&mm.lock, t->id);
}

int mm_protect(u64 start, u64 len, bool protect)
{
	return (int)sys_mprotect((void *)start, len, protect ? PROT_READ : PROT_READ | PROT_WRITE);
}
