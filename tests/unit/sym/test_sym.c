/*
 * From addresses to names: this program's own symbols and segments, maps that overlap, forks, the
 * names of a just-in-time compiler, notes with and without build ids, and files that are none.
 */
#include "unit/test.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/demangle.h"
#include "sym/symbols.h"
#include "sym/symbol-view.h"

static const char self[] = "/proc/self/exe";

__attribute__((noinline)) void test_sym_known(void);
void test_sym_known(void)
{
	__asm__ volatile("");
}

static u64 load_bias;

static int first_object(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	load_bias = info->dlpi_addr;
	return 1;
}

TEST(symbols_of_a_file)
{
	struct sym_symbols *s = sym_symbols_load(self, NULL);
	const struct sym_symbol *found;
	u64 at;

	ASSERT(s);
	EXPECT(sym_symbols_complete(s));
	EXPECT(sym_symbols_count(s) > 20);
	dl_iterate_phdr(first_object, NULL);
	at = (u64)(uintptr_t)&test_sym_known - load_bias;
	EXPECT_EQ(sym_symbols_address(s, "test_sym_known"), at);
	found = sym_symbols_find(s, at);
	ASSERT(found);
	EXPECT_STREQ(found->name, "test_sym_known");
	EXPECT_EQ(found->start, at);
	EXPECT(sym_symbols_find(s, 1) == NULL);
	EXPECT(sym_symbols_find(s, UINT64_MAX) == NULL);
	sym_symbols_free(s);
}

TEST(a_view_finds_them)
{
	struct sym_segments *segments = sym_segments_load(self);
	struct sym_view *v = sym_view_new();
	char path[4096];
	ssize_t n = readlink(self, path, sizeof(path) - 1);
	struct sym_place place;
	u64 addr = (u64)(uintptr_t)&test_sym_known, at, page;
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long long from, to, off;
	char line[4400], perms[8];

	ASSERT(v && f && n > 0 && segments);
	dl_iterate_phdr(first_object, NULL);
	path[n] = 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %7s %llx", &from, &to, perms, &off) == 4 &&
		    perms[2] == 'x' && addr >= from && addr < to)
			sym_view_map(v, 5, from, to - from, off, path, NULL);
	fclose(f);
	sym_view_find(v, 5, addr, false, &place);
	EXPECT_STREQ(place.symbol, "test_sym_known");
	EXPECT_EQ(place.offset, 0);
	EXPECT_STREQ(place.object, path);
	EXPECT(sym_segments_address(segments, place.addr, &at));
	EXPECT_EQ(at + load_bias, addr);
	sym_view_find(v, 6, addr, false, &place);
	EXPECT(!place.symbol && !place.mapped);
	EXPECT_STREQ(place.object, "[unknown]");
	/* A child has what its parent has, until something else is there. */
	sym_view_comm(v, 5, "parent");
	sym_view_fork(v, 6, 6, 5, 5);
	EXPECT_STREQ(sym_view_name(v, 6), "parent");
	sym_view_find(v, 6, addr, false, &place);
	EXPECT_STREQ(place.symbol, "test_sym_known");
	page = addr & ~4095ull;
	sym_view_map(v, 6, page, 4096, 0, "/nothing/there", NULL);
	sym_view_find(v, 6, addr, false, &place);
	EXPECT_STREQ(place.object, "/nothing/there");
	EXPECT(!place.symbol);
	sym_view_find(v, 5, addr, false, &place);
	EXPECT_STREQ(place.symbol, "test_sym_known");
	free(segments);
	sym_view_free(v);
}

TEST(another_build_has_no_names)
{
	struct elf_build_id id;
	struct sym_symbols *s;
	char text[41];

	if (!elf_build_id_of_file(self, &id))
		return; /* linked without one */
	EXPECT(id.size >= 8);
	EXPECT_EQ(strlen(elf_build_id_text(&id, text)), 2u * id.size);
	s = sym_symbols_load(self, &id);
	EXPECT(s);
	sym_symbols_free(s);
	id.bytes[3] ^= 1;
	EXPECT(!sym_symbols_load(self, &id));
}

TEST(maps_that_overlap)
{
	struct sym_view *v = sym_view_new();
	struct sym_place place;

	sym_view_map(v, 1, 1000, 1000, 0, "/a", NULL);
	sym_view_map(v, 1, 1200, 100, 7000, "/b", NULL);
	sym_view_map(v, 1, 900, 150, 0, "/c", NULL);
	sym_view_map(v, 1, 1950, 100, 0, "/d", NULL);
	static const struct {
		u64 addr;
		const char *object;
		u64 at;
	} want[] = {
		{899, "[unknown]", 899}, {900, "/c", 0},    {1049, "/c", 149},
		{1050, "/a", 50},        {1199, "/a", 199}, {1200, "/b", 7000},
		{1299, "/b", 7099},      {1300, "/a", 300}, {1949, "/a", 949},
		{1950, "/d", 0},         {2049, "/d", 99},  {2050, "[unknown]", 2050},
	};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		sym_view_find(v, 1, want[i].addr, false, &place);
		EXPECT_STREQ(place.object, want[i].object);
		EXPECT_EQ(place.addr, want[i].at);
	}
	sym_view_free(v);
}

TEST(code_of_a_compiler)
{
	char path[64];
	struct sym_view *v = sym_view_new();
	struct sym_place place;
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "w");
	ASSERT(f);
	fprintf(f, "5000 20 lazy: fib\nnonsense\n5100 8 other\n");
	fclose(f);
	sym_view_map(v, (u32)getpid(), 0x5000, 0x1000, 0, "//anon", NULL);
	sym_view_find(v, (u32)getpid(), 0x5010, false, &place);
	EXPECT_STREQ(place.symbol, "lazy: fib");
	EXPECT_EQ(place.offset, 0x10);
	EXPECT_STREQ(place.object, path);
	sym_view_find(v, (u32)getpid(), 0x5030, false, &place);
	EXPECT(!place.symbol);
	unlink(path);
	sym_view_free(v);
}

/* /tmp is everybody's: what waits for ever there, or never ends, is no map. */
TEST(maps_that_are_no_files)
{
	char path[64];

	EXPECT(!sym_symbols_of_jit("/dev/zero"));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	ASSERT(!mkfifo(path, 0600));
	EXPECT(!sym_symbols_of_jit(path));
	unlink(path);
}

TEST(types_are_stripped)
{
	static const char *const names[][2] = {
		{"foo()", "foo"},
		{"ns::foo(int, char const*) const", "ns::foo"},
		{"int ns::foo<int>(int)", "ns::foo<int>"},
		{"std::vector<int> const& f<std::pair<int, int> >(int (*)(char))",
		 "f<std::pair<int, int> >"},
		{"(anonymous namespace)::foo(int)", "(anonymous namespace)::foo"},
		{"a::(anonymous namespace)::b::c(void (*)(int))", "a::(anonymous namespace)::b::c"},
		{"A::operator()(int) const", "A::operator()"},
		{"A::operator<(A const&)", "A::operator<"},
		{"std::ostream& operator<< <char>(std::ostream&, char)", "operator<< <char>"},
		{"operator new(unsigned long)", "operator new"},
		{"A::operator unsigned long() const", "A::operator unsigned long"},
		{"A::operator->()", "A::operator->"},
		{"main::{lambda(int)#1}::operator()(int) const",
		 "main::{lambda(int)#1}::operator()"},
		{"vtable for A", "vtable for A"},
		{"guard variable for f(int)::x", "guard variable for f(int)::x"},
		{"non-virtual thunk to A::f(int)", "non-virtual thunk to A::f(int)"},
		{"transaction clone for A::f() const", "transaction clone for A::f() const"},
		{"f(int) [clone .part.0]", "f"},
		{"", ""},
		{"(", "("},
		{"f(", "f"},
		{"a<b(c", "a<b(c"},
		{"operator", "operator"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *copy = strdup(names[i][0]);

		EXPECT_STREQ(sym_strip_types(copy), names[i][1]);
		free(copy);
	}
	EXPECT(!sym_demangle("main"));
	EXPECT(!sym_demangle("_Znonsense"));
}

TEST(notes)
{
	static const u32 notes[] = {4,          4,       1, 0x00554e47, 77, 4, 3, NT_GNU_BUILD_ID,
				    0x00554e47, 0xccbbaa};
	struct elf_build_id id;
	char text[41];

	EXPECT(elf_build_id_in_notes(notes, sizeof(notes), 4, &id));
	EXPECT_STREQ(elf_build_id_text(&id, text), "aabbcc");
	for (size_t len = 0; len < sizeof(notes) - 1; len++)
		EXPECT(!elf_build_id_in_notes(notes, len, 4, &id));
}

/* perf has 20 bytes of each, with zeros behind a shorter one. */
TEST(build_ids_of_any_length)
{
	static const u8 bytes[24] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
				     13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
	static const u8 padded[20] = {1, 2, 3, 4, 5};
	struct elf_build_id five = elf_build_id_made(bytes, 5),
			    of_perf = elf_build_id_made(padded, 20);
	struct elf_build_id cut = elf_build_id_made(bytes, 24),
			    twenty = elf_build_id_made(bytes, 20);
	struct elf_build_id none = {.size = 0};

	EXPECT(elf_build_id_same(&five, &of_perf) && elf_build_id_same(&of_perf, &five));
	EXPECT(elf_build_id_same(&cut, &twenty));
	EXPECT(!elf_build_id_same(&five, &twenty) && !elf_build_id_same(&none, &none));
}

/* Cut off, and with any byte changed: symbols or none, nothing outside of it is read. */
TEST(files_that_are_none)
{
	FILE *f = fopen(self, "rb");
	size_t len = 0, room = 1 << 22;
	u8 *bytes = malloc(room), *copy;

	ASSERT(f && bytes);
	len = fread(bytes, 1, room, f);
	fclose(f);
	for (size_t cut = 0; cut < len; cut = cut * 3 / 2 + 7) {
		copy = malloc(cut + 1);
		memcpy(copy, bytes, cut);
		sym_symbols_free(sym_symbols_of_bytes(copy, cut));
		free(sym_segments_of_bytes(copy, cut));
		free(copy);
	}
	for (size_t i = 0; i < 64; i++) {
		u8 old = bytes[i];

		bytes[i] = (u8)(old ^ 0x81);
		sym_symbols_free(sym_symbols_of_bytes(bytes, len));
		free(sym_segments_of_bytes(bytes, len));
		bytes[i] = old;
	}
	free(bytes);
}
