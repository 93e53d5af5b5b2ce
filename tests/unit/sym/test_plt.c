/*
 * Names of the slots of a procedure linkage table, by the order of its relocations: on x86-64 with
 * and without .plt.sec, on arm64, in a debug file, and where a table ends too early.
 */
#include "unit/test.h"

#include <elf.h>
#include <unistd.h>

#include "sym/symbols.h"

/* A file of a null section and these: enough for names, and nothing else. */
enum { NONE, DYNSYM, DYNSTR, RELA, PLT, SEC, SYMTAB, NAMES, NSECTIONS };

static const char dynstr[] = "\0puts\0_ZN1a1bEv";
static const char names[] = "\0.dynsym\0.dynstr\0.rela.plt\0.plt\0.plt.sec\0.symtab\0.names";

struct made {
	Elf64_Ehdr head;
	Elf64_Shdr sections[NSECTIONS];
	Elf64_Sym dynsym[3];
	Elf64_Sym symtab[2];
	Elf64_Rela rela[4];
	char dynstr[sizeof(dynstr)];
	char names[sizeof(names)];
	u8 code[256];
};

static u32 name_at(const char *name)
{
	size_t at = 1;

	while (strcmp(names + at, name) != 0)
		at += strlen(names + at) + 1;
	return (u32)at;
}

#define AT(member) offsetof(struct made, member), sizeof(((struct made *)0)->member)

static void section(struct made *m, u32 i, const char *name, u32 type, u64 addr, u64 off, u64 size,
		    u32 link, u64 each)
{
	m->sections[i] = (Elf64_Shdr){.sh_name = name_at(name),
				      .sh_type = type,
				      .sh_addr = addr,
				      .sh_offset = off,
				      .sh_size = size,
				      .sh_link = link,
				      .sh_entsize = each};
}

/* Four slots: of puts, one without a symbol, a::b, and puts again. */
static void make(struct made *m, u16 machine)
{
	static const u32 symbols[] = {1, 0, 2, 1};
	const u16 one = 1;

	memset(m, 0, sizeof(*m));
	memcpy(m->head.e_ident, ELFMAG, SELFMAG);
	m->head.e_ident[EI_CLASS] = ELFCLASS64;
	m->head.e_ident[EI_DATA] = *(const u8 *)&one ? ELFDATA2LSB : ELFDATA2MSB;
	m->head.e_machine = machine;
	m->head.e_shoff = offsetof(struct made, sections);
	m->head.e_shentsize = sizeof(Elf64_Shdr);
	m->head.e_shnum = NSECTIONS;
	m->head.e_shstrndx = NAMES;
	memcpy(m->dynstr, dynstr, sizeof(dynstr));
	memcpy(m->names, names, sizeof(names));
	m->dynsym[1].st_name = 1;
	m->dynsym[2].st_name = 6;
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++)
		m->rela[i].r_info = ELF64_R_INFO((u64)symbols[i], 7);
	/* A function around nothing of it. */
	m->symtab[1] = (Elf64_Sym){.st_name = 1,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = PLT,
				   .st_value = 0x9000,
				   .st_size = 16};
	section(m, DYNSYM, ".dynsym", SHT_DYNSYM, 0, AT(dynsym), DYNSTR, sizeof(Elf64_Sym));
	section(m, DYNSTR, ".dynstr", SHT_STRTAB, 0, AT(dynstr), 0, 0);
	section(m, RELA, ".rela.plt", SHT_RELA, 0, AT(rela), DYNSYM, sizeof(Elf64_Rela));
	section(m, PLT, ".plt", SHT_PROGBITS, 0x1000, offsetof(struct made, code), 96, 0, 16);
	section(m, SYMTAB, ".symtab", SHT_SYMTAB, 0, AT(symtab), DYNSTR, sizeof(Elf64_Sym));
	section(m, NAMES, ".names", SHT_STRTAB, 0, AT(names), 0, 0);
}

static const char *name_of(struct sym_symbols *s, u64 addr)
{
	const struct sym_symbol *found = sym_symbols_find(s, addr);

	return found ? found->name : "";
}

/* The slots from @first on, each twice: where it begins and its last byte. */
static void expect_slots(struct sym_symbols *s, u64 first)
{
	static const char *const want[] = {"puts@plt", "@plt", "a::b@plt", "puts@plt"};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		EXPECT_STREQ(name_of(s, first + i * 16), want[i]);
		EXPECT_STREQ(name_of(s, first + i * 16 + 15), want[i]);
	}
	EXPECT_STREQ(name_of(s, first - 1), "");
	EXPECT_STREQ(name_of(s, first + 64), "");
}

TEST(slots_of_x86)
{
	struct sym_symbols *s;
	struct made m;

	make(&m, EM_X86_64);
	s = sym_symbols_of_bytes(&m, sizeof(m));
	ASSERT(s);
	expect_slots(s, 0x1010);
	EXPECT_STREQ(name_of(s, 0x9000), "puts");
	sym_symbols_free(s);
}

TEST(slots_of_arm64_stand_behind_two)
{
	struct sym_symbols *s;
	struct made m;

	make(&m, EM_AARCH64);
	m.sections[PLT].sh_entsize = 0;
	s = sym_symbols_of_bytes(&m, sizeof(m));
	ASSERT(s);
	expect_slots(s, 0x1020);
	sym_symbols_free(s);
}

/* A second table for calls under indirect branch tracking: nothing stands in front of its slots. */
TEST(slots_of_both_tables)
{
	struct sym_symbols *s;
	struct made m;

	make(&m, EM_X86_64);
	section(&m, SEC, ".plt.sec", SHT_PROGBITS, 0x2000, offsetof(struct made, code), 64, 0, 16);
	s = sym_symbols_of_bytes(&m, sizeof(m));
	ASSERT(s);
	expect_slots(s, 0x1010);
	expect_slots(s, 0x2000);
	sym_symbols_free(s);
}

/* More relocations than slots, relocations of another table, and a section without bytes. */
TEST(tables_that_do_not_fit)
{
	struct sym_symbols *s;
	struct made m;

	make(&m, EM_X86_64);
	m.sections[PLT].sh_size = 32 + 15;
	s = sym_symbols_of_bytes(&m, sizeof(m));
	ASSERT(s);
	EXPECT_STREQ(name_of(s, 0x1010), "puts@plt");
	EXPECT_STREQ(name_of(s, 0x1020), "");
	sym_symbols_free(s);
	make(&m, EM_X86_64);
	m.sections[RELA].sh_link = SYMTAB;
	s = sym_symbols_of_bytes(&m, sizeof(m));
	ASSERT(s);
	EXPECT_EQ(sym_symbols_count(s), 1);
	sym_symbols_free(s);
	make(&m, EM_X86_64);
	m.sections[PLT].sh_type = SHT_NOBITS;
	s = sym_symbols_of_bytes(&m, sizeof(m));
	ASSERT(s);
	EXPECT_EQ(sym_symbols_count(s), 1);
	sym_symbols_free(s);
}

static void write_to(const char *path, const struct made *m)
{
	FILE *f = fopen(path, "wb");

	ASSERT(f);
	EXPECT_EQ(fwrite(m, sizeof(*m), 1, f), 1);
	fclose(f);
}

/* Of a debug file come the functions, of the file that runs the slots. */
TEST(slots_beside_a_debug_file)
{
	char path[] = "/tmp/anyperf-plt-XXXXXX", debug[sizeof(path) + 6];
	int fd = mkstemp(path);
	struct sym_symbols *s;
	struct made m;

	ASSERT(fd >= 0);
	close(fd);
	snprintf(debug, sizeof(debug), "%s.debug", path);
	make(&m, EM_X86_64);
	m.sections[SYMTAB].sh_type = SHT_NULL;
	write_to(path, &m);
	make(&m, EM_X86_64);
	m.sections[PLT].sh_type = m.sections[RELA].sh_type = m.sections[DYNSYM].sh_type =
		SHT_NOBITS;
	write_to(debug, &m);
	s = sym_symbols_load_debug(debug, path, NULL);
	ASSERT(s);
	expect_slots(s, 0x1010);
	EXPECT_STREQ(name_of(s, 0x9000), "puts");
	sym_symbols_free(s);
	/* Without the other one there are the functions alone. */
	unlink(path);
	s = sym_symbols_load_debug(debug, path, NULL);
	ASSERT(s);
	EXPECT_EQ(sym_symbols_count(s), 1);
	sym_symbols_free(s);
	unlink(debug);
}
