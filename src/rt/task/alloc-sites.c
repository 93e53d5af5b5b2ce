#include "rt/task/alloc-sites.h"

#include "rt/arch.h"
#include "rt/load/elf.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/region.h"
#include "rt/sample/trace-hits.h"
#include "rt/task/alloc-blocks.h"
#include "rt/task/alloc-names.h"
#include "rt/task/meter-page.h"
#include "rt/task/shared-mm.h"
#include "rt/task/simulate.h"
#include "rt/task/traces.h"
#include "sys/string.h"

#define FUNCTIONS  512u
#define FRAMES     16u
#define BLOCKS     4096u /* room for so many at first */
#define TABLE_MOST (64u << 20)

/* Functions that have been called and have not returned, the last one last. */
struct alloc_frames {
	u32 nr;
	struct alloc_frame {
		u64 ret, sp; /* where to, with which stack pointer at the function's begin */
		u64 block;   /* what it is to give back, or where it is to put the address */
		u64 size;
		u32 number; /* of that block; 0: it has none */
		u32 kind;
	} frame[FRAMES];
};

static struct {
	struct lock lock;
	u32 nr;
	struct {
		u64 addr;
		enum alloc_kind kind;
	} at[FUNCTIONS];
} functions;

static struct alloc_blocks blocks;

bool alloc_sites_wanted(void)
{
	return run_config()->flags & SEGMENT_SITES;
}

u64 alloc_site_of(u64 addr)
{
	const struct alloc_block *b = alloc_blocks_find(&blocks, addr);

	return b ? b->site : 0;
}

static enum alloc_kind kind_at(struct thread *t, u64 addr)
{
	enum alloc_kind kind = ALLOC_NONE;

	lock_acquire(&functions.lock, t->id, thread_gone);
	for (u32 i = 0; i < functions.nr && !kind; i++)
		if (functions.at[i].addr == addr)
			kind = functions.at[i].kind;
	lock_release(&functions.lock, t->id);
	return kind;
}

static void forget_functions(struct thread *t, u64 at, u64 size)
{
	u32 kept = 0;

	lock_acquire(&functions.lock, t->id, thread_gone);
	for (u32 i = 0; i < functions.nr; i++)
		if (functions.at[i].addr - at >= size)
			functions.at[kept++] = functions.at[i];
	functions.nr = kept;
	lock_release(&functions.lock, t->id);
}

/* Several names may be of one function. */
static void add_function(struct thread *t, u64 addr, enum alloc_kind kind)
{
	bool added = false;

	if (kind_at(t, addr))
		return;
	lock_acquire(&functions.lock, t->id, thread_gone);
	if (functions.nr < FUNCTIONS) {
		functions.at[functions.nr].addr = addr;
		functions.at[functions.nr++].kind = kind;
		added = true;
	}
	lock_release(&functions.lock, t->id);
	if (added)
		(void)places_keep(t, addr);
}

/* A file, of which a part is mapped to be executed. */
struct mapped {
	struct thread *t;
	int fd;
	u64 at, size, offset;
	Elf64_Ehdr eh;
};

static bool read_at(const struct mapped *m, void *to, u64 size, u64 from)
{
	u8 *p = to;

	while (size) {
		long n = sys_pread(m->fd, p, size, from);

		if (n <= 0)
			return false;
		p += n;
		from += (u64)n;
		size -= (u64)n;
	}
	return true;
}

/* Where the mapping has what the file has at @value; 0: it is not in it. */
static u64 address_of(const struct mapped *m, u64 value)
{
	for (u32 i = 0; i < m->eh.e_phnum; i++) {
		Elf64_Phdr ph;
		u64 in_file;

		if (!read_at(m, &ph, sizeof(ph), m->eh.e_phoff + (u64)i * sizeof(ph)))
			return 0;
		if (ph.p_type != PT_LOAD || value - ph.p_vaddr >= ph.p_filesz)
			continue;
		in_file = value - ph.p_vaddr + ph.p_offset;
		return in_file - m->offset < m->size ? m->at + (in_file - m->offset) : 0;
	}
	return 0;
}

static void take_symbols(const struct mapped *m, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
	u64 size = table->sh_size + names->sh_size + 1;
	Elf64_Sym *sym;
	char *name;

	if (table->sh_size > TABLE_MOST || names->sh_size > TABLE_MOST)
		return;
	sym = region_map(size);
	if (!sym)
		return;
	/* With a NUL behind them, whatever the file has. */
	name = (char *)sym + table->sh_size;
	if (read_at(m, sym, table->sh_size, table->sh_offset) &&
	    read_at(m, name, names->sh_size, names->sh_offset)) {
		for (u64 i = 0; i < table->sh_size / sizeof(*sym); i++) {
			enum alloc_kind kind;
			u64 addr;

			if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || !sym[i].st_shndx ||
			    sym[i].st_name >= names->sh_size)
				continue;
			kind = alloc_kind_of(name + sym[i].st_name);
			addr = kind ? address_of(m, sym[i].st_value) : 0;
			if (addr)
				add_function(m->t, addr, kind);
		}
	}
	region_unmap(sym, size);
}

void alloc_sites_mapped(struct thread *t, int fd, u64 at, u64 size, u64 offset)
{
	struct mapped m = {.t = t, .fd = fd, .at = at, .size = size, .offset = offset};

	forget_functions(t, at, size);
	if (!read_at(&m, &m.eh, sizeof(m.eh), 0) || memcmp(m.eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    m.eh.e_ident[EI_CLASS] != ELFCLASS64 || m.eh.e_shentsize != sizeof(Elf64_Shdr) ||
	    m.eh.e_phentsize != sizeof(Elf64_Phdr))
		return;
	for (u32 i = 0; i < m.eh.e_shnum; i++) {
		Elf64_Shdr table, names;

		if (!read_at(&m, &table, sizeof(table), m.eh.e_shoff + i * sizeof(table)))
			return;
		if ((table.sh_type == SHT_DYNSYM || table.sh_type == SHT_SYMTAB) &&
		    table.sh_link < m.eh.e_shnum &&
		    read_at(&m, &names, sizeof(names),
			    m.eh.e_shoff + table.sh_link * sizeof(names)))
			take_symbols(&m, &table, &names);
	}
}

void alloc_sites_file(struct thread *t, int fd, u64 bias)
{
	struct mapped m = {.fd = fd};
	Elf64_Phdr ph;

	if (!read_at(&m, &m.eh, sizeof(m.eh), 0))
		return;
	for (u32 i = 0; i < m.eh.e_phnum; i++) {
		if (!read_at(&m, &ph, sizeof(ph), m.eh.e_phoff + (u64)i * sizeof(ph)))
			return;
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			alloc_sites_mapped(t, fd, ph.p_vaddr + bias, ph.p_filesz, ph.p_offset);
	}
}

void alloc_sites_complete(const char *name)
{
	struct counter_segment *s = counter_segment();

	if (!functions.nr && !__atomic_fetch_add(&s->no_allocator, 1, __ATOMIC_RELAXED))
		str_put(s->no_allocator_in, sizeof(s->no_allocator_in), name);
}

static struct alloc_frames *frames_of(struct thread *t)
{
	if (!t->alloc_frames)
		t->alloc_frames = region_map(sizeof(*t->alloc_frames));
	return t->alloc_frames;
}

/* Frames that were left otherwise than by a return, by longjmp() or an exception, are below it. */
static void drop_frames(struct alloc_frames *f, u64 sp)
{
	while (f->nr && f->frame[f->nr - 1].sp < sp)
		f->nr--;
}

/* @block goes, so the model is told first of what has been executed while it was there. */
static void remove_block(struct thread *t, u64 block, u32 number)
{
	traces_flush(t);
	simulate_locks_take(t);
	alloc_blocks_remove(&blocks, block, number);
	simulate_locks_give(t);
}

/* With the lock. Where there is no memory blocks are not known. */
static void add_block(u64 start, u64 size, u64 site)
{
	if (blocks.used + 1 >= blocks.room && !blocks.unused) {
		u32 room = blocks.room ? blocks.room * 2 : BLOCKS;
		struct alloc_block *old = blocks.block, *more = NULL;
		u64 size_of_old = blocks.room * sizeof(*old);

		if (room > blocks.room)
			more = region_map(room * sizeof(*more));
		if (!more)
			return;
		alloc_blocks_move(&blocks, more, room);
		if (old)
			region_unmap(old, size_of_old);
	}
	(void)alloc_blocks_add(&blocks, start, size, site);
}

/* Of what there cannot be so much nothing comes, and a block that was there stays. */
static u64 product(u64 n, u64 size)
{
	u64 all;

	return __builtin_mul_overflow(n, size, &all) ? UINT64_MAX : all;
}

static void called(struct thread *t, enum alloc_kind kind)
{
	const struct dbt_regs *regs = &t->dbt.regs;
	struct alloc_frames *f = frames_of(t);
	struct alloc_frame new = {.sp = regs_sp(regs), .kind = kind};
	const struct alloc_block *b;

	if (!f)
		return;
	drop_frames(f, new.sp);
	if (kind == ALLOC_FREES) {
		remove_block(t, regs_arg(regs, 0), 0);
		return;
	}
	if (f->nr == FRAMES || guest_read(&new.ret, new.sp, sizeof(new.ret)) ||
	    !places_keep(t, new.ret))
		return;
	switch (kind) {
	case ALLOC_SIZE: new.size = regs_arg(regs, 0); break;
	case ALLOC_ITEMS: new.size = product(regs_arg(regs, 0), regs_arg(regs, 1)); break;
	case ALLOC_ALIGNED: new.size = regs_arg(regs, 1); break;
	case ALLOC_OUT: new.size = regs_arg(regs, 2); break;
	case ALLOC_AGAIN: new.size = regs_arg(regs, 1); break;
	case ALLOC_AGAIN_OF: new.size = product(regs_arg(regs, 1), regs_arg(regs, 2)); break;
	case ALLOC_AGAIN_ALIGNED: new.size = regs_arg(regs, 3); break;
	default: break;
	}
	new.block = regs_arg(regs, 0);
	/*
	 * What the function itself does to its block, as to clear it or to copy what was there, is
	 * of that, though the block is known when it returns. What was done before is not.
	 */
	if (kind != ALLOC_WRAPS)
		traces_flush(t);
	if (kind == ALLOC_AGAIN || kind == ALLOC_AGAIN_OF || kind == ALLOC_AGAIN_ALIGNED) {
		simulate_locks_take(t);
		b = alloc_blocks_find(&blocks, new.block);
		new.number = b && b->start == new.block ? b->number : 0;
		simulate_locks_give(t);
	}
	f->frame[f->nr++] = new;
}

/* @frame's function has returned @result; @site: where the outermost one does. */
static void returned(struct thread *t, const struct alloc_frame *frame, u64 result, u64 site)
{
	u64 start = result;

	if (frame->kind == ALLOC_WRAPS)
		return;
	if (frame->kind == ALLOC_OUT && (result || guest_read(&start, frame->block, sizeof(start))))
		return;
	/* realloc(block, 0) gives it back; else a block that there was is still there. */
	if (!start && frame->size)
		return;
	if (start) {
		simulate_locks_take(t);
		add_block(start, frame->size, site);
		simulate_locks_give(t);
	}
	/* It was read from until now; where it is the new one it has another number. */
	if (frame->number)
		remove_block(t, frame->block, frame->number);
}

void alloc_sites_place(struct thread *t, u64 pc)
{
	struct alloc_frames *f = t->alloc_frames;
	u64 sp = regs_sp(&t->dbt.regs) - sizeof(u64);
	enum alloc_kind kind;

	if (f) {
		drop_frames(f, sp);
		/* A function may have jumped to another one, and then both return. */
		while (f->nr && f->frame[f->nr - 1].sp == sp && f->frame[f->nr - 1].ret == pc) {
			f->nr--;
			returned(t, &f->frame[f->nr], (u64)regs_result(&t->dbt.regs),
				 f->frame[0].ret);
		}
	}
	kind = kind_at(t, pc);
	if (kind)
		called(t, kind);
}

void alloc_sites_leave(struct thread *t)
{
	if (t->alloc_frames)
		region_unmap(t->alloc_frames, sizeof(*t->alloc_frames));
	t->alloc_frames = NULL;
}
