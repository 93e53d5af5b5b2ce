/*
 * The order of directories in a deterministic run. File systems have their own, ext4 by a hash that
 * differs from one to the next, and what a program makes of its files often depends on it. What one
 * call reads from the beginning is sorted by name; of a directory that takes more than one call the
 * order is noted.
 *
 * Entries change places, and the positions behind them stay: the last of them still is where the
 * next call goes on. So whoever goes back into the middle (seekdir(3)) finds other entries there.
 */
#include "rt/deterministic/deterministic-run.h"

#include "abi/meter.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "sys/kernel.h"
#include "sys/string.h"

#include <asm/statfs.h>
#include <linux/fs.h>
#include <linux/magic.h>

#define NAME_AT         (offsetof(struct linux_dirent64, d_name))
#define SIZE_MAX_SORTED (16ul << 20)

/* What was read, and in what order it is to be. */
struct entries {
	u8 *bytes;  /* as the kernel wrote them */
	u8 *sorted; /* as many */
	u32 *at;    /* where each entry begins in bytes */
	u32 nr;
	size_t len;
};

static const struct linux_dirent64 *entry(const struct entries *e, u32 i)
{
	return (const struct linux_dirent64 *)(e->bytes + e->at[i]);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* By name, but the folder and the one above it come first. */
static bool is_before(const struct linux_dirent64 *a, const struct linux_dirent64 *b)
{
	bool dots = is_dots(a->d_name);

	if (dots != is_dots(b->d_name))
		return dots;
	return str_cmp(a->d_name, b->d_name) < 0;
}

/* Shell's sort: there are some hundred, often in order. */
static void sort(struct entries *e)
{
	for (u32 gap = e->nr / 2; gap; gap /= 2) {
		for (u32 i = gap; i < e->nr; i++) {
			u32 moved = e->at[i], j = i;

			for (; j >= gap &&
			       is_before((const struct linux_dirent64 *)(e->bytes + moved),
					 entry(e, j - gap));
			     j -= gap)
				e->at[j] = e->at[j - gap];
			e->at[j] = moved;
		}
	}
}

/* Behind the name's end is what was there before. */
static bool has_end(const struct linux_dirent64 *d)
{
	for (u32 i = 0; i < d->d_reclen - NAME_AT; i++)
		if (!d->d_name[i])
			return true;
	return false;
}

/* Finds the entries; false: they are not what the kernel writes. */
static bool split(struct entries *e)
{
	for (size_t at = 0; at < e->len;) {
		const struct linux_dirent64 *d = (const struct linux_dirent64 *)(e->bytes + at);

		if (e->len - at <= NAME_AT || d->d_reclen <= NAME_AT || d->d_reclen > e->len - at ||
		    d->d_reclen % sizeof(u64) || !has_end(d))
			return false;
		e->at[e->nr++] = (u32)at;
		at += d->d_reclen;
	}
	return true;
}

/* Each entry in its place, with the position that was behind the one that was there. */
static void put_in_order(struct entries *e)
{
	size_t out = 0, in = 0;

	for (u32 i = 0; i < e->nr; i++) {
		const struct linux_dirent64 *d = entry(e, i), *there;
		struct linux_dirent64 *to = (struct linux_dirent64 *)(e->sorted + out);

		there = (const struct linux_dirent64 *)(e->bytes + in);
		memcpy(to, d, d->d_reclen);
		to->d_off = there->d_off;
		out += d->d_reclen;
		in += there->d_reclen;
	}
}

/* Sorts the @len bytes at @buf of the guest's; false: they are as they were. */
static bool sort_at(struct thread *t, u64 buf, size_t len)
{
	size_t nr = len / ALIGN_UP(NAME_AT + 1, sizeof(u64)) + 1;
	size_t size = 2 * len + nr * sizeof(u32);
	struct entries e = {.len = len};
	bool done = false;

	if (len > SIZE_MAX_SORTED)
		return false;
	e.bytes = region_map(size);
	if (!e.bytes)
		return false;
	e.sorted = e.bytes + len;
	e.at = (u32 *)(e.bytes + 2 * len);
	if (!guest_read(e.bytes, buf, len) && split(&e)) {
		sort(&e);
		put_in_order(&e);
		done = !guest_write(t, buf, e.sorted, len);
	}
	region_unmap(e.bytes, size);
	return done;
}

/* The kernel lists these by number, and what they list is noted otherwise. */
static bool is_of_processes(int fd)
{
	struct statfs fs;

	return !raw_call2(__NR_fstatfs, fd, (long)&fs) && fs.f_type == PROC_SUPER_MAGIC;
}

long deterministic_getdents(struct thread *t, u64 nr)
{
	int fd = (int)guest_arg(t, 0);
	long from = raw_call3(__NR_lseek, fd, 0, SEEK_CUR);
	long ret = syscall_answer(t, nr);

	if (ret <= 0 || ret == CALL_REDO || is_of_processes(fd))
		return ret;
	if (nr != __NR_getdents64 || from || !sort_at(t, guest_arg(t, 1), (size_t)ret))
		nondet_used(NONDET_DIRECTORIES);
	return ret;
}
