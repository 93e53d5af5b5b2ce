/*
 * The memory of the code cache. It is mapped twice, so that none of it is writable and executable
 * at once: at cache.code it can be executed, and at cache.write, a place of its own, it can be
 * written to.
 *
 * After a fork parent and child go on with the same code. So that neither can change what the other
 * executes, the view for writing goes before a fork, and with it the last way to the file: what the
 * file holds is frozen then. Whoever has to write takes a new file for what is free so far
 * (code_thaw()). A piece of what is frozen is copied into yet another one when it has to change
 * (code_own()). Most children execute another program before that.
 *
 * In each file everything is at its offset in the cache. The view that is executed is a private
 * mapping, which nobody can make one that writes to the file.
 */
#include "dbt/arch-priv.h"
#include "sys/kernel.h"
#include "sys/string.h"

#include <linux/memfd.h>

#define CODE_PROT  (PROT_READ | PROT_EXEC)
#define WRITE_PROT (PROT_READ | PROT_WRITE)

/* A smaller piece is hardly cheaper to copy, as most of it is the kernel's work on mappings. */
#define PIECE_MIN (16u << 10)

/* The view of copies that is executed waits here for its turn, each byte at its offset. */
static u8 *waiting(u32 offset)
{
	return cache.write + cache.code_size + offset;
}

bool code_map_at(const u8 *at, u64 len, int prot, int flags, int fd, u64 offset)
{
	if (!len)
		return true;
	flags |= MAP_FIXED | MAP_NORESERVE;
	return !sys_failed(cache.ops.map_at
				   ? cache.ops.map_at((u64)at, len, prot, flags, fd, offset)
				   : sys_mmap((void *)at, len, prot, flags, fd, offset));
}

/* How much address space beyond the view that is executed is ours. */
static void takes(u64 bytes)
{
	if (cache.ops.takes)
		cache.ops.takes((s64)bytes - (s64)cache.taken);
	cache.taken = bytes;
}

static void unmap(const u8 *at, u64 len)
{
	/* Without the runtime nobody else keeps the place free. */
	if (!cache.ops.map_at)
		code_map_at(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		sys_munmap((void *)at, len);
}

static int code_file(void)
{
	int fd;

	if (cache.ops.code_file)
		return cache.ops.code_file(cache.code_size);
	fd = (int)sys_memfd_create("code", MFD_CLOEXEC);
	if (fd >= 0 && raw_call2(__NR_ftruncate, fd, cache.code_size)) {
		sys_close(fd);
		return -ENOMEM;
	}
	return fd;
}

/*
 * [from, to) is free, but for some bytes on its first and last page: both views of @fd. The one to
 * write always has the whole size, so that the process does not seem to grow or shrink.
 */
static bool map_free(int fd, u32 from, u32 to, bool whole)
{
	u32 low = whole ? 0 : from, high = whole ? cache.code_size : to;

	takes(high - low);
	if (!code_map_at(cache.write + low, high - low, WRITE_PROT, MAP_SHARED, fd, low))
		return false;
	memcpy(cache.write + from, cache.code + from, cache.hot - from);
	memcpy(cache.write + cache.cold, cache.code + cache.cold, to - cache.cold);
	if (!code_map_at(cache.code + from, to - from, CODE_PROT, MAP_PRIVATE, fd, from))
		return false;
	cache.own_from = from;
	cache.own_to = to;
	return true;
}

/* The rest is frozen: both views of @fd, into which it will be copied. */
static bool map_copies(int fd)
{
	u32 from = cache.own_from, to = cache.own_to, size = cache.code_size;

	takes(cache.taken + size - (to - from));
	return code_map_at(cache.write, from, WRITE_PROT, MAP_SHARED, fd, 0) &&
	       code_map_at(cache.write + to, size - to, WRITE_PROT, MAP_SHARED, fd, to) &&
	       code_map_at(waiting(0), from, CODE_PROT, MAP_PRIVATE, fd, 0) &&
	       code_map_at(waiting(to), size - to, CODE_PROT, MAP_PRIVATE, fd, to);
}

/*
 * Where no file can be had, as a limit is met: shared memory without a name serves too, all that is
 * used being copied. Who gets hold of a process can then write to what its relatives execute.
 */
static bool map_nameless(void)
{
	u32 size = cache.code_size, hot = (u32)ALIGN_UP(cache.hot, PAGE_SIZE);
	u8 *at = waiting(0);

	takes(2ull * size);
	if (!code_map_at(at, size, CODE_PROT, MAP_SHARED | MAP_ANONYMOUS, -1, 0) ||
	    sys_failed(sys_mremap(at, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, cache.write)) ||
	    sys_mprotect(cache.write, size, WRITE_PROT))
		return false;
	memcpy(cache.write, cache.code, hot);
	memcpy(cache.write + cache.cold, cache.code + cache.cold, size - cache.cold);
	if (sys_failed(
		    sys_mremap(at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)cache.code)))
		return false;
	takes(size);
	cache.own_from = 0;
	cache.own_to = size;
	return true;
}

#define WINDOW (1u << 20)

/*
 * What is mapped is locked, and there may be no more of that (mlockall, RLIMIT_MEMLOCK): less of
 * the cache is used from now on, as if it were nearly full.
 */
static bool map_window(u32 from)
{
	u32 cold = cache.cold, to = (u32)min_u64(from + WINDOW, ALIGN_UP(cold, PAGE_SIZE));
	int fd = code_file();
	bool done;

	if (fd < 0)
		return false;
	cache.cold = (u32)min_u64(cold, to);
	done = map_free(fd, from, to, false);
	sys_close(fd);
	if (!done)
		cache.cold = cold;
	return done;
}

bool code_thaw(void)
{
	u32 from = (u32)ALIGN_DOWN(cache.hot, PAGE_SIZE), to = (u32)ALIGN_UP(cache.cold, PAGE_SIZE);
	bool done = false;
	int fd;

	if (likely(!cache.frozen))
		return true;
	fd = code_file();
	if (fd >= 0) {
		done = map_free(fd, from, to, true);
		sys_close(fd);
	}
	if (!done && !map_nameless() && !map_window(from))
		return false;
	arch_translate_soon();
	cache.frozen = false;
	cache.left = 0;
	cache.hot_filled = from;
	cache.cold_filled = (u32)ALIGN_UP(cache.cold, PAGE_SIZE);
	return true;
}

void code_freeze(void)
{
	if (cache.frozen)
		return;
	unmap(cache.write, 2ull * cache.code_size);
	takes(0);
	cache.frozen = true;
	cache.copies = COPIES_NONE;
	cache.own_from = cache.own_to = 0;
	memset(cache.copied, 0, sizeof(cache.copied));
}

static bool is_own(u32 offset)
{
	u32 piece = offset / cache.piece;

	return (offset >= cache.own_from && offset < cache.own_to) ||
	       cache.copied[piece / 64] & BIT(piece % 64);
}

/* [from, to) becomes ours; threads may be executing it. */
static bool copy(u32 from, u32 to)
{
	u32 len = to - from;

	if (from >= to)
		return true;
	/* A fault for each page, and in each view, would count as the program's. */
	sys_madvise(cache.write + from, len, MADV_POPULATE_WRITE);
	memcpy(cache.write + from, cache.code + from, len);
	sys_madvise(waiting(from), len, MADV_POPULATE_READ);
	if (sys_failed(sys_mremap(waiting(from), len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
				  (void *)(cache.code + from))))
		return false;
	takes(cache.taken - len);
	return true;
}

/* The same with mappings for these bytes alone, where there is no room for larger ones. */
static bool copy_alone(u32 from, u32 to)
{
	int fd;
	bool done;

	if (from >= to)
		return true;
	fd = code_file();
	if (fd < 0)
		return false;
	done = code_map_at(cache.write + from, to - from, WRITE_PROT, MAP_SHARED, fd, from) &&
	       code_map_at(waiting(from), to - from, CODE_PROT, MAP_PRIVATE, fd, from);
	sys_close(fd);
	takes(cache.taken + 2ull * (to - from));
	return done && copy(from, to);
}

static bool copy_piece(u32 piece)
{
	u32 from = piece * cache.piece, to = from + cache.piece;
	u32 low_end = (u32)min_u64(to, cache.own_from), high = (u32)max_u64(from, cache.own_to);
	bool (*each)(u32 from, u32 to) = copy;

	if (cache.copies == COPIES_NONE) {
		int fd = code_file();

		cache.copies = fd >= 0 && map_copies(fd) ? COPIES_WHOLE : COPIES_SINGLE;
		if (fd >= 0)
			sys_close(fd);
	}
	if (cache.copies == COPIES_SINGLE)
		each = copy_alone;
	return each(from, low_end) && each(high, to);
}

void code_own(u32 offset)
{
	u32 piece = offset / cache.piece;

	CHECK(code_thaw());
	if (is_own(offset))
		return;
	if (copy_piece(piece))
		cache.copied[piece / 64] |= BIT(piece % 64);
	else
		CHECK(map_nameless());
}

bool code_is_shared(u32 offset)
{
	return cache.frozen || !is_own(offset);
}

int code_map(const struct dbt_config *config, u32 size)
{
	long p = sys_mmap((void *)config->cache_hint, size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(p))
		return (int)p;
	cache.code = (const u8 *)p;
	if (config->write_hint)
		p = (long)config->write_hint;
	else
		p = sys_mmap(NULL, 2ull * size, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(p))
		return (int)p;
	cache.write = (u8 *)p;
	cache.code_size = cache.cold = size;
	cache.piece = (u32)max_u64(PIECE_MIN, size / CODE_PIECES);
	cache.frozen = true;
	return 0;
}

/* Nothing of it is used any more: its memory goes back to the kernel. */
bool code_drop(void)
{
	cache.hot = 0;
	cache.cold = cache.code_size;
	if (!cache.frozen && !cache.own_from && cache.own_to == cache.code_size &&
	    !sys_madvise(cache.write, cache.code_size, MADV_REMOVE))
		return true;
	code_freeze();
	return code_thaw();
}
