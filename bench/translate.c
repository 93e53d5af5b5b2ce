/*
 * What translating costs: all code that can be reached from the functions of a library, or of a
 * program, is translated, and none of it executed.
 * Usage: translate [FILE [INSTRUCTIONS [MASK [FLAGS]]]], with flags of dbt_init(); of a MASK with
 * windows the blocks that are traced
 *
 * Prints how much bookkeeping and code an instruction takes, ns for each, and a sum of the
 * blocks: what only makes the translator faster leaves that as it is. The time of a busy machine
 * says little. What does not depend on it is the number of instructions:
 *
 *	valgrind --tool=callgrind --toggle-collect=arch_translate translate FILE
 *	anyperf stat -e instructions:u translate FILE
 */
#include <linux/fcntl.h>
#include <stdio.h>

#include "dbt/arch-priv.h"
#include "elf/elf-file.h"
#include "sys/kernel.h"
#include "sys/string.h"

/* As far from each other as the runtime puts them, and always the same. */
#define TEXT_AT  0x500000000000ull
#define CACHE_AT 0x500040000000ull

#define MOST 4000000u /* ways out that have not been followed yet */

static u64 pending[MOST], bias;
static u32 nr_pending;

static void fail(const char *what)
{
	fprintf(stderr, "translate: no %s\n", what);
	sys_exit_group(1);
}

static void *map(u64 at, u64 size, int prot, int flags, int fd)
{
	long p = sys_mmap((void *)at, size, prot,
			  MAP_PRIVATE | flags | (at ? MAP_FIXED_NOREPLACE : 0), fd, 0);

	if (sys_failed(p))
		fail("memory");
	return (void *)p;
}

static void follow(u64 pc)
{
	if (nr_pending < MOST && exec_find(pc) && !block_find(pc, 0))
		pending[nr_pending++] = pc;
}

static int add_function(const struct elf_symbol *s, const char *name, void *data)
{
	(void)name;
	(void)data;
	if ((s->info & 15) == 2 && s->shndx) /* STT_FUNC */
		follow(bias + s->value);
	return 0;
}

/* Maps the file's segments, and makes its code executable for the translator. */
static void load(struct dbt_thread *t, const struct elf_file *f)
{
	u64 base = ~0ull;

	for (u32 pass = 0; pass < 2; pass++) {
		for (u32 i = 0; i < f->phnum; i++) {
			struct elf_segment s;
			u64 at;

			if (!elf_file_segment(f, i, &s) || s.type != 1) /* PT_LOAD */
				continue;
			base = min_u64(base, s.vaddr);
			if (!pass)
				continue;
			bias = TEXT_AT - ALIGN_DOWN(base, PAGE_SIZE);
			at = ALIGN_DOWN(bias + s.vaddr, PAGE_SIZE);
			map(at, bias + s.vaddr + s.filesz - at, PROT_READ | PROT_WRITE,
			    MAP_ANONYMOUS, -1);
			memcpy((void *)(bias + s.vaddr), f->bytes + s.offset, s.filesz);
		}
	}
	for (u32 i = 0; i < f->shnum; i++) {
		struct elf_section s;

		if (elf_file_section(f, i, &s) && s.flags & 4) /* SHF_EXECINSTR */
			dbt_exec_add(t, bias + s.addr, s.size, 0);
	}
	for (u32 i = f->shnum; i-- > 0;) {
		struct elf_section s;

		if (elf_file_section(f, i, &s) && s.type == 11) /* SHT_DYNSYM */
			elf_file_each_symbol(f, &s, add_function, NULL);
	}
}

static void translate(u64 pc)
{
	struct dbt_block *b;
	u64 fault;

	if (!cache_has_room() || block_find(pc, 0))
		return;
	/* One in eight is looked up, as those of an indirect call are. */
	b = arch_translate(pc, pc / 16 % 8 ? EXIT_JUMP : EXIT_MISS, 0, NULL, &fault);
	if (!b)
		return;
	for (u32 i = b->nr_exits; i-- > 0;) {
		struct dbt_exit *x = &block_exits(b)[i];
		struct dbt_block *to = x->kind == EXIT_JUMP ? block_find(x->target, 0) : NULL;

		if (to)
			exit_link(x, to);
		else if (x->kind == EXIT_JUMP)
			follow(x->target);
	}
}

/* Guest instructions that more than one block has. */
static u32 distinct_insns(void)
{
	static u8 seen[64u << 20];
	u32 n = 0;

	for (u32 i = 0; i < cache.nr_blocks; i++) {
		const struct dbt_block *b = meta_at(cache.by_code[i]);
		u32 frag = 0;
		u64 pc = b->pc;

		for (u32 k = 0; k < b->nr_insns; k++) {
			while (frag < b->nr_frags && block_frags(b)[frag].first <= k)
				pc = block_frags(b)[frag++].pc;
			n += pc - TEXT_AT < sizeof(seen) && !seen[pc - TEXT_AT];
			seen[(pc - TEXT_AT) % sizeof(seen)] = 1;
			pc += insn_len_of(&block_insns(b)[k]);
		}
	}
	return n;
}

static u64 sum_of(u64 sum, const void *bytes, u64 n)
{
	for (u64 i = 0; i < n; i++)
		sum = (sum ^ ((const u8 *)bytes)[i]) * 0x9e3779b97f4a7c15ull;
	return sum;
}

/*
 * Of the code, without what lies between blocks, which is not executed, and of what signals need.
 */
static u64 sum_of_blocks(void)
{
	u64 sum = 0;

	for (u32 i = 0; i < cache.nr_blocks; i++) {
		const struct dbt_block *b = meta_at(cache.by_code[i]);

		sum = sum_of(sum, cache.code + b->start, b->code_end - b->start);
		sum = sum_of(sum, block_insns(b), b->nr_insns * sizeof(*block_insns(b)));
		sum = sum_of(sum, block_counts(b), b->nr_counts * sizeof(*block_counts(b)));
		sum = sum_of(sum, block_spill_ranges(b),
			     b->nr_spill_ranges * sizeof(*block_spill_ranges(b)));
	}
	return sum;
}

static u64 number(const char *text)
{
	u64 n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + (u64)(*text++ - '0');
	return n;
}

int main(int argc, char **argv)
{
	static const struct dbt_ops ops;
	const struct dbt_config config = {.ops = &ops,
					  .mask = DBT_MASK_COUNT,
					  .flags = argc > 4 ? (u32)number(argv[4]) : 0,
					  .cache_size = 512u << 20,
					  .cache_hint = CACHE_AT};
	const char *path = argc > 1 ? argv[1] : "/lib/x86_64-linux-gnu/libc.so.6";
	u64 most = argc > 2 ? number(argv[2]) : 300000, insns, start, took;
	int fd = (int)sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	u64 size = (u64)sys_lseek(fd, 0, 2);
	u64 mask = argc > 3 ? number(argv[3]) : DBT_MASK_COUNT;
	struct dbt_thread *t;
	struct elf_file file;

	if (fd < 0 || !elf_file_open(&file, map(0, size, PROT_READ, 0, fd), size))
		fail(path);
	if (dbt_init(&config))
		fail("code cache");
	t = (struct dbt_thread *)((char *)map(0, DBT_METER_BELOW + DBT_PATHS_AT,
					      PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1) +
				  DBT_METER_BELOW);
	dbt_thread_add(t, 1);
	load(t, &file);
	if (mask & (DBT_MASK_PATHS | DBT_MASK_TRACE))
		dbt_paths(t, map(0, sizeof(struct path_space), PROT_READ | PROT_WRITE,
				 MAP_ANONYMOUS | MAP_NORESERVE, -1));
	if (mask & DBT_MASK_FILTER)
		dbt_filter(6, 64, 0);
	dbt_set_mask(t, mask);
	start = sys_clock(2); /* of the process */
	while (nr_pending && cache.stats.guest_insns < most)
		translate(pending[--nr_pending]);
	took = sys_clock(2) - start;
	insns = cache.stats.guest_insns;
	for (u32 i = 0; i < cache.nr_blocks; i++)
		arch_check_jumps(meta_at(cache.by_code[i]));
	printf("%llu instructions in %u blocks, %.1f %% of them in one before; %.0f ns each\n",
	       (unsigned long long)insns, cache.nr_blocks,
	       100 - 100.0 * distinct_insns() / (double)insns, (double)took / (double)insns);
	printf("for each instruction %.1f bytes of code, %.1f of cold code, %.1f of bookkeeping\n",
	       cache.hot / (double)insns, (cache.floor - cache.cold) / (double)insns,
	       (double)cache.meta_used / (double)insns);
	printf("the blocks are %016llx\n", (unsigned long long)sum_of_blocks());
	return 0;
}
